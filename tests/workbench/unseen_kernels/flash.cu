// target: sm_80
// FlashAttention forward: causal, softcap, two stages of keys and values, the logarithm of the sum as a second output.
#include "pieces.cuh"

const int DIM = 32, PITCH = 40;
const float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;

INLINE float tanh_approx(float x) {
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
INLINE float over_quad(float x, bool largest) {
    for (int step = 1; step < 4; step *= 2) {
        const float other = __shfl_xor_sync(~0u, x, step);
        x = largest ? fmaxf(x, other) : x + other;
    }
    return x;
}
INLINE u32 pair(float x, float y) {
    half2 both = __floats2half2_rn(x, y);
    return reinterpret_cast<u32&>(both);
}

extern "C" __global__ void flash(
    const half* q, const half* k, const half* v, half* out, float* lse, int rows, float scale, float cap) {
    __shared__ alignas(16) half ks[2][16 * PITCH], vs[2][16 * PITCH];
    const int lane = threadIdx.x, head = blockIdx.y, first = blockIdx.x * 16, tiles = blockIdx.x + 1;
    q += head * rows * DIM, k += head * rows * DIM, v += head * rows * DIM;
    auto load = [&](int tile) {
        for (int chunk = lane; chunk < 64 && tile < tiles; chunk += 32) {
            const int row = chunk / 4, part = chunk % 4 * 8;
            copy16(&ks[tile % 2][row * PITCH + part], k + (tile * 16 + row) * DIM + part);
            copy16(&vs[tile % 2][row * PITCH + part], v + (tile * 16 + row) * DIM + part);
        }
        commit();
    };
    u32 a[2][4];
    for (int step = 0; step < 2; step++)
        for (int each = 0; each < 4; each++)
            a[step][each] = word(q + (first + lane / 4 + each % 2 * 8) * DIM + step * 16 + each / 2 * 8 + lane % 4 * 2);
    float o[4][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
    load(0);
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++) {
        load(tile + 1);
        wait<1>();
        __syncwarp();
        float s[2][4] = {};
        for (int part = 0; part < 2; part++)
            for (int step = 0; step < 2; step++) {
                const half* row = &ks[tile % 2][(part * 8 + lane / 4) * PITCH + step * 16 + lane % 4 * 2];
                multiply(s[part], a[step], word(row), word(row + 8));
            }
        for (int part = 0; part < 2; part++)
            for (int each = 0; each < 4; each++) {
                const int column = tile * 16 + part * 8 + lane % 4 * 2 + each % 2;
                const int row = first + lane / 4 + each / 2 * 8;
                const float capped = cap * tanh_approx(s[part][each] * scale / cap);
                s[part][each] = column <= row ? capped : -INFINITY;
            }
        for (int side = 0; side < 2; side++) {
            float top = largest[side];
            for (int part = 0; part < 2; part++)
                top = fmaxf(top, fmaxf(s[part][2 * side], s[part][2 * side + 1]));
            top = over_quad(top, true);
            const float factor = exp2f((largest[side] - top) * LOG2E);
            largest[side] = top;
            sum[side] *= factor;
            for (int part = 0; part < 4; part++) {
                o[part][2 * side] *= factor;
                o[part][2 * side + 1] *= factor;
            }
            for (int part = 0; part < 2; part++)
                for (int each = 2 * side; each < 2 * side + 2; each++) {
                    s[part][each] = exp2f((s[part][each] - top) * LOG2E);
                    sum[side] += s[part][each];
                }
        }
        const u32 p[4] = {pair(s[0][0], s[0][1]), pair(s[0][2], s[0][3]), pair(s[1][0], s[1][1]), pair(s[1][2], s[1][3])};
        for (int part = 0; part < 4; part++) {
            u32 b[2];
            load_b_rows(b, &vs[tile % 2][lane % 16 * PITCH + part * 8]);
            multiply(o[part], p, b[0], b[1]);
        }
        __syncwarp();
    }
    for (int side = 0; side < 2; side++) {
        const float total = over_quad(sum[side], false);
        const int row = head * rows + first + lane / 4 + side * 8;
        for (int part = 0; part < 4; part++)
            *reinterpret_cast<u32*>(out + row * DIM + part * 8 + lane % 4 * 2) =
                pair(o[part][2 * side] / total, o[part][2 * side + 1] / total);
        if (lane % 4 == 0) lse[row] = largest[side] + __log2f(total) * LN2;
    }
}
