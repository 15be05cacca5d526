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

from ...base.errors import Location
from ...isa.formats import Format
from ...isa.fragments import fragment, legal_fields, metadata_map, undefined_field, undefined_rows
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs
from ...isa.products import Codes
from ...isa.registers import Words
from ...isa.sparsity import FIELD_BITS
from .side_tables import SideTable

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
        operands: Sequence[MetadataOperand],
        d: Words,
    ) -> Words:
        """Keep what some warps execute that is undefined; return D ``(executions, lanes, registers)``.

        ``operands`` are those of statements one behind another: ``executions`` are those of the first by each
        warp, then those of the second.
        """
        if all(self._is_settled(operand.pc) for operand in operands):
            return d
        rows = rows_of_undefined(form, inputs)
        which = np.flatnonzero(rows.any(axis=1))
        if not which.size:
            return d
        statements = which // len(warps)
        missing = [place for place, operand in enumerate(operands) if operand.pc not in self.found]
        for place in missing:
            if (statements == place).any():
                first = int(which[statements == place][0])
                self._keep(wave, form, inputs, operands[place], first, int(warps[first % len(warps)]))
        changed = np.array([operand.pc in self._changed for operand in operands])
        return self._others_in(form, rows, which[changed[statements]], d)

    def _keep(
        self,
        wave: Any,
        form: Instruction,
        inputs: Inputs,
        operand: MetadataOperand,
        execution: int,
        warp: int,
    ) -> None:
        """Keep the first undefined field of an execution."""
        words = np.asarray(inputs.registers["e"]).reshape(-1, form.lanes)[execution]
        lanes, bits = _places(form, inputs.selector)
        fields = (words[lanes] >> bits & 15).astype(np.uint8)
        where = wave.name_of_execution(warp)
        self._add(form, fields, inputs.selector, operand, where)

    def _others_in(self, form: Instruction, rows: Rows, which: npt.NDArray[np.intp], d: Words) -> Words:
        """Return D with other values in ``rows (executions, m)`` of some executions."""
        if not which.size:
            return d
        codes = np.ascontiguousarray(d).view(form.d.code_dtype)
        where = rows[which][:, rows_of_d(form)]
        if len(which) == len(codes):
            return self.others(codes, where, form.d).view(d.dtype)
        changed = codes.copy()
        changed[which] = self.others(codes[which], where, form.d)
        return changed.view(d.dtype)

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
            self._add(form, fields[first].copy(), selector, operand, describe(first))
        return rows if operand.pc in self._changed else None

    def _add(
        self,
        form: Instruction,
        fields: npt.NDArray[np.uint8],
        selector: int | None,
        operand: MetadataOperand,
        where: str,
    ) -> None:
        """Keep the first undefined field of ``(m, chunks)``."""
        in_words = partial(_undefined_field_text, form, fields, selector, where)
        self.found[operand.pc] = UndefinedField(form.mnemonic, operand.location, in_words)

    def _is_settled(self, pc: int) -> bool:
        """Return whether nothing more is to be kept of a statement, and none of its rows is changed."""
        return pc in self.found and pc not in self._changed

    def others(self, codes: Codes, where: Rows, element: Format) -> Codes:
        """Return codes with other values ``where``."""
        first, self._drawn = self._drawn % _MANY, self._drawn + codes.size
        if codes.size <= _MANY:
            drawn = _values(element)[first : first + codes.size]
        else:
            drawn = np.resize(_values(element)[first : first + _MANY], codes.size)
        return np.where(where, drawn.reshape(codes.shape), codes)


UNDEFINED_METADATA = SideTable(lambda wave: UndefinedMetadata())  # all waves of a launch have the same


def rows_of_undefined(form: Instruction, inputs: Inputs) -> Rows:
    """Return ``(executions, m)``: the rows of metadata registers that have a field without a meaning."""
    words = np.ascontiguousarray(inputs.registers["e"]).reshape(-1, form.lanes)
    halves = words.view(np.uint16)[:, _halves(form, inputs.selector)]
    return np.asarray(~_defined(form)[halves].all(axis=2))


def _undefined_field_text(
    form: Instruction, fields: npt.NDArray[np.uint8], selector: int | None, where: str
) -> str:
    """Return the first undefined field of ``(m, chunks)`` in words."""
    return f"{undefined_field(form, fields, selector)} [{where}]"


@lru_cache(maxsize=16)
def _values(element: Format) -> Codes:
    """Return codes of random values of many magnitudes, twice one behind another."""
    random = np.random.default_rng(_SEED)
    values = np.ldexp(random.standard_normal(_MANY), random.integers(*_EXPONENTS, _MANY))
    with np.errstate(over="ignore"):
        return np.asarray(np.tile(values.astype(element.dtype).view(element.code_dtype), 2))


@lru_cache(maxsize=256)
def _places(form: Instruction, selector: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return ``(m, chunks)`` twice: the lane of each field in the metadata registers, and its lowest bit."""
    lane, bit = metadata_map(form, selector)[:, :2].T.reshape(2, form.shape.m, -1)
    return lane, bit


@lru_cache(maxsize=256)
def _halves(form: Instruction, selector: int) -> npt.NDArray[np.intp]:
    """Return ``(m, halves)``: which halves of the metadata registers of all lanes have the fields of a row.

    A half has four fields of one row, which are neighbours, in each form.
    """
    lane, bit = _places(form, selector)
    halves = lane * (32 // _HALF) + bit // _HALF
    return np.asarray(halves[:, :: _HALF // FIELD_BITS])


@lru_cache(maxsize=256)
def rows_of_d(form: Instruction) -> npt.NDArray[np.intp]:
    """Return ``(lanes, elements)``: the rows of the elements of D in registers."""
    return fragment(form, "d")[..., 0].reshape(form.lanes, -1)


@lru_cache(maxsize=256)
def _defined(form: Instruction) -> npt.NDArray[np.bool_]:
    """Return ``(65536,)``: whether all fields of 16 bits have a meaning."""
    halves, legal = np.arange(1 << _HALF), legal_fields(form)
    fields = halves[:, None] >> np.arange(0, _HALF, FIELD_BITS) & 15
    return np.asarray(legal[fields].all(axis=1))
