// target: sm_100a
// Pipelines of Blackwell's tensor core that hand tensor memory from one part of a CTA to another: tiles stored by
// threads, a softmax-like step between two products, two accumulators in turn, and a pair of CTAs.
// Every D is 128 x 64 of f32, every tile K-major with rows of 128 bytes.
#include "tensor_memory.cuh"

const int ROWS = 128, COLUMNS = 64, STEP = 64;  // of a tile; STEP elements of k
const int READERS = 4, THREADS = 192;           // warps that read D; two more load and multiply
const word F32 = 1 << 4, SHAPE = COLUMNS / 8 << 17 | ROWS / 16 << 24;  // fields of instruction descriptors
const word TILE = ROWS * 128, SMALL = COLUMNS * 128;                    // bytes of tiles

extern __shared__ __align__(1024) byte memory[];
__shared__ alignas(8) mbarrier full[2], empty[2], ready[2], taken[2];
__shared__ word tensor_memory;

struct Turn {
    int stage;
    word parity;

    __device__ __forceinline__ void next() {
        if (++stage == 2) stage = 0, parity ^= 1;
    }
};

__device__ __forceinline__ void begin(word fills, word reads, word columns) {
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; stage++) {
            initialise(full[stage], fills);
            initialise(empty[stage], 1);
            initialise(ready[stage], 1);
            initialise(taken[stage], reads);
        }
        fence_initialised();
    }
    if (threadIdx.x / 32 == READERS) allocate(tensor_memory, columns);
    before_synchronising();
    __syncthreads();
    after_synchronising();
}

__device__ __forceinline__ void end(word columns) {
    before_synchronising();
    __syncthreads();
    if (threadIdx.x / 32 == READERS) deallocate(tensor_memory, columns);
}

// One step of 64 elements of k.
__device__ __forceinline__ void multiply(word d, const byte* a, const byte* b, bool adds) {
#pragma unroll
    for (int part = 0; part < 4; part++)
        multiply_f16(d, tile_descriptor(a + part * 32, 1024, SWIZZLE_128B), tile_descriptor(b + part * 32, 1024, SWIZZLE_128B),
                     SHAPE | F32, adds || part > 0);
}

// A row of D, as a thread of the first four warps has it.
__device__ __forceinline__ void store_row(float* row, word d) {
    const word lanes = threadIdx.x / 32 * 32 << 16;
#pragma unroll 1
    for (int column = 0; column < COLUMNS; column += 16) {
        float values[16];
        load_cells(values, d + lanes + column);
        for (int each = 0; each < 16; each++) row[column + each] = values[each];
    }
}

// D (128, 64) = A (128, k) times B, whose columns lie one after the other: threads store the tiles, a warp multiplies.
extern "C" __global__ void __launch_bounds__(160) tensor_stored(const uint4* a, const uint4* b, float* d, int k) {
    begin(128, 1, 64);
    const int warp = threadIdx.x / 32, steps = k / STEP, pitch = k / 8;
    Turn turn = {0, 0};
    if (warp < READERS) {
#pragma unroll 1
        for (int step = 0; step < steps; step++, turn.next()) {
            byte* tile = memory + turn.stage * (TILE + SMALL);
            wait_for(empty[turn.stage], turn.parity ^ 1);
            for (int chunk = 0; chunk < 8; chunk++) {
                const int row = threadIdx.x, from = step * 8 + chunk;
                *reinterpret_cast<uint4*>(tile + swizzled(row, chunk)) = a[row * pitch + from];
                if (row < COLUMNS)
                    *reinterpret_cast<uint4*>(tile + TILE + swizzled(row, chunk)) = b[row * pitch + from];
            }
            fence_for_copies();
            arrive(full[turn.stage]);
        }
        wait_for(ready[0], 0);
        after_synchronising();
        store_row(d + threadIdx.x * COLUMNS, tensor_memory);
    } else if (threadIdx.x % 32 == 0) {
#pragma unroll 1
        for (int step = 0; step < steps; step++, turn.next()) {
            const byte* tile = memory + turn.stage * (TILE + SMALL);
            wait_for(full[turn.stage], turn.parity);
            after_synchronising();
            multiply(tensor_memory, tile, tile + TILE, step > 0);
            commit(empty[turn.stage]);
        }
        commit(ready[0]);
    }
    __syncwarp();
    end(64);
}

