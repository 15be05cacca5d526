"""A product of matrices in Numba, through tiles in shared memory."""

import numba
from numba import cuda

TILE = 16


def tiles(a, b, c):
    """C = A B; a CTA of 16 x 16 threads for each tile of C."""
    left = cuda.shared.array((TILE, TILE), numba.float32)
    right = cuda.shared.array((TILE, TILE), numba.float32)
    across, down = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = numba.float32(0)
    for start in range(0, a.shape[1], TILE):
        left[down, across] = 0
        right[down, across] = 0
        if row < a.shape[0] and start + across < a.shape[1]:
            left[down, across] = a[row, start + across]
        if start + down < b.shape[0] and column < b.shape[1]:
            right[down, across] = b[start + down, column]
        cuda.syncthreads()
        for inner in range(TILE):
            total += left[down, inner] * right[inner, across]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total
