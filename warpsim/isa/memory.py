"""Shared memory as bytes, and words at byte addresses.

Knows sizes and alignment. Does not know swizzles (see swizzle.py), matrices, descriptors (see descriptors),
lanes beyond their number in a message, or the order of accesses. A memory is a uint8 array
``(..., bytes)``: leading axes are a batch of memories, and one array of addresses serves them all. Words are
little-endian.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import OperandError
from .architectures import LARGEST

Bytes = npt.NDArray[np.uint8]  # (..., bytes)
Addresses = npt.NDArray[np.int64]  # byte addresses
MemoryWords = npt.NDArray[Any]  # uint8, uint16, uint32 or uint64

SHARED_BYTES = LARGEST.shared_bytes  # of a CTA on the chip with the most
WORD_BYTES = (1, 2, 4, 8, 16)


def load_words(
    memory: Bytes, addresses: npt.ArrayLike, size: int, *, lanes: npt.ArrayLike | None = None
) -> MemoryWords:
    """Return ``(..., *addresses)`` unsigned words of ``size`` bytes: 1, 2, 4, 8 or 16.

    A word of 16 bytes comes as two uint64 on a last axis, low half first: ``.view(np.uint32)`` makes it
    four registers. ``lanes``, shaped like the addresses, only names the culprit of an error. Raises
    OperandError for an address that is not a multiple of the size or whose word leaves the memory.
    PTX ISA 9.1, section 6.4.1 "Addresses as Operands".
    """
    places = check_places(memory, addresses, size, lanes, "loads")
    return element_view(memory, size)[..., places]


def store_words(
    memory: Bytes,
    addresses: npt.ArrayLike,
    words: MemoryWords,
    size: int,
    *,
    lanes: npt.ArrayLike | None = None,
) -> None:
    """Write unsigned words of ``size`` bytes, ``(..., *addresses)``, or ``(..., *addresses, 2)`` for 16.

    Nothing is written if any address is wrong. Where two words overlap, which PTX leaves open, the last
    word in the order of the array stays. Raises OperandError as load_words does, and for words of the
    wrong dtype or shape.
    """
    places = check_places(memory, addresses, size, lanes, "stores")
    unit = f"uint{8 * min(size, 8)}"
    if words.dtype != unit:
        raise OperandError(f"words of {size} bytes are {unit} arrays, not {words.dtype}")
    write_elements(memory, places, words)


def bytes_of(array: npt.NDArray[Any]) -> Bytes:
    """Return ``(n,)``: the bytes of an array in C order, each word little-endian."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return np.frombuffer(little.tobytes(), np.uint8)


def write_elements(memory: Bytes, places: Addresses, words: MemoryWords) -> None:
    """Write unsigned words ``(..., *places)`` at multiples ``places`` of their size, already checked.

    Raises OperandError for words whose shape does not fit and for a read-only memory.
    """
    view = element_view(memory, words.dtype.itemsize)
    shape = (*view.shape[:-1], *places.shape)
    if not _broadcasts(words.shape, shape):
        raise OperandError(
            f"an array of shape {words.shape} cannot be stored as {shape}: memories, addresses"
        )
    if not memory.flags.writeable:
        raise OperandError("the memory is read-only")
    view[..., places] = words


def element_view(memory: Bytes, size: int) -> MemoryWords:
    """Return ``(..., bytes // size)``: the memory seen as unsigned words of up to 8 bytes; a view.

    Raises OperandError for a memory that is not uint8 or whose bytes are not contiguous.
    """
    if not isinstance(memory, np.ndarray) or memory.dtype != np.uint8 or not memory.ndim:
        raise OperandError(f"a memory is a uint8 array (..., bytes), not {_describe(memory)}")
    if memory.shape[-1] > 1 and memory.strides[-1] != 1:
        raise OperandError("the bytes of a memory must be contiguous: pass a copy")
    unit = min(size, 8)
    whole = memory[..., : memory.shape[-1] // unit * unit]
    view: MemoryWords = whole.view(f"<u{unit}")
    return view


def _describe(memory: object) -> str:
    if isinstance(memory, np.ndarray):
        return f"{memory.dtype} {memory.shape}"
    if isinstance(
        getattr(memory, "data", None), np.ndarray
    ):  # an object that holds a memory, as SharedMemory does
        return f"a {type(memory).__name__}: pass its .data"
    return f"a {type(memory).__name__}"


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def check_places(
    memory: Bytes, addresses: npt.ArrayLike, size: int, lanes: npt.ArrayLike | None, verb: str
) -> Addresses:
    """Return indices into element_view; a last axis of 2 for words of 16 bytes. Raises OperandError for
    others.
    """
    if size not in WORD_BYTES:
        raise OperandError(f"words of {size} bytes: a word has 1, 2, 4, 8 or 16")
    array = np.asarray(addresses)
    if array.dtype.kind not in "iu" and array.size:
        raise OperandError(f"addresses are integers, not {array.dtype}")
    available = element_view(memory, 1).shape[-1]
    _refuse(array, array % size != 0, lanes, f"{verb} {size} bytes", f"no multiple of {size}")
    outside = (array < 0) | (array > available - size)
    _refuse(array, outside, lanes, f"{verb} {size} bytes", f"outside the {available} bytes of memory")
    if size < 16:
        return array.astype(np.int64) // size
    return array.astype(np.int64)[..., None] // 8 + np.arange(2)


def _refuse(
    addresses: npt.NDArray[Any],
    wrong: npt.NDArray[np.bool_],
    lanes: npt.ArrayLike | None,
    what: str,
    reason: str,
) -> None:
    """Raise OperandError for the first wrong address, if any."""
    if not wrong.any():
        return
    first = int(np.flatnonzero(wrong)[0])
    access = "an access"
    if lanes is not None:
        access = f"lane {int(np.broadcast_to(lanes, addresses.shape).flat[first])}"
    raise OperandError(f"{access} {what} at address {int(addresses.flat[first]):#x}, {reason}")
