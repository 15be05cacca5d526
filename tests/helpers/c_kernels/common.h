// What every kernel here starts with; `KERNEL(name)` is entered with (in, out, n) on both sides.
#pragma once
#ifdef __CUDACC__
#include <stdint.h>
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(128) unsigned char dynamic_memory[]; type *name = (type *)dynamic_memory
__device__ __forceinline__ int lane_id() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32; }
#define KERNEL(name) extern "C" __global__ void name(const uint32_t *in, uint32_t *out, int n)
#define BOUNDED(name, ...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__) name(const uint32_t *in, uint32_t *out, int n)
#else
#include "on_host.h"
static const uint32_t *given_in; static uint32_t *given_out; static int given_n;
#define KERNEL(name)                                                                              \
  static void name##_body(const uint32_t *in, uint32_t *out, int n);                              \
  extern "C" void name(const unsigned *s, const uint32_t *in, uint32_t *out, int n) {             \
    given_in = in, given_out = out, given_n = n;                                                  \
    launch(dim3(s[0], s[1], s[2]), dim3(s[3], s[4], s[5]), [] { name##_body(given_in, given_out, given_n); }); \
  }                                                                                               \
  static void name##_body(const uint32_t *in, uint32_t *out, int n)
#define BOUNDED(name, ...) KERNEL(name)
#endif
#define THREAD (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))
#define CTA (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z))
#define GLOBAL (CTA * blockDim.x * blockDim.y * blockDim.z + THREAD)
