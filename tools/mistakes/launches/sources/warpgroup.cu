// target: sm_90a
// D = A B by wgmma: 64 x 64 of D for a warpgroup; k in stages of 64, rows of 128 bytes without a swizzle, as
// core matrices: 8 rows of 16 bytes each; b is N x K. LBO: 128 bytes, SBO: 1024 bytes.
#include "common.cuh"

__device__ __forceinline__ unsigned long long descriptor(word address, word leading, word stride) {
    unsigned long long start = WRONG(1) ? address & 0x3FFF : (address & 0x3FFFF) >> 4;
    return start | (unsigned long long)(leading >> 4) << 16 | (unsigned long long)(stride >> 4) << 32;
}

extern "C" __global__ void warpgroup(const __half* a, const __half* b, float* d, int n, int k) {
    __shared__ __align__(1024) __half tiles[2][2][64 * 64];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
    float sum[32] = {};
    for (int turn = 0; turn < k / 64; turn++) {
        const int stage = turn % 2;
        for (int chunk = thread; chunk < 512; chunk += 128) {
            const int row = chunk / 8, at = chunk % 8;
            const int place = (row / 8) * 512 + at * 64 + row % 8 * 8;
            *(uint4*)&tiles[stage][0][place] = *(const uint4*)&a[(row0 + row) * k + turn * 64 + at * 8];
            *(uint4*)&tiles[stage][1][place] = *(const uint4*)&b[(column0 + row) * k + turn * 64 + at * 8];
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < 4; step++) {
            const int by = WRONG(2) ? 16 : 128;  // elements of a k step: two core matrices
            const word left = shared_of(&tiles[stage][0][step * by]);
            const word right = shared_of(&tiles[stage][1][(WRONG(3) ? 0 : step) * 128]);
            const unsigned long long x = WRONG(4) ? descriptor(left, 1024, 128) : descriptor(left, 128, 1024);
            unsigned long long y = WRONG(5) ? descriptor(right, 1024, 128) : descriptor(right, 128, 1024);
            if (WRONG(6)) y = descriptor(right, 128, 512);
            if (WRONG(7)) y = descriptor(shared_of(&tiles[stage][1][(step + 2) * 128]), 128, 1024);
            if (WRONG(8)) y |= 1ull << 62;
            if (WRONG(11)) y = descriptor(shared_of(&tiles[stage ^ 1][1][step * 128]), 128, 1024);
            asm volatile(
                "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 0;"
                : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]),
                  "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]),
                  "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]), "+f"(sum[18]), "+f"(sum[19]),
                  "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]), "+f"(sum[25]),
                  "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]), "+f"(sum[30]), "+f"(sum[31])
                : "l"(x), "l"(y));
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (!WRONG(9)) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
    }
    if (WRONG(9)) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int tile = 0; tile < 8; tile++)
        for (int half = 0; half < 2; half++) {
            const int row = warp * 16 + lane / 4 + 8 * (WRONG(10) ? 1 - half : half);
            *(float2*)&d[(row0 + row) * n + column0 + tile * 8 + lane % 4 * 2] =
                make_float2(sum[4 * tile + 2 * half], sum[4 * tile + 2 * half + 1]);
        }
}
