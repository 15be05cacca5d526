// target: sm_80
// D = A B by wmma: 32 x 32 of D for four warps; a and b row by row.
#include <mma.h>
#include "common.cuh"
using namespace nvcuda;

extern "C" __global__ void fragments_wmma(const __half* a, const __half* b, float* d, int n, int k) {
    const int warp = threadIdx.x / 32;
    const int row = blockIdx.y * 32 + warp / 2 * 16, column = blockIdx.x * 32 + (WRONG(6) ? 0 : warp % 2 * 16);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
#if MISTAKE == 1
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> y;
#else
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
#endif
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, WRONG(5) ? 1.0f : 0.0f);
    for (int k0 = 0; k0 < k; k0 += 16) {
        wmma::load_matrix_sync(x, a + row * k + (WRONG(3) ? 0 : k0), WRONG(2) ? n : k);
        wmma::load_matrix_sync(y, b + (WRONG(4) ? 0 : k0) * n + column, n);
        if (WRONG(8) && k0 == 0) wmma::mma_sync(sum, x, y, sum);
        wmma::mma_sync(sum, x, y, sum);
    }
    const int out = blockIdx.x * 32 + warp % 2 * 16;
    wmma::store_matrix_sync(d + row * n + out, sum, n, WRONG(7) ? wmma::mem_col_major : wmma::mem_row_major);
}
