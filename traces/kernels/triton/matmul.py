"""A product of matrices in Triton: one tile of C a program, f16 in, f32 sums and out."""

import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """C = A B; A, B and C are stored row by row, and any size will do."""
    rows = tl.program_id(1) * TILE_M + tl.arange(0, TILE_M)
    columns = tl.program_id(0) * TILE_N + tl.arange(0, TILE_N)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, k, TILE_K):
        inner = start + tl.arange(0, TILE_K)
        in_a = (rows[:, None] < m) & (inner[None, :] < k)
        in_b = (inner[:, None] < k) & (columns[None, :] < n)
        left = tl.load(a + rows[:, None] * k + inner[None, :], in_a, 0)
        right = tl.load(b + inner[:, None] * n + columns[None, :], in_b, 0)
        total = tl.dot(left, right, total)
    in_c = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, in_c)
