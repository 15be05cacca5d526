// target: sm_90a
// A ring of stages between a warp that starts bulk copies and two that multiply with mma; D leaves by bulk stores.
#include "mbarriers.cuh"
#include "tiles.cuh"

const int STAGES = 3, ROWS = 32, COLUMNS = 32, DEPTH = 32;  // of a tile; DEPTH elements of f16 are 64 bytes
const int PITCH = DEPTH * 2 + 16;                           // bytes from one row of a stage to the next
const int CONSUMERS = 2;                                    // warps, 16 rows each

struct Stage {
    alignas(128) byte a[ROWS * PITCH], b[COLUMNS * PITCH];
};

__shared__ Stage stages[STAGES];
__shared__ alignas(128) float results[CONSUMERS][16 * COLUMNS];
__shared__ alignas(8) mbarrier full[STAGES], empty[STAGES];

// Where a ring stands: the stage, and the parity of the phase that its user waits for.
struct Turn {
    int stage;
    word parity;

    __device__ __forceinline__ void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

// Lane i copies row i of A and column i of B of each step, as soon as the stage is empty.
__device__ __forceinline__ void produce(const byte* a, const byte* b, int tiles, int across, int k) {
    const word lane = threadIdx.x % 32;
    Turn turn = {0, 1};  // the phase before the first one is over
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const byte* row = a + (static_cast<size_t>(tile / across) * ROWS + lane) * k * 2;
        const byte* column = b + (static_cast<size_t>(tile % across) * COLUMNS + lane) * k * 2;
#pragma unroll 1
        for (int done = 0; done < k; done += DEPTH, turn.next()) {
            Stage& stage = stages[turn.stage];
            wait_for(empty[turn.stage], turn.parity);
            if (lane == 0) arrive_expecting(full[turn.stage], (ROWS + COLUMNS) * DEPTH * 2);
            __syncwarp();
            copy_in(stage.a + lane * PITCH, row + done * 2, DEPTH * 2, full[turn.stage]);
            copy_in(stage.b + lane * PITCH, column + done * 2, DEPTH * 2, full[turn.stage]);
        }
    }
}

// 16 rows and 32 columns, DEPTH deep.
__device__ __forceinline__ void multiply(float (&d)[4][4], const Stage& stage) {
    const word lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const word a = shared_address(stage.a) + (warp * 16 + lane % 16) * PITCH + lane / 16 * 16;
    const word b = shared_address(stage.b) + (lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 16;
    for (int step = 0; step < DEPTH / 16; step++) {
        word left[4], right[2][4];
        load_matrices(left, a + step * 32);
        load_matrices(right[0], b + step * 32);
        load_matrices(right[1], b + step * 32 + 16 * PITCH);
        for (int column = 0; column < 4; column++)
            multiply_add(d[column], left, right[column / 2][column % 2 * 2], right[column / 2][column % 2 * 2 + 1]);
    }
}

// The tile of a warp goes to shared memory, and from there by 16 lanes, a row each, to D.
__device__ __forceinline__ void store(float* d, int n, const float (&values)[4][4]) {
    const word lane = threadIdx.x % 32;
    float* held = results[threadIdx.x / 32];
    wait_until_read();
    __syncwarp();
    for (int column = 0; column < 4; column++)
        store_tile(held, COLUMNS, 0, column * 8, values[column]);
    fence_for_copies();
    __syncwarp();
    if (lane < 16) copy_out(d + static_cast<size_t>(lane) * n, held + lane * COLUMNS, COLUMNS * 4);
    commit_bulk();
}

__device__ __forceinline__ void consume(float* d, int tiles, int across, int n, int k) {
    const word lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Turn turn = {0, 0};
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float sums[4][4] = {};
#pragma unroll 1
        for (int done = 0; done < k; done += DEPTH, turn.next()) {
            wait_for(full[turn.stage], turn.parity);
            multiply(sums, stages[turn.stage]);
            __syncwarp();
            if (lane == 0) arrive(empty[turn.stage]);
        }
        const size_t row = tile / across * ROWS + warp * 16;
        store(d + row * n + tile % across * COLUMNS, n, sums);
    }
    wait_until_read();
}

// D (m, n) = A (m, k) times B, whose columns lie one after the other; CTAs take tiles in turn.
extern "C" __global__ void __launch_bounds__(96)
    bulk_ring(const byte* a, const byte* b, float* d, int m, int n, int k) {
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            initialise(full[stage], 1);
            initialise(empty[stage], CONSUMERS);
        }
        fence_initialised();
    }
    __syncthreads();
    const int across = n / COLUMNS, tiles = m / ROWS * across;
    if (threadIdx.x / 32 == CONSUMERS) produce(a, b, tiles, across, k);
    else consume(d, tiles, across, n, k);
}
