// tcgen05: tensor memory, its copies and loads, and matrix instructions of one thread: a statement of PTX each.
#pragma once
#include "tensors.cuh"

typedef unsigned long long descriptor;

// The codes of swizzles in shared-memory descriptors of tcgen05.
const int NO_SWIZZLE = 0, SWIZZLE_128B = 2;

// A K-major tile; stride is the distance of groups of eight rows, in bytes.
__device__ __forceinline__ descriptor tile_descriptor(const void* tile, word stride, int swizzle) {
    const descriptor start = (shared_address(tile) & 0x3FFFF) >> 4;
    return start | 1ull << 16 | static_cast<descriptor>(stride >> 4) << 32 | 1ull << 46 |
           static_cast<descriptor>(swizzle) << 61;
}

// A K-major tile without swizzle; leading is the distance of 16 bytes along K to the next ones.
__device__ __forceinline__ descriptor plain_descriptor(const void* tile, word leading, word stride) {
    const descriptor offset = static_cast<descriptor>(leading >> 4) - 1;
    return tile_descriptor(tile, stride, NO_SWIZZLE) + (offset << 16);
}

// Columns of tensor memory; where they begin is written to shared memory.
__device__ __forceinline__ void allocate(word& address, word columns) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&address)),
                 "r"(columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void deallocate(word address, word columns) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
}

__device__ __forceinline__ void before_synchronising() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ __forceinline__ void after_synchronising() {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// An arrival once all that this thread has issued is complete.
__device__ __forceinline__ void commit(mbarrier& one) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                     shared_address(&one))
                 : "memory");
}

__device__ __forceinline__ void multiply_f16(word d, descriptor a, descriptor b, word form, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(form), "r"(static_cast<word>(adds))
                 : "memory");
}

// A lies in tensor memory, too.
__device__ __forceinline__ void multiply_f16(word d, word a, descriptor b, word form, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, adds;\n}" ::"r"(d),
                 "r"(a), "l"(b), "r"(form), "r"(static_cast<word>(adds))
                 : "memory");
}

__device__ __forceinline__ void multiply_sparse_f16(
    word d, descriptor a, descriptor b, word metadata, word form, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %5, 0;\n"
                 "tcgen05.mma.sp.cta_group::1.kind::f16 [%0], %1, %2, [%3], %4, adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(metadata), "r"(form), "r"(static_cast<word>(adds))
                 : "memory");
}

__device__ __forceinline__ void multiply_mxf8(
    word d, descriptor a, descriptor b, word form, word scale_a, word scale_b, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %6, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%4], [%5], adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(form), "r"(scale_a), "r"(scale_b), "r"(static_cast<word>(adds))
                 : "memory");
}

__device__ __forceinline__ void multiply_nvf4(
    word d, descriptor a, descriptor b, word form, word scale_a, word scale_b, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %6, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 "
                 "[%0], %1, %2, %3, [%4], [%5], adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(form), "r"(scale_a), "r"(scale_b), "r"(static_cast<word>(adds))
                 : "memory");
}

__device__ __forceinline__ void multiply_f8(word d, descriptor a, descriptor b, word form, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(form), "r"(static_cast<word>(adds))
                 : "memory");
}

__device__ __forceinline__ void multiply_i8(word d, descriptor a, descriptor b, word form, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::i8 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(form), "r"(static_cast<word>(adds))
                 : "memory");
}

__device__ __forceinline__ void multiply_tf32(word d, descriptor a, descriptor b, word form, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
                 "tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(form), "r"(static_cast<word>(adds))
                 : "memory");
}

__device__ __forceinline__ void multiply_sparse_f8(
    word d, descriptor a, descriptor b, word metadata, word form, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %5, 0;\n"
                 "tcgen05.mma.sp.cta_group::1.kind::f8f6f4 [%0], %1, %2, [%3], %4, adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(metadata), "r"(form), "r"(static_cast<word>(adds))
                 : "memory");
}

// B stays in the tensor core, and rows of A go past it.
__device__ __forceinline__ void multiply_stationary_f16(word d, descriptor a, descriptor b, word form, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
                 "tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(form), "r"(static_cast<word>(adds))
                 : "memory");
}

// 128 rows of 16 bytes to four columns, and of 32 bytes to eight.
__device__ __forceinline__ void copy_rows_16(word to, descriptor from) {
    asm volatile("tcgen05.cp.cta_group::1.128x128b [%0], %1;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void copy_rows_32(word to, descriptor from) {
    asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(to), "l"(from) : "memory");
}

// 32 rows of 16 bytes to four columns, once for each quarter of the lanes.
__device__ __forceinline__ void copy_scales(word to, descriptor from) {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from) : "memory");
}

// 16 columns of this warp's 32 lanes.
__device__ __forceinline__ void load_cells(float (&values)[16], word address) {
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
                 : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3]), "=f"(values[4]),
                   "=f"(values[5]), "=f"(values[6]), "=f"(values[7]), "=f"(values[8]), "=f"(values[9]),
                   "=f"(values[10]), "=f"(values[11]), "=f"(values[12]), "=f"(values[13]), "=f"(values[14]),
                   "=f"(values[15])
                 : "r"(address));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void store_cells(word address, const word (&values)[4]) {
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(values[0]),
                 "r"(values[1]), "r"(values[2]), "r"(values[3])
                 : "memory");
}

__device__ __forceinline__ void wait_for_stores() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }
