// target: sm_100a
// Blackwell's tensor core: a thread loads tiles by TMA into a ring of stages, another multiplies them into tensor
// memory and commits, four warps read D there and store it. Tiles of D are 128 x 64.
#include "tensor_tiles.cuh"

// D (m, n) = A (m, k) times B, whose columns lie one after the other; k is a multiple of 64.
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_f16(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float* d, int n, int k) {
    begin();
    const int y = blockIdx.y * ROWS, x = blockIdx.x * COLUMNS;
    product(
        d, n, k / 64,
        [&](int step, Stage& stage, mbarrier& one) {
            arrive_expecting(one, sizeof(stage.a) + sizeof(stage.b[0]));
            load_box(stage.a, a, step * 64, y, one);
            load_box(stage.b[0], b, step * 64, x, one);
        },
        [&](int step, Stage& stage) {
            for (int part = 0; part < 4; part++) {
                const descriptor left = tile_descriptor(stage.a + part * 32, 1024, SWIZZLE_128B);
                const descriptor right = tile_descriptor(stage.b[0] + part * 32, 1024, SWIZZLE_128B);
                multiply_f16(tensor_memory, left, right, SHAPE | F32, step > 0 || part > 0);
            }
        });
    end();
}

// The same with a sparse A of stored values (m, k / 2); k is a multiple of 128, at most 1024. metadata has a word a
// lane of tensor memory for each 32 columns of A: (m / 128, k / 32, 128).
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_sparse_f16(const __grid_constant__ TensorMap a, const word* metadata, const __grid_constant__ TensorMap b,
                      float* d, int n, int k) {
    begin();
    const int y = blockIdx.y * ROWS, x = blockIdx.x * COLUMNS, words = k / 32;
    if (threadIdx.x / 32 < READERS) {
        const word lanes = threadIdx.x / 32 * 32 << 16;
        for (int word_ = 0; word_ < words; word_ += 4) {
            word values[4];
            for (int each = 0; each < 4; each++)
                values[each] = metadata[(blockIdx.y * words + word_ + each) * ROWS + threadIdx.x];
            store_cells(tensor_memory + lanes + METADATA + word_, values);
        }
        wait_for_stores();
    }
    before_synchronising();
    __syncthreads();
    after_synchronising();
    product(
        d, n, k / 128,
        [&](int step, Stage& stage, mbarrier& one) {
            arrive_expecting(one, sizeof(stage.a) + sizeof(stage.b));
            load_box(stage.a, a, step * 64, y, one);
            load_box(stage.b[0], b, step * 128, x, one);
            load_box(stage.b[1], b, step * 128 + 64, x, one);
        },
        [&](int step, Stage& stage) {
            for (int part = 0; part < 4; part++) {
                const descriptor left = tile_descriptor(stage.a + part * 32, 1024, SWIZZLE_128B);
                const descriptor right = tile_descriptor(stage.b[part / 2] + part % 2 * 64, 1024, SWIZZLE_128B);
                const word where = tensor_memory + METADATA + step * 4 + part / 2 * 2;
                const word form = SHAPE | F32 | SPARSE | part % 2;  // the selector
                multiply_sparse_f16(tensor_memory, left, right, where, form, step > 0 || part > 0);
            }
        });
    end();
}

// e4m3 with a scale of ue8m0 for 32 elements of k; k is a multiple of 128. Scales come in blocks of 512 bytes for
// 128 rows and 4 factors, byte (row % 32) * 16 + row / 32 * 4 + factor: (m / 128, k / 128) and (n / 64, k / 128).
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_mxf8(const __grid_constant__ TensorMap a, const byte* scales_a, const __grid_constant__ TensorMap b,
                const byte* scales_b, float* d, int n, int k) {
    begin();
    const int y = blockIdx.y * ROWS, x = blockIdx.x * COLUMNS, steps = k / 128;
    product(
        d, n, steps,
        [&](int step, Stage& stage, mbarrier& one) {
            arrive_expecting(one, sizeof(stage.a) + sizeof(stage.b[0]) + 1024);
            load_box(stage.a, a, step * 128, y, one);
            load_box(stage.b[0], b, step * 128, x, one);
            copy_in(stage.scales_a, scales_a + (blockIdx.y * steps + step) * 512, 512, one);
            copy_in(stage.scales_b, scales_b + (blockIdx.x * steps + step) * 512, 512, one);
        },
        [&](int step, Stage& stage) {
            copy_scales(tensor_memory + SCALES_A, tile_descriptor(stage.scales_a, 128, NO_SWIZZLE));
            copy_scales(tensor_memory + SCALES_B, tile_descriptor(stage.scales_b, 128, NO_SWIZZLE));
            for (word part = 0; part < 4; part++) {
                const descriptor left = tile_descriptor(stage.a + part * 32, 1024, SWIZZLE_128B);
                const descriptor right = tile_descriptor(stage.b[0] + part * 32, 1024, SWIZZLE_128B);
                const word form = SHAPE | UE8M0 | part << 4 | part << 29;  // the bytes of the factors
                multiply_mxf8(tensor_memory, left, right, form, tensor_memory + SCALES_A, tensor_memory + SCALES_B,
                              step > 0 || part > 0);
            }
        });
    end();
}

// e2m1, two to a byte, with a scale of ue4m3 for 16 elements; k is a multiple of 256. Scales come in blocks as
// above, one for each 64 elements of k: (m / 128, k / 64) and (n / 64, k / 64).
extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_nvf4(const __grid_constant__ TensorMap a, const byte* scales_a, const __grid_constant__ TensorMap b,
                const byte* scales_b, float* d, int n, int k) {
    begin();
    const int y = blockIdx.y * ROWS, x = blockIdx.x * COLUMNS, steps = k / 256;
    product(
        d, n, steps,
        [&](int step, Stage& stage, mbarrier& one) {
            arrive_expecting(one, sizeof(stage.a) + sizeof(stage.b[0]) + 4096);
            load_box(stage.a, a, step * 128, y, one);
            load_box(stage.b[0], b, step * 128, x, one);
            for (int part = 0; part < 4; part++) {  // the second half of b is free: scales go there
                copy_in(stage.b[1] + part * 512, scales_a + ((blockIdx.y * steps + step) * 4 + part) * 512, 512, one);
                copy_in(stage.b[1] + 2048 + part * 512, scales_b + ((blockIdx.x * steps + step) * 4 + part) * 512,
                        512, one);
            }
        },
        [&](int step, Stage& stage) {
            for (int part = 0; part < 4; part++) {
                copy_scales(tensor_memory + SCALES_A, tile_descriptor(stage.b[1] + part * 512, 128, NO_SWIZZLE));
                copy_scales(tensor_memory + SCALES_B,
                            tile_descriptor(stage.b[1] + 2048 + part * 512, 128, NO_SWIZZLE));
                const descriptor left = tile_descriptor(stage.a + part * 32, 1024, SWIZZLE_128B);
                const descriptor right = tile_descriptor(stage.b[0] + part * 32, 1024, SWIZZLE_128B);
                multiply_nvf4(tensor_memory, left, right, SHAPE | E2M1, tensor_memory + SCALES_A,
                              tensor_memory + SCALES_B, step > 0 || part > 0);
            }
        });
    end();
}
