"""A tensor map explained: its dimensions, and the bytes of shared memory that a box lands on; lines and data.

Knows how maps, boxes and the wgmma descriptor of a box are shown; what they are is in isa/tensor_maps
and isa/descriptors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....base.errors import NotModelled, OperandError, WarpsimError
from ....isa.descriptors.matrix_descriptor import Descriptor, Major
from ....isa.descriptors.tile_addresses import tile_addresses
from ....isa.descriptors.tile_shape import TileShape
from ....isa.layouts.swizzle import SWIZZLE_BYTES, pattern_bytes
from ....isa.tensor_maps.tensor_box import Pieces, box_pieces
from ....isa.tensor_maps.tensor_map import TensorMap

Document = dict[str, Any]  # "lines" is the text; everything else is JSON

_CELL, _LINE = 16, 128  # bytes
_MOST_LINES = 16  # of 128 bytes that are shown
_ATOMS = {
    "none": "no swizzle: rows of the box follow each other",
    "32B": "bit 4 of an address ^= bit 7; repeats every 256 bytes",
    "64B": "bits 5:4 of an address ^= bits 8:7; repeats every 512 bytes",
    "96B": "bit 4 of an address ^= bit 7; repeats every 256 bytes",
    "128B": "bits 6:4 of an address ^= bits 9:7; repeats every 1024 bytes",
    "128B_ATOM_32B": "bits 6:5 of an address ^= bits 8:7; repeats every 512 bytes",
    "128B_ATOM_32B_FLIP_8B": "bits 6:5 of an address ^= bits 8:7, bit 3 ^= bit 7; repeats every 512 bytes",
    "128B_ATOM_64B": "bit 6 of an address ^= bit 7; repeats every 256 bytes",
}


def explained(map_: TensorMap, start: int = 0) -> Document:
    """Return the map field by field, and a box of it that begins at an address of shared memory.

    Raises OperandError for a start that boxes cannot have.
    """
    if start % _LINE or start < 0:
        raise OperandError(f"start address {start:#x}: boxes of tensors begin at multiples of {_LINE}")
    document: Document = {"map": fields(map_), "start": start}
    lines = [_headline(map_), *_dimensions(map_), *_properties(map_)]
    try:
        pieces = _pieces(map_)
    except NotModelled as error:
        return document | {"lines": [*lines, f"where a box lands is not modelled: {error.message}"]}
    rows = _rows(map_, pieces, start)
    document |= {"bytes": pieces.counted, "cells": rows, "descriptors": _descriptors(map_, pieces, start)}
    lines += [f"a box has {pieces.counted} bytes, which its mbarrier expects", *_table(map_, rows, start)]
    return document | {"lines": [*lines, *_description_lines(document["descriptors"], map_)]}


def fields(map_: TensorMap) -> Document:
    """Return the map as data, innermost dimension first."""
    found = {
        "address": map_.address,
        "mode": map_.mode,
        "element": map_.element,
        "sizes": list(map_.sizes),
        "strides": list(map_.strides),
        "box": list(map_.box),
        "element_strides": list(map_.element_strides),
        "interleave": map_.interleave,
        "swizzle": map_.swizzle,
        "fill": map_.fill,
        "l2_promotion": map_.l2_promotion,
    }
    if map_.im2col is not None:
        found |= {"lower": list(map_.im2col.lower), "upper": list(map_.im2col.upper)}
        found |= {"channels": map_.im2col.channels, "pixels": map_.im2col.pixels}
    return found


def _headline(map_: TensorMap) -> str:
    shape = " x ".join(map(str, map_.sizes[::-1]))
    return f"tensor map, {map_.mode}: {shape} elements of {map_.element} at {map_.address:#x}"


def _dimensions(map_: TensorMap) -> list[str]:
    """Return one line a dimension, innermost first."""
    tile = map_.im2col is None
    strides = (f"{map_.type.bits / 8:g}", *map(str, map_.strides))
    counts = map_.counts if tile else ("",) * map_.rank
    lines = [f"  {'dimension':<14} {'elements':>12} {'bytes apart':>14} {'box':>5} {'step':>5} {'moved':>6}"]
    for place in range(map_.rank):
        name = f"{place}, innermost" if not place else str(place)
        box = map_.box[place] if tile else ""
        lines.append(
            f"  {name:<14} {map_.sizes[place]:>12} {strides[place]:>14} {box:>5} "
            f"{map_.element_strides[place]:>5} {counts[place]:>6}"
        )
    return [line.rstrip() for line in lines]


def _properties(map_: TensorMap) -> list[str]:
    """Return whe fields that belong to no single dimension."""
    lines = list[str]()
    if (im2col := map_.im2col) is not None:
        axes = "WHD"[: map_.rank - 2]
        corners = (
            f"{axis} {low} to {size - 1 + high}"
            for axis, size, low, high in zip(axes, map_.sizes[1:-1], im2col.lower, im2col.upper, strict=True)
        )
        lines.append(
            f"  pixels        {im2col.pixels} of {im2col.channels} channels; the filter's base visits"
        )
        lines[-1] += f" {', '.join(corners)}"
    filling = "NaN (0x7ff7 in every 16 bits, inferred)" if map_.fill == "nan" else "zero"
    lines += [f"  swizzle       {map_.swizzle}: {_ATOMS[map_.swizzle]}"]
    lines += [f"  outside       reads as {filling}"]
    lines += [f"  interleave    {map_.interleave}; L2 promotion {map_.l2_promotion}"]
    return lines


# --- where a box lands -----------------------------------------------------------------------------


def _pieces(map_: TensorMap) -> Pieces:
    """Return the pieces of a box that lies inside of its tensor. Raises NotModelled."""
    if map_.im2col is not None:
        return box_pieces(map_, (0, *map_.im2col.lower, 0))
    inside = tuple(max(size, box) for size, box in zip(map_.sizes, map_.box, strict=True))
    return box_pieces(replace(map_, sizes=inside), (0,) * map_.rank)


def _rows(map_: TensorMap, pieces: Pieces, start: int) -> list[Document]:
    """Return lines of 128 bytes of shared memory: row and cell of the box in each 16 bytes, or None."""
    width = map_.inner * map_.type.shared_bits // 8
    places = pieces.landing(start, map_).places
    cells: dict[int, list[int]] = {}
    for place, address in zip(pieces.places.tolist(), places.tolist(), strict=True):
        if place % _CELL == 0:
            cells[address // _CELL] = [place // width, place % width // _CELL]
    first, last = min(cells) // 8, max(cells) // 8
    return [
        {"address": line * _LINE, "cells": [cells.get(line * 8 + place) for place in range(8)]}
        for line in range(first, last + 1)
    ]


def _table(map_: TensorMap, rows: list[Document], start: int) -> list[str]:
    what = "pixel" if map_.im2col is not None else "row"
    lines = [f"  shared memory   the {what} and the 16-byte cell of it in each 16 bytes"]
    for row in rows[:_MOST_LINES]:
        shown = ("-" if cell is None else f"{cell[0]}.{cell[1]}" for cell in row["cells"])
        lines.append(f"  {row['address']:#07x}         {'  '.join(f'{cell:>6}' for cell in shown)}")
    if len(rows) > _MOST_LINES:
        lines.append(f"  and so on, up to {rows[-1]['address'] + _LINE - 1:#07x}")
    if start % _repeats(map_):
        lines.append(
            f"  the pattern does not begin with the box: {start:#x} is not a multiple of {_repeats(map_)}"
        )
    return lines


def _repeats(map_: TensorMap) -> int:
    """Return bytes after which the swizzle repeats."""
    known: dict[str, int] = {name: pattern_bytes(name) for name in SWIZZLE_BYTES}
    return known.get(map_.swizzle, 512)


# --- wgmma -----------------------------------------------------------------------------------------


def _descriptors(map_: TensorMap, pieces: Pieces, start: int) -> list[Document]:
    """Return descriptors by which wgmma reads the box, rows of the box being rows or columns of the tile."""
    size = map_.type.bits // 8
    rows = pieces.bytes // (map_.inner * size) if not map_.type.packed else 0
    if map_.swizzle not in SWIZZLE_BYTES or map_.type.packed or map_.im2col is not None:
        return []
    found = []
    for major in ("K", "MN"):
        descriptor = _descriptor(map_, major, rows, size, start)
        if descriptor is not None:
            found.append(descriptor)
    return found


def _descriptor(map_: TensorMap, major: Major, rows: int, size: int, start: int) -> Document | None:
    """Return the descriptor of the box read so, if it reads every element where it lies."""
    plain = map_.swizzle == "none"
    span = SWIZZLE_BYTES[map_.swizzle]  # type: ignore[index]
    stride = _LINE if plain else 8 * span
    candidate = Descriptor(
        start_address=start % (1 << 18),
        leading_byte_offset=stride if plain and major == "MN" else 0,
        stride_byte_offset=stride,
        swizzle=map_.swizzle,  # type: ignore[arg-type]
    )
    mn, k = (rows, map_.inner) if major == "K" else (map_.inner, rows)
    shape = TileShape(mn=mn, k=k, element_bits=8 * size, major=major)
    try:
        wanted = tile_addresses(candidate, shape, literal=True)
    except WarpsimError:
        return None
    single = replace(map_, sizes=tuple(max(a, b) for a, b in zip(map_.sizes, map_.box, strict=True)))
    lands = (
        box_pieces(single, (0,) * map_.rank, element=True)
        .landing(start, map_)
        .places.reshape(rows, map_.inner)
    )
    if not np.array_equal(lands if major == "K" else lands.T, wanted):
        return None
    return {
        "major": major,
        "mn": mn,
        "k": k,
        "leading_byte_offset": candidate.leading_byte_offset,
        "stride_byte_offset": candidate.stride_byte_offset,
        "swizzle": candidate.swizzle,
        "word": candidate.encode(),
    }


def _description_lines(found: list[Document], map_: TensorMap) -> list[str]:
    if not found:
        return ["no wgmma descriptor reads the whole box as one tile"]
    lines = ["wgmma reads the whole box as a tile by"]
    for item in found:
        leading = item["leading_byte_offset"] or "any"
        lines.append(
            f"  {item['major']:>2}-major   {item['mn']} x {item['k']} (M or N, K): LBO {leading}, "
            f"SBO {item['stride_byte_offset']}, swizzle {item['swizzle']}: {item['word']:#018x}"
        )
    if any(entry["major"] == "K" and entry["k"] * map_.type.bits > 256 for entry in found):
        lines.append("  an instruction takes 32 bytes of K: the next one starts 32 bytes on")
    return lines
