"""Basic blocks: consecutive statements that compute lane by lane, compiled to one Python function.

A block consists of unguarded statements with pure semantics (machine/bind/pure_semantics.py). Only its first
statement may have a label. A block is compiled after ``HOT`` executions of its first statement, so small
launches do not pay for compilation; mma batches (mma_batches.py) begin with the first execution. The function
takes register values, calls the semantics, and returns the new register values.

A block cannot fail, wait or be observed. Statement counts are those of separate execution. The interpreter
(execute.py) runs the statements instead, with equal results, if a lane reads an unwritten register, another
path has its program counter in the block, or an observer has replaced records.

``WARPSIM_STATEMENTS=interpreted`` disables compilation. Knows records and registers; does not know what a
statement computes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...ptx.operands import Register
from ..bind.pure_semantics import NOWHERE, PureSemantics, Source
from ..bind.scope import LabelName, LabelTable
from ..native.array_layout import arrays_are_as_expected
from ..native.objects import expected
from ..state.lanes import DivergentPath, Values
from ..state.side_tables import SideTable
from .mma_batches import run_from
from .native_blocks import LONGEST, NativeBlock, pays
from .native_blocks import compiles as native_compiles
from .wave import Entry, Record, Wave

HOT = 8  # executions of a statement by a wave, or by all launches of a kernel, from which on it is compiled
STATEMENTS = "WARPSIM_STATEMENTS"  # the variable of the environment that chooses
_WAYS = ("compiled", "numpy", "interpreted")
_SHORTEST = 2  # statements
_LONGEST = 512
_JUMPS = frozenset({"bra", "brx"})

Function = Callable[[list[Any], Wave, DivergentPath], "tuple[Values, ...] | None"]


def statements_are_compiled() -> bool:
    """Return whether basic blocks are compiled. Raises OperandError for an unknown setting."""
    way = os.environ.get(STATEMENTS, "") or "compiled"
    if way not in _WAYS:
        raise OperandError(f"{STATEMENTS}={way!r}: expected {', '.join(map(repr, _WAYS))}")
    return way != "interpreted"


class BasicBlock:
    """The statements from ``first`` to before ``past`` of a module's ``code``.

    ``inputs`` are the registers that it reads first, ``outputs`` those that it writes.
    """

    __slots__ = ("code", "first", "function", "inputs", "outputs", "past", "records")

    def __init__(self, code: list[Record], first: int, past: int) -> None:
        self.code, self.first, self.past = code, first, past
        self.records = code[first:past]
        semantics = [record.semantics for record in self.records if record.semantics is not None]
        self.inputs, self.outputs = registers_of(semantics)
        self.function: Function | None = None

    def run(self, wave: Wave, path: DivergentPath, stop: int) -> bool:
        """Execute the block and return True; or change nothing and return False."""
        code, frame, lanes = wave.code, path.frame, path.lanes
        if self.first < stop < self.past:
            return False
        if code is not self.code and list(code[self.first : self.past]) != self.records:
            return False
        partial = frame.partial
        if partial and not all(lanes.within(partial[name]) for name in self.inputs if name in partial):
            return False
        function = self.function
        if function is None:
            function = self.function = compile_block(self)
        found = function(frame.values, wave, path)
        if found is None:
            return False
        if lanes.count == wave.alive and not partial:
            values = frame.values
            for register, value in zip(self.outputs, found, strict=True):
                values[register] = value
        else:
            for register, value in zip(self.outputs, found, strict=True):
                wave.write(path, lanes, register, value)
        wave.scheduler.executed(self.first, self.past)
        path.pc = self.past
        return True


def registers_of(semantics: Sequence[PureSemantics]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the registers read before written, and the registers written."""
    inputs, outputs = dict[int, None](), dict[int, None]()
    for each in semantics:
        for source in each.sources:
            if source.register != NOWHERE and source.register not in outputs:
                inputs[source.register] = None
        outputs |= dict.fromkeys(target for target in each.targets if target != NOWHERE)
    return (*inputs,), (*outputs,)


