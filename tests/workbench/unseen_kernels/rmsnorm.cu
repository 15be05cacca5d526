// target: sm_80
// RMSNorm fused into a product, as Triton's: rows of bf16 are normalised in shared memory; a residual is added.
#include "pieces.cuh"

const int K = 64, N = 32;
typedef __nv_bfloat16 bf16;

extern "C" __global__ void rmsnorm(
    const bf16* x, const bf16* gamma, const bf16* w, const bf16* residual, bf16* y, int m, float eps) {
    __shared__ alignas(16) bf16 xs[16][K + 8];
    __shared__ alignas(16) bf16 ws[K][N + 8];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, first = blockIdx.x * 16;
#pragma unroll 1
    for (int chunk = thread; chunk < K * N / 8; chunk += 64)
        copy16(&ws[chunk / 4][chunk % 4 * 8], w + chunk * 8);
    commit();
    const int row = thread / 4, from = thread % 4 * 16;
    const bool inside = first + row < m;
    float values[16], squares = 0;
    for (int each = 0; each < 16; each++) {
        values[each] = inside ? __bfloat162float(x[(first + row) * K + from + each]) : 0.f;
        squares += values[each] * values[each];
    }
    squares += __shfl_xor_sync(~0u, squares, 1);
    squares += __shfl_xor_sync(~0u, squares, 2);
    const float factor = rsqrtf(squares / K + eps);
    for (int each = 0; each < 16; each++) {
        const float gain = __bfloat162float(gamma[from + each]);
        xs[row][from + each] = __float2bfloat16(values[each] * factor * gain);
    }
    wait<0>();
    __syncthreads();
    float d[2][4] = {};
#pragma unroll 1
    for (int step = 0; step < K; step += 16) {
        u32 a[4], b[2];
        load_a(a, &xs[lane % 16][step + lane / 16 * 8]);
        for (int part = 0; part < 2; part++) {
            load_b_rows(b, &ws[step + lane % 16][warp * 16 + part * 8]);
            multiply_bf16(d[part], a, b[0], b[1]);
        }
    }
    for (int part = 0; part < 2; part++)
        for (int each = 0; each < 4; each++) {
            const int to_row = first + lane / 4 + each / 2 * 8;
            const int to = to_row * N + warp * 16 + part * 8 + lane % 4 * 2 + each % 2;
            if (to_row < m) y[to] = __float2bfloat16(d[part][each] + __bfloat162float(residual[to]));
        }
}
