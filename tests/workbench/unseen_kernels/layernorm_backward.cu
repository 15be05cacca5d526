// target: sm_80
// The gradient of a layer norm, as in Triton's tutorial and Apex: dx by rows, dw and db by warps, a CTA, then atomics.
#include "pieces.cuh"

const int COLUMNS = 64;

INLINE float over_warp(float x) {
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

extern "C" __global__ void layernorm_backward(const float* x, const float* dy, const float* w, float* dx, float* dw,
                                              float* db, int rows, float eps) {
    __shared__ float sums[2][4][COLUMNS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float weights[2] = {}, biases[2] = {};
#pragma unroll 1
    for (int row = blockIdx.x * 4 + warp; row < rows; row += gridDim.x * 4) {
        const float first = x[row * COLUMNS + lane], second = x[row * COLUMNS + lane + 32];
        const float mean = over_warp(first + second) / COLUMNS;
        const float variance = over_warp((first - mean) * (first - mean) + (second - mean) * (second - mean)) / COLUMNS;
        const float rstd = rsqrtf(variance + eps);
        float normal[2] = {(first - mean) * rstd, (second - mean) * rstd}, product[2];
        for (int side = 0; side < 2; side++) {
            const float gradient = dy[row * COLUMNS + lane + 32 * side];
            product[side] = gradient * w[lane + 32 * side];
            weights[side] += gradient * normal[side];
            biases[side] += gradient;
        }
        const float c1 = over_warp(normal[0] * product[0] + normal[1] * product[1]) / COLUMNS;
        const float c2 = over_warp(product[0] + product[1]) / COLUMNS;
        for (int side = 0; side < 2; side++)
            dx[row * COLUMNS + lane + 32 * side] = (product[side] - (normal[side] * c1 + c2)) * rstd;
    }
    for (int side = 0; side < 2; side++) {
        sums[0][warp][lane + 32 * side] = weights[side];
        sums[1][warp][lane + 32 * side] = biases[side];
    }
    __syncthreads();
    const int which = threadIdx.x / COLUMNS, column = threadIdx.x % COLUMNS;
    float total = 0;
    for (int each = 0; each < 4; each++) total += sums[which][each][column];
    atomicAdd((which ? db : dw) + column, total);
}
