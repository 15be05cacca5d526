// Pieces of kernels with wgmma: tiles of rows of 64 or 128 bytes, swizzled, and products of m64n64.
#pragma once

#include "tiles.cuh"

// Rows of CHUNKS chunks of 16 bytes, the first at byte `from` of each row of a matrix, into shared memory.
template <int CHUNKS, int THREADS>
__device__ __forceinline__ void stage_rows(byte* to, const byte* from, int rows, size_t row_bytes) {
    for (int chunk = threadIdx.x; chunk < rows * CHUNKS; chunk += THREADS) {
        const int row = chunk / CHUNKS, column = chunk % CHUNKS;
        *reinterpret_cast<uint4*>(to + place<CHUNKS>(row, column)) =
            *reinterpret_cast<const uint4*>(from + row * row_bytes + column * 16);
    }
}

// The matrix descriptor of a K-major tile whose rows have CHUNKS chunks: swizzle 64B or 128B.
template <int CHUNKS> __device__ __forceinline__ unsigned long long descriptor(word address) {
    const unsigned long long swizzle = CHUNKS == 8 ? 1 : 2, stride = 8 * CHUNKS;
    return swizzle << 62 | stride << 32 | 1ull << 16 | address >> 4;
}

// What st.shared has written is seen by wgmma of all warpgroups.
__device__ __forceinline__ void publish() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

#define ACCUMULATORS(D)                                                                                      \
    "+f"(D[0]), "+f"(D[1]), "+f"(D[2]), "+f"(D[3]), "+f"(D[4]), "+f"(D[5]), "+f"(D[6]), "+f"(D[7]),           \
        "+f"(D[8]), "+f"(D[9]), "+f"(D[10]), "+f"(D[11]), "+f"(D[12]), "+f"(D[13]), "+f"(D[14]),              \
        "+f"(D[15]), "+f"(D[16]), "+f"(D[17]), "+f"(D[18]), "+f"(D[19]), "+f"(D[20]), "+f"(D[21]),            \
        "+f"(D[22]), "+f"(D[23]), "+f"(D[24]), "+f"(D[25]), "+f"(D[26]), "+f"(D[27]), "+f"(D[28]),            \
        "+f"(D[29]), "+f"(D[30]), "+f"(D[31])
#define NUMBERS                                                                                              \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "        \
    "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

// D = A B + D, or A B where `accumulate` is 0: 64 rows, 64 columns, 32 bytes along k.
#define DENSE_PRODUCT(NAME, FORM, IMMEDIATES)                                                                \
    __device__ __forceinline__ void NAME(float (&d)[32], unsigned long long a, unsigned long long b,         \
                                         int accumulate) {                                                   \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                            \
                     "wgmma.mma_async.sync.aligned." FORM " " NUMBERS ", %32, %33, p" IMMEDIATES ";\n}"      \
                     : ACCUMULATORS(d)                                                                       \
                     : "l"(a), "l"(b), "r"(accumulate));                                                     \
    }

DENSE_PRODUCT(product_f16, "m64n64k16.f32.f16.f16", ", 1, 1, 0, 0")
DENSE_PRODUCT(product_e4m3, "m64n64k32.f32.e4m3.e4m3", ", 1, 1")

// The same with A stored two of four, and its metadata.
__device__ __forceinline__ void product_sparse_f16(float (&d)[32], unsigned long long a, unsigned long long b,
                                                   word e) {
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 " NUMBERS
                 ", %32, %33, %34, 0, 1, 1, 1, 0, 0;"
                 : ACCUMULATORS(d)
                 : "l"(a), "l"(b), "r"(e));
}

// D of the warpgroup whose first row is `row`, to 64 columns from `column` on.
__device__ __forceinline__ void store_products(float* d, int n, int row, int column, const float (&values)[32]) {
    const int warp = threadIdx.x % 128 / 32;
#pragma unroll
    for (int part = 0; part < 8; ++part) {
        const float four[4] = {values[4 * part], values[4 * part + 1], values[4 * part + 2], values[4 * part + 3]};
        store_tile(d, n, row + 16 * warp, column + 8 * part, four);
    }
}
