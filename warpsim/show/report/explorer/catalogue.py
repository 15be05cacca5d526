"""Everything that the explorer's page knows, as JSON-ready data: all forms, and tables that they share.

A form names its layouts by their numbers in tables of distinct layouts. Layouts are modes, those
of isa/layouts. Does not know how a page shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from ....base.errors import WarpsimError
from ....isa.architectures import ARCHITECTURES
from ....isa.descriptors.matrix_descriptor import Field, Major
from ....isa.descriptors.tile_addresses import tile_modes
from ....isa.descriptors.tile_shape import TileShape
from ....isa.families import FAMILIES, forms
from ....isa.fragments import metadata_layout
from ....isa.instruction import Instruction
from ....isa.layouts.swizzle import SWIZZLE_BYTES
from ....isa.operand_places.places import register_operands
from ....workbench.explanation.information import rule_on, rule_text, version_text
from ...views.layouts.cute import cute_layouts
from ...views.layouts.formulas import formula, logical_column_lines, section
from ...views.layouts.shared_tiles import shared_tile
from ..layouts import format_documents
from .descriptor_words import words_document
from .distinct import Document, Table, written
from .operand_cells import tensor_document
from .sass import SEEN, sass_of

_MAJORS: tuple[Major, ...] = ("K", "MN")


class _Key:
    """An operand of a form for a cache; equal to those of other forms that have the same numbers."""

    def __init__(self, form: Instruction, operand: str, numbers: tuple[Any, ...]) -> None:
        self.form, self.operand = form, operand
        self._numbers = (form.family.rules, operand, *numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._numbers == other._numbers

    def __hash__(self) -> int:
        return hash(self._numbers)


@cache
def catalogue() -> Document:
    """Return all forms of all targets; not to be written to."""
    names = ("layouts", "metadata", "scales", "tiles", "cute", "formulas", "targets", "arithmetic", "rules")
    tables = {name: Table() for name in names}
    described = [_form(form, tables) for form in forms().values()]
    return {
        "targets": list(ARCHITECTURES),
        "families": [family.name for family in FAMILIES],
        "formats": {name: item | {"float": item["is_float"]} for name, item in format_documents().items()},
        "tables": {name: table.entries for name, table in tables.items()},
        "forms": described,
        "words": words_document(),
        "tensor": tensor_document(),
    }


def _form(form: Instruction, tables: dict[str, Table]) -> Document:
    legal = [name for name in ARCHITECTURES if name in form.targets]
    operands = register_operands(form)
    document: Document = {
        "mnemonic": form.mnemonic,
        "family": form.family.name,
        "shape": [form.shape.m, form.shape.n, form.shape.k],
        "types": {operand: form.format(operand).name for operand in "abcd"},
        "lanes": form.lanes,
        "since": version_text(form.since),
        "registers": form.registers,
        "register_bits": form.register_bits,
        "products": form.products,
        "targets": tables["targets"].number([list(ARCHITECTURES).index(name) for name in legal]),
        "arithmetic": tables["arithmetic"].number([_rule(form, name, tables["rules"]) for name in legal]),
        "layouts": {
            name: tables["layouts"].number(_layout(form, name)) for name in operands if name in "abcd"
        },
        "cute": {name: tables["cute"].number(_cute(form, name)) for name in operands if name in (*"abcde",)},
        "sass": _sass(form),
        "formulas": {name: tables["formulas"].number(_formula(form, name)) for name in operands},
    }
    return document | _sparse(form, tables) | _scaled(form, tables) | _shared(form, tables)


def _rule(form: Instruction, target: str, rules: Table) -> int:
    return rules.number(_rule_document(_Key(form, "d", (form.family.rules, form.product)), target))


@cache
def _rule_document(key: _Key, target: str) -> Document:
    rule = rule_on(key.form, target)
    evidence = rule.evidence
    return {"text": rule_text(rule), "label": evidence.label, "evidence": str(evidence)}


def _formula(form: Instruction, operand: str) -> Document:
    return _formula_document(_Key(form, operand, _layout_numbers(form, operand)))


@cache
def _formula_document(key: _Key) -> Document:
    """Return the manual's formula of an operand, of metadata for each selector."""
    form, operand = key.form, key.operand
    found = [formula(form, operand, selector) for selector in _selectors(form, operand)]
    return {
        "section": section(form, operand),
        "domain": found[0].domain.removesuffix(", selector 0"),
        "lines": [[line.strip() for line in item.lines()[1:]] for item in found],
        "more": logical_column_lines(form) if operand in ("a", "e") else [],
    }


def _selectors(form: Instruction, operand: str) -> Iterable[int]:
    return form.selectors if operand == "e" else (0,)


def _sass(form: Instruction) -> list[list[str]]:
    """Return ``[targets, instructions]``: what ptxas makes of the form, where it is known."""
    targets: dict[str, list[str]] = {}
    for target in SEEN:
        name = sass_of(form, target)
        if name is not None:
            targets.setdefault(name, []).append(target)
    return [[", ".join(found), name] for name, found in targets.items()]


# --- registers ---------------------------------------------------------------------------------------


