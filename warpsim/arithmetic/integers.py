"""Products of integer matrices: exact in BLAS's float32, block by block, and added in int32.

The sum of a block of at most 2**24 in magnitude, and every partial sum of it, is an integer that float32
holds, so that its bits do not depend on BLAS's order; nor, as nothing is rounded or subnormal, on the
environment of BLAS's own threads, which is out of reach (a zero may be -0, which is 0 as an integer). Blocks
wrap modulo 2**32 as instructions do. An instruction under .satfinite clamps its result; where an element
could come near the limits (and only there) the instructions are executed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import present
from ..isa.codes import integers
from ..isa.formats import Format
from ..isa.instruction import Codes, Instruction
from ..isa.sparsity import decompress
from .kernels.clamping import clamped_sums

_EXACT = 1 << 24  # float32 holds every integer up to it
_ROWS = 1024  # of D at a time, which bounds the temporary float32 block
_HIGH = (1 << 31) - 1

Single = npt.NDArray[np.float32]
Sums = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerProblem:
    """Codes a (m, stored), b (k, n) and c (m, n) of int32, or None; A's unit indices where it is sparse."""

    instruction: Instruction
    a: Codes
    b: Codes
    c: Codes | None
    indices: npt.NDArray[np.uint8] | None = None


def _largest(element: Format) -> int:
    return element.sign_bit or element.mask


def integer_product(problem: IntegerProblem) -> Codes:
    """Codes of D (m, n)."""
    form = problem.instruction
    a = problem.a
    if problem.indices is not None:
        pattern = present(form.pattern, "pattern")
        a = decompress(a, problem.indices, pattern)[:, : problem.b.shape[0]]
    start = None if problem.c is None else problem.c.view(np.int32)
    if form.bit_operation == "xor":
        return _exclusive(a, problem.b, start).view(np.uint32)
    total = _with_products(start, a, form.a, problem.b, form.b)
    if form.satfinite:
        _saturate(total, start, a, problem.b, form)
    return total.view(np.uint32)


def _with_products(start: Sums | None, a: Codes, a_format: Format, b: Codes, b_format: Format) -> Sums:
    """``start + a @ b`` modulo 2**32; no start is zero."""
    block = _EXACT // (_largest(a_format) * _largest(b_format))
    total = np.zeros((a.shape[0], b.shape[1]), np.int32) if start is None else start.copy()
    for k in range(0, a.shape[1], block):
        right = _single(b[k : k + block], b_format)
        for i in range(0, a.shape[0], _ROWS):
            left = _single(a[i : i + _ROWS, k : k + block], a_format)
            _multiply(left, right, total[i : i + _ROWS], first=k == 0 and start is None)
    return total


def _multiply(left: Single, right: Single, total: Sums, first: bool) -> None:
    """Add ``left @ right`` to total; the first product takes its place, as memory costs more than the sum."""
    product = np.matmul(left, right, out=total.view(np.float32) if first else None)
    for i in range(0, len(total), 32):  # a few rows at a time, which stay in the cache
        whole = product[i : i + 32].astype(np.int32)
        total[i : i + 32] = whole if first else total[i : i + 32] + whole


def _add(total: Sums, block: Single) -> None:
    """Add whole numbers to integers, which wrap."""
    total += block.astype(np.int32)


def _values(codes: Codes, element: Format) -> npt.NDArray[np.int8 | np.uint8]:
    if element.bits == 8:
        return codes.view(np.int8 if element.signed else np.uint8)
    return integers(codes, element).astype(np.int8)


def _single(codes: Codes, element: Format) -> Single:
    return _values(codes, element).astype(np.float32)


def _exclusive(a: Codes, b: Codes, start: Sums | None) -> Sums:
    """``start`` plus the ones of A XOR B: with bits as signs, k less the product, halved."""
    depth = a.shape[1]
    total = np.zeros((a.shape[0], b.shape[1]), np.int32) if start is None else start.copy()
    for k in range(0, depth, _EXACT):
        signs = 1 - 2 * a[:, k : k + _EXACT].astype(np.float32)
        product = signs @ (1 - 2 * b[k : k + _EXACT].astype(np.float32))
        _add(total, (signs.shape[1] - product) / 2)
    return total


def _saturate(total: Sums, start: Sums | None, a: Codes, b: Codes, form: Instruction) -> None:
    """Replace the elements of total that some instruction may have clamped.

    The products of an element are at most ``reach`` together: if C is farther from the limits, no
    partial sum meets one, and total did not wrap.
    """
    reach = a.shape[1] * _largest(form.a) * _largest(form.b)
    room = _HIGH - reach
    if start is None:
        if room >= 0:
            return
        start = np.zeros_like(total)
    if start.size and int(start.max()) <= room and int(start.min()) >= -room:
        return
    rows, columns = np.nonzero((start > room) | (start < -room))
    left, right = _values(a, form.a), np.ascontiguousarray(_values(b, form.b).T)
    sums = start[rows, columns].astype(np.int64)
    clamped_sums(left, right, rows, columns, form.shape.k, sums)
    total[rows, columns] = sums
