// Each thread prints and keeps the value of a neighbour. A barrier is missing: see warpsim/show/cli/README.md.
#include <cstdio>

__constant__ int scale[1];

__device__ int neighbour(const int* tile) { return tile[(threadIdx.x + 32) % 64]; }

__global__ void shift(int* out) {
    __shared__ int tile[64];
    tile[threadIdx.x] = scale[0] * threadIdx.x;
    out[threadIdx.x] = neighbour(tile);
    if (threadIdx.x == 0) printf("thread %d has %08x\n", threadIdx.x, out[threadIdx.x]);
}
