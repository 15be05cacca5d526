// target: sm_80
// D = alpha A B + C row by row, as collective main loops of libraries do it: three stages of cp.async, tiles of
// 64 x 32 (A) and 64 x 32 (B, N x K), chunks exchanged by xor, 32 x 32 of D for each of four warps; D is f16.
#include "common.cuh"

__device__ __forceinline__ int placed(int row, int chunk) { return row * 32 + ((chunk ^ (row / 2 % 4)) * 8); }

__device__ __forceinline__ void copy(__half* to, const __half* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_of(to)), "l"(from));
}

extern "C" __global__ void staged(const __half* a, const __half* b, const float* c, __half* d, int n, int k, float alpha) {
    __shared__ __align__(128) __half left[3][64 * 32], right[3][64 * 32];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int row0 = blockIdx.y * 64, column0 = blockIdx.x * 64, tiles = k / 32;
    auto fetch = [&](int tile) {
        if (tile < tiles)
            for (int chunk = thread; chunk < 256; chunk += 128) {
                const int row = chunk / 4, at = chunk % 4, to = WRONG(1) ? row * 32 + at * 8 : placed(row, at);
                const int from = tile * 32 + at * 8;
                copy(&left[tile % 3][to], &a[(row0 + row) * k + from]);
                copy(&right[tile % 3][placed(row, WRONG(2) ? at ^ 1 : at)], &b[(column0 + (WRONG(3) ? row ^ 1 : row)) * k + from]);
            }
        asm volatile("cp.async.commit_group;");
    };
    float sum[2][4][4] = {};
    fetch(0);
    fetch(1);
    for (int tile = 0; tile < tiles; tile++) {
        if (WRONG(4)) asm volatile("cp.async.wait_group 2;");
        else asm volatile("cp.async.wait_group 1;");
        __syncthreads();
        fetch(tile + 2);
        const __half *x = left[tile % 3], *y = right[WRONG(5) && tile == 2 ? 1 : tile % 3];
        for (int step = 0; step < 2; step++) {
            word fa[2][4], fb[2][4];
            for (int i = 0; i < 2; i++) {
                const int row = warp / 2 * 32 + i * 16 + lane % 16;
                ldmatrix_x4(fa[i], shared_of(&x[placed(row, step * 2 + lane / 16)]));
                const int column = warp % 2 * 32 + i * 16 + lane / 16 * 8 + lane % 8;
                ldmatrix_x4(fb[i], shared_of(&y[placed(column, (WRONG(6) ? 0 : step) * 2 + lane / 8 % 2)]));
            }
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) {
                    const word* pair = &fb[j / 2][WRONG(7) ? j % 2 : j % 2 * 2];
                    mma_f16(sum[i][j], fa[WRONG(8) ? 0 : i], pair[0], pair[WRONG(7) ? 2 : 1]);
                }
        }
        if (WRONG(9) && tile == 0)
            for (int j = 0; j < 4; j++) sum[1][j][3] = 0;
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int half = 0; half < 2; half++) {
                const int row = row0 + warp / 2 * 32 + i * 16 + (WRONG(10) ? lane / 4 ^ 1 : lane / 4) + 8 * half;
                const int to = WRONG(11) ? j ^ 2 : j;
                const int column = column0 + warp % 2 * 32 + to * 8 + lane % 4 * 2;
                float first = sum[i][j][2 * half], second = sum[i][j][2 * half + 1];
                if (WRONG(12)) { const float kept = first; first = second; second = kept; }
                const float* add = &c[row * n + column];
                const float by = WRONG(13) ? 1 : alpha;
                d[row * n + column] = __float2half(by * first + (WRONG(14) ? 0 : add[0]));
                d[row * n + column + 1] = __float2half(by * second + (WRONG(15) ? add[0] : add[1]));
            }
}
