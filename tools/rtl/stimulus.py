"""What a unit is fed: dot products as codes, from a vector set or made up by a source of directed cases.

Knows how operands lie in the ports of the unit. Does not know simulators, nor what the sums are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.isa.fragments import codes_from, gather
from warpsim.isa.instruction import Instruction
from warpsim.sums.execution.inputs import inputs_by_name
from warpsim.sums.execution.pipeline import checked_inputs
from warpsim.workbench.vectors.formats import read_vectors
from warpsim.workbench.vectors.sets import VectorSet

from .configuration import Configuration

FIELD = 4  # columns of a 2:4 chunk, and bits of its metadata


@dataclass(frozen=True, slots=True)
class DotProduct:
    """One element of D: stored factors of A, the column of B, the column index of each stored factor, C.

    ``expected`` is D's code where somebody else computed it (a vector set), None where the model shall.
    """

    label: str
    a: Sequence[int]
    b: Sequence[int]
    columns: Sequence[int]
    c: int
    expected: int | None = None

    def fields(self) -> list[int]:
        """Return the metadata field of every 2:4 chunk."""
        index = [column % FIELD for column in self.columns]
        return [first | second << 2 for first, second in zip(index[::2], index[1::2], strict=True)]


@dataclass(frozen=True, slots=True)
class Beat:
    """The values of the input ports in one clock."""

    first: int
    a: int
    b: int
    metadata: int
    c: int


def beats(configuration: Configuration, dot: DotProduct) -> Iterator[Beat]:
    """Yield the clocks of a dot product, ascending k."""
    form, length = configuration.instruction, configuration.length
    density = 2 if form.sparse else 1
    fields = dot.fields() if form.sparse else []
    for clock in range(configuration.clocks):
        stored = slice(clock * length, (clock + 1) * length)
        logical = slice(density * stored.start, density * stored.stop)
        chunks = slice(stored.start // 2, stored.stop // 2)
        yield Beat(
            first=int(clock == 0),
            a=joined(
                [code >> form.a.ignored_bits for code in dot.a[stored]], form.a.bits - form.a.ignored_bits
            ),
            b=joined(
                [code >> form.b.ignored_bits for code in dot.b[logical]], form.b.bits - form.b.ignored_bits
            ),
            metadata=joined(fields[chunks], FIELD),
            c=dot.c,
        )


def joined(codes: Sequence[int], bits: int) -> int:
    """Return codes side by side, the first in the lowest bits."""
    return sum(code << bits * place for place, code in enumerate(codes))


# --- vector sets -----------------------------------------------------------------------------------


def from_vectors(path: Path, limit: int | None = None) -> tuple[Instruction, list[DotProduct]]:
    """Return the instruction of a vector set and its dot products, every element of D one, at most
    ``limit``.
    """
    vectors = read_vectors(path)
    dots: list[DotProduct] = []
    for dot in _dots(vectors):
        if limit is not None and len(dots) >= limit:
            break
        dots.append(dot)
    return vectors.instruction, dots


def _dots(vectors: VectorSet) -> Iterator[DotProduct]:
    form = vectors.instruction
    for part in vectors.inputs():
        inputs = inputs_by_name(part.arguments)
        operands = gather(form, checked_inputs(form, inputs))
        d = codes_from(vectors.d[part.cases], form, "d")
        cases = np.arange(len(vectors))[part.cases]
        names = [vectors.labels[case] if vectors.labels else f"case {case}" for case in cases]
        arrays = [operands.a, operands.b, operands.c, _columns(operands.columns, operands.a), d]
        flat = [array.reshape(-1, *array.shape[-2:]).tolist() for array in arrays]
        products = len(flat[0]) // len(names)  # matrix products of one case: four for m8n8k4
        for matrix, (a, b, c, columns, result) in enumerate(zip(*flat, strict=True)):
            yield from _elements(names[matrix // products], a, b, c, columns, result)


def _columns(columns: npt.NDArray[np.intp] | None, a: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    return np.broadcast_to(np.arange(a.shape[-1]), a.shape) if columns is None else columns


def _elements(name: str, a: Any, b: Any, c: Any, columns: Any, d: Any) -> Iterator[DotProduct]:
    """Yield the dot products of one matrix product, row by row."""
    b_columns = list(zip(*b, strict=True))
    for row, factors in enumerate(a):
        for column, others in enumerate(b_columns):
            label = f"{name}, D[{row},{column}]"
            yield DotProduct(label, factors, others, columns[row], c[row][column], d[row][column])
