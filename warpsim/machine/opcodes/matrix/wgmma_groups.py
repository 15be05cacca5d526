"""Statements that order wgmma: ``wgmma.fence``, ``commit_group`` and ``wait_group``.

Knows how they are written, as ptxas 13.0 takes them; does not know what they do. PTX ISA 9.1, section
9.7.15.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ....base.errors import IllegalInstruction
from ....ptx.constants import Immediate
from ....ptx.statements import InstructionStatement

Verb = Literal["fence", "commit", "wait"]

_WGMMA: dict[str, Verb] = {"fence": "fence", "commit_group": "commit", "wait_group": "wait"}


@dataclass(frozen=True, kw_only=True)
class Synchronization:
    """What a statement asks for: ``groups`` is N of wait_group."""

    verb: Verb
    groups: int = 0


def wgmma_order(statement: InstructionStatement) -> Synchronization:
    """Return what a wgmma.fence, wgmma.commit_group or wgmma.wait_group asks for.

    Raises IllegalInstruction without .sync, for other modifiers, and for operands other than the N of
    wait_group, which is a constant that is not negative. PTX ISA 9.1, section 9.7.15.7.
    """
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
