// target: sm_80
// The benchmark: D (m, n) of f32 = A (m, k) B (k, n), f16, A 2:4; mma.sp m16n8k32 from three stages.
//
// A CTA of 128 threads makes 128 x 64 of D, each of its four warps 64 x 32; a stage is 64 deep. a: the
// stored values (m, k / 2); e: the metadata as CUTLASS 2.x reorders it; b: B row by row. m is a multiple of
// 128, n and k are of 64. 49,152 bytes of dynamic shared memory. 512 x 512 x 512 takes 32,768 mma.sp.
#include "tiles.cuh"

const int ROWS = 128, COLUMNS = 64, DEPTH = 64, STAGES = 3;
const int A_BYTES = ROWS * DEPTH, B_BYTES = DEPTH * COLUMNS * 2, STAGE_BYTES = A_BYTES + B_BYTES;

__device__ __forceinline__ void multiply(float (&d)[4], const word (&a)[4], const word (&b)[4], word e, bool upper) {
    if (upper)
        asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x1;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(e));
    else
        asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(e));
}

__device__ __forceinline__ void fetch(word stage, const byte* a, const byte* b, int n, int k, int tile) {
#pragma unroll
    for (word i = threadIdx.x; i < threadIdx.x + A_BYTES / 16; i += 128)
        copy_chunk(stage + place<4>(i / 4, i % 4), a + static_cast<size_t>(i / 4) * k + tile * DEPTH + i % 4 * 16);
#pragma unroll
    for (word i = threadIdx.x; i < threadIdx.x + B_BYTES / 16; i += 128)
        copy_chunk(stage + A_BYTES + place<8>(i / 8, i % 8),
                   b + (static_cast<size_t>(tile) * DEPTH + i / 8) * n * 2 + i % 8 * 16);
}

extern "C" __global__ void __launch_bounds__(128)
    sparse_product(const byte* a, const word* e, const byte* b, float* d, int m, int n, int k) {
    extern __shared__ __align__(128) byte stages[];
    const word lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int tiles = k / DEPTH;
    const word row = warp / 2 * 64, column = warp % 2 * 32;
    a += static_cast<size_t>(blockIdx.y) * ROWS * k;
    b += blockIdx.x * COLUMNS * 2;
    // The word of rows r and r + 8 of a tile of 16, for the column of words 4 tile + lane % 4.
    e += static_cast<size_t>(lane % 4 / 2) * m + blockIdx.y * ROWS + row + lane / 4 * 4 + lane % 2;
    const word first = shared_address(stages);
    float sums[4][4][4] = {};
    for (int stage = 0; stage < STAGES - 1; stage++) {
        if (stage < tiles) fetch(first + stage * STAGE_BYTES, a, b, n, k, stage);
        commit_copies();
    }
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++) {
        word metadata[4];
        for (int i = 0; i < 4; i++) metadata[i] = e[static_cast<size_t>(tile) * 2 * m + i / 2 * 32 + i % 2 * 2];
        wait_copies<STAGES - 2>();
        __syncthreads();
        if (tile + STAGES - 1 < tiles)
            fetch(first + (tile + STAGES - 1) % STAGES * STAGE_BYTES, a, b, n, k, tile + STAGES - 1);
        commit_copies();
        const word here = first + tile % STAGES * STAGE_BYTES;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            word left[4][4], right[4][4];
            for (int i = 0; i < 4; i++)
                load_matrices(left[i], here + place<4>(row + i * 16 + lane % 16, half * 2 + lane / 16));
            for (int j = 0; j < 4; j++)
                load_transposed(right[j], here + A_BYTES + place<8>(half * 32 + lane, column / 8 + j));
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) multiply(sums[i][j], left[i], right[j], metadata[i], half);
        }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            store_tile(d, n, blockIdx.y * ROWS + row + i * 16, blockIdx.x * COLUMNS + column + j * 8, sums[i][j]);
}
