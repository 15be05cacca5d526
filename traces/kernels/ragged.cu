// target: sm_80
// D (m, n) = A (m, k) B (k, n) of f16 for any m, n and k: guards at every edge, zeros beyond them.
//
// A CTA of 64 threads makes 32 x 16 of D. Lanes part where a row, a column or the depth ends.
#include "tiles.cuh"

typedef unsigned short half_code;

const int ROWS = 32, COLUMNS = 16, DEPTH = 16;

__device__ __forceinline__ word pair(const half_code* low, const half_code* high) {
    return *low | static_cast<word>(*high) << 16;
}

extern "C" __global__ void __launch_bounds__(64)
    ragged_f16(const half_code* a, const half_code* b, float* d, int m, int n, int k) {
    __shared__ half_code left[ROWS][DEPTH + 2], right[DEPTH][COLUMNS + 2];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quad = lane % 4;
    const int row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS;
    float sums[2][4] = {};
#pragma unroll 1
    for (int start = 0; start < k; start += DEPTH) {
#pragma unroll 1
        for (int i = threadIdx.x; i < ROWS * DEPTH; i += 64) {
            half_code value = 0;
            if (row + i / DEPTH < m && start + i % DEPTH < k)
                value = a[static_cast<size_t>(row + i / DEPTH) * k + start + i % DEPTH];
            left[i / DEPTH][i % DEPTH] = value;
        }
#pragma unroll 1
        for (int i = threadIdx.x; i < DEPTH * COLUMNS; i += 64) {
            half_code value = 0;
            if (start + i / COLUMNS < k && column + i % COLUMNS < n)
                value = b[static_cast<size_t>(start + i / COLUMNS) * n + column + i % COLUMNS];
            right[i / COLUMNS][i % COLUMNS] = value;
        }
        __syncthreads();
        const half_code *above = &left[warp * 16 + group][quad * 2], *below = &left[warp * 16 + group + 8][quad * 2];
        for (int tile = 0; tile < 2; tile++) {
            const int at = tile * 8 + group, down = quad * 2;
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                         "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(sums[tile][0]), "+f"(sums[tile][1]), "+f"(sums[tile][2]), "+f"(sums[tile][3])
                         : "r"(pair(above, above + 1)), "r"(pair(below, below + 1)), "r"(pair(above + 8, above + 9)),
                           "r"(pair(below + 8, below + 9)), "r"(pair(&right[down][at], &right[down + 1][at])),
                           "r"(pair(&right[down + 8][at], &right[down + 9][at])));
        }
        __syncthreads();
    }
    for (int lower = 0; lower < 2; lower++) {
        const int y = row + warp * 16 + group + lower * 8;
        if (y >= m) return;
        for (int i = 0; i < 4; i++) {
            const int x = column + i / 2 * 8 + quad * 2 + i % 2;
            if (x < n) d[static_cast<size_t>(y) * n + x] = sums[i / 2][lower * 2 + i % 2];
        }
    }
}
