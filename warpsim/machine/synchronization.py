"""Statements that order others: ``wgmma.fence``, ``commit_group``, ``wait_group``, ``fence.proxy``, ``bar``.

Knows how they are written, as ptxas 13.0 takes them; does not know what they do. PTX ISA 9.1, sections
9.7.15.7 (wgmma), 9.7.13.5 "fence" and 9.7.13.1 "bar, barrier".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from ..errors import IllegalInstruction, NotModelled, located
from ..ptx.constants import Immediate
from ..ptx.operands import Register
from ..ptx.statements import InstructionStatement

Verb = Literal["fence", "commit", "wait", "proxy", "barrier"]

_WGMMA: dict[str, Verb] = {"fence": "fence", "commit_group": "commit", "wait_group": "wait"}
_PROXIES = ((), ("shared::cta",), ("shared::cluster",))  # the window of the cluster holds that of the CTA
_BARRIERS = 16
_WARPGROUP = 128


@dataclass(frozen=True, kw_only=True)
class Synchronization:
    """What a statement asks for: ``groups`` is N of wait_group, ``registers`` what a barrier reads."""

    verb: Verb
    groups: int = 0
    registers: tuple[str, ...] = ()


def is_wgmma_order(statement: InstructionStatement) -> bool:
    """Whether this is the fence, commit_group or wait_group of wgmma."""
    return statement.opcode == "wgmma" and statement.modifiers[:1] != () and statement.modifiers[0] in _WGMMA


def wgmma_order(statement: InstructionStatement) -> Synchronization:
    """``wgmma.fence.sync.aligned``, ``wgmma.commit_group...`` or ``wgmma.wait_group... N``."""
    name, *rest = statement.modifiers
    if "sync" not in rest:
        raise IllegalInstruction(f"wgmma.{name} requires .sync: it is wgmma.{name}.sync.aligned")
    for index, modifier in enumerate(rest, 1):
        if modifier not in ("sync", "aligned"):
            place = statement.modifier_location(index)
            raise IllegalInstruction(f"wgmma.{name} has no modifier .{modifier}", place)
    operands = statement.operands or ()
    if name != "wait_group":
        if operands:
            place = statement.operand_location(0)
            raise IllegalInstruction(f"wgmma.{name} takes no operands", place)
        return Synchronization(verb=_WGMMA[name])
    if len(operands) != 1:
        raise IllegalInstruction("wgmma.wait_group takes one operand, the number of groups left pending")
    return Synchronization(verb="wait", groups=_groups(statement))


def _groups(statement: InstructionStatement) -> int:
    (operand,) = statement.operands or ()
    if not isinstance(operand, Immediate) or operand.kind != "integer" or operand.value < 0:
        raise IllegalInstruction(
            f"wgmma.wait_group takes a constant that is not negative, not '{operand}'",
            statement.operand_location(0),
        )
    return operand.value


def proxy_fence(statement: InstructionStatement) -> Synchronization:
    """``fence.proxy.async``, of all memory or of shared memory."""
    if statement.modifiers[:2] != ("proxy", "async") or statement.modifiers[2:] not in _PROXIES:
        raise NotModelled(
            f"{statement.mnemonic} is not modelled; fence.proxy.async and fence.proxy.async.shared::cta are"
        )
    if statement.operands:
        raise IllegalInstruction(f"{statement.mnemonic} takes no operands", statement.operand_location(0))
    return Synchronization(verb="proxy")


def barrier(statement: InstructionStatement) -> Synchronization:
    """``bar.sync a`` or ``bar.sync a, 128``, and the same as ``barrier``, of all lanes."""
    modifiers = tuple(one for one in statement.modifiers if one not in ("cta", "aligned"))
    aligned = "aligned" in statement.modifiers
    if modifiers != ("sync",) or (aligned and statement.opcode == "bar"):
        raise NotModelled(f"{statement.mnemonic} is not modelled; bar.sync and barrier.sync are")
    operands = statement.operands or ()
    if not 1 <= len(operands) <= 2:
        raise IllegalInstruction(f"{statement.mnemonic} takes a barrier and perhaps the number of threads")
    for index, operand in enumerate(operands):
        if not isinstance(operand, Register):
            with located(partial(statement.operand_location, index)):
                _check_constant(statement, operand, index)
    return Synchronization(
        verb="barrier", registers=tuple(one.name for one in operands if isinstance(one, Register))
    )


def _check_constant(statement: InstructionStatement, operand: object, index: int) -> None:
    """A barrier's number is 0 to 15; all threads of the warpgroup take part."""
    if not isinstance(operand, Immediate) or operand.kind != "integer":
        raise IllegalInstruction(
            f"{statement.mnemonic} takes registers and integer constants, not '{operand}'"
        )
    if index == 0 and operand.value not in range(_BARRIERS):
        raise IllegalInstruction(f"barrier {operand.value}: there are barriers 0 to {_BARRIERS - 1}")
    if index == 1 and operand.value % 32:
        raise IllegalInstruction(f"{operand.value} threads: whole warps take part in a barrier")
    if index == 1 and operand.value != _WARPGROUP:
        message = f"a barrier of {operand.value} threads is not modelled; a warpgroup has {_WARPGROUP}"
        raise NotModelled(message)
