// target: sm_80
// The sum of integers: a tree in shared memory with a barrier a level, CTAs joined by one atomic each.
extern "C" __global__ void sum_all(const int* values, int count, unsigned long long* total) {
    extern __shared__ long long partial[];
    long long mine = 0;
#pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) mine += values[i];
    partial[threadIdx.x] = mine;
    __syncthreads();
#pragma unroll 1
    for (int width = blockDim.x / 2; width; width /= 2) {
        if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(total, static_cast<unsigned long long>(partial[0]));
}

// The largest of each segment of 32-bit integers, a CTA a segment, by votes: bit after bit from the top.
extern "C" __global__ void largest(const unsigned* values, int length, unsigned* found) {
    unsigned best = 0;
    for (int bit = 31; bit >= 0; bit--) {
        bool has = false;
#pragma unroll 1
        for (int i = threadIdx.x; i < length; i += blockDim.x) {
            const unsigned value = values[blockIdx.x * length + i];
            has |= (value >> bit) == (best >> bit | 1u);
        }
        if (__syncthreads_or(has)) best |= 1u << bit;
    }
    if (threadIdx.x == 0) found[blockIdx.x] = best;
}
