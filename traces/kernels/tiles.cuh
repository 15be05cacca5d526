// Pieces that tile kernels share: asynchronous copies into shared memory, ldmatrix, swizzled places.
//
// Everything is in bytes. Every warp-level product here takes 32 bytes of a row of A a step, whatever its
// elements are, and 32 bytes (dense) or 64 bytes (2:4 and its relatives) of a column of B.
#pragma once

typedef unsigned char byte;
typedef unsigned int word;

__device__ __forceinline__ word shared_address(const void* pointer) {
    return static_cast<word>(__cvta_generic_to_shared(pointer));
}

// 16 bytes of global memory into shared memory, in the background.
__device__ __forceinline__ void copy_chunk(word to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(__cvta_generic_to_global(from))
                 : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING> __device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// The place of a 16-byte chunk in a tile whose rows have CHUNKS of them: eight chunks that ldmatrix reads
// together, one above the other, lie in different banks.
template <int CHUNKS> __device__ __forceinline__ word place(word row, word chunk) {
    const int shift = CHUNKS == 2 ? 2 : CHUNKS == 4 ? 1 : 0;
    return (row * CHUNKS + (chunk ^ (row >> shift & (CHUNKS - 1)))) * 16;
}

__device__ __forceinline__ void load_matrices(word (&to)[4], word address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void load_transposed(word (&to)[4], word address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// Four elements of D of each lane: two in row lane / 4, two eight rows below.
template <class Value> struct pair_of;
template <> struct pair_of<float> { typedef float2 type; };
template <> struct pair_of<int> { typedef int2 type; };

template <class Value>
__device__ __forceinline__ void store_tile(Value* d, int n, int row, int column, const Value (&values)[4]) {
    typedef typename pair_of<Value>::type Pair;
    const word lane = threadIdx.x % 32;
    Value* place = d + static_cast<size_t>(row + lane / 4) * n + column + lane % 4 * 2;
    Pair above, below;
    above.x = values[0], above.y = values[1], below.x = values[2], below.y = values[3];
    *reinterpret_cast<Pair*>(place) = above;
    *reinterpret_cast<Pair*>(place + 8 * static_cast<size_t>(n)) = below;
}
