// target: sm_90a
// wgmma with tiles that all threads store to shared memory: st.shared, fence.proxy.async, a barrier.
#include "warpgroup.cuh"

// A and the columns of B, row by row. A CTA makes 64 x 64 of D; k is a multiple of 64.
extern "C" __global__ void __launch_bounds__(128)
    warpgroup_f16(const byte* a, const byte* b, float* d, int n, int k) {
    __shared__ __align__(1024) byte left[64 * 128], right[64 * 128];
    const int row = blockIdx.y * 64, column = blockIdx.x * 64;
    const size_t bytes = static_cast<size_t>(k) * 2;
    float values[32] = {};
    for (size_t at = 0; at < bytes; at += 128) {
        stage_rows<8, 128>(left, a + row * bytes + at, 64, bytes);
        stage_rows<8, 128>(right, b + column * bytes + at, 64, bytes);
        publish();
        begin_products();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            product_f16(values, descriptor<8>(shared_address(left) + 32 * step),
                        descriptor<8>(shared_address(right) + 32 * step), 1);
        }
        commit_products();
        wait_products<0>();
        __syncthreads();
    }
    store_products(d, n, row, column, values);
}

// The same with A stored two of four: its values, and the metadata words of each lane and step.
extern "C" __global__ void __launch_bounds__(128)
    warpgroup_sparse_f16(const byte* a, const word* e, const byte* b, float* d, int n, int k) {
    __shared__ __align__(1024) byte left[64 * 64], right[64 * 128];
    const int row = blockIdx.y * 64, column = blockIdx.x * 64, steps = k / 32;
    const size_t bytes = static_cast<size_t>(k);
    const word* own = e + static_cast<size_t>(blockIdx.y) * steps * 128 + threadIdx.x;
    float values[32] = {};
    for (size_t at = 0; at < bytes; at += 64) {
        stage_rows<4, 128>(left, a + row * bytes + at, 64, bytes);
        stage_rows<8, 128>(right, b + (column * bytes + at) * 2, 64, bytes * 2);
        word metadata[2];
        metadata[0] = own[0], metadata[1] = own[128];
        own += 256;
        publish();
        begin_products();
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            product_sparse_f16(values, descriptor<4>(shared_address(left) + 32 * step),
                               descriptor<8>(shared_address(right) + 64 * step), metadata[step]);
        }
        commit_products();
        wait_products<0>();
        __syncthreads();
    }
    store_products(d, n, row, column, values);
}

// Two warpgroups make 128 x 64 of D. After every four steps the accumulators are added to others in f32,
// because tensor cores keep few bits of sums of e4m3; k is a multiple of 128.
extern "C" __global__ void __launch_bounds__(256)
    warpgroup_e4m3(const byte* a, const byte* b, float* d, int n, int k) {
    __shared__ __align__(1024) byte left[128 * 128], right[64 * 128];
    const int row = blockIdx.y * 128, column = blockIdx.x * 64, group = threadIdx.x / 128;
    const size_t bytes = static_cast<size_t>(k);
    float total[32] = {};
    for (size_t at = 0; at < bytes; at += 128) {
        stage_rows<8, 256>(left, a + row * bytes + at, 128, bytes);
        stage_rows<8, 256>(right, b + column * bytes + at, 64, bytes);
        publish();
        float values[32];
        begin_products();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            product_e4m3(values, descriptor<8>(shared_address(left) + 64 * 128 * group + 32 * step),
                         descriptor<8>(shared_address(right) + 32 * step), step);
        }
        commit_products();
        wait_products<0>();
#pragma unroll
        for (int place = 0; place < 32; ++place) total[place] += values[place];
        __syncthreads();
    }
    store_products(d, n, row + 64 * group, column, total);
}
