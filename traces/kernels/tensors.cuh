// Tensor maps, and copies of boxes of tensors of two dimensions: a statement of PTX each.
#pragma once
#include "mbarriers.cuh"

// What cuTensorMapEncodeTiled makes; PTX keeps the bytes to itself.
struct alignas(64) TensorMap {
    byte opaque[128];
};

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ __forceinline__ void load_box(void* to, const TensorMap& map, int x, int y, mbarrier& one) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
                 "l"(&map), "r"(x), "r"(y), "r"(shared_address(&one))
                 : "memory");
}

__device__ __forceinline__ void store_box(const TensorMap& map, int x, int y, const void* from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
                 "r"(x), "r"(y), "r"(shared_address(from))
                 : "memory");
}

__device__ __forceinline__ void reduce_box(const TensorMap& map, int x, int y, const void* from) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                     &map),
                 "r"(x), "r"(y), "r"(shared_address(from))
                 : "memory");
}

// Bytes from the start of a box of rows of 128 bytes, swizzled so, to 16 of them in a row.
__device__ __forceinline__ word swizzled(word row, word chunk) { return row * 128 + ((chunk ^ row % 8) << 4); }
