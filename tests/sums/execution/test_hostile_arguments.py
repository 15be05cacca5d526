"""Arguments that are not arguments: each is an OperandError, whatever NumPy or Python would have raised."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import warpsim

DENSE = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
SPARSE = warpsim.decode(
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_80"
)
WGMMA = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", target="sm_90a")
B = np.zeros((32, 8), np.float16)
VALUES, INDICES = warpsim.compress(np.zeros((16, 32), np.float16), SPARSE)


def words(*shape: int) -> Any:
    return np.zeros(shape, np.uint32)


@pytest.mark.parametrize("value", [-1, 1 << 64, 1.5, np.nan, "x", [1, [2]], np.int64(-1), np.array([-1])])
def test_descriptors(value: Any) -> None:
    """Python's and NumPy's integers out of range were OverflowErrors; 1.5 was 1."""
    given: dict[str, Any] = {"b_desc": value, "shared": np.zeros(4096, np.uint8), "c": words(128, 4)}
    with pytest.raises(warpsim.OperandError):
        warpsim.execute(WGMMA, a=words(128, 4), **given)
    with pytest.raises(warpsim.OperandError):
        warpsim.execute(WGMMA, **given | {"a_desc": value, "b_desc": 0})


@pytest.mark.parametrize(("value", "shown"), [(-1, "-1"), (1 << 64, "an integer of 65 bits")])
def test_descriptors_are_quoted_unless_they_are_long(value: int, shown: str) -> None:
    with pytest.raises(warpsim.OperandError, match=f"^b_desc is an integer of 64 bits .*, not {shown}$"):
        warpsim.execute(WGMMA, a=words(128, 4), b_desc=value, shared=np.zeros(64, np.uint8), c=words(128, 4))


@pytest.mark.parametrize(
    "a", [(VALUES, INDICES, INDICES), (VALUES,), (), (VALUES, [[1, 2], [1]]), (None, INDICES), (VALUES, None)]
)
@pytest.mark.parametrize("product", [warpsim.matmul, warpsim.gemm])
@pytest.mark.parametrize("form", [DENSE, SPARSE])
def test_sparse_matrices(form: Any, product: Any, a: Any) -> None:
    with pytest.raises(warpsim.OperandError):
        product(form, a, B)


@pytest.mark.parametrize(
    "value", [np.array([0]), np.array([0, 0]), "0", None, 0.0, np.nan, 1 << 20000, -(1 << 70)], ids=range(8)
)
@pytest.mark.parametrize(
    "name", ["selector", "scale_d", "imm_scale_a", "imm_trans_b", "byte_id_a", "threads"]
)
def test_integers(name: str, value: Any) -> None:
    """threads=nan waited for ever; an error that quotes 5,000 digits is one of Python's own."""
    if name == "threads" and value is None:
        return
    form = WGMMA if name.startswith(("imm", "scale")) else SPARSE
    with pytest.raises(warpsim.WarpsimError):
        warpsim.execute(form, **{"a": words(32, 4), "b": words(32, 4), "c": words(32, 4), name: value})


@pytest.mark.parametrize("threads", [np.nan, np.inf, 1.5, 0, -1, "2"])
def test_threads_of_a_product(threads: Any) -> None:
    """Also of one that is too small to be shared out."""
    square = np.zeros((64, 64), np.float16)
    a, b, registers = square[:16, :16], square[:16, :8], words(32, 4)
    for call in (
        lambda: warpsim.gemm(DENSE, square, square, threads=threads),
        lambda: warpsim.matmul(DENSE, a, b, threads=threads),
        lambda: warpsim.execute(DENSE, a=registers, b=words(32, 2), c=registers, threads=threads),
    ):
        with pytest.raises(warpsim.OperandError, match="threads"):
            call()


@pytest.mark.parametrize("value", [None, 5, 1.5, b"mma.sync", [1, 2], {}, words(2, 3)], ids=range(7))
def test_instructions_that_are_none(value: Any) -> None:
    """Arguments in another order, such as compress(form, A), were an AttributeError about 'isascii'."""
    for call in (
        lambda: warpsim.decode(value),
        lambda: warpsim.execute(value),
        lambda: warpsim.matmul(value, B, B),
        lambda: warpsim.gemm(value, B, B),
        lambda: warpsim.compress(DENSE, value),
        lambda: warpsim.pack(value, "a", B),
        lambda: warpsim.fragment(value, "a"),
        lambda: warpsim.diagnose(value, d=words(32, 4)),
        lambda: warpsim.explain(value, 0, 0),
        lambda: warpsim.corner_vectors(value),
        lambda: warpsim.make_vectors(value),
        lambda: warpsim.draw_layout(value),
    ):
        with pytest.raises(warpsim.OperandError, match="an instruction is PTX text or an Instruction, not"):
            call()


@pytest.mark.parametrize("target", [5, ["sm_80"], {}, words(2)], ids=range(4))
def test_targets_that_are_none(target: Any) -> None:
    for call in (lambda: warpsim.Warp(target), lambda: warpsim.decode(DENSE.mnemonic, target=target)):
        with pytest.raises(warpsim.IllegalInstruction, match="unknown target"):
            call()


def test_an_integer_may_be_an_array_of_none_dimension() -> None:
    e = warpsim.pack_metadata(SPARSE, INDICES, np.array(0))
    d = warpsim.execute(SPARSE, a=words(32, 4), b=words(32, 4), c=words(32, 4), e=e, selector=np.array(0))
    assert not d.any()


@pytest.mark.parametrize("dtype", ["V2", "U1", "S2", "O", "M8[s]", "c8", "f2,f2"])
@pytest.mark.parametrize("shape", [(16, 16), (16,), (0, 16), (16, 0), (0,), (), (0, 0, 0)])
def test_matrices(shape: tuple[int, ...], dtype: str) -> None:
    x = np.zeros(shape, dtype)
    for call in (
        lambda: warpsim.matmul(DENSE, x, x),
        lambda: warpsim.pack(DENSE, "a", x),
        lambda: warpsim.unpack(DENSE, "a", x),
        lambda: warpsim.compress(x, SPARSE),
        lambda: warpsim.prune(x, SPARSE),
        lambda: warpsim.decompress(x, x, SPARSE),
        lambda: warpsim.execute(DENSE, a=x, b=x, c=x),
        lambda: warpsim.gemm(SPARSE, x, x),
        lambda: warpsim.pack_metadata(SPARSE, x),
        lambda: warpsim.unpack_metadata(SPARSE, x),
    ):
        with pytest.raises(warpsim.OperandError):
            call()


@pytest.mark.parametrize(("machine", "lanes"), [(warpsim.Warp, 32), (warpsim.Warpgroup, 128)])
def test_a_copy_of_a_machine_is_another_machine(machine: Any, lanes: int) -> None:
    """copy.copy shared the registers, and what one ran changed the other."""
    one = machine(target="sm_90a")
    one["%a"] = np.arange(lanes, dtype=np.uint32)
    two = copy.copy(one)
    two["%a"] = 0
    two.run("mov.b32 %b, 7;")
    two.shared.data[0] = 1
    assert one["%a"].tolist() == list(range(lanes))
    assert "%b" not in one
    assert one.shared.data[0] == 0
