// Pieces of warp-specialised kernels: the ring of stages between copies by tensor maps and products.
#pragma once

#include "tensors.cuh"
#include "warpgroup.cuh"

// --- clusters ----------------------------------------------------------------------------------------

// Arrive at the same barrier of another CTA of the cluster.
__device__ __forceinline__ void arrive_at(mbarrier& one, word rank) {
    asm volatile("{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(&one)),
                 "r"(rank)
                 : "memory");
}

// Until the phase of that parity is over, to which other CTAs arrive.
__device__ __forceinline__ void wait_for_cluster(mbarrier& one, word parity) {
    asm volatile("{\n.reg .pred over;\nagain:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n}" ::"r"(shared_address(&one)),
                 "r"(parity)
                 : "memory");
}

// A box arrives at that place of every CTA of the cluster that has its bit in `ranks`.
__device__ __forceinline__ void load_box_for(unsigned short ranks, void* to, const TensorMap& map, int x, int y,
                                             mbarrier& one) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
                 "l"(&map), "r"(x), "r"(y), "r"(shared_address(&one)), "h"(ranks)
                 : "memory");
}

__device__ __forceinline__ word cluster_rank() {
    word rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void meet_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// --- the ring ----------------------------------------------------------------------------------------

// Stages of tiles, each with a barrier whose phase is over when it is full, and one when it is empty.
template <int STAGES, int BYTES> struct Ring {
    byte* tiles;
    mbarrier *full, *empty;

    // Stages at the start of shared memory, barriers behind them.
    __device__ __forceinline__ explicit Ring(byte* shared)
        : tiles(shared), full(reinterpret_cast<mbarrier*>(shared + STAGES * BYTES)), empty(full + STAGES) {}

    // One thread; everyone meets at a barrier afterwards.
    __device__ __forceinline__ void initialise_barriers(int readers) const {
        for (int stage = 0; stage < STAGES; ++stage) {
            initialise(full[stage], 1);
            initialise(empty[stage], readers);
        }
        fence_initialised();
    }

    __device__ __forceinline__ byte* tile(int step) const { return tiles + step % STAGES * BYTES; }
    __device__ __forceinline__ mbarrier& filled(int step) const { return full[step % STAGES]; }
    __device__ __forceinline__ mbarrier& emptied(int step) const { return empty[step % STAGES]; }
    static __device__ __forceinline__ word parity(int step) { return step / STAGES & 1; }

    // The stage is free: nobody waits in the first round.
    __device__ __forceinline__ void await_empty(int step) const { wait_for(emptied(step), parity(step) ^ 1); }
    __device__ __forceinline__ void await_full(int step) const { wait_for(filled(step), parity(step)); }
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

// D of a warpgroup goes to 64 x 64 of shared memory, and from there by one copy to its place.
__device__ __forceinline__ void store_by_map(const TensorMap& map, byte* staging, int row, int column, int meeting,
                                             const float (&values)[32]) {
    store_products(reinterpret_cast<float*>(staging), 64, 0, 0, values);
    fence_for_copies();
    meet(meeting, 128);
    if (threadIdx.x % 128 == 0) {
        store_box(map, column, row, staging);
        commit_bulk();
        wait_until_read();
    }
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
