"""``bar.warp.sync membermask``: a barrier of the lanes of one warp.

Knows which masks are legal, as ptxas 13.0 and PTX have it. The lanes of a warp run in step here, so that
there is nothing to wait for. PTX ISA 9.1, section 9.7.13 "bar.warp.sync".
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from ..errors import IllegalInstruction, UndefinedBehavior, located
from ..ptx.constants import Immediate
from ..ptx.operands import Register
from ..ptx.statements import InstructionStatement
from .register_file import Lanes, Mask, RegisterFile, type_bits

_WARP = 32
_EVERYONE = np.uint32(0xFFFFFFFF)


def is_warp_barrier(statement: InstructionStatement) -> bool:
    """Whether this is a bar.warp.sync."""
    return statement.opcode == "bar" and statement.modifiers[:1] == ("warp",)


def check_warp_barrier(file: RegisterFile, statement: InstructionStatement, lanes: Mask) -> None:
    """Raise what is wrong with a bar.warp.sync that some lanes execute, pointing at its mask.

    IllegalInstruction for other forms and operands; UndefinedBehavior for a lane that its own mask lacks, and
    for lanes that wait for one that does not come, or comes with another mask.
    """
    operands = statement.operands or ()
    if statement.modifiers != ("warp", "sync") or len(operands) != 1:
        raise IllegalInstruction("bar.warp.sync takes one operand, the mask of its lanes")
    with located(partial(statement.operand_location, 0)):
        masks = _masks(file, operands[0], lanes)
        _check_members(masks, lanes)


def _masks(file: RegisterFile, operand: object, lanes: Mask) -> npt.NDArray[np.uint32]:
    """The mask that each lane gives."""
    if isinstance(operand, Immediate) and operand.kind == "integer":
        return np.full(file.lanes, operand.value & (1 << 32) - 1, np.uint32)
    if not isinstance(operand, Register):
        raise IllegalInstruction(f"the mask is a 32-bit register or an integer constant, not '{operand}'")
    if file.is_special(operand.name):
        raise IllegalInstruction("bar.warp.sync does not take special registers")
    known = file.types().get(operand.name)
    if known is not None and (type_bits(known) != 32 or known[0] not in "bus"):
        raise IllegalInstruction(f"bar.warp.sync does not take {operand}, which is .{known}")
    masks: Lanes = file.read(operand.name, lanes)
    return masks.astype(np.uint32)


def _check_members(masks: npt.NDArray[np.uint32], lanes: Mask) -> None:
    """Every lane that executes is in its mask, and so are just those that execute with the same mask."""
    if lanes.all() and (masks == _EVERYONE).all():
        return
    for lane in np.flatnonzero(lanes).tolist():
        first, mask = lane // _WARP * _WARP, int(masks[lane])
        if not mask >> lane % _WARP & 1:
            raise UndefinedBehavior(f"lane {lane} is not in its mask {mask:#010x}")
        for other in range(first, first + _WARP):
            if mask >> other - first & 1 and not (lanes[other] and masks[other] == mask):
                raise UndefinedBehavior(
                    f"lane {lane} waits with mask {mask:#010x} for lane {other}, which does not come with it"
                )