# --- which statements begin a block --------------------------------------------------------------------


def count_executions(entry: Entry, counts: npt.NDArray[np.int64]) -> None:
    """Add a launch's execution counts; begin blocks at statements that have become hot."""
    executed = _EXECUTED.of(entry)
    before = executed < HOT
    known = min(executed.size, counts.size)  # a module has more statements when another entry is loaded
    executed[:known] += counts[:known]
    for pc in np.flatnonzero(before & (executed >= HOT)).tolist():
        begin_block(entry, pc)


def begin_mma_batch(entry: Entry, pc: int) -> bool:
    """Begin an mma batch at a statement; return whether a new batch was made. Tries each statement once."""
    seen, record = _BATCHES_TRIED.of(entry), entry.code[pc]
    if pc in seen or record.member is None or record.basic_block is not None:
        return False
    seen.add(pc)
    record.basic_block = run_from(entry.code, pc, _LABELS.of(entry))
    return record.basic_block is not None


def begin_block(entry: Entry, pc: int) -> None:
    """Begin a block at a statement: an mma batch, a Python function or machine code."""
    record = entry.code[pc]
    begin_mma_batch(entry, pc)
    if record.basic_block is None:
        _begin_python(entry, pc)
    if not isinstance(record.basic_block, NativeBlock) and is_native():
        _begin_native(entry, pc)


def is_native() -> bool:
    """Return whether basic blocks are compiled to machine code."""
    way = os.environ.get(STATEMENTS, "") or "compiled"
    return way == "compiled" and expected() and arrays_are_as_expected()


def _begin_native(entry: Entry, pc: int) -> None:
    """Begin a machine-code block, unless the statement is inside another block."""
    code, labels = entry.code, _LABELS.of(entry)
    if not native_compiles(code[pc]):
        return
    if pc not in labels and pc > entry.start and native_compiles(code[pc - 1]):
        before = code[pc - LONGEST].basic_block if pc >= LONGEST else None
        if not isinstance(before, NativeBlock) or before.past != pc:
            return
    past = _end(code, pc, labels, native_compiles, LONGEST)
    if pays(code[pc:past]):
        code[pc].basic_block = NativeBlock(code, pc, past, code[pc].basic_block or _python_block(entry, pc))


def _begin_python(entry: Entry, pc: int) -> None:
    """Begin a Python block, unless the statement is inside another block."""
    code, labels = entry.code, _LABELS.of(entry)
    if pc in labels or pc <= entry.start or not _compiles(code[pc - 1]) or _ends_at_limit(code, pc):
        code[pc].basic_block = _python_block(entry, pc)


def _python_block(entry: Entry, pc: int) -> BasicBlock | None:
    """Return the Python block from a statement on, None if it is too short."""
    past = _end(entry.code, pc, _LABELS.of(entry), _compiles, _LONGEST)
    return BasicBlock(entry.code, pc, past) if past - pc >= _SHORTEST else None


def _end(
    code: Sequence[Record], pc: int, labels: frozenset[int], compiles: Callable[[Record], bool], longest: int
) -> int:
    """Return the end of the block that begins at ``pc``: ``pc`` if that statement does not compile."""
    past, end = pc, min(pc + longest, len(code))
    while past < end and (past == pc or past not in labels) and compiles(code[past]):
        past += 1
    return past


def _ends_at_limit(code: Sequence[Record], pc: int) -> bool:
    """Return whether a block of maximum length ends before a statement."""
    before = code[pc - _LONGEST].basic_block if pc >= _LONGEST else None
    return before is not None and before.past == pc


def _compiles(record: Record) -> bool:
    return record.guard < 0 and record.semantics is not None and record.semantics.plain


def _labels(entry: Entry) -> frozenset[int]:
    """Return the places of all labels that a branch of the module names."""
    return frozenset(
        pc for record in entry.code if record.statement.opcode in _JUMPS for pc in _targets(record)
    )


