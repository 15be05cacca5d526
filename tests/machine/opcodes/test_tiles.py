"""ldmatrix, stmatrix and movmatrix against a lane at a time, written after the manual's text and figures.

Every thread owns a row of 16 bytes somewhere in the shared memory of its CTA; ``pick`` says whose row a
thread addresses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import ptxas
from tests.helpers.kernel_texts import kernel, registers, run
from warpsim.base.errors import Fault, IllegalInstruction, UndefinedBehavior
from warpsim.programs.launch.launching import load_text

Array = npt.NDArray[Any]
CTAS, THREADS, BYTES = 2, 96, 8192
WARPS = CTAS * THREADS // 32
TARGET = "sm_100a"
PUT = f"st.shared.v4.b32 [%at0], {registers('m', 4)};\nbar.sync 0;\n"
GET = f"\nbar.sync 0;\nld.shared.v4.b32 {registers('d', 4)}, [%at0];"
GENERIC = "mul.wide.u32 %wide, %to0, 1; cvta.shared.u64 %wide, %wide;\n"
WIDE = {"shared": BYTES, "extra": ".reg .b64 %wide;"}


def _case(seed: int) -> tuple[dict[str, Array], Array, Array]:
    """Inputs of a kernel: rows ``m``, their places ``at``, addresses ``to``; rows as bytes; ``pick``."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, 256, (CTAS, THREADS, 16)).astype(np.uint8)
    at = np.stack([random.permutation(BYTES // 16)[:THREADS] * 16 for _ in range(CTAS)]).astype(np.uint32)
    pick = np.stack([random.permutation(THREADS) for _ in range(CTAS)])
    to = np.take_along_axis(at, pick, axis=1)
    inputs = {"m": rows.view(np.uint32).reshape(-1, 4), "at": at.reshape(-1, 1), "to": to.reshape(-1, 1)}
    return inputs, rows, pick


def _addressed(rows: Array, pick: Array) -> Array:
    """(warps, 32, 16): the row that each lane addresses."""
    return np.take_along_axis(rows, pick[:, :, None], axis=1).reshape(WARPS, 32, 16)


def _loaded(mnemonic: str, count: int, address: str = "%to0") -> tuple[Array, Array]:
    """Registers (warps, 32, count) of a load, and the rows that were addressed (warps, 32, 16)."""
    inputs, rows, pick = _case(count)
    body = f"{PUT}{GENERIC}{mnemonic} {registers('d', count)}, [{address}];"
    d = run(TARGET, CTAS, THREADS, inputs, {"d": (count, np.uint32)}, body, **WIDE)["d"]
    return d.reshape(WARPS, 32, count), _addressed(rows, pick)


@pytest.mark.parametrize(("space", "address"), [("", "%wide"), (".shared", "%to0"), (".shared::cta", "%to0")])
@pytest.mark.parametrize("transposed", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_of_halves(count: int, transposed: str, space: str, address: str) -> None:
    mnemonic = f"ldmatrix.sync.aligned.m8n8.x{count}{transposed}{space}.b16"
    d, rows = _loaded(mnemonic, count, address)
    for warp, lane, j in np.ndindex(WARPS, 32, count):
        matrix = rows[warp, 8 * j : 8 * j + 8].view(np.uint16)
        matrix = matrix.T if transposed else matrix
        # A group of four threads holds a row: two elements each, the first one lowest.
        low, high = (int(matrix[lane // 4, 2 * (lane % 4) + one]) for one in (0, 1))
        assert d[warp, lane, j] == low | high << 16


def _unpacked(row: Array, bits: int) -> list[int]:
    """16 elements of that many bits, the first one lowest."""
    whole = int.from_bytes(row.tobytes(), "little")
    return [whole >> bits * place & (1 << bits) - 1 for place in range(16)]


@pytest.mark.parametrize(("source", "bits"), [("b6x16_p32", 6), ("b4x16_p64", 4)])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_of_packed_elements(count: int, source: str, bits: int) -> None:
    d, rows = _loaded(f"ldmatrix.sync.aligned.m8n16.x{count}.shared.b8x16.{source}", count)
    for warp, lane, j in np.ndindex(WARPS, 32, count):
        row = _unpacked(rows[warp, 8 * j + lane // 4], bits)
        assert list(int(d[warp, lane, j]).to_bytes(4, "little")) == row[4 * (lane % 4) : 4 * (lane % 4) + 4]


@pytest.mark.parametrize(("kind", "bits"), [("b8", 8), ("b8x16.b6x16_p32", 6), ("b8x16.b4x16_p64", 4)])
@pytest.mark.parametrize("count", [1, 2])
def test_ldmatrix_of_bytes(count: int, kind: str, bits: int) -> None:
    """The layouts of CuTe: places in one stretch of bytes, of what a lane addresses and of what it gets."""
    d, rows = _loaded(f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{kind}", 2 * count)
    for warp in range(WARPS):
        stretch: dict[int, int] = {}  # place in bytes -> element
        for lane in range(16 * count):
            start = 16 * (lane & 1) + 128 * (lane >> 1 & 1) + 32 * (lane >> 2 & 3) + 256 * (lane >> 4)
            stretch |= {start + i: one for i, one in enumerate(_unpacked(rows[warp, lane], bits))}
        for lane, j in np.ndindex(32, 2 * count):
            start = 32 * (lane & 3) + (lane >> 2) + 128 * j
            wanted = [stretch[start + 16 * (i & 1) + 8 * (i >> 1)] for i in range(4)]
            assert list(int(d[warp, lane, j]).to_bytes(4, "little")) == wanted


def _stored(mnemonic: str, count: int, address: str = "%to0") -> tuple[Array, Array, Array]:
    """Addressed rows before and after a store (warps, 32, 16), registers as bytes (warps, 32, n, 4)."""
    inputs, rows, pick = _case(10 + count)
    values = np.random.default_rng(count).integers(0, 1 << 32, (CTAS * THREADS, count)).astype(np.uint32)
    body = f"{PUT}{GENERIC}{mnemonic} [{address}], {registers('v', count)};{GET}"
    found = run(TARGET, CTAS, THREADS, {**inputs, "v": values}, {"d": (4, np.uint32)}, body, **WIDE)["d"]
    after = found.view(np.uint8).reshape(CTAS, THREADS, 16)
    given = values.view(np.uint8).reshape(WARPS, 32, count, 4)
    return _addressed(rows, pick), _addressed(after, pick), given


@pytest.mark.parametrize(("space", "address"), [("", "%wide"), (".shared", "%to0"), (".shared::cta", "%to0")])
@pytest.mark.parametrize("transposed", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_of_halves(count: int, transposed: str, space: str, address: str) -> None:
    before, after, given = _stored(
        f"stmatrix.sync.aligned.m8n8.x{count}{transposed}{space}.b16", count, address
    )
    np.testing.assert_array_equal(after[:, 8 * count :], before[:, 8 * count :])
    halves = given.view(np.uint16)
    for warp, j, r, c in np.ndindex(WARPS, count, 8, 8):
        row, column = (c, r) if transposed else (r, c)
        element = halves[warp, 4 * row + column // 2, j, column % 2]
        assert after[warp, 8 * j + r].view(np.uint16)[c] == element


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_of_bytes(count: int) -> None:
    """The layout of CuTe, as above."""
    before, after, given = _stored(f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8", count)
    np.testing.assert_array_equal(after[:, 8 * count :], before[:, 8 * count :])
    for warp, lane, j, i in np.ndindex(WARPS, 32, count, 4):
        place = 32 * (lane & 3) + (lane >> 2) + 16 * (i & 1) + 8 * (i >> 1) + 128 * j
        assert after[warp, place // 16, place % 16] == given[warp, lane, j, i]


def test_movmatrix() -> None:
    values = np.random.default_rng(1).integers(0, 1 << 32, (CTAS * THREADS, 1)).astype(np.uint32)
    body = "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;"
    found = run(TARGET, CTAS, THREADS, {"a": values}, {"d": (1, np.uint32)}, body)["d"]
    matrices = values.view(np.uint16).reshape(WARPS, 8, 8)
    np.testing.assert_array_equal(found.view(np.uint16).reshape(WARPS, 8, 8), matrices.swapaxes(1, 2))


# --- mistakes ----------------------------------------------------------------------------------------


def _failing(body: str, wrong: int) -> None:
    to = np.full((64, 1), 32, np.uint32)
    to[36] = wrong
    text = f"ld.param.u64 %wide, [p0];\n{body}"
    run(TARGET, 1, 64, {"to": to}, {"d": (4, np.uint32)}, text, **WIDE)


X1 = "ldmatrix.sync.aligned.m8n8.x1"
PLACE = r" \[CTA \(0, 0, 0\), warp 1, lane 4\]"


@pytest.mark.parametrize(
    ("body", "wrong", "message"),
    [
        (f"{X1}.shared.b16 {{%d0}}, [%to0];", 24, f"address 0x18 is not a multiple of 16{PLACE}"),
        (f"{X1}.shared.b16 {{%d0}}, [%to0];", 8192, f"0x2000 leaves shared memory of 8192 bytes{PLACE}"),
        (
            "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%to0+8184], {%d0, %d1};",
            8,
            "0x2018 is not a multiple of 16",
        ),
        (f"{X1}.b16 {{%d0}}, [%wide];", 0, "the generic address 0x200000000000 is not in shared memory"),
    ],
)
def test_addresses_at_fault(body: str, wrong: int, message: str) -> None:
    with pytest.raises(Fault, match=message):
        _failing(body, wrong)


def test_addresses_of_lanes_that_give_none_do_not_matter() -> None:
    body = f"and.b32 %to0, %own, 8; mul.lo.u32 %to0, %to0, 1001; {X1}.shared.b16 {{%d0}}, [%to0];"
    _failing(body, 0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (f"{X1}.shared.b16 %d0, [%d1];", "expected 1 register in braces, not '%d0'"),
        (f"{X1}.shared.b16 {{%d0, %d1}}, [%d1];", "expected 1 element, not '{%d0, %d1}'"),
        (f"{X1}.shared.b16 {{_}}, [%d1];", "all sinks"),
        (f"{X1}.shared.b16 {{%d0}}, [16];", "is not an address that ldmatrix takes"),
        ("movmatrix.sync.aligned.m8n8.trans.b16 %d0, 5;", "movmatrix takes a register, not '5'"),
        ("stmatrix.sync.aligned.m8n8.x2.b16 [%d0], {5, 6};", "all constants"),
        (
            "ldmatrix.sync.aligned.m8n16.x1.shared.b6x16_p32.b8x16 {%d0}, [%d1];",
            "the formats of .* are b8x16.b6x16_p32, in this order",
        ),
    ],
)
def test_operands_at_fault(body: str, message: str) -> None:
    arrays = {"d": np.zeros((32, 2), np.uint32)}
    module = load_text(kernel(TARGET, {}, arrays, body))
    with pytest.raises(IllegalInstruction, match=message):
        module["k"]
    if not ptxas.missing():
        declarations = ".reg .b32 %d<2>;"
        assert ptxas.verdicts([body], target=TARGET, declarations=declarations) != [None]


def test_a_register_is_written_once() -> None:
    body = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d0, %d0}, [%d1];"
    module = load_text(kernel(TARGET, {}, {"d": np.zeros((32, 2), np.uint32)}, body))
    with pytest.raises(UndefinedBehavior, match="%d0 is written twice"):
        module["k"]
