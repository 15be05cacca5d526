"""``python -m tools.user_mistakes [--only TEXT] [--show]``: what ``warpsim diff`` says, and how fast."""

from __future__ import annotations

from tools.judging import measured

from . import instruction, known, loops, printouts, scaled, warpgroups

GROUPS = {
    "instruction": instruction.LIST,
    "known": known.LIST,
    "loops": loops.LIST,
    "warpgroups": warpgroups.LIST,
    "scaled": scaled.LIST,
    "printouts": printouts.LIST,
}

if __name__ == "__main__":
    measured(GROUPS, "What warpsim diff says of mistakes that users make.")
