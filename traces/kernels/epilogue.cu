// target: sm_80
// A product of f16 with an epilogue: a bias a column, an activation, and f16 for the way out.
//
// relu is exact; gelu calls tanh.approx, whose last bits PTX does not define.
#include <cuda_fp16.h>

#include "dense.cuh"

struct Relu {
    __device__ __forceinline__ float operator()(float x) const { return fmaxf(x, 0.0f); }
};

struct Gelu {  // 0.5 x (1 + tanh(0.79788456 (x + 0.044715 x^3))), every operation rounded
    __device__ __forceinline__ float operator()(float x) const {
        const float cube = __fmul_rn(__fmul_rn(x, x), x);
        const float inner = __fmul_rn(0.79788456f, __fadd_rn(x, __fmul_rn(0.044715f, cube)));
        float bent;
        asm("tanh.approx.f32 %0, %1;" : "=f"(bent) : "f"(inner));
        return __fmul_rn(__fmul_rn(0.5f, x), __fadd_rn(1.0f, bent));
    }
};

template <class Activation>
__device__ __forceinline__ void product_with(
    const byte* a, const byte* b, const float* bias, __half* d, int n, int k, Activation activation) {
    float sums[4][4] = {};
    dense_tiles(a, b, sums, n, k, 0, k / DenseF16::depth, DenseF16());
    const int lane = threadIdx.x % 32, row = blockIdx.y * 32 + threadIdx.x / 32 * 16 + lane / 4;
    for (int tile = 0; tile < 4; tile++) {
        const int column = blockIdx.x * 32 + tile * 8 + lane % 4 * 2;
        const float2 more = *reinterpret_cast<const float2*>(bias + column);
        for (int i = 0; i < 4; i += 2) {
            const __half2 packed = __floats2half2_rn(activation(__fadd_rn(sums[tile][i], more.x)),
                                                     activation(__fadd_rn(sums[tile][i + 1], more.y)));
            *reinterpret_cast<__half2*>(d + static_cast<size_t>(row + i / 2 * 8) * n + column) = packed;
        }
    }
}

extern "C" __global__ void __launch_bounds__(64)
    bias_relu(const byte* a, const byte* b, const float* bias, __half* d, int n, int k) {
    product_with(a, b, bias, d, n, k, Relu());
}

extern "C" __global__ void __launch_bounds__(64)
    bias_gelu(const byte* a, const byte* b, const float* bias, __half* d, int n, int k) {
    product_with(a, b, bias, d, n, k, Gelu());
}
