"""Since when there are statements that older chips lack; matrix instructions know that themselves.

PTX ISA 9.1, "Target ISA Notes" and "PTX ISA Notes" of each instruction.
"""

from __future__ import annotations

from ..errors import IllegalInstruction
from ..isa.architectures import Feature, targets_text, targets_with
from ..ptx.statements import InstructionStatement

_NEEDS: dict[str, tuple[Feature, tuple[int, int]]] = {  # the feature, and the first PTX version
    "fence": (Feature.PROXY_FENCE, (8, 0)),
    "wgmma": (Feature.WGMMA, (8, 0)),
}


def check_since(statement: InstructionStatement, target: str, version: tuple[int, int]) -> None:
    """Raise IllegalInstruction where the chip or the PTX version does not have the statement."""
    feature, first = _NEEDS.get(statement.opcode, (None, (0, 0)))
    if feature is not None and target not in targets_with(feature):
        needs = targets_text(targets_with(feature), "or higher")
        raise IllegalInstruction(f"{statement.mnemonic} is not on {target}: it needs {needs}")
    if version < first:
        needed, given = (".".join(map(str, one)) for one in (first, version))
        raise IllegalInstruction(f"{statement.mnemonic} needs PTX {needed}, but the version is {given}")
