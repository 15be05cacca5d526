"""Deliberate mistakes in the RTL, and the situation that each needs to be seen.

The unit itself stays clean: a fault replaces one piece of the SystemVerilog by another, and the faulty unit
is built beside the sound one. Where a configuration cannot reach the situation, no result may change; the
run proves that too.
"""

from __future__ import annotations

from dataclasses import dataclass

from .bins import NAMES
from .configuration import Configuration

Sources = dict[str, str]  # SystemVerilog text by file name


@dataclass(frozen=True, kw_only=True)
class Fault:
    """In ``file``, ``right`` (which occurs once) becomes ``wrong``; seen where all bins of ``needs`` are."""

    name: str
    file: str
    right: str
    wrong: str
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = set(self.needs) - set(NAMES)
        if unknown:
            raise AssertionError(f"fault {self.name!r} needs {unknown}, which are no bins")

    def applied(self, sources: Sources) -> Sources:
        """Return the sources with the fault in them."""
        text = sources[self.file]
        if text.count(self.right) != 1:
            raise AssertionError(
                f"fault {self.name!r}: {text.count(self.right)} places in {self.file}, not 1"
            )
        return sources | {self.file: text.replace(self.right, self.wrong)}

    def unseen(self, configuration: Configuration) -> str:
        """Return why the fault changes no result of a configuration; "" where it changes some."""
        reasons = (NAMES[name].unreachable(configuration) for name in self.needs)
        return next(filter(None, reasons), "")


def _fault(name: str, file: str, right: str, wrong: str, *needs: str) -> Fault:
    return Fault(name=name, file=f"{file}.sv", right=right, wrong=wrong, needs=needs)


_TRUNCATED = "SUM_WIDTH'({term[i] >> gap[i] >> (TERM_FRACTION_BITS - F)})"
_TINY = "result: subnormal, inexact"
_NEAREST = "rounding: carries into the exponent"  # reached wherever d is rounded to nearest

