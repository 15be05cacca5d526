"""Where the PTX manual puts every matrix element and every metadata field: the second derivation.

Each function below is one "row = ... / col = ..." block of PTX ISA 9.1, sections 9.7.14.5.1 to .13 (dense
`mma`) and 9.7.14.6.2.1 to .8 (sparse `mma`), written down case by case as the manual prints it. A function
takes the lane (`%laneid`) and the element number i, and answers with the row and the column of `ai`, `bi` or
`ci`; for a sparse A with the row and the range of columns, first and last, that the element comes from. Each
metadata figure is drawn as text, cell by cell.

There is deliberately no common formula and no use of the package: this file exists to disagree with it. It
knows nothing of arithmetic, of legality or of number formats beyond how many elements share a register.

Where the manual has only a picture, the comment says so and says what in the text pins the picture down.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

LANES = 32
Place = Callable[[int, int], tuple[int, ...]]


def identifiers(lane: int) -> tuple[int, int]:
    """The groupID and threadID_in_group of a lane, the names that every section of the manual begins with."""
    return lane >> 2, lane % 4


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.1. Matrix Fragments for mma.m8n8k4 with .f16 floating point type
# ------------------------------------------------------------------------------------------------------------

# "Threads participating in MMA computation": the low group and the high group of each of the four.
M8N8K4_COMPUTATIONS = (
    (0, 1, 2, 3, 16, 17, 18, 19),
    (4, 5, 6, 7, 20, 21, 22, 23),
    (8, 9, 10, 11, 24, 25, 26, 27),
    (12, 13, 14, 15, 28, 29, 30, 31),
)


def m8n8k4_f16_a_row(lane: int, i: int) -> tuple[int, int]:
    """A, row major (Figure 46), a0 .. a3."""
    row = lane % 4 if lane < 16 else (lane % 4) + 4
    col = i
    return row, col


def m8n8k4_f16_a_col(lane: int, i: int) -> tuple[int, int]:
    """A, column major (Figure 47), a0 .. a3."""
    row = i % 4 if lane < 16 else (i % 4) + 4
    col = lane % 4
    return row, col


def m8n8k4_f16_b_row(lane: int, i: int) -> tuple[int, int]:
    """B, row major (Figure 48), b0 .. b3."""
    row = lane % 4
    col = i if lane < 16 else i + 4
    return row, col


def m8n8k4_f16_b_col(lane: int, i: int) -> tuple[int, int]:
    """B, column major (Figure 49), b0 .. b3."""
    row = i
    col = lane % 4 if lane < 16 else (lane % 4) + 4
    return row, col


def m8n8k4_f16_c_f16(lane: int, i: int) -> tuple[int, int]:
    """C or D of type .f16 (Figure 50), c0 .. c7."""
    row = lane % 4 if lane < 16 else (lane % 4) + 4
    col = i
    return row, col


def m8n8k4_f16_c_f32(lane: int, i: int) -> tuple[int, int]:
    """C or D of type .f32 (Figures 51 and 52), c0 .. c7."""
    x = (lane & 0b1) + (i & 0b10)
    row = x if lane < 16 else x + 4
    col = (i & 0b100) + (lane & 0b10) + (i & 0b1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.2. Matrix Fragments for mma.m8n8k4 with .f64 floating point type
# ------------------------------------------------------------------------------------------------------------


def m8n8k4_f64_a(lane: int, i: int) -> tuple[int, int]:
    """A (Figure 53), a0."""
    row = lane >> 2
    col = lane % 4
    return row, col


def m8n8k4_f64_b(lane: int, i: int) -> tuple[int, int]:
    """B (Figure 54), b0."""
    row = lane % 4
    col = lane >> 2
    return row, col


def m8n8k4_f64_c(lane: int, i: int) -> tuple[int, int]:
    """C or D (Figure 55), c0 and c1."""
    group, thread = identifiers(lane)
    row = group
    col = (thread * 2) + (i & 0x1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.3. Matrix Fragments for mma.m8n8k16
# ------------------------------------------------------------------------------------------------------------


def m8n8k16_a(lane: int, i: int) -> tuple[int, int]:
    """A, .s8 / .u8 (Figure 56), a0 .. a3."""
    group, thread = identifiers(lane)
    row = group
    col = (thread * 4) + i
    return row, col


def m8n8k16_b(lane: int, i: int) -> tuple[int, int]:
    """B, .s8 / .u8 (Figure 57), b0 .. b3."""
    group, thread = identifiers(lane)
    row = (thread * 4) + i
    col = group
    return row, col


def m8n8k16_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .s32 (Figure 58), c0 and c1."""
    group, thread = identifiers(lane)
    row = group
    col = (thread * 2) + i
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.4. Matrix Fragments for mma.m8n8k32
# ------------------------------------------------------------------------------------------------------------


def m8n8k32_a(lane: int, i: int) -> tuple[int, int]:
    """A, .s4 / .u4 (Figure 59), a0 .. a7."""
    group, thread = identifiers(lane)
    row = group
    col = (thread * 8) + i
    return row, col


def m8n8k32_b(lane: int, i: int) -> tuple[int, int]:
    """B, .s4 / .u4 (Figure 60), b0 .. b7."""
    group, thread = identifiers(lane)
    row = (thread * 8) + i
    col = group
    return row, col


def m8n8k32_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .s32 (Figure 61), c0 and c1."""
    group, thread = identifiers(lane)
    row = group
    col = (thread * 2) + i
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.5. Matrix Fragments for mma.m8n8k128
# ------------------------------------------------------------------------------------------------------------


def m8n8k128_a(lane: int, i: int) -> tuple[int, int]:
    """A, .b1 (Figure 62), a0 .. a31."""
    group, thread = identifiers(lane)
    row = group
    col = (thread * 32) + i
    return row, col


def m8n8k128_b(lane: int, i: int) -> tuple[int, int]:
    """B, .b1 (Figure 63), b0 .. b31."""
    group, thread = identifiers(lane)
    row = (thread * 32) + i
    col = group
    return row, col


def m8n8k128_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .s32 (Figure 64), c0 and c1."""
    group, thread = identifiers(lane)
    row = group
    col = (thread * 2) + i
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.6. Matrix Fragments for mma.m16n8k4
# ------------------------------------------------------------------------------------------------------------


