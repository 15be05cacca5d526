// target: sm_90a
// A ring of stages between a thread that loads boxes of tensors and four warps that multiply them; D leaves by
// tensor stores, or is added to what is there. What lies outside of A and B is zero, of D is not stored.
#include "tensors.cuh"

const int STAGES = 3, ROWS = 64, COLUMNS = 32, DEPTH = 64;  // of a tile; DEPTH elements of f16 are 128 bytes
const int CONSUMERS = 4;                                    // warps, 16 rows each

struct Stage {
    alignas(1024) byte a[ROWS * DEPTH * 2];
    alignas(1024) byte b[COLUMNS * DEPTH * 2];
};

__shared__ Stage stages[STAGES];
__shared__ alignas(1024) byte results[ROWS * COLUMNS * 4];  // rows of 128 bytes
__shared__ alignas(8) mbarrier full[STAGES], empty[STAGES];

// Where a ring stands: the stage, and the parity of the phase that its user waits for.
struct Turn {
    int stage;
    word parity;

    __device__ __forceinline__ void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

// The part of k that a CTA has, in steps of DEPTH; gridDim.y CTAs share it.
struct Share {
    int first, past;

    __device__ explicit Share(int k) {
        const int steps = (k + DEPTH - 1) / DEPTH, each = (steps + gridDim.y - 1) / gridDim.y;
        first = min(static_cast<int>(blockIdx.y) * each, steps), past = min(first + each, steps);
    }
};

__device__ __forceinline__ void produce(const TensorMap& a, const TensorMap& b, int tiles, int across, Share share) {
    Turn turn = {0, 1};  // the phase before the first one is over
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
#pragma unroll 1
        for (int step = share.first; step < share.past; step++, turn.next()) {
            Stage& stage = stages[turn.stage];
            wait_for(empty[turn.stage], turn.parity);
            arrive_expecting(full[turn.stage], sizeof(stage.a) + sizeof(stage.b));
            load_box(stage.a, a, step * DEPTH, tile / across * ROWS, full[turn.stage]);
            load_box(stage.b, b, step * DEPTH, tile % across * COLUMNS, full[turn.stage]);
        }
    }
}

// 16 rows and 32 columns, DEPTH deep.
__device__ __forceinline__ void multiply(float (&d)[4][4], const Stage& stage) {
    const word lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const word a = shared_address(stage.a), b = shared_address(stage.b);
    const word row = warp * 16 + lane % 16, column = lane % 8 + lane / 16 * 8;
    for (int step = 0; step < DEPTH / 16; step++) {
        word left[4], right[2][4];
        load_matrices(left, a + swizzled(row, step * 2 + lane / 16));
        load_matrices(right[0], b + swizzled(column, step * 2 + lane / 8 % 2));
        load_matrices(right[1], b + swizzled(column + 16, step * 2 + lane / 8 % 2));
        for (int part = 0; part < 4; part++)
            multiply_add(d[part], left, right[part / 2][part % 2 * 2], right[part / 2][part % 2 * 2 + 1]);
    }
}

__device__ __forceinline__ void meet_consumers() { asm volatile("bar.sync 1, 128;" ::: "memory"); }

// The tile goes to shared memory, swizzled as the map of D says, and from there to D.
template <bool ADDS>
__device__ __forceinline__ void store(const TensorMap& d, int x, int y, const float (&values)[4][4]) {
    const word lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
    if (threadIdx.x == 0) wait_until_read();
    meet_consumers();
    for (int part = 0; part < 4; part++) {
        const word chunk = part * 2 + lane % 4 / 2;
        for (int half = 0; half < 2; half++) {
            byte* place = results + swizzled(row + half * 8, chunk) + lane % 2 * 8;
            *reinterpret_cast<float2*>(place) = make_float2(values[part][half * 2], values[part][half * 2 + 1]);
        }
    }
    fence_for_copies();
    meet_consumers();
    if (threadIdx.x == 0) {
        if (ADDS) reduce_box(d, x, y, results);
        else store_box(d, x, y, results);
        commit_bulk();
    }
}

template <bool ADDS>
__device__ __forceinline__ void consume(const TensorMap& d, int tiles, int across, Share share) {
    const word lane = threadIdx.x % 32;
    Turn turn = {0, 0};
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sums[4][4] = {};
#pragma unroll 1
        for (int step = share.first; step < share.past; step++, turn.next()) {
            wait_for(full[turn.stage], turn.parity);
            multiply(sums, stages[turn.stage]);
            __syncwarp();
            if (lane == 0) arrive(empty[turn.stage]);
        }
        store<ADDS>(d, tile % across * COLUMNS, tile / across * ROWS, sums);
    }
    if (threadIdx.x == 0) wait_until_read();
}

template <bool ADDS>
__device__ __forceinline__ void product(
    const TensorMap& a, const TensorMap& b, const TensorMap& d, int m, int n, int k) {
    if (threadIdx.x == 0) {
        prefetch_map(a);
        prefetch_map(b);
        prefetch_map(d);
        for (int stage = 0; stage < STAGES; stage++) {
            initialise(full[stage], 1);
            initialise(empty[stage], CONSUMERS);
        }
        fence_initialised();
    }
    __syncthreads();
    const int across = (n + COLUMNS - 1) / COLUMNS, tiles = (m + ROWS - 1) / ROWS * across;
    const Share share(k);
    if (threadIdx.x / 32 < CONSUMERS) consume<ADDS>(d, tiles, across, share);
    else if (threadIdx.x % 32 == 0) produce(a, b, tiles, across, share);
}

// D (m, n) = A (m, k) times B, whose columns lie one after the other; CTAs take tiles in turn.
extern "C" __global__ void __launch_bounds__(160)
    tensor_ring(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                const __grid_constant__ TensorMap d, int m, int n, int k) {
    product<false>(a, b, d, m, n, k);
}

// The same, D += A B, with shares of k.
extern "C" __global__ void __launch_bounds__(160)
    tensor_split(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                 const __grid_constant__ TensorMap d, int m, int n, int k) {
    product<true>(a, b, d, m, n, k);
}
