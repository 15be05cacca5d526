"""The faults: one line of reference.py each, or one number of a rule, and the form that should notice.

Every fault is what a hardware unit or a model of one could have got wrong. ``old`` is a part of one line of
the source and occurs once; ``new`` stands in its place. A fault of a rule changes its ``numbers``.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault, and the instruction on a target whose corner vectors are to catch it."""

    name: str
    form: str
    target: str
    old: str = ""
    new: str = ""
    numbers: dict[str, int] = field(default_factory=dict)


_MMA = "mma.sync.aligned"
F16 = (f"{_MMA}.m16n8k16.row.col.f32.f16.f16.f32", "sm_80")
F16_ONE_STEP = (f"{_MMA}.m16n8k16.row.col.f32.f16.f16.f32", "sm_90")
F16_F16 = (f"{_MMA}.m16n8k16.row.col.f16.f16.f16.f16", "sm_80")
VOLTA = (f"{_MMA}.m8n8k4.row.col.f16.f16.f16.f16", "sm_70")
QUAD_F32 = (f"{_MMA}.m8n8k4.row.col.f32.f16.f16.f32", "sm_80")
QUAD_F16 = (f"{_MMA}.m8n8k4.row.col.f16.f16.f16.f16", "sm_80")
BF16 = (f"{_MMA}.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_80")
TF32 = (f"{_MMA}.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80")
F8 = (f"{_MMA}.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_89")
F8_EMULATED = (f"{_MMA}.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90")
F8_EMULATED_MIXED = (f"{_MMA}.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_90")
F8_FLAT = (f"{_MMA}.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_120")
MX = (f"{_MMA}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0", "sm_120a")
MXF4 = (f"{_MMA}.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "sm_120a")
NVF4 = (
    f"{_MMA}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    "sm_120a",
)
F64 = (f"{_MMA}.m8n8k4.row.col.f64.f64.f64.f64", "sm_80")
F64_DOWN = (f"{_MMA}.m8n8k4.row.col.rm.f64.f64.f64.f64", "sm_80")
S8 = (f"{_MMA}.m16n8k32.row.col.s32.s8.u8.s32", "sm_80")
S8_SATURATING = (f"{_MMA}.m16n8k32.row.col.satfinite.s32.s8.s8.s32", "sm_80")
B1 = (f"{_MMA}.m16n8k128.row.col.s32.b1.b1.s32.xor.popc", "sm_80")
SPARSE = ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_80")


def _line(name: str, form: tuple[str, str], old: str, new: str) -> Fault:
    return Fault(name=name, form=form[0], target=form[1], old=old, new=new)


def _rule(name: str, form: tuple[str, str], **numbers: int) -> Fault:
    return Fault(name=name, form=form[0], target=form[1], numbers=numbers)


_ALIGNED = "magnitude, _ = _truncate(term.significand, unit - term.scale)"
_CUT_TAIL = "_truncate(term.significand, unit - term.scale)"

FAULTS: tuple[Fault, ...] = (
    # alignment
    _line("terms rounded to nearest", F16, _ALIGNED, f"magnitude = {_CUT_TAIL}[0] + ({_CUT_TAIL}[1] > 1)"),
    _line(
        "terms rounded down",
        F16,
        _ALIGNED,
        f"magnitude = {_CUT_TAIL}[0] + (term.negative and {_CUT_TAIL}[1] > 0)",
    ),
    _line(
        "terms rounded away from zero", F16, _ALIGNED, f"magnitude = {_CUT_TAIL}[0] + ({_CUT_TAIL}[1] > 0)"
    ),
    _line("a sticky bit is kept", F16, _ALIGNED, f"magnitude = {_CUT_TAIL}[0] | ({_CUT_TAIL}[1] > 0)"),
    _line("alignment after the sum", F16, "unit = exponent - rule.fraction_bits", "unit = exponent - 400"),
    _line(
        "zero products count in the maximum",
        F16,
        "for term in terms if term.significand]",
        "for term in terms]",
    ),
    _line(
        "C left out of the maximum",
        F16,
        "for term in terms if term.significand]",
        "for term in terms[:-1] if term.significand]",
    ),
    _line(
        "products left out of the maximum",
        F16,
        "for term in terms if term.significand]",
        "for term in terms[-1:] if term.significand]",
    ),
    _line(
        "products normalised first",
        F16,
        "exponents = [term.exponent for term",
        "exponents = [term.scale + term.significand.bit_length() - 1 for term",
    ),
    _line(
        "no exponent floor, bf16", BF16, "max([rule.exponent_floor, *exponents])", "max([-999, *exponents])"
    ),
    _line(
        "no exponent floor, f16 sums",
        F16_F16,
        "max([rule.exponent_floor, *exponents])",
        "max([-999, *exponents])",
    ),
    _rule("one fraction bit fewer, f16", F16, fraction_bits=23),
    _rule("one fraction bit more, f16", F16, fraction_bits=25),
    _rule("one fraction bit fewer, Volta", VOLTA, fraction_bits=22),
    _rule("one fraction bit more, fp8", F8, fraction_bits=14),
    _rule("one fraction bit fewer, sm_120 fp8", F8_FLAT, fraction_bits=24),
    _rule("one fraction bit more, sparse", SPARSE, fraction_bits=25),
    _rule("one fraction bit more, scaled groups", MXF4, fraction_bits=36),
    _rule("exponent floor one lower, bf16", BF16, exponent_floor=-133),
    _rule("exponent floor one higher, tf32", TF32, exponent_floor=-131),
    _rule("exponent floor one lower, f16 sums", F16_F16, exponent_floor=-21),
    # steps
    _rule("steps half as long", F16, length=4),
    _rule("all products in one step", F16, length=16),
    _rule("two steps instead of one", F16_ONE_STEP, length=8),
    _rule("all products in one step, sparse", SPARSE, length=16),
    _rule("groups half as large", MXF4, group=8),
    _line(
        "steps in reversed order",
        F16,
        "for start in range(0, len(products), rule.length):",
        "for start in reversed(range(0, len(products), rule.length)):",
    ),
    _line(
        "a step forgets the one before",
        F16,
        "accumulator = decode(steps[-1].code, FORMATS[rule.output.format])",
        "pass",
    ),
    _line(
        "emulated fp8: other halves",
        F8_EMULATED,
        "for halves in ((0, 1), (2, 3)):",
        "for halves in ((0, 2), (1, 3)):",
    ),
    _line(
        "emulated fp8: halves exchanged",
        F8_EMULATED,
        "for halves in ((0, 1), (2, 3)):",
        "for halves in ((2, 3), (0, 1)):",
    ),
    _line(
        "emulated fp8: C added toward zero",
        F8_EMULATED,
        "return ieee_sum([inputs.c, partial], form.d)",
        "return ieee_sum([inputs.c, partial], form.d, TOWARD_ZERO)",
    ),
    # rounding
    _line("f16 results cut", F16_F16, "rest + odd > 2", "False"),
    _line("ties away from zero", F16_F16, "rest + odd > 2", "rest > 1"),
    _line("ties to odd", F16_F16, "rest + odd > 2", "rest + (not odd) > 2"),
    _line(
        "f32 results rounded to nearest",
        F16,
        "TRUNCATED = Rounding(lambda negative, odd, rest: False,",
        "TRUNCATED = Rounding(lambda negative, odd, rest: rest + odd > 2,",
    ),
    _line(
        "f32 results rounded down",
        F16,
        "TRUNCATED = Rounding(lambda negative, odd, rest: False,",
        "TRUNCATED = Rounding(lambda negative, odd, rest: negative and rest > 0,",
    ),
    _line(
        "too large becomes the largest number",
        BF16,
        "rest: False, lambda negative: True)",
        "rest: False, lambda negative: False)",
    ),
    _line(
        "subnormal results become zero",
        F16_F16,
        "return code | (element.sign_bit if negative else 0)",
        "return (code if code >> element.fraction_bits else 0) | (element.sign_bit if negative else 0)",
    ),
    _line("half a unit taken for less", F16_F16, "2 * (rest >= half)", "2 * (rest > half)"),
    _line(
        "results rounded twice",
        F16_F16,
        "return 0 if code == element.sign_bit else code",
        "return 0 if code == element.sign_bit else pack(total < 0, *(lambda n: (n.significand, n.scale))(decode(pack(False, abs(total), unit, F32, 14, NEAREST_EVEN), F32)), element, output.precision, rounding)",
    ),
    _line(
        "zeros keep a minus sign", F16_F16, "return 0 if code == element.sign_bit else code", "return code"
    ),
    # specials
    _line("Inf - Inf is Inf", F16, "if len(infinities) == 2 or any", "if any"),
    _line(
        "Inf * 0 is Inf",
        F16,
        "kind=Kind.NAN if kind is Kind.INFINITE and significand == 0 else kind",
        "kind=kind",
    ),
    _line(
        "NaN is the quiet one",
        F16,
        "return element.canonical_nan",
        "return element.canonical_nan & ~0x3FFFFF",
    ),
    _line(
        "NaN with a sign",
        F16_F16,
        "return element.canonical_nan",
        "return element.canonical_nan | element.sign_bit",
    ),
    _line("e4m3 has no NaN", F8, "Kind.NAN if full else Kind.FINITE", "Kind.FINITE"),
    # operands
    _line(
        "subnormal operands become zero",
        F16,
        "significand=fraction + (int(normal) << element.fraction_bits),",
        "significand=(fraction + (1 << element.fraction_bits)) * normal,",
    ),
    _line(
        "subnormal exponent one too low",
        F16,
        "if normal else element.minimum_exponent",
        "if normal else element.minimum_exponent - 1",
    ),
    _line("sign of the second factor lost", F16, "negative=x.negative != y.negative", "negative=x.negative"),
    _line(
        "tf32 reads all its bits",
        TF32,
        "bits = (code & element.mask) >> element.ignored_bits",
        "bits = ((code & element.mask) + (1 << element.ignored_bits >> 1)) >> element.ignored_bits",
    ),
    _line(
        "fp8 factors not converted to f16",
        F8_EMULATED_MIXED,
        "[ieee(F16, x) for x in inputs.a], [ieee(F16, x) for x in inputs.b]",
        "inputs.a, inputs.b",
    ),
    # scales
    _line("block scales ignored", MX, "    if inputs.scales:", "    if False:"),
    _line("the first scale serves all groups", NVF4, "inputs.scales[start]", "inputs.scales[0]"),
    _line("a zero scale counts in the maximum", NVF4, "if scale.significand and any(", "if any("),
    _line(
        "groups of zeros count in the maximum",
        MXF4,
        "if scale.significand and any(member.significand for member in members):",
        "if scale.significand:",
    ),
    _line("groups that cancel do not count", MXF4, "any(member.significand for member in members)", "total"),
    _line(
        "groups aligned by their sums",
        NVF4,
        "exponents.append(scale.exponent)",
        "exponents.append(scale.exponent + total.bit_length() + unit)",
    ),
    # f64 and software
    _line(
        "f64 products in reversed order",
        F64,
        "for term in inputs.products:",
        "for term in reversed(inputs.products):",
    ),
    _line(
        "f64 products rounded before the addition",
        F64,
        "ieee_sum([term, d], form.d, ROUNDINGS",
        "ieee_sum([ieee(form.d, term), d], form.d, ROUNDINGS",
    ),
    _line("f64 .rm rounds up", F64_DOWN, '"rm": DOWNWARD', '"rm": UPWARD'),
    _line(
        "f64 .rm cancels to +0",
        F64_DOWN,
        "lambda negative: negative, True)",
        "lambda negative: negative, False)",
    ),
    _line(
        "software: other order, f32",
        QUAD_F32,
        "ieee(F32, p3, ieee(F32, p2, ieee(F32, p1, ieee(F32, p0, ZERO))))",
        "ieee(F32, p0, ieee(F32, p1, ieee(F32, p2, ieee(F32, p3, ZERO))))",
    ),
    _line(
        "software: C first, f32",
        QUAD_F32,
        "return ieee_sum([inputs.c, chain], F32)",
        "return ieee_sum([p3, ieee(F32, p2, ieee(F32, p1, ieee(F32, p0, inputs.c)))], F32)",
    ),
    _line(
        "software: pairs exchanged, f16",
        QUAD_F16,
        "ieee(F32, inputs.c, ieee(F32, p3, ieee(F32, p2)))",
        "ieee(F32, inputs.c, ieee(F32, p1, ieee(F32, p0)))",
    ),
    _line(
        "software: last sum not rounded to f32",
        QUAD_F16,
        "ieee_sum([ieee(F32, upper, lower)], form.d)",
        "ieee_sum([upper, lower], form.d)",
    ),
    # integers
    _line("saturation missing", S8_SATURATING, "    if form.satfinite:", "    if False:"),
    _line(
        "saturates one too high",
        S8_SATURATING,
        "min(total, form.d.sign_bit - 1)",
        "min(total, form.d.sign_bit)",
    ),
    _line(
        "saturates at each product",
        S8_SATURATING,
        "total = inputs.c.signed + sum(term.signed for term in inputs.products)",
        "total = inputs.c.signed\n    for term in inputs.products: total = max(-(1 << 31), min(total + term.signed, (1 << 31) - 1))",
    ),
    _line("saturates without .satfinite", S8, "    if form.satfinite:", "    if True:"),
    _line(
        "signed operands read as unsigned",
        S8,
        "value = bits - ((bits & element.sign_bit) << 1)",
        "value = bits",
    ),
    _line("ones of AND instead of XOR", B1, '"xor": int.__xor__', '"xor": int.__and__'),
    _line(
        "1-bit sums without C",
        B1,
        "return (inputs.c.signed + ones) & form.d.mask",
        "return ones & form.d.mask",
    ),
)
