"""Operands as users hold them: registers without their last axis, integers and tensors of other libraries."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from warpsim.base.errors import OperandError
from warpsim.isa.arrays import as_array, as_given, as_integer
from warpsim.sums.arithmetic import panels
from warpsim.sums.execution import fused_registers, pipeline

SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
F8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"
TARGET = "sm_90a"
Array = npt.NDArray[Any]


def operands(*lead: int) -> dict[str, Array]:
    form = warpsim.decode(SPARSE, target=TARGET)
    random = np.random.default_rng(0)
    given = {
        name: random.integers(0, 1 << 32, (*lead, 32, form.registers[name]), np.uint32) for name in "abc"
    }
    fields = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], np.uint32)
    chosen = fields[random.integers(0, 6, (*lead, 32, 8))]
    e: Array = np.bitwise_or.reduce(chosen << np.arange(0, 32, 4, dtype=np.uint32), axis=-1)
    return given | {"e": e[..., None]}


# --- registers -----------------------------------------------------------------------------------------


@pytest.fixture
def only_kernels(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Nothing but the compiled way is open; the list counts the calls of its kernel's runner."""
    if panels.interpreted():
        pytest.skip("nothing is compiled")
    runs: list[int] = []
    run = fused_registers.run

    def counted(*arguments: Any) -> Any:
        runs.append(1)
        return run(*arguments)

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("the slow way was taken")

    monkeypatch.setattr(fused_registers, "run", counted)
    monkeypatch.setattr(pipeline, "_codes", refuse)
    return runs


@pytest.mark.parametrize("lead", [(), (5,), (2, 3), (32,), (0,)])
def test_metadata_without_its_last_axis_goes_the_same_way(
    lead: tuple[int, ...], only_kernels: list[int]
) -> None:
    given = operands(*lead)
    expected = warpsim.execute(SPARSE, target=TARGET, **given)
    flat = warpsim.execute(SPARSE, target=TARGET, **given | {"e": given["e"][..., 0]})
    assert flat.tobytes() == expected.tobytes()
    assert flat.shape == expected.shape
    assert len(only_kernels) == 2


def test_one_metadata_register_serves_a_batch(only_kernels: list[int]) -> None:
    given, e = operands(7), operands()["e"]
    expected = warpsim.execute(SPARSE, target=TARGET, **given | {"e": np.tile(e, (7, 1, 1))})
    for alone in (e, e[..., 0]):
        d = warpsim.execute(SPARSE, target=TARGET, **given | {"e": alone})
        assert d.tobytes() == expected.tobytes()
    assert len(only_kernels) == 3


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
def test_registers_of_other_integers_go_the_same_way(dtype: type[Any], only_kernels: list[int]) -> None:
    given = operands(3)
    expected = warpsim.execute(SPARSE, target=TARGET, **given)
    d = warpsim.execute(SPARSE, target=TARGET, **{name: x.astype(dtype) for name, x in given.items()})
    assert d.tobytes() == expected.tobytes()
    assert len(only_kernels) == 2


# --- integers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zero", [np.array(0), np.uint8(0), np.int64(0), False])
def test_integers_of_numpy(zero: Any) -> None:
    given = operands()
    expected = warpsim.execute(SPARSE, target=TARGET, **given)
    d = warpsim.execute(SPARSE, target=TARGET, **given, selector=zero, imm_trans_a=zero, byte_id_a=zero)
    assert d.tobytes() == expected.tobytes()
    indices = warpsim.unpack_metadata(SPARSE, given["e"], selector=zero)
    packed = warpsim.pack_metadata(SPARSE, indices, selector=zero)
    assert np.array_equal(warpsim.unpack_metadata(SPARSE, packed), indices)
    assert np.array_equal(warpsim.metadata_map(SPARSE, zero), warpsim.metadata_map(SPARSE))


@pytest.mark.parametrize("value", [0.0, np.array([0, 1]), None, "0"])
def test_what_is_no_integer_is_refused(value: Any) -> None:
    with pytest.raises(OperandError, match=r"^selector is an integer, not "):
        warpsim.execute(SPARSE, target=TARGET, **operands(), selector=value)
    with pytest.raises(OperandError, match=r"^x is an integer, not "):
        as_integer(value, "x")


# --- tensors -------------------------------------------------------------------------------------------


class Tensor:
    """What is asked of a tensor of PyTorch, over an array that holds its bits."""

    def __init__(self, array: Array, name: str, device: str = "cpu", *, bits: bool = False) -> None:
        self.array, self.name, self.bits = array, name, bits
        self.dtype = type("dtype", (), {"__str__": lambda _: f"torch.{name}", "itemsize": array.itemsize})()
        self.device = SimpleNamespace(type=device)

    def detach(self) -> Tensor:
        return Tensor(self.array, self.name, bits=True)

    def view(self, dtype: str) -> Tensor:
        return Tensor(self.array.view(dtype), dtype, bits=True)

    def numpy(self) -> Array:
        if not self.bits:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.array.dtype.name != self.name:
            raise TypeError(f"Got unsupported ScalarType {self.name}")
        return self.array


Tensor.__module__ = "torch"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("torch")
    for bits in (8, 16, 32, 64):
        setattr(module, f"int{bits}", f"int{bits}")
    monkeypatch.setitem(sys.modules, "torch", module)


