// target: sm_90a
// Warp-specialised kernels: one thread loads tiles by tensor maps into a ring, warpgroups multiply them by wgmma.
#include "pipeline.cuh"

constexpr int STAGES = 4;
constexpr int WARPGROUP = 128;
extern __shared__ __align__(1024) byte shared[];

// Four products along the 128 bytes of the rows of a stage; the first stage starts from zero.
__device__ __forceinline__ void multiply_f16(float (&values)[32], const byte* left_tile, const byte* right_tile,
                                             bool accumulate) {
    const word left = shared_address(left_tile), right = shared_address(right_tile);
    begin_products();
#pragma unroll
    for (int part = 0; part < 4; ++part) {
        product_f16(values, descriptor<8>(left + 32 * part), descriptor<8>(right + 32 * part), accumulate || part);
    }
    commit_products();
}

// One thread loads each step of A and B, of so many columns, into a stage, B behind LEFT bytes of A.
template <int A_COLUMNS, int B_COLUMNS, int LEFT, int BYTES>
__device__ __forceinline__ void fill(const Ring<STAGES, BYTES>& ring, const TensorMap& a, const TensorMap& b,
                                     int row, int column, int steps) {
    for (int step = 0; step < steps; ++step) {
        ring.await_empty(step);
        arrive_expecting(ring.filled(step), BYTES);
        load_box(ring.tile(step), a, step * A_COLUMNS, row, ring.filled(step));
        load_box(ring.tile(step) + LEFT, b, step * B_COLUMNS, column, ring.filled(step));
    }
}

// --- cooperative: two warpgroups share each stage ------------------------------------------------------

// A and the columns of B by maps with swizzle 128B and boxes of 128 and 64 rows; D by a map with boxes of
// 64 x 64. A CTA makes 128 x 64 of D; k is a multiple of 64.
extern "C" __global__ void __launch_bounds__(3 * WARPGROUP, 1)
    cooperative_f16(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                    const __grid_constant__ TensorMap d, int k) {
    constexpr int LEFT = 128 * 128, BYTES = LEFT + 64 * 128;
    const Ring<STAGES, BYTES> ring(shared);
    byte* const staging = shared + STAGES * BYTES + 1024;
    const int group = threadIdx.x / WARPGROUP, steps = k / 64;
    const int row = blockIdx.y * 128, column = blockIdx.x * 64;
    if (threadIdx.x == 0) ring.initialise_barriers(2);
    __syncthreads();
    if (group == 2) {
        give_registers<24>();
        if (threadIdx.x == 2 * WARPGROUP) fill<64, 64, LEFT>(ring, a, b, row, column, steps);
        return;
    }
    take_registers<240>();
    float values[32];
    for (int step = 0; step < steps; ++step) {
        ring.await_full(step);
        multiply_f16(values, ring.tile(step) + group * LEFT / 2, ring.tile(step) + LEFT, step > 0);
        wait_products<1>(); // those of the step before have read their stage
        if (step > 0 && threadIdx.x % WARPGROUP == 0) arrive(ring.emptied(step - 1));
    }
    wait_products<0>();
    store_by_map(d, staging + group * 64 * 64 * 4, row + 64 * group, column, 1 + group, values);
}

// --- ping-pong: two warpgroups take turns, one multiplies while the other stores ------------------------

// As cooperative_f16 with boxes of 64 rows. A CTA makes `tiles` tiles of 64 x 64 below each other.
extern "C" __global__ void __launch_bounds__(3 * WARPGROUP, 1)
    pingpong_f16(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                 const __grid_constant__ TensorMap d, int k, int tiles) {
    constexpr int LEFT = 64 * 128, BYTES = 2 * LEFT;
    const Ring<STAGES, BYTES> ring(shared);
    byte* const staging = shared + STAGES * BYTES + 1024;
    const int group = threadIdx.x / WARPGROUP, steps = k / 64;
    const int row = blockIdx.y * tiles * 64, column = blockIdx.x * 64;
    if (threadIdx.x == 0) ring.initialise_barriers(1);
    __syncthreads();
    if (group == 2) {
        give_registers<24>();
        if (threadIdx.x != 2 * WARPGROUP) return;
        for (int at = 0; at < tiles * steps; ++at) {
            ring.await_empty(at);
            arrive_expecting(ring.filled(at), BYTES);
            load_box(ring.tile(at), a, at % steps * 64, row + at / steps * 64, ring.filled(at));
            load_box(ring.tile(at) + LEFT, b, at % steps * 64, column, ring.filled(at));
        }
        return;
    }
    take_registers<240>();
    for (int tile = group; tile < tiles; tile += 2) {
        float values[32];
        if (tile > 0) meet(1 + group, 2 * WARPGROUP); // the other one has issued its last product
        for (int at = tile * steps; at < (tile + 1) * steps; ++at) {
            ring.await_full(at);
            multiply_f16(values, ring.tile(at), ring.tile(at) + LEFT, at > tile * steps);
            wait_products<0>();
            if (threadIdx.x % WARPGROUP == 0) arrive(ring.emptied(at));
        }
        if (tile + 1 < tiles) pass(1 + (group ^ 1), 2 * WARPGROUP);
        store_by_map(d, staging + group * 64 * 64 * 4, row + 64 * tile, column, 3 + group, values);
        meet(3 + group, WARPGROUP); // the copy has read the staging tile
    }
}

