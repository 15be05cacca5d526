"""The shared memory of one CTA: its bytes, snapshots of it, and the variables that text declares there.

Does not know lanes beyond their number in a message, or the order of accesses. Variables get addresses from
0 on, in the order of the declarations, each at the next multiple of its alignment; no address is reused. An
array of unknown size, ``.extern .shared .b8 tile[]``, begins where the others end.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from weakref import ref

import numpy as np
import numpy.typing as npt

from ...base.errors import IllegalInstruction, NotModelled, OperandError
from ...isa.memory import SHARED_BYTES, Bytes, MemoryWords, check_places, load_words, store_words
from ...isa.numerals import integer_in
from ...machine.bind.register_arrays import type_bits
from ...machine.state.spaces import padded
from ...ptx.source import NAME
from ...ptx.statements import VariableDeclaration

_PLACE = re.compile(rf"({NAME})?\s*\+?\s*(0[xX][0-9a-fA-F]{{1,16}}|\d{{1,9}})?", re.ASCII)


class SharedMemory:
    """The shared memory of a CTA: ``size`` bytes, 1 to 232448, zero at first.

    ``data (size,)`` uint8 is the memory itself, not a copy. Raises OperandError for another size.
    """

    def __init__(self, size: int) -> None:
        if not 1 <= size <= SHARED_BYTES:
            raise OperandError(f"shared memory of {size} bytes: a CTA has 1 to {SHARED_BYTES} (227 KiB)")
        self._words = padded(size)
        self._bytes: Bytes = self._words[:size]
        self._changed = True  # possibly, since the last snapshot
        self._snapshot: Bytes | None = None
        self._lent: ref[Bytes] | None = None

    def __len__(self) -> int:
        return self._bytes.size

    @property
    def data(self) -> Bytes:
        """Return ``(size,)`` uint8: the memory itself."""
        lent = self._lent() if self._lent else None
        if lent is None:
            # An array over a memoryview, not over the array: every view that NumPy makes of it keeps it
            # alive, so snapshot knows whether a view exists that can write.
            lent = np.frombuffer(self._bytes.data, np.uint8)
            self._lent = ref(lent)
        self._changed = True
        return lent

    def view(self, address: int = 0, size: int | None = None) -> Bytes:
        """Return ``(size,)`` uint8: a range of the memory, all of it by default; writing to it writes here.

        Raises OperandError where the range leaves the memory.
        """
        size = len(self) - address if size is None else size
        if address < 0 or size < 0 or address + size > len(self):
            raise OperandError(f"{size} bytes from {address:#x} leave shared memory of {len(self)} bytes")
        return self.data[address : address + size]

    def snapshot(self) -> Bytes:
        """Return ``(size,)`` uint8, read-only: a copy of the memory as it is now.

        It is the last copy where the bytes are equal, or where no write has been possible since.
        """
        last, lent = self._snapshot, self._lent is not None and self._lent() is not None
        if last is None or ((self._changed or lent) and not np.array_equal(last, self._bytes)):
            last = self._snapshot = self._bytes.copy()
            last.flags.writeable = False
        self._changed = False
        return last

    def peek(self) -> Bytes:
        """Return ``(size,)`` uint8: the memory itself, for reading at once."""
        return self._bytes

    @property
    def words(self) -> Bytes:
        """The memory itself, up to a whole word of 16 bytes; call ``written`` after writing to it."""
        return self._words

    def written(self) -> None:
        """Note that the memory may have changed since the last snapshot."""
        self._changed = True

    def check_store(self, addresses: npt.ArrayLike, size: int, *, lanes: npt.ArrayLike | None = None) -> None:
        """Raise OperandError as store would for these addresses, but store nothing."""
        check_places(self._bytes, addresses, size, lanes, "stores")

    def load(self, addresses: npt.ArrayLike, size: int, *, lanes: npt.ArrayLike | None = None) -> MemoryWords:
        """Return the words at the addresses; see load_words."""
        return load_words(self._bytes, addresses, size, lanes=lanes)

    def store(
        self, addresses: npt.ArrayLike, words: MemoryWords, size: int, *, lanes: npt.ArrayLike | None = None
    ) -> None:
        """Write words at the addresses; see store_words."""
        self._changed = True
        store_words(self._bytes, addresses, words, size, lanes=lanes)

    def __getstate__(self) -> dict[str, Bytes]:
        """Return the bytes: views of a memory are not views of its copy."""
        return {"bytes": self._bytes.copy()}

    def __setstate__(self, state: dict[str, Bytes]) -> None:
        SharedMemory.__init__(self, state["bytes"].size)
        self._bytes[:] = state["bytes"]


class SharedVariables:
    """The variables of a kernel whose CTA has ``size`` bytes of shared memory."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._scopes: list[dict[str, int]] = [{}]
        self._end = 0
        self._open_ended = False  # whether an array of unknown size has been declared

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Open a block whose names end with it; their addresses are not reused."""
        depth = len(self._scopes)
        self._scopes.append({})
        try:
            yield
        finally:
            del self._scopes[depth:]

    def addresses(self) -> Mapping[str, int]:
        """Return the address of every variable that is visible here."""
        return ChainMap(*reversed(self._scopes))

    def declare(self, variable: VariableDeclaration) -> None:
        """Give a variable its address; a variable that was declared before keeps its address.

        Raises IllegalInstruction for an initial value, an alignment or a size that PTX does not have,
        NotModelled for other state spaces.
        """
        if variable.space != "shared":
            raise NotModelled(f"variables in .{variable.space} are not modelled; those in .shared are")
        if variable.initializer is not None:
            raise IllegalInstruction(f"{variable.name} is in shared memory, which has no initial values")
        if variable.name in self._scopes[-1]:
            return
        start = -(-self._end // _alignment(variable)) * _alignment(variable)
        if start + variable.size > self.size:
            raise IllegalInstruction(
                f"{variable.name} would end at {start + variable.size:#x}, "
                f"outside the {self.size} bytes of shared memory"
            )
        self._place(variable, start)

    def _place(self, variable: VariableDeclaration, start: int) -> None:
        if self._open_ended and variable.size:
            raise NotModelled(
                f"{variable.name} is declared after an array of unknown size, where that begins"
            )
        self._open_ended |= variable.size == 0
        self._scopes[-1][variable.name] = start
        self._end = start + variable.size

    def place(self, text: str) -> int:
        """Return the address of ``tile``, ``tile+16``, ``1024`` or ``0x400`` here; raise OperandError."""
        match = _PLACE.fullmatch(text)
        offset = (
            integer_in(match[2] or "0") if match else None
        )  # none where PTX and Python read 010 differently
        if not match or offset is None or not text or (match[1] and match[2] and "+" not in text):
            raise OperandError(f"{text!r}: expected an address, or a variable as in 'tile' or 'tile+16'")
        known = self.addresses()
        if match[1] and match[1] not in known:
            names = ", ".join(sorted(known)) or "none"
            raise OperandError(f"no variable {match[1]} in shared memory; there are: {names}")
        return (known[match[1]] if match[1] else 0) + offset


def _alignment(variable: VariableDeclaration) -> int:
    """Return the alignment in bytes, a power of two; that of an element where the text states none."""
    alignment = type_bits(variable.type) // 8 if variable.align is None else variable.align
    if alignment < 1 or alignment & (alignment - 1):
        raise IllegalInstruction(f"{variable.name} has alignment {alignment}, which is not a power of two")
    return alignment
