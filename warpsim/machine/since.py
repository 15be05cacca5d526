"""Since when there are statements that older chips lack; matrix instructions know that themselves.

PTX ISA 9.1, "Target ISA Notes" and "PTX ISA Notes" of each instruction.
"""

from __future__ import annotations

from ..errors import IllegalInstruction
from ..ptx.statements import InstructionStatement

_SINCE = {  # opcode, perhaps with its first modifier -> the first chip, and the first PTX version
    "ldmatrix": (75, (6, 5)),
    "stmatrix": (90, (7, 8)),
    "fence": (90, (8, 0)),
    "wgmma": (90, (8, 0)),
    "bar.warp": (30, (6, 0)),
}


def check_since(statement: InstructionStatement, target: str, version: tuple[int, int]) -> None:
    """Raise IllegalInstruction where the chip or the PTX version does not have the statement."""
    name = f"{statement.opcode}.warp" if statement.modifiers[:1] == ("warp",) else statement.opcode
    chip, first = _SINCE.get(name, (0, (0, 0)))
    if not chip:
        return
    number = int("".join(filter(str.isdecimal, target)))
    if number < chip or (statement.opcode == "wgmma" and target != "sm_90a"):
        needs = "sm_90a" if statement.opcode == "wgmma" else f"sm_{chip} or higher"
        raise IllegalInstruction(f"{statement.mnemonic} is not on {target}: it needs {needs}")
    if version < first:
        major, minor = version
        needs = f"{first[0]}.{first[1]}"
        raise IllegalInstruction(
            f"{statement.mnemonic} needs PTX {needs}, but the version is {major}.{minor}"
        )
