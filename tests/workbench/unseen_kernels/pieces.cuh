// Statements of PTX that the kernels of this folder share.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned u32;
typedef unsigned long long u64;
typedef unsigned char u8;
typedef signed char s8;

#define INLINE __device__ __forceinline__

INLINE u32 shared(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
INLINE u32 word(const void* p) { return *static_cast<const u32*>(p); }
INLINE void copy16(void* to, const void* from, int bytes = 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared(to)), "l"(from), "r"(bytes) : "memory");
}
INLINE void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> INLINE void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }
INLINE void load_a(u32 (&a)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(shared(row))
                 : "memory");
}
INLINE void load_b_rows(u32 (&b)[2], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1])
                 : "r"(shared(row))
                 : "memory");
}
#define PRODUCT(NAME, FORM, TYPE, KIND)                                                                            \
    INLINE void NAME(TYPE (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {                                            \
        asm volatile("mma.sync.aligned." FORM " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"    \
                     : "+" KIND(d[0]), "+" KIND(d[1]), "+" KIND(d[2]), "+" KIND(d[3])                               \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                               \
    }
PRODUCT(multiply, "m16n8k16.row.col.f32.f16.f16.f32", float, "f")
PRODUCT(multiply_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")
PRODUCT(multiply_s8, "m16n8k32.row.col.s32.s8.s8.s32", int, "r")

INLINE void initialise(u64& barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared(&barrier)), "r"(count) : "memory");
}
INLINE void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
INLINE void publish_stores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
INLINE void expect(u64& barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(&barrier)), "r"(bytes)
                 : "memory");
}
INLINE void arrive(u64& barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(&barrier)) : "memory");
}
INLINE void wait_for(u64& barrier, u32 parity) {
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(
                     shared(&barrier)),
                 "r"(parity)
                 : "memory");
}
struct alignas(64) Map {
    char opaque[128];
};
INLINE void load_box(void* to, const Map& map, int x, int y, u64& barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared(to)),
                 "l"(&map), "r"(x), "r"(y), "r"(shared(&barrier))
                 : "memory");
}
INLINE void load_bytes(void* to, const void* from, u32 bytes, u64& barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared(&barrier))
                 : "memory");
}
// The descriptor of a K-major tile of rows of 128 bytes, swizzled.
INLINE u64 tile(const void* p) { return 1ull << 62 | 64ull << 32 | 1ull << 16 | (shared(p) & 0x3FFFF) >> 4; }
INLINE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
INLINE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
INLINE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
#define WGMMA(NAME, FORM, IMMEDIATES)                                                                               \
    INLINE void NAME(float (&d)[16], u64 a, u64 b, int adds) {                                                      \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\nwgmma.mma_async.sync.aligned." FORM                  \
                     " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, p" IMMEDIATES \
                     ";\n}"                                                                                         \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),           \
                       "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),       \
                       "+f"(d[14]), "+f"(d[15])                                                                     \
                     : "l"(a), "l"(b), "r"(adds));                                                                  \
    }
WGMMA(wgmma_bf16, "m64n32k16.f32.bf16.bf16", ", 1, 1, 0, 0")
WGMMA(wgmma_e4m3, "m64n32k32.f32.e4m3.e4m3", ", 1, 1")