// --- a cluster of two: each CTA loads half of A for both --------------------------------------------------

// As cooperative_f16 with boxes of 64 rows; the cluster is (2, 1, 1).
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(3 * WARPGROUP, 1)
    multicast_f16(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                  const __grid_constant__ TensorMap d, int k) {
    constexpr int LEFT = 128 * 128, BYTES = LEFT + 64 * 128;
    const Ring<STAGES, BYTES> ring(shared);
    byte* const staging = shared + STAGES * BYTES + 1024;
    const int group = threadIdx.x / WARPGROUP, steps = k / 64;
    const int row = blockIdx.y * 128, column = blockIdx.x * 64, rank = cluster_rank();
    if (threadIdx.x == 0) ring.initialise_barriers(4); // both warpgroups of both CTAs
    meet_cluster();
    if (group == 2) {
        give_registers<24>();
        if (threadIdx.x == 2 * WARPGROUP) {
            for (int step = 0; step < steps; ++step) {
                wait_for_cluster(ring.emptied(step), ring.parity(step) ^ 1);
                arrive_expecting(ring.filled(step), BYTES);
                load_box_for(3, ring.tile(step) + rank * LEFT / 2, a, step * 64, row + rank * 64,
                             ring.filled(step));
                load_box(ring.tile(step) + LEFT, b, step * 64, column, ring.filled(step));
            }
        }
        __syncwarp();
    } else {
        take_registers<240>();
        float values[32];
        for (int step = 0; step < steps; ++step) {
            ring.await_full(step);
            multiply_f16(values, ring.tile(step) + group * LEFT / 2, ring.tile(step) + LEFT, step > 0);
            wait_products<0>();
            if (threadIdx.x % WARPGROUP < 2) arrive_at(ring.emptied(step), threadIdx.x % WARPGROUP);
        }
        store_by_map(d, staging + group * 64 * 64 * 4, row + 64 * group, column, 1 + group, values);
    }
    meet_cluster(); // nobody leaves while the other one arrives at its barriers
}

// --- A stored two of four ---------------------------------------------------------------------------------

// A's values by a map with swizzle 64B and boxes of 32 x 128, B's columns as in cooperative_f16; the metadata
// words of each lane and step of 32 along k, for every 64 rows.
extern "C" __global__ void __launch_bounds__(3 * WARPGROUP, 1)
    cooperative_sparse_f16(const __grid_constant__ TensorMap a, const word* e, const __grid_constant__ TensorMap b,
                           const __grid_constant__ TensorMap d, int k) {
    constexpr int LEFT = 128 * 64, BYTES = LEFT + 64 * 128;
    const Ring<STAGES, BYTES> ring(shared);
    byte* const staging = shared + STAGES * BYTES + 1024;
    const int group = threadIdx.x / WARPGROUP, steps = k / 64;
    const int row = blockIdx.y * 128, column = blockIdx.x * 64;
    if (threadIdx.x == 0) ring.initialise_barriers(2);
    __syncthreads();
    if (group == 2) {
        give_registers<24>();
        if (threadIdx.x == 2 * WARPGROUP) fill<32, 64, LEFT>(ring, a, b, row, column, steps);
        return;
    }
    take_registers<240>();
    const word* own = e + static_cast<size_t>(2 * blockIdx.y + group) * 2 * steps * 128 + threadIdx.x % WARPGROUP;
    float values[32] = {};
    for (int step = 0; step < steps; ++step) {
        const word metadata[2] = {own[step * 256], own[step * 256 + 128]};
        const word left = shared_address(ring.tile(step)) + group * LEFT / 2;
        const word right = shared_address(ring.tile(step)) + LEFT;
        ring.await_full(step);
        begin_products();
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            product_sparse_f16(values, descriptor<4>(left + 32 * part), descriptor<8>(right + 64 * part),
                               metadata[part]);
        }
        commit_products();
        wait_products<0>();
        if (threadIdx.x % WARPGROUP == 0) arrive(ring.emptied(step));
    }
    store_by_map(d, staging + group * 64 * 64 * 4, row + 64 * group, column, 1 + group, values);
}

