"""Since when there are statements that older chips lack; matrix instructions know that themselves.

PTX ISA 9.1, "Target ISA Notes" and "PTX ISA Notes" of each instruction.
"""

from __future__ import annotations

from ..errors import IllegalInstruction
from ..isa.architectures import Feature, targets_text, targets_with
from ..ptx.statements import InstructionStatement

_NEEDS: dict[str, tuple[Feature | None, tuple[int, int]]] = {  # the feature, None for all; first PTX version
    "ldmatrix": (Feature.LDMATRIX, (6, 5)),
    "stmatrix": (Feature.STMATRIX, (7, 8)),
    "fence": (Feature.PROXY_FENCE, (8, 0)),
    "wgmma": (Feature.WGMMA, (8, 0)),
    "bar.warp": (None, (6, 0)),
}


def check_since(statement: InstructionStatement, target: str, version: tuple[int, int]) -> None:
    """Raise IllegalInstruction where the chip or the PTX version does not have the statement."""
    name = f"{statement.opcode}.warp" if statement.modifiers[:1] == ("warp",) else statement.opcode
    feature, first = _NEEDS.get(name, (None, (0, 0)))
    if feature is not None and target not in targets_with(feature):
        needs = targets_text(targets_with(feature), "or higher")
        raise IllegalInstruction(f"{statement.mnemonic} is not on {target}: it needs {needs}")
    if version < first:
        needed, given = (".".join(map(str, one)) for one in (first, version))
        raise IllegalInstruction(f"{statement.mnemonic} needs PTX {needed}, but the version is {given}")
