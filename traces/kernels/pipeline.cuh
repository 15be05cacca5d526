// Pieces of warp-specialised kernels: mbarriers, copies by tensor maps, and the ring of stages between them.
#pragma once

#include "warpgroup.cuh"

struct alignas(64) TensorMap { // what cuTensorMapEncodeTiled makes, or warpsim.tensor_map
    byte content[128];
};

// --- mbarriers ---------------------------------------------------------------------------------------

__device__ __forceinline__ void initialise(word barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive(word barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrive at the same barrier of another CTA of the cluster.
__device__ __forceinline__ void arrive_at(word barrier, word rank) {
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}

__device__ __forceinline__ void arrive_expecting(word barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// The phase of that parity is over. Phases of a fresh barrier have parities 0, 1, 0, ...
__device__ __forceinline__ void await(word barrier, word parity) {
    asm volatile("{\n.reg .pred over;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// The same after arrivals from other CTAs.
__device__ __forceinline__ void await_cluster(word barrier, word parity) {
    asm volatile("{\n.reg .pred over;\nagain:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// --- copies ------------------------------------------------------------------------------------------

// The box of a matrix whose first element is at (row, column) arrives at `to`, and its bytes at `barrier`.
__device__ __forceinline__ void load_box(word to, const TensorMap& map, int column, int row, word barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(&map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

// The same at that place of every CTA of the cluster that has its bit in `ranks`.
__device__ __forceinline__ void load_box_for(unsigned short ranks, word to, const TensorMap& map, int column,
                                             int row, word barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"(ranks)
                 : "memory");
}

__device__ __forceinline__ void store_box(const TensorMap& map, int column, int row, word from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
                 "r"(column), "r"(row), "r"(from)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

// --- the ring ----------------------------------------------------------------------------------------

// Stages of tiles, each with a barrier that is over when it is full, and one when it is empty.
template <int STAGES, int BYTES> struct Ring {
    word tiles, full, empty;

    // Stages at the start of shared memory, barriers behind them.
    __device__ __forceinline__ explicit Ring(const byte* shared)
        : tiles(shared_address(shared)), full(tiles + STAGES * BYTES), empty(full + STAGES * 8) {}

    // One thread; everyone meets at a barrier afterwards.
    __device__ __forceinline__ void initialise_barriers(int readers) const {
        for (int stage = 0; stage < STAGES; ++stage) {
            initialise(full + 8 * stage, 1);
            initialise(empty + 8 * stage, readers);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }

    __device__ __forceinline__ word tile(int step) const { return tiles + step % STAGES * BYTES; }
    __device__ __forceinline__ word filled(int step) const { return full + step % STAGES * 8; }
    __device__ __forceinline__ word emptied(int step) const { return empty + step % STAGES * 8; }
    static __device__ __forceinline__ word parity(int step) { return step / STAGES & 1; }

    // The stage is free: nobody waits in the first round.
    __device__ __forceinline__ void await_empty(int step) const { await(emptied(step), parity(step) ^ 1); }
    __device__ __forceinline__ void await_full(int step) const { await(filled(step), parity(step)); }
};

// --- roles -------------------------------------------------------------------------------------------

template <int REGISTERS> __device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> __device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

__device__ __forceinline__ void meet(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ void pass(int barrier, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ word cluster_rank() {
    word rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void meet_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// D of a warpgroup goes to 64 x 64 of shared memory, and from there by one copy to its place.
__device__ __forceinline__ void store_by_map(const TensorMap& map, byte* staging, int row, int column, int meeting,
                                             const float (&values)[32]) {
    store_products(reinterpret_cast<float*>(staging), 64, 0, 0, values);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    meet(meeting, 128);
    if (threadIdx.x % 128 == 0) store_box(map, column, row, shared_address(staging));
}

// D of a warpgroup is added to 64 x 64 of a matrix in global memory.
__device__ __forceinline__ void add_products(float* d, int n, int row, int column, const float (&values)[32]) {
    const int thread = threadIdx.x % 128, first = row + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
    for (int place = 0; place < 32; ++place) {
        const int below = place % 4 / 2 * 8, right = place / 4 * 8 + thread % 4 * 2 + place % 2;
        atomicAdd(d + static_cast<size_t>(first + below) * n + column + right, values[place]);
    }
}
