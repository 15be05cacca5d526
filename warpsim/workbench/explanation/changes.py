"""Changes of a single instruction along k that reproduce an element of D.

A D at the end says nothing about the accumulators before it. So every change is tried in every instruction:
it is left out, executed twice, executed with operands of its neighbours, on another chip, without one
product, or with the accumulators lost before it. A change that reproduces the element is then computed for
its whole tile; the number of reproduced elements of the tile separates the changes. Knows chains; mistakes in
all instructions, lanes and registers are diagnosis's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...isa.architectures import ARCHITECTURES
from ...isa.codes import magnitudes, matrix_of
from ...isa.instruction import Instruction
from ...isa.products import Codes
from ...sums.execution.pipeline import rule_for
from .chain import Chain, Link

_VERIFIED = 24  # changes that are computed for the whole tile
_TOGETHER = 1024  # changes
_MOST_PRODUCTS = 8192  # limit up to which products are left out one by one
Move = tuple[Instruction, Link]


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of instruction ``at`` (None: of all), its description, and how many elements of its tile it
    reproduces.
    """

    name: str
    at: int | None
    tile: int


@dataclass(frozen=True, kw_only=True)
class Search:
    """The result of the search: changes, those that reproduce most of the tile first; how many were
    ``tried``, and how many reproduce the element (``fitting``), of which the first are listed.
    """

    changes: tuple[Change, ...]
    tried: int
    fitting: int


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tried:
    """A change: the accumulator after instruction ``at`` (−1: before the first), and the moves up to there.

    ``ends`` says that nothing follows.
    """

    name: str
    at: int
    moves: tuple[Move, ...]
    start: Codes  # C of the tile that the moves add to
    whole: bool = False
    ends: bool = False


def search(
    chain: Chain, form: Instruction, before: Sequence[Codes], wanted: Codes, only: int | None = None
) -> Search:
    """Return changes that reproduce the element of ``wanted`` ``(m, n)``, on the target of ``form``.

    ``before`` are C of the tile before every instruction. Where accumulators are known, ``only`` one
    instruction is changed, and ``wanted`` is D after it.
    """
    last = len(chain.links) - 1 if only is None else only
    tried = list(_all_changes(chain, form, before, range(only or 0, last + 1)))
    tried += list(_in_all(chain, form)) if only is None else []
    ends = _ends(chain, form, tried, last)
    fitting = [item for item, end in zip(tried, ends, strict=True) if end == wanted[chain.element]]
    made = [_verified(chain, form, item, wanted, last) for item in fitting[:_VERIFIED]]
    ordered = sorted(made, key=lambda change: -change.tile)
    return Search(changes=tuple(ordered), tried=len(tried), fitting=len(fitting))


def _plain(chain: Chain, form: Instruction, first: int, last: int) -> tuple[Move, ...]:
    return tuple((form, link) for link in chain.links[first : last + 1])


def _ends(chain: Chain, form: Instruction, tried: Sequence[_Tried], last: int) -> list[int]:
    """Return the element at the end of every change; all changes are computed along k together."""
    joining = dict[int, list[int]]()
    values = np.zeros(len(tried), chain.form.d.code_dtype)
    _begin(chain, tried, values)
    for number, item in enumerate(tried):
        joining.setdefault(last if item.ends else item.at, []).append(number)
    going = np.zeros(0, np.intp)
    for at in range(-1, last + 1):
        if at >= 0 and len(going):
            values[going] = chain.elements(form, chain.links[at], values[going])
        going = np.concatenate([going, np.array(joining.get(at, []), np.intp)])
    found: list[int] = values.tolist()
    return found


def _begin(chain: Chain, tried: Sequence[_Tried], values: Codes) -> None:
    """Fill in the element after the moves of every change; changes with equally many moves are computed
    together.
    """
    for number, item in enumerate(tried):
        values[number] = item.start[chain.element]
        if item.whole:
            values[number] = chain.along(item.moves, item.start)[-1][chain.element]
    for move in range(2):
        groups = dict[Instruction, list[int]]()
        for number, item in enumerate(tried):
            if move < len(item.moves) and not item.whole:
                groups.setdefault(item.moves[move][0], []).append(number)
        for form, numbers in groups.items():
            for first in range(0, len(numbers), _TOGETHER):
                part = numbers[first : first + _TOGETHER]
                links = [tried[number].moves[move][1] for number in part]
                values[part] = chain.each(form, links, values[part])


