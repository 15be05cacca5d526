// target: sm_100a
// Block-scaled fp8 by tcgen05, in the manner of CuTe DSL: tiles by TMA, scales through shared to tensor memory.
#include "pieces.cuh"

const int M = 128, N = 32, K = 128, COLUMNS = 64, SCALES_A = 32, SCALES_B = 36;

struct Stage {
    alignas(1024) u8 a[M * K];
    alignas(1024) u8 b[N * K];
    alignas(128) u8 scales_a[512], scales_b[512];
};

INLINE u64 descriptor(const void* p, u32 stride, u64 swizzle) {
    return swizzle << 61 | 1ull << 46 | static_cast<u64>(stride >> 4) << 32 | 1ull << 16 | (shared(p) & 0x3FFFF) >> 4;
}
INLINE void copy_scales(u32 to, u64 from) {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from) : "memory");
}
INLINE void multiply_scaled(u32 d, u64 a, u64 b, u32 form, u32 scale_a, u32 scale_b, int adds) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(form), "r"(scale_a), "r"(scale_b), "r"(adds)
                 : "memory");
}
INLINE void arrive_when_done(u64& barrier) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared(&barrier))
                 : "memory");
}
INLINE void load_cells(float (&v)[8], u32 from) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7])
                 : "r"(from));
}

extern "C" __global__ void __launch_bounds__(128)
    mxfp8(const __grid_constant__ Map a, const u8* scales_a, const __grid_constant__ Map b, const u8* scales_b,
          float* d, int n, int k) {
    __shared__ Stage stages[2];
    __shared__ u64 full[2], done[2];
    __shared__ u32 memory;
    const int thread = threadIdx.x, warp = thread / 32, column0 = blockIdx.x * N, blocks = k / K;
    if (thread == 0) {
        for (int stage = 0; stage < 2; stage++) {
            initialise(full[stage], 1);
            initialise(done[stage], 1);
        }
        publish_barriers();
    }
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared(&memory)),
                     "r"(COLUMNS)
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const u32 sums = memory;
    if (thread == 0) {
        auto load = [&](int block) {
            Stage& stage = stages[block % 2];
            u64& barrier = full[block % 2];
            expect(barrier, sizeof(stage.a) + sizeof(stage.b) + 1024);
            load_box(stage.a, a, block * K, 0, barrier);
            load_box(stage.b, b, block * K, column0, barrier);
            load_bytes(stage.scales_a, scales_a + block * 512, 512, barrier);
            load_bytes(stage.scales_b, scales_b + (blockIdx.x * blocks + block) * 512, 512, barrier);
        };
        load(0);
#pragma unroll 1
        for (int block = 0; block < blocks; block++) {
            if (block + 1 < blocks) {
                if (block > 0) wait_for(done[(block + 1) % 2], (block - 1) / 2 & 1);
                load(block + 1);
            }
            Stage& stage = stages[block % 2];
            wait_for(full[block % 2], block / 2 & 1);
            asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
            copy_scales(sums + SCALES_A, descriptor(stage.scales_a, 128, 0));
            copy_scales(sums + SCALES_B, descriptor(stage.scales_b, 128, 0));
#pragma unroll 1
            for (u32 step = 0; step < 4; step++) {
                const u32 form = N / 8 << 17 | 1u << 23 | M / 128 << 27 | step << 4 | step << 29;
                multiply_scaled(sums, descriptor(stage.a + step * 32, 1024, 2),
                                descriptor(stage.b + step * 32, 1024, 2), form, sums + SCALES_A, sums + SCALES_B,
                                block > 0 || step > 0);
            }
            arrive_when_done(done[block % 2]);
        }
    }
    const int last = blocks - 1;
    __syncthreads();
    wait_for(done[last % 2], last / 2 & 1);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#pragma unroll 1
    for (int column = 0; column < N; column += 8) {
        float values[8];
        load_cells(values, sums + (warp << 21) + column);
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        for (int each = 0; each < 8; each++) d[thread * n + column0 + column + each] = values[each];
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    if (warp == 0)
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(sums), "r"(COLUMNS) : "memory");
}
