"""LLVM text of a basic block's function: one loop over the lanes of a wave.

    i64 basic_block(ptr objects, i64 lanes, ptr numbers, ptr report)

``objects`` are arrays of NumPy, as addresses of their Python objects, in the order of ``Places``; each has an
element for each lane, but memories and tables. ``numbers`` are words of 64 bits: what is the same in all
lanes, then those of each load (``LOAD_WORDS``). It returns 0; or bits that say why the results are void: a
load left its memory, of which ``report`` has the lowest address of each; something is said of a value; or an
array has another shape than (lanes,), or gaps between its elements.

Knows semantics of statements; does not know waves, or what becomes of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..bind.pure_semantics import NOWHERE, Load, PureSemantics, Source
from .array_layout import prologue
from .instructions import Instructions, type_of
from .traced import Node, Untraceable, traced

LEFT, SAID, APART = 1, 2, 4  # bits of what a function returns
MOST_LOADS = 32
_ATTRIBUTES = 'nounwind "no-builtins"'  # loops that fill arrays do not become calls of a library
# Of a load: the address at which its memory begins, how far behind that its last word may begin, the byte of
# the array at which the memory begins, and of local memory the bytes of a lane.
LOAD_WORDS = ("first", "last", "byte", "stride")

DTypes = Sequence[np.dtype[Any]]  # of registers, by number


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A statement of a function: its semantics, and its guard, -1 for none."""

    semantics: PureSemantics
    guard: int = NOWHERE
    negated: bool = False


@dataclass(kw_only=True)
class Places:
    """The arrays and numbers that a function takes, in their order.

    ``reads`` are the registers that it reads before it writes them; ``olds`` those of which it needs what
    they held before, since a guard leaves it in some lanes. Of the ``guarded`` among the ``outputs`` it
    writes, too, in which lanes they were written. ``mask`` says that the active lanes are wanted.
    """

    reads: list[int] = field(default_factory=list)
    olds: list[int] = field(default_factory=list)
    apart: list[Source] = field(default_factory=list)  # arrays that are in no register
    outputs: list[int] = field(default_factory=list)
    guarded: list[int] = field(default_factory=list)
    merged: list[int] = field(default_factory=list)  # of ``olds`` those that are read afterwards
    loads: list[tuple[int, Load, Source]] = field(default_factory=list)  # with the number of their piece
    offsets: list[int] = field(default_factory=list)  # loads of which it writes where they loaded from,
    ran: list[int] = field(default_factory=list)  # and, of those with a guard, in which lanes
    bases: bool = False  # whether the first byte of the shared memory of each lane's CTA is wanted
    mask: bool = False
    scalars: list[Source] = field(default_factory=list)
    tables: list[np.ndarray[Any, Any]] = field(default_factory=list)
    text: str = ""


class Uncompiled(Exception):
    """A statement has no machine code: ``place`` is its number among the pieces."""

    def __init__(self, place: int, why: str) -> None:
        super().__init__(why)
        self.place = place


_READ = "false"  # the lanes in which a register is written that was only read


@dataclass(slots=True)
class _Value:
    """A register in the loop: its value, and the lanes in which it was written, None for all."""

    name: str
    written: str | None = None


