"""Words of registers and memories as a debugger shows them: by type, and in the formats of ``print/x``.

Knows words, types and formats; does not know where a word comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.codes import matrix_of
from ...isa.formats import FORMATS, Format

Array = npt.NDArray[Any]
TYPES: dict[str, Any] = {  # of words, and what their bits are
    **{f"b{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    "bf16": np.dtype(ml_dtypes.bfloat16),
}
_SHORT = {  # format letters of print and x, and the element that each is
    "h": "f16",
    "h2": "f16",
    "bf": "bf16",
    "bf2": "bf16",
}
LETTERS = ("x", "d", "u", "f", "t", "c", *_SHORT, *FORMATS)


@dataclass(frozen=True, eq=False)
class Value:
    """A value in every lane, ``(lanes,)`` or ``()``: words of a ``type``, "" for numbers.

    ``missing`` are the lanes in which it has never been written.
    """

    words: Array
    type: str = ""
    missing: Array | None = None

    @classmethod
    def of(cls, numbers: Array) -> Value:
        """Return numbers without a type."""
        return cls(np.asarray(numbers))

    def numbers(self) -> Array:
        """Return its numbers: 64-bit integers, floats or bits."""
        if self.type in TYPES and TYPES[self.type].itemsize == self.words.dtype.itemsize:
            words = np.ascontiguousarray(self.words).view(TYPES[self.type])
        else:
            words = self.words
        if words.dtype.kind == "u" and words.dtype.itemsize == 8:
            return np.asarray(words.view(np.int64))
        return np.asarray(words.astype(np.int64 if words.dtype.kind in "iub" else np.float64))

    def integers(self) -> Array:
        """Return its bits as integers, or its numbers without what is behind the point."""
        if self.type and self.words.dtype.kind in "ui":
            return Value(self.words).numbers()
        with np.errstate(invalid="ignore"):
            return self.numbers().astype(np.int64)

    @property
    def is_missing(self) -> bool:
        """Whether it has never been written in any lane."""
        return self.missing is not None and bool(self.missing.all())

    def lane(self, lane: int) -> Any:
        """Return the word of a lane; None where it has never been written."""
        if self.missing is not None and self.missing[lane]:
            return None
        return self.words if not self.words.ndim else self.words[lane]


def typed(value: Value, type_name: str) -> Value:
    """Return the low bits of a value as a word of another type."""
    bits: np.dtype[Any] = np.dtype(f"u{TYPES[type_name].itemsize}")
    whole = value.words if value.words.dtype.kind == "u" else value.numbers()
    if whole.dtype.kind == "f":
        return Value(whole.astype(TYPES[type_name]).view(bits), type_name, value.missing)
    return Value(whole.astype(bits), type_name, value.missing)


def check_format(letters: str) -> str:
    """Return a format that is known. Raises OperandError, which lists them."""
    if letters and letters not in LETTERS:
        raise OperandError(f"/{letters} is not a format: {', '.join(LETTERS)}")
    return letters


def shown(word: Any, type_name: str = "", letters: str = "") -> str:
    """Return a word as text: in the way of its type, or of a format."""
    if word is None:
        return "never written"
    word = np.asarray(word)
    if word.dtype.kind == "b" or type_name == "pred":
        return str(bool(word)).lower()
    if not letters:
        return _by_type(word, type_name)
    if letters in _SHORT or letters in FORMATS:
        return _elements(word, _SHORT.get(letters, letters))
    return _by_letter(word, letters)


def _by_letter(word: Array, letter: str) -> str:
    bits = 8 * word.dtype.itemsize
    code = int(word.view(f"u{word.dtype.itemsize}"))
    if letter == "x":
        return f"{code:#0{2 + bits // 4}x}"
    if letter == "t":
        return f"{code:#0{2 + bits}b}"
    if letter == "u":
        return str(code)
    if letter == "c":
        return repr(code.to_bytes(bits // 8, "little").decode("latin-1"))
    if letter == "d":
        return str(code - (code >> bits - 1 << bits))
    return number(word.view(f"f{word.dtype.itemsize}")) if bits > 8 else str(code)


def number_of(word: Array, type_name: str) -> Any:
    """Return the number that a word of a type is; None of untyped bits, and of a type of another size."""
    dtype = None if type_name[:1] == "b" and type_name != "bf16" else TYPES.get(type_name)
    return None if dtype is None or dtype.itemsize != word.dtype.itemsize else word.view(dtype)


def _by_type(word: Array, type_name: str) -> str:
    if not type_name:
        return number(word)
    code, value = _by_letter(word, "x"), number_of(word, type_name)
    return code if value is None else f"{number(value)} ({code})"


def _elements(word: Array, name: str) -> str:
    """Return the elements of a format that are packed in a word, the lowest bits first."""
    element = FORMATS[name]
    width = width_of(element)
    code, bits = int(word.view(f"u{word.dtype.itemsize}")), 8 * word.dtype.itemsize
    if width > bits:
        raise OperandError(f"{name} has {width} bits, the word {bits}")
    codes = np.array([code >> place & (1 << width) - 1 for place in range(0, bits, width)], np.uint64)
    values = matrix_of((codes & np.uint64(element.mask)).astype(element.code_dtype), element)
    texts = [number(value) for value in values]
    return texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}"


def type_of(dtype: np.dtype[Any]) -> str:
    """Return the type of the words of an array."""
    known = {other: name for name, other in TYPES.items()}
    return known.get(dtype, f"b{8 * dtype.itemsize}" if dtype.itemsize in (1, 2, 4, 8) else "b8")


def width_of(element: Format) -> int:
    """Return the bits that an element takes in a word: 6-bit codes have a byte each."""
    return 8 if element.bits == 6 else element.bits


def number(value: Any, digits: int = 8) -> str:
    """Return a number as text."""
    value = np.asarray(value)
    with np.errstate(invalid="ignore"):
        return str(int(value)) if value.dtype.kind in "iub" else f"{float(value):.{digits}g}"
