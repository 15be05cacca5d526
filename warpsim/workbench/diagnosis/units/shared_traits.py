"""What the wrong outputs of a unit have in common, and right outputs lack.

Asks every bin of coverage (alignment, cuts, rounding, operands, specials, results), settings, and the place
in D. A trait has its counts; nothing is concluded from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ....isa.instruction import Instruction
from ...generation.coverage.observations import observations
from ...vectors.sets import VectorSet
from .unit_sample import Array, Slice

_KEPT = 4
_LEAST = 0.25  # of the correlation that is reported
_SHOWN = "shown: "  # bins that ask about faults, which the search answers


@dataclass(frozen=True, kw_only=True)
class Trait:
    """A trait, and the numbers of wrong and of right outputs that have it."""

    name: str
    wrong: int
    right: int
    of_wrong: int
    of_right: int

    @property
    def correlation(self) -> float:
        """The correlation between having the trait and being wrong (Matthews); 1.0 where both agree."""
        missed, spared = self.of_wrong - self.wrong, self.of_right - self.right
        product = float(self.wrong) * spared - float(self.right) * missed
        scale = float(self.wrong + self.right) * (missed + spared) * self.of_wrong * self.of_right
        return product / scale**0.5 if scale > 0 else 0.0

    def __str__(self) -> str:
        share = "all" if self.wrong == self.of_wrong else f"{self.wrong:,} of"
        others = "none" if not self.right else f"{self.right:,}"
        wrong = f"{share} {self.of_wrong:,} wrong outputs"
        return f"{self.name}: {wrong}, and {others} of {self.of_right:,} right outputs"


class _Counts:
    """Wrong and right outputs by trait."""

    def __init__(self) -> None:
        self.found: dict[str, list[int]] = {}
        self.totals = [0, 0]

    def add(self, name: str, mask: Array, wrong: Array, right: Array) -> None:
        """Count a trait of some outputs."""
        counts = self.found.setdefault(name, [0, 0])
        for at, outputs in enumerate((wrong, right)):
            counts[at] += int((np.broadcast_to(mask, outputs.shape) & outputs).sum())

    def traits(self) -> list[Trait]:
        """Return the most significant traits, the best first; of equal counts the first alone."""
        made = [
            Trait(name=name, wrong=wrong, right=right, of_wrong=self.totals[0], of_right=self.totals[1])
            for name, (wrong, right) in self.found.items()
        ]
        unique = {(trait.wrong, trait.right): trait for trait in reversed(made)}.values()
        best = sorted(unique, key=lambda trait: -trait.correlation)
        return [trait for trait in best[:_KEPT] if trait.correlation >= _LEAST]


def shared_traits(vectors: VectorSet, parts: Sequence[Slice]) -> list[Trait]:
    """Return what wrong outputs share, by how well it separates them from right outputs."""
    counts = _Counts()
    for part in parts:
        wrong, right = part.wrong, part.known & (part.right == part.given)
        counts.totals[0] += int(wrong.sum())
        counts.totals[1] += int(right.sum())
        merged: dict[str, Array] = {}
        for name, mask in _masks(vectors.instruction, part):
            merged[name] = merged[name] | mask if name in merged else mask
        for name, mask in merged.items():
            counts.add(name, mask, wrong, right)
        for name, mask in (*_settings(vectors, part), *_labels(vectors, part)):
            counts.add(name, mask[:, None, None], wrong, right)
    return counts.traits()


def _masks(form: Instruction, part: Slice) -> Iterator[tuple[str, Array]]:
    yield from (
        (name, mask) for name, mask in observations(form, part.operands) if not name.startswith(_SHOWN)
    )
    yield from _places(form, part.right.shape)


def _places(form: Instruction, shape: tuple[int, ...]) -> Iterator[tuple[str, Array]]:
    """Yield rows, columns, and their halves and remainders, as a lane or register gives them."""
    for axis, name, size in ((1, "row", shape[1]), (2, "column", shape[2])):
        place = np.arange(size).reshape((1, -1, 1) if axis == 1 else (1, 1, -1))
        whole = np.broadcast_to(place, shape)
        for at in range(size if size <= 64 else 0):
            yield f"{name} {at}", whole == at
        for parts in (2, 4, 8):
            if size > parts:
                for rest in range(parts):
                    yield f"{name} % {parts} == {rest}", whole % parts == rest
        if size > 8:
            for first in range(0, size, 8):
                yield f"{name}s {first} to {first + 7}", whole // 8 == first // 8
    if form.products > 1:
        product = np.arange(shape[0]) % form.products
        for at in range(form.products):
            yield f"product {at}", np.broadcast_to((product == at)[:, None, None], shape)


def _settings(vectors: VectorSet, part: Slice) -> Iterator[tuple[str, Array]]:
    for name, values in vectors.varying().items():
        own = values[part.cases]
        for value in np.unique(values):
            yield f"{name} {int(value)}", own == value


def _labels(vectors: VectorSet, part: Slice) -> Iterator[tuple[str, Array]]:
    """Yield the kinds of cases, by the words of their labels before the first number."""
    if not vectors.labels:
        return
    kinds = np.array([label.partition(":")[0].rstrip("0123456789 #") for label in vectors.labels])
    for kind in np.unique(kinds):
        yield f"cases labelled {str(kind)!r}", kinds[part.cases] == kind
