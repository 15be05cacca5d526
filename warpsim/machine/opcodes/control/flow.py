"""Control flow: bra, brx.idx, call, ret, exit, trap, and statements without an effect here (PTX ISA 9.1,
9.7.12).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
import numpy.typing as npt

from ....base.errors import Fault
from ....ptx.constants import Immediate
from ....ptx.operands import Arguments, Register
from ...bind.functions import Function
from ...bind.scope import FunctionName, LabelName, LabelTable, Variable
from ...run.events import Observer, observers_of
from ...run.execute import resume, retire
from ...run.wave import Step, Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Frame, Lanes, Values
from ...state.memory_access import MemoryAccess
from ..effect import Effect
from ..statement_binder import StatementBinder
from .call_checks import Passed, Placed, check_call
from .stack import check_stack, end_of
from .system_calls import PARAMETERS, SYSTEM_CALLS, SystemCall


def _branch(binder: StatementBinder, uniform: str) -> Step:
    binder.count(1)
    label = binder.label(0)
    return lambda wave, path, lanes: wave.scheduler.jump(path, lanes, label.pc)


def _branch_index(binder: StatementBinder, uniform: str) -> Step:
    """brx.idx: a jump by table; an index outside is undefined, and reported."""
    binder.count(2)
    name = binder.operands[1]
    table = binder.scope.find(name.name) if isinstance(name, Register) else None
    if not isinstance(table, LabelTable):
        raise binder.illegal(f"expected a table of .branchtargets, not '{name}'", 1)
    index = binder.reader(binder.operands[0], "u32", 0)
    labels = [binder.scope.find(target) for target in table.names]
    for target, label in zip(table.names, labels, strict=True):
        if not isinstance(label, LabelName):
            raise binder.illegal(f"the table {name} names {target}, which is not a label here", 1)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
        chosen = index(wave, path)
        outside = lanes.mask & (chosen >= len(labels))
        if outside.any():
            lane = int(outside.argmax())
            message = f"brx.idx with index {int(chosen[lane])}, but the table has {len(labels)} targets"
            raise wave.fault(wave.code[path.pc], lane, message)
        return wave.scheduler.scatter(path, lanes, chosen, [label.pc for label in labels])  # type: ignore[union-attr]

    return step


def _call(binder: StatementBinder, uniform: str) -> Step:
    """call: arguments are copied into the frame of the function, results back when it returns."""
    results, callee, arguments, behind = _parts(binder)
    given, wanted = _push_frame(binder, *arguments), _push_frame(binder, *results)
    check_call(binder, callee, behind, Passed(given, wanted, (arguments[1], results[1])))
    function = _system_call(binder, callee[0], len(given))
    if function is not None:
        return partial(_called, function, given, wanted)
    choose = _callee(binder, *callee)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> bool:
        entered = list[DivergentPath]()
        for function, part in choose(wave, path, lanes):
            frame = _enter(wave, path, function, part)
            base, own = path.frame.local, frame.local
            _copy(wave, part, given, base, function.parameters, own)
            frame.leave = partial(_copy, sources=function.results, base=own, targets=wanted, other=base)
            entered.append(DivergentPath(function.start, frame, part))
        return wave.scheduler.call(path, lanes, entered)

    return step


def _system_call(binder: StatementBinder, callee: Any, given: int) -> SystemCall | None:
    """Return the function of the driver that a call names; None where the module has its body."""
    found = binder.scope.find(callee.name) if isinstance(callee, Register) else None
    if not isinstance(found, FunctionName) or binder.module.functions[found.name].kernel.body is not None:
        return None
    wanted = PARAMETERS.get(found.name, given)
    if given != wanted:
        raise binder.illegal(f"{found.name} takes {wanted} arguments, not {given}")
    return SYSTEM_CALLS.get(found.name)


def _called(
    function: SystemCall,
    given: list[Variable],
    wanted: list[Variable],
    wave: Wave,
    path: DivergentPath,
    lanes: Lanes,
) -> None:
    """Call a function of the driver: words of the caller's frame in, the result back."""
    base, local = path.frame.local, wave.memories.local.reshape(wave.lanes, -1)
    arguments = [_words(local[lanes.index, base + slot.offset :][:, : slot.size]) for slot in given]
    result = function(wave, path, lanes, arguments)
    if result is not None and wanted:
        place, size = np.array(base + wanted[0].offset), min(wanted[0].size, 8)
        memory, offsets = wave.locate("local", lanes, place, size)
        words = result.astype("<i8").view(f"<u{size}").reshape(-1, 8 // size)[:, :1]
        observers_of(wave).store(wave, MemoryAccess(path, lanes, memory, offsets, size, words))
        spaces.put_words(memory, offsets, words)


def _words(content: npt.NDArray[np.uint8]) -> Values:
    """Return ``(lanes,)``: unsigned words of up to 8 bytes."""
    filled = np.zeros((len(content), 8), np.uint8)
    filled[:, : content.shape[1]] = content[:, :8]
    found: Values = filled.view("<u8")[:, 0]
    return found


def _enter(wave: Wave, path: DivergentPath, function: Function, lanes: Lanes) -> Frame:
    """Return the frame of a function that is called, with its local memory behind that of the caller.

    Lanes that come to one call at different times work in one frame: they may meet in the function.
    Raises StackOverflow.
    """
    local = end_of(wave, path.frame)
    latest = path.frame.entered.get((path.pc, function.name))
    known = None if latest is None else latest()
    if known is not None and known.lanes and known.local >= local and known.top is None:
        return known
    frame = Frame(len(function.types), caller=path.frame, resume=path.pc + 1, local=local)
    check_stack(wave, path, lanes, frame, function)
    frame.function = function
    path.frame.entered[path.pc, function.name] = ref(frame)
    wave.memories.reserve_local(frame.local + function.local_bytes)
    return frame


def _parts(binder: StatementBinder) -> tuple[Placed, Placed, Placed, list[Placed]]:
    """Return results, callee and arguments of a call, each with its place, and what stands behind them."""
    operands = list(enumerate(binder.operands))
    none: Placed = (Arguments(()), 0)
    results = none
    if operands and isinstance(operands[0][1], Arguments):
        index, operand = operands.pop(0)
        results = (operand, index)
    if not operands:
        raise binder.illegal("call names no function")
    index, callee = operands.pop(0)
    arguments = none
    if operands and isinstance(operands[0][1], Arguments):
        place, operand = operands.pop(0)
        arguments = (operand, place)
    return results, (callee, index), arguments, [(operand, place) for place, operand in operands]


def _push_frame(binder: StatementBinder, operand: Any, index: int) -> list[Variable]:
    """Return the .param variables that a call passes."""
    found = list[Variable]()
    for element in operand.elements:
        meaning = binder.scope.find(element.name) if isinstance(element, Register) else None
        if not isinstance(meaning, Variable) or not meaning.framed:
            raise binder.not_modelled(
                f"call passes '{element}', which is not a .param variable of this function", index
            )
        found.append(meaning)
    return found


Choice = Callable[[Wave, DivergentPath, Lanes], "list[tuple[Function, Lanes]]"]


def _callee(binder: StatementBinder, operand: Any, index: int) -> Choice:
    """Return the functions that a call reaches, by name or by address, and the lanes that reach each."""
    found = binder.scope.find(operand.name) if isinstance(operand, Register) else None
    if isinstance(found, FunctionName):
        function = binder.module.functions[found.name]
        if function.kernel.body is None:
            raise binder.not_modelled(f"the function {found.name} has no body here", index)
        return lambda wave, path, lanes: [(function, lanes)]
    address = binder.reader(operand, "u64", index)

    def choose(wave: Wave, path: DivergentPath, lanes: Lanes) -> list[tuple[Function, Lanes]]:
        given = np.broadcast_to(address(wave, path), (wave.lanes,))
        chosen: list[tuple[Function, Lanes]] = []
        for number in np.unique(lanes.of(given)).tolist():
            target = binder.module.function_at(number)
            part = Lanes(lanes.mask & (given == number))
            if target is None or target.kernel.body is None:
                message = f"indirect call: no function has the address {number:#x}"
                raise wave.fault(wave.code[path.pc], int(part.index[0]), message)
            chosen.append((target, part))
        return chosen

    return choose


def _copy(
    wave: Wave, lanes: Lanes, sources: list[Variable], base: int, targets: list[Variable], other: int
) -> None:
    """Copy variables of one frame to those of another, in local memory."""
    local = wave.memories.local.reshape(wave.lanes, -1)
    for source, two in zip(sources, targets, strict=False):
        start, end = base + source.offset, other + two.offset
        local[lanes.index, end : end + source.size] = local[lanes.index, start : start + source.size]
        if observers_of(wave).hear(Observer.passed):
            first = lanes.index * wave.memories.local_stride
            observers_of(wave).passed(wave, lanes, first + start, first + end, source.size)


def _exit(binder: StatementBinder) -> Step:
    binder.count(0)
    return lambda wave, path, lanes: retire(wave, path, lanes)


def _return(binder: StatementBinder, uniform: str) -> Step:
    binder.count(0)
    return lambda wave, path, lanes: resume(wave, path, lanes)


_COOPERATIVE = (
    ": the kernel synchronises its grid (cooperative groups read %envreg1 and %envreg2), but the launch is "
    "not cooperative; launch it with cooperative=True, or --cooperative"
)


def _asks_for_grid(wave: Wave) -> bool:
    """Return whether the module reads the registers by which grid.sync() finds its barrier."""
    statements = (record.statement for record in wave.code if record.statement.opcode == "mov")
    return any("%envreg2" in statement.names for statement in statements)


def _trap(binder: StatementBinder) -> Step:
    binder.count(0)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        cooperative = wave.runtime is not None and wave.runtime.grid_workspace
        why = "" if cooperative or not _asks_for_grid(wave) else _COOPERATIVE
        raise Fault(f"trap{why} [{wave.describe_lanes(lanes)}]", binder.statement.location())

    return step


def _nothing(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
    """Do nothing."""


def _breakpoint(binder: StatementBinder) -> Step:
    binder.count(0)
    return _nothing


def _event(binder: StatementBinder, mask: str) -> Step:
    binder.count(1)
    most, operand = 65535 if mask else 15, binder.operands[0]
    if not isinstance(operand, Immediate) or operand.kind != "integer" or not 0 <= operand.value <= most:
        raise binder.illegal(f"expected a constant of 0 to {most}, not '{operand}'", 0)
    return _nothing


def _sleep(binder: StatementBinder, type_name: str) -> Step:
    binder.count(1)
    binder.reader(binder.operands[0], type_name, 0)
    return _nothing


_UNIFORM = ("", "uni")

ROWS: tuple[Effect, ...] = (
    Effect(opcode="bra", slots=(_UNIFORM,), bind=_branch),
    Effect(
        opcode="brx",
        slots=(("idx",), _UNIFORM),
        bind=lambda binder, _, uniform: _branch_index(binder, uniform),
    ),
    Effect(opcode="call", slots=(_UNIFORM,), bind=_call),
    Effect(opcode="ret", slots=(_UNIFORM,), bind=_return),
    Effect(opcode="exit", slots=(), bind=_exit),
    Effect(opcode="trap", slots=(), bind=_trap),
    Effect(opcode="brkpt", slots=(), bind=_breakpoint),
    Effect(opcode="pmevent", slots=(("", "mask"),), bind=_event),
    Effect(opcode="nanosleep", slots=(("u32",),), bind=_sleep, since=(6, 3)),
)
