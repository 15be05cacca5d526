"""Random programs of guarded statements of every row, as machine code and as NumPy executes them.

A program has registers of its own. Its first statement is of a wanted row, others choose bits, compare, load
or are of any row; a result often replaces a source, and sources are often constants of one pattern of bits.
Several programs become one function: LLVM takes as long for one as for eight. Each lane is compared but those
that machine code leaves to integers of Python. Knows rows and semantics; does not know waves.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.helpers.opcode_values import arrays_of, lanes_of, nasty
from warpsim.machine.bind.pure_semantics import NOWHERE, Load, PureSemantics, Source, Widening
from warpsim.machine.bind.value_types import dtype_of
from warpsim.machine.native import objects
from warpsim.machine.native.lane_functions import LOAD_WORDS, SAID, Piece, Places, Uncompiled, Writer
from warpsim.machine.native.objects import NoCompiler
from warpsim.machine.native.traced import Node, Untraceable, traced
from warpsim.machine.native.wrong_folds import WRONG_FOLDS
from warpsim.machine.opcodes import rows
from warpsim.machine.opcodes.effect import Effect
from warpsim.machine.opcodes.floating import doubles
from warpsim.machine.opcodes.operation import Operation, Row

Function = Callable[[str], Any]  # of the text of a function, callable as machine/native has it
_WORDS = (np.uint16, np.uint32, np.uint64)
_CHOOSING = frozenset(
    {"and", "or", "xor", "not", "lop3", "selp", "slct", "copysign", "bfi", "prmt", "set", "mov"}
)
SHORT = 20  # operations of NumPy of rows that most programs are made of: LLVM takes long for others
_TOGETHER = 8  # programs in one function
_MEMORY = 256  # bytes that loads find
_FIRST = 0x7000_0000  # the address of the first of them


@cache
def traced_rows(longest: int = 1 << 20) -> tuple[Row, ...]:
    """Return the rows that machine code can take, of not more than so many operations of NumPy."""
    scalar = [row for group in rows().values() for row in group if not isinstance(row, Effect)]
    return tuple(row for row in scalar if 0 < length_of(row) <= longest)


@cache
def length_of(row: Row) -> int:
    """Return of how many operations of NumPy the first form of a row consists, 0 where it has no trace."""
    operation = row.build(*forms_of(row)[0])
    names = (*operation.sources, *(("pred",) if operation.reads_carry else ()))
    types: list[Any] = [dtype_of(name) for name in names]
    for place in operation.constants:
        types[place] = np.asarray(types[place].type(0xE2))
    try:
        pending, found = [*traced(operation.compute, types)[0]], set[Node]()
    except Untraceable:
        return 0
    while pending:
        node = pending.pop()
        pending += () if node in found else node.arguments
        found.add(node)
    return len(found)


@cache
def forms_of(row: Row) -> tuple[tuple[str, ...], ...]:
    """Return the choices of modifiers of all forms of a row."""
    return tuple(row.forms())


def refused_lanes(operation: Operation, given: Sequence[np.ndarray], lanes: int) -> np.ndarray:
    """Return lanes that integers of Python compute, which machine code does not."""
    found, repaired = np.zeros(lanes, np.bool_), doubles._repaired

    def noted(bits: np.ndarray, refused: np.ndarray, *more: Any) -> np.ndarray:
        found[:] |= refused
        return repaired(bits, refused, *more)

    with patch.object(doubles, "_repaired", noted):
        operation.compute(*given)
    return found


@dataclass
class Program:
    """Statements on registers ``first`` and following; ``content`` is what these hold at first."""

    first: int
    lanes: int
    pieces: list[Piece] = field(default_factory=list)
    operations: list[Operation | None] = field(default_factory=list)  # of the pieces; None of loads and moves
    content: list[np.ndarray] = field(default_factory=list)
    opcodes: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def register(self, values: np.ndarray) -> int:
        """Add a register, and return its number."""
        self.content.append(values)
        return self.first + len(self.content) - 1

    def of_type(self, dtype: Any) -> list[int]:
        """Return the registers of a type."""
        return [self.first + place for place, item in enumerate(self.content) if item.dtype == dtype]


class Maker:
    """Makes programs at random; ``among`` are the rows that they have."""

    def __init__(self, random: Random, among: Sequence[Row], lanes: int) -> None:
        self.random, self.lanes = random, lanes
        self.among = among
        self.choosing = [row for row in among if row.opcode in _CHOOSING]

    def program(self, first: int, wanted: Row) -> Program:
        """Return a program whose first statement is of a row."""
        random = self.random
        program = Program(first=first, lanes=self.lanes)
        for _ in range(2):
            program.register(self._values("pred"))
        self._statement(program, wanted)
        for _ in range(random.randrange(4)):
            kind = random.random()
            if kind < 0.4:
                self._chosen_bits(program)
            elif kind < 0.65:
                self._statement(program, random.choice(self.choosing))
            elif kind < 0.75:
                self._load(program)
            else:
                self._statement(program, random.choice(self.among))
        return program

    def _values(self, type_name: str) -> np.ndarray:
        """Return nasty and random values of a type."""
        operation = Operation(results=(), sources=(type_name,), compute=lambda: ())
        return arrays_of(operation, lanes_of(operation, f"{self.random.random()}", self.lanes))[0]

    def _constant(self, type_name: str) -> np.ndarray:
        """Return a constant: a run of bits, its complement, some bits, or what is nasty in the type."""
        dtype, random = dtype_of(type_name), self.random
        if dtype.kind == "b":
            return np.asarray(np.bool_(random.getrandbits(1)))
        bits, kind = 8 * dtype.itemsize, random.random()
        run = ((1 << random.randint(1, bits)) - 1) << random.randrange(bits)
        value = run if kind < 0.5 else random.getrandbits(bits)
        if kind > 0.75:
            value = random.choice(nasty(type_name.partition("x")[0]))
        value = ~value if random.random() < 0.5 else value
        return np.asarray(dtype.type(value & ((1 << bits) - 1)))

    def _guard(self, program: Program) -> dict[str, Any]:
        if self.random.random() < 0.2:
            return {"guard": NOWHERE}
        guard = self.random.choice(program.of_type(np.bool_))
        return {"guard": guard, "negated": self.random.random() < 0.3}

    def _source(self, program: Program, type_name: str) -> Source:
        """Return a register, or the low part of a wider one."""
        random, dtype = self.random, dtype_of(type_name)
        wide = [item for item in _WORDS if np.dtype(item).itemsize > dtype.itemsize and dtype.kind != "b"]
        if wide and random.random() < 0.15:
            return Source(register=self._register(program, random.choice(wide), type_name), dtype=dtype)
        negated = dtype.kind == "b" and random.random() < 0.3
        return Source(register=self._register(program, dtype, type_name), negated=negated)

    def _register(self, program: Program, dtype: Any, type_name: str) -> int:
        known = program.of_type(dtype)
        if len(known) < 2 or self.random.random() < 0.25:
            return program.register(self._values(type_name).astype(dtype))
        return self.random.choice(known)

    def _target(
        self, program: Program, sources: Sequence[Source], type_name: str
    ) -> tuple[int, Widening | None]:
        """Return where a result goes, most often a source's register; a short one widened at times."""
        random, dtype = self.random, dtype_of(type_name)
        if dtype.itemsize < 4 and dtype.kind != "b" and random.random() < 0.3:
            signed = random.random() < 0.5
            kind = "i" if signed else "u"
            widening = Widening(value=np.dtype(f"{kind}{dtype.itemsize}"), register=np.dtype(f"{kind}4"))
            return self._register(program, np.dtype(np.uint32), "b32"), widening
        registers = set(program.of_type(dtype))
        same = [source.register for source in sources if source.register in registers]
        if same and random.random() < 0.7:
            return random.choice(same), None
        return self._register(program, dtype, type_name), None

    def _statement(self, program: Program, row: Row) -> None:
        """Add a statement of a row."""
        operation = row.build(*self.random.choice(forms_of(row)))
        carry = ("pred",) if operation.reads_carry else ()
        sources = list[Source]()
        for place, name in enumerate((*operation.sources, *carry)):
            if place in operation.constants or (
                place < len(operation.sources) and self.random.random() < 0.3
            ):
                value = self._constant(name)
                sources.append(Source(read=lambda wave, path, value=value: value, constant=value))
            else:
                sources.append(self._source(program, name))
        names = (*operation.results, *(("pred",) if operation.writes_carry else ()))
        targets = [self._target(program, sources, name) for name in names]
        semantics = PureSemantics(
            operation.compute,
            tuple(sources),
            tuple(number for number, _ in targets),
            widened=tuple(widened for _, widened in targets),
            where=operation.where,
        )
        self._add(program, semantics, operation, row)

    def _chosen_bits(self, program: Program) -> None:
        """Add statements that take the bits of a constant mask of one register and the others of another."""
        random, name = self.random, self.random.choice(("b16", "b32", "b64"))
        dtype = dtype_of(name)
        left, right = (self._register(program, dtype, name) for _ in "xy")
        parts = [self._register(program, dtype, name) for _ in "xy"]
        target = random.choice((left, right))
        mask = self._constant(name)
        guard = self._guard(program)
        for part, register, value in zip(parts, (left, right), (mask, ~mask), strict=True):
            constant = np.asarray(dtype.type(value))
            known = Source(read=lambda wave, path, value=constant: value, constant=constant)
            given = [Source(register=register), known]
            random.shuffle(given)
            self._add(
                program, PureSemantics(lambda a, b: (a & b,), tuple(given), (part,)), None, None, **_NO_GUARD
            )
        given = [Source(register=part) for part in parts]
        random.shuffle(given)
        combine = random.choice((lambda a, b: (a | b,), lambda a, b: (a ^ b,), lambda a, b: (a + b,)))
        self._add(program, PureSemantics(combine, tuple(given), (target,)), None, None, **guard)
        if random.random() < 0.7:  # and temporaries that nothing reads afterwards
            zero = np.asarray(dtype.type(0))
            cleared = Source(read=lambda wave, path: zero, constant=zero)
            for part in parts:
                self._add(program, PureSemantics(None, (cleared,), (part,)), None, None, **_NO_GUARD)

    def _load(self, program: Program) -> None:
        """Add a load, at an address that lies within the memory."""
        random = self.random
        size, words = random.choice(((1, 1), (2, 1), (4, 1), (4, 2), (8, 1), (8, 2)))
        narrow = random.random() < 0.3
        dtype = np.dtype(np.uint32 if narrow else np.uint64)
        places = _MEMORY // (size * words)
        values = [_FIRST + size * words * random.randrange(places) for _ in range(self.lanes)]
        address = program.register(np.array(values, dtype))
        offset = 0
        if random.random() < 0.5:
            offset = random.choice((8, 64, 4096))
            program.content[-1] -= dtype.type(offset)
        kind, target = f"b{8 * size}", PureSemantics(None, (Source(register=address),), ())
        widened: tuple[Widening | None, ...] = ()
        if size < 4 and random.random() < 0.5:
            sign = random.choice("iu")
            widened = (Widening(value=np.dtype(f"{sign}{size}"), register=np.dtype(f"{sign}4")),)
            targets = [self._register(program, np.dtype(np.uint32), "b32")]
        else:
            targets = [self._register(program, dtype_of(kind), kind) for _ in range(words)]
        load = Load(space="global", size=size, words=words, offset=offset, narrow=narrow)
        self._add(program, target._replace(targets=tuple(targets), widened=widened, load=load), None, None)

    def _add(
        self,
        program: Program,
        semantics: PureSemantics,
        operation: Operation | None,
        row: Row | None,
        **guard: Any,
    ) -> None:
        program.pieces.append(Piece(semantics=semantics, **(guard or self._guard(program))))
        program.operations.append(operation)
        program.opcodes.append("" if row is None else row.opcode)
        program.rows += [] if row is None else [row]


