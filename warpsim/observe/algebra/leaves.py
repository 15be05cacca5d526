"""Arguments as leaves: a key for each element of an array, or for each of its bits, and for numbers.

Floats have a key an element. Integers have a key a bit, whatever they are used for: as an index or a mask
they decide, and a decision is not a formula. An array of zeros is zeros, and so is the number 0. Arrays that
share memory share keys. What the kernel reads integers as (uint16 as bf16, a byte as e4m3 or as two e2m1)
shows after its run, and is what the reference then gets. Knows arrays and addresses; does not know launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...isa.codes import values_of
from ...isa.formats import FORMATS
from ...isa.tensor_maps.tensor_fields import MAP_BYTES
from ...isa.tensor_maps.tensor_map import decode
from ...machine.run.wave import Wave
from ...machine.state.spaces import DEVICE_BASE
from .keys.finite_fields import Keys, hashed, random_keys
from .keys.key_bits import Leaf
from .keys.key_cells import NAMES, PAIRED, Cells, Mask, MemoryCells
from .keys.key_reading import KeyReader, numbers
from .observer import Algebra
from .shadow_arrays import Shadow, Trace

Array = npt.NDArray[Any]
_FLOATS = {
    np.dtype(each.dtype): name
    for name, each in FORMATS.items()
    if each.is_float and each.bits >= 8 and not each.ignored_bits
}


@dataclass(eq=False)
class Argument:
    """An argument of a reference: ``content`` is an array, or a number of shape (); None for anything else.

    It lies ``offset`` bytes behind the first of ``parameter``, a number of the kernel's, -1 for that of its
    own ``index``. Those of one ``structure`` are its fields; ``shapeless`` is memory to the end of an
    allocation. ``mapped`` says that the parameter is a tensor map. ``keys`` are those of the elements, None
    of what has no keys; ``kind`` is the format of a float, or "s" or "u".
    """

    index: int
    name: str
    content: Array | None
    mapped: bool = False
    parameter: int = -1
    offset: int = 0
    structure: str = ""
    shapeless: bool = False
    keys: Keys | None = None
    kind: str = ""
    places: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return 0 if self.content is None else self.content.dtype.itemsize


def _kind_of(content: Array | None) -> str:
    """Return the format of numbers, "" where they are zeros, or one integer."""
    if content is None or not (content.astype(np.float64) if content.dtype.kind == "V" else content).any():
        return ""
    integer = ("s" if content.dtype.kind == "i" else "u") if content.ndim else ""
    return _FLOATS.get(content.dtype, integer)


class Leaves:
    """The arguments of a launch, with keys of a seed."""

    def __init__(self, reader: KeyReader, arguments: Sequence[Argument]) -> None:
        self.reader, self.arguments = reader, arguments
        self.memory: MemoryCells | None = None  # of the device, once a wave has run
        for argument in arguments:
            argument.kind = _kind_of(argument.content)
            argument.keys = self._keys(argument) if argument.kind else None

    def _keys(self, argument: Argument) -> Keys:
        content = argument.content
        assert content is not None
        name, shape = f"{argument.index} {argument.name}", content.shape
        if argument.kind not in ("s", "u"):
            return random_keys(self.reader.seed, name, np.arange(content.size)).reshape(shape)
        leaf = Leaf.of(name, self.reader.seed, content.size, 8 * argument.size, signed=argument.kind == "s")
        self.reader.bits.leaves.append(leaf)
        return leaf.keys.reshape(shape)

    # --- binding ---

    def bind(self, algebra: Algebra, wave: Wave) -> None:
        """Put keys on the bytes of arguments."""
        self.memory = algebra.memory(wave.memories.device.data)
        parameters = wave.memories.parameters
        for argument in (each for each in self.arguments if each.content is not None):
            assert argument.content is not None
            number = argument.index if argument.parameter < 0 else argument.parameter
            parameter = wave.entry.parameters[number]
            first, past = parameter.offset + argument.offset, parameter.offset + parameter.bytes
            if argument.content.ndim:
                address = self._address(argument, parameters[first:past], wave)
                argument.places = address - DEVICE_BASE + _offsets(argument.content)
                self._bind_array(argument)
            elif argument.keys is not None:
                size = argument.size if argument.structure else parameter.bytes
                cells = Cells.of(argument.keys.reshape(1), {2: "f16", 4: "f32", 8: "f64"}[size], size)
                algebra.memory(parameters).store(np.array([first]), size, cells, -1)

    def _address(self, argument: Argument, raw: Array, wave: Wave) -> int:
        if not argument.mapped:
            return int.from_bytes(raw[:8].tobytes(), "little")
        content = raw.tobytes()
        if len(content) != MAP_BYTES:
            first = int.from_bytes(content, "little") - DEVICE_BASE
            content = wave.memories.device.data[first : first + MAP_BYTES].tobytes()
        return decode(content).address

    def _bind_array(self, argument: Argument) -> None:
        size, memory, places = argument.size, self.memory, argument.places.reshape(-1)
        if argument.keys is None or memory is None:
            return
        if memory.load(places, size) is not None:  # another argument's memory: its keys
            argument.keys = memory.keys[places].reshape(argument.places.shape)
        else:
            memory.store(places, size, Cells.of(argument.keys.reshape(-1), argument.kind, size), -1)

    # --- what the reference gets ---

    def given(self, trace: Trace) -> list[Any]:
        """Return what a reference is called with: shadows of arrays and floats, other numbers as they are.

        Fields of a structure are attributes of a single argument.
        """
        found = dict[Any, Any]()
        for argument in self.arguments:
            value, name = self.value(trace, argument), argument.structure
            if not name:
                found[id(argument)] = value
            else:
                structure = found.setdefault(name, SimpleNamespace())
                setattr(structure, argument.name.removeprefix(f"{name}."), value)
        return list(found.values())

    def value(self, trace: Trace, argument: Argument) -> Any:
        """Return what a reference is called with for one argument."""
        content = argument.content
        if content is None:
            return None
        if not content.ndim and content.dtype.kind in "iub":
            return int(content)
        if argument.keys is None:
            keys, values = None, content
        else:
            integers = argument.kind in ("s", "u")
            keys, values = self._as_read(argument) if integers else (argument.keys, content)
        values = values.astype(np.int64 if values.dtype.kind in "iub" else np.float64)
        return Shadow(trace, trace.constants(values) if keys is None else keys, values, name=argument.name)

    def _as_read(self, argument: Argument) -> tuple[Keys, Array]:
        """Return an array of integers as the numbers that the kernel reads it as, where that is one type."""
        assert argument.keys is not None
        assert argument.content is not None
        own, names = argument.keys.reshape(-1), self._casts(argument)
        whole = [name for name in names if name.startswith("as ")]
        codes = argument.content.view(f"u{argument.size}")
        if len(whole) == len(names) == 1:
            kind = whole[0].removeprefix("as ")
            if kind[0] in "su" and kind[1:].isdecimal():
                cells, bits = Cells.of(own, argument.kind, argument.size), codes.reshape(-1)
                keys = self.reader.read(cells, bits, kind[0], argument.size)
                return keys.reshape(argument.keys.shape), numbers(codes, kind[0], argument.size)
            if FORMATS[kind].code_dtype.itemsize == argument.size:
                return hashed(whole[0], argument.keys), numbers(codes, kind)
        if names and all(name.startswith("nibble") and name.endswith(PAIRED) for name in names):
            keys = np.stack([hashed(f"nibble {half} as {PAIRED}", argument.keys) for half in (0, 1)], -1)
            values = np.stack([values_of(codes >> 4 * half & 15, FORMATS[PAIRED]) for half in (0, 1)], -1)
            shape = (*argument.content.shape[:-1], -1)
            return keys.reshape(shape), values.reshape(shape)
        return argument.keys, argument.content

    def untyped(self) -> list[str]:
        """Return the names of arrays of integers of which floats of an unknown type were made."""
        integers = ((x, x.keys) for x in self.arguments if x.kind in ("s", "u") and x.keys is not None)
        unread = (x for x, keys in integers if not self.reader.unread.isdisjoint(keys.reshape(-1).tolist()))
        return [each.name for each in unread if not self._casts(each)]

    def _casts(self, argument: Argument) -> list[str]:
        """Return how the kernel reads integers of an argument as other numbers."""
        if argument.keys is None:
            return []
        own = argument.keys.reshape(-1).tolist()
        return [name for name, keys in self.reader.casts.items() if not keys.isdisjoint(own)]

    def read_as(self, argument: Argument) -> set[str]:
        """Return the formats of floats that the kernel reads integers of an argument as, or parts of them."""
        kinds = {name.rpartition("as ")[2] for name in self._casts(argument)}
        return {kind for kind in kinds if kind in FORMATS and FORMATS[kind].is_float}

    # --- what the kernel left ---

    def left(self, argument: Argument) -> StoredArray:
        """Return the cells that the kernel left in an array."""
        assert self.memory is not None
        places = argument.places.reshape(-1)
        return StoredArray(self.memory.load(places, argument.size), self.memory.writers[places])


def _offsets(array: Array) -> npt.NDArray[np.int64]:
    found = np.zeros((), np.int64)
    for size, stride in zip(array.shape, array.strides, strict=True):
        found = found[..., None] + np.arange(size, dtype=np.int64) * stride
    return found


class StoredArray(NamedTuple):
    """The cells that a kernel left in the elements of an array, None where none has a key, and the statement
    that stored each.
    """

    cells: Cells | None
    writers: npt.NDArray[np.int32]

    @property
    def bare(self) -> Mask:
        """Elements that were stored without any key."""
        stored: Mask = self.writers >= 0
        return stored if self.cells is None else stored & ~self.cells.tags.any(0)

    def kind(self, dtype: Any) -> str:
        """Return the format of what was stored: that of all numbers with keys, or that of the array's
        dtype.
        """
        own = _FLOATS.get(np.dtype(dtype), "s" if np.dtype(dtype).kind == "i" else "u")
        tags = np.zeros(0, np.uint16) if self.cells is None else self.cells.tags[0]
        first = tags[tags != 0]
        kinds = np.unique(first >> 8).tolist()
        if len(kinds) != 1 or ((first >> 4 & 15) != np.dtype(dtype).itemsize).any():
            return own
        kind = NAMES[kinds[0]]
        return own if kind in ("s", "u") and own in ("s", "u") else kind

    def read(self, reader: KeyReader, content: Array) -> Keys:
        """Return the keys of the elements, as numbers of the format that they were stored as.

        ``content`` are the elements themselves. Two numbers of 4 bits in a byte are an axis more, the last.
        """
        size, kind = content.dtype.itemsize, self.kind(content.dtype)
        bits = np.ascontiguousarray(content).reshape(-1).view(f"u{size}")
        if kind == PAIRED:
            return reader.nibbles(self.cells, bits, kind, 0).T.reshape(*content.shape[:-1], -1)
        return reader.read(self.cells, bits, kind, size).reshape(content.shape)
