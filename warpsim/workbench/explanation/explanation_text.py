"""An explanation as lines of text in aligned columns, and several targets side by side.

Binary columns show a term as its step sees it: the digit before the point has the weight of the largest
exponent. The bits that alignment dropped have their own column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import groupby

from ...base.errors import present
from ...base.text_columns import words
from ...isa.rules import FusedSum
from .digits import bits_text, code_text, exact_text, fraction_text, hexadecimal, ulps_text, value_text
from .information import rule_text
from .records import Explanation, Factor, Product, Step, TargetComparison, Term, lines_of

_STEPS = 3  # steps of a target that are shown from the first difference on, with the last

# --- one explanation -------------------------------------------------------------------------------


@lines_of.register
def explanation_lines(explanation: Explanation) -> list[str]:
    """Return an explanation as text: operands, steps, result, and other ways to sum."""
    scales = scale_table(explanation)
    return [
        *heading_lines(explanation),
        "",
        *_indented(operand_table(explanation)),
        *(["", *_indented(scales)] if scales else []),
        *_step_lines(explanation),
        "",
        *_indented(yardstick_table(explanation)),
    ]


def heading_lines(explanation: Explanation) -> list[str]:
    """Return the element, its code, the instruction and its rule with the evidence."""
    instruction, d = explanation.instruction, explanation.instruction.d
    product = f" of product {explanation.product}" if instruction.products > 1 else ""
    code = hexadecimal(explanation.code, d.bits)
    return [
        f"D[{explanation.row},{explanation.column}]{product} = {code} = {code_text(explanation.number, d)}"
        f" in {explanation.place}",
        f"  {instruction.mnemonic} on {instruction.target}",
        f"  rule      {rule_text(explanation.rule)}",
        f"  evidence  {explanation.rule.evidence}",
        *(f"  note      {note}" for note in (*explanation.notes, *reading_notes(explanation))),
    ]


def reading_notes(explanation: Explanation) -> list[str]:
    """Return the remarks that the columns of numbers do not show."""
    notes = []
    for name in "ab":
        factors = [getattr(each, name) for each in explanation.products]
        ignored = factors[0].format.ignored_bits
        count = sum(bool(factor.code & ((1 << ignored) - 1)) for factor in factors)
        if count:
            notes.append(
                f"the low {ignored} bits of {name.upper()} are dropped, since {factors[0].format} lacks "
                f"them; {count} of {len(factors)} codes have some set, and the values ignore them"
            )
    if any(step.exponent is not None for step in explanation.steps):
        notes.append(
            "exponent: exp(A) + exp(B), before normalisation (0 for 1.5 * 1.5); all "
            "terms of a step are shifted to the largest"
        )
    return notes


def place_text(factor: Factor) -> str:
    """Return lane, register and bits; ``shared`` for a value that no register holds."""
    return str(factor.place) if factor.place else "shared"


def product_table(explanation: Explanation) -> list[list[str]]:
    """Return a heading and a row for each product, C last; metadata if there are any."""
    first = explanation.products[0]
    header = ["", "k", "A", "code", "value", "B", "code", "value"]
    header += ["metadata", "field", "index"] if first.metadata else []
    scaled = first.scale_a is not None and isinstance(explanation.rule, FusedSum)
    header += ["product * scales" if scaled else "product", "exponent", "step"]
    last = ["c", "", *_c_cells(explanation)]
    last += [""] * (len(header) - len(last))
    return [header, *(_product_row(product) for product in explanation.products), last]


def _product_row(product: Product) -> list[str]:
    row = [str(product.position), str(product.k), *_factor_cells(product.a), *_factor_cells(product.b)]
    if product.metadata:
        row += [str(product.metadata), f"{product.field:04b}", str(product.index)]
    return [*row, value_text(product.number), str(product.number.exponent), str(product.step)]


def _factor_cells(factor: Factor) -> list[str]:
    code = hexadecimal(factor.code, factor.format.bits)
    return [place_text(factor), code, code_text(factor.number, factor.format)]


def _c_cells(explanation: Explanation) -> list[str]:
    cells = _factor_cells(explanation.c)
    return cells if explanation.c.place else ["not read", *cells[1:]]


def scale_table(explanation: Explanation) -> list[list[str]]:
    """Return a heading and a row for each pair of block scales, in the order of k; empty without scales."""
    pairs: dict[tuple[Factor, Factor], list[int]] = {}
    for product in sorted(explanation.products, key=lambda each: each.k):
        if product.scale_a and product.scale_b:
            pairs.setdefault((product.scale_a, product.scale_b), []).append(product.k)
    header = ["scale A", "code", "value", "scale B", "code", "value", "of products with k"]
    rows = [
        [*_factor_cells(a), *_factor_cells(b), f"{columns[0]}..{columns[-1]}"]
        for (a, b), columns in pairs.items()
    ]
    return [header, *rows] if rows else []


def word_table(explanation: Explanation) -> list[list[str]]:
    """Return the rows of 1-bit products by 32: words of A and B, and the number of set bits of the result."""
    header = ["k", "A", "word", "B", "word", "ones"]
    rows = []
    for start in range(0, len(explanation.products), 32):
        part = explanation.products[start : start + 32]
        words_of = [sum(getattr(each, name).code << i for i, each in enumerate(part)) for name in "ab"]
        cells = [
            text
            for name, word in zip("ab", words_of, strict=True)
            for text in (place_text(getattr(part[0], name)).partition("[")[0], hexadecimal(word, 32))
        ]
        ones = sum(each.number.significand for each in part)
        rows.append([f"{start}..{start + 31}", *cells, str(ones)])
    where, code, value = _c_cells(explanation)
    return [header, *rows, ["c", where, code, "", "", value]]


def operand_table(explanation: Explanation) -> list[list[str]]:
    """Return product_table, or word_table for 1-bit forms."""
    one_bit = bool(explanation.instruction.bit_operation)
    return word_table(explanation) if one_bit else product_table(explanation)


def _indented(rows: list[list[str]]) -> list[str]:
    return [f"  {line}" for line in words(rows)]


def _step_lines(explanation: Explanation) -> Iterator[str]:
    for block in _blocks(enumerate(explanation.steps)):
        yield from ("", *block)


def _blocks(numbered: Iterable[tuple[int, Step]]) -> Iterator[list[str]]:
    """Yield the lines of each fused sum, and of each table of operations that align nothing, a row each."""
    for aligned, part in groupby(numbered, key=lambda pair: pair[1].exponent is not None):
        if aligned:
            yield from ([*step_lines(*pair)] for pair in part)
        else:
            yield [f"  {line}" for line in words(operation_table(list(part)))]


def step_lines(number: int, step: Step) -> Iterator[str]:
    """Yield a fused sum: its terms aligned below each other, their sum and its rounding."""
    yield f"  step {number}, {step.operation}: {alignment_text(step)}"
    yield from (f"    {line}" for line in words(term_table(step)))
    yield from (f"    {line}" for line in outcome_lines(step))


def alignment_text(step: Step) -> str:
    """Return ``largest exponent 3, unit 2**-21``."""
    floor = "" if any(term.aligns for term in step.terms) else " (the floor)"
    return f"largest exponent {step.exponent}{floor}, unit 2**{step.unit}"


def term_table(step: Step) -> list[list[str]]:
    """Return a heading, a row for each term and a row for their sum."""
    header = ["term", "exponent", f"in units of 2**{step.unit}", "cut off"]
    if step.special:
        rows = [[_term_name(term), "", value_text(term.number), ""] for term in step.terms]
        return [header, *rows]
    digits = max(abs(number).bit_length() for number in [step.total, *(term.kept for term in step.terms)])
    rows = [_term_row(term, step, digits) for term in step.terms]
    table = [header, *rows, ["sum", "", binary(step.total, step, digits), ""]]
    if not any(len(term.positions) > 1 for term in step.terms):
        return table
    sums = ["exact sum", *(value_text(term.number) for term in step.terms), ""]  # of groups, scales included
    return [[*row, text] for row, text in zip(table, sums, strict=True)]


def _term_row(term: Term, step: Step, digits: int) -> list[str]:
    exponent = str(term.number.exponent) if term.aligns else "-"
    cut = bits_text(term.cut, term.cut_width)
    return [_term_name(term), exponent, binary(term.kept, step, digits), cut]


def _term_name(term: Term) -> str:
    if len(term.positions) < 2:
        return term.name
    return f"{term.name}, products {term.positions[0]}..{term.positions[-1]}"


def binary(value: int, step: Step, digits: int) -> str:
    """Return a sign and binary digits with a point behind the digit of weight ``2**exponent``."""
    exponent = present(step.exponent, "exponent")
    fraction = exponent - step.unit
    text = f"{abs(value):0{max(digits, fraction + 1)}b}"
    point = len(text) - fraction
    return f"{'-' if value < 0 else '+'}{text[:point]}.{text[point:]}"


def outcome_lines(step: Step) -> list[str]:
    """Return the exact sum, the place of its leading bit, and how it was rounded."""
    code = f"{hexadecimal(step.code, step.format.bits)} = {value_text(step.number)}"
    if step.special:
        return [f"Inf or NaN among the terms: {code}"]
    return [
        f"sum = {exact_text(step.total, step.unit)}{_normalisation(step)}",
        f"{rounding_text(step)}: {code}",
    ]


def _normalisation(step: Step) -> str:
    if step.leading is None or step.exponent is None:
        return ""
    moved = step.leading - step.exponent
    if moved > 0:
        return f", a carry of {moved} bit{'s'[: moved != 1]}"
    return f", leading bit {-moved} below the largest exponent" if moved else ""


def rounding_text(step: Step) -> str:
    """Return ``rounded to 24 bits, toward zero, dropping 101``."""
    dropped = bits_text(step.dropped, step.dropped_width)
    return f"rounded to {step.rounding}" + (f", dropping {dropped}" if dropped else ", exact")


def operation_table(steps: Sequence[tuple[int, Step]]) -> list[list[str]]:
    """Return a heading and a row for each operation that aligns nothing: IEEE arithmetic and integers."""
    header = ["step", "operation", "terms", "exact", "rounding", "dropped", "code", "value"]
    return [header, *(_operation_row(number, step) for number, step in steps)]


def _operation_row(number: int, step: Step) -> list[str]:
    names = [term.name for term in step.terms]
    listed = " + ".join(names) if len(names) < 4 else f"{names[0]} … {names[-2]} + {names[-1]}"
    return [
        str(number),
        step.operation,
        listed,
        "-" if step.special else _sum_text(step),
        step.rounding,
        "" if step.special else bits_text(step.dropped, step.dropped_width),
        hexadecimal(step.code, step.format.bits),
        code_text(step.number, step.format),
    ]


def _sum_text(step: Step) -> str:
    """Return the exact sum; nine digits of it where it is long."""
    if not step.precision:
        return str(step.total)
    exact = exact_text(step.total, step.unit)
    value = Fraction(step.total) * Fraction(2) ** step.unit
    return exact if len(exact) <= 32 else f"≈ {fraction_text(value)}"


def yardstick_table(explanation: Explanation) -> list[list[str]]:
    """Return a heading and a row for each other way to sum."""
    d = explanation.instruction.d
    header = ["other ways to sum", "code", "D minus this sum (ulp)" if d.is_float else "D minus this sum"]
    rows = [
        [each.name, hexadecimal(each.code, d.bits), ulps_text(each.ulps)] for each in explanation.yardsticks
    ]
    return [header, *rows]


# --- several targets -------------------------------------------------------------------------------


def comparison_table(comparison: TargetComparison) -> list[list[str]]:
    """Return a heading and a row for each target: code, value, and ulps from each other way to sum."""
    first = comparison.explanations[0]
    names = ["exact sum", "fma chain", "separate multiply and add"][: len(first.yardsticks)]
    header = ["target", "D", "value", "steps", *(f"error against {name} (ulp)" for name in names)]
    rows = [
        [
            str(each.instruction.target),
            hexadecimal(each.code, each.instruction.d.bits),
            code_text(each.number, each.instruction.d),
            str(len(each.steps)),
            *(ulps_text(yardstick.ulps) for yardstick in each.yardsticks),
        ]
        for each in comparison.explanations
    ]
    return [header, *rows]


@lines_of.register
def comparison_lines(comparison: TargetComparison) -> list[str]:
    """Return targets side by side, and the step that differs, as each target computes it."""
    first = comparison.explanations[0]
    lines = [f"D[{first.row},{first.column}] of {first.instruction.mnemonic}"]
    lines += [f"  {line}" for line in words(comparison_table(comparison))]
    parting = comparison.parting
    lines += ["", f"  {parting_text(comparison)}"]
    if parting is None:
        return lines
    if parting.partial is not None:
        lines.append(f"  rounded sums of the same products first differ after {parting.partial} of them")
    explained = {str(each.instruction.target): each for each in comparison.explanations}
    for targets, _ in parting.ways:
        lines += ["", f"{', '.join(targets)}:", *_way_lines(parting.step, explained[targets[0]].steps)]
    return lines


def parting_text(comparison: TargetComparison) -> str:
    """Return which step is the first that differs, and whether D does."""
    if comparison.parting is None:
        return "every step is the same on all chips"
    step = comparison.parting.step
    if comparison.same_d:
        return f"D is equal on all chips; their steps differ from step {step} on"
    return f"chips first differ at step {step}"


def _way_lines(first: int, steps: Sequence[Step]) -> list[str]:
    """Return the first step of a target that differs, the next, and the last, which makes its D."""
    if first >= len(steps):
        return [f"  has no step {first}"]
    rest = list(enumerate(steps))[first:]
    between = len(rest) - _STEPS
    shown = rest if between <= 0 else [*rest[: _STEPS - 1], rest[-1]]
    blocks = [*_blocks(shown)]
    lines = [line for block in blocks for line in block]
    if between <= 0:
        return lines
    rows = shown[-1][1].exponent is None and shown[-2][1].exponent is None  # the last is a row of a table
    last = 1 if rows else len(blocks[-1])
    return [*lines[:-last], f"  … {_steps_text(between)}", *lines[-last:]]


def _steps_text(count: int) -> str:
    return f"{count} step{'s'[: count != 1]} more"
