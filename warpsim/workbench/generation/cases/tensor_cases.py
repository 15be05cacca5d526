"""From drafted matrices to what a tcgen05.mma reads: words of tensor memory, tiles in shared memory.

Tiles are packed, in every swizzle that their descriptor can have; what an instruction does not read holds
random bits. A lies in shared or in tensor memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ....base.errors import OperandError, WarpsimError
from ....isa.descriptors.matrix_descriptor import Major
from ....isa.descriptors.tensor_descriptor import WIDTH, SwizzleMode, TensorDescriptor
from ....isa.element_packing import bytes_of_codes
from ....isa.families.tcgen05_operands import behind_descriptor
from ....isa.fragments import signed
from ....isa.instruction import Instruction
from ....isa.operand_places.places import tensor_cells
from ....isa.operand_places.tensor_placements import DescribedTile, TensorCells
from ..sums.exact_numbers import Array
from .corner_codes import Rng
from .drafts import Draft

_START = 1024  # every swizzle pattern begins at a multiple of this
_WINDOW = 1 << 18


def tensor_arguments(
    instruction: Instruction,
    draft: Draft,
    b: Array,
    fields: Array | None,
    rng: Rng,
    a_in: Literal["shared", "registers"],
) -> dict[str, Any]:
    """Return cases of vectors.make_vectors; ``b`` is B over all of k, and ``a_in`` "registers" is tensor
    memory here.
    """
    negated = instruction.product.negated
    given = {"c": draft.c, "e": fields, "scale_a": draft.scale_a}
    if draft.scale_b is not None:
        given["scale_b"] = draft.scale_b.swapaxes(1, 2)
    tiles = {"b": signed(b, instruction.b, negated[1]).swapaxes(1, 2)}
    a = signed(draft.a, instruction.a, negated[0])
    if a_in == "registers":
        given["a"] = a
    else:
        tiles = {"a": a, **tiles}
    found = {
        name: _words(tensor_cells(instruction, name), codes, rng, plain=draft.plain)
        for name, codes in given.items()
        if codes is not None
    }
    chosen = rng.random(draft.count)
    found["enable_input_d"] = ((chosen < 0.8) | draft.plain).astype(np.int8)
    return found | _shared(instruction, tiles, rng, plain=draft.plain)


def _words(cells: TensorCells, codes: Array, rng: Rng, *, plain: bool) -> Array:
    """Return words with elements in place; other bits are random, or 0 in a plain draft."""
    words = cells.scatter(np.ascontiguousarray(codes))
    if plain:
        return words
    ones = np.full(codes.shape[1:], (1 << cells.bits) - 1, np.uint32)
    read = cells.scatter(ones[None])
    other = rng.integers(0, 1 << 32, words.shape, np.uint64).astype(np.uint32)
    return words | other & ~read


# --- shared memory -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Packed:
    """A packed tile: its descriptor with start 0, and the bytes that it takes."""

    descriptor: TensorDescriptor
    size: int


def _shared(instruction: Instruction, tiles: dict[str, Array], rng: Rng, *, plain: bool) -> dict[str, Any]:
    """Return shared memory ``(cases, bytes)`` of all CTAs, and the descriptors of the tiles."""
    found: dict[str, Any] = {}
    count = len(tiles["b"])
    places = {side: behind_descriptor(instruction, side) for side in tiles}
    legal = {side: packings(place, major_of(instruction, side)) for side, place in places.items()}
    sizes = {side: max(tile.size for tile in packed) for side, packed in legal.items()}
    ctas, own = places["b"].ctas, sum(sizes.values())
    memory = np.zeros((count, ctas, own), np.uint8)
    start = 0
    for side, place in places.items():
        choice = rng.integers(0, 1 if plain else len(legal[side]), count)
        words = np.zeros(count, np.uint64)
        for index, packed in enumerate(legal[side]):
            word = packed.descriptor.advanced(start).encode()
            addresses = place.addresses(word, major_of(instruction, side), own)
            for case in np.flatnonzero(choice == index):
                data = bytes_of_codes(tiles[side][case], instruction.product, side)
                memory[case][:, addresses] = data.reshape(ctas, place.rows, place.row_bytes)
                words[case] = word
        found[f"{side}_desc"] = words
        start += sizes[side]
    return found | {"shared": memory.reshape(count, ctas * own)}


def major_of(instruction: Instruction, side: str) -> Major:
    """Return along which axis the elements of a tile lie."""
    return "MN" if instruction.product.transposed["ab".index(side)] else "K"


@lru_cache(maxsize=256)
def packings(place: DescribedTile, major: Major) -> tuple[_Packed, ...]:
    """Return the packed tiles that a descriptor can address, in every swizzle that has some."""
    found = []
    for swizzle in WIDTH:
        descriptor = _packed(place, major, swizzle)
        try:
            addresses = place.addresses(descriptor.encode(), major, _WINDOW)
        except WarpsimError:
            continue
        if len(np.unique(addresses)) == addresses.size:
            size = -(-(int(addresses.max()) + 1) // _START) * _START
            found.append(_Packed(descriptor=descriptor, size=size))
    if not found:
        raise OperandError(f"{place.operand}: no packed tile of {place.rows} rows lies {major}-major")
    return tuple(found)


def _packed(place: DescribedTile, major: Major, swizzle: SwizzleMode) -> TensorDescriptor:
    """Return the descriptor of atoms in a row, those along M or N first."""
    width = WIDTH[swizzle]
    if major == "K":
        leading = place.rows // 8 * 128 if swizzle == "none" else 16
        return TensorDescriptor(
            start_address=0, leading_byte_offset=leading, stride_byte_offset=8 * width, swizzle=swizzle
        )
    step = (4 if swizzle == "128B_ATOM_32B" else 8) * width
    further = step * max(1, -(-place.rows * place.element_bytes // width))
    leading, stride = (further, step) if swizzle == "none" else (step, further)
    return TensorDescriptor(
        start_address=0, leading_byte_offset=leading, stride_byte_offset=stride, swizzle=swizzle
    )
