"""The subject of lint, some tiles together, and its findings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.fragments import metadata_map, read_fields, require_sparse
from ....isa.instruction import Instruction
from ....isa.metadata.orders import Fields
from ....isa.products import Codes
from ....isa.registers import Words
from ....isa.sparsity import Pattern

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding: how bad, which rule, what, where, and what to do about it.

    ``lane`` and ``bits`` (lowest, highest) place it in a register, ``row`` and ``chunk`` in A; ``tile`` is
    the position along the leading axes, None where there are none.
    """

    severity: Severity
    rule: str
    message: str
    fix: str
    lane: int | None = None
    bits: tuple[int, int] | None = None
    row: int | None = None
    chunk: int | None = None
    tile: tuple[int, ...] | None = None

    def __str__(self) -> str:
        where = f"tile {self.tile}: " if self.tile else ""
        return f"{self.severity}: {where}{self.message} [{self.rule}]; {self.fix}"


@dataclass(frozen=True, kw_only=True)
class Alike:
    """Findings of one rule, severity and remedy: how many, and the first of them, or all, in order."""

    severity: Severity
    rule: str
    fix: str
    count: int
    findings: tuple[Finding, ...]


def alone(finding: Finding) -> Alike:
    """Return a finding that no other is like."""
    return Alike(severity=finding.severity, rule=finding.rule, fix=finding.fix, count=1, findings=(finding,))


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Tiles along the first axis: registers as far as they are given, and logical A ``(tiles, m, k)`` as
    codes.

    ``positions`` has the place of each tile among the leading axes of the arrays. Of findings that are alike
    the first ``most`` are wanted.
    """

    instruction: Instruction
    selector: int
    version: tuple[int, int]
    e: Words | None = None
    a: Words | None = None
    b: Words | None = None
    matrix: Codes | None = None
    positions: npt.NDArray[np.intp] = field(default_factory=lambda: np.zeros((1, 0), np.intp))
    most: int | None = None

    @property
    def tiles(self) -> int:
        """The number of tiles."""
        return len(self.positions)

    def tile(self, number: int) -> tuple[int, ...] | None:
        """Return the position of a tile along the leading axes, None where there are none."""
        return tuple(self.positions[number].tolist()) or None

    def only(self, tile: int) -> Subject:
        """Return a single tile."""
        given = {name: getattr(self, name) for name in ("e", "a", "b", "matrix", "positions")}
        return replace(
            self, **{name: array[tile : tile + 1] for name, array in given.items() if array is not None}
        )

    @cached_property
    def pattern(self) -> Pattern:
        """The sparsity pattern."""
        return require_sparse(self.instruction)

    @cached_property
    def map(self) -> npt.NDArray[np.intp]:
        """Lane, lowest bit, bits, row and chunk of every field, by row and chunk."""
        return metadata_map(self.instruction, self.selector)

    @cached_property
    def words(self) -> Words:
        """``(tiles, lanes)``: the metadata words."""
        return present(self.e, "e")[..., 0]

    @cached_property
    def fields(self) -> Fields:
        """``(tiles, m, chunks)``: the fields that the selector reads."""
        return read_fields(self.instruction, present(self.e, "e"), self.selector)

    @cached_property
    def quads(self) -> Words:
        """``(tiles, quads, lanes of a quad that are read)``: the words that the selector reads."""
        read = self.instruction.metadata_words
        quads = self.words.reshape(len(self.words), -1, 4)
        return quads[..., self.selector * read : (self.selector + 1) * read]

    @cached_property
    def read_lanes(self) -> npt.NDArray[np.intp]:
        """The lanes whose words are read."""
        return np.unique(self.map[:, 0])

    def place(self, row: int, chunk: int) -> dict[str, Any]:
        """Return lane, bits, row and chunk of a field, as a finding has them."""
        lane, bit = self.map.reshape(*self.fields.shape[1:], -1)[row, chunk, :2].tolist()
        return {"lane": lane, "bits": (bit, bit + 3), "row": row, "chunk": chunk}
