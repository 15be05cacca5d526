"""Control flow: bra, brx.idx, call, ret, exit, trap, and what may be passed over (PTX ISA 9.1, 9.7.12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Fault
from ...ptx.operands import Arguments, Register
from ..lanes import Frame, Front, Lanes
from ..scope import FunctionName, LabelName, LabelTable, Variable
from .effect import Effect
from .stack import end_of

if TYPE_CHECKING:
    from ..program import Function
    from ..site import Site
    from ..wave import Step, Wave


def _branch(site: Site, uniform: str) -> Step:
    site.count(1)
    label = site.label(0)
    return lambda wave, front, lanes: wave.jump(front, lanes, label.pc)


def _indexed(site: Site, uniform: str) -> Step:
    """brx.idx: a jump by table; an index outside is undefined, and reported."""
    site.count(2)
    name = site.operands[1]
    table = site.scope.find(name.name) if isinstance(name, Register) else None
    if not isinstance(table, LabelTable):
        raise site.illegal(f"expected a table of .branchtargets, not '{name}'", 1)
    index = site.reader(site.operands[0], "u32", 0)
    labels = [site.scope.find(one) for one in table.names]
    for one, label in zip(table.names, labels, strict=True):
        if not isinstance(label, LabelName):
            raise site.illegal(f"the table {name} names {one}, which is no label here", 1)

    def step(wave: Wave, front: Front, lanes: Lanes) -> bool:
        chosen = index(wave, front)
        outside = lanes.mask & (chosen >= len(labels))
        if outside.any():
            lane = int(outside.argmax())
            message = f"brx.idx with index {int(chosen[lane])}, but the table has {len(labels)} targets"
            raise wave.fault(wave.code[front.pc], lane, message)
        return wave.scatter(front, lanes, chosen, [label.pc for label in labels])  # type: ignore[union-attr]

    return step


def _call(site: Site, uniform: str) -> Step:
    """call: arguments are copied into the frame of the function, results back when it returns."""
    results, callee, arguments = _parts(site)
    given, wanted = _framed(site, *arguments), _framed(site, *results)
    choose = _callee(site, *callee)

    def step(wave: Wave, front: Front, lanes: Lanes) -> bool:
        function = choose(wave, front, lanes)
        frame = Frame(
            len(function.types),
            caller=front.frame,
            resume=front.pc + 1,
            local=end_of(wave, front.frame),
        )
        frame.function = function
        wave.reserve_local(frame.local + function.local_bytes)
        _copied(wave, lanes, given, front.frame.local, function.parameters, frame.local)
        frame.leave = lambda part: _copied(
            wave, part, function.results, frame.local, wanted, front.frame.local
        )
        return wave.call(front, lanes, frame, function.start)

    return step


def _parts(site: Site) -> tuple[tuple[Any, int], tuple[Any, int], tuple[Any, int]]:
    """Results, callee and arguments of a call, each with its place; a prototype is not needed."""
    operands = list(enumerate(site.operands))
    none: tuple[Any, int] = (Arguments(()), 0)
    results = none
    if operands and isinstance(operands[0][1], Arguments):
        index, operand = operands.pop(0)
        results = (operand, index)
    if not operands:
        raise site.illegal("call names no function")
    index, callee = operands.pop(0)
    arguments = none
    if operands and isinstance(operands[0][1], Arguments):
        place, operand = operands[0]
        arguments = (operand, place)
    return results, (callee, index), arguments


def _framed(site: Site, operand: Any, index: int) -> list[Variable]:
    """The .param variables that a call passes."""
    found = list[Variable]()
    for one in operand.elements:
        meaning = site.scope.find(one.name) if isinstance(one, Register) else None
        if not isinstance(meaning, Variable) or not meaning.framed:
            raise site.not_modelled(
                f"call passes '{one}', which is no .param variable of this function", index
            )
        found.append(meaning)
    return found


def _callee(site: Site, operand: Any, index: int) -> Callable[[Wave, Front, Lanes], Function]:
    """The function that a call reaches, by name or by an address that all lanes share."""
    found = site.scope.find(operand.name) if isinstance(operand, Register) else None
    if isinstance(found, FunctionName):
        function = site.module.functions[found.name]
        if function.kernel.body is None:
            raise site.not_modelled(f"the function {found.name} has no body here", index)
        return lambda wave, front, lanes: function
    address = site.reader(operand, "u64", index)

    def choose(wave: Wave, front: Front, lanes: Lanes) -> Function:
        numbers = np.unique(lanes.of(address(wave, front)))
        target = site.module.function_at(int(numbers[0]))
        if target is None or len(numbers) > 1:
            what = "lanes call different functions" if len(numbers) > 1 else "no function has that address"
            raise site.not_modelled(f"indirect call: {what}", index)
        return target

    return choose


def _copied(
    wave: Wave, lanes: Lanes, sources: list[Variable], base: int, targets: list[Variable], other: int
) -> None:
    """Copy variables of one frame to those of another, in local memory."""
    local = wave.local.reshape(wave.lanes, -1)
    for one, two in zip(sources, targets, strict=False):
        start, end = base + one.offset, other + two.offset
        local[lanes.index, end : end + one.size] = local[lanes.index, start : start + one.size]


def _exit(site: Site) -> Step:
    site.count(0)
    return lambda wave, front, lanes: wave.retire(front, lanes)


def _return(site: Site, uniform: str) -> Step:
    site.count(0)
    return lambda wave, front, lanes: wave.resume(front, lanes)


def _trap(site: Site) -> Step:
    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        raise Fault(f"trap [{wave.who(lanes)}]", site.statement.location())

    return step


def _nothing(site: Site, *modifiers: str) -> Step:
    return lambda wave, front, lanes: None


_UNIFORM = ("", "uni")

ROWS: tuple[Effect, ...] = (
    Effect(opcode="bra", slots=(_UNIFORM,), bind=_branch),
    Effect(opcode="brx", slots=(("idx",), _UNIFORM), bind=lambda site, _, uniform: _indexed(site, uniform)),
    Effect(opcode="call", slots=(_UNIFORM,), bind=_call),
    Effect(opcode="ret", slots=(_UNIFORM,), bind=_return),
    Effect(opcode="exit", slots=(), bind=_exit),
    Effect(opcode="trap", slots=(), bind=_trap),
    Effect(opcode="brkpt", slots=(), bind=_nothing),
    Effect(opcode="pmevent", slots=(("", "mask"),), bind=_nothing),
    Effect(opcode="nanosleep", slots=(("u32",),), bind=_nothing, since=(6, 3), chip=70),
)
