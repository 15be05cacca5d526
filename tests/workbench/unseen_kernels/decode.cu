// target: sm_80
// Flash decoding: keys are split among CTAs, heads of queries share heads of keys, and the last CTA combines.
#include "pieces.cuh"

const int DIM = 32, SHARE = 16;

extern "C" __global__ void decode(const half* q, const half* k, const half* v, float* out, float* partial, float2* state,
                                  u32* arrived, int keys, int group, float scale) {
    const int lane = threadIdx.x, split = blockIdx.x, splits = gridDim.x, head = blockIdx.y;
    const int from = split * SHARE, to = min(from + SHARE, keys);
    const half* keys_of = k + head / group * keys * DIM;
    const half* values_of = v + head / group * keys * DIM;
    const float query = __half2float(q[head * DIM + lane]) * scale;
    float largest = -INFINITY, sum = 0, o = 0;
#pragma unroll 1
    for (int key = from; key < to; key++) {
        float score = query * __half2float(keys_of[key * DIM + lane]);
        for (int step = 16; step; step /= 2) score += __shfl_xor_sync(~0u, score, step);
        const float top = fmaxf(largest, score);
        const float factor = __expf(largest - top), power = __expf(score - top);
        sum = sum * factor + power;
        o = o * factor + power * __half2float(values_of[key * DIM + lane]);
        largest = top;
    }
    const int place = head * splits + split;
    partial[place * DIM + lane] = o;
    if (lane == 0) state[place] = make_float2(largest, sum);
    __threadfence();
    __syncwarp();
    u32 before = 0;
    if (lane == 0) before = atomicAdd(&arrived[head], 1);
    before = __shfl_sync(~0u, before, 0);
    if (before != splits - 1) return;
    __threadfence();
    float top = -INFINITY, total = 0, result = 0;
#pragma unroll 1
    for (int each = 0; each < splits; each++) top = fmaxf(top, __ldcg(&state[head * splits + each].x));
#pragma unroll 1
    for (int each = 0; each < splits; each++) {
        const float2 one = __ldcg(&state[head * splits + each]);
        const float weight = __expf(one.x - top);
        total += one.y * weight;
        result += __ldcg(&partial[(head * splits + each) * DIM + lane]) * weight;
    }
    out[head * DIM + lane] = result / total;
}
