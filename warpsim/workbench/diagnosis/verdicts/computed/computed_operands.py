"""Operands that are computed from D of other instructions, as P of attention is: as tiles of a matrix S.

S has a row for each row of A and a column for each column of B of the instructions that make it, so P is
checked as other tiles are: P[i, j] follows S[i, j], and the k of P are the rows of B. Knows origins and
experiments; does not know outputs. Registers are followed backwards through the text, and through shared
memory to what was stored there, to the instructions that make S.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .....base.errors import Location
from .....isa.families import OPCODES
from .....isa.warps import WARP
from .....machine.run.wave import Record
from ...origins.anchors import Anchored, anchored
from ...origins.element_origins import OperandOrigins, Origins
from ...origins.loaded_operands import Operand, Tiles
from ...origins.packing_checks import PackingFinding, tile_findings
from ...origins.traced_launch import TracedBuffer
from ..repeated_launch import RepeatedLaunch
from ..statement_chains import SharedWriters, definer, operand_registers, split_registers
from .driven_launch import Place
from .traced_elements import Codes, Source, Traced, traced_elements

_SHARE = 0.5  # of the elements of an operand that are computed
_WARPS, _TIMES = 2, 2  # whose executions are looked at
S = "S"

Statement = Mapping[str, OperandOrigins]
_MATRIX = OPCODES | {"wmma"}
_LOADS = ("ld", "ldmatrix")
_TELLING = ("ex2", "tanh", "cvt", "st", "stmatrix", "ldmatrix", "ld", "shfl", "max", "div", "rcp")
_MOST = 4000  # statements that are followed


@dataclass(frozen=True, kw_only=True)
class ComputedOperand:
    """Operand ``role`` of statement ``pc``, in some executions: ``tiles`` of S, and how S is made."""

    pc: int
    role: str
    statement: Statement
    made: ComputedFrom
    tiles: Anchored
    partner: Anchored | None
    traced: Sequence[Traced]
    places: Sequence[Place]

    @cached_property
    def findings(self) -> tuple[PackingFinding, ...]:
        """What of the tiles of S does not fit: their order, and their k against that of B."""
        a, b = (self.tiles, self.partner) if self.role == "a" else (self.partner, self.tiles)
        return tuple(finding for finding in tile_findings(a, b) if finding.operand == self.role)

    @property
    def slope(self) -> float:
        """The factor of S in the exponent of e."""
        return float(np.median([each.slope for each in self.traced]))


@dataclass(frozen=True, kw_only=True)
class Computed:
    """All computed operands of a launch, and the statements that make them."""

    operands: tuple[ComputedOperand, ...]
    makers: tuple[int, ...]
    of_makers: Mapping[int, Statement]


def computed_operands(launch: RepeatedLaunch, origins: Origins) -> Computed | None:
    """Return the operands that are computed from D; None where there are none, or they cannot be followed."""
    numbers = _numbers(launch, origins)
    targets = {pc: given for pc, given in numbers.items() if _role(given)}
    roles = {pc: _role(given) for pc, given in targets.items()}
    if not targets:
        return None
    writers = SharedWriters()
    launch.attempt(checks="off", observers=(writers,))
    code = launch.kernel._entry.code
    made = {pc: computed_from(code, pc, roles[pc], writers) for pc in targets}
    makers = sorted({maker for found in made.values() for maker in found.makers if maker in numbers})
    if not makers:
        return None
    watched = {
        pc: _sample(given[roles[pc]].operand.places) for pc, given in targets.items() if made[pc].makers
    }
    of_makers = {pc: numbers[pc] for pc in makers}
    shapes = _shapes(of_makers)
    if shapes is None:
        return None
    warps = -(-int(np.prod(launch.sizes["block"])) // WARP)
    traced = traced_elements(launch, Codes(shapes, warps), roles, watched)
    found = []
    for pc, places in watched.items():
        if all((pc, place) in traced for place in places):
            alike = [traced[pc, place] for place in places]
            operand = _operand(pc, targets[pc], (made[pc], places, alike), of_makers)
            found += [operand] if operand is not None else []
    return Computed(operands=tuple(found), makers=tuple(makers), of_makers=of_makers) if found else None


def _numbers(launch: RepeatedLaunch, origins: Origins) -> dict[int, Statement]:
    """Return the statements by their number in the text."""
    places = {record.statement.location(): pc for pc, record in enumerate(launch.kernel._entry.code)}
    return {places[next(iter(given.values())).operand.given.location]: given for given in origins.statements}


def _role(given: Statement) -> str:
    """Return the operand of which most elements are from no array; D is all alike, so exp(S - max) is
    constant. Empty where there is none.
    """
    computed = (role for role in "ab" if role in given and (given[role].operand.bits <= 0).mean() >= _SHARE)
    return next(computed, "")


def _shapes(makers: Mapping[int, Statement]) -> dict[int, tuple[int, int]] | None:
    """Return the shape of D of statements; None where A or B is no tile, or D is an integer."""
    found = {}
    for pc, given in makers.items():
        a, b = (given[role].tiles if role in given else None for role in "ab")
        if a is None or b is None or not a.tiles.operand.instruction.d.is_float:
            return None
        found[pc] = a.tiles.outer.shape[1], b.tiles.outer.shape[1]
    return found


def _sample(places: npt.NDArray[np.int64]) -> list[Place]:
    """Return the first executions of the first warps of a CTA."""
    cta = (places[:, :3] == places[0, :3]).all(axis=1)
    warps = np.unique(places[cta, 3])[:_WARPS]
    chosen = cta & np.isin(places[:, 3], warps) & (places[:, 4] < _TIMES)
    return [tuple(place) for place in places[chosen].tolist()]


# --- tiles of S ------------------------------------------------------------------------------------


def _operand(
    pc: int,
    given: Statement,
    found: tuple[ComputedFrom, Sequence[Place], Sequence[Traced]],
    makers: Mapping[int, Statement],
) -> ComputedOperand | None:
    made, places, traced = found
    coordinates = [_coordinates(each, makers) for each in traced]
    if any(pair is None for pair in coordinates):
        return None
    stacked = np.stack([pair for pair in coordinates if pair is not None])
    valid = np.asarray((stacked >= 0).all(axis=-1))
    if valid.mean() < _SHARE:
        return None
    role = _role(given)
    operand = _of_places(given[role].operand, places, (int(stacked[..., 0].max()) + 1, _columns(makers)))
    other = given.get("b" if role == "a" else "a")
    partner = None if other is None else other.tiles
    return ComputedOperand(
        pc=pc,
        role=role,
        statement=given,
        made=made,
        tiles=_tiles(operand, stacked, valid),
        partner=None if partner is None else _at_places(partner, places),
        traced=traced,
        places=places,
    )


def _tiles(operand: Operand, stacked: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]) -> Anchored:
    """Return the tiles of S: k runs along its columns; for B along its rows where more tiles are in order."""
    rows, columns = stacked[..., 0], stacked[..., 1]
    along = Tiles(operand=operand, outer=rows, inner=columns, valid=valid, inner_axis="columns")
    down = Tiles(operand=operand, outer=columns, inner=rows, valid=valid, inner_axis="rows")
    found = [anchored(along), *([anchored(down)] if operand.role == "b" else [])]
    return max(found, key=lambda tiles: (int(tiles.clean.sum()), _fitting(tiles)))


def _fitting(tiles: Anchored) -> int:
    """Return how many tiles have as many lines and as many k as the operand."""
    pairs = (tiles.tiles.outer, tiles.tiles.inner)
    sizes = pairs[0].shape[1:]
    spans = [values.max(axis=(1, 2)) - values.min(axis=(1, 2)) + 1 for values in pairs]
    return int(((spans[0] == sizes[0]) & (spans[1] == sizes[1])).sum())


def _coordinates(traced: Traced, makers: Mapping[int, Statement]) -> npt.NDArray[np.int64] | None:
    """Return ``(outer size, k, 2)``: row and column of S of each element; None where S has no coordinates."""
    starts = dict[tuple[int, Place], tuple[int, int]]()
    table = np.full((len(traced.of) + 1, 2), -1, np.int64)
    for number, source in enumerate(traced.of):
        key = source.pc, source.place
        if key not in starts:
            start = _start(makers[source.pc], source)
            if start is None:
                return None
            starts[key] = start
        table[number] = starts[key][0] + source.row, starts[key][1] + source.column
    found: npt.NDArray[np.int64] = table[traced.sources]
    return found


def _start(given: Statement, source: Source) -> tuple[int, int] | None:
    """Return the row of A and the column of B with which D of an execution begins."""
    starts = []
    for role in "ab":
        tiles = given[role].tiles if role in given else None
        if tiles is None:
            return None
        at = np.flatnonzero((tiles.tiles.operand.places == np.array(source.place)).all(axis=1))
        starts.append(int(tiles.outer[at[0]]))
    return starts[0], starts[1]


def _columns(makers: Mapping[int, Statement]) -> int:
    sides = [given["b"].tiles for given in makers.values() if "b" in given]
    return max(int(side.tiles.outer.max()) + 1 for side in sides if side is not None)


def _of_places(operand: Operand, places: Sequence[Place], shape: tuple[int, int]) -> Operand:
    """Return an operand of S in some executions."""
    at = _indices(operand, places)
    buffer = TracedBuffer(name=S, parameter=-1, shape=shape, dtype=np.dtype(np.float32), start=1, size=0)
    return replace(operand, given=_given(operand, at), bits=operand.bits[at], buffer=buffer)


def _given(operand: Operand, at: npt.NDArray[np.intp]) -> Any:
    given = operand.given
    return replace(given, places=given.places[at], times=given.times[at], ignores_c=given.ignores_c[at])


def _indices(operand: Operand, places: Sequence[Place]) -> npt.NDArray[np.intp]:
    number = {place: n for n, place in enumerate(map(tuple, operand.places.tolist()))}
    return np.array([number[place] for place in places], np.intp)


def _at_places(tiles: Anchored, places: Sequence[Place]) -> Anchored:
    """Return the tiles of some executions."""
    operand = tiles.tiles.operand
    at = _indices(operand, places)
    chosen = replace(
        tiles.tiles,
        operand=replace(operand, given=_given(operand, at), bits=operand.bits[at]),
        outer=tiles.tiles.outer[at],
        inner=tiles.tiles.inner[at],
        valid=tiles.tiles.valid[at],
    )
    return anchored(chosen)


# --- what an operand is computed from -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ComputedFrom:
    """``makers`` are numbers of matrix statements, ``way`` of those between, in the text's order."""

    makers: tuple[int, ...]
    way: tuple[int, ...]

    def first(self, code: Sequence[Record], *opcodes: str) -> Location | None:
        """Return the first statement on the way with one of these opcodes."""
        found = (code[pc].statement for pc in self.way if code[pc].statement.opcode in opcodes)
        return next((statement.location() for statement in found), None)

    def shown(self, code: Sequence[Record]) -> Iterator[tuple[str, Location]]:
        """Yield statements on the way that say most, the first of each opcode."""
        seen = set[str]()
        for pc in self.way:
            statement = code[pc].statement
            if statement.opcode in _TELLING and statement.opcode not in seen:
                seen.add(statement.opcode)
                yield f"on the way: {statement.opcode}", statement.location()


