"""Operands of matrix instructions as matrices of places in buffers: which element each element of a tile is.

A place is a bit of a buffer; an element's is that of its lowest bit. Knows fragments and shapes of buffers;
does not know what should be where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.instruction import Instruction
from ....isa.layouts.fragment_layout import Layout
from ....isa.layouts.strides import modes
from ....ptx.operands import Address
from .byte_keys import COMPUTED, CONSTANT, Indices
from .kept_products import Given
from .traced_launch import Movement, TracedBuffer

RESULT = -2  # an element of D of a matrix instruction
KINDS = {CONSTANT: "constant", COMPUTED: "computed", RESULT: "a result"}
Mask = npt.NDArray[np.bool_]
_EXECUTIONS = 256  # of which the direction of a tile is taken
_FAR = 1 << 31  # longer than rows are
_CORE = 8  # rows and columns of a matrix of ldmatrix


Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Something of which results are kept.

    Things that are alike share what is ``kept`` when each is made with ``shared``; ``dataclasses.replace``
    makes a thing without any results.
    """

    shared: InitVar[dict[str, Any] | None] = None
    kept: dict[str, Any] = field(init=False, compare=False, repr=False)

    def __post_init__(self, shared: dict[str, Any] | None) -> None:
        """Begin without results, or with those of something alike."""
        object.__setattr__(self, "kept", {} if shared is None else shared)

    def once(self, name: str, make: Callable[[], Result]) -> Result:
        """Return a result, made when it is asked for first."""
        if name not in self.kept:
            self.kept[name] = make()
        found: Result = self.kept[name]
        return found


class kept_property(Generic[Result]):
    """A property whose result is kept."""

    def __init__(self, make: Callable[[Any], Result]) -> None:
        self.make = make

    def __get__(self, owner: Kept, kind: type) -> Result:
        """Return the result for an owner."""
        return owner.once(self.make.__name__, lambda: self.make(owner))


