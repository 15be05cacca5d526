"""Statements that compute lane by lane: the operands of an Operation become readers and writers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from ...ptx.constants import Immediate
from ...ptx.operands import Operand, Pair
from ..run.wave import Step, Wave
from ..state.lanes import DivergentPath, Lanes, Values
from ..state.side_tables import SideTable
from .operation import Operation
from .statement_binder import Reader, StatementBinder, Writer

_CARRIES = SideTable[dict[int, Values]](lambda _: {})  # by identity of a frame: its condition code register
_BORROWED = SideTable[dict[int, bool]](lambda _: {})  # whether a subtraction has written it
CARRY = (
    "CC.CF of a subtraction, which the manual calls the borrow, is inferred to be the carry of a + ~b + 1, "
    "as in ptxas's code: it shows where addc or madc reads it, or subc that of an addition"
)


def scalar_step(binder: StatementBinder, operation: Operation) -> Step:
    """Return what a statement does whose operation is known. Raises IllegalInstruction for its operands."""
    targets, sources = _operands(binder, operation)
    wide, kinds = _registers(binder)
    writers = [
        binder.writer(target, kinds.get(kind, kind), index, wide=wide and kind[0] in "usf")
        for (target, index, _), kind in zip(targets, operation.results, strict=False)
    ]
    readers = [
        binder.reader(source, kinds.get(kind, kind), index, element, wide=wide and kind[0] in "usf")
        for (source, index, element), kind in zip(sources, operation.sources, strict=True)
    ]
    _check_constants(binder, operation, sources)
    if operation.reads_carry or operation.writes_carry:
        return _with_carry(operation, readers, writers)
    binder.computes(operation.compute, readers, writers, operation.where)
    if operation.where is not None:
        return _noting(operation, operation.where, readers, writers)
    if len(writers) == 1 and len(operation.results) == 1:
        return _single(operation, readers, writers[0])
    return _several(operation, readers, writers)


def _registers(binder: StatementBinder) -> tuple[bool, dict[str, str]]:
    """Return whether registers may be wider than number types, and by which types registers of others go.

    Those of cvt may, but beside .bf16, .tf32 and narrower floats; its codes and pairs stand in .b registers
    only. cvt.pack takes what suits its types.
    """
    modifiers = binder.statement.modifiers
    if binder.statement.opcode != "cvt" or modifiers[:1] == ("pack",):
        return binder.statement.opcode == "cvt", {}
    return not any(_EXACT.match(modifier) for modifier in modifiers), {"b16": "bf16", "b32": "bf16x2"}


_EXACT = re.compile(r"bf16|tf32|u?e\d")  # types of cvt beside which no register is wider than its type


Placed = tuple[Operand, int, int | None]  # an operand, its place, and that of an element in it


def _operands(binder: StatementBinder, operation: Operation) -> tuple[list[Placed], list[Placed]]:
    """Return targets and sources; ``d|p`` is two targets, and a vector so many sources."""
    results, vector = len(operation.results), operation.vector
    binder.count(len(operation.sources) - max(vector - 1, 0) + 1)
    first = binder.operands[0]
    targets: list[Placed] = [(first, 0, None)]
    if isinstance(first, Pair):
        targets = [(first.first, 0, 0), (first.second, 0, 1)]
    if not results - operation.optional <= len(targets) <= results:
        raise binder.illegal(f"{binder.statement.mnemonic} has {results} results, as in 'd|p'", 0)
    sources: list[Placed] = [(operand, index, None) for index, operand in enumerate(binder.operands[1:], 1)]
    if vector:
        elements = binder.elements(1, vector)
        sources[:1] = [(element, 1, place) for place, element in enumerate(elements)]
    return targets, sources


def _check_constants(binder: StatementBinder, operation: Operation, sources: list[Placed]) -> None:
    """Check that sources that must be constants are, and that those of a byte fit."""
    for place in operation.constants:
        operand, index, _ = sources[place]
        if not isinstance(operand, Immediate) or operand.kind != "integer":
            raise binder.illegal(f"expected an integer constant, not '{operand}'", index)
    for place in operation.bytes:
        operand, index, _ = sources[place]
        if isinstance(operand, Immediate) and not 0 <= operand.value <= 255:
            raise binder.illegal(f"the constant {operand} is not in 0 to 255", index)


def _single(operation: Operation, readers: list[Reader], write: Writer) -> Step:
    compute = operation.compute

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        (result,) = compute(*[read(wave, path) for read in readers])
        write(wave, path, lanes, result)

    return step


def _several(operation: Operation, readers: list[Reader], writers: list[Writer]) -> Step:
    compute = operation.compute

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        results = compute(*[read(wave, path) for read in readers])
        for write, result in zip(writers, results, strict=False):
            write(wave, path, lanes, result)

    return step


def _noting(
    operation: Operation,
    where: Callable[[Sequence[Values], Sequence[Values]], Values],
    readers: list[Reader],
    writers: list[Writer],
) -> Step:
    """Return a step that notes where its results are not exact."""

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        values = [read(wave, path) for read in readers]
        results = operation.compute(*values)
        if path.pc not in wave.inferred and (where(values, results) & lanes.mask).any():
            wave.infer(path.pc, operation.note)
        for write, result in zip(writers, results, strict=False):
            write(wave, path, lanes, result)

    return step


def _with_carry(operation: Operation, readers: list[Reader], writers: list[Writer]) -> Step:
    compute = operation.compute

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        values = [read(wave, path) for read in readers]
        carries = _CARRIES.of(wave)
        carry = carries.get(id(path.frame))
        if carry is None:
            carry = np.zeros(wave.lanes, np.bool_)
        if operation.reads_carry:
            values.append(carry)
            if _BORROWED.of(wave).get(id(path.frame), operation.borrows) != operation.borrows:
                wave.infer(path.pc, CARRY)
        results = compute(*values)
        if operation.writes_carry:
            carries[id(path.frame)] = np.where(lanes.mask, results[-1], carry)
            _BORROWED.of(wave)[id(path.frame)] = operation.borrows
        for write, result in zip(writers, results, strict=False):
            write(wave, path, lanes, result)

    return step
