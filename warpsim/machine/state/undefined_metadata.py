"""Metadata that PTX leaves undefined and that a launch executes literally: which rows of D come of it.

Of every statement the first such field is kept. A launch that is executed again, to find out whether anything
depends on such rows, has other values in the rows of D of the statements ``changed``. Does not know what
depends on them. PTX ISA 9.1, section 9.7.14.6.1 "Sparse matrix storage".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import Location
from ...isa.formats import Format
from ...isa.fragments import fragment, legal_fields, metadata_map, undefined_field, undefined_rows
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs
from ...isa.products import Codes
from ...isa.registers import Words
from ...isa.sparsity import FIELD_BITS
from .slots import Slot

Rows = npt.NDArray[np.bool_]
_HALF = 16  # bits that are looked at together
_EXPONENTS = (
    -2,
    15,
)  # of the magnitudes of other values: some pass any rounding, no f16 is infinite for sure
_SEED = 1
_MANY = 1 << 16  # values, which are used in turn


class MetadataOperand(NamedTuple):
    """The metadata of a statement: its program counter, and what returns where the operand stands."""

    pc: int
    location: Callable[[], Location]


class UndefinedField(NamedTuple):
    """The first field of a statement that PTX leaves undefined: the statement, what returns where it stands,
    and what returns in words the field, its lane and row, and the warp. Most are never described.
    """

    mnemonic: str
    place: Callable[[], Location]
    describe: Callable[[], str]

    @property
    def location(self) -> Location:
        """Where the metadata operand stands."""
        return self.place()

    @property
    def message(self) -> str:
        """The field in words."""
        return self.describe()


class UndefinedMetadata:
    """The metadata of a launch that PTX leaves undefined: the first field of each statement, by program
    counter."""

    def __init__(self, changed: frozenset[int] = frozenset()) -> None:
        self.found: dict[int, UndefinedField] = {}
        self._changed = changed
        self._drawn = 0  # of the other values

    def follow_registers(
        self,
        wave: Any,
        form: Instruction,
        inputs: Inputs,
        warps: Sequence[int] | npt.NDArray[np.intp],
        operand: MetadataOperand,
        d: Words,
    ) -> Words:
        """Keep what some warps execute that is undefined; return D ``(executions, lanes, registers)``."""
        if self._known(operand.pc):
            return d
        words, defined = _looked_at(form, inputs)
        if defined.all():
            return d
        _, lanes, bits = _places(form, inputs.selector)
        which = np.flatnonzero(~defined)
        fields = (words[which][:, lanes] >> bits & 15).astype(np.uint8)
        name = wave.name_of_execution
        rows = self.keep(
            form, fields, inputs.selector, operand, lambda number: name(int(warps[which[number]]))
        )
        if rows is None:
            return d
        codes = np.array(d, order="C").view(form.d.code_dtype)
        row_of = fragment(form, "d")[..., 0].reshape(form.lanes, -1)
        codes[which] = self.others(codes[which], rows[:, row_of], form.d)
        return codes.view(d.dtype)

    def keep(
        self,
        form: Instruction,
        fields: npt.NDArray[np.uint8],
        selector: int | None,
        operand: MetadataOperand,
        describe: Callable[[int], str],
    ) -> Rows | None:
        """Keep the first undefined field of ``(..., m, chunks)``; return the rows ``(executions, m)`` of
        other values, None for none.

        ``describe`` names the warp or lane of an execution.
        """
        fields = fields.reshape(-1, *fields.shape[-2:])
        rows = undefined_rows(form, fields)
        if not rows.any():
            return None
        if operand.pc not in self.found:
            first = int(rows.any(axis=-1).argmax())
            in_words = partial(_described, form, fields[first].copy(), selector, describe(first))
            self.found[operand.pc] = UndefinedField(form.mnemonic, operand.location, in_words)
        return rows if operand.pc in self._changed else None

    def _known(self, pc: int) -> bool:
        """Return whether nothing more is to be kept of a statement, and none of its rows is changed."""
        return pc in self.found and pc not in self._changed

    def others(self, codes: Codes, where: Rows, element: Format) -> Codes:
        """Return codes with other values ``where``."""
        places = np.arange(self._drawn, self._drawn + codes.size)
        self._drawn += codes.size
        return np.where(where, _values(element).take(places, mode="wrap").reshape(codes.shape), codes)


UNDEFINED_METADATA = Slot(lambda wave: UndefinedMetadata())  # all waves of a launch have the same


def all_defined(form: Instruction, inputs: Inputs) -> bool:
    """Return whether the metadata of all executions has a meaning."""
    return bool(_looked_at(form, inputs)[1].all())


def _looked_at(form: Instruction, inputs: Inputs) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """Return ``(executions, lanes)`` of metadata, and of which executions all fields have a meaning."""
    words = np.ascontiguousarray(inputs.registers["e"]).reshape(-1, form.lanes)
    halves = _places(form, inputs.selector)[0]
    defined = _defined(form)[words.view(np.uint16)[:, halves]].all(axis=1)
    return words, np.asarray(defined)


def _described(form: Instruction, fields: npt.NDArray[np.uint8], selector: int | None, where: str) -> str:
    """Return the first undefined field of ``(m, chunks)`` in words."""
    return f"{undefined_field(form, fields, selector)} [{where}]"


@lru_cache(maxsize=16)
def _values(element: Format) -> Codes:
    """Return codes of random values of many magnitudes."""
    random = np.random.default_rng(_SEED)
    values = np.ldexp(random.standard_normal(_MANY), random.integers(*_EXPONENTS, _MANY))
    with np.errstate(over="ignore"):
        return np.asarray(values.astype(element.dtype).view(element.code_dtype))


@lru_cache(maxsize=256)
def _places(form: Instruction, selector: int) -> tuple[npt.NDArray[np.intp], ...]:
    """Return which halves of the metadata registers of all lanes have fields, and by row and chunk the lane
    and the lowest bit of each.
    """
    lane, bit = metadata_map(form, selector)[:, :2].T.reshape(2, form.shape.m, -1)
    return np.unique(lane * (32 // _HALF) + bit // _HALF), lane, bit


@lru_cache(maxsize=256)
def _defined(form: Instruction) -> npt.NDArray[np.bool_]:
    """Return ``(65536,)``: whether all fields of 16 bits have a meaning."""
    halves, legal = np.arange(1 << _HALF), legal_fields(form)
    fields = halves[:, None] >> np.arange(0, _HALF, FIELD_BITS) & 15
    return np.asarray(legal[fields].all(axis=1))
