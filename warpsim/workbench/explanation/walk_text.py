"""A walk along k as text: accumulators after every instruction, the actual D, and what reproduces it."""

from __future__ import annotations

from collections.abc import Iterator

from ...base.text_columns import words
from ...sums.arithmetic.reference import decode
from .accumulators import Outcome, Walk
from .changes import Change
from .digits import code_text, hexadecimal, ulps_text
from .explanation_text import comparison_lines, explanation_lines
from .records import TargetComparison, lines_of
from .yardsticks import apart

_SHOWN = 16  # instructions of a long walk that are listed
_CHANGES = 8


@lines_of.register
def walk_lines(walk: Walk) -> list[str]:
    """Return the accumulator after every instruction, the actual D, and the explained instruction."""
    inner = (
        comparison_lines(walk.shown)
        if isinstance(walk.shown, TargetComparison)
        else explanation_lines(walk.shown)
    )
    start = walk.at * walk.instruction.shape.k
    return [*summary_lines(walk), "", f"instruction {walk.at}, k from {start} on:", *inner]


def summary_lines(walk: Walk) -> list[str]:
    """Return the walk without the explanation of an instruction."""
    row, column = walk.element
    targets = list(walk.codes)
    count = len(next(iter(walk.codes.values())))
    plural = "s"[: count != 1]
    lines = [f"D[{row},{column}] of a product, {count} instruction{plural} of {walk.instruction.mnemonic}"]
    lines += [f"  {line}" for line in words(list(_table(walk, count)))]
    if len(targets) > 1:
        where = "never part" if walk.parting is None else f"part at instruction {walk.parting}"
        lines.append(f"  {' and '.join(targets)} {where}")
    if walk.outcome is not None:
        lines += [f"  {line}" for line in outcome_lines(walk, walk.outcome)]
    return lines


def _table(walk: Walk, count: int) -> Iterator[list[str]]:
    """Yield a heading, and a line for each instruction: all, or those around the explained instruction."""
    came = walk.outcome.codes if walk.outcome is not None and walk.outcome.every else ()
    columns = [*walk.codes.values(), *([came] if came else [])]
    heads = [f"{target}, accumulator after it" for target in walk.codes] + ["came out"] * bool(came)
    yield ["instruction", "k", *heads]
    first = min(max(walk.at - _SHOWN // 2, 0), max(count - _SHOWN, 0))
    for at in range(first, min(first + _SHOWN, count)):
        start = at * walk.instruction.shape.k
        cells = [_text(walk, codes[at]) for codes in columns]
        mark = " *" if at == walk.at else ""
        yield [f"{at}{mark}", f"{start}..{start + walk.instruction.shape.k - 1}", *cells]
    if count > _SHOWN:
        yield [f"of {count}", "", *("" for _ in columns)]


def _text(walk: Walk, code: int) -> str:
    element = walk.instruction.d
    return f"{hexadecimal(code, element.bits)} = {code_text(decode(code, element), element)}"


# --- the actual D ----------------------------------------------------------------------------------


def outcome_lines(walk: Walk, outcome: Outcome) -> Iterator[str]:
    """Yield which target reproduces D, or from where on none does; changes of one instruction that reproduce
    it.
    """
    yield f"what came out: {_text(walk, outcome.codes[-1])}"
    if outcome.makes:
        rest = [name for name in walk.codes if name not in outcome.makes]
        others = f", not of {' or '.join(rest)}" if rest else ""
        yield f"  it is that of {' and '.join(outcome.makes)}{others}"
        for name in walk.codes:
            yield f"  of its tile {outcome.tile[name]} of {outcome.size} elements are those of {name}"
        return
    for name, codes in walk.codes.items():
        above = ulps_text(apart(outcome.codes[-1], codes[-1], walk.instruction.d))
        unit = " ulps" if walk.instruction.d.is_float else ""
        yield (
            f"  {name} makes {_text(walk, codes[-1])}: what came out is above that by {above}{unit}; of its "
            f"tile {outcome.tile[name]} of {outcome.size} elements are as they came out"
        )
    yield from _known_change_lines(outcome)
    yield from _found_change_lines(walk, outcome)


def _known_change_lines(outcome: Outcome) -> Iterator[str]:
    if not outcome.every:
        yield "  only the end is known: what the accumulator was in between is not, nor where it parted"
        return
    for name, place in outcome.parting.items():
        yield f"  from the accumulators that came out, {name} differs at instruction {place}"


def _found_change_lines(walk: Walk, outcome: Outcome) -> Iterator[str]:
    """Yield changes of one instruction that reproduce the element; their number, and how much of D they
    reproduce.
    """
    found = outcome.search
    if found is None:
        return
    tried = f"{found.tried:,} change{'s'[: found.tried != 1]} of one instruction or of all"
    if not found.fitting:
        yield f"  none of {tried} makes it on {outcome.on}; warpsim diff looks into lanes and registers"
        return
    several = found.fitting > 1
    yield f"  {found.fitting:,} of {tried} make{'' if several else 's'} it on {outcome.on}:"
    yield from (f"    {line}" for line in words(list(_changes(found.changes, outcome, walk))))
    if found.fitting > _CHANGES:
        yield f"    and {found.fitting - _CHANGES:,} more"
    if len(found.changes) > 1 and found.changes[0].tile == found.changes[1].tile:
        yield "  this D does not separate the first of them"


def _changes(changes: tuple[Change, ...], outcome: Outcome, walk: Walk) -> Iterator[list[str]]:
    depth = walk.instruction.shape.k
    yield ["instruction", "k", "what makes it", "of its tile"]
    for change in changes[:_CHANGES]:
        share = f"{change.tile} of {outcome.size}"
        if change.at is None:
            yield ["all", "", change.name, share]
        else:
            yield [str(change.at), f"{change.at * depth}..{(change.at + 1) * depth - 1}", change.name, share]
