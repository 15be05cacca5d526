// target: sm_100a
// Tiles of D of 128 x 64 by CTAs that go on: with the tile of a CTA that has not begun (clusterlaunchcontrol), or
// with their share of the steps of all tiles (stream-K). Two accumulators in turn: one is read while the other
// one is multiplied.
#include "tensor_tiles.cuh"

const int ACCUMULATORS = 2;

__shared__ alignas(16) byte answer[16];
__shared__ alignas(8) mbarrier accumulated[ACCUMULATORS], stored[ACCUMULATORS], answered, known;

// A tile of D, and whether there is one.
struct Tile {
    int x, y;
    bool any;
};

__device__ __forceinline__ void begin_persistent() {
    if (threadIdx.x == 0) {
        for (int each = 0; each < ACCUMULATORS; each++) {
            initialise(accumulated[each], 1);
            initialise(stored[each], READERS * 32);
        }
        initialise(answered, 1);
        initialise(known, READERS * 32 + 2);  // readers, and the threads that load and multiply
    }
    begin();
}

// Asks for the tile of a CTA that has not begun; the answer comes to ``answer``.
__device__ __forceinline__ void ask() {
    arrive_expecting(answered, sizeof(answer));
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];" ::
                     "r"(shared_address(answer)),
                 "r"(shared_address(&answered))
                 : "memory");
}

__device__ __forceinline__ Tile answer_given(word phase) {
    word x, y, any;
    wait_for(answered, phase);
    asm volatile("{\n.reg .b128 given;\n.reg .pred granted;\n"
                 "mov.b32 %0, 0;\nmov.b32 %1, 0;\n"
                 "ld.shared.b128 given, [%3];\n"
                 "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 granted, given;\n"
                 "selp.u32 %2, 1, 0, granted;\n"
                 "@granted clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, _, _}, given;\n}"
                 : "=r"(x), "=r"(y), "=r"(any)
                 : "r"(shared_address(answer))
                 : "memory");
    fence_for_copies();  // the next answer is written behind this
    arrive(known);
    return {static_cast<int>(x), static_cast<int>(y), any != 0};
}

// Columns of an accumulator to rows of D: stored, or added to what is there.
template <bool ADDS> __device__ __forceinline__ void leave(float* d, int n, Tile tile, word columns) {
    float* row = d + static_cast<size_t>(tile.y * ROWS + threadIdx.x) * n + tile.x * COLUMNS;
#pragma unroll 1
    for (int column = 0; column < COLUMNS; column += 16) {
        float values[16];
        load_cells(values, tensor_memory + (threadIdx.x / 32 * 32 << 16) + columns + column);
        for (int each = 0; each < 16; each++) {
            if (ADDS) atomicAdd(row + column + each, values[each]);
            else row[column + each] = values[each];
        }
    }
    before_synchronising();
}

__device__ __forceinline__ void load_step(const TensorMap& a, const TensorMap& b, Tile tile, int step, Turn& turn) {
    Stage& stage = stages()[turn.stage];
    wait_for(empty[turn.stage], turn.parity);
    arrive_expecting(full[turn.stage], sizeof(stage.a) + sizeof(stage.b[0]));
    load_box(stage.a, a, step * 64, tile.y * ROWS, full[turn.stage]);
    load_box(stage.b[0], b, step * 64, tile.x * COLUMNS, full[turn.stage]);
    turn.next();
}

__device__ __forceinline__ void multiply_step(word d, bool adds, Turn& turn) {
    Stage& stage = stages()[turn.stage];
    wait_for(full[turn.stage], turn.parity);
    after_synchronising();
    for (int part = 0; part < 4; part++) {
        const descriptor left = tile_descriptor(stage.a + part * 32, 1024, SWIZZLE_128B);
        const descriptor right = tile_descriptor(stage.b[0] + part * 32, 1024, SWIZZLE_128B);
        multiply_f16(d, left, right, SHAPE | F32, adds || part > 0);
    }
    commit(empty[turn.stage]);
    turn.next();
}

// D (m, n) = A (m, k) times B, whose columns lie one after the other; k is a multiple of 64.
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_persistent(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int n, int k) {
    const word warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    begin_persistent();
    Tile tile = {static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), true};
    if (warp == READERS && lane == 0) {
        Turn turn = {0, 1};
        for (word round = 0; tile.any; round++) {
            if (round > 0) wait_for(known, (round - 1) % 2);  // the answer before has been read
            ask();
#pragma unroll 1
            for (int step = 0; step < k / 64; step++) load_step(a, b, tile, step, turn);
            tile = answer_given(round % 2);
        }
    } else if (warp == READERS + 1 && lane == 0) {
        Turn turn = {0, 0};
        for (word round = 0; tile.any; round++) {
            const word which = round % ACCUMULATORS, parity = round / ACCUMULATORS % 2;
            wait_for(stored[which], parity ^ 1);
            after_synchronising();
#pragma unroll 1
            for (int step = 0; step < k / 64; step++) multiply_step(tensor_memory + which * COLUMNS, step > 0, turn);
            commit(accumulated[which]);
            tile = answer_given(round % 2);
        }
    } else if (warp < READERS) {
        for (word round = 0; tile.any; round++) {
            const word which = round % ACCUMULATORS, parity = round / ACCUMULATORS % 2;
            wait_for(accumulated[which], parity);
            after_synchronising();
            leave<false>(d, n, tile, which * COLUMNS);
            arrive(stored[which]);
            tile = answer_given(round % 2);
        }
    }
    __syncwarp();
    end();
}

// The steps of all tiles, `across` of them in a row, stand in a line; a CTA takes `share` of them and adds what it
// has of a tile to D, which is zero at first. k is a multiple of 64.
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_stream_k(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int k,
                    int across, int tiles, int share) {
    const word warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int steps = k / 64, first = blockIdx.x * share, behind = min(first + share, tiles * steps);
    begin_persistent();
    Turn turn = {0, warp == READERS};
    word round = 0;
#pragma unroll 1
    for (int at = first; at < behind; round++) {
        const int number = at / steps, begins = at % steps, ends = min(steps, begins + behind - at);
        const Tile tile = {number % across, number / across, true};
        const word which = round % ACCUMULATORS, parity = round / ACCUMULATORS % 2;
        if (warp == READERS && lane == 0) {
#pragma unroll 1
            for (int step = begins; step < ends; step++) load_step(a, b, tile, step, turn);
        } else if (warp == READERS + 1 && lane == 0) {
            wait_for(stored[which], parity ^ 1);
            after_synchronising();
#pragma unroll 1
            for (int step = begins; step < ends; step++)
                multiply_step(tensor_memory + which * COLUMNS, step > begins, turn);
            commit(accumulated[which]);
        } else if (warp < READERS) {
            wait_for(accumulated[which], parity);
            after_synchronising();
            leave<true>(d, across * COLUMNS, tile, which * COLUMNS);
            arrive(stored[which]);
        }
        at += ends - begins;
    }
    __syncwarp();
    end();
}
