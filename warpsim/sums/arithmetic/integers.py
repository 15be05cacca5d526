"""Products of integer matrices, modulo 2**32: by an instruction of the CPU, or in BLAS's float32.

Where the CPU multiplies bytes (kernels.octets), its sums wrap as those of instructions do. Elsewhere BLAS
multiplies blocks that are added in int32: the sum of a block is at most 2**24 in magnitude, so that it and
every partial sum is an integer that float32 holds, and its bits do not depend on BLAS's order. As nothing is
rounded or subnormal, they do not depend either on the environment of BLAS's threads, which cannot be set from
here (a zero may be -0, an integer all the same). Bits are counted in words of 64. An instruction under
.satfinite clamps its result; where an element could come near the limits (and only there) the instructions
are executed in order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...base.errors import present
from ...isa.formats import Format
from ...isa.products import Codes, Product
from ...isa.sparsity import decompress
from .kernels._jit import interpreted
from .kernels.integer_sums import add_populations, clamped_rows, clamped_sums
from .kernels.octets import COLUMNS, ROWS, has_octets, octet_products, pack_octets

_EXACT = 1 << 24  # float32 holds every integer up to it
_ROWS = 1020  # rows of D at a time, which bounds the temporary float32 block
_HIGH = (1 << 31) - 1
_SHARE = 16  # a row with more than one element in so many near the limits is computed whole

Single = npt.NDArray[np.float32]
Sums = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerProblem:
    """Operands as codes a (m, stored), b (k, n) and c (m, n) of int32, or None; A's unit indices where it is
    sparse.
    """

    product: Product
    a: Codes
    b: Codes
    c: Codes | None
    indices: npt.NDArray[np.uint8] | None = None


def _largest(element: Format) -> int:
    return element.sign_bit or element.mask


def integer_product(problem: IntegerProblem, threads: int = 1) -> Codes:
    """Return codes of D (m, n); ``threads`` are for products by octets, as BLAS has its own."""
    product = problem.product
    a = problem.a
    if problem.indices is not None:
        pattern = present(product.pattern, "pattern")
        a = decompress(a, problem.indices, pattern)[:, : problem.b.shape[0]]
    start = None if problem.c is None else problem.c.view(np.int32)
    if product.bit_operation and not interpreted():
        return _populations(a, problem.b, start, product.bit_operation == "xor").view(np.uint32)
    if product.bit_operation == "xor":
        return _exclusive(a, problem.b, start).view(np.uint32)
    if has_octets() and not product.bit_operation:
        total = _by_octets(start, _values(a, product.a), _values(problem.b, product.b), threads)
    else:
        total = _with_products(start, a, product.a, problem.b, product.b)
    if product.satfinite:
        _saturate(total, start, a, problem.b, product)
    return total.view(np.uint32)


def _by_octets(start: Sums | None, a: Codes, b: Codes, threads: int) -> Sums:
    """Return ``start + a @ b`` modulo 2**32, of int8 or uint8 values.

    The instruction takes a from 0 to 255 and b from -128 to 127: both are shifted to these ranges, and the
    products of the shifts are subtracted again.
    """
    total = np.zeros((a.shape[0], b.shape[1]), np.int32) if start is None else start.copy()
    signed = _shift_by_128(b, np.int8)
    if a.dtype == np.int8:
        total -= signed.sum(axis=0, dtype=np.int32) << 7
    if b.dtype == np.uint8:
        total += (a.sum(axis=1, dtype=np.int32) << 7)[:, None]
    words = -(-a.shape[1] // 4)
    packed = np.empty((-(-b.shape[1] // COLUMNS), words, COLUMNS), np.int32)
    pack_octets(np.ascontiguousarray(signed), words, packed)

    def run(band: slice) -> None:
        _add_octets(_shift_by_128(a[band], np.uint8), packed, total[band])

    height = max(min(_ROWS, len(a) // (4 * threads) // ROWS * ROWS), ROWS) if threads > 1 else _ROWS
    bands = [slice(first, first + height) for first in range(0, len(a), height)]
    with ThreadPoolExecutor(threads) as pool:
        for _ in map(run, bands) if threads == 1 else pool.map(run, bands):
            pass
    return total


def _add_octets(a: Codes, packed: Sums, total: Sums) -> None:
    """Add ``a @ b`` to some rows of total; a is uint8, b packed."""
    panels, words, columns = packed.shape
    filled = np.zeros((-(-len(a) // ROWS) * ROWS, 4 * words), np.uint8)
    filled[: len(a), : a.shape[1]] = a
    block = np.empty((len(filled), panels * columns), np.int32)
    left, right = filled.view(np.int32).reshape(-1), packed.reshape(-1)
    octet_products(left, right, len(filled), words, block.shape[1], block.reshape(-1))
    total += block[: len(a), : total.shape[1]]


def _shift_by_128(values: Codes, dtype: type) -> Codes:
    """Return int8 and uint8 values shifted by 128 into the other type; values of that type unchanged."""
    return values if values.dtype == dtype else (values.view(np.uint8) ^ np.uint8(128)).view(dtype)


def _with_products(start: Sums | None, a: Codes, a_format: Format, b: Codes, b_format: Format) -> Sums:
    """Return ``start + a @ b`` modulo 2**32; no start is zero."""
    block = _EXACT // (_largest(a_format) * _largest(b_format))
    total = np.zeros((a.shape[0], b.shape[1]), np.int32) if start is None else start.copy()
    for k in range(0, a.shape[1], block):
        right = _single(b[k : k + block], b_format)
        for i in range(0, a.shape[0], _ROWS):
            left = _single(a[i : i + _ROWS, k : k + block], a_format)
            _multiply(left, right, total[i : i + _ROWS], first=k == 0 and start is None)
    return total


def _multiply(left: Single, right: Single, total: Sums, first: bool) -> None:
    """Add ``left @ right`` to total; the first product is written directly, as memory costs more than the
    sum.
    """
    product = np.matmul(left, right, out=total.view(np.float32) if first else None)
    for i in range(0, len(total), 32):  # a few rows at a time, which stay in the cache
        whole = product[i : i + 32].astype(np.int32)
        total[i : i + 32] = whole if first else total[i : i + 32] + whole


def _add(total: Sums, block: Single) -> None:
    """Add whole numbers to integers, which wrap."""
    total += block.astype(np.int32)


def _values(codes: Codes, element: Format) -> npt.NDArray[np.int8 | np.uint8]:
    """Return the values of codes of at most 8 bits."""
    if element.bits == 8:
        return codes.view(np.int8 if element.signed else np.uint8)
    sign = np.uint8(element.sign_bit)
    return (((codes & np.uint8(element.mask)) ^ sign) - sign).view(np.int8)


def _single(codes: Codes, element: Format) -> Single:
    return _values(codes, element).astype(np.float32)


def _populations(a: Codes, b: Codes, start: Sums | None, exclusive: bool) -> Sums:
    """Return ``start`` plus the number of set bits of A AND B or A XOR B."""
    total = np.zeros((a.shape[0], b.shape[1]), np.int64)
    if start is not None:
        total += start
    add_populations(_words(a), np.ascontiguousarray(_words(b.T).T), exclusive, total)
    return total.astype(np.int32)


def _words(bits: Codes) -> npt.NDArray[np.int64]:
    """Return rows of bits as words of 64 bits, padded with zeros."""
    octets = np.packbits(np.ascontiguousarray(bits), axis=1)
    return np.ascontiguousarray(np.pad(octets, ((0, 0), (0, -octets.shape[1] % 8)))).view(np.int64)


def _exclusive(a: Codes, b: Codes, start: Sums | None) -> Sums:
    """Return ``start`` plus the set bits of A XOR B: with bits as signs, k minus the product, halved."""
    depth = a.shape[1]
    total = np.zeros((a.shape[0], b.shape[1]), np.int32) if start is None else start.copy()
    for k in range(0, depth, _EXACT):
        signs = 1 - 2 * a[:, k : k + _EXACT].astype(np.float32)
        product = signs @ (1 - 2 * b[k : k + _EXACT].astype(np.float32))
        _add(total, (signs.shape[1] - product) / 2)
    return total


def _saturate(total: Sums, start: Sums | None, a: Codes, b: Codes, product: Product) -> None:
    """Replace the elements of total that an instruction may have clamped.

    The products of an element are at most ``reach`` together: if C is farther from the limits, no partial sum
    reaches a limit, and total did not wrap.
    """
    reach = a.shape[1] * _largest(product.a) * _largest(product.b)
    room = _HIGH - reach
    if start is None:
        if room >= 0:
            return
        start = np.zeros_like(total)
    if start.size and int(start.max()) <= room and int(start.min()) >= -room:
        return
    near = (start > room) | (start < -room)
    left, right = _values(a, product.a), _values(b, product.b)
    full = near.sum(axis=1) * _SHARE > near.shape[1]
    _saturate_rows(total, start, np.flatnonzero(full), left, right, product.shape.k)
    rows, columns = np.nonzero(near & ~full[:, None])
    sums = start[rows, columns].astype(np.int64)
    clamped_sums(left, np.ascontiguousarray(right.T), rows, columns, product.shape.k, sums)
    total[rows, columns] = sums


def _saturate_rows(total: Sums, start: Sums, rows: Codes, left: Codes, right: Codes, each: int) -> None:
    """Replace whole rows of total."""
    if not len(rows):
        return
    missing = -left.shape[1] % 4  # products of zeros
    left = np.pad(left.astype(np.int16), ((0, 0), (0, missing)))
    right = np.pad(right.astype(np.int16), ((0, missing), (0, 0)))
    total[rows] = start[rows]
    clamped_rows(left, right, rows, each, total)
