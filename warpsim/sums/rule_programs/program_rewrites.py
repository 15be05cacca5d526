"""Neighbours of a rule's program: programs in which a parameter of an operation is another.

Each operation has its neighbours: what the operations of that name may be given instead, and which numbers
they may leave out. A rewrite is data (a kind, and facts), so that two can be made at once, and has a cost,
the length of its description. Does not know what a rewrite is called, nor what a unit gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from ...isa.formats import FORMATS, Format
from ...isa.products import Product
from ...isa.rules import FusedSum, Rule, ScaledGroups
from .rule_interpreter import CUTS
from .rule_operations import RESULTS, Operation, Program, Value
from .rule_templates import program_of

Edit = Callable[[Program], Program]

_WIDEST = 36  # fraction bits
_FEWER, _MORE = 14, 12  # fraction bits that may be kept less, or more
EVERYTHING = 200  # fraction bits that cut nothing off
_FLOORS = 8
_NO_FLOOR = -(1 << 9)
_NARROWEST = 8  # bits of results
_WIDTHS = (16, 20, 24, 28)  # bits of accumulators that hold too few
_PARTS = (2, 4, 8, 16)  # of k that may be interleaved
_ROUNDINGS = ("rn", "ra", "rz", "rm", "rp")
_MODES = (*CUTS, "sticky")


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """A changed program of a rule.

    ``numbers`` replace those of the aligned sum, ``form`` fields of the product; ``edit`` changes the
    operations. ``touches`` names what is changed: two rewrites that touch the same exclude each other.
    """

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    cost: float
    touches: frozenset[str]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    form: Mapping[str, Any] = field(default_factory=dict)
    edit: Edit | None = None


def rewritten(rule: Rule, form: Product, *rewrites: Rewrite) -> Program:
    """Return the program of a rule with rewrites made."""
    for each in rewrites:
        rule = rule.realigned(**each.numbers) if each.numbers else rule
        form = replace(form, **each.form)
    program = program_of(rule, form)
    for each in rewrites:
        program = each.edit(program) if each.edit else program
    return program


def rewrites(rule: Rule, form: Product) -> list[Rewrite]:
    """Return the single rewrites of a rule's program, the simplest first, each other program once."""
    right = program_of(rule, form)
    every = [*_of_numbers(rule, form), *_of_products(form)]
    names = list(dict.fromkeys(each.name for each in right.operations))
    every += [each for name in names if name in _NEIGHBOURS for each in _NEIGHBOURS[name](right)]
    found = {right: every[0]} if every else {}
    for each in sorted(every, key=lambda each: each.cost):
        found.setdefault(rewritten(rule, form, each), each)
    return [each for program, each in found.items() if program != right]


