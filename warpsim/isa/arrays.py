"""Arrays and integers as users hold them: NumPy's, PyTorch's tensors in main memory, lists, scalars.

Knows dtypes that NumPy itself has no names for (ml_dtypes has, and the same ones as PyTorch), no formats.
PyTorch is never imported: who has a tensor has imported it.
"""

from __future__ import annotations

import sys
from operator import index
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..errors import OperandError


def as_array(value: Any, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """The elements of anything like an array, in their dtype or another; without a copy where possible.

    Tensors of PyTorch may be bfloat16 or fp8. Raises OperandError for those that are not in main memory.
    """
    if type(value) is np.ndarray and dtype is None:
        return value
    if type(value).__module__.partition(".")[0] == "torch":
        value = _of_tensor(value)
    return np.asarray(value, dtype)


def _of_tensor(tensor: Any) -> npt.NDArray[Any]:
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


def as_integer(value: Any, what: str) -> int:
    """An integer of Python, NumPy or PyTorch as Python's; raises OperandError, naming ``what``."""
    try:
        return index(value)
    except TypeError:
        raise OperandError(f"{what} is an integer, not {value!r}") from None
