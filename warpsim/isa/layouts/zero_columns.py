"""The zero-column mask of tcgen05.mma.ws: the columns of B that count as zero.

PTX ISA 9.3, section 9.7.17.10.9 "tcgen05.mma.ws". The manual exchanges skip span and use span against its own
examples, which CUTLASS follows; so does this: a run of zeroed columns is as long as the skip span. Bit 39 is
read as the manual has it: 0 zeroes no column. Knows words and columns; both readings are inferred.
"""

from __future__ import annotations

from itertools import chain, islice, repeat

import numpy as np
import numpy.typing as npt

from ...base.errors import NotModelled, OperandError

EVIDENCE = (
    "inferred: runs of the zero-column mask are those of the manual's examples, against its words, "
    "and bit 39 enables it"
)
_RESERVED = 0b111 << 36 | 0b11 << 62
_NON_ZERO = 1 << 39


def zero_columns(mask: int, n: int, parts: int) -> npt.NDArray[np.bool_]:
    """Return ``(n,)``: the columns of B that a mask sets to zero.

    ``parts`` are the sub-masks in use: 1 with M 128, 2 with M 64, 4 with M 32; each covers as many
    neighbouring columns. Raises OperandError for reserved bits, NotModelled for a column shift.
    """
    if not 0 <= mask < 1 << 64:
        raise OperandError(f"a zero-column mask is an unsigned 64-bit word, not {mask:#x}")
    if mask & _RESERVED:
        bits = ", ".join(str(bit) for bit in range(64) if mask & _RESERVED & 1 << bit)
        raise OperandError(f"zero-column mask {mask:#018x} has reserved bits {bits} set")
    shift = mask >> 56 & 0x3F
    if shift:
        raise NotModelled(
            f"zero-column mask {mask:#018x}: what lies behind the last column that a column shift of {shift} "
            "(bits 61:56) brings in is not documented"
        )
    if not mask & _NON_ZERO:
        return np.zeros(n, np.bool_)
    return np.array([bit for part in range(parts) for bit in _part(mask, part, n // parts)], np.bool_)


def _part(mask: int, part: int, columns: int) -> list[bool]:
    """Return the columns of one sub-mask, True where they are zeroed."""
    skip, use = (mask >> 40 & 0xFF) + 1, (mask >> 48 & 0xFF) + 1
    first, start = bool(mask >> 32 + part & 1), mask >> 8 * part & 0xFF
    pair = [(first, skip if first else use), (not first, use if first else skip)]
    runs = chain.from_iterable(repeat(value, length) for value, length in pair * (start + columns))
    return list(islice(runs, start, start + columns))
