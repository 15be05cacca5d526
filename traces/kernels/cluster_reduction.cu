// target: sm_90a
// CTAs of a cluster that reduce together: through loads, atomics and asynchronous reductions of shared memory.
#include <climits>

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

// The sum of each row, a cluster a row: a tree in each CTA, then the first one reads the others' sums.
extern "C" __global__ void cluster_sum(const int* values, int length, long long* sums) {
    extern __shared__ long long partial[];
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned ranks = cluster.num_blocks(), rank = cluster.block_rank();
    const int row = blockIdx.x / ranks;
    long long mine = 0;
#pragma unroll 1
    for (int i = rank * blockDim.x + threadIdx.x; i < length; i += ranks * blockDim.x) {
        mine += values[row * length + i];
    }
    partial[threadIdx.x] = mine;
    __syncthreads();
#pragma unroll 1
    for (int width = blockDim.x / 2; width; width /= 2) {
        if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
        __syncthreads();
    }
    cluster.sync();
    if (rank == 0 && threadIdx.x == 0) {
        long long total = 0;
#pragma unroll 1
        for (unsigned other = 0; other < ranks; other++) total += *cluster.map_shared_rank(partial, other);
        sums[row] = total;
    }
    cluster.sync();  // the others' memory stays until it has been read
}

// A histogram whose bins are shared out over the CTAs of each cluster; clusters add theirs in global memory.
extern "C" __global__ void cluster_histogram(const unsigned* values, int count, unsigned* bins, int width) {
    extern __shared__ unsigned local[];  // width bins of each CTA
    const cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < width; i += blockDim.x) local[i] = 0;
    cluster.sync();
    const unsigned total = width * cluster.num_blocks();
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const unsigned bin = values[i] % total;
        atomicAdd(cluster.map_shared_rank(local, bin / width) + bin % width, 1u);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        atomicAdd(bins + cluster.block_rank() * width + i, local[i]);
    }
}

__device__ unsigned shared_address(const void* place) {
    return static_cast<unsigned>(__cvta_generic_to_shared(place));
}

__device__ unsigned in_cta(unsigned address, unsigned rank) {
    unsigned found;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(address), "r"(rank));
    return found;
}

// The largest value of each row and where it is first, known to every CTA of the row's cluster of four: each sends
// its candidate to the others, which wait for the bytes at an mbarrier. found: value and place by each CTA.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_argmax(const int* values, int length, int2* found) {
    __shared__ alignas(8) unsigned long long barrier;
    __shared__ alignas(8) int2 candidates[4];
    __shared__ int best[2];
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned rank = cluster.block_rank(), at = shared_address(&barrier);
    if (threadIdx.x == 0) {
        best[0] = INT_MIN;
        best[1] = INT_MAX;
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 24;" ::"r"(at) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    __syncthreads();
    const int* row = values + (blockIdx.x / 4) * length;
    int largest = INT_MIN;
#pragma unroll 1
    for (int i = rank * blockDim.x + threadIdx.x; i < length; i += 4 * blockDim.x) largest = max(largest, row[i]);
    atomicMax(best, largest);
    __syncthreads();
#pragma unroll 1
    for (int i = rank * blockDim.x + threadIdx.x; i < length; i += 4 * blockDim.x) {
        if (row[i] == best[0]) atomicMin(best + 1, i);
    }
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    __syncthreads();
    if (threadIdx.x < 4 && threadIdx.x != rank) {
        asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, [%3];" ::"r"(
                         in_cta(shared_address(candidates + rank), threadIdx.x)),
                     "r"(best[0]), "r"(best[1]), "r"(in_cta(at, threadIdx.x))
                     : "memory");
    }
    if (threadIdx.x == 0) {
        asm volatile(
            "{ .reg .pred over;\n"
            "again:\n"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], 0;\n"
            "@!over bra again;\n"
            "}" ::"r"(at)
            : "memory");
        candidates[rank] = make_int2(best[0], best[1]);
        int2 answer = candidates[0];
        for (unsigned other = 1; other < 4; other++) {
            const int2 theirs = candidates[other];
            if (theirs.x > answer.x || (theirs.x == answer.x && theirs.y < answer.y)) answer = theirs;
        }
        found[blockIdx.x] = answer;
    }
}
