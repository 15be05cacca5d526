"""Uses of a running maximum: values that are scaled by different maxima, added or divided.

Where formulas are equal with every maximum taken as 0, and are not without, only the use of a maximum is
wrong. Of each value, the ratio of its keys in the two runs is what it owes to maxima. Operands of a sum,
and of a quotient, have one ratio. Knows the provenance of two runs of the same statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..keys.finite_fields import Keys, halves, inv, is_exponential, mul
from ..provenance import Product, Provenance, Step


class Uneven(NamedTuple):
    """A statement whose operands are scaled by different maxima: ``made (n,)`` are its results, and ``right
    (2, n)`` what they would be, with the maximum of the first or of the second operand."""

    pc: int
    name: str
    made: Keys
    right: Keys


def uneven_steps(true: Provenance, gauge: Provenance) -> list[Uneven]:
    """Return executions whose operands are scaled by different maxima; none where the runs differ."""
    if [each.pc for each in true.order] != [each.pc for each in gauge.order]:
        return []
    found = (_apart(first, second) for first, second in zip(true.order, gauge.order, strict=True))
    return [each for each in found if each is not None]


def rescaled(steps: Sequence[Uneven], *, operand: int) -> dict[int, int]:
    """Return what sums would be with the maximum of an operand, 0 or 1; quotients follow from these."""
    found = dict[int, int]()
    for step in (each for each in steps if each.name != "/"):
        found.update(zip(step.made.tolist(), step.right[operand].tolist(), strict=True))
    return found


def _apart(first: Step | Product, second: Step | Product) -> Uneven | None:
    pairs = [tuple(map(np.ravel, pair)) for pair in _operands(first, second)]
    if len(pairs) != 2:
        return None
    live = np.logical_and.reduce(
        [(halves(a).p != 0) & (halves(b).p != 0) & is_exponential(a) for a, b in pairs]
    )
    if not live.any():
        return None
    ratios = [mul(a, inv(b)) for a, b in pairs]
    apart = live & (halves(ratios[0]).p != halves(ratios[1]).p)
    if not apart.any():
        return None
    made, other = (np.ravel(each.made)[apart] for each in (first, second))
    right = np.stack([mul(other, ratio[apart]) for ratio in ratios])
    return Uneven(first.pc, first.name if isinstance(first, Step) else "+", made, right)


def _operands(first: Step | Product, second: Step | Product) -> Iterator[tuple[Keys, Keys]]:
    """Yield the two operands that have to be scaled alike, in both runs; nothing where there are none."""
    if isinstance(first, Product) or isinstance(second, Product):
        if isinstance(first, Product) and isinstance(second, Product):
            yield _first_terms(first), _first_terms(second)
            yield first.c, second.c
    elif first.name in ("+", "/"):
        yield from zip(first.operands, second.operands, strict=True)
    elif first.name == "fma":
        yield mul(*first.operands[:2]), mul(*second.operands[:2])
        yield first.operands[2], second.operands[2]


def _first_terms(product: Product) -> Keys:
    return mul(product.a[..., :, :1], product.b[..., :1, :])
