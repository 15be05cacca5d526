// target: sm_80
// Causal attention with a softmax that goes along: a thread has a query, keys come in tiles of 8.
//
// q, v (keys, 16) and k (keys, 16) of f32; o (keys, 16).
const int WIDTH = 16, TILE = 8;

extern "C" __global__ void __launch_bounds__(32)
    online(const float* q, const float* k, const float* v, float* o, int keys, float scale) {
    const int row = blockIdx.x * 32 + threadIdx.x;
    float most = -INFINITY, total = 0, sums[WIDTH] = {};
#pragma unroll 1
    for (int first = 0; first < keys; first += TILE) {
        float scores[TILE], highest = most;
#pragma unroll
        for (int i = 0; i < TILE; i++) {
            float score = 0;
#pragma unroll
            for (int j = 0; j < WIDTH; j++) score += q[row * WIDTH + j] * k[(first + i) * WIDTH + j];
            scores[i] = first + i <= row ? score * scale : -INFINITY;
            highest = fmaxf(highest, scores[i]);
        }
        const float again = exp2f((most - highest) * 1.44269504f);
        total *= again;
#pragma unroll
        for (int j = 0; j < WIDTH; j++) sums[j] *= again;
#pragma unroll
        for (int i = 0; i < TILE; i++) {
            const float power = exp2f((scores[i] - highest) * 1.44269504f);
            total += power;
#pragma unroll
            for (int j = 0; j < WIDTH; j++) sums[j] += power * v[(first + i) * WIDTH + j];
        }
        most = highest;
    }
#pragma unroll
    for (int j = 0; j < WIDTH; j++) o[row * WIDTH + j] = sums[j] / total;
}
