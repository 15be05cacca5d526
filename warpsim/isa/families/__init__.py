"""The instruction families, and the product of their tables: every legal form by its mnemonic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

from ..architectures import targets_with
from ..formats import FORMATS
from ..instruction import Family, Instruction, Row
from ..products import Product
from ..sparsity import FOUR_OF_EIGHT, ONE_OF_TWO, TWO_OF_FOUR, Pattern
from .mma import MMA
from .mma_sp import MMA_SP
from .tcgen05 import TCGEN05
from .wgmma import WGMMA, WGMMA_SP

FAMILIES: tuple[Family, ...] = (MMA, MMA_SP, WGMMA, WGMMA_SP)

OPCODES = frozenset(family.opcode for family in FAMILIES)
TILE_OPCODES = frozenset(family.opcode for family in FAMILIES if family.reads_tiles)

# Storage bits of an element of A -> pattern. PTX ISA 9.1, section 9.7.14.6.1.
_PATTERNS: dict[int, Pattern] = {32: ONE_OF_TWO, 16: TWO_OF_FOUR, 8: TWO_OF_FOUR, 4: FOUR_OF_EIGHT}


def lanes_of(opcode: str) -> int:
    """Return how many lanes execute the matrix instructions of an opcode together; 0 for other opcodes."""
    return next((family.lanes for family in FAMILIES if family.opcode == opcode), 0)


def multiplies_tiles(opcode: str, modifiers: tuple[str, ...]) -> bool:
    """Return whether a statement is a matrix instruction of a family that reads tiles in shared memory."""
    if opcode not in TILE_OPCODES:
        return False
    tiles = (family for family in FAMILIES if family.reads_tiles and family.opcode == opcode)
    return any(modifiers[: len(family.modifiers)] == family.modifiers for family in tiles)


def is_matrix(opcode: str, modifiers: tuple[str, ...]) -> bool:
    """Return whether a statement is a matrix instruction of a family, tcgen05.mma among them."""
    found = (family.modifiers for family in (*FAMILIES, TCGEN05) if family.opcode == opcode)
    return any(modifiers[: len(fixed)] == fixed for fixed in found)


@cache
def forms(opcode: str | None = None) -> dict[str, Instruction]:
    """Return every legal form of an opcode, or of all, on any target, by canonical mnemonic."""
    if opcode is None:
        opcodes = dict.fromkeys(family.opcode for family in FAMILIES)
        return {name: form for each in opcodes for name, form in forms(each).items()}
    table: dict[str, Instruction] = {}
    for family in FAMILIES:
        for row in family.rows if family.opcode == opcode else ():
            for form in _forms_of(family, row):
                table[form.mnemonic] = _merge(table.get(form.mnemonic), form)
    return table


def _merge(known: Instruction | None, form: Instruction) -> Instruction:
    """Return a form with the targets of both rows, where two have it in common on different targets."""
    if known is None:
        return form
    return replace(known, targets=known.targets | form.targets, since=min(known.since, form.since))


def _forms_of(family: Family, row: Row) -> Iterator[Instruction]:
    spellings = product(row.variants, row.layouts, row.scales)
    products = tuple(_products_of(row))
    for (variant, (a_layout, b_layout), (vector, scale)), bare in product(spellings, products):
        computed = _with_scales(bare, row, vector, scale)
        if variant:
            computed = replace(computed, pattern=_PATTERNS[computed.storage("a").bits])
        types = [item for item in (computed.a, computed.b, computed.c, computed.d, computed.scale) if item]
        form = Instruction(
            mnemonic="",
            target=None,
            family=family,
            product=computed,
            since=max(row.since, *(item.since for item in types)),
            targets=row.targets.intersection(*(targets_with(item.feature) for item in types if item.feature)),
            a_layout=a_layout,
            b_layout=b_layout,
            variant=variant,
            scale_vector=vector,
        )
        yield replace(form, mnemonic=_mnemonic(form))


def _products_of(row: Row) -> Iterator[Product]:
    """Yield the products of a row, dense and without block scales."""
    types = product(row.accumulators, row.multiplicands, row.multiplicands)
    for satfinite, rounding, (accumulators, a, b) in product(row.satfinite, row.roundings, types):
        d, c = accumulators.split(".")
        yield Product(
            shape=row.shape,
            a=FORMATS[a],
            b=FORMATS[b],
            c=FORMATS[c],
            d=FORMATS[d],
            operation=row.operation,
            kind=row.kind,
            satfinite=satfinite,
            rounding=rounding,
            bit_operation=row.bit_operation,
            products=4 if row.operation == "m8n8k4.f16" else 1,
        )


def _with_scales(computed: Product, row: Row, vector: str, scale: str) -> Product:
    """Return the product with the block scales of a spelling; they are the same where it has none."""
    if not scale:
        return computed
    return replace(computed, scale=FORMATS[scale], scale_chunks=_scale_chunks(row, vector))


def _scale_chunks(row: Row, vector: str) -> int:
    """Return the scales along k: n of ``.scale_vec::nX``, or the only choice of the kind where left out."""
    spelled = [choice for choice, _ in row.scales if choice]
    return int((vector or spelled[0]).removesuffix("X"))


def _mnemonic(form: Instruction) -> str:
    """Return the spelling in the order of the PTX manual's syntax."""
    parts = [
        form.family.opcode,
        *form.family.modifiers,
        form.variant,
        "sync.aligned",
        str(form.shape),
        form.a_layout,
        form.b_layout,
        "satfinite" if form.satfinite else "",
        f"kind::{form.kind}" if form.kind else "",
        "block_scale" if form.scale else "",
        f"scale_vec::{form.scale_vector}" if form.scale_vector else "",
        form.rounding,
        *(str(form.format(operand)) for operand in form.family.types),
        str(form.scale or ""),
        f"{form.bit_operation}.popc" if form.bit_operation else "",
    ]
    return ".".join(part for part in parts if part)