def _layout(form: Instruction, operand: str) -> Document:
    """Return the layout of a, b, c or d: ``(lane, value) -> (row, column)``, products below each other."""
    storage = form.storage(operand)
    lanes, values = _modes(_Key(form, operand, _layout_numbers(form, operand)))
    rows, columns = form.matrix_shape(operand)
    return {
        "lanes": lanes,
        "values": values,
        "rows": rows,
        "columns": columns,
        "products": form.products,
        "storage": storage.bits,
        "shift": storage.shift,
        "bits": form.format(operand).bits,
        "register_bits": form.register_bits,
    }


def _layout_numbers(form: Instruction, operand: str) -> tuple[Any, ...]:
    """Return what layouts and formulas are made of: forms that have these in common have them in common."""
    storage = [form.storage(item).bits for item in ("a", *(operand if operand in "abcd" else ""))]
    quads = (form.a_layout, form.b_layout, form.c.name, form.d.name) if form.products > 1 else ()
    return form.shape, form.pattern, *storage, form.register_bits, form.scale_chunks, quads


@cache
def _modes(key: _Key) -> tuple[list[list[int]], list[list[int]]]:
    layout = key.form.in_registers(key.operand).layout
    return written(layout.lane_modes), written(layout.value_modes)


def _cute(form: Instruction, operand: str) -> list[Document]:
    return _cute_documents(_Key(form, operand, _layout_numbers(form, operand)))


@cache
def _cute_documents(key: _Key) -> list[Document]:
    """Return the layouts in CuTe's notation: of every selector of metadata, of every product."""
    form, operand = key.form, key.operand
    return [
        {
            "domain": layout.domain,
            "codomain": layout.codomain,
            "thread": written(layout.thread),
            "value": written(layout.value),
            "lanes": layout.lanes and written(layout.lanes),
            "first": layout.first_lane,
        }
        for selector in _selectors(form, operand)
        for layout in cute_layouts(form, operand, selector)
    ]


# --- metadata and scales -----------------------------------------------------------------------------


def _sparse(form: Instruction, tables: dict[str, Table]) -> Document:
    """Pattern, selectors and the place of every metadata field; nothing for a dense form."""
    if form.pattern is None:
        return {}
    pattern = form.pattern
    return {
        "stored_k": form.stored_k,
        "ordered": form.ordered,
        "pattern": {
            "name": pattern.name,
            "chunk": pattern.chunk,
            "stored": pattern.stored,
            "unit": pattern.unit,
        },
        "metadata": [tables["metadata"].number(_metadata(form, selector)) for selector in form.selectors],
    }


def _metadata(form: Instruction, selector: int) -> Document:
    """Return ``(row, chunk) -> (lane, lowest bit)``; ``first`` is the lane of row 0, chunk 0."""
    layout = metadata_layout(form, selector)
    rows, chunks = (written(modes) for _, modes in layout.inputs)
    return {
        "rows": rows,
        "chunks": chunks,
        "first": layout.first_lane,
        "bits": layout.field_bits,
        "extent": list(layout.shape),
    }


def _scaled(form: Instruction, tables: dict[str, Table]) -> Document:
    if form.scale is None:
        return {}
    sides = {side: tables["scales"].number(_scale(form, side)) for side in "ab"}
    return {"scale": {"type": form.scale.name, "vector": form.scale_vector, "sides": sides}}


def _scale(form: Instruction, side: str) -> Document:
    """Return ``(line, thread id) -> lane``, and the legal ids."""
    scales = form.scales(side)
    (_, lines), _, (_, threads), _ = scales.layout.inputs
    return {
        "lines": written(lines),
        "threads": written(threads),
        "count": scales.lines,
        "chunks": scales.chunks,
        "byte_ids": list(scales.byte_ids),
        "thread_ids": list(scales.thread_ids),
    }


# --- shared memory -----------------------------------------------------------------------------------


def _shared(form: Instruction, tables: dict[str, Table]) -> Document:
    if form.lanes == 32:
        return {}
    return {"shared": {operand: tables["tiles"].number(_tiles(form, operand)) for operand in "ab"}}


def _tiles(form: Instruction, operand: str) -> list[Document]:
    rows, columns = form.matrix_shape(operand)
    mn, k = (rows, columns) if operand == "a" else (columns, rows)
    return _tiles_of(_Key(form, operand, (mn, k, form.a.bits)))


@cache
def _tiles_of(key: _Key) -> list[Document]:
    return list(_each_tile(key.form, key.operand))


def _each_tile(form: Instruction, operand: str) -> Iterator[Document]:
    """Yield the packed tile in each swizzle and major, or why there is none."""
    for major in _MAJORS:
        for swizzle in SWIZZLE_BYTES:
            named = {"swizzle": swizzle, "major": major}
            try:
                tile = shared_tile(form, operand, swizzle, major)
            except WarpsimError as error:
                yield {**named, "error": error.message}
                continue
            mn, k = tile.addresses.shape
            shape = TileShape(mn=mn, k=k, element_bits=8 * tile.size, major=major)
            along_mn, along_k = tile_modes(tile.descriptor, shape)
            yield {
                **named,
                "mn": written(along_mn),
                "k": written(along_k),
                "extent": [mn, k],
                "size": tile.size,
                "elements": tile.size * 8 // form.a.bits,
                "mask": SWIZZLE_BYTES[swizzle] // 16 - 1,
                "word": f"{tile.descriptor.encode():#018x}",
                "fields": [_field(field) for field in tile.descriptor.fields(major)],
            }


def _field(field: Field) -> list[str]:
    return [field.name, field.bits, f"{field.raw:#x}", field.value, field.meaning]
