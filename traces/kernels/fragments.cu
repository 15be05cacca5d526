// target: sm_80
// wmma: D = A B + C in f32, and its elements rounded to f16 from fragment to fragment.
//
// Which element a place of a fragment has is not documented: the loop is right where accumulators of f32 and of
// f16 lie alike, as they do on chips from sm_75 on.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <int M, int N, class LayoutA, class LayoutB>
__device__ __forceinline__ void rounded(
    const __half* a, const __half* b, const float* c, float* d, __half* h, wmma::layout_t layout) {
    wmma::fragment<wmma::matrix_a, M, N, 16, __half, LayoutA> rows;
    wmma::fragment<wmma::matrix_b, M, N, 16, __half, LayoutB> columns;
    wmma::fragment<wmma::accumulator, M, N, 16, float> sums;
    wmma::fragment<wmma::accumulator, M, N, 16, __half> halves;
    const int stride = layout == wmma::mem_row_major ? N : M;
    wmma::load_matrix_sync(rows, a, layout == wmma::mem_row_major ? 16 : M);
    wmma::load_matrix_sync(columns, b, layout == wmma::mem_row_major ? 16 : N);
    wmma::load_matrix_sync(sums, c, stride, layout);
    wmma::mma_sync(sums, rows, columns, sums);
    for (int t = 0; t < sums.num_elements; t++) halves.x[t] = __float2half(sums.x[t]);
    wmma::store_matrix_sync(d, sums, stride, layout);
    wmma::store_matrix_sync(h, halves, stride, layout);
}

// Rows: A and D row by row, B its columns one after the other. Columns: all the other way round.
#define KERNELS(M, N)                                                                               \
    extern "C" __global__ void __launch_bounds__(32) rounded_rows_##M##x##N(                        \
        const __half* a, const __half* b, const float* c, float* d, __half* h) {                    \
        rounded<M, N, wmma::row_major, wmma::col_major>(a, b, c, d, h, wmma::mem_row_major);        \
    }                                                                                               \
    extern "C" __global__ void __launch_bounds__(32) rounded_columns_##M##x##N(                     \
        const __half* a, const __half* b, const float* c, float* d, __half* h) {                    \
        rounded<M, N, wmma::col_major, wmma::row_major>(a, b, c, d, h, wmma::mem_col_major);        \
    }

KERNELS(16, 16)
KERNELS(32, 8)
KERNELS(8, 32)
