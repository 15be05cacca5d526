"""A matrix product in Triton for sm_90: a warpgroup copies, two multiply; the kernel makes tensor maps."""

import triton
import triton.language as tl


@triton.jit
def roles(
    a,
    b,
    c,
    m,
    n,
    k,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    PROGRAMS: tl.constexpr,
):
    """C = A B', all of f16 and stored row by row: each program takes every so many-th tile."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [TILE_M, TILE_K])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [TILE_N, TILE_K])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [TILE_M, TILE_N])
    across = tl.cdiv(n, TILE_N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, TILE_M) * across, PROGRAMS, warp_specialize=True):
        row = tile // across * TILE_M
        column = tile % across * TILE_N
        total = tl.zeros((TILE_M, TILE_N), tl.float32)
        for start in range(0, k, TILE_K):
            total = tl.dot(left.load([row, start]), right.load([column, start]).T, total)
        out.store([row, column], total.to(tl.float16))