// --- fp8 whose sums are promoted --------------------------------------------------------------------------

// As cooperative_f16 with e4m3: rows of 128 elements. After each stage the accumulators are added to others in
// f32; k is a multiple of 128.
extern "C" __global__ void __launch_bounds__(3 * WARPGROUP, 1)
    cooperative_e4m3(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                     const __grid_constant__ TensorMap d, int k) {
    constexpr int LEFT = 128 * 128, BYTES = LEFT + 64 * 128;
    const Ring<STAGES, BYTES> ring(shared);
    byte* const staging = shared + STAGES * BYTES + 1024;
    const int group = threadIdx.x / WARPGROUP, steps = k / 128;
    const int row = blockIdx.y * 128, column = blockIdx.x * 64;
    if (threadIdx.x == 0) ring.initialise_barriers(2);
    __syncthreads();
    if (group == 2) {
        give_registers<24>();
        if (threadIdx.x == 2 * WARPGROUP) fill<128, 128, LEFT>(ring, a, b, row, column, steps);
        return;
    }
    take_registers<240>();
    float total[32] = {};
    for (int step = 0; step < steps; ++step) {
        const word left = shared_address(ring.tile(step)) + group * LEFT / 2;
        const word right = shared_address(ring.tile(step)) + LEFT;
        float values[32];
        ring.await_full(step);
        begin_products();
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            product_e4m3(values, descriptor<8>(left + 32 * part), descriptor<8>(right + 32 * part), part);
        }
        commit_products();
        wait_products<0>();
        if (threadIdx.x % WARPGROUP == 0) arrive(ring.emptied(step));
#pragma unroll
        for (int place = 0; place < 32; ++place) total[place] += values[place];
    }
    store_by_map(d, staging + group * 64 * 64 * 4, row + 64 * group, column, 1 + group, total);
}

// --- stream-K: every CTA has as many steps, wherever tiles begin ---------------------------------------------

// As pingpong_f16 with one warpgroup. The steps of all tiles of 64 x 64, `across` of them in a row, stand in a
// line; a CTA takes `share` of them, and adds what it has of a tile to D, which is zero at first.
extern "C" __global__ void __launch_bounds__(2 * WARPGROUP)
    stream_k_f16(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int k,
                 int across, int tiles, int share) {
    constexpr int LEFT = 64 * 128, BYTES = 2 * LEFT;
    const Ring<STAGES, BYTES> ring(shared);
    const int steps = k / 64, first = blockIdx.x * share, behind = min(first + share, tiles * steps);
    if (threadIdx.x == 0) ring.initialise_barriers(1);
    __syncthreads();
    if (threadIdx.x >= WARPGROUP) {
        if (threadIdx.x != WARPGROUP) return;
        for (int at = first; at < behind; ++at) {
            const int tile = at / steps, column = at % steps * 64, step = at - first;
            ring.await_empty(step);
            arrive_expecting(ring.filled(step), BYTES);
            load_box(ring.tile(step), a, column, tile / across * 64, ring.filled(step));
            load_box(ring.tile(step) + LEFT, b, column, tile % across * 64, ring.filled(step));
        }
        return;
    }
    float values[32];
    for (int at = first; at < behind; ++at) {
        const int tile = at / steps, step = at - first;
        ring.await_full(step);
        multiply_f16(values, ring.tile(step), ring.tile(step) + LEFT, at > first && at % steps);
        wait_products<0>();
        if (threadIdx.x == 0) arrive(ring.emptied(step));
        if (at + 1 < behind && (at + 1) % steps) continue;
        add_products(d, across * 64, tile / across * 64, tile % across * 64, values);
    }
}
