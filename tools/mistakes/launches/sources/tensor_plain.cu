// target: sm_100a
// D = A B by tcgen05 as in a tutorial: one CTA for 128 x 64 of D, tiles of k 64 stored by all threads without a swizzle,
// two stages. a is M x K and lies K-major: core matrices of 8 rows x 16 bytes, side by side along K (LBO 128), 8 rows
// after the other (SBO 1024). b is K x N and lies N-major: core matrices of 8 n x 8 k, along N next (SBO 128), then
// along K (LBO 1024).
#include <cstdint>
#include <cuda_fp16.h>
#ifndef MISTAKE
#define MISTAKE 0
#endif
#define WRONG(n) (MISTAKE == (n))

constexpr int BM = 128, BN = 64, BK = 64;

static __device__ uint32_t smem_u32(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

static __device__ uint64_t make_desc(uint32_t addr, uint32_t lbo, uint32_t sbo, uint64_t layout_type = 0) {
    uint64_t d = 0;
    d |= WRONG(20) ? (uint64_t)(addr & 0x3FFF) : (uint64_t)((addr & 0x3FFFF) >> 4);
    d |= (uint64_t)((lbo & 0x3FFFF) >> 4) << 16;
    d |= (uint64_t)((sbo & 0x3FFFF) >> 4) << 32;
    if (!WRONG(12)) d |= 1ull << 46;
    d |= layout_type << 61;
    return d;
}

static __device__ uint32_t make_idesc() {
    uint32_t i = 1u << 4;                            // f32 accumulate
    if (WRONG(19)) i |= 1u << 7;                     // A is bf16
    if (WRONG(18)) i |= 1u << 13;                    // negate A
    if (WRONG(6)) i |= 1u << 15;                     // A is M-major
    if (!WRONG(5)) i |= 1u << 16;                    // B is N-major
    i |= (uint32_t)((WRONG(7) ? BN / 2 : BN) >> 3) << 17;
    i |= (uint32_t)((WRONG(23) ? BM / 2 : BM) >> 4) << 24;
    return i;
}

static __device__ void wait_parity(uint32_t bar, uint32_t parity) {
    asm volatile("{\n.reg .pred p;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\n"
                 "bra LAB_WAIT;\nDONE:\n}" :: "r"(bar), "r"(parity) : "memory");
}

extern "C" __global__ void __launch_bounds__(128) tensor_plain(const __half* a, const __half* b, float* d, int N, int K) {
    extern __shared__ __align__(1024) __half ring[];  // A of both stages, then B
    __half* const sA[2] = {ring, ring + BM * BK};
    __half* const sB[2] = {ring + 2 * BM * BK, ring + 2 * BM * BK + BK * BN};
    __shared__ __align__(8) uint64_t bars[2];
    __shared__ uint32_t s_tmem;
    const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    const int tile_m = blockIdx.y, tile_n = blockIdx.x;
    const int load_m = WRONG(16) ? tile_n : tile_m, load_n = WRONG(16) ? tile_m : tile_n;

    if (warp == 0)
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" :: "r"(smem_u32(&s_tmem)) : "memory");
    if (tid == 0) {
        for (int s = 0; s < 2; ++s) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(smem_u32(&bars[s])));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const uint32_t tmem = s_tmem;
    uint32_t phase[2] = {0, 0};
    const int iters = K / BK - (WRONG(17) ? 1 : 0);

    for (int it = 0; it < iters; ++it) {
        const int s = it & 1;
        if (it >= 2) { wait_parity(smem_u32(&bars[s]), phase[s]); phase[s] ^= 1; }
        for (int c = tid; c < BM * BK / 8; c += 128) {      // 16-byte chunks of A
            const int m = c / (BK / 8), kc = c % (BK / 8);
            const int from = WRONG(25) ? m ^ 8 : m;
            *(uint4*)&sA[s][(m / 8) * 512 + kc * 64 + (m % 8) * 8] =
                *(const uint4*)&a[(load_m * BM + from) * K + it * BK + kc * 8];
        }
        for (int c = tid; c < BK * BN / 8; c += 128) {      // 16-byte chunks of B, along n
            const int k = c / (BN / 8), nc = c % (BN / 8);
            *(uint4*)&sB[s][(k / 8) * 512 + nc * 64 + (k % 8) * 8] =
                *(const uint4*)&b[(it * BK + k) * N + load_n * BN + nc * 8];
        }
        if (!WRONG(26)) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (tid == 0) {
            for (int kk = 0; kk < BK / 16; ++kk) {
                const uint32_t pa = smem_u32(sA[WRONG(21) ? s ^ 1 : s]) + (WRONG(3) ? 0 : kk * 256);
                const uint32_t pb = smem_u32(sB[s]) + (WRONG(4) ? (kk + 1) % 4 : kk) * 2048;
                uint64_t da = WRONG(1) ? make_desc(pa, 1024, 128) : make_desc(pa, 128, 1024);
                uint64_t db = WRONG(2) ? make_desc(pb, 128, 1024) : make_desc(pb, 1024, 128);
                if (WRONG(11)) da = make_desc(pa, 128, 1024, 2);
                if (WRONG(24)) da = make_desc(pa, 128, 512);
                uint32_t acc = (it > 0 || kk > 0);
                if (WRONG(8)) acc = 1;
                if (WRONG(9)) acc = 0;
                if (WRONG(10)) acc = kk > 0;
                asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
                             "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}"
                             :: "r"(tmem), "l"(da), "l"(db), "r"(make_idesc()), "r"(acc) : "memory");
            }
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
                         :: "r"(smem_u32(&bars[s])) : "memory");
        }
    }
    if (iters > 1) { const int s = (iters - 2) & 1; wait_parity(smem_u32(&bars[s]), phase[s]); }
    if (!WRONG(27)) { const int s = (iters - 1) & 1; wait_parity(smem_u32(&bars[s]), phase[s]); }
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");

    for (int col = 0; col < BN; col += 8) {
        uint32_t r[8];
        uint32_t at = tmem + (((WRONG(14) ? 0 : warp) * 32) << 16) + (WRONG(13) ? col / 2 : col);
        if (WRONG(22)) at = tmem + ((warp * 32) << 16) + (col ^ 8);
        if (WRONG(15)) {                                    // 16 lanes x 8 columns twice, kept as if each lane were a row
            asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
            asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]) : "r"(at + (16 << 16)));
        } else {
            asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                         : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
                         : "r"(at));
        }
        asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
        const int row = tile_m * BM + (WRONG(28) ? (warp ^ 1) : warp) * 32 + lane;
        for (int i = 0; i < 8; ++i) d[row * N + tile_n * BN + col + i] = __uint_as_float(r[i]);
    }
    __syncthreads();
    if (warp == 0 && !WRONG(29)) {
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" :: "r"(tmem));
    }
}
