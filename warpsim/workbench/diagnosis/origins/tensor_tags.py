"""What a tcgen05.mma reads in a run on tags: A, B and D as matrices, the others as words of cells.

Nothing is checked, since tags are no metadata and no factors. Knows the places of one execution; does not
know what tags say. PTX ISA 9.3, section 9.7.17.10.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.families.tcgen05_operands import layout_of
from ....isa.instruction import Instruction
from ....isa.layouts.tensor_memory import BIT, COLUMN, CTA, LANE, LANES, TensorLayout
from ....isa.operand_places.placements import Inputs, ScaleSelectors
from ....isa.products import Product
from ....machine.opcodes.tensor.tensor_places import TENSOR_MEMORY
from ....machine.opcodes.tensor.tensor_products import Multiplication, Part
from ....machine.run.wave import Wave

Words = npt.NDArray[Any]
Numbers = npt.NDArray[np.intp]


def settings_of(work: Multiplication) -> Inputs:
    """Return what the instruction descriptor and the statement say besides places."""
    descriptor = work.made.descriptor
    ids = ScaleSelectors(byte_id_a=descriptor.scale_a_id, byte_id_b=descriptor.scale_b_id)
    return Inputs(registers={}, selector=descriptor.selector, scale_selectors=ids, scale_d=work.given.enabled)


def places_of_tiles(wave: Wave, work: Multiplication) -> dict[str, Any]:
    """Return the descriptors of A and B, and the shared memory of the first CTA, as inputs hold them."""
    base, size = work.ctas[0] * wave.memories.shared_stride, wave.memories.shared_bytes
    found: dict[str, Any] = {"shared": wave.memories.shared[base : base + size].copy()}
    found["b_descriptor"] = np.array([work.given.b], np.uint64)
    if not work.given.a_in_memory:
        found["a_descriptor"] = np.array([work.given.a], np.uint64)
    return found


def tags_of(wave: Wave, work: Multiplication) -> dict[str, Words]:
    """Return what it reads by operand: elements ``(rows, k)`` of A and B, codes ``(m, n)`` of D before, and
    words ``(cells, 1)`` of the others.
    """
    return dict(_tags(wave, work))


def _tags(wave: Wave, work: Multiplication) -> Iterator[tuple[str, Words]]:
    product, form = work.made.instruction.product, work.made.instruction
    if work.a_part is not None:
        slots = 32 // product.storage("a").bits
        cta, lane, column = (index[:, ::slots] for index in work.a_part.index(work.ctas))
        words = np.ascontiguousarray(TENSOR_MEMORY.of(wave).cells[cta, lane, column])
        yield "a", words.view(_word_of(product, "a"))
    for role, tile in (("a", work.a), ("b", work.b)):
        if tile is not None and product.format(role).bits in (product.storage(role).bits, 8):
            data = np.concatenate([tile.bytes(wave, cta) for cta in work.ctas])
            yield role, data.view(_word_of(product, role))
    d = TENSOR_MEMORY.of(wave).cells[work.d.index(work.ctas)]
    yield "c", d.astype(form.c.code_dtype)
    scales = work.scales or (None, None)
    for role, part in (("e", work.metadata), ("scale_a", scales[0]), ("scale_b", scales[1])):
        if part is not None:
            yield role, _cells(wave, work, part)


def _word_of(product: Product, role: str) -> np.dtype[Any]:
    """Return the unsigned type that holds an element of A or B, or two of 4 bits."""
    return np.dtype(f"u{max(product.storage(role).bits, 8) // 8}")


def _cells(wave: Wave, work: Multiplication, part: Part) -> Words:
    """Return the words of the columns of an operand, in the order of ``cell_numbers``."""
    first, width = part.place.column, part.layout.width
    own = list(work.ctas[: part.layout.ctas])
    words = TENSOR_MEMORY.of(wave).cells[own, :, first : first + width]
    return np.ascontiguousarray(words.swapaxes(1, 2)).reshape(-1, 1)


def cell_uses(form: Instruction, role: str) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Return cell, byte, line and chunk along k of every field or factor of an operand of words.

    Cells are counted lane by lane, then column by column, then CTA by CTA.
    """
    layout = layout_of(form, role)
    assert layout is not None, f"{role} lies in cells"
    line, chunk = (index.reshape(-1) for index in np.indices(layout.cells.shape[:2]))
    return _cell_numbers(layout), layout.cells[..., BIT].reshape(-1) // 8, line, chunk


def _cell_numbers(layout: TensorLayout) -> Numbers:
    cells = layout.cells.reshape(-1, layout.cells.shape[-1])
    numbers: Numbers = (cells[:, CTA] * layout.width + cells[:, COLUMN]) * LANES + cells[:, LANE]
    return numbers
