"""Names of matrix instructions as disassemblers print them, such as HMMA.16816.F32, as PTX mnemonics.

A name says less than a mnemonic: the first form of the target that fits it is taken. Names follow the output
of ``cuobjdump -sass`` for sm_75 to sm_90; the names of newer chips are not known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..isa.formats import floats_of, integers_of

if TYPE_CHECKING:
    from ..isa.instruction import Instruction

_NAME = re.compile(r"([HIDBQ]G?MMA)((?:\.\w+)*)")
_SHAPES = {
    "884": (8, 8, 4), "8816": (8, 8, 16), "8832": (8, 8, 32), "88128": (8, 8, 128),
    "1684": (16, 8, 4), "1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32),
    "16864": (16, 8, 64), "168128": (16, 8, 128), "168256": (16, 8, 256),
}  # fmt: skip
_OTHERS = {"H": ("f16", "bf16", "tf32"), "D": ("f64",), "B": ("b1",)}


def is_sass(text: str) -> bool:
    """Return whether a text is such a name."""
    return bool(_NAME.fullmatch(text.strip()))


def mnemonic_of(name: str, target: str | None) -> str:
    """Return the PTX mnemonic of a name on a target. Raises IllegalInstruction where no form fits."""
    from ..errors import IllegalInstruction
    from ..execution.interface import instructions

    match = _NAME.fullmatch(name.strip())
    if match and target:
        words = [word.lower() for word in match[2].split(".") if word]
        fitting = [form for form in instructions(target) if _fits(form, match[1], words)]
        if fitting:
            return min(fitting, key=lambda form: (not form.ordered, form.satfinite)).mnemonic
    where = f" on {target}" if target else ": give --target, the chip that it is of"
    raise IllegalInstruction(f"{name}: no instruction is known by this name{where}")


def _fits(form: Instruction, operation: str, words: list[str]) -> bool:
    kinds = _multiplicands(operation[0])
    named = [word for word in words if word in kinds]
    a, b = (named * 2)[:2] if named else (kinds[0], kinds[0])
    shape = form.shape.m, form.shape.n, form.shape.k
    results = [word for word in words if word in ("f32", "f16")]
    group = form.lanes == 128
    return (
        ("G" in operation) == group
        and _shape(words, group) == shape
        and form.sparse == ("sp" in words)
        and (form.a.name, form.b.name) == (a, b)
        and (not results or form.d.name == results[0])
        and form.satfinite == ("sat" in words)
        and not form.scale
    )


def _multiplicands(letter: str) -> tuple[str, ...]:
    """Return what a letter multiplies: the types that its names mention, the first
    where none is mentioned.
    """
    if letter == "I":
        return (*integers_of(8), *integers_of(4))
    return floats_of(8) if letter == "Q" else _OTHERS[letter]


def _shape(words: list[str], group: bool) -> tuple[int, ...] | None:
    if group:
        sizes = [re.fullmatch(r"(\d+)x(\d+)x(\d+)", word) for word in words]
        return next((tuple(map(int, size.groups())) for size in sizes if size), None)
    return next((_SHAPES[word] for word in words if word in _SHAPES), None)