_NO_GUARD = {"guard": NOWHERE}


# --- as NumPy executes them ---------------------------------------------------------------------------------


@dataclass
class Executed:
    """Registers of a program after it, in which lanes each was written, in which lanes its values are those
    of machine code, and whether something is said.
    """

    values: list[np.ndarray]
    written: list[np.ndarray]
    known: np.ndarray
    said: bool = False


def executed(program: Program, active: np.ndarray, memory: np.ndarray) -> Executed:
    """Execute a program, statement by statement, in the active lanes."""
    values = [item.copy() for item in program.content]
    done = Executed(values, [np.zeros(active.size, np.bool_) for _ in values], np.ones(active.size, np.bool_))
    for piece, operation in zip(program.pieces, program.operations, strict=True):
        runs = active
        if piece.guard != NOWHERE:
            runs = active & (values[piece.guard - program.first] ^ piece.negated)
        given = [_given(source, program, values) for source in piece.semantics.sources]
        results = _results(piece.semantics, operation, given, memory, runs)
        if operation is not None:
            refused = refused_lanes(operation, given, active.size) & runs
            if all(source.constant is not None for source in piece.semantics.sources):
                refused[:] = False  # computed once, exactly, when the code is made
            where = np.zeros((), np.bool_) if operation.where is None else operation.where(given, results)
            done.said |= bool(refused.any() or (where & runs).any())
            done.known &= ~refused
        _assign(done, piece.semantics, results, runs, program.first)
    return done


