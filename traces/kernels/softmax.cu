// target: sm_80
// The softmax of each row of f32, a warp a row: maxima and sums by shfl.bfly, exponentials by ex2.approx.
//
// Lane l has columns l, l + 32, ... of its row and adds them in that order; then lanes are added across
// distances 16, 8, 4, 2 and 1. Every operation is rounded to nearest.
extern "C" __global__ void softmax(const float* x, float* y, int rows, int columns) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    x += static_cast<size_t>(row) * columns;
    y += static_cast<size_t>(row) * columns;
    float most = -INFINITY;
#pragma unroll 1
    for (int i = lane; i < columns; i += 32) most = fmaxf(most, x[i]);
    for (int distance = 16; distance; distance /= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));
    float sum = 0;
#pragma unroll 1
    for (int i = lane; i < columns; i += 32) {
        float power;
        asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(__fmul_rn(__fsub_rn(x[i], most), 1.44269504f)));
        y[i] = power;
        sum = __fadd_rn(sum, power);
    }
    for (int distance = 16; distance; distance /= 2) sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, distance));
#pragma unroll 1
    for (int i = lane; i < columns; i += 32) y[i] = __fdiv_rn(y[i], sum);
}