def m16n8k4_tf32_a(lane: int, i: int) -> tuple[int, int]:
    """A, .tf32 (Figure 65), a0 and a1."""
    group, thread = identifiers(lane)
    row = {0: group, 1: group + 8}[i]
    col = thread
    return row, col


def m16n8k4_f64_a(lane: int, i: int) -> tuple[int, int]:
    """A, .f64 (Figure 66), a0 and a1."""
    group, thread = identifiers(lane)
    row = {0: group, 1: group + 8}[i]
    col = thread
    return row, col


def m16n8k4_tf32_b(lane: int, i: int) -> tuple[int, int]:
    """B, .tf32 (Figure 67), b0."""
    group, thread = identifiers(lane)
    row = thread
    col = group
    return row, col


def m16n8k4_f64_b(lane: int, i: int) -> tuple[int, int]:
    """B, .f64 (Figure 68), b0."""
    group, thread = identifiers(lane)
    row = thread
    col = group
    return row, col


def m16n8k4_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .f32 (Figure 69) and .f64 (Figure 70), c0 .. c3."""
    group, thread = identifiers(lane)
    row = {0: group, 1: group, 2: group + 8, 3: group + 8}[i]
    col = (thread * 2) + (i & 0x1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.7. Matrix Fragments for mma.m16n8k8
# ------------------------------------------------------------------------------------------------------------


def m16n8k8_f16_a(lane: int, i: int) -> tuple[int, int]:
    """A, .f16 / .bf16 (Figure 71), a0 .. a3."""
    group, thread = identifiers(lane)
    row = {0: group, 1: group, 2: group + 8, 3: group + 8}[i]
    col = thread * 2 + (i & 0x1)
    return row, col


def m16n8k8_tf32_a(lane: int, i: int) -> tuple[int, int]:
    """A, .tf32 (Figure 72), a0 .. a3."""
    group, thread = identifiers(lane)
    row = {0: group, 2: group, 1: group + 8, 3: group + 8}[i]
    col = {0: thread, 1: thread, 2: thread + 4, 3: thread + 4}[i]
    return row, col


def m16n8k8_f64_a(lane: int, i: int) -> tuple[int, int]:
    """A, .f64 (Figure 73), a0 .. a3."""
    group, thread = identifiers(lane)
    row = {0: group, 2: group, 1: group + 8, 3: group + 8}[i]
    col = {0: thread, 1: thread, 2: thread + 4, 3: thread + 4}[i]
    return row, col


def m16n8k8_f16_b(lane: int, i: int) -> tuple[int, int]:
    """B, .f16 / .bf16 (Figure 74), b0 and b1."""
    group, thread = identifiers(lane)
    row = (thread * 2) + i
    col = group
    return row, col


def m16n8k8_tf32_b(lane: int, i: int) -> tuple[int, int]:
    """B, .tf32 (Figure 75), b0 and b1."""
    group, thread = identifiers(lane)
    row = {0: thread, 1: thread + 4}[i]
    col = group
    return row, col


def m16n8k8_f64_b(lane: int, i: int) -> tuple[int, int]:
    """B, .f64 (Figure 76), b0 and b1."""
    group, thread = identifiers(lane)
    row = {0: thread, 1: thread + 4}[i]
    col = group
    return row, col


def m16n8k8_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .f16 / .f32 (Figure 77) and .f64 (Figure 78), c0 .. c3."""
    group, thread = identifiers(lane)
    row = {0: group, 1: group, 2: group + 8, 3: group + 8}[i]
    col = (thread * 2) + (i & 0x1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.8. Matrix Fragments for mma.m16n8k16 with floating point type
# ------------------------------------------------------------------------------------------------------------


def m16n8k16_f16_a(lane: int, i: int) -> tuple[int, int]:
    """A, .f16 / .bf16 (Figure 79), a0 .. a7."""
    group, thread = identifiers(lane)
    row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
    col = (thread * 2) + (i & 0x1) if i < 4 else (thread * 2) + (i & 0x1) + 8
    return row, col


def m16n8k16_f64_a(lane: int, i: int) -> tuple[int, int]:
    """A, .f64 (Figure 80), a0 .. a7."""
    group, thread = identifiers(lane)
    row = group if i % 2 == 0 else group + 8
    col = (i * 2) + thread if i % 2 == 0 else (i * 2) - 2 + thread
    return row, col


def m16n8k16_f16_b(lane: int, i: int) -> tuple[int, int]:
    """B, .f16 / .bf16 (Figure 81), b0 .. b3."""
    group, thread = identifiers(lane)
    row = (thread * 2) + (i & 0x1) if i < 2 else (thread * 2) + (i & 0x1) + 8
    col = group
    return row, col


def m16n8k16_f64_b(lane: int, i: int) -> tuple[int, int]:
    """B, .f64 (Figure 82), b0 .. b3."""
    group, thread = identifiers(lane)
    row = thread + (i * 4)
    col = group
    return row, col


def m16n8k16_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .f64 / .f32 / .f16 (Figure 83), c0 .. c3."""
    group, thread = identifiers(lane)
    row = group if i < 2 else group + 8
    col = (thread * 2) + (i & 0x1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.9. Matrix Fragments for mma.m16n8k16 with integer type (and .e4m3 / .e5m2)
# ------------------------------------------------------------------------------------------------------------


def m16n8k16_s8_a(lane: int, i: int) -> tuple[int, int]:
    """A, .u8 / .s8 / .e4m3 / .e5m2 (Figure 84), a0 .. a7."""
    group, thread = identifiers(lane)
    row = group if i < 4 else group + 8
    col = (thread * 4) + (i & 0x3)
    return row, col


def m16n8k16_s8_b(lane: int, i: int) -> tuple[int, int]:
    """B, .u8 / .s8 / .e4m3 / .e5m2 (Figure 85), b0 .. b3."""
    group, thread = identifiers(lane)
    row = (thread * 4) + i
    col = group
    return row, col


def m16n8k16_s8_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .s32 / .f32 / .f16 (Figure 86), c0 .. c3."""
    group, thread = identifiers(lane)
    row = group if i < 2 else group + 8
    col = (thread * 2) + (i & 0x1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.10. Matrix Fragments for mma.m16n8k32
# ------------------------------------------------------------------------------------------------------------


def m16n8k32_s4_a(lane: int, i: int) -> tuple[int, int]:
    """A, .s4 / .u4 (Figure 87), a0 .. a15."""
    group, thread = identifiers(lane)
    row = group if i < 8 else group + 8
    col = (thread * 8) + (i & 0x7)
    return row, col


def m16n8k32_s8_a(lane: int, i: int) -> tuple[int, int]:
    """A, .s8 / .u8 / .e4m3 / .e5m2 / .e3m2 / .e2m3 / .e2m1 (Figure 88), a0 .. a15."""
    group, thread = identifiers(lane)
    row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
    col = (thread * 4) + (i & 0x3) if i < 8 else (thread * 4) + (i & 0x3) + 16
    return row, col


def m16n8k32_s4_b(lane: int, i: int) -> tuple[int, int]:
    """B, .s4 / .u4 (Figure 89), b0 .. b7."""
    group, thread = identifiers(lane)
    row = (thread * 8) + (i & 0x7)
    col = group
    return row, col


def m16n8k32_s8_b(lane: int, i: int) -> tuple[int, int]:
    """B, .s8 / .u8 / .e4m3 / .e5m2 / .e3m2 / .e2m3 / .e2m1 (Figures 90 and 91), b0 .. b7."""
    group, thread = identifiers(lane)
    row = (thread * 4) + (i & 0x3) if i < 4 else (thread * 4) + (i & 0x3) + 16
    col = group
    return row, col


def m16n8k32_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .s32 / .f32 / .f16 (Figure 92), c0 .. c3."""
    group, thread = identifiers(lane)
    row = group if i < 2 else group + 8
    col = (thread * 2) + (i & 0x1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.11. Matrix Fragments for mma.m16n8k64
# ------------------------------------------------------------------------------------------------------------


def m16n8k64_a(lane: int, i: int) -> tuple[int, int]:
    """A, .s4 / .u4 / .e2m1 (Figure 93), a0 .. a31."""
    group, thread = identifiers(lane)
    row = group if 0 <= i < 8 or 16 <= i < 24 else group + 8
    col = (thread * 8) + (i & 0x7) if i < 16 else (thread * 8) + (i & 0x7) + 32
    return row, col


def m16n8k64_b(lane: int, i: int) -> tuple[int, int]:
    """B, .s4 / .u4 / .e2m1 (Figures 94 and 95), b0 .. b15."""
    group, thread = identifiers(lane)
    row = (thread * 8) + (i & 0x7) if i < 8 else (thread * 8) + (i & 0x7) + 32
    col = group
    return row, col


def m16n8k64_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .s32 / .f32 (Figure 96), c0 .. c3."""
    group, thread = identifiers(lane)
    row = group if i < 2 else group + 8
    col = (thread * 2) + (i & 0x1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.12. Matrix Fragments for mma.m16n8k128
# ------------------------------------------------------------------------------------------------------------


def m16n8k128_a(lane: int, i: int) -> tuple[int, int]:
    """A, .b1 (Figure 97), a0 .. a63."""
    group, thread = identifiers(lane)
    row = group if i < 32 else group + 8
    col = (thread * 32) + (i & 0x1F)
    return row, col


def m16n8k128_b(lane: int, i: int) -> tuple[int, int]:
    """B, .b1 (Figure 98), b0 .. b31."""
    group, thread = identifiers(lane)
    row = (thread * 32) + i
    col = group
    return row, col


def m16n8k128_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .s32 (Figure 99), c0 .. c3."""
    group, thread = identifiers(lane)
    row = group if i < 2 else group + 8
    col = (thread * 2) + (i & 0x1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.5.13. Matrix Fragments for mma.m16n8k256
# ------------------------------------------------------------------------------------------------------------


def m16n8k256_a(lane: int, i: int) -> tuple[int, int]:
    """A, .b1 (Figure 100), a0 .. a127, with the mask that the manual's text forgets where i < 64.

    The text has "(threadID_in_group * 32) + i for ai where i < 64". Taken to the letter, a32 .. a63 leave
    their own 32 columns and no lane holds columns 0 .. 31 of rows 8 .. 15; all other cases of the section,
    and m16n8k128, say i & 0x1F.
    """
    group, thread = identifiers(lane)
    row = group if 0 <= i < 32 or 64 <= i < 96 else group + 8
    col = (thread * 32) + (i & 0x1F) if i < 64 else (thread * 32) + (i & 0x1F) + 128
    return row, col


def m16n8k256_a_to_the_letter(lane: int, i: int) -> tuple[int, int]:
    """A, .b1, exactly as printed: kept to show that the printed text cannot be meant."""
    group, thread = identifiers(lane)
    row = group if 0 <= i < 32 or 64 <= i < 96 else group + 8
    col = (thread * 32) + i if i < 64 else (thread * 32) + (i & 0x1F) + 128
    return row, col


def m16n8k256_b(lane: int, i: int) -> tuple[int, int]:
    """B, .b1 (Figures 101 and 102), b0 .. b63."""
    group, thread = identifiers(lane)
    row = (thread * 32) + (i & 0x1F) if i < 32 else (thread * 32) + (i & 0x1F) + 128
    col = group
    return row, col


def m16n8k256_c(lane: int, i: int) -> tuple[int, int]:
    """C or D, .s32 (Figure 103), c0 .. c3."""
    group, thread = identifiers(lane)
    row = group if i < 2 else group + 8
    col = (thread * 2) + (i & 0x1)
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.6.2.1. Matrix Fragments for sparse mma.m16n8k16 with .f16 and .bf16 types
# B, C and D: as 9.7.14.5.8.
# ------------------------------------------------------------------------------------------------------------


def sparse_m16n8k16_f16_a(lane: int, i: int) -> tuple[int, int, int]:
    """A, .f16 / .bf16 (Figure 118), a0 .. a3: row, first column, last column."""
    group, thread = identifiers(lane)
    row = {0: group, 1: group, 2: group + 8, 3: group + 8}[i]
    first = thread * 4
    last = first + 3
    return row, first, last


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.6.2.2. Matrix Fragments for sparse mma.m16n8k32 with .f16 and .bf16 types
# C and D: as 9.7.14.5.8.
# ------------------------------------------------------------------------------------------------------------


def sparse_m16n8k32_f16_a(lane: int, i: int) -> tuple[int, int, int]:
    """A, .f16 / .bf16 (Figure 120), a0 .. a7: row, first column, last column."""
    group, thread = identifiers(lane)
    row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
    first = thread * 4 if i < 4 else (thread * 4) + 16
    last = first + 3
    return row, first, last


def sparse_m16n8k32_f16_b(lane: int, i: int) -> tuple[int, int]:
    """B, .f16 / .bf16 (Figure 121, a picture): four registers of two elements, eight rows apart.

    The element column of the manual's table names b0 .. b3 only, but "four .b32 registers, each containing
    two" elements are b0 .. b7. The first sixteen rows are m16n8k16's.
    """
    group, thread = identifiers(lane)
    if i < 2:
        row = (thread * 2) + (i & 0x1)
    elif i < 4:
        row = (thread * 2) + (i & 0x1) + 8
    elif i < 6:
        row = (thread * 2) + (i & 0x1) + 16
    else:
        row = (thread * 2) + (i & 0x1) + 24
    return row, group


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.6.2.3. Matrix Fragments for sparse mma.m16n8k16 with .tf32 floating point type
# C and D: as 9.7.14.5.8.
# ------------------------------------------------------------------------------------------------------------


def sparse_m16n8k16_tf32_a(lane: int, i: int) -> tuple[int, int, int]:
    """A, .tf32 (Figure 123), a0 .. a3: row, first column, last column."""
    group, thread = identifiers(lane)
    row = {0: group, 2: group, 1: group + 8, 3: group + 8}[i]
    first = {0: thread * 2, 1: thread * 2, 2: (thread * 2) + 8, 3: (thread * 2) + 8}[i]
    last = first + 1
    return row, first, last


def sparse_m16n8k16_tf32_b(lane: int, i: int) -> tuple[int, int]:
    """B, .tf32 (Figure 124, a picture), b0 .. b3, one in each of four registers.

    Section 9.7.14.5.8 shows the same picture for its .f64 B and prints this formula beside it. (The table
    here says that each register contains four elements; a .b32 register has room for one .tf32.)
    """
    group, thread = identifiers(lane)
    row = thread + (i * 4)
    col = group
    return row, col


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.6.2.4. Matrix Fragments for sparse mma.m16n8k8 with .tf32 floating point type
# B, C and D: as 9.7.14.5.7, .tf32.
# ------------------------------------------------------------------------------------------------------------


def sparse_m16n8k8_tf32_a(lane: int, i: int) -> tuple[int, int, int]:
    """A, .tf32 (Figure 126), a0 and a1: row, first column, last column."""
    group, thread = identifiers(lane)
    row = {0: group, 1: group + 8}[i]
    first = thread * 2
    last = first + 1
    return row, first, last


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.6.2.5. Matrix Fragments for sparse mma.m16n8k32 with .u8 / .s8 integer type
# B, C and D: as 9.7.14.5.10, .s8 / .u8.
# ------------------------------------------------------------------------------------------------------------


def sparse_m16n8k32_s8_a(lane: int, i: int) -> tuple[int, int, int]:
    """A, .u8 / .s8 (Figure 128), a0 .. a7: row, first column, last column."""
    group, thread = identifiers(lane)
    row = group if 0 <= i < 4 else group + 8
    first = thread * 8
    last = first + 7
    return row, first, last


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.6.2.6. Matrix Fragments for sparse mma.m16n8k64 with .u8 / .s8 / .e4m3 / .e5m2 type
# C and D: as 9.7.14.5.9.
# ------------------------------------------------------------------------------------------------------------


def sparse_m16n8k64_s8_a(lane: int, i: int) -> tuple[int, int, int]:
    """A, 8-bit types and containers (Figures 130 and 131), a0 .. a15: row, first column, last column."""
    group, thread = identifiers(lane)
    row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
    first = thread * 8 if i < 8 else (thread * 8) + 32
    last = first + 7
    return row, first, last


def sparse_m16n8k64_s8_b(lane: int, i: int) -> tuple[int, int]:
    """B (pictures only: Figures 132 to 135, rows 0-15, 16-31, 32-47, 48-63), b0 .. b15.

    Four registers of four elements, one register a picture; Figures 90 and 91 (dense m16n8k32) are the first
    two of them and have the formula.
    """
    group, thread = identifiers(lane)
    if i < 4:
        row = (thread * 4) + (i & 0x3)
    elif i < 8:
        row = (thread * 4) + (i & 0x3) + 16
    elif i < 12:
        row = (thread * 4) + (i & 0x3) + 32
    else:
        row = (thread * 4) + (i & 0x3) + 48
    return row, group


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.6.2.7. Matrix Fragments for sparse mma.m16n8k64 with .u4 / .s4 integer type
# B, C and D: as 9.7.14.5.11.
# ------------------------------------------------------------------------------------------------------------


def sparse_m16n8k64_s4_a(lane: int, i: int) -> tuple[int, int, int]:
    """A, .u4 / .s4 (Figure 138), a0 .. a15: row, first column, last column."""
    group, thread = identifiers(lane)
    row = group if 0 <= i < 8 else group + 8
    first = thread * 16
    last = first + 15
    return row, first, last


# ------------------------------------------------------------------------------------------------------------
# 9.7.14.6.2.8. Matrix Fragments for sparse mma.m16n8k128 with .u4 / .s4 integer type (and .e2m1)
# C and D: as 9.7.14.5.11.
# ------------------------------------------------------------------------------------------------------------


def sparse_m16n8k128_s4_a(lane: int, i: int) -> tuple[int, int, int]:
    """A, .u4 / .s4 / .e2m1 (Figures 140 and 141), a0 .. a31: row, first column, last column."""
    group, thread = identifiers(lane)
    row = group if 0 <= i < 8 or 16 <= i < 24 else group + 8
    first = thread * 16 if i < 16 else (thread * 16) + 64
    last = first + 15
    return row, first, last


def sparse_m16n8k128_s4_b(lane: int, i: int) -> tuple[int, int]:
    """B (pictures only: Figures 142 to 145, rows 0-31, 32-63, 64-95, 96-127), b0 .. b31.

    Four registers of eight elements, one register a picture; Figures 94 and 95 (dense m16n8k64) are the first
    two of them and have the formula.
    """
    group, thread = identifiers(lane)
    if i < 8:
        row = (thread * 8) + (i & 0x7)
    elif i < 16:
        row = (thread * 8) + (i & 0x7) + 32
    elif i < 24:
        row = (thread * 8) + (i & 0x7) + 64
    else:
        row = (thread * 8) + (i & 0x7) + 96
    return row, group


# ------------------------------------------------------------------------------------------------------------
# Metadata figures of 9.7.14.6.2.x. In the manual they are pictures; here each is drawn as text.
#
# "Tk: [m..n] present in cell [x][y..z] indicates that bits m through n (with m being higher) in the metadata
# operand of thread with %laneid=k contains the indices of the non-zero elements from the chunk [x][y]..[x][z]
# of matrix A." (9.7.14.6.2)
#
# The threads are those of one group of four, the group that holds the row (groupID = row, or row - 8 in the
# lower half): T0 of group g is lane 4g. The letter i is the sparsity selector: Ti is the one thread that it
# names, T2i and T2i+1 the pair. Section 9.7.14.6.1 fixes in words who contributes: one thread, i = 0 .. 3
# (m16n8k16 .f16, m16n8k8 .tf32); T0 and T1, or T2 and T3 (m16n8k32 .f16, m16n8k16 .tf32, m16n8k32 .s8,
# m16n8k64 .s4); all four with selector 0 (m16n8k64 of 8 bits, m16n8k128 of 4 bits).
# ------------------------------------------------------------------------------------------------------------

FIGURE_119 = """
    columns     0..3         4..7         8..11        12..15
    rows 0-7    Ti:[3..0]    Ti:[7..4]    Ti:[11..8]   Ti:[15..12]
    rows 8-15   Ti:[19..16]  Ti:[23..20]  Ti:[27..24]  Ti:[31..28]
"""

FIGURE_122 = """
    columns     0..3           4..7           8..11          12..15
    rows 0-7    T2i:[3..0]     T2i:[7..4]     T2i:[11..8]    T2i:[15..12]
    rows 8-15   T2i:[19..16]   T2i:[23..20]   T2i:[27..24]   T2i:[31..28]

    columns     16..19         20..23         24..27         28..31
    rows 0-7    T2i+1:[3..0]   T2i+1:[7..4]   T2i+1:[11..8]  T2i+1:[15..12]
    rows 8-15   T2i+1:[19..16] T2i+1:[23..20] T2i+1:[27..24] T2i+1:[31..28]
"""

FIGURE_125 = """
    columns     0..1           2..3           4..5           6..7
    rows 0-7    T2i:[3..0]     T2i:[7..4]     T2i:[11..8]    T2i:[15..12]
    rows 8-15   T2i:[19..16]   T2i:[23..20]   T2i:[27..24]   T2i:[31..28]

    columns     8..9           10..11         12..13         14..15
    rows 0-7    T2i+1:[3..0]   T2i+1:[7..4]   T2i+1:[11..8]  T2i+1:[15..12]
    rows 8-15   T2i+1:[19..16] T2i+1:[23..20] T2i+1:[27..24] T2i+1:[31..28]
"""

FIGURE_127 = """
    columns     0..1         2..3         4..5         6..7
    rows 0-7    Ti:[3..0]    Ti:[7..4]    Ti:[11..8]   Ti:[15..12]
    rows 8-15   Ti:[19..16]  Ti:[23..20]  Ti:[27..24]  Ti:[31..28]
"""

FIGURE_129 = """
    columns     0..3           4..7           8..11          12..15
    rows 0-7    T2i:[3..0]     T2i:[7..4]     T2i:[11..8]    T2i:[15..12]
    rows 8-15   T2i+1:[3..0]   T2i+1:[7..4]   T2i+1:[11..8]  T2i+1:[15..12]

    columns     16..19         20..23         24..27         28..31
    rows 0-7    T2i:[19..16]   T2i:[23..20]   T2i:[27..24]   T2i:[31..28]
    rows 8-15   T2i+1:[19..16] T2i+1:[23..20] T2i+1:[27..24] T2i+1:[31..28]
"""

FIGURE_136 = """
    columns     0..3         4..7         8..11        12..15
    rows 0-7    T0:[3..0]    T0:[7..4]    T0:[11..8]   T0:[15..12]
    rows 8-15   T1:[3..0]    T1:[7..4]    T1:[11..8]   T1:[15..12]

    columns     16..19       20..23       24..27       28..31
    rows 0-7    T0:[19..16]  T0:[23..20]  T0:[27..24]  T0:[31..28]
    rows 8-15   T1:[19..16]  T1:[23..20]  T1:[27..24]  T1:[31..28]
"""

FIGURE_137 = """
    columns     32..35       36..39       40..43       44..47
    rows 0-7    T2:[3..0]    T2:[7..4]    T2:[11..8]   T2:[15..12]
    rows 8-15   T3:[3..0]    T3:[7..4]    T3:[11..8]   T3:[15..12]

    columns     48..51       52..55       56..59       60..63
    rows 0-7    T2:[19..16]  T2:[23..20]  T2:[27..24]  T2:[31..28]
    rows 8-15   T3:[19..16]  T3:[23..20]  T3:[27..24]  T3:[31..28]
"""

FIGURE_139 = """
    columns     0..7           8..15          16..23         24..31
    rows 0-7    T2i:[3..0]     T2i:[7..4]     T2i:[11..8]    T2i:[15..12]
    rows 8-15   T2i+1:[3..0]   T2i+1:[7..4]   T2i+1:[11..8]  T2i+1:[15..12]

    columns     32..39         40..47         48..55         56..63
    rows 0-7    T2i:[19..16]   T2i:[23..20]   T2i:[27..24]   T2i:[31..28]
    rows 8-15   T2i+1:[19..16] T2i+1:[23..20] T2i+1:[27..24] T2i+1:[31..28]
"""

FIGURE_146 = """
    columns     0..7         8..15        16..23       24..31
    rows 0-7    T0:[3..0]    T0:[7..4]    T0:[11..8]   T0:[15..12]
    rows 8-15   T1:[3..0]    T1:[7..4]    T1:[11..8]   T1:[15..12]

    columns     32..39       40..47       48..55       56..63
    rows 0-7    T0:[19..16]  T0:[23..20]  T0:[27..24]  T0:[31..28]
    rows 8-15   T1:[19..16]  T1:[23..20]  T1:[27..24]  T1:[31..28]
"""

FIGURE_147 = """
    columns     64..71       72..79       80..87       88..95
    rows 0-7    T2:[3..0]    T2:[7..4]    T2:[11..8]   T2:[15..12]
    rows 8-15   T3:[3..0]    T3:[7..4]    T3:[11..8]   T3:[15..12]

    columns     96..103      104..111     112..119     120..127
    rows 0-7    T2:[19..16]  T2:[23..20]  T2:[27..24]  T2:[31..28]
    rows 8-15   T3:[19..16]  T3:[23..20]  T3:[27..24]  T3:[31..28]
"""

THREADS = {
    "Ti": lambda selector: selector,
    "T2i": lambda selector: 2 * selector,
    "T2i+1": lambda selector: 2 * selector + 1,
    "T0": lambda selector: 0,
    "T1": lambda selector: 1,
    "T2": lambda selector: 2,
    "T3": lambda selector: 3,
}
CELL = re.compile(r"(T\S*?):\[(\d+)\.\.(\d+)\]")
COLUMNS = re.compile(r"(\d+)\.\.(\d+)")
ROWS = re.compile(r"rows (\d+)-(\d+)")


def figure_cells(figure: str) -> list[tuple[str, int, int, int, int, int]]:
    """The cells of a drawn figure, each row of A on its own: thread, high bit, low bit, row, first, last."""
    cells = []
    columns: list[tuple[int, int]] = []
    for line in filter(None, map(str.strip, figure.splitlines())):
        if line.startswith("columns"):
            columns = [(int(first), int(last)) for first, last in COLUMNS.findall(line)]
            continue
        top, bottom = map(int, ROWS.match(line).groups())
        threads = CELL.findall(line)
        assert len(threads) == len(columns), f"{len(threads)} cells under {len(columns)} columns: {line}"
        for row in range(top, bottom + 1):
            for (thread, high, low), (first, last) in zip(threads, columns, strict=True):
                cells.append((thread, int(high), int(low), row, first, last))
    return cells


# ------------------------------------------------------------------------------------------------------------
# The sections as data
# ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Fragment:
    """One operand of one section: how many registers, how many elements in each, and where element i lies."""

    registers: int
    elements: int
    place: Place
    ranges: bool = False  # place answers (row, first, last) of a sparse A

    def points(self) -> dict[tuple[int, int, int], tuple[int, int]]:
        """(lane, register, element) -> (row, column); for a sparse A the column of the compressed matrix."""
        return {
            (lane, register, element): self.point(lane, register * self.elements + element)
            for lane in range(LANES)
            for register in range(self.registers)
            for element in range(self.elements)
        }

    def point(self, lane: int, i: int) -> tuple[int, int]:
        """Row and column of element i of a lane."""
        if not self.ranges:
            return self.place(lane, i)
        row, first, _last = self.place(lane, i)
        return row, first // 2 + self.rank(lane, i)

    def rank(self, lane: int, i: int) -> int:
        """How many elements of the lane before i come from the same row and range of columns.

        Non-zero elements are stored in ascending order of column, half of the columns of every chunk, so the
        columns before the range fill first / 2 stored ones and the elements of the range follow in turn.
        """
        return sum(self.place(lane, before) == self.place(lane, i) for before in range(i))


@dataclass(frozen=True, kw_only=True)
class Section:
    """One manual section for some element types: A by its layout, B by its, C and D by their type."""

    number: str
    title: str
    sparse: bool
    shape: str
    types: tuple[str, ...]
    a: dict[str, Fragment]
    b: dict[str, Fragment]
    c: dict[str, Fragment]
    computations: tuple[tuple[int, ...], ...] = (tuple(range(LANES)),)  # lanes that share one product
    figures: tuple[str, ...] = field(default=())
    selectors: tuple[int, ...] = ()

    def metadata(self, selector: int) -> list[tuple[int, int, int, int, int]]:
        """One field each: lane, lowest bit, bits, row, chunk."""
        fields = []
        for cell in (cell for figure in self.figures for cell in figure_cells(figure)):
            thread, high, low, row, first, last = cell
            group = row if row < 8 else row - 8
            lane = 4 * group + THREADS[thread](selector)
            fields.append((lane, low, high - low + 1, row, first // (last - first + 1)))
        return fields


def fragment(registers: int, elements: int, place: Place) -> Fragment:
    """A fragment whose elements have a row and a column."""
    return Fragment(registers=registers, elements=elements, place=place)


def ranged(registers: int, elements: int, place: Place) -> Fragment:
    """A fragment of a sparse A, whose elements have a row and a range of columns."""
    return Fragment(registers=registers, elements=elements, place=place, ranges=True)


def accumulators(place: Place, *types: str) -> dict[str, Fragment]:
    """Four elements, one a register; two a register when the type is .f16."""
    return {type_: fragment(2, 2, place) if type_ == "f16" else fragment(4, 1, place) for type_ in types}


INT8 = ("s8", "u8")
INT4 = ("s4", "u4")
FP8 = ("e4m3", "e5m2")
SMALL_FLOATS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")

DENSE = (
    Section(
        number="9.7.14.5.1",
        title="Matrix Fragments for mma.m8n8k4 with .f16 floating point type",
        sparse=False, shape="m8n8k4", types=("f16",),
        a={"row": fragment(2, 2, m8n8k4_f16_a_row), "col": fragment(2, 2, m8n8k4_f16_a_col)},
        b={"row": fragment(2, 2, m8n8k4_f16_b_row), "col": fragment(2, 2, m8n8k4_f16_b_col)},
        c={"f16": fragment(4, 2, m8n8k4_f16_c_f16), "f32": fragment(8, 1, m8n8k4_f16_c_f32)},
        computations=M8N8K4_COMPUTATIONS,
    ),
    Section(
        number="9.7.14.5.2",
        title="Matrix Fragments for mma.m8n8k4 with .f64 floating point type",
        sparse=False, shape="m8n8k4", types=("f64",),
        a={"row": fragment(1, 1, m8n8k4_f64_a)},
        b={"col": fragment(1, 1, m8n8k4_f64_b)},
        c={"f64": fragment(2, 1, m8n8k4_f64_c)},
    ),
    Section(
        number="9.7.14.5.3",
        title="Matrix Fragments for mma.m8n8k16",
        sparse=False, shape="m8n8k16", types=INT8,
        a={"row": fragment(1, 4, m8n8k16_a)},
        b={"col": fragment(1, 4, m8n8k16_b)},
        c={"s32": fragment(2, 1, m8n8k16_c)},
    ),
    Section(
        number="9.7.14.5.4",
        title="Matrix Fragments for mma.m8n8k32",
        sparse=False, shape="m8n8k32", types=INT4,
        a={"row": fragment(1, 8, m8n8k32_a)},
        b={"col": fragment(1, 8, m8n8k32_b)},
        c={"s32": fragment(2, 1, m8n8k32_c)},
    ),
    Section(
        number="9.7.14.5.5",
        title="Matrix Fragments for mma.m8n8k128",
        sparse=False, shape="m8n8k128", types=("b1",),
        a={"row": fragment(1, 32, m8n8k128_a)},
        b={"col": fragment(1, 32, m8n8k128_b)},
        c={"s32": fragment(2, 1, m8n8k128_c)},
    ),
    Section(
        number="9.7.14.5.6",
        title="Matrix Fragments for mma.m16n8k4, .tf32",
        sparse=False, shape="m16n8k4", types=("tf32",),
        a={"row": fragment(2, 1, m16n8k4_tf32_a)},
        b={"col": fragment(1, 1, m16n8k4_tf32_b)},
        c=accumulators(m16n8k4_c, "f32"),
    ),
    Section(
        number="9.7.14.5.6",
        title="Matrix Fragments for mma.m16n8k4, .f64",
        sparse=False, shape="m16n8k4", types=("f64",),
        a={"row": fragment(2, 1, m16n8k4_f64_a)},
        b={"col": fragment(1, 1, m16n8k4_f64_b)},
        c=accumulators(m16n8k4_c, "f64"),
    ),
    Section(
        number="9.7.14.5.7",
        title="Matrix Fragments for mma.m16n8k8, .f16 and .bf16",
        sparse=False, shape="m16n8k8", types=("f16", "bf16"),
        a={"row": fragment(2, 2, m16n8k8_f16_a)},
        b={"col": fragment(1, 2, m16n8k8_f16_b)},
        c=accumulators(m16n8k8_c, "f16", "f32"),
    ),
    Section(
        number="9.7.14.5.7",
        title="Matrix Fragments for mma.m16n8k8, .tf32",
        sparse=False, shape="m16n8k8", types=("tf32",),
        a={"row": fragment(4, 1, m16n8k8_tf32_a)},
        b={"col": fragment(2, 1, m16n8k8_tf32_b)},
        c=accumulators(m16n8k8_c, "f32"),
    ),
    Section(
        number="9.7.14.5.7",
        title="Matrix Fragments for mma.m16n8k8, .f64",
        sparse=False, shape="m16n8k8", types=("f64",),
        a={"row": fragment(4, 1, m16n8k8_f64_a)},
        b={"col": fragment(2, 1, m16n8k8_f64_b)},
        c=accumulators(m16n8k8_c, "f64"),
    ),
    Section(
        number="9.7.14.5.8",
        title="Matrix Fragments for mma.m16n8k16 with floating point type, .f16 and .bf16",
        sparse=False, shape="m16n8k16", types=("f16", "bf16"),
        a={"row": fragment(4, 2, m16n8k16_f16_a)},
        b={"col": fragment(2, 2, m16n8k16_f16_b)},
        c=accumulators(m16n8k16_c, "f16", "f32"),
    ),
    Section(
        number="9.7.14.5.8",
        title="Matrix Fragments for mma.m16n8k16 with floating point type, .f64",
        sparse=False, shape="m16n8k16", types=("f64",),
        a={"row": fragment(8, 1, m16n8k16_f64_a)},
        b={"col": fragment(4, 1, m16n8k16_f64_b)},
        c=accumulators(m16n8k16_c, "f64"),
    ),
    Section(
        number="9.7.14.5.9",
        title="Matrix Fragments for mma.m16n8k16 with integer type",
        sparse=False, shape="m16n8k16", types=INT8 + FP8,
        a={"row": fragment(2, 4, m16n8k16_s8_a)},
        b={"col": fragment(1, 4, m16n8k16_s8_b)},
        c=accumulators(m16n8k16_s8_c, "s32", "f32", "f16"),
    ),
    Section(
        number="9.7.14.5.10",
        title="Matrix Fragments for mma.m16n8k32, .s4 or .u4",
        sparse=False, shape="m16n8k32", types=INT4,
        a={"row": fragment(2, 8, m16n8k32_s4_a)},
        b={"col": fragment(1, 8, m16n8k32_s4_b)},
        c=accumulators(m16n8k32_c, "s32"),
    ),
    Section(
        number="9.7.14.5.10",
        title="Matrix Fragments for mma.m16n8k32, .s8 or .u8 or small floating point types",
        sparse=False, shape="m16n8k32", types=INT8 + SMALL_FLOATS,
        a={"row": fragment(4, 4, m16n8k32_s8_a)},
        b={"col": fragment(2, 4, m16n8k32_s8_b)},
        c=accumulators(m16n8k32_c, "s32", "f32", "f16"),
    ),
    Section(
        number="9.7.14.5.11",
        title="Matrix Fragments for mma.m16n8k64",
        sparse=False, shape="m16n8k64", types=(*INT4, "e2m1"),
        a={"row": fragment(4, 8, m16n8k64_a)},
        b={"col": fragment(2, 8, m16n8k64_b)},
        c=accumulators(m16n8k64_c, "s32", "f32"),
    ),
    Section(
        number="9.7.14.5.12",
        title="Matrix Fragments for mma.m16n8k128",
        sparse=False, shape="m16n8k128", types=("b1",),
        a={"row": fragment(2, 32, m16n8k128_a)},
        b={"col": fragment(1, 32, m16n8k128_b)},
        c=accumulators(m16n8k128_c, "s32"),
    ),
    Section(
        number="9.7.14.5.13",
        title="Matrix Fragments for mma.m16n8k256",
        sparse=False, shape="m16n8k256", types=("b1",),
        a={"row": fragment(4, 32, m16n8k256_a)},
        b={"col": fragment(2, 32, m16n8k256_b)},
        c=accumulators(m16n8k256_c, "s32"),
    ),
)  # fmt: skip

SPARSE = (
    Section(
        number="9.7.14.6.2.1",
        title="Matrix Fragments for sparse mma.m16n8k16 with .f16 and .bf16 types",
        sparse=True, shape="m16n8k16", types=("f16", "bf16"),
        a={"row": ranged(2, 2, sparse_m16n8k16_f16_a)},
        b={"col": fragment(2, 2, m16n8k16_f16_b)},
        c=accumulators(m16n8k16_c, "f16", "f32"),
        figures=(FIGURE_119,), selectors=(0, 1, 2, 3),
    ),
    Section(
        number="9.7.14.6.2.2",
        title="Matrix Fragments for sparse mma.m16n8k32 with .f16 and .bf16 types",
        sparse=True, shape="m16n8k32", types=("f16", "bf16"),
        a={"row": ranged(4, 2, sparse_m16n8k32_f16_a)},
        b={"col": fragment(4, 2, sparse_m16n8k32_f16_b)},
        c=accumulators(m16n8k16_c, "f16", "f32"),
        figures=(FIGURE_122,), selectors=(0, 1),
    ),
    Section(
        number="9.7.14.6.2.3",
        title="Matrix Fragments for sparse mma.m16n8k16 with .tf32 floating point type",
        sparse=True, shape="m16n8k16", types=("tf32",),
        a={"row": ranged(4, 1, sparse_m16n8k16_tf32_a)},
        b={"col": fragment(4, 1, sparse_m16n8k16_tf32_b)},
        c=accumulators(m16n8k16_c, "f32"),
        figures=(FIGURE_125,), selectors=(0, 1),
    ),
    Section(
        number="9.7.14.6.2.4",
        title="Matrix Fragments for sparse mma.m16n8k8 with .tf32 floating point type",
        sparse=True, shape="m16n8k8", types=("tf32",),
        a={"row": ranged(2, 1, sparse_m16n8k8_tf32_a)},
        b={"col": fragment(2, 1, m16n8k8_tf32_b)},
        c=accumulators(m16n8k8_c, "f32"),
        figures=(FIGURE_127,), selectors=(0, 1, 2, 3),
    ),
    Section(
        number="9.7.14.6.2.5",
        title="Matrix Fragments for sparse mma.m16n8k32 with .u8 / .s8 integer type",
        sparse=True, shape="m16n8k32", types=INT8,
        a={"row": ranged(2, 4, sparse_m16n8k32_s8_a)},
        b={"col": fragment(2, 4, m16n8k32_s8_b)},
        c=accumulators(m16n8k32_c, "s32"),
        figures=(FIGURE_129,), selectors=(0, 1),
    ),
    Section(
        number="9.7.14.6.2.6",
        title="Matrix Fragments for sparse mma.m16n8k64 with .u8 / .s8 / .e4m3 / .e5m2 type",
        sparse=True, shape="m16n8k64", types=INT8 + SMALL_FLOATS,
        a={"row": ranged(4, 4, sparse_m16n8k64_s8_a)},
        b={"col": fragment(4, 4, sparse_m16n8k64_s8_b)},
        c=accumulators(m16n8k16_s8_c, "s32", "f32", "f16"),
        figures=(FIGURE_136, FIGURE_137), selectors=(0,),
    ),
    Section(
        number="9.7.14.6.2.7",
        title="Matrix Fragments for sparse mma.m16n8k64 with .u4 / .s4 integer type",
        sparse=True, shape="m16n8k64", types=INT4,
        a={"row": ranged(2, 8, sparse_m16n8k64_s4_a)},
        b={"col": fragment(2, 8, m16n8k64_b)},
        c=accumulators(m16n8k64_c, "s32"),
        figures=(FIGURE_139,), selectors=(0, 1),
    ),
    Section(
        number="9.7.14.6.2.8",
        title="Matrix Fragments for sparse mma.m16n8k128 with .u4 / .s4 integer type",
        sparse=True, shape="m16n8k128", types=(*INT4, "e2m1"),
        a={"row": ranged(4, 8, sparse_m16n8k128_s4_a)},
        b={"col": fragment(4, 8, sparse_m16n8k128_s4_b)},
        c=accumulators(m16n8k64_c, "s32", "f32"),
        figures=(FIGURE_146, FIGURE_147), selectors=(0,),
    ),
)  # fmt: skip

SECTIONS = DENSE + SPARSE


def find_section(sparse: bool, shape: str, element_type: str) -> Section:
    """The one section that describes a shape with a type of A; LookupError when the manual has none."""
    found = [
        section
        for section in SECTIONS
        if section.sparse == sparse and section.shape == shape and element_type in section.types
    ]
    if len(found) != 1:
        kind = "sparse" if sparse else "dense"
        raise LookupError(f"{len(found)} manual sections for {kind} {shape} with .{element_type}")
    return found[0]
