"""Layouts as data for the page: where everything of one form lies, with its formulas, rule and formats.

One document serves every instruction of a trace with the same form, selector and scale selectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import present
from ...isa.families.tcgen05_operands import descriptor_of
from ...isa.formats import FORMATS, Format
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import ScaleSelectors
from ...isa.operand_places.places import places, register_operands
from ...sums.execution.pipeline import rule_for
from ...workbench.explanation.information import evidence_document, rule_document
from ...workbench.explanation.rule_steps import program_document
from ..views.layouts.formulas import section
from ..views.layouts.layout import notes
from .arrays import Pool

Document = dict[str, Any]

PLACE_FIELDS = ("lane", "register", "index", "low_bit", "row", "column", "product")


def layout_document(instruction: Instruction, selector: int, scales: ScaleSelectors, pool: Pool) -> Document:
    """Return everything about a form that does not depend on what its registers hold."""
    rule = rule_for(instruction)
    pattern = instruction.pattern
    return {
        "mnemonic": instruction.mnemonic,
        "target": instruction.target,
        "family": instruction.family.name,
        "shape": asdict(instruction.shape),
        "lanes": instruction.lanes,
        "tensor_memory": instruction.descriptor is not None,
        "stored_k": instruction.stored_k,
        "products": instruction.products,
        "formats": {operand: instruction.format(operand).name for operand in "abcd"},
        "register_bits": instruction.register_bits,
        "bit_operation": instruction.bit_operation,
        "rounding": instruction.rounding,
        "satfinite": instruction.satfinite,
        "pattern": pattern and _pattern_document(instruction),
        "scale": instruction.scale and {"format": instruction.scale.name, "chunks": instruction.scale_chunks},
        "selector": selector if instruction.descriptor is None else _selector(instruction),
        "rule": rule_document(rule),
        "program": program_document(rule, instruction),
        "evidence": evidence_document(rule.evidence) | {"text": str(rule.evidence)},
        "operands": {
            operand: _operand_document(instruction, operand, selector, scales, pool)
            for operand in register_operands(instruction)
        },
    }


def _selector(instruction: Instruction) -> int:
    """Return the sparsity selector of an instruction descriptor; 0 where its kind has none."""
    return descriptor_of(instruction).selector


def _pattern_document(instruction: Instruction) -> Document:
    pattern = present(instruction.pattern, "pattern")
    return {
        "name": pattern.name,
        "chunk": pattern.chunk,
        "stored": pattern.stored,
        "unit": pattern.unit,
        "kept": pattern.kept,
        "ordered": instruction.ordered,
    }


def _operand_document(
    instruction: Instruction, operand: str, selector: int, scales: ScaleSelectors, pool: Pool
) -> Document:
    held = places(instruction, operand, selector, scales)
    table = _place_table(instruction, operand, selector, scales)
    return {
        "registers": instruction.held(operand).words,
        "bits": held[0].bits,
        "count": len(held),
        "places": pool.add_narrow(table),
        "section": section(instruction, operand),
        "notes": notes(instruction, operand, selector),
    }


@lru_cache(maxsize=64)
def _place_table(
    instruction: Instruction, operand: str, selector: int, scales: ScaleSelectors
) -> npt.NDArray[np.int64]:
    """Return ``(fields, places)``: PLACE_FIELDS of every place of an operand."""
    held = places(instruction, operand, selector, scales)
    return np.array([[getattr(place, name) for place in held] for name in PLACE_FIELDS], np.int64)


# --- formats ---------------------------------------------------------------------------------------


def format_documents() -> dict[str, Document]:
    """Return every element format by name, as the page's arithmetic reads it."""
    return {name: _format_document(element) for name, element in FORMATS.items()}


def _format_document(element: Format) -> Document:
    """Return a format: ``specials`` is what the largest exponent field means, ``nan`` the NaN of sums."""
    return {
        "name": element.name,
        "bits": element.bits,
        "is_float": element.is_float,
        "signed": element.signed,
        "exponent_bits": element.exponent_bits,
        "fraction_bits": element.fraction_bits,
        "ignored_bits": element.ignored_bits,
        "bias": element.bias if element.is_float else 0,
        "minimum_exponent": element.minimum_exponent if element.is_float else 0,
        "specials": element.specials.value,
        "nan": f"{element.canonical_nan:#x}" if element.has_nan else None,
    }


def with_distinctions(layouts: Sequence[Document]) -> list[Document]:
    """Return the layouts with ``apart``: what the mnemonic has that others of the same short name do not."""
    groups: dict[tuple[str, ...], set[str]] = {}
    for item in layouts:
        groups.setdefault(_short_name(item), set()).add(item["mnemonic"])
    return [
        item | {"apart": _distinct_qualifiers(item["mnemonic"], groups[_short_name(item)])}
        for item in layouts
    ]


def _short_name(layout: Document) -> tuple[str, ...]:
    """Return what a list shows of a form: its family, shape and types."""
    formats = layout["formats"]
    return layout["family"], str(layout["shape"]), *(formats[operand] for operand in "dab")


def _distinct_qualifiers(mnemonic: str, all_of_name: set[str]) -> str:
    """Return the qualifiers of a mnemonic at the places where mnemonics differ, or that not all have."""
    spelled = [name.split(".") for name in sorted(all_of_name)]
    own = mnemonic.split(".")
    if len({len(words) for words in spelled}) == 1:
        found = [word for at, word in enumerate(own) if len({words[at] for words in spelled}) > 1]
    else:
        common = set[str].intersection(*map(set, spelled))
        found = [word for word in own if word not in common]
    return ".".join(word.removeprefix("sp::") for word in found if word != "sp")
