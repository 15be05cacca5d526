# ruff: noqa: E501  (lines of source stand as they are, and a fault is a row)
"""Faults of aligned sums: rule numbers, alignment, cutting, adding, steps, and the rounding of results."""

from __future__ import annotations

from typing import Any

from warpsim.isa.rules import ScaledGroups
from warpsim.workbench.generation.sums import reasons
from warpsim.workbench.generation.sums.limits import Limits

from . import proofs
from .behaviour import (
    Behaviour,
    Edit,
    Proof,
    Where,
    aligned,
    both,
    chained,
    either,
    emulated,
    floats,
    fused,
    groups,
    never,
)

# Places in _fused, each before a line that occurs once.
_TERMS = "    exponent = ((terms.exponent - _LOWEST) * counted).max(-1).astype(np.int64) + _LOWEST\n"
_UNIT = "    aligned = terms.value * np.ldexp(1.0, -unit.astype(np.int32))[..., None]\n"
_KEPT = '    with np.errstate(invalid="ignore"):\n        total = kept.sum(-1)\n'
_TOTAL = "    if change.units_vanish:\n"
_CODE = "    if change.flush_results:\n        code = np.where(done.subnormal, 0, code)\n    return Step("
_RESULT = "            accumulator = results(steps[-1].code, result)\n"
_GROWS = '    "rn": lambda negative, odd, tail: (tail == ABOVE_HALF) | ((tail == HALF) & odd),'
_CUTS = '    "cut": lambda negative, odd, tail: np.zeros(tail.shape, np.bool_),'


def _before(name: str, place: str, lines: str, where: Where = aligned, proof: Proof = never) -> Behaviour:
    edit = Edit(module="summing", old=place, new=f"    {lines}\n{place}")
    return Behaviour(name=name, edits=(edit,), where=where, proof=proof)


def _line(
    name: str, old: str, new: str, where: Where = aligned, proof: Proof = never, module: str = "summing"
) -> Behaviour:
    return Behaviour(name=name, edits=(Edit(module=module, old=old, new=new),), where=where, proof=proof)


def _bits(more: int) -> Behaviour:
    def numbers(limits: Limits) -> dict[str, Any]:
        return {"fraction_bits": limits.fraction_bits + more}

    def proof(limits: Limits) -> str:
        return reasons.cut_reason(limits, limits.fraction_bits + min(more, 0))

    return Behaviour(name=f"fraction bits {more:+d}", numbers=numbers, where=aligned, proof=proof)


def _floor(more: int) -> Behaviour:
    def numbers(limits: Limits) -> dict[str, Any]:
        return {"exponent_floor": limits.floor + more}

    def proof(limits: Limits) -> str:
        return proofs.floor(limits, max(more, 0))

    return Behaviour(name=f"exponent floor {more:+d}", numbers=numbers, where=aligned, proof=proof)


def any_cut(limits: Limits) -> str:
    """Prove that no term ever loses a bit."""
    return reasons.cut_reason(limits, limits.fraction_bits)


def c_cut(limits: Limits) -> str:
    """Prove that C, or what stands for it, never loses a bit."""
    return reasons.c_cut_reason(limits)


def product_cut(limits: Limits) -> str:
    """Prove that no product ever loses a bit."""
    return reasons.product_cut_reason(limits)


def nearest(limits: Limits) -> bool:
    """Select the forms whose sums are rounded to nearest."""
    return limits.step is not None and limits.output.nearest


def truncated(limits: Limits) -> bool:
    """Select the forms whose sums are rounded toward zero."""
    return limits.step is not None and not limits.output.nearest and not limits.emulated


def several_steps(limits: Limits) -> bool:
    """Select the forms whose sums take several steps."""
    return limits.step is not None and limits.steps > 1


def _ieee_nearest(limits: Limits) -> bool:
    return limits.instruction.a.is_float and (limits.step is None or limits.emulated) and limits.nearest


def short_output(limits: Limits) -> bool:
    """Select the forms whose results have fewer bits than f32."""
    return limits.step is not None and limits.output.precision == 14


