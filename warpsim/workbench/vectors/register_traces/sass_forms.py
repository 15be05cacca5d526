"""SASS: the form of a disassembled matrix instruction, and the registers of its operands.

``HMMA.16816.F32 R4, R8, R12, R4`` is D, A, B, C by their first registers; sparse forms add the metadata
register and the selector, ``HMMA.SP.16832.F32 R4, R4, R8, R12, R0, 0x1``. Does not know logs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from ....isa.families import forms
from ....isa.instruction import Instruction
from ....isa.sass_names import name_of
from ....ptx.qualifiers import on_target

ZERO = 255  # the number of RZ

_SASS = re.compile(r"(?:@!?U?P\w++\s++)?([A-Z][\w.]*+)(.*)")
_REGISTER = re.compile(r"[-!~|]?(?:R(\d{1,3})|RZ)(?:\.\w++)*+\|?")


@dataclass(frozen=True, kw_only=True)
class Sass:
    """A disassembled instruction: its name, the registers among its operands, and the last immediate."""

    name: str
    registers: tuple[int, ...]
    immediate: int | None


@cache
def parse(text: str) -> Sass | None:
    """Return the instruction of a text, or None; address operands in brackets are not register operands."""
    match = _SASS.fullmatch(text.strip().removesuffix(";").rstrip())
    if not match:
        return None
    operands = [operand.strip() for operand in match[2].split(",")]
    found = [_REGISTER.fullmatch(operand) for operand in operands]
    last = operands[-1]
    return Sass(
        name=match[1],
        registers=tuple(int(item[1]) if item[1] else ZERO for item in found if item),
        immediate=int(last, 16) if re.fullmatch("0x[0-9a-f]{1,8}", last) else None,
    )


@cache
def forms_by_name(target: str) -> dict[str, tuple[Instruction, ...]]:
    """Return the mma and mma.sp forms of a target that a SASS name can stand for; ordered metadata comes
    first.

    Block-scaled, f64 and m8n8k4 forms are left out: their operands are not registers of a single instruction.
    """
    named: dict[str, list[Instruction]] = {}
    for form in forms().values():
        plain = form.family.rules == "mma" and form.products == 1 and form.register_bits == 32
        if plain and form.scale is None and target in form.targets:
            named.setdefault(name_of(form), []).append(on_target(form, target))
    return {name: tuple(sorted(found, key=lambda form: not form.ordered)) for name, found in named.items()}


def is_matrix(name: str) -> bool:
    """Return whether a SASS name is that of a matrix instruction, known here or not."""
    return "MMA" in name.partition(".")[0]
