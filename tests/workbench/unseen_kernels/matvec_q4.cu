// target: sm_80
// llama.cpp: rows of q4_0 times a vector of q8_1 by dp4a; blocks of 32, the offset 8 taken out by the sum of the block.
#include "pieces.cuh"

extern "C" __global__ void matvec_q4(
    const half* d4, const int4* q4, const half2* ds8, const int* q8, float* y, int rows, int blocks) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * 2 + threadIdx.x / 32;
    if (row >= rows) return;
    float sum = 0;
#pragma unroll 1
    for (int block = lane / 2; block < blocks; block += 16) {
        const int quarter = lane % 2 * 2;
        const int* nibbles = reinterpret_cast<const int*>(q4 + row * blocks + block) + quarter;
        const int* bytes = q8 + block * 8 + quarter;
        int dot = 0;
        for (int each = 0; each < 2; each++) {
            const int low = nibbles[each] & 0x0F0F0F0F;
            const int high = nibbles[each] >> 4 & 0x0F0F0F0F;
            dot = __dp4a(low, bytes[each], dot);
            dot = __dp4a(high, bytes[each + 4], dot);
        }
        const float2 scale = __half22float2(ds8[block]);
        sum += __half2float(d4[row * blocks + block]) * (dot * scale.x - 4.f * scale.y);
    }
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) y[row] = sum;
}
