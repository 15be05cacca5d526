"""What ptxas makes of a form on a target: matrix instructions by the names of nvdisasm.

Read off what ptxas 13.0 emitted for every form on the targets below, and said of those alone. Forms that the
hardware has no instruction for become several, or none at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ....isa.instruction import Instruction
from ....isa.sass_names import name_of

SEEN = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120a")

_SPELLED = (9, 0)  # the PTX of that ptxas
_WITHOUT_F8 = (90, 100)  # generations whose warps have no instruction for 8-bit floats


def sass_of(form: Instruction, target: str) -> str | None:
    """Return ``HMMA.16816.F32``, ``2 x IMMA.16832.S8.S8``, or the name of a routine; None if not known."""
    if target not in SEEN or target not in form.targets or form.since > _SPELLED:
        return None
    generation = int(re.sub(r"\D", "", target))
    spell = next((make for applies, make in _RULES if applies(form, generation)), None)
    return spell(form, generation) if spell else name_of(form)


def _several(count: int, name: str) -> str:
    return f"{count} x {name}" if count > 1 else name


def _resized(form: Instruction, m: int, k: int) -> str:
    """Return the name with another m and k."""
    shape = form.shape
    return name_of(form).replace(f"{shape.m}{shape.n}{shape.k}", f"{m}{shape.n}{k}")


def _quads(form: Instruction, generation: int) -> str:
    if generation > 75:
        return "no matrix instruction: FFMA, FADD and shuffles"
    d, steps = form.d.name.upper(), 2 if form.d.bits == 16 else 4
    return f"{steps} x HMMA.884.{d}.{form.c.name.upper()}.STEP0..{steps - 1}"


def _double(form: Instruction, generation: int) -> str:
    rounding = f".{form.rounding.upper()}" if form.rounding not in ("", "rn") else ""
    if generation < 90:
        return f"DMMA.884{rounding}"
    if generation == 90:
        return name_of(form)
    return _several(form.shape.m // 8 * form.shape.k // 4, f"DMMA.8x8x4{rounding}")


def _bits(form: Instruction, generation: int) -> str:
    if generation >= 100:
        return _several(form.shape.k // 32, "IMMA.16832.U8.U8")
    return _several(2, name_of(form).replace("XOR", "AND"))


def _narrow_integers(form: Instruction, generation: int) -> str:
    m = 16 if generation >= 100 else form.shape.m
    name = _resized(form, m, form.shape.k // 2).removesuffix(".SAT")
    return _several(2, re.sub(r"([US])4", r"\g<1>8", name))


def _short(form: Instruction, _: int) -> str:
    return _resized(form, 16, form.shape.k)


def _halves(form: Instruction, _: int) -> str:
    sparse = ".SP" if form.sparse else ""
    return f"2 x HMMA{sparse}.16{form.shape.n}{form.shape.k // 2}.{form.d.name.upper()}"


_RULES: tuple[tuple[Callable[[Instruction, int], bool], Callable[[Instruction, int], str]], ...] = (
    (lambda form, _: form.products > 1, _quads),
    (lambda form, _: form.lanes > 32 or form.scale is not None, lambda form, _: name_of(form)),
    (lambda form, _: form.a.bits == 64, _double),
    (lambda form, new: form.a.bits == 1 and new >= (90 if form.bit_operation == "xor" else 100), _bits),
    (lambda form, new: form.a.name in ("s4", "u4") and new >= 90, _narrow_integers),
    (lambda form, new: form.a.name in ("s8", "u8") and form.shape.m == 8 and new >= 100, _short),
    (lambda form, new: form.a.bits == 8 and form.a.is_float and new in _WITHOUT_F8, _halves),
)
