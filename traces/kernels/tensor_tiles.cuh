// Kernels of Blackwell's tensor core with tiles of 128 x 64: a thread loads tiles by TMA into a ring of stages,
// another multiplies them into tensor memory and commits, four warps read D there and store it.
#pragma once
#include "tensor_memory.cuh"

const int STAGES = 3, ROWS = 128, COLUMNS = 64, WIDTH = 128;  // of a tile; WIDTH bytes of k a step
const int READERS = 4, THREADS = 192;                         // warps that read D; two more load and multiply
const int ALLOCATED = 128, METADATA = 64, SCALES_A = 64, SCALES_B = 68;  // columns of tensor memory, D first

struct Stage {
    alignas(1024) byte a[ROWS * WIDTH];
    alignas(1024) byte b[2][COLUMNS * WIDTH];  // the second half is that of a sparse A
    alignas(128) byte scales_a[512], scales_b[512];
};

extern __shared__ __align__(1024) byte memory[];
__shared__ alignas(8) mbarrier full[STAGES], empty[STAGES], done;
__shared__ word tensor_memory;

// Where a ring stands: the stage, and the parity of the phase that its user waits for.
struct Turn {
    int stage;
    word parity;

    __device__ __forceinline__ void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

__device__ __forceinline__ Stage* stages() { return reinterpret_cast<Stage*>(memory); }

__device__ __forceinline__ void begin() {
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            initialise(full[stage], 1);
            initialise(empty[stage], 1);
        }
        initialise(done, 1);
        fence_initialised();
    }
    if (threadIdx.x / 32 == READERS) allocate(tensor_memory, ALLOCATED);
    before_synchronising();
    __syncthreads();
    after_synchronising();
}

// D goes from tensor memory to its rows.
__device__ __forceinline__ void store(float* d, int n) {
    const word warp = threadIdx.x / 32;
    float* row = d + static_cast<size_t>(blockIdx.y * ROWS + threadIdx.x) * n + blockIdx.x * COLUMNS;
    wait_for(done, 0);
    after_synchronising();
    for (int column = 0; column < COLUMNS; column += 16) {
        float values[16];
        load_cells(values, tensor_memory + (warp * 32 << 16) + column);
        for (int each = 0; each < 16; each++) row[column + each] = values[each];
    }
    before_synchronising();
}

__device__ __forceinline__ void end() {
    __syncthreads();
    if (threadIdx.x / 32 == READERS) deallocate(tensor_memory, ALLOCATED);
}

// The loops of the thread that loads and of the thread that multiplies: ``load`` and ``multiply`` of each stage.
template <typename Load, typename Multiply>
__device__ __forceinline__ void product(float* d, int n, int steps, Load load, Multiply multiply) {
    const word warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp == READERS && lane == 0) {
        Turn turn = {0, 1};  // the phase before the first one is over
        for (int step = 0; step < steps; step++, turn.next()) {
            wait_for(empty[turn.stage], turn.parity);
            load(step, stages()[turn.stage], full[turn.stage]);
        }
    } else if (warp == READERS + 1 && lane == 0) {
        Turn turn = {0, 0};
        for (int step = 0; step < steps; step++, turn.next()) {
            wait_for(full[turn.stage], turn.parity);
            after_synchronising();
            multiply(step, stages()[turn.stage]);
            commit(empty[turn.stage]);
        }
        commit(done);
    } else if (warp < READERS) {
        store(d, n);
    }
    __syncwarp();
}

const word F32 = 1 << 4, SHAPE = COLUMNS / 8 << 17 | ROWS / 16 << 24;  // fields of instruction descriptors
const word SPARSE = 1 << 2, E2M1 = 1 << 7 | 1 << 10, UE8M0 = 1 << 23;