ALIGNMENT = (
    *(_bits(more) for more in (-2, -1, 1, 2, 3)),
    *(_floor(more) for more in (-8, -2, -1, 1, 2, 8)),
    _line("terms rounded to nearest", "_CUTS[change.cut](aligned)", "np.rint(aligned)", proof=any_cut),
    _line("terms rounded down", "_CUTS[change.cut](aligned)", "np.floor(aligned)", proof=any_cut),
    _line("terms rounded up", "_CUTS[change.cut](aligned)", "np.ceil(aligned)", proof=any_cut),
    _line(
        "terms rounded away from zero",
        "_CUTS[change.cut](aligned)",
        "np.copysign(np.ceil(np.abs(aligned)), aligned)",
        proof=any_cut,
    ),
    _line(
        "terms keep a sticky bit",
        "_CUTS[change.cut](aligned)",
        "np.where(np.trunc(aligned) == aligned, aligned, "
        "np.trunc(aligned) + np.copysign(np.trunc(aligned) % 2 == 0, aligned))",
        proof=any_cut,
    ),
    _before(
        "terms keep half a unit",
        _KEPT,
        "kept = np.trunc(aligned * 2); unit = unit - 1",
        proof=any_cut,
    ),
    _before("C rounded to nearest", _KEPT, "kept[..., -1] = np.rint(aligned[..., -1])", proof=c_cut),
    _before("C rounded down", _KEPT, "kept[..., -1] = np.floor(aligned[..., -1])", proof=c_cut),
    _before(
        "C keeps a bit more",
        _KEPT,
        "kept = kept * 2; kept[..., -1] = np.trunc(aligned[..., -1] * 2); unit = unit - 1",
        proof=c_cut,
    ),
    _before(
        "C loses a bit more",
        _KEPT,
        "kept[..., -1] = np.trunc(aligned[..., -1] / 2) * 2",
        proof=lambda limits: proofs.c_cut_at(limits, limits.fraction_bits - 1),
    ),
    _before(
        "products rounded to nearest",
        _KEPT,
        "kept[..., :-1] = np.rint(aligned[..., :-1])",
        proof=product_cut,
    ),
    _before(
        "products keep a bit more",
        _KEPT,
        "kept = kept * 2; kept[..., :-1] = np.trunc(aligned[..., :-1] * 2); unit = unit - 1",
        proof=product_cut,
    ),
    _before(
        "the first product is not cut",
        _KEPT,
        "kept = kept * 1024; kept[..., 0] = np.trunc(aligned[..., 0] * 1024); unit = unit - 10",
        proof=product_cut,
    ),
    _before(
        "the last product is not cut",
        _KEPT,
        "kept = kept * 1024; kept[..., -2] = np.trunc(aligned[..., -2] * 1024); unit = unit - 10",
        proof=product_cut,
    ),
    _before(
        "positive terms alone are cut toward zero",
        _KEPT,
        "kept = np.where(aligned < 0, np.floor(aligned), kept)",
        proof=any_cut,
    ),
    _before(
        "negative terms in one's complement",
        _KEPT,
        "kept = kept - (aligned < 0)",
    ),
    _before(
        "C alone sets the alignment",
        _TERMS,
        "counted = counted & (np.arange(counted.shape[-1]) == counted.shape[-1] - 1)",
        proof=any_cut,
    ),
    _before(
        "products alone set the alignment",
        _TERMS,
        "counted = counted & (np.arange(counted.shape[-1]) != counted.shape[-1] - 1)",
        proof=product_cut,
    ),
    _before(
        "the first product has no say in the alignment",
        _TERMS,
        "counted = counted & (np.arange(counted.shape[-1]) != 0)",
        proof=any_cut,
    ),
    _before(
        "the last product has no say in the alignment",
        _TERMS,
        "counted = counted & (np.arange(counted.shape[-1]) != counted.shape[-1] - 2)",
        proof=any_cut,
    ),
    _before(
        "negative terms have no say in the alignment",
        _TERMS,
        "counted = counted & ~terms.negative",
        proof=any_cut,
    ),
    _before(
        "zero products count in the alignment",
        _TERMS,
        "counted = counted | (~terms.nonzero & (np.arange(counted.shape[-1]) < counted.shape[-1] - 1))",
        proof=reasons.zero_product_reason,
    ),
    _before(
        "a zero C counts in the alignment",
        _TERMS,
        "counted = counted | (~terms.nonzero & (np.arange(counted.shape[-1]) == counted.shape[-1] - 1))",
        proof=reasons.zero_c_reason,
    ),
    _before(
        "C = -0 counts in the alignment",
        _TERMS,
        "counted[..., -1] |= ~terms[..., -1].nonzero & terms[..., -1].negative",
        proof=lambda limits: reasons.zero_c_reason(limits, negative=True),
    ),
    _before(
        "C = +0 counts in the alignment",
        _TERMS,
        "counted[..., -1] |= ~terms[..., -1].nonzero & ~terms[..., -1].negative",
        proof=reasons.zero_c_reason,
    ),
    _before(
        "negative zero products count in the alignment",
        _TERMS,
        "counted[..., :-1] |= ~terms[..., :-1].nonzero & terms[..., :-1].negative",
        where=both(aligned, lambda limits: not isinstance(limits.rule, ScaledGroups)),
        proof=reasons.zero_product_reason,
    ),
    _before(
        "products of 2 and more align by their leading bit",
        _TERMS,
        "lead = np.frexp(terms.value)[1].astype(np.int16) - 1; "
        "terms.exponent[..., :-1] = np.where(terms.nonzero & (lead > terms.exponent), lead, "
        "terms.exponent)[..., :-1]",
        where=chained,
        proof=any_cut,
    ),
    _before(
        "products align by their leading bit",
        _TERMS,
        "terms.exponent[..., :-1] = terms.lifted(_LOWEST).exponent[..., :-1]",
        proof=any_cut,
    ),
    _before(
        "a subnormal C aligns by its leading bit",
        _TERMS,
        "terms.exponent[..., -1] = terms.lifted(_LOWEST).exponent[..., -1]",
        proof=proofs.small_c,
    ),
    _before(
        "C = the smallest normal exponent counts one lower",
        _TERMS,
        "terms.exponent[..., -1] -= np.abs(terms.value[..., -1]) < 2.0 ** "
        "(FORMATS[rule.output.format].minimum_exponent + 1)",
        proof=proofs.small_c,
    ),
    _line(
        "aligned to a multiple of two bits",
        "exponent = np.maximum(exponent, rule.exponent_floor)",
        "exponent = np.maximum(exponent, rule.exponent_floor); exponent = exponent + exponent % 2",
        proof=lambda limits: reasons.cut_reason(limits, limits.fraction_bits - 1),
    ),
)


