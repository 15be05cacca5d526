// target: sm_80
// O = softmax(Q K^T / sqrt(64)) V: 16 rows of Q for a warp, two warps; tiles of 32 keys; P from registers, or
// (SHARED) through shared memory. q, k, v, o are row by row with 64 columns.
#include "common.cuh"

extern "C" __global__ void attention(const __half* q, const __half* k, const __half* v, float* o, int length) {
    const int DEPTH = 64, KEYS = 32, PITCH = 72;
    __shared__ __align__(16) __half values[KEYS * PITCH];
#if SHARED
    __shared__ __align__(16) __half weights[2][16 * 40];
#endif
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, group = lane / 4, pair = lane % 4;
    const int row0 = blockIdx.x * 32 + warp * 16;
    word x[4][4];
    for (int step = 0; step < 4; step++)
        for (int i = 0; i < 4; i++)
            x[step][i] = *(const word*)&q[(row0 + group + i % 2 * 8) * DEPTH + step * 16 + pair * 2 + i / 2 * 8];
    float out[8][4] = {}, most[2] = {-1e30f, -1e30f}, total[2] = {};
    for (int key0 = 0; key0 < length; key0 += KEYS) {
        __syncthreads();
        for (int chunk = thread; chunk < KEYS * 8; chunk += 64)
            *(uint4*)&values[chunk / 8 * PITCH + chunk % 8 * 8] = *(const uint4*)&v[(key0 + chunk / 8) * DEPTH + chunk % 8 * 8];
        __syncthreads();
        float score[4][4] = {};
        for (int tile = 0; tile < 4; tile++)
            for (int step = 0; step < 4; step++) {
                const __half* from = &k[(key0 + tile * 8 + group) * DEPTH + (WRONG(9) ? 0 : step) * 16 + pair * 2];
                mma_f16(score[tile], x[step], *(const word*)from, *(const word*)(from + 8));
            }
        const float scale = WRONG(4) ? 1.0f : WRONG(5) ? 1.0f / 64 : 0.125f;
        float now[2] = {most[0], most[1]}, factor[2];
        for (int half = 0; half < 2; half++) {
            for (int tile = 0; tile < 4; tile++)
                for (int i = 0; i < 2; i++) now[half] = fmaxf(now[half], score[tile][2 * half + i] * scale);
            if (!WRONG(8)) now[half] = fmaxf(now[half], __shfl_xor_sync(~0u, now[half], 1));
            now[half] = fmaxf(now[half], __shfl_xor_sync(~0u, now[half], 2));
            factor[half] = __expf(most[half] - now[half]);
            total[half] *= WRONG(10) ? 1.0f : factor[half];
        }
        for (int tile = 0; tile < 4; tile++)
            for (int i = 0; i < 4; i++) {
                const int half = i / 2;
                score[tile][i] = __expf(score[tile][i] * scale - now[WRONG(3) ? 1 - half : half]);
                total[half] += score[tile][i];
            }
        most[0] = now[0], most[1] = now[1];
        for (int tile = 0; tile < 8; tile++)
            for (int i = 0; i < 4; i++)
                out[tile][i] *= WRONG(7) ? 1.0f : factor[WRONG(6) ? 1 - i / 2 : WRONG(12) ? i % 2 : i / 2];
#if SHARED
        __half* mine = weights[warp];
        for (int tile = 0; tile < 4; tile++)
            for (int half = 0; half < 2; half++)
                *(__half2*)&mine[(group + 8 * (WRONG(13) ? 1 - half : half)) * 40 + tile * 8 + pair * 2] =
                    __floats2half2_rn(score[tile][2 * half], score[tile][2 * half + 1]);
        __syncwarp();
#endif
        for (int step = 0; step < 2; step++) {
            word p[4];
#if SHARED
            ldmatrix_x4(p, shared_of(&mine[lane % 16 * 40 + step * 16 + (WRONG(14) ? 0 : lane / 16 * 8)]));
#else
            for (int i = 0; i < 4; i++) {
                const int tile = 2 * step + (WRONG(1) ? i % 2 : i / 2), half = WRONG(1) ? i / 2 : i % 2;
                __half2 both = __floats2half2_rn(score[tile][2 * half], score[tile][2 * half + 1]);
                if (WRONG(11)) both = __floats2half2_rn(score[tile][2 * half + 1], score[tile][2 * half]);
                p[i] = *(word*)&both;
            }
#endif
            for (int tile = 0; tile < 8; tile++) {
                word y[2];
                const word place = shared_of(&values[(step * 16 + lane % 16) * PITCH + tile * 8]);
                if (WRONG(2)) ldmatrix_x2(y, place);
                else ldmatrix_x2_trans(y, place);
                mma_f16(out[tile], p, y[0], y[1]);
            }
        }
#if SHARED
        __syncwarp();
#endif
    }
    for (int half = 0; half < 2; half++) {
        total[half] += __shfl_xor_sync(~0u, total[half], 1);
        total[half] += __shfl_xor_sync(~0u, total[half], 2);
    }
    for (int tile = 0; tile < 8; tile++)
        for (int i = 0; i < 4; i++)
            o[(row0 + group + i / 2 * 8) * DEPTH + tile * 8 + pair * 2 + i % 2] = out[tile][i] / total[i / 2];
}
