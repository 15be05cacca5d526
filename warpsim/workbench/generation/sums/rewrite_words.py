"""Words of rewritten rules: what an arithmetic does that a program of a chip's rule does not."""

from __future__ import annotations

from collections.abc import Callable

from ....sums.rule_programs.program_rewrites import EVERYTHING, Rewrite
from .limits import Limits

_CUTS = {
    "nearest": "rounded to nearest",
    "halves up": "rounded to nearest, ties away from zero",
    "down": "rounded down",
    "up": "rounded up",
    "away": "rounded away from zero",
    "sticky": "cut with a sticky bit",
}
_ROUNDINGS = {
    "rn": "to nearest even",
    "ra": "to nearest, ties away from zero",
    "rz": "toward zero, and too large becomes the largest finite number",
    "cut": "toward zero",
    "rm": "toward -Inf",
    "rp": "toward +Inf",
}
_SUBNORMALS = {
    "all": "subnormal operands read as zero",
    "C": "subnormal C read as zero",
    "A and B": "subnormal factors aligned by their leading bits",
    "C, the largest": "the largest subnormal C read as normal",
    "results": "subnormal results written as zero",
}
_ALIGNED = {
    "leading": "products normalised before alignment",
    "carried": "products of 2 and more aligned by their leading bit",
}
_ZEROS = {
    "all": "zeros counted",
    "C": "C = 0 counted",
    "negative C": "C = -0 counted",
    "negative products": "negative zero products counted",
}


def rewrite_words(limits: Limits, rewrite: Rewrite) -> str:
    """Return what the arithmetic of a rewritten program does."""
    return _WORDS[rewrite.kind](limits, **rewrite.facts)


def _kept(limits: Limits, bits: int) -> str:
    if bits == EVERYTHING:
        return "alignment after the sum"
    return f"{bits - limits.fraction_bits:+d} fraction bits: alignment keeps {bits} fraction bits"


def _cut(limits: Limits, of: str, mode: str) -> str:
    if mode == "a bit more":
        return f"alignment leaves a bit more of {of if of == 'C' else f'the {of}'}"
    others = {"terms": "", "products": ", not C", "C": " in the alignment, not the products"}
    return f"{of} {_CUTS[mode]}{others[of]}"


def _order(limits: Limits, name: str, parts: int) -> str:
    what = "products" if limits.step is None else "steps"
    return {
        "reversed": f"{what} in reversed order",
        "every": f"step by step every {parts}th product is summed",
        "interleaved": f"the {parts} parts of k are interleaved in the steps",
    }[name]


def _not_aligned(limits: Limits, of: str | int) -> str:
    if of == "C":
        return "C left out of the alignment"
    if of == "products":
        return "C alone sets the alignment"
    return f"product {of} of a step does not take part in the alignment"


def _steps(limits: Limits, size: int) -> str:
    whole = size == limits.instruction.stored_k
    return "all products in one step" if whole else f"steps of {size} products"


_WORDS: dict[str, Callable[..., str]] = {
    "kept bits": _kept,
    "floor": lambda limits, floor: "no exponent floor" if floor is None else f"the exponent floor is {floor}",
    "group": lambda limits, size: f"groups of {size} products",
    "step": _steps,
    "precision": lambda limits, bits: f"results of {bits} bits",
    "operation": lambda limits, name: f"bits are combined by {name}",
    "read as": lambda limits, **sides: " and ".join(
        f"{side.upper()} is read as {name}" for side, name in sides.items()
    ),
    "saturation": lambda limits, clamps: "the sum saturates" if clamps else "the sum does not saturate",
    "subnormals": lambda limits, of, read: _SUBNORMALS[of],
    "left out": lambda limits, of: f"{of} is not added",
    "aligned by": lambda limits, bit: _ALIGNED[bit],
    "not converted": lambda limits: "factors aligned as they are stored, not as f16",
    "order": _order,
    "rounded products": lambda limits: "products rounded before the addition",
    "not aligned by": _not_aligned,
    "zeros align": lambda limits, of: f"{_ZEROS[of]} in the alignment",
    "cut": _cut,
    "units vanish": lambda limits: "sums of one unit are zero",
    "rounding": lambda limits, mode: f"results rounded {_ROUNDINGS[mode]}",
    "accumulator": lambda limits, bits, clamps: (
        f"the sum {'saturates' if clamps else 'wraps'} at {bits} bits"
    ),
}
