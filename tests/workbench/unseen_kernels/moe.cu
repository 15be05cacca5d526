// target: sm_80
// Fused experts as in vLLM: blocks of sorted tokens, an expert a block, rows weighted by the router, padding left out.
#include "pieces.cuh"

const int PITCH = 24;

extern "C" __global__ void moe(const half* x, const half* w, const float* weight, const int* ids, const int* experts,
                               float* y, int pairs, int top, int n, int k) {
    __shared__ alignas(16) half xs[2][16 * PITCH], ws[2][16 * PITCH];
    const int lane = threadIdx.x, block = blockIdx.y, column = blockIdx.x * 16, steps = k / 16;
    const int expert = experts[block];
    const int row = lane / 2, part = lane % 2 * 8;
    const int id = ids[block * 16 + row];
    const half* from_x = x + id / top * k + part;
    const half* from_w = w + (expert * n + column + row) * k + part;
    auto load = [&](int step) {
        if (step < steps) {
            copy16(&xs[step % 2][row * PITCH + part], id < pairs ? from_x + step * 16 : x, id < pairs ? 16 : 0);
            copy16(&ws[step % 2][row * PITCH + part], from_w + step * 16);
        }
        commit();
    };
    float d[2][4] = {};
    load(0);
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        load(step + 1);
        wait<1>();
        __syncwarp();
        u32 a[4];
        load_a(a, &xs[step % 2][lane % 16 * PITCH + lane / 16 * 8]);
        for (int side = 0; side < 2; side++) {
            const half* right = &ws[step % 2][(side * 8 + lane / 4) * PITCH + lane % 4 * 2];
            multiply(d[side], a, word(right), word(right + 8));
        }
        __syncwarp();
    }
    for (int half_ = 0; half_ < 2; half_++) {
        const int to = ids[block * 16 + lane / 4 + half_ * 8];
        if (to >= pairs) continue;
        const float factor = weight[to];
        for (int side = 0; side < 2; side++)
            *reinterpret_cast<float2*>(y + to * n + column + side * 8 + lane % 4 * 2) =
                make_float2(d[side][2 * half_] * factor, d[side][2 * half_ + 1] * factor);
    }
}