def _given(source: Source, program: Program, values: list[np.ndarray]) -> np.ndarray:
    if source.constant is not None:
        return source.constant
    value = values[source.register - program.first]
    value = value if source.dtype is None else value.astype(source.dtype)
    return ~value if source.negated else value


def _results(
    semantics: PureSemantics,
    operation: Operation | None,
    given: list[np.ndarray],
    memory: np.ndarray,
    runs: np.ndarray,
) -> Sequence[np.ndarray]:
    if semantics.load is None:
        return given if semantics.compute is None else semantics.compute(*given)
    bits = 32 if semantics.load.narrow else 64
    places = [(int(value) + semantics.load.offset) % (1 << bits) - _FIRST for value in given[0].tolist()]
    words = memory.view(f"u{semantics.load.size}")
    first = np.where(runs, np.array(places) // semantics.load.size, 0)
    return [words[first + word] for word in range(semantics.load.words)]


def _assign(
    done: Executed, semantics: PureSemantics, results: Sequence[np.ndarray], runs: np.ndarray, first: int
) -> None:
    widened = semantics.widened or (None,) * len(semantics.targets)
    for target, result, widening in zip(semantics.targets, results, widened, strict=False):
        value = np.broadcast_to(result, runs.shape)
        if widening is not None:
            value = value.view(widening.value).astype(widening.register).view(np.uint32)
        np.copyto(done.values[target - first], value, where=runs)
        done.written[target - first] |= runs


def loaded(text: str) -> Any:
    """Return the function of a text, as a process has it that keeps nothing."""
    compiler = objects._compiler()
    assert compiler is not None
    name = f"gate_{next(_NUMBERS)}"
    content = compiler.compiled(text.replace("@basic_block", f"@{name}"))
    assert compiler.narrow is None or not _MASKED.search(content), "a VPTERNLOG with a mask was emitted"
    return compiler.loaded(content, name)


_NUMBERS = count()
_MASKED = WRONG_FOLDS["VPTERNLOG with a mask"]


# --- both ---------------------------------------------------------------------------------------------------


@dataclass
class Gate:
    """Compares programs as ``function`` and as NumPy execute them; counts what was compared."""

    function: Function = loaded
    counts: Counter[str] = field(default_factory=Counter)
    rows: set[Row] = field(default_factory=set)
    opcodes: set[str] = field(default_factory=set)
    without: set[str] = field(default_factory=set)  # opcodes of which a form has no machine code
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shown = ("programs", "statements", "guarded", "loads", "lanes")
        counts = ", ".join(f"{self.counts[name]:,} {name}" for name in shown)
        return f"{counts}; {len(self.rows)} rows of {len(self.opcodes)} opcodes; {len(self.wrong)} wrong"

    def run(self, random: Random, programs: int, wanted: Sequence[Row]) -> None:
        """Compare so many programs: first one for each of some rows, then of short rows."""
        left = [*wanted]
        random.shuffle(left)
        for _ in range(0, programs, _TOGETHER):
            chosen = [left.pop() if left else random.choice(traced_rows(SHORT)) for _ in range(_TOGETHER)]
            self.compare(random, chosen)

    def compare(self, random: Random, wanted: Sequence[Row]) -> None:
        """Compare a program for each of some rows, which become one function together."""
        lanes = random.choice((33, 64, 96, 130))
        maker, programs, first = Maker(random, traced_rows(SHORT), lanes), list[Program](), 0
        for row in wanted:
            programs.append(maker.program(first, row))
            first += len(programs[-1].content)
        active = np.ones(lanes, np.bool_)
        if random.random() < 0.5:
            active = np.array([random.random() < 0.8 for _ in range(lanes)])
        memory = np.frombuffer(random.randbytes(_MEMORY), np.uint8).copy()
        self._compare(programs, active, memory)

    def _compare(self, programs: list[Program], active: np.ndarray, memory: np.ndarray) -> None:
        if not programs:
            return
        try:
            answer, places, made = self._called(programs, active, memory)
        except Uncompiled as error:
            self._left_out(programs, error.place, active, memory)
            return
        except NoCompiler:  # a processor that lacks an instruction
            half = len(programs) // 2
            if half:
                self._compare(_renumbered(programs[:half]), active, memory)
                self._compare(_renumbered(programs[half:]), active, memory)
            else:
                self.without |= {*filter(None, programs[0].opcodes)}
            return
        said = 0
        for program in programs:
            done = executed(program, active, memory)
            said |= SAID * done.said
            self._judge(program, done, places, made, active)
        if answer != said:
            self.wrong.append(f"returns {answer}, not {said}: {[program.opcodes for program in programs]}")

    def _left_out(self, programs: list[Program], place: int, active: np.ndarray, memory: np.ndarray) -> None:
        """Compare all but the program of a statement that has no machine code."""
        ends = np.cumsum([len(program.pieces) for program in programs])
        number = int(np.searchsorted(ends, place, side="right"))
        program = programs[number]
        self.without.add(program.opcodes[place - int(ends[number]) + len(program.pieces)])
        self._compare(_renumbered(programs[:number] + programs[number + 1 :]), active, memory)

    def _called(
        self, programs: list[Program], active: np.ndarray, memory: np.ndarray
    ) -> tuple[int, Places, dict[tuple[str, int], np.ndarray]]:
        content = [item for program in programs for item in program.content]
        pieces = [piece for program in programs for piece in program.pieces]
        places = Writer([item.dtype for item in content], (), False).write(pieces)
        made = {("value", number): np.empty_like(content[number]) for number in places.outputs}
        made |= {("written", number): np.empty(active.size, np.bool_) for number in places.guarded}
        objects = [content[number] for number in (*places.reads, *places.olds)]
        objects += [active] * places.mask + [memory] * len(places.loads) + [*places.tables, *made.values()]
        numbers = list[int]()
        for _, load, _ in places.loads:
            numbers += (_FIRST, _MEMORY - load.size * load.words, 0, 0)
        assert len(numbers) == len(LOAD_WORDS) * len(places.loads)
        answer = self.function(places.text)(
            (ctypes.c_size_t * len(objects))(*map(id, objects)),
            active.size,
            (ctypes.c_uint64 * (len(numbers) + 1))(*numbers),
            (ctypes.c_uint64 * (len(places.loads) + 1))(),
        )
        return answer, places, made

    def _judge(self, program: Program, done: Executed, places: Places, made: Any, active: np.ndarray) -> None:
        self.counts["programs"] += 1
        self.counts["statements"] += len(program.pieces)
        self.counts["guarded"] += sum(piece.guard != NOWHERE for piece in program.pieces)
        self.counts["loads"] += sum(piece.semantics.load is not None for piece in program.pieces)
        self.rows |= {*program.rows}
        self.opcodes |= {*filter(None, program.opcodes)}
        lanes = active & done.known
        for number in range(program.first, program.first + len(program.content)):
            pairs = {("value", number): done.values, ("written", number): done.written}
            for key, wanted in pairs.items():
                found = made.get(key)
                if found is None:
                    continue
                self.counts["lanes"] += int(lanes.sum())
                differ = np.flatnonzero((found != wanted[number - program.first]) & lanes)
                if differ.size:
                    lane = int(differ[0])
                    right = int(wanted[number - program.first][lane])
                    self.wrong.append(
                        f"{differ.size} lanes of {key}: {int(found[lane]):#x}, not {right:#x}, "
                        f"in lane {lane}: {program.opcodes}"
                    )


def _renumbered(programs: Sequence[Program]) -> list[Program]:
    """Return programs whose registers follow each other again."""
    found, first = list[Program](), 0
    for program in programs:
        by = first - program.first
        pieces = [_moved(piece, by) for piece in program.pieces]
        found.append(
            Program(
                first,
                program.lanes,
                pieces,
                program.operations,
                program.content,
                program.opcodes,
                program.rows,
            )
        )
        first += len(program.content)
    return found


def _moved(piece: Piece, by: int) -> Piece:
    semantics = piece.semantics
    sources = tuple(
        source if source.constant is not None else replace(source, register=source.register + by)
        for source in semantics.sources
    )
    targets = tuple(target + by for target in semantics.targets)
    guard = piece.guard if piece.guard == NOWHERE else piece.guard + by
    return replace(piece, semantics=semantics._replace(sources=sources, targets=targets), guard=guard)
