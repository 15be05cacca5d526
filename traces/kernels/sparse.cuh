// D = A B with a compressed A: one warp product a step, two stages in shared memory.
//
// A CTA of 64 threads makes 32 x 32 of D, a warp 16 rows of it. a: the stored values of A, row by row;
// e: the words that each lane passes, (row tiles of 16, steps along k, 32); b: columns of B one after the
// other; d: row by row. m and n are multiples of 32, k of the product's.
#pragma once
#include "tiles.cuh"

const int A_STAGE = 32 * 32, B_STAGE = 32 * 64, STAGE = A_STAGE + B_STAGE;  // bytes

__device__ __forceinline__ void fetch_sparse(word stage, const byte* a, const byte* b, int steps, int step) {
    const word thread = threadIdx.x;
    copy_chunk(stage + place<2>(thread / 2, thread % 2),
               a + (static_cast<size_t>(thread / 2) * steps + step) * 32 + thread % 2 * 16);
#pragma unroll
    for (word i = thread; i < thread + B_STAGE / 16; i += 64)
        copy_chunk(stage + A_STAGE + place<4>(i / 4, i % 4),
                   b + (static_cast<size_t>(i / 4) * steps + step) * 64 + i % 4 * 16);
}

template <class Product, class Value>
__device__ __forceinline__ void sparse_tiles(
    const byte* a, const word* e, const byte* b, Value* d, int n, int k, Product product) {
    __shared__ __align__(128) byte stages[2 * STAGE];
    const word lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int steps = k / Product::depth;
    const int row = blockIdx.y * 32, column = blockIdx.x * 32;
    a += static_cast<size_t>(row) * steps * 32;
    b += static_cast<size_t>(column) * steps * 64;
    e += static_cast<size_t>(blockIdx.y * 2 + warp) * steps * 32;
    const word stage = shared_address(stages);
    Value sums[4][4] = {};
    fetch_sparse(stage, a, b, steps, 0);
    commit_copies();
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        if (step + 1 < steps) fetch_sparse(stage + (step + 1) % 2 * STAGE, a, b, steps, step + 1);
        commit_copies();
        wait_copies<1>();
        __syncthreads();
        const word here = stage + step % 2 * STAGE, metadata = e[step * 32 + lane];
        word left[4], right[4];
        load_matrices(left, here + place<2>(warp * 16 + lane % 16, lane / 16));
        for (int tile = 0; tile < 4; tile++) {
            load_matrices(right, here + A_STAGE + place<4>(tile * 8 + lane % 8, lane / 8));
            product(sums[tile], left, right, metadata, row + warp * 16, column + tile * 8, step, steps);
        }
        __syncthreads();
    }
    for (int tile = 0; tile < 4; tile++) store_tile(d, n, row + warp * 16, column + tile * 8, sums[tile]);
}

// The product of a form whose accumulators are in registers of that constraint: f of float, r of int.
#define SPARSE_PRODUCT(NAME, DEPTH, VALUE, CONSTRAINT, FORM)                                                 \
    struct NAME {                                                                                            \
        static const int depth = DEPTH;                                                                      \
        __device__ __forceinline__ void operator()(VALUE(&d)[4], const word(&a)[4], const word(&b)[4],       \
                                                   word e, int, int, int, int) const {                       \
            asm volatile("mma.sp::ordered_metadata.sync.aligned." FORM                                       \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;" \
                         : "+" CONSTRAINT(d[0]), "+" CONSTRAINT(d[1]), "+" CONSTRAINT(d[2]),                 \
                           "+" CONSTRAINT(d[3])                                                              \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]),      \
                           "r"(b[3]), "r"(e));                                                               \
        }                                                                                                    \
    };

#define SPARSE_KERNEL(NAME, VALUE, PRODUCT)                                                                  \
    extern "C" __global__ void __launch_bounds__(64)                                                         \
        NAME(const byte* a, const word* e, const byte* b, VALUE* d, int n, int k) {                          \
        sparse_tiles(a, e, b, d, n, k, PRODUCT());                                                           \
    }
