"""What the explorer knows of descriptors: fields, what they mean, and the modes of the tiles behind them.

A step of a tile is ``[constant, per leading byte offset, per stride byte offset]``, in bytes before
swizzling, so that a page can follow edited fields. Does not know how a page shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ....base.errors import WarpsimError
from ....isa.descriptors import instruction_descriptor, matrix_descriptor, tensor_descriptor
from ....isa.descriptors.instruction_descriptor import KINDS, InstructionDescriptor, Issue, legal_m, legal_n
from ....isa.descriptors.matrix_descriptor import MAJORS, PLACES, Descriptor, Field, Major
from ....isa.descriptors.tensor_descriptor import (
    SWIZZLES,
    WIDTH,
    TensorDescriptor,
    tensor_modes,
    tile_byte_addresses,
)
from ....isa.descriptors.tile_addresses import tile_modes
from ....isa.descriptors.tile_shape import TileShape
from ....isa.layouts.strides import Modes
from ....isa.layouts.swizzle import SWIZZLE_BYTES, swizzle_moves
from .distinct import Document, written

_LEADING, _STRIDE = 1 << 12, 1 << 15  # stand for the offsets: larger than any other step, and apart
_LINES, _BYTES = 256, 512  # of a tile that has every digit
_SIZES = (1, 2, 4)  # bytes of an element


def words_document() -> Document:
    """Return the descriptors of 64 bits by instruction, and the instruction descriptors by kind."""
    return {
        "matrix": {"wgmma": _wgmma(), "tcgen05": _tcgen05()},
        "instruction": {name: _kind(name) for name in KINDS},
    }


# --- 64 bits -----------------------------------------------------------------------------------------


def _wgmma() -> Document:
    codes = {code: Descriptor.decode(code << 62).swizzle for code in range(4)}
    fields = [[place.name, place.attribute, place.lowest, place.bits, 1 << place.shift] for place in PLACES]
    return {
        "title": "matrix descriptor of wgmma",
        "section": "9.7.15.5.1.2.2",
        "fields": fields,
        "swizzles": [
            _swizzle(code, name, SWIZZLE_BYTES[name], Descriptor(start_address=0, swizzle=name).fields)
            | {"tiles": {major: [_wgmma_tile(name, major, size) for size in _SIZES] for major in MAJORS}}
            for code, name in codes.items()
        ],
        "reserved": _hints(matrix_descriptor.RESERVED, matrix_descriptor.reserved_hint),
    }


def _tcgen05() -> Document:
    plain = TensorDescriptor(start_address=0)
    named = [
        [field.name, field.attribute.removesuffix("_code"), field.lowest, field.bits, field.unit]
        for field in tensor_descriptor.FIELDS
    ]
    modes = [TensorDescriptor(start_address=0, absolute=code).fields() for code in (0, 1)]
    at = [name for _, name, *_ in named].index("absolute")
    return {
        "title": "shared-memory descriptor of tcgen05",
        "section": "9.7.17.4.1",
        "fields": named,
        "codes": {"absolute": [fields[at].meaning for fields in modes]},
        "constant": plain.constant,
        "swizzles": [
            _swizzle(code, name, WIDTH[name], TensorDescriptor(start_address=0, swizzle=name).fields)
            | {"tiles": {major: [_tensor_tile(name, major, size) for size in _SIZES] for major in MAJORS}}
            for code, name in SWIZZLES.items()
        ],
        "reserved": _hints(tensor_descriptor.RESERVED, tensor_descriptor.tensor_reserved_hint),
    }


def _swizzle(code: int, name: Any, width: int, fields: Callable[[Major], tuple[Field, ...]]) -> Document:
    return {
        "code": code,
        "name": name,
        "width": width,
        "moves": swizzle_moves(name),
        "meanings": {major: [field.meaning for field in fields(major)] for major in MAJORS},
    }


def _hints(reserved: int, hint: Callable[[list[int]], str]) -> list[list[Any]]:
    """Return ``[bit, what to say of it]`` for every reserved bit."""
    return [[bit, hint([bit])] for bit in range(64) if reserved >> bit & 1]


# --- tiles -------------------------------------------------------------------------------------------


def _wgmma_tile(swizzle: Any, major: Major, size: int) -> Document:
    shape = TileShape(mn=_LINES, k=_BYTES // size, element_bits=8 * size, major=major)
    try:
        shape.check()
    except WarpsimError as error:
        return {"error": error.message}
    descriptor = Descriptor(
        start_address=0, swizzle=swizzle, leading_byte_offset=_LEADING, stride_byte_offset=_STRIDE
    )
    down, along = tile_modes(descriptor, shape)
    return {"mn": _symbolic(down), "k": _symbolic(along), "unit": 1}


def _tensor_tile(swizzle: Any, major: Major, size: int) -> Document:
    """Return the tile with the modes of bytes along K: ``unit`` of them are an element."""
    plain = TensorDescriptor(start_address=0, swizzle=swizzle)
    try:
        tile_byte_addresses(plain, rows=_LINES, row_bytes=16, element_bytes=size, major=major)
    except WarpsimError as error:
        return {"error": error.message.removeprefix(f"{plain}: ")}
    descriptor = TensorDescriptor(
        start_address=0, swizzle=swizzle, leading_byte_offset=_LEADING, stride_byte_offset=_STRIDE
    )
    down, along = tensor_modes(descriptor, _LINES, _BYTES, size, major)
    return {"mn": _symbolic(down), "k": _symbolic(along), "unit": size}


def _symbolic(modes: Modes) -> list[list[int]]:
    """Return modes as ``[extent, constant, times LBO, times SBO]``, fastest first."""
    return [[extent, *_parts(step)] for extent, step in written(modes)]


def _parts(step: int) -> Iterator[int]:
    stride, rest = divmod(step, _STRIDE)
    leading, constant = divmod(rest, _LEADING)
    yield from (constant, leading, stride)


# --- 32 bits -----------------------------------------------------------------------------------------


def _kind(name: str) -> Document:
    kind, word = KINDS[name], InstructionDescriptor(kind=name, m=0, n=0)
    return {
        "k": kind.k,
        "fields": [
            [field.name, field.attribute, field.lowest, field.bits, field.unit, _codes(word, field.attribute)]
            for field in instruction_descriptor.FIELDS[kind.group]
        ],
        "forms": [
            {
                "name": f"cta_group::{issue.ctas}" + ".ws" * issue.weight_stationary + ".sp" * issue.sparse,
                "sparse": int(issue.sparse),
                "m": legal_m(kind, issue),
                "n": legal_n(kind, issue),
            }
            for issue in _issues(kind.is_scaled)
        ],
    }


def _codes(word: InstructionDescriptor, attribute: str) -> list[list[Any]] | None:
    codes = word.codes(attribute)
    return None if codes is None else [[code, text] for code, text in codes.items()]


def _issues(scaled: bool) -> Iterator[Issue]:
    for sparse in (False, True):
        yield from (Issue(ctas=ctas, sparse=sparse) for ctas in (1, 2))
        if not scaled:
            yield Issue(weight_stationary=True, sparse=sparse)
