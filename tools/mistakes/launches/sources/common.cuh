// What the kernels with planted mistakes share. WRONG(n) is true where mistake n is compiled in; 0 is none.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#ifndef MISTAKE
#define MISTAKE 0
#endif
#define WRONG(n) (MISTAKE == (n))
typedef unsigned word;

__device__ __forceinline__ word shared_of(const void* pointer) { return (word)__cvta_generic_to_shared(pointer); }

__device__ __forceinline__ void ldmatrix_x4(word (&r)[4], word address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}

__device__ __forceinline__ void ldmatrix_x2(word (&r)[2], word address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(address));
}

__device__ __forceinline__ void ldmatrix_x2_trans(word (&r)[2], word address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(address));
}

__device__ __forceinline__ void mma_f16(float (&d)[4], const word (&a)[4], word b0, word b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
