// target: sm_80
// Stream-K as in CUTLASS: CTAs share the steps of all tiles; who begins a tile adds what others left in the workspace.
#include "pieces.cuh"

extern "C" __global__ void streamk(const half* a, const half* b, const float* c, float* d, float* workspace, int* flags,
                                   int m, int n, int k, float alpha, float beta) {
    const int lane = threadIdx.x, steps = k / 16, columns = n / 8, total = m / 16 * columns * steps;
    const int share = (total + gridDim.x - 1) / gridDim.x;
    int step = blockIdx.x * share;
    const int end = min(step + share, total);
#pragma unroll 1
    while (step < end) {
        const int tile = step / steps, last = min(end, (tile + 1) * steps);
        const int row = tile / columns * 16 + lane / 4, column = tile % columns * 8;
        const bool begins = step == tile * steps;
        float sums[4] = {};
#pragma unroll 1
        for (; step < last; step++) {
            const int at = step % steps * 16 + lane % 4 * 2;
            const half* left = a + row * k + at;
            const half* right = b + (column + lane / 4) * k + at;
            const u32 words[4] = {word(left), word(left + 8 * k), word(left + 8), word(left + 8 * k + 8)};
            multiply(sums, words, word(right), word(right + 8));
        }
        if (!begins) {
            for (int each = 0; each < 4; each++) __stcg(&workspace[(blockIdx.x * 4 + each) * 32 + lane], sums[each]);
            __threadfence();
            __syncwarp();
            if (lane == 0) atomicExch(&flags[blockIdx.x], 1);
            continue;
        }
        for (int peer = blockIdx.x + 1; peer * share < (tile + 1) * steps && peer < gridDim.x; peer++) {
            if (lane == 0)
                while (atomicAdd(&flags[peer], 0) == 0) {
                }
            __syncwarp();
            __threadfence();
            for (int each = 0; each < 4; each++) sums[each] += __ldcg(&workspace[(peer * 4 + each) * 32 + lane]);
        }
        for (int each = 0; each < 4; each++) {
            const int to = (row + each / 2 * 8) * n + column + lane % 4 * 2 + each % 2;
            d[to] = alpha * sums[each] + beta * c[to];
        }
    }
}
