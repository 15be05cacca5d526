"""Cases of a vector set as executions to show: what the model computes, and the D that the set holds.

A page has the matrices of a bounded number of cases: those that differ first, then others spread evenly.
Knows sets; does not know how a page shows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs
from ...sums.execution.inputs import inputs_by_name
from ...sums.execution.pipeline import Engine, Undefined
from ...workbench.traces.checks import Difference, element_of
from ...workbench.vectors.parted import SetInParts
from ...workbench.vectors.sets import VectorSet, expected
from .overview import MOST_SHOWN, SHOWN_BYTES, spread

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """An execution that a set describes: ``d`` as the model computes it, ``held`` as the set has it."""

    number: int
    label: str
    instruction: Instruction
    inputs: Inputs
    d: Array
    held: Array

    @property
    def statement(self) -> str:
        """A set has no statement, but a mnemonic."""
        return self.instruction.mnemonic

    @property
    def place(self) -> str:
        """Its number and its label."""
        return f"case {self.number}" + (f" ({self.label})" if self.label else "")

    def executions(self) -> Iterator[tuple[int, Inputs, Array]]:
        """Yield the only execution: first lane, inputs, D."""
        yield 0, self.inputs, self.d

    def first_difference(self) -> Difference | None:
        """Return the first register that differs: expected by the set, computed by the model."""
        places = np.argwhere(self.d != self.held)
        if not len(places):
            return None
        lane, register = map(int, places[0])
        words = int(self.held[lane, register]), int(self.d[lane, register])
        tensor = self.instruction.descriptor is not None
        return Difference(
            lane=lane,
            register=str(register) if tensor else f"d{register}",
            expected=words[0],
            actual=words[1],
            bits=self.instruction.register_bits,
            element=element_of(self.instruction, lane, register, words),
            kind="column" if tensor else "register",
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Cases:
    """A set, compared: the words of D that differ in each case, and the cases that are shown."""

    vectors: SetInParts
    path: str
    different: Array
    shown: tuple[Case, ...]

    @property
    def count(self) -> int:
        """The number of cases that differ."""
        return int((self.different > 0).sum())

    @property
    def title(self) -> str:
        """The name of the file, or of the set."""
        return Path(self.path).name or self.vectors.title or "vectors"


@in_default_environment
def cases_of(
    vectors: SetInParts, path: str = "", engine: Engine = "kernel", undefined: Undefined = "error"
) -> Cases:
    """Return the set with what the model computes of it; raises what executing raises."""
    counts = [
        (part.d != expected(part, engine, undefined)).sum(axis=(1, 2), dtype=np.int64)
        for part in vectors.parts()
    ]
    different = np.concatenate(counts)
    chosen = _chosen(vectors, different)
    shown, start = list[Case](), 0
    for part in vectors.parts():
        own = (number - start for number in chosen if 0 <= number - start < len(part))
        shown += [_case(part, start, index, engine, undefined) for index in own]
        start += len(part)
    return Cases(vectors=vectors, path=path, different=different, shown=tuple(shown))


def _chosen(vectors: SetInParts, different: Array) -> list[int]:
    size = sum(prod(shape[1:]) * dtype.itemsize for dtype, shape in vectors.specs().values())
    most = min(MOST_SHOWN, max(1, SHOWN_BYTES // max(size, 1)))
    wrong = spread(np.flatnonzero(different).tolist(), most)
    equal = spread(np.flatnonzero(different == 0).tolist(), most - len(wrong))
    return sorted([*wrong, *equal])


def _case(vectors: VectorSet, start: int, index: int, engine: Engine, undefined: Undefined) -> Case:
    """Return a case of a part whose first case has the number ``start``."""
    own = vectors.part(index, index + 1)
    (part,) = own.inputs()
    arguments = {
        name: value[0].copy() if isinstance(value, np.ndarray) else value
        for name, value in part.arguments.items()
    }
    return Case(
        number=start + index,
        label=own.labels[0] if own.labels else "",
        instruction=vectors.instruction,
        inputs=inputs_by_name({**arguments, "undefined": undefined}),
        d=expected(own, engine, undefined)[0],
        held=own.d[0].copy(),
    )
