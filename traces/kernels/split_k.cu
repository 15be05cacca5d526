// target: sm_80
// Split k: CTA z of the grid sums its share of the steps and adds it to D by atomics. D starts from zeros.
//
// In which order the CTAs add is nobody's promise; sums of f32 depend on it, those of s32 do not.
#include "dense.cuh"

template <class Product, class Value>
__device__ __forceinline__ void add_share(const byte* a, const byte* b, Value* d, int n, int k, Product product) {
    const int steps = k / Product::depth, share = (steps + gridDim.z - 1) / gridDim.z;
    const int first = blockIdx.z * share, stop = min(first + share, steps);
    Value sums[4][4] = {};
    dense_tiles(a, b, sums, n, k, first, stop, product);
    const int lane = threadIdx.x % 32, row = blockIdx.y * 32 + threadIdx.x / 32 * 16 + lane / 4;
    for (int tile = 0; tile < 4; tile++)
        for (int i = 0; i < 4; i++) {
            const int column = blockIdx.x * 32 + tile * 8 + lane % 4 * 2 + i % 2;
            atomicAdd(d + static_cast<size_t>(row + i / 2 * 8) * n + column, sums[tile][i]);
        }
}

extern "C" __global__ void __launch_bounds__(64) split_k_f32(const byte* a, const byte* b, float* d, int n, int k) {
    add_share(a, b, d, n, k, DenseF16());
}

extern "C" __global__ void __launch_bounds__(64) split_k_s32(const byte* a, const byte* b, int* d, int n, int k) {
    add_share(a, b, d, n, k, DenseS8());
}