FAULTS: tuple[Fault, ...] = (
    # decoding
    _fault(
        "subnormal operands are flushed",
        "float_decode",
        "{normal, fraction}",
        "normal ? {normal, fraction} : '0",
    ),
    _fault("subnormals get a hidden bit", "float_decode", "{normal, fraction}", "{1'b1, fraction}"),
    _fault("subnormals keep exponent field 0", "float_decode", " + EXPONENT_WIDTH'(!normal)", ""),
    _fault(
        "signalling NaN is a number",
        "float_decode",
        "&field && fraction != '0",
        "&field && fraction[FRACTION_BITS-1]",
    ),
    _fault(
        "every format has Inf",
        "float_decode",
        "if (SPECIALS == 1)",
        "if (1)",
        "operand: A beyond IEEE formats",
    ),
    # selection
    _fault(
        "metadata of a pair is swapped",
        "select_2of4",
        "[2*stored+:2]",
        "[2*(stored^1)+:2]",
        "metadata: field 0b0100",
    ),
    _fault(
        "metadata index is one bit",
        "select_2of4",
        "= metadata[2*stored+:2]",
        "= {1'b0, metadata[2*stored]}",
        "metadata: field 0b0100",
    ),
    _fault(
        "metadata starts at the high end",
        "select_2of4",
        "metadata[2*stored+:2]",
        "metadata[2*(2*CHUNKS-1-stored)+:2]",
        "metadata: field 0b0100",
    ),
    # products
    _fault("sign of b is lost", "fused_dot", "= a_negative ^ b_negative", "= a_negative"),
    _fault(
        "Inf times zero is Inf",
        "fused_dot",
        "          || (a_infinite && b_significand == '0) || (b_infinite && a_significand == '0);",
        ";",
        "special: Inf times zero",
    ),
    # the largest exponent
    _fault("zeros count in the maximum", "fused_dot", "term[i] != '0 && exponent[i]", "exponent[i]"),
    _fault("c does not count in the maximum", "fused_dot", "i <= L; i++) begin\n", "i < L; i++) begin\n"),
    _fault(
        "products are normalised first",
        "fused_dot",
        "exponent[i] > maximum) maximum = exponent[i];",
        "exponent[i] + EXPONENT_WIDTH'(term[i][TERM_WIDTH-1]) > maximum)\n"
        "        maximum = exponent[i] + EXPONENT_WIDTH'(term[i][TERM_WIDTH-1]);",
    ),
    _fault(
        "no exponent floor",
        "fused_dot",
        "EXPONENT_WIDTH'(EXPONENT_FLOOR)",
        "EXPONENT_WIDTH'(-(1 << (EXPONENT_WIDTH - 2)))",
        "largest: the exponent floor",
    ),
    _fault(
        "exponent floor is one lower",
        "fused_dot",
        "EXPONENT_WIDTH'(EXPONENT_FLOOR)",
        "EXPONENT_WIDTH'(EXPONENT_FLOOR - 1)",
        "largest: the exponent floor",
    ),
    # alignment
    _fault("F is one less", "tensor_dot", ".F              (F)", ".F              (F - 1)"),
    _fault("F is one more", "tensor_dot", ".F              (F)", ".F              (F + 1)"),
    _fault(
        "gap has five bits",
        "fused_dot",
        "= maximum - exponent[i]",
        "= EXPONENT_WIDTH'(5'(maximum - exponent[i]))",
    ),
    _fault(
        "alignment rounds negative terms down",
        "fused_dot",
        _TRUNCATED,
        f"{_TRUNCATED}\n        + SUM_WIDTH'(negative[i] && (term[i] >> gap[i] >> (TERM_FRACTION_BITS - F)"
        " << (TERM_FRACTION_BITS - F) << gap[i]) != term[i])",
    ),
    _fault(
        "alignment rounds to nearest",
        "fused_dot",
        _TRUNCATED,
        "SUM_WIDTH'({(({1'b0, term[i], 1'b0} >> gap[i] >> (TERM_FRACTION_BITS - F)) + 1'b1) >> 1})",
    ),
    _fault(
        "truncation after the sum, not before",
        "fused_dot",
        """    sum = '0;
    for (int i = 0; i <= L; i++) sum = negative[i] ? sum - aligned[i] : sum + aligned[i];""",
        """    begin : after
      logic signed [SUM_WIDTH+15:0] wide;
      wide = '0;
      for (int i = 0; i <= L; i++) begin
        if (negative[i]) wide = wide - ({term[i], 16'b0} >> gap[i] >> (TERM_FRACTION_BITS - F));
        else wide = wide + ({term[i], 16'b0} >> gap[i] >> (TERM_FRACTION_BITS - F));
      end
      sum = SUM_WIDTH'(wide / 65536);
    end""",
    ),
    # the sum
    _fault("subtraction is a complement", "fused_dot", "? sum - aligned[i] :", "? sum + ~aligned[i] :"),
    _fault("sum drops its carries", "fused_dot", "F + 2 + $clog2(L + 1) + 1", "F + 2 + 1"),
    _fault(
        "sum is one bit short",
        "fused_dot",
        "F + 2 + $clog2(L + 1) + 1",
        "F + 2 + $clog2(L + 1)",
        "sum: carries into the topmost bit",
    ),
    _fault(
        "partial sums are not chained",
        "tensor_dot",
        ".c(first ? c : d)",
        ".c(c)",
        "chain: partial sum, finite",
    ),
    # rounding
    _fault(
        "rounding is the other one",
        "tensor_dot",
        ".NEAREST        (NEAREST)",
        ".NEAREST        (1 - NEAREST)",
    ),
    _fault(
        "one bit of precision is lost",
        "tensor_dot",
        ".PRECISION      (PRECISION)",
        ".PRECISION      (PRECISION - 1)",
    ),
    _fault(
        "ties go away from zero", "round_pack", "(kept[0] || rest[REST_WIDTH-2:0] != '0)", "1'b1", _NEAREST
    ),
    _fault(
        "sticky bits are ignored", "round_pack", "kept[0] || rest[REST_WIDTH-2:0] != '0", "kept[0]", _NEAREST
    ),
    _fault(
        "carry of the rounding is dropped",
        "round_pack",
        "CODE_WIDTH'(kept) + CODE_WIDTH'(increment)",
        "CODE_WIDTH'(PRECISION'(kept + PRECISION'(increment)))",
        _NEAREST,
    ),
    _fault("negative sums round down", "round_pack", "negative ? -sum : sum", "negative ? ~sum : sum"),
    # the result
    _fault(
        "subnormal results are flushed",
        "round_pack",
        "packed_code == '0 ?",
        "packed_code >> FRACTION_BITS == '0 ?",
    ),
    _fault(
        "subnormal shift stops a bit early",
        "round_pack",
        "? SHIFT_WIDTH'(PRECISION + 1) :",
        "? SHIFT_WIDTH'(PRECISION) :",
        _TINY,
        _NEAREST,
    ),
    _fault(
        "negative underflow is -0",
        "round_pack",
        "magnitude == '0 || packed_code == '0",
        "magnitude == '0",
        "result: negative, rounds to +0",
    ),
    _fault(
        "zeros that are all negative give -0",
        "fused_dot",
        "d = rounded;",
        "d = {rounded[D_BITS-1] || (negative == {(L + 1) {1'b1}} && rounded == '0), rounded[D_BITS-2:0]};",
    ),
    _fault(
        "overflow stops at the largest number",
        "round_pack",
        "overflow ? INFINITY[FIELDS-1:0]",
        "overflow ? INFINITY[FIELDS-1:0] - 1'b1",
        "result: overflows to Inf",
    ),
    _fault(
        "overflow is not noticed",
        "round_pack",
        "= packed_code >= INFINITY",
        "= 1'b0",
        "result: overflows to Inf",
    ),
    _fault(
        "+Inf in c is not noticed",
        "fused_dot",
        "(infinite & ~negative) != '0",
        "(infinite[L-1:0] & ~negative[L-1:0]) != '0",
        "special: Inf product and C = -Inf",  # alone it overflows to Inf all the same
    ),
    _fault("NaN in c is not noticed", "fused_dot", "if (nan != '0", "if (nan[L-1:0] != '0"),
    _fault(
        "Inf minus Inf is -Inf",
        "fused_dot",
        " || (plus_infinity && minus_infinity)",
        "",
        "special: Inf minus Inf",
    ),
    _fault(
        "NaN is the IEEE default NaN",
        "fused_dot",
        "d = {1'b0, {(D_BITS - 1) {1'b1}}}",
        "d = {1'b0, {(D_EXPONENT_BITS + 1) {1'b1}}, {(D_FRACTION_BITS - 1) {1'b0}}}",
    ),
)