def _adder(carries: int, *, signed: bool = False) -> Edit:
    """Return the edit that drops the highest bit that sums can have, or reads it as their sign."""
    top = f"(1 << (rule.fraction_bits + {carries}))"
    sign = f" - (np.abs(total) & {top}) * np.sign(total)"
    lines = f"total = total{sign}{sign if signed else ''}"
    return Edit(module="summing", old=_TOTAL, new=f"    {lines}\n{_TOTAL}")


ADDING = (
    Behaviour(
        name="the adder loses its highest carry",
        edits=lambda limits: (_adder(limits.carries),),
        where=aligned,
    ),
    Behaviour(
        name="the adder wraps at its highest carry",
        edits=lambda limits: (_adder(limits.carries, signed=True),),
        where=aligned,
    ),
    _before("the first product is not added", _KEPT, "kept[..., 0] = kept[..., 0] * 0"),
    _before("the last product is not added", _KEPT, "kept[..., -2] = kept[..., -2] * 0"),
    _before("C is not added", _KEPT, "kept[..., -1] = 0"),
    _before("C is added twice", _KEPT, "kept[..., -1] = kept[..., -1] * 2"),
    _before("sums of one unit vanish", _TOTAL, "total = np.where(np.abs(total) == 1, 0, total)"),
    _before(
        "one too much where products cancel C",
        _TOTAL,
        "total = total + ((total == 0) & terms.nonzero.any(-1))",
    ),
    _before("negative sums in one's complement", _TOTAL, "total = np.where(total < 0, total - 1, total)"),
    _before(
        "a sum of negative zeros is -0",
        _CODE,
        "code = np.where((~terms.nonzero & terms.negative).all(-1), code | FORMATS[rule.output.format]"
        ".sign_bit, code)",
        proof=lambda limits: "C is added last, to a sum that starts at +0" if limits.emulated else "",
    ),
    _before(
        "a sum that cancels is -0",
        _CODE,
        "code = np.where((total == 0) & terms.nonzero.any(-1) & terms.negative[..., -1], "
        "code | FORMATS[rule.output.format].sign_bit, code)",
    ),
    _before(
        "negative results that round to zero are -0",
        _CODE,
        "code = np.where(done.vanished & (total < 0), FORMATS[rule.output.format].sign_bit, code)",
        proof=proofs.vanishing,
    ),
)