// O (128, 64) = f16(max(Q K', 0) / 8) V: Q (128, 64), K (keys, 64), V' (64, keys). S lies in columns 0 to 63, P in 64
// to 95, O in 128 to 191.
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_attention(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k,
                     const __grid_constant__ TensorMap v, float* o, int keys) {
    begin(1, 128, 256);
    const int warp = threadIdx.x / 32, blocks = keys / 64;
    byte* const query = memory + 2 * 2 * SMALL;
    const word s = tensor_memory, p = s + 64, sums = s + 128;
    Turn turn = {0, 0};
    if (warp == READERS && threadIdx.x % 32 == 0) {
#pragma unroll 1
        for (int block = 0; block < blocks; block++, turn.next()) {
            byte* tile = memory + turn.stage * 2 * SMALL;
            wait_for(empty[turn.stage], turn.parity ^ 1);
            arrive_expecting(full[turn.stage], 2 * SMALL + (block ? 0 : TILE));
            if (block == 0) load_box(query, q, 0, 0, full[0]);
            load_box(tile, k, 0, block * 64, full[turn.stage]);
            load_box(tile + SMALL, v, block * 64, 0, full[turn.stage]);
        }
    } else if (warp == READERS + 1 && threadIdx.x % 32 == 0) {
#pragma unroll 1
        for (int block = 0; block < blocks; block++, turn.next()) {
            const byte* tile = memory + turn.stage * 2 * SMALL;
            wait_for(full[turn.stage], turn.parity);
            after_synchronising();
            multiply(s, query, tile, false);
            commit(ready[0]);
            wait_for(taken[0], block & 1);  // P is there, S has been read
            after_synchronising();
#pragma unroll
            for (int part = 0; part < 4; part++)
                multiply_f16(sums, p + part * 8, tile_descriptor(tile + SMALL + part * 32, 1024, SWIZZLE_128B),
                             SHAPE | F32, block > 0 || part > 0);
            commit(empty[turn.stage]);
            commit(ready[1]);
        }
    } else if (warp < READERS) {
        const word lanes = warp * 32 << 16;
#pragma unroll 1
        for (int block = 0; block < blocks; block++) {
            wait_for(ready[0], block & 1);
            after_synchronising();
            if (block) wait_for(ready[1], (block - 1) & 1);  // P has been read
#pragma unroll 1
            for (int column = 0; column < 64; column += 16) {
                float values[16];
                load_cells(values, s + lanes + column);
                for (int half = 0; half < 2; half++) {
                    word pairs[4];
                    for (int each = 0; each < 4; each++) {
                        const float low = fmaxf(values[half * 8 + each * 2], 0.0f) * 0.125f;
                        const float high = fmaxf(values[half * 8 + each * 2 + 1], 0.0f) * 0.125f;
                        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pairs[each]) : "f"(high), "f"(low));
                    }
                    store_cells(p + lanes + column / 2 + half * 4, pairs);
                }
            }
            wait_for_stores();
            before_synchronising();
            arrive(taken[0]);
        }
        wait_for(ready[1], (blocks - 1) & 1);
        after_synchronising();
        store_row(o + threadIdx.x * COLUMNS, sums);
    }
    __syncwarp();
    end(256);
}

// D (tiles * 128, 64) = A (tiles * 128, k) times B, whose columns lie one after the other: two accumulators, so that
// a tile is multiplied while the one before is stored.
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_in_turn(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int tiles, int k) {
    begin(1, 128, 128);
    const int warp = threadIdx.x / 32, steps = k / STEP;
    Turn turn = {0, 0}, sums = {0, 0};
    if (warp == READERS && threadIdx.x % 32 == 0) {
#pragma unroll 1
        for (int step = 0; step < tiles * steps; step++, turn.next()) {
            byte* tile = memory + turn.stage * (TILE + SMALL);
            wait_for(empty[turn.stage], turn.parity ^ 1);
            arrive_expecting(full[turn.stage], TILE + SMALL);
            load_box(tile, a, step % steps * STEP, step / steps * ROWS, full[turn.stage]);
            load_box(tile + TILE, b, step % steps * STEP, 0, full[turn.stage]);
        }
    } else if (warp == READERS + 1 && threadIdx.x % 32 == 0) {
#pragma unroll 1
        for (int tile_ = 0; tile_ < tiles; tile_++, sums.next()) {
            wait_for(taken[sums.stage], sums.parity ^ 1);
            after_synchronising();
#pragma unroll 1
            for (int step = 0; step < steps; step++, turn.next()) {
                const byte* tile = memory + turn.stage * (TILE + SMALL);
                wait_for(full[turn.stage], turn.parity);
                after_synchronising();
                multiply(tensor_memory + sums.stage * COLUMNS, tile, tile + TILE, step > 0);
                commit(empty[turn.stage]);
            }
            commit(ready[sums.stage]);
        }
    } else if (warp < READERS) {
#pragma unroll 1
        for (int tile = 0; tile < tiles; tile++, sums.next()) {
            wait_for(ready[sums.stage], sums.parity);
            after_synchronising();
            store_row(d + static_cast<size_t>(tile * ROWS + threadIdx.x) * COLUMNS, tensor_memory + sums.stage * COLUMNS);
            before_synchronising();
            arrive(taken[sums.stage]);
        }
    }
    __syncwarp();
    end(128);
}

