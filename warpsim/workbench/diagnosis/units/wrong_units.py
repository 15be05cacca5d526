"""Wrong units: a rule's program with operations rewritten, operands read otherwise, or both.

Does not know what a unit gave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.products import Operands
from ....sums.rule_programs.program_rewrites import Rewrite, rewrites, rewritten
from ....sums.rule_programs.rule_operations import Program
from ...generation.sums.limits import Limits
from ...generation.sums.program_sums import inputs_of, program_codes
from ...generation.sums.rewrite_words import rewrite_words
from .operand_readings import Reading, readings

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class WrongUnit:
    """A wrong unit of an instruction: rewrites of its rule's program, and a reading of its operands."""

    limits: Limits
    rewrites: tuple[Rewrite, ...] = ()
    reading: Reading | None = None

    @property
    def name(self) -> str:
        """What is wrong."""
        names = [rewrite_words(self.limits, each) for each in self.rewrites]
        return ", and ".join(names + ([self.reading.name] if self.reading else []))

    @cached_property
    def _program(self) -> Program:
        return rewritten(self.limits.rule.bare, self.limits.instruction.product, *self.rewrites)

    def beside(self, other: WrongUnit) -> WrongUnit | None:
        """Return a unit with both faults; None where both change the same thing."""
        touched = [each.touches for unit in (self, other) for each in unit.rewrites]
        if (self.reading and other.reading) or len(frozenset().union(*touched)) < sum(map(len, touched)):
            return None
        both = self.rewrites + other.rewrites
        return replace(self, rewrites=both, reading=self.reading or other.reading)

    def codes(self, operands: Operands, outputs: Array) -> Array:
        """Return some outputs as the wrong unit computes them, by their numbers in ``(tiles, m, n)``."""
        if self.reading is not None:
            operands = self.reading.of(operands)
        step = max(1, _TERMS // operands.a.shape[2])
        parts = [outputs[at : at + step] for at in range(0, len(outputs), step)]
        made = [program_codes(self._program, inputs_of(operands, part)) for part in parts]
        return np.concatenate([np.zeros(0, np.uint64), *made]).astype(operands.c.dtype)


_TERMS = 1 << 18  # products at once


def wrong_units(limits: Limits) -> list[WrongUnit]:
    """Return the units with a single fault, the simplest first."""
    return [*_rewritten(limits), *_misread(limits)]


@lru_cache(maxsize=8)
def _rewritten(limits: Limits) -> tuple[WrongUnit, ...]:
    every = rewrites(limits.rule.bare, limits.instruction.product)
    return tuple(WrongUnit(limits=limits, rewrites=(each,)) for each in every)


def _misread(limits: Limits) -> Iterator[WrongUnit]:
    yield from (WrongUnit(limits=limits, reading=each) for each in readings(limits.instruction))
