"""The numbers of every rule by chip and family: what each sum takes, keeps and rounds, and the evidence.

Each number is read from the program of the rule; what becomes of subnormal numbers and of a NaN is computed
with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import chain
from typing import TypeVar

from ...base.text_columns import words
from ...isa.architectures import ARCHITECTURES, CARDS, target_of_card, targets_text
from ...isa.families.tcgen05 import reported, typical
from ...isa.formats import FORMATS, Format
from ...isa.instruction import Instruction
from ...isa.products import Product
from ...ptx.qualifiers import on_target
from ...sums.execution.interface import instructions
from ...sums.rule_programs.rule_interpreter import number_of, run
from ...sums.rule_programs.rule_operations import Operation, Program
from ...sums.rule_programs.rule_templates import program_of
from ...workbench.explanation.information import Document, rule_on
from ...workbench.explanation.rule_steps import ROUNDING_NAMES, labels_of
from .evidence import modes_of_c

LABELS = ("validated", "reported", "documented", "inferred")  # from strong to weak
_Key = TypeVar("_Key", bound=tuple[object, ...])


@dataclass(frozen=True, kw_only=True)
class RuleRow:
    """How a chip sums the products of one operation of a family into one format of D.

    ``cards`` are sold with the chip, ``types`` those of A and B, ``k`` the most products that a form sums.
    Of these, each of ``steps`` sums takes ``length`` at most, and is rounded; ``group`` products are added
    exactly and aligned together. ``fraction_bits`` are kept below the largest exponent, which is at least
    ``exponent_floor``; they are None where nothing is aligned, or without a floor.
    ``accumulators`` are formats and significant bits of rounded sums, and ``rounding`` how they are rounded.
    ``subnormals`` says whether subnormal numbers of A and C reach D, ``nan`` is the code that a NaN
    becomes; None for integers. ``converted`` is the format that operands are converted to before they are
    multiplied, "" where they are not. ``evidence`` counts forms by label, ``chips`` are those compared.
    """

    target: str
    cards: tuple[str, ...]
    family: str
    operation: str
    types: tuple[str, ...]
    d: str
    rule: str
    k: int
    length: int
    group: int
    steps: int
    fraction_bits: int | None
    exponent_floor: int | None
    accumulators: tuple[str, ...]
    rounding: tuple[str, ...]
    subnormals: str | None
    nan: str | None
    converted: str
    evidence: dict[str, int]
    chips: tuple[str, ...]


def rules(target: str | None = None) -> list[RuleRow]:
    """Return the numbers of the rules of a chip, or of all: a row for each family, operation and format of D.

    ``target`` is a target or the name of a card, such as ``"H100"``. Raises IllegalInstruction for an
    unknown target.
    """
    target = target and (target_of_card(target) or target)
    described = (form for form in chain(typical(), reported()) if target is None or target in form.targets)
    return rule_rows([*instructions(target), *(on_target(form, target) for form in described)])


def rule_rows(forms: Iterable[Instruction]) -> list[RuleRow]:
    """Return rows for the forms, each on its own target, or on all that it is legal on."""
    found = dict[tuple[str, str, str, str], list[Instruction]]()
    for form in forms:
        for target in [form.target] if form.target else form.targets:
            found.setdefault((form.family.rules, form.operation, form.d.name, target), []).append(form)
    order = list(ARCHITECTURES)
    keys = sorted(found, key=lambda key: (*key[:3], order.index(key[3])))
    return [_row(key[3], found[key]) for key in keys]


def _row(target: str, forms: list[Instruction]) -> RuleRow:
    largest = max(forms, key=lambda form: form.stored_k)
    rule, product = rule_on(largest, target), largest.product
    program, aligned = program_of(rule.bare, product), rule.aligned or rule
    taken = [_products(program, step) for step in _steps(program)]
    outputs = [output for form in _by_mode(forms) for output in _outputs(program_of(rule.bare, form.product))]
    known = [
        rule_on(form, target, with_c=added).evidence for form in forms for added in modes_of_c(form, target)
    ]
    labels = Counter(each.label for each in known)
    return RuleRow(
        target=target,
        cards=cards_of(target),
        family=largest.family.rules,
        operation=largest.operation,
        types=tuple(dict.fromkeys(side.name for form in forms for side in (form.a, form.b))),
        d=largest.d.name,
        rule=type(rule).__name__,
        k=largest.stored_k,
        length=max(taken),
        group=min((each.given[0] for each in program.named("sum")), default=1),
        steps=len(taken),
        fraction_bits=getattr(aligned, "fraction_bits", None),
        exponent_floor=getattr(aligned, "exponent_floor", None),
        accumulators=tuple(dict.fromkeys(accumulator for accumulator, _ in outputs)),
        rounding=tuple(dict.fromkeys(rounding for _, rounding in outputs)),
        subnormals=_subnormals(program, product),
        nan=_nan(program, product),
        converted=next((each.given[0] for each in program.named("convert")), ""),
        evidence={label: count for label in LABELS if (count := labels[label])},
        chips=tuple(dict.fromkeys(each.chip for evidence in known for each in evidence.compared)),
    )


def cards_of(target: str) -> tuple[str, ...]:
    """Return the cards with the chip of a target, whatever its suffix."""
    number = ARCHITECTURES[target].number
    return tuple(card for card, name in CARDS.items() if ARCHITECTURES[name].number == number)


# --- programs --------------------------------------------------------------------------------------


def _by_mode(forms: Iterable[Instruction]) -> list[Instruction]:
    """Return a form for each rounding and saturation."""
    return list({(form.rounding, form.satfinite): form for form in forms}.values())


def _steps(program: Program) -> Iterator[Operation]:
    return program.named("round", "ieee", "wrap")


def _products(program: Program, step: Operation) -> int:
    """Return how many products a step adds."""
    if step.name == "wrap":
        cut = program.by_result[program.by_result[step.values[0]].values[0]]
        terms = cut.values[0]
    else:
        terms = step.values[-1]
    return sum(len(label.positions) for label in labels_of(program)[terms])


def _outputs(program: Program) -> Iterator[tuple[str, str]]:
    """Yield format and bits of each rounded sum, and how it is rounded."""
    for step in _steps(program):
        if step.name == "round":
            output = step.given[0]
            rounding = ROUNDING_NAMES["rn" if output.nearest else "rz"]
            yield f"{output.format} of {output.precision} bits", rounding
        elif step.name == "ieee":
            element = FORMATS[step.given[0]]
            yield f"{element} of {element.fraction_bits + 1} bits", ROUNDING_NAMES[step.given[1]]
        else:
            bits, clamps = step.given
            yield f"{bits} bits", f"clamped to {bits} bits" if clamps else f"modulo 2**{bits}"


def _computed(program: Program, **firsts: int) -> int:
    """Return D of a first code of each operand; the other codes of A and B are 0, scales are 1."""
    codes = {each.name: [0] * each.count for each in program.inputs}
    for each in program.inputs:
        if each.name.startswith("scale"):
            codes[each.name] = [_one(FORMATS[each.format])] * each.count
    for name, code in firsts.items():
        codes[name][0] = code
    result: int = run(program, codes)[program.result]
    return result


def _one(element: Format) -> int:
    return element.bias << element.fraction_bits + element.ignored_bits


def _subnormals(program: Program, product: Product) -> str | None:
    """Return what becomes of a subnormal number of A, and of one of C."""
    if not product.d.is_float:
        return None
    code_a, code_c = (1 << each.fraction_bits - 1 + each.ignored_bits for each in (product.a, product.c))
    results = {
        "A": (_value(code_a, product.a), _computed(program, a=code_a, b=_one(product.b))),
        "C": (_value(code_c, product.c), _computed(program, c=code_c)),
    }
    lost = [name for name, (value, code) in results.items() if _value(code, product.d) != value]
    return f"lost in {' and '.join(lost)}" if lost else "kept"


def _value(code: int, element: Format) -> Fraction:
    number = number_of(code, element)
    return number.signed * Fraction(2) ** number.scale


def _nan(program: Program, product: Product) -> str | None:
    """Return the code that a NaN becomes, in hexadecimal digits."""
    if not product.c.has_nan:
        return None
    return f"{_computed(program, c=product.c.canonical_nan):0{product.d.bits // 4}x}"


# --- text and data ---------------------------------------------------------------------------------

_HEADER = (
    *("family", "operation", "A, B", "D", "k", "length", "sums", "F", "floor", "accumulator", "rounding"),
    *("subnormals", "NaN", "evidence", "targets"),
)


def rule_lines(rows: list[RuleRow]) -> list[str]:
    """Return the table as text, chips with the same numbers on one line, and what families do differently."""
    lines = [[*cells, chips] for cells, chips in _by_chips((_cells(row), row.target) for row in rows)]
    return [*words([_HEADER, *lines]), *_difference_lines(rows)]


def rule_documents(rows: Iterable[RuleRow]) -> list[Document]:
    """Return the table as JSON-ready data, an object for each row."""
    return [asdict(row) for row in rows]


def _cells(row: RuleRow) -> tuple[str, ...]:
    length = f"{row.length} in groups of {row.group}" if row.group > 1 else str(row.length)
    aligned = ("-" if number is None else str(number) for number in (row.fraction_bits, row.exponent_floor))
    labels = [label + f" ({', '.join(row.chips)})" * (label == "validated") for label in row.evidence]
    return (
        *(row.family, row.operation, "/".join(row.types), row.d, str(row.k), length, str(row.steps)),
        *(*aligned, ", ".join(row.accumulators), ", ".join(row.rounding)),
        *(row.subnormals or "-", row.nan or "-", ", ".join(labels)),
    )


def _by_chips(found: Iterable[tuple[_Key, str]]) -> Iterator[tuple[_Key, str]]:
    """Yield every key with the targets that it is found of, and their cards."""
    targets = dict[_Key, list[str]]()
    for key, target in found:
        targets.setdefault(key, []).append(target)
    for key, names in targets.items():
        cards = ", ".join(dict.fromkeys(card for name in names for card in cards_of(name)))
        yield key, f"{targets_text(names)}" + f" ({cards})" * bool(cards)


def _difference_lines(rows: Iterable[RuleRow]) -> Iterator[str]:
    """Yield a line for each operation that families of a chip sum in different ways."""
    ways = dict[tuple[str, str, str], dict[str, str]]()
    for row in rows:
        if row.fraction_bits is not None:
            ways.setdefault((row.operation, row.d, row.target), {})[_way(row)] = row.family
    differing = (
        ((*key[:2], "; ".join(f"{family} {way}" for way, family in found.items())), key[2])
        for key, found in ways.items()
        if len(found) > 1
    )
    for (operation, d, text), chips in _by_chips(differing):
        yield f"{chips}: the bits of {operation} into {d} depend on the family: {text}"


def _way(row: RuleRow) -> str:
    converted = f"converts to {row.converted}, " if row.converted else ""
    kept = f"keeps {row.fraction_bits} fraction bits"
    return f"{converted}sums {row.length} products, {kept}, rounds to {', '.join(row.accumulators)}"
