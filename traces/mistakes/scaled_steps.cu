// target: sm_120a
// mma m16n8k32 of e4m3 with a ue8m0 scale a row and step: one word of scales serves four steps, by byte id.
#include "words.cuh"

template <int BYTE>
__device__ __forceinline__ void product(float (&c)[4], const word* a, const word* b, int row, int words, int step,
                                        word x, word y) {
    const int g = threadIdx.x % 32 / 4, at_k = 8 * step + threadIdx.x % 4;
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, %10, {%12, %13}, %11, {%12, %13};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(at(a, row + g, words, at_k)), "r"(at(a, row + g + 8, words, at_k)),
          "r"(at(a, row + g, words, at_k + 4)), "r"(at(a, row + g + 8, words, at_k + 4)), "r"(at(b, g, words, at_k)),
          "r"(at(b, g, words, at_k + 4)), "r"(x), "r"(y), "n"(BYTE), "n"(0));
}

template <int WRONG>
__device__ __forceinline__ void scaled(const word* a, const word* b, float* d, const word* scale_a,
                                       const word* scale_b, int k) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, row = blockIdx.x * 16;
    float c[4] = {0, 0, 0, 0};
    int line = g + lane % 2 * 8;
    if (WRONG == 2) line ^= 8;
    const int groups = k / 128, eight = blockIdx.x * 2 + line / 8;  // of the rows
#pragma unroll 1
    for (int group = 0; group < k / 128; ++group) {
        const int from = WRONG == 3 ? 0 : WRONG == 5 ? (group + 1) % groups : group;
        const int place = WRONG < 4 ? (row + line) * groups + from : (line % 8 * groups + from) * 4 + eight;
        const word x = scale_a[place], y = scale_b[g * groups + group];
        product<0>(c, a, b, row, k / 4, 4 * group, x, y);
        product<WRONG == 1 ? 0 : 1>(c, a, b, row, k / 4, 4 * group + 1, x, y);
        product<WRONG == 1 ? 0 : 2>(c, a, b, row, k / 4, 4 * group + 2, x, y);
        product<WRONG == 1 ? 0 : 3>(c, a, b, row, k / 4, 4 * group + 3, x, y);
    }
    for (int i = 0; i < 4; ++i) d[(row + g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
}

#define SCALED(NAME, WRONG)                                                                                  \
    extern "C" __global__ void __launch_bounds__(32)                                                         \
        NAME(const word* a, const word* b, float* d, const word* scale_a, const word* scale_b, int k) {      \
        scaled<WRONG>(a, b, d, scale_a, scale_b, k);                                                         \
    }

SCALED(scaled_steps, 0)
SCALED(scaled_by_first_byte, 1)
SCALED(scaled_rows_exchanged, 2)
SCALED(scaled_without_advance, 3)
SCALED(scaled_interleaved, 4)  // for 32 rows: words of rows g, g + 8, g + 16 and g + 24 beside each other
SCALED(scaled_interleaved_ahead, 5)