def _verified(chain: Chain, form: Instruction, trial: _Tried, wanted: Codes, last: int) -> Change:
    """Return a change computed for the whole tile."""
    moves = trial.moves if trial.ends else (*trial.moves, *_plain(chain, form, trial.at + 1, last))
    tile = chain.along(moves, trial.start)[-1] if moves else trial.start
    return Change(name=trial.name, at=None if trial.whole else trial.at, tile=chain.alike(tile, wanted))


# --- changes -----------------------------------------------------------------------------------------


def _all_changes(chain: Chain, form: Instruction, before: Sequence[Codes], places: range) -> Iterator[_Tried]:
    """Yield every change of every instruction of some places."""
    others = _other_forms(chain, form)
    for at in places:
        link, c = chain.links[at], before[at]
        yield _Tried(name="left out", at=at, moves=(), start=c)
        yield _Tried(name="executed twice", at=at, moves=((form, link),) * 2, start=c)
        yield from _accumulator_changes(chain, form, at, c)
        for text, changed in _neighbours(chain, at):
            yield _Tried(name=text, at=at, moves=((form, changed),), start=c)
        for other in others:
            yield _Tried(name=f"computed as on {other.target}", at=at, moves=((other, link),), start=c)
        yield from _product_changes(chain, form, at, c)


def _accumulator_changes(chain: Chain, form: Instruction, at: int, c: Codes) -> Iterator[_Tried]:
    move, zero = ((form, chain.links[at]),), np.zeros_like(c)
    if at or c.any():
        name = "from zero: the accumulators before it are lost" if at else "from zero: C is not added"
        yield _Tried(name=name, at=at, moves=move, start=zero)
    if at and chain.c.any():
        yield _Tried(name="from C again: what was before it is lost", at=at, moves=move, start=chain.c)
    if 0 < at < len(chain.links) - 1:
        yield _Tried(name="is the last: the loop ends early", at=at, moves=move, start=c, ends=True)


def _neighbours(chain: Chain, at: int) -> Iterator[tuple[str, Link]]:
    """Yield operands of the instructions before and after it."""
    link = chain.links[at]
    sides = (("A", "a"), ("B", "b"), ("scales of A", "scale_a"), ("scales of B", "scale_b"))
    for other in (at - 1, at + 1):
        if not 0 <= other < len(chain.links):
            continue
        for text, name in sides:
            taken = getattr(chain.links[other], name)
            if taken is not None and not np.array_equal(taken, getattr(link, name)):
                yield f"reads {text} of instruction {other}", replace(link, **{name: taken})


def _product_changes(chain: Chain, form: Instruction, at: int, c: Codes) -> Iterator[_Tried]:
    """Return the operands without one of the products along k."""
    if len(chain.links) * form.shape.k > _MOST_PRODUCTS or form.bit_operation:
        return
    link, (row, column) = chain.links[at], chain.element
    sizes = magnitudes(matrix_of(link.a[row], form.a), form.a) * magnitudes(
        matrix_of(link.b[:, column], form.b), form.b
    )
    for k in np.flatnonzero(sizes).tolist():
        a = link.a.copy()
        a[:, k] = 0
        name = f"without its k {k}, {at * form.shape.k + k} of the product"
        yield _Tried(name=name, at=at, moves=((form, replace(link, a=a)),), start=c)


def _other_forms(chain: Chain, form: Instruction) -> list[Instruction]:
    """Return the instruction on other chips, one chip of each group that computes alike."""
    rules = {rule_for(form).bare: form}
    for target in (item for item in ARCHITECTURES if item in chain.form.targets):
        other = chain.on(target)
        rules.setdefault(rule_for(other).bare, other)
    return [rule for rule in rules.values() if rule is not form]


def _in_all(chain: Chain, form: Instruction) -> Iterator[_Tried]:
    """Yield changes of the whole loop: another chip, another order."""
    last = len(chain.links) - 1
    if not last:
        return
    for other in _other_forms(chain, form):
        moves = _plain(chain, other, 0, last)
        yield _Tried(
            name=f"all instructions as on {other.target}", at=last, moves=moves, start=chain.c, whole=True
        )
    moves = _plain(chain, form, 0, last)
    yield _Tried(name="k in descending order", at=last, moves=moves[::-1], start=chain.c, whole=True)
