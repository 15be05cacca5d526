"""Coverage of a vector set: which bins its cases hit, which they miss, and which are out of reach and why.

Everything is measured on the registers of the set, gathered as the instruction reads them; how the set was
made is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....base.environment import in_default_environment
from ....base.errors import present
from ....isa.descriptors.matrix_descriptor import Descriptor
from ....isa.displayed import Displayed
from ....isa.fragments import gather, read_fields
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.products import Operands
from ....sums.execution.inputs import inputs_by_name
from ....sums.execution.pipeline import checked_inputs
from ...vectors.parted import SetInParts
from ...vectors.sets import Part, VectorSet, immediates_of
from ..cases.placement import legal_fields, swizzles_of
from ..sums.exact_numbers import Array
from ..sums.limits import limits_of
from .bins import arithmetic_bins, repeated_bins
from .observations import Mask, observations

_TERMS = 1 << 19  # that sums hold at a time: a few arrays of them fit into a cache
_REPEATED = 4  # hits that a bin needs if a single hit may be decided by something else
_KEPT = 31 << 20  # bytes, below the most that glibc keeps; asking for pages again takes a tenth of the time


@dataclass(frozen=True, kw_only=True)
class Hits:
    """How often a bin was hit: cases, outputs (0 where it is not about outputs), and the first case."""

    cases: int
    outputs: int
    first: int


@dataclass(kw_only=True)
class Coverage(Displayed):
    """Bins of an instruction on its target, and what the cases so far hit of them.

    ``bins`` has for every bin why it is unreachable, or the empty string; ``hits`` the bins that were hit;
    ``repeated`` the bins that need several hits.
    """

    instruction: Instruction
    bins: dict[str, str]
    repeated: frozenset[str] = frozenset()
    hits: dict[str, Hits] = field(default_factory=dict)
    cases: int = 0

    def __repr__(self) -> str:
        of, hit = len(self.reachable), len(self.reachable) - len(self.missed)
        return f"<Coverage: {self.cases} cases of {self.instruction!r} hit {hit} of {of} bins>"

    @property
    def reachable(self) -> list[str]:
        """Bins that can be hit."""
        return [name for name, reason in self.bins.items() if not reason]

    @property
    def unreachable(self) -> dict[str, str]:
        """Bins that cannot be hit, and why."""
        return {name: reason for name, reason in self.bins.items() if reason}

    @property
    def missed(self) -> list[str]:
        """Bins that can be hit and were not, or too seldom."""
        return [name for name in self.reachable if not self._is_hit(name)]

    def _is_hit(self, name: str) -> bool:
        hits = self.hits.get(name)
        return hits is not None and max(hits.cases, hits.outputs) >= (
            _REPEATED if name in self.repeated else 1
        )

    @property
    def complete(self) -> bool:
        """Whether every bin that can be hit was hit."""
        return not self.missed

    @in_default_environment
    def add(self, vectors: VectorSet) -> None:
        """Take in the cases of another set."""
        for part in vectors.inputs():
            cases = np.arange(len(vectors))[part.cases]
            self._add_part(part, cases + self.cases)
        self.cases += len(vectors)

    def _add_part(self, part: Part, cases: Array) -> None:
        instruction = self.instruction
        inputs = checked_inputs(instruction, inputs_by_name(part.arguments))
        for name, mask in _settings(instruction, part, inputs, len(cases)):
            self._count(name, cases, mask, None)
        operands = gathered(instruction, part)
        per_case = instruction.products
        terms = instruction.shape.m * instruction.shape.n * instruction.stored_k * per_case
        np.empty(_KEPT, np.uint8)  # freed at once: from then on glibc keeps what smaller arrays free
        step = max(1, _TERMS // terms)
        for start in range(0, len(cases), step):
            cut = slice(start * per_case, (start + step) * per_case)
            for name, outputs in _merged(observations(instruction, _slice(operands, cut))).items():
                per = outputs.reshape(len(cases[start : start + step]), -1)
                self._count(name, cases[start : start + step], per.any(1), per.sum(1))

    def _count(self, name: str, cases: Array, mask: Array, outputs: Array | None) -> None:
        if name not in self.bins:
            raise AssertionError(f"{self.instruction}: no bin is called {name!r}")
        if not mask.any():
            return
        known = self.hits.get(name, Hits(cases=0, outputs=0, first=int(cases[mask][0])))
        self.hits[name] = Hits(
            cases=known.cases + int(mask.sum()),
            outputs=known.outputs + (0 if outputs is None else int(outputs.sum())),
            first=min(known.first, int(cases[mask].min())),
        )


def _merged(masks: Iterable[Mask]) -> dict[str, Array]:
    """Return each bin with the outputs that hit it in any step, each output once."""
    merged: dict[str, Array] = {}
    for name, outputs in masks:
        merged[name] = merged[name] | outputs if name in merged else outputs
    return merged


def empty_coverage(instruction: Instruction, a_in: str = "shared") -> Coverage:
    """Return the bins of an instruction, none of them hit; ``a_in`` is where wgmma has A."""
    return Coverage(
        instruction=instruction,
        bins=arithmetic_bins(limits_of(instruction)) | setting_bins(instruction, a_in),
        repeated=repeated_bins(instruction) | {_setting_name("scale_d", 0)},
    )


@in_default_environment
def coverage_of(vectors: SetInParts) -> Coverage:
    """Return what a vector set covers."""
    coverage = empty_coverage(vectors.instruction, "shared" if "a_desc" in vectors.specs() else "registers")
    for part in vectors.parts():
        coverage.add(part)
    return coverage


def gathered(instruction: Instruction, part: Part) -> Operands:
    """Return the operands of a part's cases; those of a case's several products in sequence."""
    inputs = checked_inputs(instruction, inputs_by_name(part.arguments))
    operands = gather(instruction, inputs)
    products = instruction.products
    counts = [
        array.shape[0] for array in (*inputs.registers.values(), inputs.b_descriptor) if array is not None
    ]
    cases = counts[0]

    def merge(array: Array | None) -> Array | None:
        if array is None:
            return None
        lead = (cases, products) if products > 1 else (cases,)
        return np.broadcast_to(array, (*lead, *array.shape[-2:])).reshape(-1, *array.shape[-2:])

    names = ("a", "b", "c", "columns", "scale_a", "scale_b")
    arrays: dict[str, Any] = {name: merge(getattr(operands, name)) for name in names}
    return Operands(product=instruction.product, **arrays)


def _slice(operands: Operands, cut: slice) -> Operands:
    names = ("a", "b", "c", "columns", "scale_a", "scale_b")
    arrays: dict[str, Any] = {
        name: None if getattr(operands, name) is None else getattr(operands, name)[cut] for name in names
    }
    return Operands(product=operands.product, **arrays)


# --- settings: immediates, metadata, descriptors -----------------------------------------------------


def _setting_name(name: str, value: object) -> str:
    return f"{name} {value}"


def setting_bins(instruction: Instruction, a_in: str) -> dict[str, str]:
    """Return bins of immediates, metadata and descriptors, and why some cannot be hit."""
    bins = {_setting_name(name, value): "" for name, value in _legal_settings(instruction, a_in)}
    if instruction.sparse:
        pattern = present(instruction.pattern, "pattern")
        for chunk in range(instruction.shape.k // pattern.chunk):
            bins |= {
                f"metadata: chunk {chunk}, field {value:#06b}": "" for value in legal_fields(instruction)
            }
        bins["metadata: rows of different patterns"] = ""
    if not instruction.has_registers("b") and instruction.descriptor is None:
        for side in "ab" if a_in == "shared" else "b":
            bins |= {f"{side}: swizzle {swizzle}": "" for swizzle in swizzles_of(instruction, side)}
    return bins


def _legal_settings(instruction: Instruction, a_in: str) -> Iterator[tuple[str, int]]:
    for name, values in immediates_of(instruction).items():
        if name.startswith("imm_scale") and not instruction.a.is_float:
            yield name, 1
        elif name.startswith("imm_trans") and (
            instruction.a.bits != 16 or (name[-1] == "a" and a_in != "shared")
        ):
            yield name, 0
        else:
            yield from ((name, value) for value in values)


def _settings(
    instruction: Instruction, part: Part, inputs: Inputs, cases: int
) -> Iterator[tuple[str, Array]]:
    """Yield bins of the settings of a part, with the cases that hit them."""
    every = np.ones(cases, np.bool_)
    for name in immediates_of(instruction):
        if name in part.arguments:
            yield _setting_name(name, part.arguments[name]), every
    if instruction.sparse:
        fields = read_fields(instruction, inputs.registers["e"], inputs.selector)
        for chunk in range(fields.shape[-1]):
            for value in legal_fields(instruction):
                yield f"metadata: chunk {chunk}, field {value:#06b}", (fields[..., chunk] == value).any(-1)
        yield "metadata: rows of different patterns", (fields != fields[:, :1]).any((1, 2))
    for side in "ab" if instruction.descriptor is None else "":  # of tcgen05 no bin asks for a swizzle
        words = part.arguments.get(f"{side}_desc")
        if words is not None:
            swizzles = np.array([Descriptor.decode(int(word)).swizzle for word in words])
            yield from (
                (f"{side}: swizzle {name}", swizzles == name) for name in swizzles_of(instruction, side)
            )
