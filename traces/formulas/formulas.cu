// target: sm_80
// Kernels that compute more than a product: 4-bit weights with zero points, causal attention with a running
// maximum, sums of int8 products that are quantised again. WRONG(n) is right unless WRONG is n.
#include <cuda_fp16.h>

#ifndef MISTAKE
#define MISTAKE 0
#endif
#define WRONG(n, wrong, right) (MISTAKE == (n) ? (wrong) : (right))

typedef unsigned int word;

__device__ __forceinline__ void product(float (&d)[4], const word (&a)[4], word b0, word b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
                 " {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ word pair(half low, half high) {
    const half2 both = __halves2half2(low, high);
    return *reinterpret_cast<const word*>(&both);
}

// y (16, n) = x (16, k) w, w[i, j] = (q - zero[group, j]) scale[group, j], q two to a byte along k, group of 32.
// A warp has 8 columns. Zero points are bytes (k / 32, n), scales f16.
extern "C" __global__ void dequantised(const half* x, const unsigned char* q, const unsigned char* zero,
                                       const half* scale, float* y, int n, int k) {
    const int lane = threadIdx.x % 32, column = blockIdx.x * 8 + lane / 4;
    float sums[4] = {};
    for (int step = 0; step < k; step += 16) {
        const int inner = step + lane % 4 * 2, group = WRONG(1, step / 64, step / 32);
        word a[4], b[2];
        for (int part = 0; part < 4; part++)
            a[part] = *reinterpret_cast<const word*>(
                x + (lane / 4 + part % 2 * 8) * k + inner + part / 2 * 8);
        const int z = zero[group * n + WRONG(3, blockIdx.x * 8, column)];
        const half s = scale[WRONG(2, 0, step / 32) * n + column];
        for (int part = 0; part < 2; part++) {
            const unsigned char both = q[(inner + part * 8) / 2 * n + column];
            // 0x6400 | nibble is the half 1024 + nibble
            const half low = __ushort_as_half(0x6400 | (both & 15)), high = __ushort_as_half(0x6400 | (both >> 4));
            const half bias = __int2half_rn(1024 + WRONG(4, 8, z));
            b[part] = pair(__hmul(__hsub(WRONG(5, high, low), bias), s), __hmul(__hsub(high, bias), s));
        }
        product(sums, a, b[0], b[1]);
    }
    const int row = lane / 4, first = blockIdx.x * 8 + lane % 4 * 2;
    y[row * n + first] = sums[0], y[row * n + first + 1] = sums[1];
    y[(row + 8) * n + first] = sums[2], y[(row + 8) * n + first + 1] = sums[3];
}

// A thread a row of Q: softmax(Q K^T scale) V with the rows of K up to its own, and a running maximum.
extern "C" __global__ void causal_rows(const float* q, const float* k, const float* v, float* out, int rows,
                                       float scale) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float most = -INFINITY, sum = 0, total[8] = {};
    for (int other = 0; other < rows; other++) {
        if (other > WRONG(6, row + 1, row)) break;
        float score = 0;
        for (int i = 0; i < 8; i++) score += q[row * 8 + i] * k[other * 8 + i];
        score *= WRONG(7, 1.0f, scale);
        const float next = fmaxf(most, score), kept = exp2f((most - next) * 1.44269504f);
        const float power = exp2f((score - next) * 1.44269504f);
        sum = sum * WRONG(8, 1.0f, kept) + power;
        for (int i = 0; i < 8; i++) total[i] = total[i] * WRONG(9, 1.0f, kept) + power * v[other * 8 + i];
        most = next;
    }
    for (int i = 0; i < 8; i++) out[row * 8 + i] = total[i] / sum;
}

// d = clamp(round(a b scale[column])) of int8, a (rows, k) and b (columns, k), k a multiple of 4.
extern "C" __global__ void requantised(const int* a, const int* b, const float* scale, signed char* d, int rows,
                                       int columns, int k) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || column >= columns) return;
    int sum = 0;
    for (int i = 0; i < k / 4; i++) sum = __dp4a(a[row * (k / 4) + i], b[column * (k / 4) + i], sum);
    const float value = sum * scale[WRONG(10, row, column)];
    const int whole = WRONG(11, static_cast<int>(value), __float2int_rn(value));
    d[row * columns + column] = min(max(whole, WRONG(12, -127, -128)), 127);
}
