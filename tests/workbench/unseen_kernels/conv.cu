// target: sm_80
// A 3 x 3 convolution as an implicit product, as in CUTLASS: NHWC, zeros around the picture, a bias, leaky relu.
#include "pieces.cuh"

const int CHANNELS = 16, PITCH = 24;

extern "C" __global__ void conv(const half* x, const half* w, const float* bias, half* y, int height, int width,
                                int outputs, float slope) {
    __shared__ alignas(16) half xs[2][16 * PITCH];
    const int lane = threadIdx.x, pixels = height * width, column = blockIdx.y * 8;
    const int row = lane / 2, part = lane % 2 * 8, pixel = blockIdx.x * 16 + row;
    const int py = pixel / width, px = pixel % width;
    auto load = [&](int tap) {
        const int iy = py + tap / 3 - 1, ix = px + tap % 3 - 1;
        const bool inside = iy >= 0 && iy < height && ix >= 0 && ix < width && pixel < pixels;
        const half* from = x + (iy * width + ix) * CHANNELS + part;
        if (tap < 9) copy16(&xs[tap % 2][row * PITCH + part], inside ? from : x, inside ? 16 : 0);
        commit();
    };
    float d[4] = {};
    load(0);
#pragma unroll 1
    for (int tap = 0; tap < 9; tap++) {
        load(tap + 1);
        wait<1>();
        __syncwarp();
        u32 a[4];
        load_a(a, &xs[tap % 2][lane % 16 * PITCH + lane / 16 * 8]);
        const half* right = w + ((column + lane / 4) * 9 + tap) * CHANNELS + lane % 4 * 2;
        multiply(d, a, word(right), word(right + 8));
        __syncwarp();
    }
    for (int each = 0; each < 4; each++) {
        const int to_pixel = blockIdx.x * 16 + lane / 4 + each / 2 * 8;
        const int to_column = column + lane % 4 * 2 + each % 2;
        const float sum = d[each] + bias[to_column];
        const float active = sum > 0 ? sum : sum * slope;
        if (to_pixel < pixels) y[to_pixel * outputs + to_column] = __float2half(active);
    }
}