def computed_from(code: Sequence[Record], number: int, role: str, writers: SharedWriters) -> ComputedFrom:
    """Return what operand ``role`` of statement ``number`` is computed from."""
    registers = operand_registers(code[number].statement.operand_text or "", role)
    wanted = [(register, number) for register in registers]
    makers, way, seen = set[int](), set[int](), set[tuple[str, int]]()
    while wanted and len(seen) < _MOST:
        register, before = wanted.pop()
        pc = definer(code, before, register)
        if pc is None or (register, pc) in seen:
            continue
        seen.add((register, pc))
        if code[pc].statement.opcode in _MATRIX and not _loads(code[pc]):
            makers.add(pc)
            continue
        way.add(pc)
        wanted += _before(code, pc, writers)
    return ComputedFrom(makers=tuple(sorted(makers)), way=tuple(sorted(way)))


def _before(code: Sequence[Record], pc: int, writers: SharedWriters) -> Iterator[tuple[str, int]]:
    """Yield registers that a statement computes from, with the statement at which they are read."""
    statement = code[pc].statement
    if statement.opcode in _LOADS or _loads(code[pc]):
        for writer in writers.written_by.get(pc, ()):
            if writer >= 0 and code[writer].statement.opcode in ("st", "stmatrix"):
                _, stored = split_registers(code[writer].statement.operand_text or "")
                yield from ((register, writer) for register in stored)
        return
    written, read = split_registers(statement.operand_text or "")
    yield from ((register, pc) for register in read if register not in written or len(written) == 1)


def _loads(record: Record) -> bool:
    return record.statement.opcode == "wmma" and "load" in record.statement.mnemonic