// --- pairs -------------------------------------------------------------------------------------------

__device__ __forceinline__ word rank_of() {
    word rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ __forceinline__ void meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// A box comes to this CTA, and its bytes count at the barrier of the leader, whose rank is even.
__device__ __forceinline__ void load_half(void* to, const TensorMap& map, int x, int y, mbarrier& one) {
    asm volatile("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
                 "l"(&map), "r"(x), "r"(y), "r"(shared_address(&one) & 0xFEFFFFFF)
                 : "memory");
}

__device__ __forceinline__ void multiply_pair(word d, descriptor a, descriptor b, word form, bool adds) {
    asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
                 "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, adds;\n}" ::"r"(d),
                 "l"(a), "l"(b), "r"(form), "r"(static_cast<word>(adds))
                 : "memory");
}

__device__ __forceinline__ void commit_pair(mbarrier& one) {
    asm volatile("{\n.reg .b16 both;\nmov.b16 both, 3;\n"
                 "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], both;\n}" ::"r"(
                     shared_address(&one))
                 : "memory");
}

// D (256, 64) = A (256, k) times B, whose columns lie one after the other: each CTA of the pair loads half of A and B.
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(THREADS)
    tensor_pair(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int k) {
    const int warp = threadIdx.x / 32, steps = k / STEP;
    const word rank = rank_of();
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < 2; stage++) {
            initialise(full[stage], 1);
            initialise(empty[stage], 1);
        }
        initialise(ready[0], 1);
        fence_initialised();
    }
    if (warp == READERS) {
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(shared_address(&tensor_memory))
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
    }
    before_synchronising();
    meet();
    after_synchronising();
    Turn turn = {0, 0};
    if (warp == READERS && threadIdx.x % 32 == 0) {
#pragma unroll 1
        for (int step = 0; step < steps; step++, turn.next()) {
            byte* tile = memory + turn.stage * (TILE + SMALL / 2);
            wait_for(empty[turn.stage], turn.parity ^ 1);
            if (rank == 0) arrive_expecting(full[turn.stage], 2 * TILE + SMALL);
            load_half(tile, a, step * STEP, rank * ROWS, full[turn.stage]);
            load_half(tile + TILE, b, step * STEP, rank * COLUMNS / 2, full[turn.stage]);
        }
    } else if (warp == READERS + 1 && threadIdx.x % 32 == 0 && rank == 0) {
#pragma unroll 1
        for (int step = 0; step < steps; step++, turn.next()) {
            const byte* tile = memory + turn.stage * (TILE + SMALL / 2);
            wait_for(full[turn.stage], turn.parity);
            after_synchronising();
#pragma unroll
            for (int part = 0; part < 4; part++)
                multiply_pair(tensor_memory, tile_descriptor(tile + part * 32, 1024, SWIZZLE_128B),
                              tile_descriptor(tile + TILE + part * 32, 1024, SWIZZLE_128B),
                              COLUMNS / 8 << 17 | 2 * ROWS / 16 << 24 | F32, step > 0 || part > 0);
            commit_pair(empty[turn.stage]);
        }
        commit_pair(ready[0]);
    } else if (warp < READERS) {
        wait_for(ready[0], 0);
        after_synchronising();
        store_row(d + static_cast<size_t>(rank * ROWS + threadIdx.x) * COLUMNS, tensor_memory);
        before_synchronising();
    }
    __syncwarp();
    meet();
    if (warp == READERS)
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 64;" ::"r"(tensor_memory) : "memory");
}
