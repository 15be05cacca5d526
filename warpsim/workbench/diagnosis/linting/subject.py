"""The subject of lint, one tile at a time, and its findings."""

from __future__ import annotations

from dataclasses import dataclass
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
class Subject:
    """One tile: registers as far as they are given, and logical A ``(m, k)`` as codes."""

    instruction: Instruction
    selector: int
    version: tuple[int, int]
    e: Words | None = None
    a: Words | None = None
    b: Words | None = None
    matrix: Codes | None = None

    @cached_property
    def pattern(self) -> Pattern:
        """The sparsity pattern."""
        return require_sparse(self.instruction)

    @cached_property
    def map(self) -> npt.NDArray[np.intp]:
        """Lane, lowest bit, bits, row and chunk of every field."""
        return metadata_map(self.instruction, self.selector)

    @cached_property
    def words(self) -> Words:
        """``(lanes,)``: the metadata words."""
        e = present(self.e, "e")
        return e[:, 0]

    @cached_property
    def fields(self) -> Fields:
        """``(m, chunks)``: the fields that the selector reads."""
        e = present(self.e, "e")
        return read_fields(self.instruction, e, self.selector)

    @cached_property
    def quads(self) -> Words:
        """``(quads, lanes of a quad that are read)``: the words that the selector reads."""
        read = self.instruction.metadata_words
        return self.words.reshape(-1, 4)[:, self.selector * read : (self.selector + 1) * read]

    @cached_property
    def read_lanes(self) -> npt.NDArray[np.intp]:
        """The lanes whose words are read."""
        return np.unique(self.map[:, 0])

    def place(self, row: int, chunk: int) -> dict[str, Any]:
        """Return lane, bits, row and chunk of a field, as a finding has them."""
        lane, bit = (int(x) for x in self.map[(self.map[:, 3] == row) & (self.map[:, 4] == chunk)][0, :2])
        return {"lane": lane, "bits": (bit, bit + 3), "row": row, "chunk": chunk}
