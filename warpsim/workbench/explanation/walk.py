"""An element of a whole product: its accumulator after every instruction along k, on one target or several.

Walks to the first instruction at which targets differ, or at which the actual accumulators differ from those
of a target, and explains that instruction; where all agree, the last. If only the final D is known,
changes.py finds which change of one instruction reproduces it. Orders other than ascending k (split k,
promotion) are not walked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import OperandError
from ...isa.codes import codes_of, matrix_of
from ...isa.instruction import Instruction
from ...isa.products import Codes
from ...ptx.decode import Form, resolved
from ...sums.execution.pipeline import Undefined
from . import walk_text  # noqa: F401  registers the text of a walk
from .accumulators import Outcome, Walk
from .chain import Chain, chain_of
from .changes import Search, search
from .explain import compare_matrices, explain_matrices
from .records import Explanation, TargetComparison


@in_default_environment
def walk_product(
    instruction: Form,
    row: int,
    column: int,
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    C: npt.ArrayLike | None = None,
    D: npt.ArrayLike | None = None,
    *,
    scale_a: npt.ArrayLike | None = None,
    scale_b: npt.ArrayLike | None = None,
    targets: Sequence[str] = (),
    at: int | None = None,
    undefined: Undefined = "error",
) -> Walk:
    """Return how D[row, column] of A ``(m, k)``, B ``(k, n)`` and C is computed, instruction after
    instruction.

    A sparse A obeys the pattern; block scales are ``(m, chunks)`` and ``(chunks, n)`` along k. ``D`` is the
    actual result: ``(m, n)``, or ``(instructions, m, n)`` with the accumulators after each instruction.
    ``at`` chooses the instruction to explain. Raises as explain does, and OperandError for an element or an
    instruction that does not exist.
    """
    form = resolved(instruction, targets[0] if targets else None)
    names = tuple(dict.fromkeys(targets or (form.target or "",)))
    chain = chain_of(form, (row, column), (A, B, C), (scale_a, scale_b), undefined)
    tiles = {name: [chain.c, *chain.along(_moves(chain, chain.on(name)), chain.c)] for name in names}
    codes = {name: tuple(int(item[chain.element]) for item in each[1:]) for name, each in tiles.items()}
    together = enumerate(zip(*codes.values(), strict=True))
    parting = next((place for place, each in together if len(set(each)) > 1), None)
    came = None if D is None else _came(chain, D, (np.shape(A)[0], np.shape(B)[1]))
    outcome = None if came is None else _outcome(chain, tiles, came)
    chosen = _chosen(chain, parting, outcome) if at is None else at
    if chosen not in range(len(chain.links)):
        raise OperandError(f"instruction {chosen}: there are 0 to {len(chain.links) - 1} along k")
    before = [each[chosen] for each in tiles.values()]
    if came is not None and len(came) > 1 and chosen:
        before = [came[chosen - 1]] * len(before)
    return Walk(
        instruction=form,
        element=(row, column),
        codes=codes,
        parting=parting,
        at=chosen,
        shown=_explain_instruction(chain, chosen, names, before),
        outcome=outcome,
    )


def _moves(chain: Chain, form: Instruction) -> list[Any]:
    return [(form, link) for link in chain.links]


def _explain_instruction(
    chain: Chain, at: int, names: Sequence[str], before: Sequence[Codes]
) -> Explanation | TargetComparison:
    """Return the explanation of an instruction; side by side where targets start it from the same
    accumulator.
    """
    form, link = chain.form, chain.links[at]
    given = ((link.a, form.a), (link.b, form.b), (before[0], form.c))
    matrices: list[Any] = [*(matrix_of(codes, kind) for codes, kind in given), link.scale_a, link.scale_b]
    if len(names) > 1 and len({int(c[chain.element]) for c in before}) == 1:
        return compare_matrices(form, *chain.element, names, *matrices, undefined=chain.undefined)
    return explain_matrices(form, *chain.element, *matrices, target=names[0], undefined=chain.undefined)


def _chosen(chain: Chain, parting: int | None, outcome: Outcome | None) -> int:
    """Return the first difference: of the actual D from targets, of a change that explains it, or between
    targets.
    """
    if outcome is not None:
        places = [place for place in outcome.parting.values() if place is not None]
        if places:
            return min(places) if outcome.makes else max(places)
        found = outcome.search.changes if outcome.search else ()
        if found and found[0].at is not None:
            return found[0].at
    return len(chain.links) - 1 if parting is None else parting


# --- the actual D ------------------------------------------------------------------------------------


def _came(chain: Chain, D: npt.ArrayLike, shape: tuple[int, int]) -> list[Codes]:
    """Return codes of the actual D of the tile: at the end, or after every instruction.
    Raises OperandError.
    """
    codes, count = codes_of(D, chain.form.d, "D"), len(chain.links)
    if codes.shape not in (shape, (count, *shape)):
        raise OperandError(
            f"D has shape {codes.shape}, but A and B make {shape}, or {(count, *shape)} after every "
            f"instruction"
        )
    (top, left), (m, n) = chain.corner, (chain.form.shape.m, chain.form.shape.n)
    part = codes.reshape(-1, *shape)[:, top : top + m, left : left + n]
    return list(np.pad(part, [(0, 0), (0, m - part.shape[1]), (0, n - part.shape[2])]))


def _outcome(chain: Chain, tiles: dict[str, list[Codes]], came: Sequence[Codes]) -> Outcome:
    """Return which targets reproduce the actual D; if none does, which change of one instruction does."""
    place = chain.element
    ends = {name: each[-1] for name, each in tiles.items()}
    parting = {name: _parting(chain, name, came) for name in tiles} if len(came) == len(chain.links) else {}
    makes = tuple(name for name in tiles if _makes(name, parting, ends, came, place))
    on, found = next(iter(tiles)), None
    if parting and not makes:
        on = max(parting, key=lambda name: parting[name] or 0)
        only = parting[on] or 0
        found = search(chain, chain.on(on), [chain.c, *came], came[only], only)
    elif not makes:
        on, found = _searched(chain, tiles, came[-1])
    return Outcome(
        codes=tuple(int(item[place]) for item in came),
        parting=parting,
        makes=makes,
        tile={name: chain.alike(end, came[-1]) for name, end in ends.items()},
        size=chain.size,
        on=on,
        search=found,
    )


def _searched(chain: Chain, tiles: dict[str, list[Codes]], wanted: Codes) -> tuple[str, Search]:
    """Return the first target on which a change reproduces the element, and its search; else the first of
    all.
    """
    searches = ((name, search(chain, chain.on(name), each[:-1], wanted)) for name, each in tiles.items())
    found = list[tuple[str, Search]]()
    for result in searches:
        if result[1].fitting:
            return result
        found.append(result)
    return found[0]


def _makes(
    name: str,
    parting: dict[str, int | None],
    ends: dict[str, Codes],
    came: Sequence[Codes],
    place: tuple[int, int],
) -> bool:
    return parting[name] is None if parting else bool(ends[name][place] == came[-1][place])


def _parting(chain: Chain, name: str, came: Sequence[Codes]) -> int | None:
    """Return the first instruction whose result differs from the actual result, given the actual accumulators
    before it.
    """
    form, c = chain.on(name), chain.c
    for at, (link, d) in enumerate(zip(chain.links, came, strict=True)):
        (own,) = chain.elements(form, link, c[chain.element][None])
        if own != d[chain.element]:
            return at
        c = d
    return None