STEPS = (
    Behaviour(name="steps half as long", numbers=lambda limits: {"length": _shorter(limits)}, where=fused),
    _line(
        "steps half as long, of f16 halves",
        "_chain(rule.step, products[..., chosen]",
        "_chain(replace(rule.step, length=stored // 4), products[..., chosen]",
        where=emulated,
    ),
    Behaviour(
        name="steps twice as long",
        numbers=lambda limits: {"length": 2 * limits.rule.aligned.length},  # type: ignore[union-attr]
        where=both(fused, several_steps),
    ),
    _line(
        "steps in reversed order",
        "reversed(starts) if change.reverse else starts",
        "reversed(starts)",
        where=both(fused, several_steps),
    ),
    _line(
        "a step forgets the one before",
        _RESULT,
        "            accumulator = Terms(value=accumulator.value * 0, exponent=accumulator.exponent)\n",
        where=both(fused, several_steps),
    ),
    _line(
        "steps take every other product",
        "products[..., start : start + rule.length]",
        "products[..., start // rule.length :: max(1, len(starts))]",
        where=both(fused, several_steps),
    ),
    _line(
        "results of steps flushed",
        _RESULT,
        "            accumulator = terms_of(decode(steps[-1].code, result)).flushed(result)\n",
        where=both(fused, several_steps),
        proof=lambda limits: reasons.small_reason(limits, limits.instruction.d.minimum_exponent - 1),
    ),
    _line(
        "results of steps rounded to nearest",
        _RESULT,
        "            accumulator = terms_of(decode(np.where(steps[-1].special == FINITE, rounded(steps[-1].total, "
        "steps[-1].unit, result, rule.output.precision, 'rn').code, steps[-1].code.astype(np.int64)), result))\n",
        where=both(fused, several_steps, truncated),
    ),
    _line(
        "results of steps lose their last bit",
        _RESULT,
        "            accumulator = terms_of(decode(np.where(steps[-1].special == FINITE, "
        "steps[-1].code & ~np.uint64(1 << (result.fraction_bits + 1 - rule.output.precision)), "
        "steps[-1].code), result))\n",
        where=both(fused, several_steps),
    ),
    _line(
        "f16 halves exchanged",
        "reversed(halves) if change.reverse else halves",
        "reversed(halves)",
        where=emulated,
    ),
    _line("f16 halves of other bytes", "% 4 // 2 == half)", "% 2 == half)", where=emulated),
    _line(
        "C starts the sum of f16 products",
        "    partial = decode(np.zeros(factors.c.value.shape, np.uint32), result)\n",
        "    partial, c = c, decode(np.zeros(factors.c.value.shape, np.uint32), result)\n",
        where=emulated,
    ),
    _line(
        "C added toward zero",
        'joined([partial, c]), result, "rn", change)',
        'joined([partial, c]), result, "rz", change)',
        where=emulated,
    ),
    _line(
        "C added rounding down",
        'joined([partial, c]), result, "rn", change)',
        'joined([partial, c]), result, "rm", change)',
        where=emulated,
    ),
    _line(
        "C added rounding up",
        'joined([partial, c]), result, "rn", change)',
        'joined([partial, c]), result, "rp", change)',
        where=emulated,
    ),
    _line(
        "fp8 factors aligned by their own exponents",
        "        if isinstance(rule, EmulatedF8):\n            numbers = as_f16(numbers)\n",
        "",
        where=emulated,
        module="factors",
        proof=reasons.subnormal_reason,
    ),
)


