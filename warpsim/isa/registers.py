"""Words and codes: how elements are packed into 32- and 64-bit registers.

Knows widths and shifts only. Element 0 of a register is in its least significant bits (PTX ISA 9.1,
section 9.7.14.5 "Matrix fragments").
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import OperandError
from .arrays import as_array
from .products import Codes, Storage

Words = npt.NDArray[Any]  # uint32, or uint64 for .f64: (..., lanes, registers)

_LITTLE = {8: "<u1", 16: "<u2", 32: "<u4", 64: "<u8"}


def packed(codes: Codes, storage: Storage, register_bits: int) -> Words:
    """Return words ``(..., lanes, registers)`` of codes ``(..., lanes, values)``, lowest bits first."""
    word = np.dtype(_LITTLE[register_bits])
    if storage.bits in _LITTLE and not storage.shift:
        return _seen_as(np.ascontiguousarray(codes, _LITTLE[storage.bits]), word)
    each = register_bits // storage.bits
    slots = codes.astype(word).reshape(*codes.shape[:-1], codes.shape[-1] // each, each)
    words: Words = np.bitwise_or.reduce(slots << _shifts(storage, register_bits), axis=-1)
    return words


def unpacked(words: Words, storage: Storage, register_bits: int, mask: int) -> Codes:
    """Return codes ``(..., lanes, values)`` of words, without the bits outside ``mask`` (padding)."""
    word = np.dtype(_LITTLE[register_bits])
    if storage.bits in _LITTLE and not storage.shift:
        codes: Codes = np.ascontiguousarray(words, word).view(_LITTLE[storage.bits])
        masked: Codes = codes & codes.dtype.type(mask)
        return masked
    slots: Codes = words[..., None] >> _shifts(storage, register_bits) & word.type(mask)
    return slots.reshape(*words.shape[:-1], words.shape[-1] * slots.shape[-1])


def _seen_as(array: npt.NDArray[Any], word: np.dtype[Any]) -> Words:
    words: Words = array.view(word)
    return words


def _shifts(storage: Storage, register_bits: int) -> Words:
    each = register_bits // storage.bits
    return (np.arange(each) * storage.bits + storage.shift).astype(_LITTLE[register_bits])


def checked(words: npt.ArrayLike, shape: tuple[int, int], bits: int, what: str) -> Words:
    """Return ``words`` as an unsigned array ``(..., lanes, registers)``, of a ``shape`` (lanes, registers).

    Other integer arrays are taken by value if every value fits; a single register may come without
    its last axis. Raises OperandError.
    """
    array = with_registers(as_unsigned(words, bits, what), *shape)
    if array.shape[-2:] != shape:
        lanes, count = shape
        raise OperandError(
            f"{what} has shape {array.shape}, but its registers come as (..., {lanes}, {count}): "
            f"lanes, then registers"
        )
    return array


def as_unsigned(words: npt.ArrayLike, bits: int, what: str) -> Words:
    """Return integers as unsigned words of so many bits; raises OperandError for values that do not fit."""
    array = as_array(words)
    word = np.dtype(_LITTLE[bits])
    return array if array.dtype == word else _as_words(array, word, what)


def with_registers(words: Words, lanes: int, count: int) -> Words:
    """Return the words ``(..., lanes, count)``: a single register may come without its last axis."""
    alone = count == 1 and words.shape[-1:] == (lanes,) and words.shape[-2:] != (lanes, 1)
    return words[..., None] if alone else words


def _as_words(array: npt.NDArray[Any], word: np.dtype[Any], what: str) -> Words:
    if array.dtype.kind not in "iu":
        raise OperandError(
            f"{what} has dtype {array.dtype}, but registers are {word}: "
            f"give bits (array.view(np.{word})) or use warpsim.pack"
        )
    limit = np.iinfo(word).max
    if array.size and (array.min() < 0 or array.max() > limit):
        if array.dtype.itemsize == word.itemsize:
            return _seen_as(array, word)  # the same bits, seen as signed
        raise OperandError(f"{what} has values outside 0..{limit}, which are not {word} words")
    return array.astype(word)
