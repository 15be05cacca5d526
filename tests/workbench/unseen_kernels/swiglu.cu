// target: sm_90a
// SwiGLU in the manner of ThunderKittens: a warpgroup multiplies a tile by gate and up, and stores silu(gate) * up.
#include "pieces.cuh"

const int M = 64, N = 32;
typedef __nv_bfloat16 bf16;

// Rows of 64 columns into a swizzled tile of rows of 128 bytes.
INLINE void stage_rows(u8* to, const bf16* from, int rows, int pitch) {
#pragma unroll 1
    for (int chunk = threadIdx.x; chunk < rows * 8; chunk += 128) {
        const int row = chunk / 8, column = chunk % 8;
        *reinterpret_cast<uint4*>(to + row * 128 + (column ^ row % 8) * 16) =
            *reinterpret_cast<const uint4*>(from + row * pitch + column * 8);
    }
}

extern "C" __global__ void __launch_bounds__(128)
    swiglu(const bf16* x, const bf16* gate, const bf16* up, const bf16* bias, bf16* y, int n, int k) {
    __shared__ alignas(1024) u8 xs[M * 128];
    __shared__ alignas(1024) u8 gates[N * 128];
    __shared__ alignas(1024) u8 ups[N * 128];
    const int row0 = blockIdx.y * M, column0 = blockIdx.x * N;
    float g[16], u[16];
#pragma unroll 1
    for (int from = 0; from < k; from += 64) {
        stage_rows(xs, x + row0 * k + from, M, k);
        stage_rows(gates, gate + column0 * k + from, N, k);
        stage_rows(ups, up + column0 * k + from, N, k);
        publish_stores();
        __syncthreads();
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < 4; step++) {
            wgmma_bf16(g, tile(xs + step * 32), tile(gates + step * 32), from > 0 || step > 0);
            wgmma_bf16(u, tile(xs + step * 32), tile(ups + step * 32), from > 0 || step > 0);
        }
        wgmma_commit();
        wgmma_wait();
        __syncthreads();
    }
    const int row = row0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int each = 0; each < 16; each += 2) {
        const int column = column0 + each / 4 * 8 + threadIdx.x % 4 * 2;
        float out[2];
        for (int side = 0; side < 2; side++) {
            const float gated = g[each + side] + __bfloat162float(bias[column + side]);
            out[side] = gated / (1.f + __expf(-gated)) * u[each + side];
        }
        const int to = (row + each / 2 % 2 * 8) * n + column;
        *reinterpret_cast<__nv_bfloat162*>(y + to) = __floats2bfloat162_rn(out[0], out[1]);
    }
}
