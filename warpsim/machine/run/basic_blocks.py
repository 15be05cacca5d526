"""Basic blocks: consecutive statements without branches that are executed together.

Statements of one kind are an mma batch (mma_batches.py) from their first execution on; statements that
compute lane by lane, or load, become machine code (native_blocks.py) after ``HOT`` executions of the first,
so small launches do not pay for compilation. Statement counts are those of separate execution. The
interpreter (execute.py) runs the statements instead, with equal results, if a lane reads an unwritten
register, another path has its program counter in the block, or an observer has replaced records.

``WARPSIM_STATEMENTS=interpreted`` disables compilation. Knows records; does not know what a statement
computes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...ptx.operands import Register
from ..bind.scope import LabelName, LabelTable
from ..native.array_layout import arrays_are_as_expected
from ..native.objects import expected
from ..state.side_tables import SideTable
from .mma_batches import run_from
from .native_blocks import LONGEST, NativeBlock, compiles, pays
from .wave import Entry, Record

HOT = 8  # executions of a statement by a wave, or by all launches of a kernel, from which on it is compiled
STATEMENTS = "WARPSIM_STATEMENTS"  # the variable of the environment that chooses
_WAYS = ("compiled", "interpreted")
_JUMPS = frozenset({"bra", "brx"})


def statements_are_compiled() -> bool:
    """Return whether basic blocks are compiled. Raises OperandError for an unknown setting."""
    way = os.environ.get(STATEMENTS, "") or "compiled"
    if way not in _WAYS:
        raise OperandError(f"{STATEMENTS}={way!r}: expected {', '.join(map(repr, _WAYS))}")
    return way != "interpreted"


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
    """Begin an mma batch or machine code at a statement, unless it is inside another block."""
    begin_mma_batch(entry, pc)
    code, labels = entry.code, _LABELS.of(entry)
    if code[pc].basic_block is not None or not is_native() or not compiles(code[pc]):
        return
    if pc not in labels and pc > entry.start and compiles(code[pc - 1]):
        before = code[pc - LONGEST].basic_block if pc >= LONGEST else None
        if not isinstance(before, NativeBlock) or before.past != pc:
            return
    past, end = pc + 1, min(pc + LONGEST, len(code))
    while past < end and past not in labels and compiles(code[past]):
        past += 1
    if pays(code[pc:past]):
        code[pc].basic_block = NativeBlock(code, pc, past)


def is_native() -> bool:
    """Return whether basic blocks are compiled to machine code."""
    return statements_are_compiled() and expected() and arrays_are_as_expected()


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
