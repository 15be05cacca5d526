"""How arguments become a signature of Triton, and the parameters of Numba."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpsim
from warpsim.programs.compilers.numba_kernels import numba_arguments
from warpsim.programs.compilers.signatures import signature_of
from warpsim.programs.compilers.triton_kernels import TritonKernel, _function, _scratch

_NONE = object()


@dataclass
class Parameter:
    """What Triton says of a parameter."""

    name: str
    annotation_type: str = ""
    is_constexpr: bool = False
    is_const: bool = False
    do_not_specialize: bool = False
    do_not_specialize_on_alignment: bool = False
    default: Any = _NONE

    @property
    def has_default(self) -> bool:
        return self.default is not _NONE


X = np.zeros(4, np.float16)
DIVISIBLE = [["tt.divisibility", 16]]


@pytest.mark.parametrize(
    ("value", "kind", "divisible"),
    [
        (X, "*fp16", True),
        (np.zeros(1, ml_dtypes.bfloat16), "*bf16", True),
        (np.zeros(1, ml_dtypes.float8_e4m3fn), "*fp8e4nv", True),
        (np.zeros(1, np.bool_), "*i1", True),
        (np.zeros(1, np.uint8), "*u8", True),
        (3, "i32", False),
        (48, "i32", True),
        (np.int64(7), "i32", False),
        (-(1 << 31), "i32", True),
        ((1 << 31) - 1, "i32", False),
        (-(1 << 31) - 1, "i64", False),
        (1 << 31, "i64", True),
        (1 << 63, "u64", True),
        (0.5, "fp32", False),
        (np.float64(0.5), "fp32", False),
        (True, "u1", False),
    ],
)
def test_the_type_of_an_argument(value: Any, kind: str, divisible: bool) -> None:
    found = signature_of([Parameter("x")], [value], {})
    assert found.types == {"x": kind}
    assert found.attributes == ({(0,): DIVISIBLE} if divisible else {})
    assert len(found.arguments) == 1
    assert found.constants == {}


@pytest.mark.parametrize("value", [1, np.int32(1), None])
def test_values_that_become_constants(value: Any) -> None:
    found = signature_of([Parameter("x"), Parameter("y")], [value, X], {})
    assert (found.types, found.constants) == ({"x": "constexpr", "y": "*fp16"}, {"x": value})
    assert len(found.arguments) == 1
    assert found.attributes == {(1,): DIVISIBLE}


def test_nothing_is_compiled_in_where_nobody_wants_it() -> None:
    found = signature_of([Parameter("x"), Parameter("y"), Parameter("z")], [1, 16, X], {}, specialise=False)
    assert found.types == {"x": "i32", "y": "i32", "z": "*fp16"}
    assert (found.attributes, found.constants) == ({}, {})
    kept = signature_of([Parameter("x", do_not_specialize=True)], [1], {})
    assert (kept.types, kept.attributes) == ({"x": "i32"}, {})
    unaligned = signature_of([Parameter("x", do_not_specialize_on_alignment=True)], [X], {})
    assert (unaligned.types, unaligned.attributes) == ({"x": "*fp16"}, {})


def test_annotations_and_defaults() -> None:
    parameters = [
        Parameter("a", annotation_type="fp16"),
        Parameter("b", is_const=True),
        Parameter("c", default=5),
        Parameter("D", is_constexpr=True, default=8),
        Parameter("E", is_constexpr=True),
    ]
    found = signature_of(parameters, [1.5, X], {"E": "relu"})
    assert found.types == {"a": "fp16", "b": "*kfp16", "c": "i32", "D": "constexpr", "E": "constexpr"}
    assert found.constants == {"D": 8, "E": "relu"}
    assert found.arguments[0].dtype == np.float16
    assert found.arguments[2].dtype == np.int32


def test_places_in_buffers_are_as_aligned_as_they_are() -> None:
    buffer = warpsim.Device().array(np.zeros(64, np.float32))
    found = signature_of([Parameter(name) for name in "xyz"], [buffer, buffer.at(4), buffer.at(32)], {})
    assert set(found.types.values()) == {"*fp32"}
    assert set(found.attributes) == {(0,), (2,)}


@pytest.mark.parametrize(
    ("args", "constants", "message"),
    [
        ([], {"B": 1}, "0 arguments, but the kernel takes x"),
        ([X, 2], {"B": 1}, "2 arguments, but the kernel takes x"),
        ([X], {}, "the tl.constexpr parameter B has no value: give it in constants"),
        ([X], {"B": 1, "C": 2}, "the kernel has no tl.constexpr parameter C: it has B"),
        ([np.zeros(1, np.complex64)], {"B": 1}, "argument x: Triton has no type for ndarray complex64"),
        (["text"], {"B": 1}, "argument x: Triton has no type for str "),
        ([1 << 64], {"B": 1}, "argument x: 18446744073709551616 does not fit in 64 bits"),
    ],
)
def test_what_is_wrong_with_a_call(args: list[Any], constants: dict[str, Any], message: str) -> None:
    with pytest.raises(warpsim.OperandError) as raised:
        signature_of([Parameter("x"), Parameter("B", is_constexpr=True)], args, constants)
    assert raised.value.message == message


def test_what_is_no_function_of_triton() -> None:
    with pytest.raises(warpsim.OperandError, match=r"is not a function under @triton\.jit"):
        _function(len)

    class Autotuner:
        fn, configs, params, arg_names = len, (), (), ()

    with pytest.raises(warpsim.OperandError, match="Autotuner chooses constants by measuring"):
        _function(Autotuner())


def test_scratch_memory_stands_behind_the_arguments() -> None:
    kernel = TritonKernel(
        name="k",
        ptx="",
        target="sm_80",
        block=128,
        shared_bytes=0,
        scratch=(96, 0),
        constants={},
        arguments=[X],
    )
    scratch, profile = _scratch(kernel, 3, 4)
    assert scratch.shape == (384,)
    assert profile is None
    assert _scratch(kernel, 1, 4) == []
    with pytest.raises(warpsim.NotModelled, match="k has 3 parameters more than the function"):
        _scratch(kernel, 4, 1)


def test_parameters_of_numba() -> None:
    matrix = np.zeros((3, 5), np.float32)
    found = numba_arguments([matrix, np.float32(2), (7, 8.5), True, 1 + 2j])
    assert found[4] is matrix
    assert [*found[:4], *found[5:]] == [None, None, 15, 4, 3, 5, 20, 4, 2, 7, 8.5, 1, 1, 2]
    with pytest.raises(warpsim.WarpsimError):
        numba_arguments(["text"])
