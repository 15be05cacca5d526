// target: sm_80
// CTAs that wait for each other through global memory: a chain of flags, a lock, a last one who ends it all.

// Inclusive prefix sums: CTA i waits until CTA i - 1 has published the sum of all before. carry and flags start
// from zeros, one for each CTA.
extern "C" __global__ void chained_scan(const int* values, int* sums, volatile int* carry, volatile int* flags) {
    extern __shared__ int shared[];
    const int thread = threadIdx.x, width = blockDim.x, i = blockIdx.x * width + thread;
    shared[thread] = values[i];
    __syncthreads();
#pragma unroll 1
    for (int distance = 1; distance < width; distance *= 2) {
        const int add = thread >= distance ? shared[thread - distance] : 0;
        __syncthreads();
        shared[thread] += add;
        __syncthreads();
    }
    __shared__ int before;
    if (thread == 0) {
        int sum = 0;
        if (blockIdx.x) {
            while (flags[blockIdx.x - 1] == 0) {
            }
            __threadfence();
            sum = carry[blockIdx.x - 1];
        }
        carry[blockIdx.x] = sum + shared[width - 1];
        __threadfence();
        flags[blockIdx.x] = 1;
        before = sum;
    }
    __syncthreads();
    sums[i] = before + shared[thread];
}

// Every thread, one after the other, under one lock: total is a plain variable. lock starts from zero.
extern "C" __global__ void locked_sum(const int* values, int count, int* lock, volatile int* total) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool done = i >= count;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *total = *total + values[i];
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// Each CTA leaves a partial sum; the last to arrive, as a counter tells, adds them all. arrived starts from zero.
extern "C" __global__ void last_adds(const int* values, volatile int* partial, unsigned* arrived, int* total) {
    __shared__ bool last;
    const int sum = __reduce_add_sync(~0u, values[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    int all = 0;
#pragma unroll 1
    for (int i = threadIdx.x; i < gridDim.x; i += 32) all += partial[i];
    all = __reduce_add_sync(~0u, all);
    if (threadIdx.x == 0) *total = all;
}

// All CTAs meet: each publishes a value, waits for the others and reads its neighbour's. met starts from zero.
extern "C" __global__ void neighbours(const int* values, volatile int* published, unsigned* met, int* found) {
    if (threadIdx.x == 0) {
        published[blockIdx.x] = values[blockIdx.x];
        __threadfence();
        atomicAdd(met, 1);
        while (*static_cast<volatile unsigned*>(met) < gridDim.x) {
        }
        __threadfence();
        found[blockIdx.x] = published[(blockIdx.x + 1) % gridDim.x];
    }
}