def _shorter(limits: Limits) -> int:
    return max(1, int((limits.groups == 0).sum()) // 2)


ROUNDING = (
    _line(
        "ties away from zero",
        _GROWS,
        '    "rn": lambda negative, odd, tail: tail >= HALF,',
        where=either(nearest, _ieee_nearest),
        module="exact_numbers",
    ),
    _line(
        "ties toward zero",
        _GROWS,
        '    "rn": lambda negative, odd, tail: tail == ABOVE_HALF,',
        where=either(nearest, _ieee_nearest),
        module="exact_numbers",
    ),
    _line(
        "ties to odd",
        _GROWS,
        '    "rn": lambda negative, odd, tail: (tail == ABOVE_HALF) | ((tail == HALF) & ~odd),',
        where=either(nearest, _ieee_nearest),
        module="exact_numbers",
    ),
    _line(
        "ties up",
        _GROWS,
        '    "rn": lambda negative, odd, tail: (tail == ABOVE_HALF) | ((tail == HALF) & ~negative),',
        where=either(nearest, _ieee_nearest),
        module="exact_numbers",
    ),
    _line(
        "rounded toward zero, not to nearest",
        _GROWS,
        '    "rn": lambda negative, odd, tail: tail < 0,',
        where=either(nearest, _ieee_nearest),
        module="exact_numbers",
    ),
    _line(
        "rounded to nearest, not toward zero",
        _CUTS,
        '    "cut": lambda negative, odd, tail: (tail == ABOVE_HALF) | ((tail == HALF) & odd),',
        where=truncated,
        module="exact_numbers",
    ),
    _line(
        "rounded down, not toward zero",
        _CUTS,
        '    "cut": lambda negative, odd, tail: negative & (tail > 0),',
        where=truncated,
        module="exact_numbers",
    ),
    _line(
        "rounded up, not toward zero",
        _CUTS,
        '    "cut": lambda negative, odd, tail: ~negative & (tail > 0),',
        where=truncated,
        module="exact_numbers",
    ),
    _line(
        "rounded away from zero, not toward it",
        _CUTS,
        '    "cut": lambda negative, odd, tail: tail > 0,',
        where=truncated,
        module="exact_numbers",
    ),
    _line(
        "rounded to odd, not toward zero",
        _CUTS,
        '    "cut": lambda negative, odd, tail: ~odd & (tail > 0),',
        where=truncated,
        module="exact_numbers",
    ),
    _line(
        "sticky bits below the second are lost",
        "    rest = raised - (kept << down)\n",
        "    rest = raised - (kept << down)\n    rest = rest & (-1 << np.maximum(down - 2, 0))\n",
        where=nearest,
        module="exact_numbers",
    ),
    Behaviour(
        name="results of 24 bits", numbers=lambda limits: _output(limits, precision=24), where=short_output
    ),
    Behaviour(
        name="results of 15 bits", numbers=lambda limits: _output(limits, precision=15), where=short_output
    ),
    Behaviour(
        name="results of a bit less",
        numbers=lambda limits: _output(limits, precision=limits.output.precision - 1),
        where=both(aligned),
    ),
    _line(
        "too large stays the largest number",
        '    "cut": lambda negative: np.ones(negative.shape, np.bool_),',
        '    "cut": lambda negative: np.zeros(negative.shape, np.bool_),',
        where=truncated,
        module="exact_numbers",
        proof=reasons.overflow_reason,
    ),
    _line(
        "too large and negative stays the largest number",
        '    "cut": lambda negative: np.ones(negative.shape, np.bool_),',
        '    "cut": lambda negative: ~negative,',
        where=truncated,
        module="exact_numbers",
        proof=reasons.overflow_reason,
    ),
    _line(
        "too large stays the largest number, to nearest",
        '    "rn": lambda negative: np.ones(negative.shape, np.bool_),',
        '    "rn": lambda negative: np.zeros(negative.shape, np.bool_),',
        where=either(nearest, _ieee_nearest),
        module="exact_numbers",
        proof=lambda limits: "" if limits.instruction.d.name == "f64" else reasons.overflow_reason(limits),
    ),
    _line(
        "the largest number becomes Inf",
        "    overflow = _flags(code >= infinity)\n",
        "    overflow = _flags(code >= infinity - (1 << (element.fraction_bits + 1 - precision)))\n",
        where=floats,
        module="exact_numbers",
        proof=proofs.largest,
    ),
    _line(
        "subnormal results become zero",
        _CODE,
        "    code = np.where(done.subnormal, 0, code)\n    return Step(",
        where=either(fused, groups),
        proof=lambda limits: reasons.small_reason(limits, limits.instruction.d.minimum_exponent - 1),
    ),
    _line(
        "negative subnormal results become zero",
        _CODE,
        "    code = np.where(done.subnormal & (total < 0), 0, code)\n    return Step(",
        where=either(fused, groups),
        proof=lambda limits: reasons.small_reason(limits, limits.instruction.d.minimum_exponent - 1),
    ),
    _line(
        "the smallest result becomes zero",
        _CODE,
        "    code = np.where(code & 0x7fffffff == 1 << (FORMATS[rule.output.format].fraction_bits + 1 - "
        "rule.output.precision), 0, code)\n    return Step(",
        where=both(truncated),
        proof=lambda limits: reasons.small_reason(limits, limits.smallest),
    ),
    _line(
        "subnormal results keep their bits",
        "    place = np.where(_flags(magnitude == 0), smallest, np.maximum(own, smallest))\n",
        "    place = np.where(_flags(magnitude == 0), smallest, np.maximum(own, smallest + (own < smallest)))\n",
        where=floats,
        module="exact_numbers",
        proof=lambda limits: reasons.small_reason(limits, limits.smallest),
    ),
    _line(
        "a carry out of the fraction is lost",
        "    grown = kept + _GROWS[mode](negative, odd, tail)\n",
        "    grown = kept + _GROWS[mode](negative, odd, tail)\n    grown = np.where(grown >> precision, kept, grown)\n",
        where=either(nearest, _ieee_nearest),
        module="exact_numbers",
    ),
)


def _output(limits: Limits, **changed: Any) -> dict[str, Any]:
    from dataclasses import replace

    return {"output": replace(limits.output, **changed)}


SCALED = (
    Behaviour(name="groups of 8", numbers=lambda limits: {"group": 8}, where=groups),
    Behaviour(
        name="groups of 32",
        numbers=lambda limits: {"group": 32},
        where=both(groups, lambda limits: limits.instruction.scale_chunks == 2),
    ),
    _line(
        "a zero scale counts in the alignment",
        "counted.append(scale.nonzero & members.nonzero.any(-1))",
        "counted.append(members.nonzero.any(-1))",
        where=both(groups, lambda limits: limits.instruction.scale.fraction_bits > 0),
    ),
    _line(
        "groups of zeros count in the alignment",
        "counted.append(scale.nonzero & members.nonzero.any(-1))",
        "counted.append(scale.nonzero)",
        where=groups,
    ),
    _line(
        "groups that cancel do not count",
        "counted.append(scale.nonzero & members.nonzero.any(-1))",
        "counted.append(scale.nonzero & (total != 0))",
        where=groups,
    ),
    _line(
        "groups aligned by their sums",
        "    groups = Terms(value=np.stack(values, -1), exponent=np.stack(exponents, -1))\n",
        "    groups = Terms(value=np.stack(values, -1), exponent=np.stack(exponents, -1)).lifted(_LOWEST)\n",
        where=groups,
    ),
    _line(
        "groups aligned by the largest product",
        "        exponents.append(scale.exponent)",
        "        exponents.append(scale.exponent + np.where(members.nonzero, members.exponent, -9).max(-1).astype(np.int16))",
        where=groups,
    ),
    _line(
        "sums of groups lose halves",
        "        values.append(total * scale.value)",
        "        values.append(np.trunc(total) * scale.value)",
        where=groups,
    ),
    _line(
        "sums of groups lose quarters",
        "        values.append(total * scale.value)",
        "        values.append(np.trunc(total * 2) / 2 * scale.value)",
        where=groups,
    ),
    _line(
        "sums of groups saturate at 512",
        "        values.append(total * scale.value)",
        "        values.append(np.clip(total, -512, 512) * scale.value)",
        where=groups,
    ),
    _line(
        "the last product of a group is left out",
        "        total = members.value.sum(-1)\n",
        "        total = members.value[..., :-1].sum(-1)\n",
        where=groups,
    ),
    _line(
        "products of two steps of groups share a scale",
        "scales[..., start]",
        "scales[..., start // 2]",
        where=groups,
    ),
    _line(
        "the first scale serves all",
        "    return both[..., chunk].outermost\n",
        "    return both[..., chunk * 0].outermost\n",
        where=lambda limits: limits.instruction.scale_chunks > 1,
        module="factors",
    ),
    _line(
        "scales in reversed order",
        "    return both[..., chunk].outermost\n",
        "    return both[..., ::-1][..., chunk].outermost\n",
        where=lambda limits: limits.instruction.scale_chunks > 1,
        module="factors",
    ),
    _line(
        "scale products lose their last bit",
        "    return both[..., chunk].outermost\n",
        "    both = replace(both, value=np.where(np.isfinite(both.value), np.ldexp(np.trunc(np.ldexp(both.value, 7 - both.exponent.astype(np.int32) - 2)), both.exponent.astype(np.int32) - 5), both.value))\n"
        "    return both[..., chunk].outermost\n",
        where=lambda limits: (
            limits.instruction.scale is not None and limits.instruction.scale.fraction_bits > 0
        ),
        module="factors",
    ),
    _line(
        "scales multiply after the alignment",
        "    products = _products(factors, change)\n    if factors.scales is not None:\n        products = times(products, factors.scales)\n",
        "    products = _products(factors, change)\n    if factors.scales is not None:\n        products = replace(times(products, factors.scales), exponent=products.exponent)\n",
        where=both(fused, lambda limits: limits.instruction.scale is not None),
    ),
)

SUMS = (*ALIGNMENT, *ADDING, *STEPS, *ROUNDING, *SCALED)
