"""Registers and arrays: the dtype of a register's type, the names that "%r<4>" stands for, bits of values.

Knows types, names and arrays of Python; does not know which registers there are.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import NotModelled, OperandError
from ...ptx.operand_types import REGISTER_BITS
from ...ptx.source import NAME

Lanes = npt.NDArray[Any]  # one value a lane: bool for .pred, otherwise unsigned

_NAME = re.compile(rf"{NAME}(?:\.[xyz])?", re.ASCII)
_NUMBERED = re.compile(r"(?P<stem>.*)<(?P<count>\d{1,9})>")
_MOST_NUMBERED = 4096  # registers that one name<n> may stand for


def type_bits(name: str) -> int:
    """Return bits of one lane of a register of a PTX type; 1 for a predicate. Raises NotModelled beyond
    64.
    """
    bits = REGISTER_BITS.get(name, 0)
    if not 1 <= bits <= 64:
        raise NotModelled(f"registers of type .{name} are not modelled")
    return bits


def bits_dtype(bits: int) -> np.dtype[Any]:
    """Return the dtype that holds one lane of that many bits: bool, uint8, uint16, uint32 or uint64."""
    return np.dtype(np.bool_) if bits == 1 else np.dtype(f"u{bits // 8}")


def dtype_bits(dtype: np.dtype[Any]) -> int:
    """Return the inverse of bits_dtype."""
    return 1 if dtype == np.bool_ else 8 * dtype.itemsize


def register_names(name: str) -> list[str]:
    """Return the registers that ``name`` stands for: itself, or ``%r0`` to ``%r3`` for ``%r<4>``.

    Raises OperandError where that is not the name of a register, or of at most 4096 of them.
    """
    match = _NUMBERED.fullmatch(name)
    count = int(match["count"]) if match else 1
    if not _NAME.fullmatch(match["stem"] if match else name) or not 1 <= count <= _MOST_NUMBERED:
        raise OperandError(f"{name!r}: expected a register, as '%r1', or up to {_MOST_NUMBERED}, as '%r<4>'")
    return [f"{match['stem']}{i}" for i in range(count)] if match else [name]


def split(name: str, array: npt.NDArray[Any], lanes: int) -> list[npt.NDArray[Any]]:
    """Return the part of an array, a scalar or one value a lane, for each register of ``name``.

    Raises OperandError where the array is neither a scalar nor ``(lanes, registers)``.
    """
    count = len(register_names(name))
    if array.shape == ():
        return [array] * count
    if count == 1 and array.shape == (lanes,):
        return [array]
    if array.shape != (lanes, count):
        wanted = f"{lanes} values, each of a lane" if count == 1 else f"an array ({lanes}, {count})"
        raise OperandError(f"{name} takes a scalar or {wanted}, not an array {array.shape}")
    return list(array.T)


def converted(name: str, array: npt.NDArray[Any], dtype: np.dtype[Any]) -> Lanes:
    """Return the bits of an array in the dtype of the register ``name``; raises OperandError."""
    bits = dtype_bits(dtype)
    if _is_float(array):
        if dtype_bits(array.dtype) != bits:
            has = bits_text(bits)
            raise OperandError(f"{name} holds {has}, but the values are {array.dtype}: convert them first")
        array = np.ascontiguousarray(array).view(dtype).reshape(array.shape)
    if array.dtype.kind not in "iub":
        raise OperandError(f"{name} takes integers (bits), floats or bools, not {array.dtype}")
    low, high = int(array.min()), int(array.max())
    lowest = 0 if bits == 1 else -(1 << (bits - 1))
    if low < lowest or high >= 1 << bits:
        raise OperandError(f"{name} holds {bits_text(bits)}; {low if low < lowest else high} does not fit")
    return array.astype(dtype)


def natural_dtype(array: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return the dtype of a register that nothing declares: as wide as its value; Python integers have 32
    bits.
    """
    if array.dtype == np.int64:
        return np.dtype(np.uint32)
    numeric = array.dtype.kind in "iu" or _is_float(array)
    return np.dtype(f"u{array.dtype.itemsize}") if numeric else np.dtype(np.bool_)


def _is_float(array: npt.NDArray[Any]) -> bool:
    """Return whether the dtype is a float as wide as some register; those of ml_dtypes pass for void
    ("V").
    """
    extension = array.dtype.kind == "V" and array.dtype.names is None
    return (extension or array.dtype.kind == "f") and array.dtype.itemsize in (1, 2, 4, 8)


def bits_type(dtype: np.dtype[Any]) -> str:
    """Return the untyped PTX type of a dtype: "b32"."""
    bits = dtype_bits(dtype)
    return "pred" if bits == 1 else f"b{bits}"


def bits_text(bits: int) -> str:
    """Return "1 bit", "32 bits"."""
    return f"{bits} bit{'s'[: bits > 1]}"
