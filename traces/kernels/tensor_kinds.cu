// target: sm_100a
// The other kinds of Blackwell's tensor core, with tiles of 128 x 64: fp8, integers, tf32, metadata that come
// through shared memory, and stationary weights.
#include "tensor_tiles.cuh"

const word S32 = 2 << 4, S8 = 1 << 7 | 1 << 10, TF32 = 2 << 7 | 2 << 10;  // fields of instruction descriptors
const int ROW_BYTES = 32;                                                  // of metadata of a stage, at most

// The metadata of a stage lie behind all stages.
__device__ __forceinline__ byte* metadata_of(Stage& stage) {
    return memory + STAGES * sizeof(Stage) + (&stage - stages()) * ROWS * ROW_BYTES;
}

// The columns of tensor memory for the metadata of a stage.
__device__ __forceinline__ word columns_of(Stage& stage) {
    return tensor_memory + METADATA + static_cast<word>(&stage - stages()) * (ROW_BYTES / 4);
}

// D (m, n) = A (m, k) times B, whose columns lie one after the other, of elements of SIZE bytes; k is a multiple
// of 128 bytes.
template <int SIZE, typename Multiply>
__device__ __forceinline__ void dense(
    const TensorMap& a, const TensorMap& b, float* d, int n, int k, word form, Multiply multiply) {
    begin();
    const int y = blockIdx.y * ROWS, x = blockIdx.x * COLUMNS;
    product(
        d, n, k * SIZE / WIDTH,
        [&](int step, Stage& stage, mbarrier& one) {
            arrive_expecting(one, sizeof(stage.a) + sizeof(stage.b[0]));
            load_box(stage.a, a, step * (WIDTH / SIZE), y, one);
            load_box(stage.b[0], b, step * (WIDTH / SIZE), x, one);
        },
        [&](int step, Stage& stage) {
            for (int part = 0; part < 4; part++) {
                const descriptor left = tile_descriptor(stage.a + part * 32, 1024, SWIZZLE_128B);
                const descriptor right = tile_descriptor(stage.b[0] + part * 32, 1024, SWIZZLE_128B);
                multiply(tensor_memory, left, right, form, step > 0 || part > 0);
            }
        });
    end();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_e4m3(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int n, int k) {
    dense<1>(a, b, d, n, k, SHAPE | F32, [](auto... given) { multiply_f8(given...); });
}

// The words of D are those of integers.
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_s8(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int n, int k) {
    dense<1>(a, b, d, n, k, SHAPE | S32 | S8, [](auto... given) { multiply_i8(given...); });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_tf32(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int n, int k) {
    dense<4>(a, b, d, n, k, SHAPE | F32 | TF32, [](auto... given) { multiply_tf32(given...); });
}

// --- sparse A, whose metadata come with the tiles -----------------------------------------------------------

// A of stored values (m, k / 2); a step is 128 bytes of them. A step's metadata are BYTES for each row: in shared
// memory 16 bytes of all rows, then the next 16.
template <int SIZE, int BYTES, typename Multiply>
__device__ __forceinline__ void sparse(
    const TensorMap& a, const byte* metadata, const TensorMap& b, float* d, int n, int k, Multiply multiply) {
    begin();
    const int y = blockIdx.y * ROWS, x = blockIdx.x * COLUMNS, steps = k * SIZE / (2 * WIDTH);
    product(
        d, n, steps,
        [&](int step, Stage& stage, mbarrier& one) {
            arrive_expecting(one, sizeof(stage.a) + sizeof(stage.b) + ROWS * BYTES);
            load_box(stage.a, a, step * (WIDTH / SIZE), y, one);
            load_box(stage.b[0], b, step * (2 * WIDTH / SIZE), x, one);
            load_box(stage.b[1], b, step * (2 * WIDTH / SIZE) + WIDTH / SIZE, x, one);
            copy_in(metadata_of(stage), metadata + (blockIdx.y * steps + step) * ROWS * BYTES, ROWS * BYTES, one);
        },
        [&](int step, Stage& stage) {
            const descriptor from = plain_descriptor(metadata_of(stage), ROWS * 16, 128);
            const word where = columns_of(stage);
            if (BYTES == 16) copy_rows_16(where, from);
            else copy_rows_32(where, from);
            for (int part = 0; part < 4; part++) {
                const descriptor left = tile_descriptor(stage.a + part * 32, 1024, SWIZZLE_128B);
                const descriptor right = tile_descriptor(stage.b[part / 2] + part % 2 * 64, 1024, SWIZZLE_128B);
                multiply(part, left, right, where, step > 0 || part > 0);
            }
        });
    end();
}

// k is a multiple of 256; metadata (m / 128, k / 256, 2, 128) of 16 bytes: an instruction has two columns.
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_sparse_e4m3(const __grid_constant__ TensorMap a, const byte* metadata, const __grid_constant__ TensorMap b,
                       float* d, int n, int k) {
    sparse<1, 32>(a, metadata, b, d, n, k, [](int part, descriptor left, descriptor right, word where, bool adds) {
        multiply_sparse_f8(tensor_memory, left, right, where + part * 2, SHAPE | F32 | SPARSE, adds);
    });
}

// As tensor_sparse_f16 of tensor_core; k is a multiple of 128, metadata (m / 128, k / 128, 128) of 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_copied_metadata(const __grid_constant__ TensorMap a, const byte* metadata,
                           const __grid_constant__ TensorMap b, float* d, int n, int k) {
    sparse<2, 16>(a, metadata, b, d, n, k, [](int part, descriptor left, descriptor right, word where, bool adds) {
        multiply_sparse_f16(tensor_memory, left, right, where + part / 2 * 2, SHAPE | F32 | SPARSE | part % 2, adds);
    });
}

// --- stationary weights ---------------------------------------------------------------------------------------

// D (32, n) = A (32, k) times B: a quarter of the columns of D lies in each quarter of the lanes. k is a multiple
// of 64.
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_stationary_f16(
        const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int n, int k) {
    const word warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    begin();
    if (warp == READERS && lane == 0) {
        Turn turn = {0, 1};
        for (int step = 0; step < k / 64; step++, turn.next()) {
            Stage& stage = stages()[turn.stage];
            wait_for(empty[turn.stage], turn.parity);
            arrive_expecting(full[turn.stage], 32 * WIDTH + sizeof(stage.b[0]));
            load_box(stage.a, a, step * 64, 0, full[turn.stage]);
            load_box(stage.b[0], b, step * 64, blockIdx.x * COLUMNS, full[turn.stage]);
        }
    } else if (warp == READERS + 1 && lane == 0) {
        Turn turn = {0, 0};
        for (int step = 0; step < k / 64; step++, turn.next()) {
            Stage& stage = stages()[turn.stage];
            wait_for(full[turn.stage], turn.parity);
            after_synchronising();
            for (int part = 0; part < 4; part++) {
                const descriptor left = tile_descriptor(stage.a + part * 32, 1024, SWIZZLE_128B);
                const descriptor right = tile_descriptor(stage.b[0] + part * 32, 1024, SWIZZLE_128B);
                const word form = F32 | COLUMNS / 8 << 17 | 32 / 16 << 24;
                multiply_stationary_f16(tensor_memory, left, right, form, step > 0 || part > 0);
            }
            commit(empty[turn.stage]);
        }
        commit(done);
    } else if (warp < READERS) {
        wait_for(done, 0);
        after_synchronising();
        float values[COLUMNS / 4];
        load_cells(values, tensor_memory + (warp * 32 << 16));
        float* row = d + static_cast<size_t>(lane) * n + blockIdx.x * COLUMNS + warp * (COLUMNS / 4);
        for (int each = 0; each < COLUMNS / 4; each++) row[each] = values[each];
        before_synchronising();
    }
    __syncwarp();
    end();
}