def _targets(record: Record) -> Iterator[int]:
    for operand in record.statement.operands or ():
        if record.scope is None or not isinstance(operand, Register):
            continue
        found = record.scope.find(operand.name)
        names = found.names if isinstance(found, LabelTable) else ()
        for label in (found, *map(record.scope.find, names)):
            if isinstance(label, LabelName):
                yield label.pc


def _zero_counts(entry: Entry) -> npt.NDArray[np.int64]:
    return np.zeros(len(entry.code), np.int64)


_LABELS, _EXECUTED, _BATCHES_TRIED = (
    SideTable(_labels),
    SideTable(_zero_counts),
    SideTable[set[int]](lambda _: set()),
)


# --- the function ------------------------------------------------------------------------------------------


def compile_block(basic_block: BasicBlock) -> Function:
    """Return the Python function of a basic block."""
    names: dict[str, Any] = {"full": np.full}
    first, past = (_line(record) for record in (basic_block.records[0], basic_block.records[-1]))
    code = _code_of("\n".join(_lines(basic_block, names)))
    return FunctionType(code.replace(co_filename=f"<statements of lines {first} to {past}>"), names)


def _line(record: Record) -> int:
    """Return the line that a statement begins in."""
    statement = record.statement
    return statement.source.location(statement.start, statement.start).line


@lru_cache(maxsize=1024)
def _code_of(text: str) -> CodeType:
    """Return the compiled code of a function text. Blocks that differ only in registers share it."""
    found = compile(text, "<statements>", "exec").co_consts
    return next(item for item in found if isinstance(item, CodeType))


def _lines(basic_block: BasicBlock, names: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the function; add the objects they refer to to ``names``.

    Registers are named by position, so that equal blocks have equal text.
    """
    local = {number: f"r{place}" for place, number in enumerate((*basic_block.inputs, *basic_block.outputs))}
    yield "def basic_block(values, wave, path):"
    for place, register in enumerate(basic_block.inputs):
        names[f"n{place}"] = register
        yield f" {local[register]} = values[n{place}]"
        yield f" if {local[register]} is None: return None"
    for place, record in enumerate(basic_block.records):
        assert record.semantics is not None
        yield from _statement(place, record.semantics, local, names)
    yield f" return ({''.join(f'{local[register]}, ' for register in basic_block.outputs)})"


def _statement(
    place: int, semantics: PureSemantics, local: Mapping[int, str], names: dict[str, Any]
) -> Iterator[str]:
    """Yield the lines of a statement. All sources are read before a target is written."""
    sources = [
        _source(f"{place}_{number}", source, local, names) for number, source in enumerate(semantics.sources)
    ]
    targets = ["_" if target == NOWHERE else local[target] for target in semantics.targets]
    if semantics.compute is None:
        yield f" {', '.join(targets)} = {', '.join(sources)}"
    elif semantics.single is not None:
        names[f"c{place}"] = semantics.single
        yield f" {targets[0]} = c{place}({', '.join(sources)})"
    else:
        names[f"c{place}"] = semantics.compute
        left = f"{targets[0]} =" if len(targets) == 1 else f"{', '.join(targets)}, *_ ="
        yield f" {left} c{place}({', '.join(sources)}){'[0]' * (len(targets) == 1)}"
    for target in targets:
        if target != "_":
            yield f" if not {target}.ndim: {target} = full(wave.lanes, {target})"


def _source(name: str, source: Source, local: Mapping[int, str], names: dict[str, Any]) -> str:
    """Return the expression of a source."""
    if source.read is not None:
        names[f"s{name}"] = source.read
        text = f"s{name}(wave, path)"
    else:
        text = local[source.register]
        if source.dtype is not None:
            names[f"t{name}"] = source.dtype
            text = f"{text}.astype(t{name})"
    return f"~{text}" if source.negated else text
