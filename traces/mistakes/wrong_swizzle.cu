// target: sm_90a
// D = A B by wgmma: one tile of 64 x 64, k 64; b is N x K. Rows of 128 bytes in the 128-byte swizzle, which moves
// the 16-byte chunk c of row r to chunk c ^ r % 8. The kernel has a mistake in it: the page of the debugger finds it.
#include <cuda_fp16.h>

__device__ __forceinline__ unsigned shared_of(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ unsigned long long descriptor(unsigned address) {
    return (address & 0x3FFFF) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ __forceinline__ void copy_tile(__half* tile, const __half* from, int thread, int period) {
    for (int chunk = thread; chunk < 512; chunk += 128) {
        const int row = chunk / 8, at = chunk % 8;
        const int place = row * 64 + (at ^ row % period) * 8;
        *(uint4*)&tile[place] = *(const uint4*)&from[row * 64 + at * 8];
    }
}

extern "C" __global__ void product(const __half* a, const __half* b, float* d) {
    __shared__ __align__(1024) __half left[64 * 64], right[64 * 64];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    copy_tile(left, a, thread, 8);
    copy_tile(right, b, thread, 4);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float sum[32] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int step = 0; step < 4; step++) {
        const unsigned long long x = descriptor(shared_of(left) + 32 * step);
        const unsigned long long y = descriptor(shared_of(right) + 32 * step);
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
            "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
            "%32, %33, 1, 1, 1, 0, 0;"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]),
              "+f"(sum[7]), "+f"(sum[8]), "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]),
              "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]), "+f"(sum[17]), "+f"(sum[18]), "+f"(sum[19]), "+f"(sum[20]),
              "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]), "+f"(sum[25]), "+f"(sum[26]), "+f"(sum[27]),
              "+f"(sum[28]), "+f"(sum[29]), "+f"(sum[30]), "+f"(sum[31])
            : "l"(x), "l"(y));
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    float* out = d + (warp * 16 + lane / 4) * 64 + lane % 4 * 2;
    for (int tile = 0; tile < 8; tile++) {
        *(float2*)&out[tile * 8] = make_float2(sum[4 * tile], sum[4 * tile + 1]);
        *(float2*)&out[tile * 8 + 8 * 64] = make_float2(sum[4 * tile + 2], sum[4 * tile + 3]);
    }
}