@dataclass(frozen=True, kw_only=True)
class Operand(Kept):
    """One operand of one statement in all its executions: ``bits (n, lanes, values)``.

    A bit is counted through all buffers, from 8 on; CONSTANT, COMPUTED and RESULT are none. ``width`` is of
    an element in bits, ``each`` how many of them a register has. Statements that are alike but for their
    places in the text, and were given the same, share ``kept``.
    """

    given: Given
    role: str
    bits: Indices
    width: int
    each: int
    buffer: TracedBuffer | None

    @property
    def source(self) -> TracedBuffer:
        """The buffer, of an operand that comes from any."""
        return present(self.buffer, "a buffer")

    @property
    def later(self) -> Mask:
        """``(n - 1,)``: executions after the first that follow the execution before in their warp."""
        return np.asarray((self.places[1:, :4] == self.places[:-1, :4]).all(axis=1))

    @property
    def instruction(self) -> Instruction:
        """The instruction whose operand it is."""
        return self.given.instruction

    @property
    def is_matrix(self) -> bool:
        """Whether it is a tile in shared memory or a fragment of wmma: its lanes are rows along m or n, its
        values k."""
        return self.role in self.given.tiles

    @property
    def of_wmma(self) -> bool:
        """Whether it is a fragment of wmma, whose registers have no meaning."""
        return self.given.record.statement.opcode == "wmma"

    @property
    def of_tensor(self) -> bool:
        """Whether it is of tcgen05.mma: words of metadata and scales are cells of tensor memory, in the
        place of lanes."""
        return self.given.record.statement.opcode == "tcgen05"

    @property
    def holder(self) -> str:
        """Where a tile lies that is not a fragment of registers."""
        if self.of_wmma:
            return "in the fragment"
        operands = self.given.record.statement.operands or ()
        inside = self.of_tensor and (self.role == "c" or isinstance(operands[1], Address))
        return "in tensor memory" if inside and self.role != "b" else "in shared memory"

    @property
    def places(self) -> npt.NDArray[np.int64]:
        """``(n, 5)``: x, y, z of the CTA, warp, how many-th time."""
        return self.given.places

    @kept_property
    def moved(self) -> Mask:
        """``(n, lanes, values)``: elements that come from the buffer as they are."""
        if self.buffer is None:
            return np.zeros(self.bits.shape, np.bool_)
        start = 8 * self.buffer.start
        moved: Mask = (self.bits >= start) & (self.bits < start + 8 * self.buffer.size)
        return moved

    @kept_property
    def index(self) -> Indices:
        """``(n, lanes, values)``: which element of the buffer, counted through; -1 for none."""
        start = 0 if self.buffer is None else 8 * self.buffer.start
        index: Indices = np.where(self.moved, (self.bits - start) // self.width, -1)
        return index

    @property
    def begins(self) -> Mask:
        """``(n,)``: of C, executions that begin a sum: nothing in it is a result of a matrix instruction."""
        begins: Mask = np.logical_not((self.bits == RESULT).any(axis=(1, 2)))
        return begins | self.given.ignores_c

    def counts(self) -> dict[str, int]:
        """Return how many elements are moved, and how many are none of any buffer, by kind."""
        found = {"moved": int((self.bits > 0).sum())}
        return found | {name: int((self.bits == kind).sum()) for kind, name in KINDS.items()}


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """An operand as tiles: ``outer`` and ``inner (n, outer size, k)``, coordinates in the buffer.

    For a and b, inner is along k, and outer the rows of A or columns of B; ``inner_axis`` says whether k runs
    along "columns" or "rows" of the buffer. ``valid`` marks elements that come from the buffer.
    """

    operand: Operand
    outer: Indices
    inner: Indices
    valid: Mask
    inner_axis: str

    @property
    def outer_axis(self) -> str:
        """The other axis of the buffer."""
        return "rows" if self.inner_axis == "columns" else "columns"

    @property
    def turned(self) -> Tiles:
        """The same with k along the other axis of the buffer."""
        return replace(self, outer=self.inner, inner=self.outer, inner_axis=self.outer_axis)

    @property
    def swapped(self) -> bool:
        """Whether the fragment's rows run along k, as those of B do."""
        return self.operand.role == "b"


def operands_of(movement: Movement) -> list[Operand]:
    """Return every operand of every statement."""
    alike = dict[object, Operand]()
    return [_operand(movement, given, role, alike) for given in movement.given for role in given.bytes]


def _operand(movement: Movement, given: Given, role: str, alike: dict[object, Operand]) -> Operand:
    key = (
        *(role, role in given.tiles, id(given.bytes[role]), id(given.places), given.record.statement.opcode),
        *(given.instruction, given.selector, given.scale_selectors),
    )
    if key in alike:
        return replace(alike[key], given=given, shared=alike[key].kept)
    form, seen = given.instruction, given.bytes[role]
    width = form.storage(role).bits if role in "abc" else 8
    bits = _elements(seen, width, movement.result)
    each = 8 * seen.shape[-1] // width
    alike[key] = Operand(
        given=given, role=role, bits=bits, width=width, each=each, buffer=_buffer(movement.buffers, bits)
    )
    return alike[key]


def _elements(seen: npt.NDArray[np.signedinteger], width: int, result: int) -> Indices:
    """Return ``(n, lanes, values)`` of indices of bytes ``(n, lanes, registers, bytes)``."""
    n, lanes, registers, size = seen.shape
    if width < 8:
        bit, seen = np.arange(0, 8, width), seen.astype(np.int64)
        found = np.where(seen[..., None] > 0, 8 * seen[..., None] + bit, seen[..., None])
        found = np.where(seen[..., None] == result, RESULT, found)
        return found.reshape(n, lanes, -1)
    parts = seen.reshape(n, lanes, registers * 8 * size // width, width // 8)
    first = parts[..., 0]
    together, alike = first > 0, np.ones(first.shape, np.bool_)
    for number in range(1, width // 8):  # byte by byte: an axis of two costs more than all else
        together &= parts[..., number] == first + number
        alike &= parts[..., number] == first
    found = np.full(first.shape, COMPUTED, np.int64)
    np.multiply(first, np.int64(8), out=found, where=together)
    for index, kind in ((CONSTANT, CONSTANT), (result, RESULT)):
        found[alike & (first == index)] = kind
    return found


def _buffer(buffers: Sequence[TracedBuffer], bits: Indices) -> TracedBuffer | None:
    most = int(bits.max(initial=CONSTANT))
    if most == CONSTANT:
        return None
    least = int(bits.min())
    for buffer in buffers:
        if 8 * buffer.start <= least and most < 8 * (buffer.start + buffer.size):
            return buffer
    counts = [
        int(((bits >= 8 * buffer.start) & (bits < 8 * (buffer.start + buffer.size))).sum())
        for buffer in buffers
    ]
    return buffers[int(np.argmax(counts))] if any(counts) else None


# --- shapes ----------------------------------------------------------------------------------------


def row_length(buffer: TracedBuffer, width: int) -> int:
    """Return elements of so many bits in a row of a buffer: along its last axis."""
    last = buffer.shape[-1] if buffer.shape else 1
    return max(last * buffer.dtype.itemsize * 8 // width, 1)


def extents_in_bytes(buffer: TracedBuffer) -> tuple[int, ...]:
    """Return the shape of a buffer as bytes."""
    shape = buffer.shape or (1,)
    return (*shape[:-1], shape[-1] * buffer.dtype.itemsize)


def index_text(buffer: TracedBuffer, index: int, width: int) -> str:
    """Return ``A[3, 17]``: an element of so many bits, in the axes of the buffer."""
    length = row_length(buffer, width)
    lead = np.unravel_index(index // length, buffer.shape[:-1]) if len(buffer.shape) > 1 else ()
    return f"{buffer.name}[{', '.join(map(str, (*map(int, lead), index % length)))}]"


def word_text(buffer: TracedBuffer, byte: int) -> str:
    """Return ``E[3, 5]``: the element of the buffer's own dtype that holds a byte."""
    size = buffer.dtype.itemsize
    inner = f" byte {byte % size}" if size > 1 and byte % size else ""
    return index_text(buffer, byte // size, 8 * size) + inner


def layout_of(operand: Operand) -> Layout:
    """Return where lanes and values stand in the tile."""
    if operand.is_matrix:
        return _tile_layout(*operand.bits.shape[1:], operand.role == "b")
    return operand.instruction.in_registers(operand.role).layout


@cache
def _tile_layout(rows: int, columns: int, swapped: bool) -> Layout:
    """Return a tile that is a matrix, row by row along k; B's is its transpose."""
    steps = ((0, 1), (1, 0)) if swapped else ((1, 0), (0, 1))
    return Layout(lane_modes=modes((rows, steps[0])), value_modes=modes((columns, steps[1])))


def tiles_of(operand: Operand) -> Tiles | None:
    """Return the tiles of a, b or c; None where the buffer is not a matrix of which they are tiles."""
    if operand.buffer is None or operand.role not in ("a", "b", "c") or len(operand.buffer.shape) < 2:
        return None
    layout, length = layout_of(operand), row_length(operand.buffer, operand.width)
    index, valid = layout.collect(operand.index), layout.collect(operand.moved)
    row = index // length
    column = index - row * length  # the remainder, in a third of its time
    if operand.role == "b":
        row, column, valid = (np.swapaxes(part, 1, 2) for part in (row, column, valid))
    along, across = _step(row, column, valid, 2), _step(row, column, valid, 1)
    if _runs(along, across):
        outer, inner, axis = row, column, "columns"
    elif _runs(along[::-1], across[::-1]):
        outer, inner, axis = column, row, "rows"
    else:
        return None
    tiles = Tiles(operand=operand, outer=outer, inner=inner, valid=valid, inner_axis=axis)
    return tiles.turned if _advances_across(tiles) else tiles


def _advances_across(tiles: Tiles) -> bool:
    """Return whether a loop over k advances by whole tiles along the axis that k does not run along.

    Then every matrix of ldmatrix is transposed, and k runs along the axis of the advance.
    """
    operand = tiles.operand
    _, size, depth = tiles.outer.shape
    if operand.role == "c" or (operand.is_matrix and not operand.of_wmma) or size % _CORE or depth % _CORE:
        return False
    if size == depth == _CORE:
        return False  # a single matrix of ldmatrix: it looks the same whichever way it lies
    whole: Mask = np.asarray(tiles.valid.all(axis=(1, 2)))
    later = np.flatnonzero(operand.later & whole[1:] & whole[:-1]) + 1
    if not later.size:
        return False
    first = (axis.min(axis=(1, 2)) for axis in (tiles.outer, tiles.inner))
    across, along = (values[later] - values[later - 1] for values in first)
    steps = (across > 0) & (across % depth == 0) & (along == 0)
    return bool(steps.all()) and (operand.of_wmma or _transposed_in_place(tiles, whole))


def _transposed_in_place(tiles: Tiles, whole: Mask) -> bool:
    """Return whether all whole tiles are those of the other orientation, each 8x8 matrix transposed."""
    outer, inner = tiles.inner[whole], tiles.outer[whole]
    across, along = transposed_blocks(outer.shape[1:])
    right = outer - outer[:, :1, :1] == across
    right &= inner - inner[:, :1, :1] == along
    return bool(right.all())


def transposed_blocks(shape: tuple[int, ...]) -> tuple[Indices, Indices]:
    """Return row and column of every element where each 8x8 matrix is transposed in its place."""
    rows, columns = np.indices(shape)
    return rows // _CORE * _CORE + columns % _CORE, columns // _CORE * _CORE + rows % _CORE


def _runs(along: tuple[int, int], across: tuple[int, int]) -> bool:
    """Return whether k runs along the columns of a buffer, the other side along its rows, in wrong steps
    perhaps.

    Rows that lie a whole number of rows apart are not a mistake but fragments in an order of their own.
    """
    rows_apart = across[1] == 0 and across[0] != 1
    return (along == (0, 1) and not rows_apart) or (across == (1, 0) and along[0] == 0)


def _step(row: Indices, column: Indices, valid: Mask, axis: int) -> tuple[int, int]:
    """Return how rows and columns of the buffer mostly change with one step along an axis of the tile."""
    ahead, behind = ([slice(_EXECUTIONS), slice(None), slice(None)] for _ in range(2))
    ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
    both = valid[tuple(ahead)] & valid[tuple(behind)]
    down, right = ((part[tuple(ahead)] - part[tuple(behind)])[both] for part in (row, column))
    if not down.size:
        return 0, 0
    common = mode(down * _FAR + right)  # two numbers in one word, for speed
    across = (common + _FAR // 2) % _FAR - _FAR // 2
    return (common - across) // _FAR, across


Numbers = npt.NDArray[Any]


def mode(values: Numbers) -> int:
    """Return the commonest value, the least of those that are equally common."""
    flat = values.reshape(-1)
    for likely in (flat[0], np.partition(flat, flat.size // 2)[flat.size // 2]):  # a majority is the median
        if 2 * np.count_nonzero(flat == likely) > flat.size:
            return int(likely)
    different, counts = np.unique(flat, return_counts=True)
    return int(different[counts.argmax()])


def bits_of(count: int) -> Numbers:
    """Return ``(count, bits)``: the bits of the numbers below ``count``, lowest first."""
    return np.arange(count)[:, None] >> np.arange((count - 1).bit_length()) & 1


def sums_of_bits(values: Numbers, known: npt.NDArray[np.bool_], none: int) -> tuple[Numbers, Numbers]:
    """Return what each bit of the place mostly adds in rows ``(n, m)``, and the mode ``(n,)`` of the rest of
    what is known of each row, ``none`` where nothing is.
    """
    size = values.shape[1]
    bits = bits_of(size)
    steps = np.array([_bit_step(values, known, bit) for bit in range(bits.shape[1])], np.int64)
    rest, ends = values - bits @ steps, np.iinfo(np.int64)
    least = np.where(known, rest, ends.max).min(axis=1, initial=ends.max)
    most = np.where(known, rest, ends.min).max(axis=1, initial=ends.min)
    base = np.where(least > most, none, least)
    for row in np.flatnonzero(least < most):
        base[row] = mode(rest[row][known[row]])
    return steps, base


def _bit_step(values: Numbers, known: npt.NDArray[np.bool_], bit: int) -> int:
    count = values.shape[1] >> bit + 1 << bit + 1  # the others have no partner
    low, high, valid, partner = (
        part[:, :count].reshape(len(part), -1, 2, 1 << bit)[:, :, half]
        for part in (values, known)
        for half in (0, 1)
    )
    steps = (high - low)[valid & partner]
    return mode(steps) if steps.size else 0