def lengths_of(program: Program) -> dict[str, int]:
    """Return how many numbers the lists of a program have."""
    found = {each.name: each.count for each in program.inputs}
    for each in program.operations:
        own = [found.get(name, 1) for name in each.values]
        if each.name == "take":
            found[each.result] = len(each.given[0])
        elif each.name == "sum":
            found[each.result] = -(-own[0] // each.given[0])
        elif RESULTS[each.name] is Value.NUMBERS:
            found[each.result] = sum(own) if each.name == "join" else max(own, default=1)
    return found


# --- numbers of the aligned sum, and of the form -------------------------------------------------------


def _of_numbers(rule: Rule, form: Product) -> Iterator[Rewrite]:
    """Yield other widths, floors, lengths and outputs of an aligned sum."""
    step = rule.aligned
    if step is None:
        return

    def other(kind: str, fact: str, value: Any, cost: float, **numbers: Any) -> Rewrite:
        touches = frozenset(numbers)
        return Rewrite(kind=kind, facts={fact: value}, cost=cost, touches=touches, numbers=numbers)

    bits = step.fraction_bits
    for kept in (*range(max(1, bits - _FEWER), min(bits + _MORE, _WIDEST) + 1), EVERYTHING):
        cost = 3.0 if kept == EVERYTHING else 1 + abs(kept - bits) / 8
        yield other("kept bits", "bits", kept, cost, fraction_bits=kept)
    for more in range(-_FLOORS, _FLOORS + 1):
        floor = step.exponent_floor + more
        yield other("floor", "floor", floor, 2 + abs(more) / 8, exponent_floor=floor)
    yield other("floor", "floor", None, 2.0, exponent_floor=_NO_FLOOR)
    for size in (size for size in range(1, form.stored_k + 1) if form.stored_k % size == 0):
        if isinstance(step, ScaledGroups):
            yield other("group", "size", size, 2.0, group=size)
        elif isinstance(rule, FusedSum):
            yield other("step", "size", size, 2.0, length=size)
    element = FORMATS[step.output.format]
    for precision in range(_NARROWEST, element.fraction_bits + 2):
        output = replace(step.output, precision=precision)
        cost = 2.5 + abs(precision - step.output.precision) / 128
        yield other("precision", "bits", precision, cost, output=output)
    if step.output.nearest:
        yield other("rounding", "mode", "cut", 2.0, output=replace(step.output, nearest=False))


def _of_products(form: Product) -> Iterator[Rewrite]:
    """Yield other formats of integers, of the same bits, and other operations on them."""

    def other(kind: str, facts: dict[str, Any], **fields: Any) -> Rewrite:
        return Rewrite(kind=kind, facts=facts, cost=2.0, touches=frozenset(fields), form=fields)

    if form.d.is_float:
        return
    if form.bit_operation:
        operation = {"xor": "and", "and": "xor"}[form.bit_operation]
        yield other("operation", {"name": operation}, bit_operation=operation)
        return
    for sides in ("a", "b", "ab"):
        fields = {side: _other_sign(form.a if side == "a" else form.b) for side in sides}
        if all(fields.values()):
            yield other("read as", {side: str(item) for side, item in fields.items()}, **fields)
    yield other("saturation", {"clamps": not form.satfinite}, satfinite=not form.satfinite)


def _other_sign(element: Format) -> Format | None:
    return FORMATS.get({"s": "u", "u": "s"}.get(element.name[0], "-") + element.name[1:])


# --- neighbours of operations --------------------------------------------------------------------------


def _edited(name: str, change: Callable[[Operation], Operation | tuple[Operation, ...]]) -> Edit:
    """Return the edit that changes all operations of a name."""

    def changed(each: Operation) -> tuple[Operation, ...]:
        made = change(each) if each.name == name else each
        return made if isinstance(made, tuple) else (made,)

    return lambda program: program.rewritten(changed)


def _given(name: str, kept: int, *given: Any) -> Edit:
    """Return the edit that gives all operations of a name something else after what is ``kept``."""
    end = kept + len(given)
    return _edited(name, lambda each: replace(each, given=(*each.given[:kept], *given, *each.given[end:])))


def _rewrite(kind: str, facts: dict[str, Any], edit: Edit, cost: float = 3.0, touches: str = "") -> Rewrite:
    return Rewrite(kind=kind, facts=facts, cost=cost, touches=frozenset({touches or kind}), edit=edit)


def _reads(program: Program) -> Iterator[Rewrite]:
    """Yield subnormal numbers read as others, and C that is not read."""
    kinds = {"all": "zero", "C": "zero"}
    if not all(FORMATS[each.given[0]].is_float for each in program.named("read")):
        kinds = {}
    elif any(program.named("top")):
        kinds |= {"A and B": "leading", "C, the largest": "raised"}
    for which, how in kinds.items():
        edit = _edited("read", _read_otherwise(which, how))
        yield _rewrite("subnormals", {"of": which, "read": how}, edit, touches=f"subnormals of {which[0]}")
    nothing = _edited("read", lambda each: each if each.result != "C" else Operation("C", "zero", ()))
    yield _rewrite("left out", {"of": "C"}, nothing, 2.0)


def _read_otherwise(which: str, how: str) -> Callable[[Operation], Operation]:
    names = {"A and B": ("A", "B"), "C": ("C",), "C, the largest": ("C",)}.get(which)

    def change(each: Operation) -> Operation:
        if names is None and each.result in ("SA", "SB"):
            return each
        chosen = names is None or each.result in names
        return replace(each, given=(each.given[0], how)) if chosen else each

    return change


def _products(program: Program) -> Iterator[Rewrite]:
    """Yield products aligned by their leading bits, and in another order, where that decides."""
    *_, last = program.named("mul")
    if any(program.named("top")):
        for how in ("leading",) if last.result == "GS" else ("leading", "carried"):
            yield _rewrite("aligned by", {"bit": how}, _edited("mul", _aligned_by(last, how)))
    steps = list(program.named("round", "ieee"))
    if len(steps) < 2:
        return
    if last.result == "P":
        for facts, order in _orders(lengths_of(program)["P"]):
            cost = 3.0 if facts["parts"] else 2.0
            yield _rewrite("order", facts, _edited("mul", _reordered(order)), cost)
    if steps[0].given[0] == "f64":
        edit = _edited("mul", lambda each: _then(each, "convert", steps[0].given))
        yield _rewrite("rounded products", {}, edit)


def _aligned_by(last: Operation, how: str) -> Callable[[Operation], Operation]:
    return lambda each: replace(each, given=(how,)) if each == last else each


def _then(each: Operation, name: str, given: tuple[Any, ...]) -> tuple[Operation, ...]:
    """Return an operation, and another of its result, which takes its name."""
    whole = f"{each.result}_whole"
    return replace(each, result=whole), Operation(each.result, name, (whole,), given)


def _reordered(order: tuple[int, ...]) -> Callable[[Operation], tuple[Operation, ...]]:
    return lambda each: _then(each, "take", (order,))


def _orders(count: int) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
    """Yield facts and places: reversed, every so many products, parts interleaved."""
    places = tuple(range(count))
    yield {"name": "reversed", "parts": 0}, places[::-1]
    for parts in (each for each in _PARTS if count % each == 0 and count > each):
        strided = tuple(at for first in range(parts) for at in places[first::parts])
        length = count // parts
        interleaved = tuple(first + at for first in range(length) for at in range(0, count, length))
        yield {"name": "every", "parts": parts}, strided
        yield {"name": "interleaved", "parts": parts}, interleaved


def _conversions(program: Program) -> Iterator[Rewrite]:
    """Yield factors that stay as they are stored."""
    edit = _edited("convert", lambda each: Operation(each.result, "join", each.values))
    yield _rewrite("not converted", {}, edit)


def _tops(program: Program) -> Iterator[Rewrite]:
    """Yield numbers that set the alignment and should not, and those that do not and should."""
    lengths = lengths_of(program)
    joined = {each.result: each for each in program.named("join")}
    tops = [each for each in program.named("top") if each.values[0] in joined]
    if not tops:
        return
    count = lengths[tops[0].values[0]]
    products, c = tuple(range(count - 1)), (count - 1,)
    left_out = {"C": products, "products": c} | {
        at: (*products[:at], *products[at + 1 :], *c) for at in products
    }
    for which, kept in left_out.items():
        if isinstance(which, str) or not any(program.named("sum")):
            cost = 3.0 if isinstance(which, str) else 4.0
            yield _rewrite("not aligned by", {"of": which}, _edited("top", _top_of(kept)), cost)
    zeros: dict[str, tuple[str, tuple[int, ...] | None]] = {"all": ("all", None), "C": ("all", c)}
    zeros |= {"negative products": ("negative", products), "negative C": ("negative", c)}
    for which, given in zeros.items():
        yield _rewrite("zeros align", {"of": which}, _given("top", 1, *given))


def _top_of(places: tuple[int, ...]) -> Callable[[Operation], tuple[Operation, ...]]:
    """Return the change that takes the largest exponent of some places alone."""

    def change(each: Operation) -> tuple[Operation, ...]:
        name = f"{each.result}_members"
        return Operation(name, "take", each.values[:1], (places,)), replace(each, values=(name, name))

    return change


def _cuts(program: Program) -> Iterator[Rewrite]:
    """Yield other ways to cut all terms, the products alone, C alone; and a bit more of a term."""
    if not any(program.named("top")):
        return
    for mode in (mode for mode in _MODES if mode != "zero"):
        for of, given in (("terms", (mode,)), ("products", (mode, "zero")), ("C", ("zero", mode))):
            cost = 2.5 if of == "terms" else 3.5
            yield _rewrite("cut", {"of": of, "mode": mode}, _given("cut", 0, *given), cost)
    for of, place in (("first product", 0), ("last product", -2), ("C", -1)):
        yield _rewrite("cut", {"of": of, "mode": "a bit more"}, _a_bit_more(place), 4.0)


def _a_bit_more(place: int) -> Edit:
    units = _edited("add", lambda each: replace(each, given=(each.given[0] - 1,)))
    cuts = _given("cut", 0, "coarse", "zero", place)
    return lambda program: cuts(units(program))


def _totals(program: Program) -> Iterator[Rewrite]:
    """Yield sums that vanish."""
    if any(program.named("top")):
        yield _rewrite("units vanish", {}, _given("total", 0, True), 4.0)


def _roundings(program: Program) -> Iterator[Rewrite]:
    """Yield other roundings of results, and subnormal results that are zero."""
    name = "round" if any(program.named("round")) else "ieee"
    for mode in _ROUNDINGS:
        yield _rewrite("rounding", {"mode": mode}, _given(name, 1, mode), 2.0)
    yield _rewrite("subnormals", {"of": "results", "read": "zero"}, _flushed, touches="flush")


def _flushed(program: Program) -> Program:
    """Return a program whose subnormal results are zero."""

    def change(each: Operation) -> tuple[Operation, ...]:
        if each.name not in ("round", "ieee"):
            return (each,)
        return (replace(each, given=(*(*each.given, "")[:2], True)),)

    return program.rewritten(change)


def _wraps(program: Program) -> Iterator[Rewrite]:
    """Yield accumulators of too few bits."""
    (width, *_) = next(program.named("wrap")).given
    for bits, clamps in product(_WIDTHS, (False, True)):
        facts = {"bits": bits, "clamps": clamps}
        yield _rewrite("accumulator", facts, _given("wrap", 0, bits, clamps, width))


_NEIGHBOURS: dict[str, Callable[[Program], Iterator[Rewrite]]] = {
    "read": _reads,
    "mul": _products,
    "convert": _conversions,
    "top": _tops,
    "cut": _cuts,
    "total": _totals,
    "round": _roundings,
    "ieee": _roundings,
    "wrap": _wraps,
}