class Writer:
    """Writes the function of some pieces; ``scalar`` says which sources are the same in all lanes."""

    def __init__(self, dtypes: DTypes, scalar: Sequence[Source], observed: bool) -> None:
        self.dtypes, self.observed = dtypes, observed
        self.places = Places()
        self.code = Instructions()
        self.values: dict[int, _Value] = {}
        self.scalar = {id(source) for source in scalar}
        self._parameters: list[str] = []  # pointers of arrays, in the order of the objects
        self._active: str | None = None
        self._left: list[str] = []
        self._said: list[str] = []
        self._lowest: list[str] = []
        self._offsets: list[str] = []
        self._ran: list[str | None] = []

    def write(self, pieces: Sequence[Piece]) -> Places:
        """Return what the function takes, and its text. Raises Uncompiled."""
        for place, piece in enumerate(pieces):
            try:
                self._piece(place, piece)
            except Untraceable as error:
                raise Uncompiled(place, str(error)) from None
        self._outputs()
        self.places.tables = self.code.tables
        self.places.text = self._text()
        return self.places

    # --- statements ---

    def _piece(self, place: int, piece: Piece) -> None:
        guard = None if piece.guard == NOWHERE else self._guard(piece)
        semantics = piece.semantics
        if semantics.load is not None:
            results = self._load(place, semantics.load, semantics.sources[0], guard)
        else:
            results = self._compute(semantics, guard)
        for number, target in enumerate(semantics.targets):
            if target != NOWHERE:
                self._assign(
                    target, results[number], semantics.widened[number] if semantics.widened else None, guard
                )

    def _guard(self, piece: Piece) -> str:
        value = self.register(piece.guard)
        return self.code.add(f"xor i1 {value}, true") if piece.negated else value

    def _compute(self, semantics: PureSemantics, guard: str | None) -> list[tuple[str, np.dtype[Any]]]:
        sources = [self._source(source) for source in semantics.sources]
        names = [name for name, _ in sources]
        if semantics.compute is None:
            return sources
        given = [
            dtype if source.constant is None else source.constant
            for source, (_, dtype) in zip(semantics.sources, sources, strict=True)
        ]
        nodes, said = _operations(semantics, given)
        found = self.code.results((*nodes, *said), names)
        self._said += [self._among_active(name, guard) for name in found[len(nodes) :]]
        return [(name, node.dtype) for name, node in zip(found, nodes, strict=False)]

    def _source(self, source: Source) -> tuple[str, np.dtype[Any]]:
        """Return the value of a source and its type."""
        if source.constant is not None:
            dtype = source.constant.dtype
            return self.code.constant(source.constant[()], dtype), dtype
        if source.read is not None:
            return self._run_time_value(source)
        name, dtype = self.register(source.register), self.dtypes[source.register]
        if source.dtype is not None and source.dtype != dtype:
            name = self.code.add(f"trunc {type_of(dtype)} {name} to {type_of(source.dtype)}")
            dtype = source.dtype
        if source.negated:
            name = self.code.add(f"xor i1 {name}, true")
        return name, dtype

    def _run_time_value(self, source: Source) -> tuple[str, np.dtype[Any]]:
        """Return what is in no register: a number, or an array, whose type is that of ``source.dtype``."""
        assert source.dtype is not None
        if id(source) in self.scalar:
            number = len(self.places.scalars)
            self.places.scalars.append(source)
            return self._narrow(f"%number{number}", source.dtype), source.dtype
        number = len(self.places.apart)
        self.places.apart.append(source)
        return self._element(f"%apart{number}", source.dtype), source.dtype

    def _narrow(self, name: str, dtype: np.dtype[Any]) -> str:
        kind = type_of(dtype)
        return name if kind == "i64" else self.code.add(f"trunc i64 {name} to {kind}")

    def _element(self, pointer: str, dtype: np.dtype[Any]) -> str:
        """Return a lane's element of an array; predicates are bytes there."""
        kind = "i8" if dtype.kind == "b" else type_of(dtype)
        where = self.code.add(f"getelementptr {kind}, ptr {pointer}, i64 %lane")
        found = self.code.add(f"load {kind}, ptr {where}")
        return self.code.add(f"trunc i8 {found} to i1") if dtype.kind == "b" else found

    def register(self, number: int) -> str:
        """Return the value of a register."""
        known = self.values.get(number)
        if known is None:
            self.places.reads.append(number)
            known = self.values[number] = _Value(self._element(f"%read{number}", self.dtypes[number]))
            known.written = _READ
        elif known.written not in (None, _READ) and number not in self.places.merged:
            self.places.merged.append(number)
        return known.name

    def _old(self, number: int) -> _Value:
        """Return what a register holds that is written in some lanes."""
        known = self.values.get(number)
        if known is None:
            self.places.olds.append(number)
            known = _Value(self._element(f"%old{number}", self.dtypes[number]), _READ)
        return known

    def _assign(
        self, target: int, result: tuple[str, np.dtype[Any]], widening: Any, guard: str | None
    ) -> None:
        name, dtype = result
        if widening is not None:
            instruction = "sext" if widening.value.kind == "i" else "zext"
            kinds = type_of(widening.value), type_of(widening.register)
            name = self.code.add(f"{instruction} {kinds[0]} {name} to {kinds[1]}")
        elif type_of(dtype) != type_of(self.dtypes[target]):
            raise Untraceable(f"a result of {dtype} in a register of {self.dtypes[target]}")
        if guard is None:
            self.values[target] = _Value(name)
            return
        old, kind = self._old(target), type_of(self.dtypes[target])
        active = self._among_active(guard, None)
        chosen = self.code.add(f"select i1 {active}, {kind} {name}, {kind} {old.name}")
        written = old.written
        if written is not None:
            written = active if written == _READ else self.code.add(f"or i1 {written}, {active}")
        self.values[target] = _Value(chosen, written)

    # --- loads ---

    def _among_active(self, condition: str, guard: str | None) -> str:
        """Return a condition, of the lanes that execute a statement."""
        if self._active is None:
            self.places.mask = True
            self._active = self._element("%active", np.dtype(np.bool_))
        both = self.code.add(f"and i1 {condition}, {self._active}")
        return both if guard is None else self.code.add(f"and i1 {both}, {guard}")

    def _load(
        self, place: int, load: Load, source: Source, guard: str | None
    ) -> list[tuple[str, np.dtype[Any]]]:
        number = len(self.places.loads)
        if number == MOST_LOADS:
            raise Untraceable(f"more than {MOST_LOADS} loads")
        self.places.loads.append((place, load, source))
        code, bytes_ = self.code, load.size * load.words
        address = self._address(load, source)
        where = code.add(f"sub i64 {address}, %first{number}")
        inside = code.add(f"icmp ule i64 {where}, %last{number}")
        low = code.add(f"and i64 {address}, {bytes_ - 1}")
        aligned = code.add(f"icmp eq i64 {low}, 0")
        right = code.add(f"and i1 {inside}, {aligned}")
        active = self._among_active("true", guard)
        wrong = code.add(f"xor i1 {right}, true")
        self._left.append(code.add(f"and i1 {wrong}, {active}"))
        self._lowest.append(code.add(f"select i1 {active}, i64 {address}, i64 -1"))
        allowed = code.add(f"and i1 {right}, {active}")
        self._ran.append(None if guard is None else active)
        return self._words(load, number, allowed, where)

    def _words(self, load: Load, number: int, allowed: str, where: str) -> list[tuple[str, np.dtype[Any]]]:
        """Return the words of a load; lanes that must not load take those where the memory begins."""
        code, dtype = self.code, np.dtype(f"u{load.size}")
        kind = type_of(dtype)
        place = code.add(f"add i64 {where}, %byte{number}")
        if load.space in ("shared", "local"):
            place = code.add(f"add i64 {place}, {self._base(load.space, number)}")
        place = code.add(f"select i1 {allowed}, i64 {place}, i64 %byte{number}")
        self._offsets.append(place)
        found = list[tuple[str, np.dtype[Any]]]()
        for word in range(load.words):
            at = code.add(f"add i64 {place}, {word * load.size}") if word else place
            pointer = code.add(f"getelementptr i8, ptr %memory{number}, i64 {at}")
            value = code.add(f"load {kind}, ptr {pointer}, align 1")
            found.append((code.add(f"select i1 {allowed}, {kind} {value}, {kind} 0"), dtype))
        return found

    def _address(self, load: Load, source: Source) -> str:
        """Return the address of each lane; of 32 bits it is unsigned, and its sum with the offset wraps."""
        name, dtype = self._source(source)
        if load.narrow:
            name = self.code.add(f"add i32 {name}, {load.offset}") if load.offset else name
            return self.code.add(f"zext i32 {name} to i64")
        if dtype.itemsize != 8:
            name = self.code.add(f"zext {type_of(dtype)} {name} to i64")
        return self.code.add(f"add i64 {name}, {load.offset}") if load.offset else name

    def _base(self, space: str, number: int) -> str:
        """Return the first byte of a lane's own memory."""
        if space == "shared":
            self.places.bases = True
            return self._element("%base", np.dtype(np.int64))
        return self.code.add(f"mul i64 %lane, %stride{number}")

    # --- the function ---

    def _outputs(self) -> None:
        """Store what registers hold at the end."""
        for number, value in self.values.items():
            if value.written == _READ:
                continue
            self.places.outputs.append(number)
            self._store(f"%out{number}", value.name, self.dtypes[number])
            if value.written is not None:
                self.places.guarded.append(number)
                self._store(f"%written{number}", value.written, np.dtype(np.bool_))
        for number, (offset, ran) in enumerate(zip(self._offsets, self._ran, strict=True)):
            if self.observed:
                self.places.offsets.append(number)
                self._store(f"%offset{number}", offset, np.dtype(np.int64))
            if self.observed and ran is not None:
                self.places.ran.append(number)
                self._store(f"%ran{number}", ran, np.dtype(np.bool_))

    def _store(self, pointer: str, name: str, dtype: np.dtype[Any]) -> None:
        kind = type_of(dtype)
        if dtype.kind == "b":
            name, kind = self.code.add(f"zext i1 {name} to i8"), "i8"
        where = self.code.add(f"getelementptr {kind}, ptr {pointer}, i64 %lane")
        self.code.do(f"store {kind} {name}, ptr {where}")

    def _arrays(self) -> list[tuple[str, int]]:
        """Return the names of the arrays in the order of the objects, and bytes of elements that must lie one
        behind the other, 0 for memories and tables.
        """
        places, sizes = self.places, {number: dtype.itemsize for number, dtype in enumerate(self.dtypes)}
        found = [(f"%read{number}", sizes[number]) for number in places.reads]
        found += [(f"%old{number}", sizes[number]) for number in places.olds]
        apart = [source.dtype.itemsize for source in places.apart if source.dtype is not None]
        found += [(f"%apart{number}", size) for number, size in enumerate(apart)]
        found += [("%active", 1)] * places.mask + [("%base", 8)] * places.bases
        found += [(f"%memory{number}", 0) for number in range(len(places.loads))]
        found += [(f"%table{number}", 0) for number in range(len(places.tables))]
        return [*found, *self._written_arrays()]

    def _written_arrays(self) -> list[tuple[str, int]]:
        found = [(f"%out{number}", 0) for number in self.places.outputs]
        found += [(f"%written{number}", 0) for number in self.places.guarded]
        found += [(f"%offset{number}", 0) for number in self.places.offsets]
        return found + [(f"%ran{number}", 0) for number in self.places.ran]

    def _numbers(self) -> list[str]:
        loads = range(len(self.places.loads))
        found = [f"%number{number}" for number in range(len(self.places.scalars))]
        return found + [f"%{word}{load}" for load in loads for word in LOAD_WORDS]

    def _text(self) -> str:
        arrays, numbers = self._arrays(), self._numbers()
        written = {name for name, _ in self._written_arrays()}
        pointers = [
            f"ptr noalias {'writeonly' if name in written else 'readonly'} {name}" for name, _ in arrays
        ]
        parameters = ", ".join([*pointers, "i64 %lanes", *(f"i64 {name}" for name in numbers), "ptr %report"])
        passed = [f"ptr {name}" for name, _ in arrays]
        passed += ["i64 %lanes", *(f"i64 {name}" for name in numbers), "ptr %report"]
        lines = [
            *self.code.declared,
            "declare i64 @llvm.umin.i64(i64, i64)",
            f"define internal i64 @lanes({parameters}) {_ATTRIBUTES} {{",
            *self._loop(),
            "}",
            f"define i64 @basic_block(ptr %objects, i64 %lanes, ptr %numbers, ptr %report) {_ATTRIBUTES} {{",
            *prologue(arrays, numbers),
            f"  %found = call i64 @lanes({', '.join(passed)})",
            "  ret i64 %found",
            "gaps:",
            f"  ret i64 {APART}",
            "}",
        ]
        return "\n".join(lines)

    def _loop(self) -> list[str]:
        """Return the loop over lanes, with what is gathered of all of them."""
        left, said, lowest = self._any_of_lanes()
        lines = ["entry:", "  br label %loop", "loop:"]
        lines.append("  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]")
        lines.append(f"  %left = phi i8 [ 0, %entry ], [ {left}, %loop ]")
        lines.append(f"  %said = phi i8 [ 0, %entry ], [ {said}, %loop ]")
        for number, name in enumerate(lowest):
            lines.append(f"  %low{number} = phi i64 [ -1, %entry ], [ {name}, %loop ]")
        lines += self.code.lines
        lines += ["  %next = add nuw i64 %lane, 1", "  %more = icmp ult i64 %next, %lanes"]
        lines += ["  br i1 %more, label %loop, label %end", "end:"]
        for number, name in enumerate(lowest):
            lines.append(f"  %place{number} = getelementptr i64, ptr %report, i64 {number}")
            lines.append(f"  store i64 {name}, ptr %place{number}")
        lines += [f"  %both = or i8 {left}, {said}", "  %wide = zext i8 %both to i64", "  ret i64 %wide"]
        return lines

    def _any_of_lanes(self) -> tuple[str, str, list[str]]:
        """Return the values at the end of a round of what all lanes are asked for."""
        left, said = "%left", "%said"
        for condition in self._left:
            bit = self.code.add(f"select i1 {condition}, i8 {LEFT}, i8 0")
            left = self.code.add(f"or i8 {left}, {bit}")
        for condition in self._said:
            bit = self.code.add(f"select i1 {condition}, i8 {SAID}, i8 0")
            said = self.code.add(f"or i8 {said}, {bit}")
        lowest = [
            self.code.add(f"call i64 @llvm.umin.i64(i64 %low{number}, i64 {name})")
            for number, name in enumerate(self._lowest)
        ]
        return left, said, lowest


def _operations(semantics: PureSemantics, given: Sequence[Any]) -> tuple[tuple[Node, ...], list[Node]]:
    """Return the operations of the results, and of the mask of lanes that need the interpreter."""
    where, compute, count = semantics.where, semantics.compute, len(semantics.targets)
    assert compute is not None

    def both(*sources: Any) -> tuple[Any, ...]:
        results = compute(*sources)
        return (*results[:count], *(() if where is None else (where(sources, results),)))

    nodes, refused = traced(both, given)
    return nodes[:count], [*nodes[count:], *refused]
