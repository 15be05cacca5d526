// D = A B: one warp product a step, two stages in shared memory.
//
// A CTA of 64 threads makes 32 x 32 of D, a warp 16 rows of it. a: A row by row; d: row by row; b: where
// Product::transposes, B row by row with 16-bit elements, else its columns one after the other. m and n are
// multiples of 32. The steps from first up to stop are summed.
#pragma once
#include "tiles.cuh"

const int STAGE = 32 * 32;  // bytes of a stage of A, and of B

template <class Product>
__device__ __forceinline__ void fetch_dense(word stage, const byte* a, const byte* b, int n, int steps, int step) {
    const word row = threadIdx.x / 2, chunk = threadIdx.x % 2;
    copy_chunk(stage + place<2>(row, chunk), a + (static_cast<size_t>(row) * steps + step) * 32 + chunk * 16);
    if (Product::transposes) {
        const word depth = threadIdx.x / 4, across = threadIdx.x % 4;
        copy_chunk(stage + STAGE + place<4>(depth, across),
                   b + (static_cast<size_t>(step) * 16 + depth) * n * 2 + across * 16);
    } else {
        copy_chunk(stage + STAGE + place<2>(row, chunk),
                   b + (static_cast<size_t>(row) * steps + step) * 32 + chunk * 16);
    }
}

// The four words of B that two neighbouring products of 8 columns take.
template <class Product> __device__ __forceinline__ void load_right(word (&right)[4], word tile, int pair) {
    const word lane = threadIdx.x % 32;
    if (Product::transposes)
        load_transposed(right, tile + place<4>(lane % 16, pair * 2 + lane / 16));
    else
        load_matrices(right, tile + place<2>(pair * 16 + lane % 8 + lane / 16 * 8, lane / 8 % 2));
}

template <class Product, class Value>
__device__ __forceinline__ void dense_tiles(
    const byte* a, const byte* b, Value (&sums)[4][4], int n, int k, int first, int stop, Product product) {
    __shared__ __align__(128) byte stages[4 * STAGE];
    const word lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int steps = k / Product::depth;
    a += static_cast<size_t>(blockIdx.y) * 32 * steps * 32;
    b += static_cast<size_t>(blockIdx.x) * 32 * (Product::transposes ? 2 : steps * 32);
    const word stage = shared_address(stages);
    if (first < stop) fetch_dense<Product>(stage, a, b, n, steps, first);
    commit_copies();
#pragma unroll 1
    for (int step = first; step < stop; step++) {
        const word here = stage + (step - first) % 2 * 2 * STAGE;
        if (step + 1 < stop) fetch_dense<Product>(stage + (step + 1 - first) % 2 * 2 * STAGE, a, b, n, steps, step + 1);
        commit_copies();
        wait_copies<1>();
        __syncthreads();
        word left[4], right[4];
        load_matrices(left, here + place<2>(warp * 16 + lane % 16, lane / 16));
        for (int pair = 0; pair < 2; pair++) {
            load_right<Product>(right, here + STAGE, pair);
            product(sums[2 * pair], left, right[0], right[1]);
            product(sums[2 * pair + 1], left, right[2], right[3]);
        }
        __syncthreads();
    }
}

template <class Product, class Value>
__device__ __forceinline__ void dense_product(const byte* a, const byte* b, Value* d, int n, int k, Product product) {
    Value sums[4][4] = {};
    dense_tiles(a, b, sums, n, k, 0, k / Product::depth, product);
    const int row = blockIdx.y * 32 + threadIdx.x / 32 * 16;
    for (int tile = 0; tile < 4; tile++) store_tile(d, n, row, blockIdx.x * 32 + tile * 8, sums[tile]);
}

// The product of a form whose accumulators are in registers of that constraint: f of float, r of int.
#define DENSE_PRODUCT(NAME, DEPTH, TRANSPOSES, VALUE, CONSTRAINT, FORM)                                      \
    struct NAME {                                                                                            \
        static const int depth = DEPTH;                                                                      \
        static const bool transposes = TRANSPOSES;                                                           \
        __device__ __forceinline__ void operator()(VALUE(&d)[4], const word(&a)[4], word b0, word b1) const { \
            asm volatile("mma.sync.aligned." FORM                                                            \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                  \
                         : "+" CONSTRAINT(d[0]), "+" CONSTRAINT(d[1]), "+" CONSTRAINT(d[2]),                 \
                           "+" CONSTRAINT(d[3])                                                              \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                    \
        }                                                                                                    \
    };

DENSE_PRODUCT(DenseF16, 16, true, float, "f", "m16n8k16.row.col.f32.f16.f16.f32")
DENSE_PRODUCT(DenseBf16, 16, true, float, "f", "m16n8k16.row.col.f32.bf16.bf16.f32")
DENSE_PRODUCT(DenseTf32, 8, false, float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
DENSE_PRODUCT(DenseS8, 32, false, int, "r", "m16n8k32.row.col.s32.s8.s8.s32")
