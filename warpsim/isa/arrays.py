"""Arrays and integers as users hold them: NumPy's, PyTorch's tensors in main memory, lists, scalars.

Knows dtypes that NumPy itself has no names for (ml_dtypes has, and the same names as PyTorch), no formats.
PyTorch is never imported: a caller with a tensor has imported it.
"""

from __future__ import annotations

import sys
from operator import index
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..base.errors import OperandError

_MAIN_MEMORY = (1, 3)  # DLPack: kDLCPU, kDLCUDAHost
_SHORT = 60  # characters of a value that an error message quotes


def as_array(value: Any, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """Return the elements of anything like an array, in their dtype or another; without a copy where
    possible.

    Tensors of PyTorch may be bfloat16 or fp8. Raises OperandError for those that are not in main memory, and
    for what is not an array: lists of unequal lengths, numbers that the dtype does not have.
    """
    if type(value) is np.ndarray and dtype is None:
        return value
    if is_tensor(value):
        value = _from_tensor(value)
    elif hasattr(value, "__dlpack_device__"):
        value = _from_dlpack(value)
    try:
        return np.asarray(value, dtype)
    except (ValueError, TypeError, OverflowError) as error:
        what = "an array" if dtype is None else f"an array of {np.dtype(dtype)}"
        raise OperandError(f"{type(value).__name__} is not {what}: {error}") from None


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor of PyTorch, or something else of it."""
    return type(value).__module__.partition(".")[0] == "torch"


def as_given(array: npt.NDArray[Any], *given: Any) -> Any:
    """Return an array as a tensor of PyTorch over its memory, if one of the values given is a tensor."""
    if not any(map(is_tensor, given)):
        return array
    torch = sys.modules["torch"]
    if not hasattr(ml_dtypes, array.dtype.name):
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(f"i{array.itemsize}")).view(getattr(torch, array.dtype.name))


def _from_dlpack(value: Any) -> Any:
    """Return what offers DLPack, or an array of its memory. Raises OperandError for that of a GPU."""
    kind, number = value.__dlpack_device__()
    if int(kind) not in _MAIN_MEMORY:
        message = f"{type(value).__name__} lies on device {number} of kind {int(kind)} of DLPack"
        raise OperandError(f"{message}: give a copy in main memory")
    if hasattr(value, "__array__"):
        return value
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise OperandError(f"{type(value).__name__} gives no NumPy array: {error}") from None


def _from_tensor(tensor: Any) -> npt.NDArray[Any]:
    if tensor.device.type != "cpu":
        raise OperandError(f"a tensor lies on {tensor.device}: give tensor.cpu()")
    name = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.detach()
    if isinstance(extended := getattr(ml_dtypes, name, None), type):
        bits = getattr(sys.modules["torch"], f"int{8 * tensor.dtype.itemsize}")
        array: npt.NDArray[Any] = tensor.view(bits).numpy()
        return array.view(extended)
    try:
        return np.asarray(tensor.numpy())
    except TypeError:
        raise OperandError(f"elements of {tensor.dtype} have no NumPy dtype: give codes") from None


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is one of real numbers: of NumPy, or of ml_dtypes (kind "V", which is void's,
    too).
    """
    return dtype.kind in "biuf" or (dtype.kind == "V" and dtype.type is not np.void)


def as_words(value: Any, what: str) -> npt.NDArray[np.uint64]:
    """Return integers of 64 bits, such as descriptors; raises OperandError, naming ``what``, for any
    others.
    """
    array = as_array(value)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "i" and (array < 0).any()):
        raise OperandError(
            f"{what} is an integer of 64 bits from 0 on, or an array of them, not {_describe(value)}"
        )
    return array.astype(np.uint64)


def as_integer(value: Any, what: str) -> int:
    """Return an integer of Python, NumPy or PyTorch as Python's; raises OperandError, naming ``what``.

    An integer beyond 64 bits is rejected, too: it would fill messages, and Python does not print long
    integers.
    """
    try:
        number = index(value)
    except TypeError:
        raise OperandError(f"{what} is an integer, not {_describe(value)}") from None
    if not -(1 << 63) <= number < 1 << 64:
        raise OperandError(f"{what} is an integer of {number.bit_length()} bits: at most 64 are legal")
    return number


def _describe(value: Any) -> str:
    if isinstance(value, int):
        return f"an integer of {value.bit_length()} bits" if value >> 63 > 0 else str(value)
    text = repr(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}..."
