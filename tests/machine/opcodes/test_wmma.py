"""wmma: load, multiply, store gives the product of the matrices in memory, by the arithmetic of mma."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from tests.helpers import kernel_cases, ptxas
from tests.helpers.effect_statements import accepted, mutants, refused, statements
from tests.helpers.families import usual
from tests.helpers.fragment_cases import FRAGMENTS
from tests.helpers.kernel_texts import header, registers
from tests.helpers.own_operands import of_wmma
from warpsim.machine.opcodes.matrix import wmma
from warpsim.machine.opcodes.matrix.wmma_fragments import SHAPES, accumulator_layout
from warpsim.programs.launch.launching import load_text

Array = npt.NDArray[Any]
M16 = "mma.sync.aligned.m16n8k16.row.col"
# shape, types of d, a, c, mma and its target, registers of d, a, b, c
CASES = (
    ("m16n16k16", "f32", "f16", "f32", f"{M16}.f32.f16.f16.f32", "sm_80", (8, 8, 8, 8)),
    (
        "m16n16k16",
        "f16",
        "f16",
        "f16",
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
        "sm_75",
        (4, 8, 8, 4),
    ),
    ("m8n32k16", "f32", "f16", "f32", f"{M16}.f32.f16.f16.f32", "sm_90a", (8, 8, 8, 8)),
    ("m32n8k16", "f16", "f16", "f16", f"{M16}.f16.f16.f16.f16", "sm_80", (4, 8, 8, 4)),
    ("m32n8k16", "f32", "bf16", "f32", f"{M16}.f32.bf16.bf16.f32", "sm_80", (8, 8, 2, 8)),
    (
        "m16n16k8",
        "f32",
        "tf32",
        "f32",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        "sm_80",
        (8, 4, 4, 8),
    ),
    ("m8n8k4", "f64", "f64", "f64", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_80", (2, 1, 1, 2)),
    ("m8n32k16", "s32", "s8", "s32", f"{M16}.s32.s8.s8.s32", "sm_80", (8, 1, 4, 8)),
    (
        "m16n16k16",
        "s32",
        "u8",
        "s32",
        "mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32",
        "sm_75",
        (8, 2, 2, 8),
    ),
)
BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "s8": 1, "u8": 1, "s32": 4}
STRIDE = 48  # elements, of every matrix


def _sizes(shape: str) -> tuple[int, int, int]:
    found: tuple[int, int, int] = SHAPES[shape]
    return found


def _kernel(case: tuple[Any, ...], a_layout: str, b_layout: str, d_layout: str) -> str:
    shape, d, a, c, _, target, counts = case
    width = "b64" if a == "f64" else "b32"
    names = dict(zip("dabc", counts, strict=True))
    declared = "".join(f".reg .{width} %{name}<{count}>;\n" for name, count in names.items())
    loads = "".join(
        f"ld.param.u64 %p, [p{place}]; mul.wide.u32 %o, %n, {2048 * BYTES[kind]}; add.u64 %p, %p, %o;\n"
        f"wmma.load.{role}.sync.aligned.{layout}.{shape}.global.{kind} "
        f"{registers(role, names[role])}, [%p], {STRIDE};\n"
        for place, (role, layout, kind) in enumerate(
            (("a", a_layout, a), ("b", b_layout, a), ("c", d_layout, c))
        )
    )
    types = f"{d}.{c}" if a == "f16" else f"{d}.{a}.{a}.{c}"
    product = f"wmma.mma.sync.aligned.{a_layout}.{b_layout}.{shape}.{types} " + ", ".join(
        registers(role, names[role]) for role in "dabc"
    )
    store = (
        f"ld.param.u64 %p, [p3]; mul.wide.u32 %o, %n, {2048 * BYTES[d]}; add.u64 %p, %p, %o;\n"
        f"wmma.store.d.sync.aligned.{d_layout}.{shape}.global.{d} "
        f"[%p], {registers('d', names['d'])}, {STRIDE};"
    )
    parameters = ", ".join(f".param .u64 p{place}" for place in range(4))
    place = "mov.u32 %t, %tid.x; shr.b32 %t, %t, 5; mov.u32 %n, %ctaid.x; mad.lo.u32 %n, %n, 2, %t;"
    return (
        f"{header(target)}.visible .entry k({parameters}) {{\n{declared}"
        f".reg .b64 %p, %o; .reg .b32 %t, %n;\n"
        f"{place}\n{loads}{product};\n{store}\nret;\n}}\n"
    )


def _matrices(kind: str, seed: int) -> Array:
    """(warps, 2048) elements, as bits."""
    random = np.random.default_rng(seed)
    if kind in ("s8", "u8", "s32"):
        return random.integers(0, 256, (4, 2048)).astype(f"u{BYTES[kind]}")
    values = random.standard_normal((4, 2048))
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    bits = BYTES[kind]
    found = values.astype(f"f{bits}").view(f"u{bits}")
    return found & np.uint32(0xFFFFE000) if kind == "tf32" else found


def _matrix(memory: Array, rows: int, columns: int, layout: str) -> Array:
    """(warps, rows, columns) of matrices with a stride."""
    grid = [(r, c) if layout == "row" else (c, r) for r in range(rows) for c in range(columns)]
    places = [line * STRIDE + place for line, place in grid]
    return np.ascontiguousarray(memory[:, places]).reshape(-1, rows, columns)


def _expected(case: tuple[Any, ...], a: Array, b: Array, c: Array) -> Array:
    """Bits of D, one tile of mma after the other."""
    form = warpsim.decode(case[4], target=case[5])
    m, n, k = form.shape.m, form.shape.n, form.shape.k
    rows = a.shape[1]
    missing = -rows % m
    a, d = (np.pad(one, ((0, 0), (0, missing), (0, 0))) for one in (a, c))
    for i, j, step in np.ndindex(d.shape[1] // m, d.shape[2] // n, a.shape[2] // k):
        tile = np.s_[:, m * i : m * i + m, n * j : n * j + n]
        left = a[:, m * i : m * i + m, k * step : k * step + k]
        right = b[:, k * step : k * step + k, n * j : n * j + n]
        d[tile] = warpsim.matmul(form, left, right, d[tile]).view(d.dtype)
    return d[:, :rows]


@pytest.mark.parametrize("layouts", [("row", "col", "row"), ("col", "row", "col")])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[2]}")
def test_products(case: tuple[Any, ...], layouts: tuple[str, str, str]) -> None:
    m, n, k = _sizes(case[0])
    a, b, c = _matrices(case[2], 1), _matrices(case[2], 2), _matrices(case[3], 3)
    d = np.zeros_like(c)
    load_text(_kernel(case, *layouts))["k"](2, 64, [a, b, c, d])
    found = _matrix(d, m, n, layouts[2])
    sources = _matrix(a, m, k, layouts[0]), _matrix(b, k, n, layouts[1]), _matrix(c, m, n, layouts[2])
    np.testing.assert_array_equal(found, _expected(case, *sources))
    assert np.count_nonzero(d) <= 4 * m * n


@pytest.mark.parametrize(
    ("shape", "types", "mma", "operation"),
    [
        ("m8n8k32", "s32.s4.s4.s32", "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32", ""),
        (
            "m8n8k128",
            "s32.b1.b1.s32",
            "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc",
            ".and.popc",
        ),
    ],
)
def test_products_of_parts_of_bytes(shape: str, types: str, mma: str, operation: str) -> None:
    """Lines of 16 bytes without a stride: the words of A, B and C are those of mma, lane by lane."""
    form = warpsim.decode(mma, target="sm_80")
    random = np.random.default_rng(5)
    a, b = (random.integers(0, 1 << 32, (8, 4)).astype(np.uint32) for _ in range(2))
    c = random.integers(0, 99, (8, 8)).astype(np.uint32)
    d = np.zeros((8, 8), np.uint32)
    kind = types.split(".")[1]
    body = "".join(
        f"ld.param.u64 %p, [p{place}];\n"
        f"wmma.load.{role}.sync.aligned.{layout}.{shape}.{one} {{{names}}}, [%p];\n"
        for place, (role, layout, one, names) in enumerate(
            (("a", "row", kind, "%r0"), ("b", "col", kind, "%r1"), ("c", "row", "s32", "%r2, %r3"))
        )
    )
    mnemonic = f"wmma.mma{operation}.sync.aligned.row.col.{shape}.{types}"
    body += f"{mnemonic} {{%r4, %r5}}, {{%r0}}, {{%r1}}, {{%r2, %r3}};\n"
    body += f"ld.param.u64 %p, [p3];\nwmma.store.d.sync.aligned.row.{shape}.s32 [%p], {{%r4, %r5}};\n"
    text = f"{header('sm_80')}.visible .entry k(" + ", ".join(f".param .u64 p{n}" for n in range(4))
    load_text(text + f") {{ .reg .b32 %r<6>; .reg .b64 %p;\n{body}ret; }}")["k"](1, 32, [a, b, c, d])
    # Lane 4g + q of mma holds word q of row g of A, and of column g of B.
    words = {"a": a.reshape(32, 1), "b": b.reshape(32, 1), "c": warpsim.pack(form, "c", c.view(np.int32))}
    expected = warpsim.unpack(form, "d", warpsim.execute(form, **words))
    np.testing.assert_array_equal(d.view(np.int32), expected)


# --- where accumulators lie -----------------------------------------------------------------------------


def _place(shape: str, lane: int, value: int) -> tuple[int, int]:
    """Row and column to which wmma.store.d of sm_80 stores a value of a lane, from its SASS."""
    quad, group = lane % 4, lane // 4
    if shape.startswith("m8n32"):  # STG.E at 2 quad, group; then + 1 row, + 8 columns ...
        return 2 * quad + value % 2, group + 8 * (value // 2)
    if shape.startswith("m32n8"):  # STG.E.64 at group, 2 quad; then + 8 rows, + 16, + 24
        return group + 8 * (value // 2), 2 * quad + value % 2
    return group + 8 * (value // 2 % 2), 2 * quad + value % 2 + 8 * (value // 4)


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("shape", ["m16n16k16", "m32n8k16", "m8n32k16", "m16n16k8", "m8n8k4", "m8n8k32"])
def test_accumulators_lie_as_sass_stores_them(shape: str, target: str) -> None:
    m, n, _ = _sizes(shape)
    layout = accumulator_layout(shape, "f32", target)
    assert layout is not None
    for lane, value in np.ndindex(32, m * n // 32):
        place = layout.row_index[lane, value], layout.column_index[lane, value]
        assert place == _place(shape, lane, value)


def test_integers_of_m8n32_lie_row_by_row_on_sm_75() -> None:
    """Its mma is m8n8k16: STG.E.64 at group, 2 quad; then + 8 columns."""
    old, new = (accumulator_layout("m8n32k16", "s32", target) for target in ("sm_75", "sm_80"))
    assert old is not None
    assert new == accumulator_layout("m8n32k16", "f32", "sm_75")
    for lane, value in np.ndindex(32, 8):
        place = old.row_index[lane, value], old.column_index[lane, value]
        assert place == (lane // 4, 2 * (lane % 4) + value % 2 + 8 * (value // 2))


def test_no_layout_is_guessed_for_sm_70() -> None:
    assert accumulator_layout("m16n16k16", "f32", "sm_70") is None


@pytest.mark.parametrize("name", FRAGMENTS)
def test_f32_goes_to_f16_element_by_element(name: str) -> None:
    """On sm_75, too, where mma sums 8 products at a time; the committed text is of nvcc for sm_80."""
    case = FRAGMENTS[name](np.random.default_rng(7))
    a, b, c, d, h = (np.array(one) for one in case.arguments)
    text = (kernel_cases.FOLDER / case.file).read_text().replace(".target sm_80", ".target sm_75")
    report = load_text(text)[case.entry](case.grid, case.block, [a, b, c, d, h])
    np.testing.assert_array_equal(h.view(np.uint16), d.astype(np.float16).view(np.uint16))
    np.testing.assert_allclose(d, case.expected[3], rtol=1e-4, atol=1e-4)  # each chip has its own sums
    labels = {
        kind.mnemonic.split(".")[1]: kind.fidelity
        for kind in report.fidelity.classes
        if "wmma" in kind.mnemonic
    }
    assert labels == {"load": "inferred", "mma": "inferred", "store": "inferred"}


# --- spelling ----------------------------------------------------------------------------------------


# ptxas takes sums of f32 with shapes of integers, though no product reads or makes them.
LENIENCE = re.compile(r"(load\.c|store\.d).*(m8n8k32|m8n8k128).*\.f32")


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
def test_every_form_assembles() -> None:
    assert refused(statements(wmma.ROWS, of_wmma), "sm_90a") == []


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
def test_no_mutant_assembles() -> None:
    found = accepted(mutants(wmma.ROWS, "wmma", of_wmma, usual(1, 3), 5), "sm_90a")
    assert [text for text in found if not LENIENCE.search(text)] == []
