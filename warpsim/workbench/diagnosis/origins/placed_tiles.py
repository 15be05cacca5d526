"""Where in shared memory the elements of a tile lie, and which descriptor of tcgen05 reads them there.

Of some executions the bytes of shared memory are kept, too: so the place of every element that an operand
should have is known, and start, offsets, swizzle and major of a descriptor follow from the places. Knows
bytes and descriptors; does not know whether a tile is right. PTX ISA 9.3, section 9.7.17.5 "Canonical
layouts".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ....base.errors import WarpsimError
from ....isa.descriptors.matrix_descriptor import Major
from ....isa.descriptors.tensor_descriptor import SWIZZLES, WIDTH, TensorDescriptor, tile_byte_addresses
from ....isa.families.tcgen05_operands import ctas_of
from ....isa.layouts.swizzle import tensor_swizzled
from ..descriptors.descriptor_views import DescriptorView, differences
from .byte_keys import Indices
from .loaded_operands import Operand, row_length

_MAJORS: tuple[Major, Major] = ("K", "MN")
_CHUNK = 16  # bytes of a row of a core matrix


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The descriptor that an execution was given, and that which reads the tile that it should have."""

    role: str
    given: TensorDescriptor
    fits: TensorDescriptor
    given_major: Major
    major: Major

    @property
    def views(self) -> tuple[DescriptorView, DescriptorView]:
        """Both as views, of which words are made; their majors are bits of the instruction."""
        return DescriptorView.of(self.given), DescriptorView.of(self.fits)

    @property
    def texts(self) -> tuple[str, ...]:
        """What is another, in words; the start last."""
        return tuple(self._texts())

    @property
    def moved(self) -> int:
        """Bytes by which the start should be further on."""
        return self.fits.start_address - self.given.start_address

    def _texts(self) -> Iterator[str]:
        if self.major != self.given_major:
            bit, along = (15, "M") if self.role == "a" else (16, "N")
            lies, said = (along, 0) if self.major == "MN" else ("K", 1)
            yield (
                f"the tile lies {lies}-major in shared memory, but transpose {self.role.upper()} (bit {bit} "
                f"of the instruction descriptor) is {said}"
            )
        yield from differences(*self.views, of=" of the descriptor")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which tile an execution should have: its first ``k``, None where not known, and ``size``, all k of the
    buffer, in elements of the operand; 0 where not known.
    """

    k: int | None
    size: int


def fit_of(operand: Operand, shared: Indices, word: int, wanted: Wanted) -> Fit | None:
    """Return the descriptor that reads the tile that is wanted; None where it does not lie there.

    ``shared`` are the indices of the bytes of the CTA's shared memory.
    """
    given = TensorDescriptor.decode(word)
    transposed = operand.instruction.product.transposed["ab".index(operand.role)]
    major = _MAJORS[transposed]
    found = []
    for along_rows in (False, True):
        addresses = _places(operand, shared, (given, wanted), along_rows=along_rows)
        if addresses is not None:
            found += [*_descriptors(addresses, operand, given)]
    fits = [
        Fit(role=operand.role, given=given, fits=right, given_major=major, major=own) for right, own in found
    ]
    return min(fits, key=lambda fit: len(fit.texts), default=None)


# --- where elements lie ------------------------------------------------------------------------------


def _places(
    operand: Operand,
    shared: Indices,
    expected: tuple[TensorDescriptor, Wanted],
    *,
    along_rows: bool,
) -> Indices | None:
    """Return ``(rows, bytes)``: the address of each byte of the tile; ``along_rows``: k goes down."""
    buffer = operand.buffer
    if buffer is None or operand.width < 8 or len(buffer.shape) != 2:
        return None
    size, pitch = operand.width // 8, row_length(buffer, operand.width) * operand.width // 8
    rows, depth = operand.bits.shape[1] // ctas_of(operand.instruction), operand.bits.shape[2]
    where = np.full(buffer.size, -1, np.int64)
    inside = np.flatnonzero((shared >= buffer.start) & (shared < buffer.start + buffer.size))
    where[shared[inside] - buffer.start] = inside
    lines = where.reshape(-1, pitch)[: buffer.size // pitch]
    table = lines.reshape(len(lines), -1, size)  # (rows, columns, bytes of an element) of the buffer
    if along_rows:
        table = table.swapaxes(0, 1)
    first = _first_k(operand, table, expected)
    other = 0 < expected[1].size != table.shape[1]
    if first is None or other or first + depth > table.shape[1]:
        return None
    tile = table[:, first : first + depth]
    there = np.flatnonzero((tile >= 0).all(axis=(1, 2)))
    at = np.argwhere(table[..., 0] == expected[0].start_address)
    chosen = _block(there, rows, int(at[0, 0]) if len(at) else None)
    return None if chosen is None else tile[chosen : chosen + rows].reshape(rows, -1)


def _first_k(operand: Operand, table: Indices, expected: tuple[TensorDescriptor, Wanted]) -> int | None:
    """Return the first k of the tile: of the partner, or else that of the element at the start address."""
    given, wanted = expected
    if wanted.k is not None:
        return wanted.k
    at = np.argwhere(table[..., 0] == given.start_address)
    depth = operand.bits.shape[2]
    return int(at[0, 1]) // depth * depth if len(at) else None


def _block(there: npt.NDArray[np.intp], rows: int, known: int | None) -> int | None:
    """Return the first of ``rows`` consecutive lines that are there; of several blocks the block of
    a known line.
    """
    if there.size < rows:
        return None
    starts = [int(line) for line in there[: there.size - rows + 1] if line % rows == 0 or there.size == rows]
    whole = [line for line in starts if np.isin(np.arange(line, line + rows), there).all()]
    own = [line for line in whole if known is not None and line <= known < line + rows]
    return next(iter(own or whole), None)


# --- descriptors -------------------------------------------------------------------------------------


def _descriptors(
    addresses: Indices, operand: Operand, given: TensorDescriptor
) -> Iterator[tuple[TensorDescriptor, Major]]:
    """Yield the descriptors, with the major, that read a tile at some addresses ``(rows, bytes)``."""
    size = operand.width // 8
    for swizzle in SWIZZLES.values():
        linear = tensor_swizzled(addresses, swizzle)
        for major in _MAJORS:
            down, across = (8, _CHUNK) if major == "K" else (WIDTH[swizzle] // size, 8 * size)
            steps = [
                int(linear[down, 0] - linear[0, 0]) if down < len(linear) else None,
                int(linear[0, across] - linear[0, 0]) if across < linear.shape[1] else None,
            ]
            if major == "MN" and swizzle != "none":
                steps.reverse()
            stride, leading = steps
            if major == "K" and swizzle != "none":
                leading = None  # not used
            try:
                found = replace(
                    given,
                    start_address=int(linear[0, 0]),
                    swizzle=swizzle,
                    stride_byte_offset=given.stride_byte_offset if stride is None else stride,
                    leading_byte_offset=given.leading_byte_offset if leading is None else leading,
                )
                read = tile_byte_addresses(
                    found, rows=len(linear), row_bytes=linear.shape[1], element_bytes=size, major=major
                )
            except WarpsimError:
                continue
            if np.array_equal(read, addresses):
                yield found, major
