// target: sm_80
// mma.sp m16n8k32 of f16; the metadata is a matrix (m, k / 16) of uint16: rows g and g + 8 make a word.
#include "words.cuh"

extern "C" __global__ void __launch_bounds__(64)
    halved_metadata(const word* a, const half_word* e, const word* b, float* d, int k, int wrong) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int tile = blockIdx.x * 2 + warp, row = tile * 16, steps = k / 32;
    int low = (wrong == 5 ? 0 : row) + g, high = low + 8, half = lane & 1;
    if (wrong == 1) low += 8, high -= 8;
    if (wrong == 2) half ^= 1;
    if (wrong == 6) half = lane >> 1 & 1;
    float c[4] = {0, 0, 0, 0};
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        int from = step;
        if (wrong == 3) from = step + 1 == steps ? 0 : step + 1;
        if (wrong == 4) from = 0;
        const word x = e[low * (k / 16) + 2 * from + half], y = e[high * (k / 16) + 2 * from + half];
        const int at_a = 8 * step + t, at_b = 16 * step + t;
        asm volatile(
            "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(at(a, row + g, k / 4, at_a)), "r"(at(a, row + g + 8, k / 4, at_a)),
              "r"(at(a, row + g, k / 4, at_a + 4)), "r"(at(a, row + g + 8, k / 4, at_a + 4)),
              "r"(at(b, g, k / 2, at_b)), "r"(at(b, g, k / 2, at_b + 4)), "r"(at(b, g, k / 2, at_b + 8)),
              "r"(at(b, g, k / 2, at_b + 12)), "r"(x | y << 16));
    }
    for (int i = 0; i < 4; ++i) d[(row + g + i / 2 * 8) * 8 + 2 * t + i % 2] = c[i];
}
