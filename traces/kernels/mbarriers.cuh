// mbarriers, bulk copies and the fences between them: a statement of PTX each.
#pragma once
#include "tiles.cuh"

typedef unsigned long long mbarrier;

__device__ __forceinline__ void initialise(mbarrier& one, word count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&one)), "r"(count) : "memory");
}

// What has been initialised is there for copies that complete, too.
__device__ __forceinline__ void fence_initialised() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void arrive(mbarrier& one) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&one)) : "memory");
}

__device__ __forceinline__ void arrive_expecting(mbarrier& one, word bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&one)), "r"(bytes)
                 : "memory");
}

// Until the phase of that parity is over.
__device__ __forceinline__ void wait_for(mbarrier& one, word parity) {
    asm volatile("{\n.reg .pred over;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n}" ::"r"(shared_address(&one)),
                 "r"(parity)
                 : "memory");
}

__device__ __forceinline__ void copy_in(void* to, const void* from, word bytes, mbarrier& one) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&one))
                 : "memory");
}

__device__ __forceinline__ void copy_out(void* to, const void* from, word bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void commit_bulk() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until this lane's copies have read their sources.
__device__ __forceinline__ void wait_until_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// What has been stored in shared memory is there for copies.
__device__ __forceinline__ void fence_for_copies() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void multiply_add(float (&d)[4], const word (&a)[4], word b0, word b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
