"""Where does this element come from? Elements of matrix instructions, traced back to the arrays of a launch.

Beside every byte of the arrays runs a key, and what arrives in the registers of every mma says which byte it
was (byte_keys.py, traced_launch.py). Control that depends on the data is reported. Elements that went through
arithmetic, conversions among it, are "computed", with their formula; those that the arrays have no part in
are "constant". mma, wgmma, wmma and tcgen05.mma are traced, but no wmma with elements
below a byte, and no 6-bit and 4-bit elements of kind::f8f6f4 in shared memory.
What is not explained is not a finding: padding, triangles and parts of a larger grid leave elements unused
too. Knows kernels and arrays; prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import OperandError
from ....isa.displayed import Displayed
from ....isa.numerals import whole_number
from ....machine.run.execute import checked
from ....machine.run.wave import Parameter
from ....machine.state.device import Device
from ....machine.state.spaces import Allocation
from ....ptx.symbols import shown_variable
from .anchors import Anchored, anchored, formulas_of
from .byte_keys import COMPUTED, Indices
from .descriptor_checks import described
from .loaded_operands import (
    KINDS,
    Mask,
    Operand,
    index_text,
    layout_of,
    mode,
    operands_of,
    row_length,
    tiles_of,
    word_text,
)
from .packing_checks import (
    PackingFinding,
    Products,
    arranged_findings,
    follows_sum,
    repeated_products,
    tile_findings,
)
from .traced_launch import Dependence, Movement, Size, TracedBuffer, job_of, movement_of
from .unused_elements import ranges_of, unused_elements
from .words.metadata_checks import folded_byte_ids, word_findings
from .words.shared_words import (
    Metadata,
    Served,
    metadata_of,
    served,
    shared_words,
    unread_metadata,
    with_selectors,
)
from .words.word_places import words_of

Names = Sequence[str | int] | Mapping[str, str | int]
_LISTED = 4  # lines
MOST_BYTES = 1 << 28  # of allocations that are followed


@dataclass(frozen=True, kw_only=True)
class ElementOrigin:
    """An element of a fragment: ``source`` is its place, such as "A[3, 17]", or "computed" and its like.

    Of a tile in shared memory, ``lane`` is its row along m or n, and ``register`` its k; of words in tensor
    memory ``lane`` counts the lanes of the first column, then those of the next.
    """

    lane: int
    register: int
    bits: tuple[int, int]  # the highest and the lowest
    source: str


@dataclass(frozen=True, kw_only=True)
class OperandOrigins:
    """One operand of one matrix statement in all its executions."""

    operand: Operand
    tiles: Anchored | None
    formulas: tuple[str, ...]
    movement: Movement = field(repr=False)

    @property
    def role(self) -> str:
        """The operand: a, b, c, e, scale_a or scale_b."""
        return self.operand.role

    @property
    def buffer(self) -> TracedBuffer | None:
        """The buffer that most of its elements come from, None for none."""
        return self.operand.buffer

    @property
    def counted(self) -> str:
        """What is counted: words of metadata and scales are traced byte by byte."""
        return "elements" if self.role in ("a", "b", "c") else "bytes"

    @property
    def index(self) -> npt.NDArray[np.int64]:
        """``(n, 32, values)``: the element of the buffer, counted row by row; -1 for none."""
        return self.operand.index

    @property
    def counts(self) -> dict[str, int]:
        """Elements that were moved, and that are constant, computed or results of a matrix instruction."""
        return self.operand.counts()

    def table(self, execution: int = 0) -> list[ElementOrigin]:
        """Return every element of the fragment of one execution, lane by lane."""
        operand = self.operand
        return [
            ElementOrigin(
                lane=lane,
                register=value // operand.each,
                bits=((value % operand.each + 1) * operand.width - 1, value % operand.each * operand.width),
                source=self._source(execution, lane, value),
            )
            for lane in range(operand.bits.shape[1])
            for value in range(operand.bits.shape[2])
        ]

    def _source(self, execution: int, lane: int, value: int) -> str:
        operand = self.operand
        index, kind = int(operand.index[execution, lane, value]), int(operand.bits[execution, lane, value])
        if index >= 0 and operand.buffer is not None:
            byte = operand.role not in ("a", "b", "c")
            return (
                word_text(operand.buffer, index) if byte else index_text(operand.buffer, index, operand.width)
            )
        formula = self.formula(execution, lane, value) if kind == COMPUTED else ""
        return f"computed: {formula}" if formula else KINDS.get(kind, "another buffer")

    def formula(self, execution: int, lane: int, value: int) -> str:
        """Return what was computed as an element, "relu(x[3] * scale[1])"; "" where it is not known."""
        operand = self.operand
        keys = operand.given.computed.get(operand.role)
        if keys is None:
            return ""
        own = keys[execution].reshape(operand.bits.shape[1], -1)[lane]
        byte = value * own.size // operand.bits.shape[2]
        return self.movement.formulas.text(int(own[byte]), self._name)

    @cached_property
    def example(self) -> str:
        """The formula of the first element that was computed; "" where none is known."""
        places = np.argwhere(self.operand.bits == COMPUTED)
        return self.formula(*places[0].tolist()) if len(places) else ""

    def _name(self, first: int, bits: int, low: int, size: int) -> str:
        """Return so many bits from bit ``low`` of a byte on, which are read in elements of ``size`` bytes."""
        buffer = next(each for each in self.movement.buffers if each.holds(first))
        unit = (
            min(size, buffer.dtype.itemsize) if buffer.parameter >= 0 and not low and bits % 8 == 0 else size
        )
        unit = unit if bits >= 8 * unit else buffer.dtype.itemsize
        inside = first - buffer.start
        text = index_text(buffer, inside // unit, 8 * unit)
        if bits < 8 * unit:
            low += inside % unit * 8
            return f"bits {low + bits - 1}..{low} of {text}"
        last = inside // unit % row_length(buffer, 8 * unit) + bits // (8 * unit) - 1
        return f"{text[:-1]}..{last}]" if bits > 8 * unit else text


@dataclass(frozen=True, kw_only=True)
class Origins(Displayed):
    """``operands``, what each matrix statement was given; ``findings``, what of it does not fit; and
    ``dependences``, statements that do other things when the buffers hold other values."""

    movement: Movement

    def __repr__(self) -> str:
        names = ", ".join(buffer.name for buffer in self.buffers)
        return f"<origins of {len(self.operands)} operands in {names}: {len(self.findings)} findings>"

    @property
    def buffers(self) -> tuple[TracedBuffer, ...]:
        """The arrays whose elements are traced."""
        return self.movement.buffers

    @property
    def dependences(self) -> tuple[Dependence, ...]:
        """Statements whose lanes or addresses depend on the values in the buffers."""
        return self.movement.dependences

    @cached_property
    def operands(self) -> tuple[OperandOrigins, ...]:
        """Operands in the order of the text."""
        return tuple(_origins_of(self.movement, operand) for operand in operands_of(self.movement))

    @property
    def statements(self) -> tuple[Mapping[str, OperandOrigins], ...]:
        """The operands of each matrix statement, by role."""
        statements: dict[int, dict[str, OperandOrigins]] = {}
        for operand in self.operands:
            statements.setdefault(id(operand.operand.given), {})[operand.role] = operand
        return tuple(statements.values())

    @cached_property
    def findings(self) -> tuple[PackingFinding, ...]:
        """What of the operands does not fit together, statement by statement."""
        found = list[PackingFinding]()
        products, words = list[Products](), list[Served]()
        for given in self.statements:
            operands = {role: arrangement.operand for role, arrangement in given.items()}
            a, b = (given[role].tiles if role in given else None for role in "ab")
            own = [*tile_findings(a, b)]
            if a is not None and b is not None:
                begins = operands["c"].begins if "c" in operands else a.tiles.operand.given.ignores_c
                products.append(Products(a=a, b=b, begins=begins))
            for role, tiles in (("a", a), ("b", b)):
                if tiles is None and role in operands:
                    own += arranged_findings(operands[role])
            found += described(operands, {"a": a, "b": b}, own)
            for role in ("e", "scale_a", "scale_b"):
                if role in operands:
                    found += word_findings(operands[role], a, b)
                    words += served(operands[role], a, b)
        found = folded_byte_ids(found)
        found += [*shared_words(words, found), *repeated_products(products)]
        groups = self._metadata()
        found = [*with_selectors(found, groups), *unread_metadata(groups, found)]
        return (*found, *unused_elements(products, self._single(), found))

    def _metadata(self) -> list[Metadata]:
        return metadata_of(
            (given["a"].operand, given["e"].operand)
            for given in self.statements
            if {"a", "e"} <= given.keys()
        )

    def _single(self) -> frozenset[str]:
        """Return the buffers that come as tiles, in one role, to all that they come to."""
        if self.dependences:
            return frozenset()
        roles: dict[str, set[str]] = {}
        for traced in self.operands:
            if traced.buffer is not None:
                role = traced.role if traced.tiles is not None else ""
                roles.setdefault(traced.buffer.name, set()).add(role)
        return frozenset(name for name, seen in roles.items() if len(seen) == 1 and "" not in seen)

    @cached_property
    def unexplained(self) -> tuple[str, ...]:
        """What is neither a finding nor explained: computed or unordered operands, and unused elements."""
        operands = [(traced.operand, traced.tiles is not None) for traced in self.operands]
        texts = list(unexplained_operands(operands))
        if self.operands:
            unused = (unused_text(buffer, self._used_bits(buffer)) for buffer in self.buffers)
            texts += filter(None, unused)
        return tuple(texts)

    def used(self, buffer: TracedBuffer) -> float:
        """Return how much of an array arrives, unchanged, in matrix instructions."""
        bits = self._used_bits(buffer)
        return float(bits.mean()) if bits.size else 0.0

    def _used_bits(self, buffer: TracedBuffer) -> Mask:
        firsts: dict[int, Mask] = {}
        for operand in self.operands:
            inside = operand.operand.bits - 8 * buffer.start
            inside = inside[(inside >= 0) & (inside < 8 * buffer.size)]
            firsts.setdefault(operand.operand.width, np.zeros(8 * buffer.size, np.bool_))[inside] = True
        bits = np.zeros(8 * buffer.size, np.bool_)
        for width, marked in firsts.items():
            bits[(np.flatnonzero(marked)[:, None] + np.arange(width)).reshape(-1)] = True
        return bits


@in_default_environment
def find_origins(
    kernel: Any,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any] = (),
    origins: Names = (),
    shared_bytes: int = 0,
    cluster: int | Sequence[int] | None = None,
    most_statements: int | None = None,
) -> Origins:
    """Return the array and element that each element of each matrix instruction is; write nothing back.

    ``kernel``, ``grid``, ``block``, ``args``, ``shared_bytes``, ``cluster`` and ``most_statements`` are those
    of a launch. ``origins`` are the parameters to trace, by name or index, or a mapping of names for them:
    ``{"A": 0, "B": 2}``. Arrays with their real shapes give rows and columns; others keep their data. Raises
    OperandError, and what a launch raises.
    """
    named = parameters_named(kernel.parameters, origins)
    more = {"most_statements": checked(most_statements)}
    return Origins(
        movement=movement_of(job_of(kernel, (grid, block, cluster), args, named, shared_bytes, **more))
    )


@in_default_environment
def find_allocation_origins(
    kernel: Any,
    sizes: tuple[Size, Size, Size | None],
    args: Sequence[Any],
    allocations: Mapping[str, Allocation],
    device: Device,
    shared_bytes: int = 0,
) -> Origins:
    """Return what ``find_origins`` does, by allocations of a device, which have no shapes.

    ``sizes`` are those of grid, block and cluster, ``allocations`` go by the names to show. The rows of
    an allocation are as long as the tiles that come from it say. The memory is
    as before afterwards. Raises OperandError, and what a launch raises.
    """
    total = sum(allocation.size for allocation in allocations.values())
    if total > MOST_BYTES:
        raise OperandError(
            f"origins of {total:,} bytes: at most {MOST_BYTES:,} can be followed; name fewer allocations"
        )
    job = job_of(kernel, sizes, args, allocations, shared_bytes, device=device)
    return Origins(movement=with_rows(movement_of(job)))


def without_unused(origins: Origins) -> Origins:
    """Return origins without the buffers that nothing arrives from, as those of results."""
    return Origins(movement=arriving(origins.movement))


def parameters_named(parameters: Sequence[Parameter], origins: Names) -> dict[str, Parameter]:
    """Return the parameters by the names that they go by. Raises OperandError."""
    if isinstance(origins, str) or not origins:
        raise OperandError("origins names the arrays to trace, such as ('a', 'b')")
    pairs = origins.items() if isinstance(origins, Mapping) else ((None, origin) for origin in origins)
    found = dict[str, Parameter]()
    for name, key in pairs:
        parameter = _parameter(parameters, key)
        found[name or shown_variable(parameter.name)] = parameter
    if len({note.index for note in found.values()}) < len(origins):
        raise OperandError("origins names one parameter twice")
    return found


def _parameter(parameters: Sequence[Parameter], key: str | int) -> Parameter:
    index = key if isinstance(key, int) else whole_number(key)
    for parameter in parameters:
        if index == parameter.index or key in (parameter.name, shown_variable(parameter.name)):
            return parameter
    known = ", ".join(f"{parameter.index} {shown_variable(parameter.name)}" for parameter in parameters)
    raise OperandError(f"origins: no parameter {key!r}; they are {known}")


def _origins_of(movement: Movement, operand: Operand) -> OperandOrigins:
    found = operand.once("anchored", lambda: _anchored(operand))
    formulas = operand.once("formulas", lambda: tuple(formulas_of(found)))
    return OperandOrigins(
        operand=operand,
        tiles=None if found is None else found.of(operand),
        formulas=formulas,
        movement=movement,
    )


def _anchored(operand: Operand) -> Anchored | None:
    tiles = tiles_of(operand)
    return None if tiles is None else anchored(tiles)


# --- what is not explained ----------------------------------------------------------------------------


def unexplained_operands(operands: Sequence[tuple[Operand, bool]]) -> Iterator[str]:
    """Yield sentences on operands, each with whether it is tiles of a matrix; equal sentences once."""
    found: dict[str, list[int]] = {}
    for operand, is_tiles in operands:
        for text in _unexplained(operand, is_tiles) if operand.role != "c" else ():
            found.setdefault(text, []).append(operand.given.location.line)
    for text, lines in found.items():
        unique = sorted(set(lines))
        more = ", …" * (len(unique) > _LISTED)
        yield f"line{'s'[: len(unique) != 1]} {', '.join(map(str, unique[:_LISTED]))}{more}: {text}"


def _unexplained(operand: Operand, is_tiles: bool) -> Iterator[str]:
    computed = int((operand.bits == COMPUTED).sum())
    if computed:
        unit = "elements" if operand.role in ("a", "b") else "bytes"
        yield f"{computed / operand.bits.size:.1%} of the {unit} of {operand.role} are computed, not moved"
    if operand.buffer is None or is_tiles:
        return
    if operand.role in ("a", "b"):
        known = follows_sum(operand)
    else:
        words = words_of(operand)
        known = words is None or words.follow_sums
    if not known:
        yield f"{operand.role} comes from {operand.buffer.name} in no order that is known"


def unused_text(buffer: TracedBuffer, bits: Mask) -> str:
    """Describe which ``bits`` of an array arrive in matrix instructions, by elements; empty for all."""
    used: Mask = np.asarray(bits.reshape(-1, 8).any(axis=1))
    if used.all():
        return ""
    if not used.any():
        return f"nothing of {buffer.name} arrives unchanged in a matrix instruction"
    size = buffer.dtype.itemsize
    elements = used.reshape(-1, size).any(axis=1)
    shape = buffer.shape or (1,)
    share = f"{used.mean():.1%} of {buffer.name} is used"
    if elements.size != int(np.prod(shape)):
        return share
    elements = elements.reshape(shape)
    axes = [_along(elements, axis) for axis in range(len(shape))]
    box = np.ix_(*axes)
    if not elements[box].all():
        first = np.unravel_index(int(np.argmin(elements)), shape)
        return f"{share}: {buffer.name}[{', '.join(map(str, map(int, first)))}] is the first that is not"
    parts = [
        f"{ranges_of(axis)} of {len(axis)} along axis {n}" for n, axis in enumerate(axes) if not axis.all()
    ]
    return f"{share}: {', '.join(parts)}" if parts else share


def _along(elements: Mask, axis: int) -> Mask:
    """Return which places along an axis have any element that is used."""
    along: Mask = np.asarray(np.moveaxis(elements, axis, 0).reshape(elements.shape[axis], -1).any(axis=1))
    return along


def with_rows(movement: Movement) -> Movement:
    """Return a movement whose buffers have rows, where all tiles of a buffer agree on their length."""
    found: dict[str, set[int]] = {}
    for operand in operands_of(movement):
        if operand.buffer is not None and operand.role in ("a", "b"):
            # how many bytes the rows of an operand's buffer lie apart; 0 where no axis is contiguous
            layout = layout_of(operand)
            index, valid = layout.collect(operand.index), layout.collect(operand.moved)
            steps = [_step(index, valid, axis) for axis in (1, 2)]
            others = [other for step, other in (steps, steps[::-1]) if step == 1 and other > 1]
            length = others[0] * operand.width // 8 if others and not others[0] * operand.width % 8 else 0
            found.setdefault(operand.buffer.name, set()).add(length)
    buffers = tuple(_shaped(buffer, found.get(buffer.name, set())) for buffer in movement.buffers)
    return replace(movement, buffers=buffers)


def arriving(movement: Movement) -> Movement:
    """Return a movement without the buffers that nothing arrives from; with all where nothing arrives."""
    operands = operands_of(movement)
    found = tuple(buffer for buffer in movement.buffers if any(_has(operand, buffer) for operand in operands))
    return replace(movement, buffers=found or movement.buffers)


def _has(operand: Operand, buffer: TracedBuffer) -> bool:
    start = 8 * buffer.start
    return bool(((operand.bits >= start) & (operand.bits < start + 8 * buffer.size)).any())


def _shaped(buffer: TracedBuffer, lengths: set[int]) -> TracedBuffer:
    """Return a buffer with rows of the length; behind the last whole row there may be more bytes."""
    length = next(iter(lengths)) if len(lengths) == 1 else 0
    if not length or buffer.size % length or length >= buffer.size:
        return buffer
    return replace(buffer, shape=(buffer.size // length, length))


def _step(index: Indices, valid: Mask, axis: int) -> int:
    """Return by how much the place mostly changes with one step along an axis of the tiles."""
    both = np.logical_and(*_shifted(valid, axis))
    behind, ahead = _shifted(index, axis)
    steps = (ahead - behind)[both]
    return mode(steps) if steps.size else 0


def _shifted(values: Indices | Mask, axis: int) -> tuple[Indices | Mask, Indices | Mask]:
    """Return all but the last, and all but the first, along an axis."""
    count = values.shape[axis]
    return values.take(range(count - 1), axis), values.take(range(1, count), axis)
