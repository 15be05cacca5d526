"""Elements in the bytes of tiles: 16 of 6 or 4 bits in the first bytes of a 16-byte chunk, or side by side.

Knows bytes and bits; does not know where tiles lie. PTX ISA 9.3, section 9.7.17.3 "Data types and packing".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .products import Codes, Product
from .registers import unpacked

Bytes = npt.NDArray[np.uint8]
_CHUNK = 16  # bytes, and elements that it holds


def narrow_codes(data: Bytes, bits: int) -> Bytes:
    """Return ``(rows, elements)``: codes of 6 or 4 bits, 16 of which lie in a row at the start of a chunk."""
    rows = data.shape[0]
    chunks = np.ascontiguousarray(data).reshape(rows, -1, _CHUNK)
    stream = np.unpackbits(chunks, axis=2, bitorder="little")[:, :, : bits * _CHUNK]
    codes = np.packbits(stream.reshape(rows, -1, bits), axis=2, bitorder="little")
    return codes[:, :, 0]


def byte_per_element(data: Bytes, bits: int) -> Bytes:
    """Return ``(rows, bytes)``: every element of 6 or 4 bits in a byte of its own; 4-bit codes in bits
    5:2.
    """
    return narrow_codes(data, bits) << np.uint8(2 if bits == 4 else 0)


def byte_of_element(numbers: npt.NDArray[np.intp], bits: int, *, padded: bool) -> npt.NDArray[np.intp]:
    """Return the first byte of elements of a row, by their numbers; ``padded`` are 16 to a chunk."""
    if bits < 8 and padded:
        return numbers // _CHUNK * _CHUNK + numbers % _CHUNK * bits // 8
    return numbers * bits // 8


def codes_of_bytes(data: Bytes, product: Product, operand: str) -> Codes:
    """Return codes ``(rows, k)`` of the rows of a tile in shared memory."""
    element = product.format(operand)
    if element.bits < 8 and product.storage(operand).bits == 8:
        return narrow_codes(data, element.bits)
    if element.bits < 8:
        pairs = np.stack([data & np.uint8(15), data >> np.uint8(4)], axis=-1)
        return pairs.reshape(data.shape[0], -1)
    return _view(np.ascontiguousarray(data), element.code_dtype)


def _view(data: Bytes, dtype: np.dtype[Any]) -> Codes:
    codes: Codes = data.view(dtype)
    return codes


def codes_of_cells(words: npt.NDArray[np.uint32], product: Product, operand: str) -> Codes:
    """Return codes ``(rows, k)`` of rows of cells."""
    element = product.format(operand)
    codes: Codes = unpacked(words[None], product.storage(operand), 32, element.mask)[0]
    return codes.astype(element.code_dtype, copy=False)


def bytes_of_codes(codes: Codes, product: Product, operand: str) -> Bytes:
    """Return the bytes ``(rows, bytes)`` of the rows of a tile; the inverse of codes_of_bytes."""
    element = product.format(operand)
    if element.bits >= 8:
        return np.ascontiguousarray(codes, element.code_dtype).view(np.uint8)
    rows = codes.shape[0]
    if product.storage(operand).bits < 8:
        pairs = codes.reshape(rows, -1, 2).astype(np.uint8)
        found: Bytes = pairs[..., 0] | pairs[..., 1] << np.uint8(4)
        return found
    bits = np.unpackbits(codes.astype(np.uint8)[..., None], axis=-1, bitorder="little")[..., : element.bits]
    stream = np.packbits(bits.reshape(rows, -1, _CHUNK * element.bits), axis=-1, bitorder="little")
    chunks = np.zeros((rows, stream.shape[1], _CHUNK), np.uint8)
    chunks[..., : stream.shape[2]] = stream
    return chunks.reshape(rows, -1)