NAMES = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float16", "float32", "int32", "int8")


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_keeps_its_dtype_and_bits(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    bits = np.arange(24, dtype=f"u{dtype.itemsize}").reshape(2, 12)[:, ::2]
    array = as_array(Tensor(bits.view(dtype), name))
    assert array.dtype == dtype
    assert np.array_equal(array.view(bits.dtype), bits)
    assert np.shares_memory(array, bits)


@pytest.mark.usefixtures("fake")
def test_tensors_elsewhere_and_of_unknown_dtypes_are_refused() -> None:
    bits = np.zeros(3, np.uint8)
    with pytest.raises(OperandError, match=r"^a tensor lies on .*: give tensor.cpu\(\)$"):
        as_array(Tensor(bits, "uint8", "cuda"))
    with pytest.raises(OperandError, match=r"^elements of torch.quint8 have no NumPy dtype: give codes$"):
        as_array(Tensor(bits, "quint8"))


def test_tensors_of_pytorch_go_wherever_arrays_go() -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(0)

    def both(shape: tuple[int, ...], name: str) -> tuple[Any, Array]:
        tensor = torch.from_numpy(random.standard_normal(shape).astype(np.float32)).to(getattr(torch, name))
        bits = tensor.view(torch.uint8 if tensor.itemsize == 1 else torch.int16).numpy()
        return tensor, bits.view(getattr(ml_dtypes, name, name))

    (a, A), (b, B) = both((16, 32), "float8_e4m3fn"), both((32, 8), "float8_e5m2")
    form = warpsim.decode(F8, target="sm_89")
    for function in (warpsim.matmul, warpsim.gemm):
        assert as_array(function(form, a, b)).tobytes() == function(form, A, B).tobytes()
    assert np.array_equal(warpsim.pack(form, "a", a), warpsim.pack(form, "a", A))
    given = operands()
    tensors = {name: torch.from_numpy(x.view(np.int32)) for name, x in given.items()}
    d = warpsim.execute(SPARSE, target=TARGET, **tensors, selector=torch.tensor(0))
    assert d.tobytes() == warpsim.execute(SPARSE, target=TARGET, **given).tobytes()
    sparse = SPARSE.replace("f32.f16.f16", "f32.bf16.bf16")
    w, W = both((16, 32), "bfloat16")
    pruned = warpsim.prune(w, sparse)
    assert np.array_equal(pruned.view(np.uint16), warpsim.prune(W, sparse).view(np.uint16))
    again = torch.from_numpy(pruned.view(np.int16)).view(torch.bfloat16).requires_grad_()
    for one, other in zip(warpsim.compress(again, sparse), warpsim.compress(pruned, sparse), strict=True):
        assert one.tobytes() == other.tobytes()


class Exchanged:
    """Offers DLPack, and nothing else; of a device of some kind."""

    def __init__(self, array: Array, kind: int = 1, fails: bool = False) -> None:
        self.array, self.kind, self.fails = array, kind, fails

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **options: Any) -> Any:
        if self.fails:
            raise BufferError("it is lent out")
        return self.array.__dlpack__(**options)


def test_arrays_of_dlpack_keep_their_memory() -> None:
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    array = as_array(Exchanged(given))
    assert array.dtype == np.float32
    assert array.shape == (2, 3)
    assert np.shares_memory(array, given)
    assert as_array(Exchanged(given), np.float64).dtype == np.float64


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            Exchanged(np.zeros(1), 2),
            "Exchanged lies on device 0 of kind 2 of DLPack: give a copy in main memory",
        ),
        (Exchanged(np.zeros(1), fails=True), "Exchanged gives no NumPy array: it is lent out"),
    ],
)
def test_arrays_of_dlpack_that_are_out_of_reach(given: Exchanged, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        as_array(given)
    assert caught.value.message == message


@pytest.mark.parametrize("which", ["A", "B", "C"])
@pytest.mark.parametrize("name", ["float32", "float16"])
def test_products_of_tensors_are_tensors(which: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("torch")
    module.from_numpy = lambda array: Tensor(array, array.dtype.name)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)
    short = {"float32": "f32", "float16": "f16"}[name]
    form = warpsim.decode(f"mma.sync.aligned.m16n8k16.row.col.{short}.f16.f16.{short}", target="sm_80")
    random = np.random.default_rng(0)
    shapes = {"A": ((16, 16), np.float16), "B": ((16, 8), np.float16), "C": ((16, 8), np.dtype(name))}
    given = {key: random.standard_normal(shape).astype(dtype) for key, (shape, dtype) in shapes.items()}
    wanted = warpsim.gemm(form, **given)
    assert type(wanted) is np.ndarray
    found: Any = warpsim.gemm(
        form, **given | {which: Tensor(given[which], given[which].dtype.name, bits=True)}
    )
    assert type(found) is Tensor
    assert found.name == name
    assert found.array.tobytes() == wanted.tobytes()


@pytest.mark.usefixtures("fake")
def test_tensors_of_dtypes_that_numpy_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {
        "from_numpy": lambda array: Tensor(array, array.dtype.name),
        "bfloat16": ml_dtypes.bfloat16,
    }
    for name, value in made.items():
        monkeypatch.setattr(sys.modules["torch"], name, value, raising=False)
    array = np.arange(4, dtype=np.uint16).view(ml_dtypes.bfloat16)
    found = as_given(array, 3, Tensor(array, "bfloat16"))
    assert found.array.view(np.uint16).tolist() == [0, 1, 2, 3]
    assert as_given(array, 3, array) is array
