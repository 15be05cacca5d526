"""From drafted matrices to what an instruction reads: registers, metadata, scales, shared memory.

The way back from Operands to inputs. Immediates vary over the cases (selectors, byte and thread ids,
imm-scale, imm-trans, scale-d), and the descriptors of wgmma with swizzle and major axis, so that every
legal value of each occurs. What an instruction does not read holds bits that would show.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np

from ....base.errors import NotModelled, present
from ....isa.descriptors.matrix_descriptor import MAJORS, Major
from ....isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor, canonical_image
from ....isa.descriptors.tile_addresses import tile_addresses
from ....isa.descriptors.tile_shape import TileShape
from ....isa.fragments import (
    indices_of,
    known_fields,
    registers_of,
    write_fields,
)
from ....isa.instruction import Instruction
from ....isa.layouts.swizzle import Swizzle
from ....isa.sparsity import stored_columns
from ..sums.exact_numbers import Array
from .corner_codes import Rng, random_codes, signs
from .drafts import Draft
from .tensor_cases import tensor_arguments

Place = Literal["shared", "registers"]  # of A of wgmma
Arguments = dict[str, Any]  # of make_vectors: arrays with the cases in front, and immediates

SWIZZLES: tuple[Swizzle, ...] = ("none", "32B", "64B", "128B")
_TILE_START = 1024  # every swizzle pattern begins at a multiple of this


def arguments_of(instruction: Instruction, draft: Draft, rng: Rng, a_in: Place = "shared") -> Arguments:
    """Return the drafted tiles as cases of vectors.make_vectors.

    A ``plain`` draft has the first of everything instead: metadata, selector, bytes, lanes, layouts; and
    zeros where nothing is read.
    """
    cases = draft.count // instruction.products
    arguments: Arguments = {}
    b, fields = draft.b, None
    if instruction.sparse:
        fields = _fields(instruction, draft, rng)
        b = _logical(instruction, draft, fields, rng)
    if instruction.descriptor is not None:
        return tensor_arguments(instruction, draft, b, fields, rng, a_in)
    if fields is not None:
        arguments |= _metadata(instruction, fields, rng, draft.plain)
    if instruction.scale is not None:
        arguments |= _scale_registers(instruction, draft, rng)
    arguments["c"] = _registers(instruction, "c", draft.c, cases)
    if instruction.has_registers("b"):
        arguments["a"] = _registers(instruction, "a", draft.a, cases)
        arguments["b"] = _registers(instruction, "b", b, cases)
        return arguments
    return arguments | _warpgroup(instruction, draft, b, rng, a_in)


def _registers(instruction: Instruction, operand: str, codes: Array, cases: int) -> Array:
    if instruction.products > 1:
        codes = codes.reshape(cases, instruction.products, *codes.shape[1:])
    return registers_of(np.ascontiguousarray(codes), instruction, operand)


# --- sparse ----------------------------------------------------------------------------------------


def legal_fields(instruction: Instruction) -> Array:
    """Return metadata fields with a known effect on the target."""
    return np.flatnonzero(known_fields(instruction))


def _fields(instruction: Instruction, draft: Draft, rng: Rng) -> Array:
    """Return fields ``(tiles, m, chunks)``: one pattern for all rows of a tile with slots, otherwise any."""
    pattern = present(instruction.pattern, "pattern")
    legal = legal_fields(instruction).astype(np.uint8)
    free = draft.b.shape[1] == instruction.shape.k
    rows, chunks = draft.m if free else 1, instruction.shape.k // pattern.chunk
    choice = rng.integers(0, 1 if draft.plain else len(legal), (draft.count, rows, chunks))
    fields = legal[choice]
    return np.ascontiguousarray(np.broadcast_to(fields, (draft.count, draft.m, chunks)))


def _logical(instruction: Instruction, draft: Draft, fields: Array, rng: Rng) -> Array:
    """Return B over all of k. What no row selects is NaN in half of the tiles, where the format has NaNs, and
    random otherwise."""
    if draft.b.shape[1] == instruction.shape.k:
        return draft.b
    pattern, form = instruction.pattern, instruction.b
    pattern = present(pattern, "pattern")
    shape = (draft.count, instruction.shape.k, draft.n)
    poison = signs((draft.count, 1, 1), rng) & form.is_float
    b = np.where(poison, form.code_dtype.type(form.mask), random_codes(form, shape, rng))
    if draft.plain:
        b = np.zeros_like(b)
    columns = stored_columns(indices_of(instruction, fields), pattern)[:, 0]
    np.put_along_axis(b, columns[:, :, None], draft.b, axis=1)
    return b


def _metadata(instruction: Instruction, fields: Array, rng: Rng, plain: bool) -> Arguments:
    """Return metadata registers; lanes that the selector does not read hold random bits."""
    if plain:
        return {"e": write_fields(instruction, fields, 0), "selector": np.zeros(len(fields), np.int8)}
    selector = rng.choice(instruction.selectors, len(fields))
    words = rng.integers(0, 1 << 32, (len(fields), instruction.lanes, 1), np.uint64).astype(np.uint32)
    for value in instruction.selectors:
        cases = np.flatnonzero(selector == value)
        written = write_fields(instruction, fields[cases], value)
        used = write_fields(instruction, np.full_like(fields[:1], 15), value) != 0
        words[cases] = np.where(used, written, words[cases])
    return {"e": words, "selector": selector.astype(np.int8)}


# --- block scales ----------------------------------------------------------------------------------


def _scale_registers(instruction: Instruction, draft: Draft, rng: Rng) -> Arguments:
    """Scale registers: chunk i in byte ``byte + i`` of the lanes that hold scales; the rest is random."""
    count, chunks = draft.count, instruction.scale_chunks
    found: Arguments = {}
    scale_a = present(draft.scale_a, "scale a")
    scale_b = present(draft.scale_b, "scale b")
    for side, codes in (("a", scale_a), ("b", scale_b.swapaxes(1, 2))):
        scales = instruction.scales(side)
        byte = rng.choice(scales.byte_ids, count) * (not draft.plain)
        thread = rng.integers(0, len(scales.thread_ids), count) * (not draft.plain)
        octets = rng.integers(0, 1 if draft.plain else 256, (count, 32, 4)).astype(np.uint8)
        lane = scales.lanes_of(thread)
        for chunk in range(chunks):
            octets[np.arange(count)[:, None], lane, (byte + chunk)[:, None]] = codes[..., chunk]
        found[f"scale_{side}"] = octets.view("<u4").astype(np.uint32)
        found |= {f"byte_id_{side}": byte.astype(np.int8), f"thread_id_{side}": thread.astype(np.int8)}
    return found


# --- wgmma -----------------------------------------------------------------------------------------


def _warpgroup(instruction: Instruction, draft: Draft, b: Array, rng: Rng, a_in: Place) -> Arguments:
    """Return shared memory, descriptors and immediates; A too, in shared memory or in registers."""
    found = _immediates(instruction, draft, rng, a_in)
    a = _negated(draft.a, instruction, found["imm_scale_a"] < 0, "a")
    b = _negated(b, instruction, found["imm_scale_b"] < 0, "b").swapaxes(1, 2)
    tiles = {"b": b}
    if a_in == "registers":
        found["a"] = registers_of(a, instruction, "a")
    else:
        tiles = {"a": a, "b": b}
    images, start = [], 0
    for side, tile in tiles.items():
        bytewise = np.packbits(tile, axis=-1, bitorder="little") if instruction.a.bits == 1 else tile
        transposed = found[f"imm_trans_{side}"]
        choice = rng.integers(0, 1 if draft.plain else 12, draft.count)
        image, words = _images(bytewise, transposed, start, choice)
        found[f"{side}_desc"] = words
        images.append(image)
        start += image.shape[1]
    found["shared"] = np.concatenate(images, axis=1)
    return found


def _immediates(instruction: Instruction, draft: Draft, rng: Rng, a_in: Place) -> Arguments:
    """Return imm-scale, which floating point has, imm-trans, which 16-bit elements in memory have, and
    scale-d.
    """

    def flags(legal: bool, likely: float = 0.5) -> Array:
        return (rng.random(draft.count) < likely) & legal & (not draft.plain)

    negate = [flags(instruction.a.is_float) for _ in range(2)]
    wide = instruction.a.bits == 16
    return {
        "imm_scale_a": np.where(negate[0], -1, 1).astype(np.int8),
        "imm_scale_b": np.where(negate[1], -1, 1).astype(np.int8),
        "imm_trans_a": flags(wide and a_in == "shared").astype(np.int8),
        "imm_trans_b": flags(wide).astype(np.int8),
        "scale_d": (~flags(True, 0.2)).astype(np.int8),
    }


def _negated(codes: Array, instruction: Instruction, where: Array, side: str) -> Array:
    """Return elements that imm-scale will negate, negated."""
    element = instruction.format(side)
    sign = element.code_dtype.type(element.sign_bit)
    return codes ^ np.where(where, sign, element.code_dtype.type(0))[:, None, None]


def _images(tiles: Array, transposed: Array, start: int, choice: Array) -> tuple[Array, Array]:
    """Return bytes of tiles ``(count, mn, k)`` in shared memory from ``start``, and descriptors."""
    count = len(tiles)
    shapes = {major: TileShape.of(tiles, major) for major in MAJORS}
    legal = layouts(shapes["K"])
    sizes = [canonical_bytes(shapes[x], swizzle=y) for x, y in legal]
    images = np.zeros((count, -(-max(sizes) // _TILE_START) * _TILE_START), np.uint8)
    words = np.zeros(count, np.uint64)
    for flag, major in enumerate(MAJORS):
        swizzles = [swizzle for legal_major, swizzle in legal if legal_major == major]
        for index, swizzle in enumerate(swizzles):
            cases = np.flatnonzero((transposed == flag) & (choice % len(swizzles) == index))
            if not len(cases):
                continue
            image = canonical_image(np.ascontiguousarray(tiles[cases]), major=major, swizzle=swizzle)
            images[cases, : image.shape[1]] = image
            packed = canonical_descriptor(start, shapes[major], swizzle=swizzle)
            words[cases] = packed.encode()
    return images, words


@cache
def layouts(shape: TileShape) -> tuple[tuple[Major, Swizzle], ...]:
    """Return major axes and swizzles in which one instruction reads a packed tile of these extents.

    Only 16-bit elements may lie MN-major; a swizzled row has to hold all of k.
    """
    found: list[tuple[Major, Swizzle]] = []
    for major in MAJORS if shape.element_bits == 16 else MAJORS[:1]:
        turned = replace(shape, major=major)
        for swizzle in SWIZZLES:
            descriptor = canonical_descriptor(0, turned, swizzle=swizzle)
            try:
                tile_addresses(descriptor, turned, memory_bytes=1 << 18)
            except NotModelled:
                continue
            found.append((major, swizzle))
    return tuple(found)


def swizzles_of(instruction: Instruction, side: str) -> tuple[Swizzle, ...]:
    """Return the swizzles in which A or B of a wgmma may lie."""
    legal = layouts(instruction.in_shared_memory(side).shape())
    return tuple(dict.fromkeys(swizzle for _, swizzle in legal))
