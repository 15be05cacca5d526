// target: sm_80
// Marlin: f16 times 4-bit weights, a ring of stages by cp.async, zero points and scales by groups of 32 rows.
#include "pieces.cuh"

const int STAGES = 4, PITCH = 40;

INLINE u32 masked(u32 q, u32 mask) {
    u32 d;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(q), "r"(mask), "r"(0x64006400));
    return d;
}

INLINE void dequantise(u32 (&b)[4], u32 q, u32 z, half2 scale) {
    const half2 low = __half2half2(__ushort_as_half(0x6400 | z));
    const half2 high = __half2half2(__hsub(__float2half(-64.f), __int2half_rn(z)));
    const half2 sixteenth = __float2half2_rn(0.0625f);
    for (int half_ = 0; half_ < 2; half_++) {
        u32 even = masked(q, 0x000f000f), odd = masked(q, 0x00f000f0);
        half2 first = __hsub2(reinterpret_cast<half2&>(even), low);
        half2 second = __hfma2(reinterpret_cast<half2&>(odd), sixteenth, high);
        reinterpret_cast<half2&>(b[2 * half_]) = __hmul2(first, scale);
        reinterpret_cast<half2&>(b[2 * half_ + 1]) = __hmul2(second, scale);
        q >>= 8;
    }
}

extern "C" __global__ void marlin(
    const half* x, const u32* q, const u32* zero, const half* scale, half* y, int n, int k) {
    __shared__ alignas(16) half xs[STAGES][16 * PITCH];
    __shared__ alignas(16) u32 qs[STAGES][32 * 4];
    __shared__ alignas(16) half ss[STAGES][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.x * 32, groups = k / 32;
    auto load = [&](int group) {
        const int stage = group % STAGES, row = threadIdx.x / 4, chunk = threadIdx.x % 4;
        if (group < groups) {
            copy16(&xs[stage][row * PITCH + chunk * 8], x + row * k + group * 32 + chunk * 8);
            if (threadIdx.x < 32)
                copy16(&qs[stage][threadIdx.x * 4], q + (group * n + column + threadIdx.x) * 4);
            else if (threadIdx.x < 36)
                copy16(&ss[stage][chunk * 8], scale + group * n + column + chunk * 8);
        }
        commit();
    };
    float d[2][4] = {};
    for (int group = 0; group < STAGES - 1; group++) load(group);
#pragma unroll 1
    for (int group = 0; group < groups; group++) {
        wait<STAGES - 2>();
        __syncthreads();
        load(group + STAGES - 1);
        const int stage = group % STAGES;
        u32 a[2][4];
        load_a(a[0], &xs[stage][lane % 16 * PITCH + lane / 16 * 8]);
        load_a(a[1], &xs[stage][lane % 16 * PITCH + 16 + lane / 16 * 8]);
        for (int part = 0; part < 2; part++) {
            const int local = warp * 16 + part * 8 + lane / 4;
            const u32 packed = qs[stage][local * 4 + lane % 4];
            const u32 zeros = zero[group * (n / 8) + (column + local) / 8];
            const u32 z = zeros >> (local % 8 * 4) & 15;
            u32 b[4];
            dequantise(b, packed, z, __half2half2(ss[stage][local]));
            multiply(d[part], a[0], b[0], b[1]);
            multiply(d[part], a[1], b[2], b[3]);
        }
    }
    for (int part = 0; part < 2; part++) {
        half* to = y + lane / 4 * n + column + warp * 16 + part * 8 + lane % 4 * 2;
        *reinterpret_cast<half2*>(to) = __floats2half2_rn(d[part][0], d[part][1]);
        *reinterpret_cast<half2*>(to + 8 * n) = __floats2half2_rn(d[part][2], d[part][3]);
    }
}
