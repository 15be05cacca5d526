// CUDA C for a host compiler: each thread of a CTA is a fiber, which yields where it waits for others.
//
// Knows __syncthreads, warp shuffles and votes, atomics and the integer intrinsics that the kernels here use.
// A kernel is entered by `launch`, CTA by CTA; nothing of it is shared with warpsim. Lanes that have
// returned count as arrived at __syncthreads, as on a device.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <algorithm>
#include <vector>
#include <vector_types.h>
#include <vector_functions.h>
#undef __shared__
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#undef __align__
#define __shared__ static
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define DYNAMIC_SHARED(type, name) type *name = (type *)dynamic_shared
using std::max;
using std::min;

alignas(128) static unsigned char dynamic_shared[1 << 16];
static dim3 gridDim, blockDim, blockIdx;
static uint3 threadIdx;
static const int warpSize = 32;

struct Fiber { ucontext_t context; uint3 index; bool done; uint64_t seen[32]; bool released; };
struct Meeting { uint64_t slots[32]; uint32_t arrived; };
static std::vector<Fiber> fibers;
static std::vector<char> stacks;
static std::vector<Meeting> meetings;
static ucontext_t scheduler;
static int own, at_barrier, alive, barrier_round, barrier_sum, barrier_result;
static void (*entered)();
enum { STACK = 1 << 16 };

static void yield() { swapcontext(&fibers[own].context, &scheduler); threadIdx = fibers[own].index; }
static void open_barrier() {
  if (at_barrier && at_barrier >= alive) { at_barrier = 0; barrier_result = barrier_sum; barrier_sum = 0; barrier_round++; }
}
static int barrier(int value) {
  int round = barrier_round;
  at_barrier++; barrier_sum += value;
  open_barrier();
  while (barrier_round == round) yield();
  return barrier_result;
}
static void __syncthreads() { barrier(0); }
static int __syncthreads_count(int p) { return barrier(p != 0); }
static int __syncthreads_or(int p) { return barrier(p != 0) != 0; }
static int __syncthreads_and(int p) { return barrier(p == 0) == 0; }
static void body() { threadIdx = fibers[own].index; entered(); fibers[own].done = true; alive--; open_barrier(); swapcontext(&fibers[own].context, &scheduler); }

static void launch(dim3 grid, dim3 block, void (*kernel)()) {
  gridDim = grid; blockDim = block; entered = kernel;
  int threads = block.x * block.y * block.z;
  stacks.resize((size_t)threads * STACK);
  for (unsigned cta = 0; cta < grid.x * grid.y * grid.z; cta++) {
    blockIdx = dim3(cta % grid.x, cta / grid.x % grid.y, cta / grid.x / grid.y);
    fibers.assign(threads, Fiber()); meetings.assign((threads + 31) / 32, Meeting());
    at_barrier = barrier_sum = 0; alive = threads;
    for (int t = 0; t < threads; t++) {
      Fiber &f = fibers[t];
      f.index = make_uint3(t % block.x, t / block.x % block.y, t / block.x / block.y);
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = &stacks[(size_t)t * STACK]; f.context.uc_stack.ss_size = STACK;
      makecontext(&f.context, body, 0);
    }
    while (alive)
      for (own = 0; own < threads; own++) if (!fibers[own].done) swapcontext(&scheduler, &fibers[own].context);
  }
}

// --- warps ---
static uint64_t *meet(uint32_t mask, uint64_t value) {
  Meeting &m = meetings[own / 32];
  m.slots[own % 32] = value; m.arrived |= 1u << own % 32; fibers[own].released = false;
  if ((m.arrived & mask) == mask) {
    m.arrived &= ~mask;
    for (int lane = 0; lane < 32; lane++) if (mask >> lane & 1) {
      memcpy(fibers[own / 32 * 32 + lane].seen, m.slots, sizeof m.slots); fibers[own / 32 * 32 + lane].released = true;
    }
  }
  while (!fibers[own].released) yield();
  return fibers[own].seen;
}
static int lane_id() { return own % 32; }
static void __syncwarp(uint32_t mask = ~0u) { meet(mask, 0); }
static uint32_t __ballot_sync(uint32_t mask, int p) {
  uint64_t *all = meet(mask, p != 0); uint32_t found = 0;
  for (int lane = 0; lane < 32; lane++) if (mask >> lane & 1 && all[lane]) found |= 1u << lane;
  return found;
}
static int __any_sync(uint32_t mask, int p) { return __ballot_sync(mask, p) != 0; }
static int __all_sync(uint32_t mask, int p) { return __ballot_sync(mask, p) == mask; }
template <class T> static uint64_t raw(T v) { uint64_t r = 0; memcpy(&r, &v, sizeof v); return r; }
template <class T> static T as(uint64_t r) { T v; memcpy(&v, &r, sizeof v); return v; }
template <class T> static T __shfl_sync(uint32_t mask, T v, int from, int width = 32) {
  uint64_t *all = meet(mask, raw(v)); return as<T>(all[(lane_id() & ~(width - 1)) | (from & (width - 1))]);
}
template <class T> static T __shfl_xor_sync(uint32_t mask, T v, int by, int width = 32) {
  uint64_t *all = meet(mask, raw(v)); int j = lane_id() ^ by;
  return as<T>(all[j <= (lane_id() | (width - 1)) ? j : lane_id()]);
}
template <class T> static T __shfl_up_sync(uint32_t mask, T v, unsigned by, int width = 32) {
  uint64_t *all = meet(mask, raw(v)); int j = lane_id() - (int)by;
  return as<T>(all[j >= (lane_id() & ~(width - 1)) ? j : lane_id()]);
}
template <class T> static T __shfl_down_sync(uint32_t mask, T v, unsigned by, int width = 32) {
  uint64_t *all = meet(mask, raw(v)); int j = lane_id() + (int)by;
  return as<T>(all[j <= (lane_id() | (width - 1)) ? j : lane_id()]);
}
template <class T> static uint32_t __match_any_sync(uint32_t mask, T v) {
  uint64_t *all = meet(mask, raw(v)); uint32_t found = 0;
  for (int lane = 0; lane < 32; lane++) if (mask >> lane & 1 && all[lane] == raw(v)) found |= 1u << lane;
  return found;
}
template <class T> static uint32_t __match_all_sync(uint32_t mask, T v, int *same) {
  uint32_t any = __match_any_sync(mask, v); *same = any == mask; return *same ? mask : 0;
}
template <class T, class F> static T reduced(uint32_t mask, T v, F f) {
  uint64_t *all = meet(mask, raw(v)); bool first = true; T sum = v;
  for (int lane = 0; lane < 32; lane++) if (mask >> lane & 1) { sum = first ? as<T>(all[lane]) : f(sum, as<T>(all[lane])); first = false; }
  return sum;
}
template <class T> static T __reduce_add_sync(uint32_t m, T v) { return reduced(m, v, [](T a, T b) { return a + b; }); }
template <class T> static T __reduce_min_sync(uint32_t m, T v) { return reduced(m, v, [](T a, T b) { return min(a, b); }); }
template <class T> static T __reduce_max_sync(uint32_t m, T v) { return reduced(m, v, [](T a, T b) { return max(a, b); }); }
template <class T> static T __reduce_xor_sync(uint32_t m, T v) { return reduced(m, v, [](T a, T b) { return a ^ b; }); }

// --- memory ---
#define ATOMIC(name, result) template <class T, class U> static T name(T *p, U given) { T old = *p, v = (T)given; *p = result; return old; }
ATOMIC(atomicAdd, old + v) ATOMIC(atomicSub, old - v) ATOMIC(atomicMin, min(old, v)) ATOMIC(atomicMax, max(old, v))
ATOMIC(atomicAnd, old & v) ATOMIC(atomicOr, old | v) ATOMIC(atomicXor, old ^ v) ATOMIC(atomicExch, v)
ATOMIC(atomicInc, old >= v ? 0 : old + 1) ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
template <class T, class U, class V> static T atomicCAS(T *p, U compare, V v) { T old = *p; if (old == (T)compare) *p = (T)v; else yield(); return old; }
template <class T> static T __ldg(const T *p) { return *p; }
template <class T> static T __ldcg(const T *p) { return *p; }
template <class T> static void __stcg(T *p, T v) { *p = v; }
static void __threadfence() { yield(); }
static void __threadfence_block() { yield(); }
static void __nanosleep(unsigned) { yield(); }

// --- integers and bits ---
static int __popc(uint32_t x) { return __builtin_popcount(x); }
static int __popcll(uint64_t x) { return __builtin_popcountll(x); }
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static int __ffs(int x) { return __builtin_ffs(x); }
static int __ffsll(long long x) { return __builtin_ffsll(x); }
static uint32_t __brev(uint32_t x) { uint32_t r = 0; for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i); return r; }
static uint64_t __brevll(uint64_t x) { return (uint64_t)__brev(x) << 32 | __brev(x >> 32); }
static uint32_t __umulhi(uint32_t a, uint32_t b) { return (uint64_t)a * b >> 32; }
static int __mulhi(int a, int b) { return (int64_t)a * b >> 32; }
static uint64_t __umul64hi(uint64_t a, uint64_t b) { return (unsigned __int128)a * b >> 64; }
static int64_t __mul64hi(int64_t a, int64_t b) { return (__int128)a * b >> 64; }
static int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
static uint32_t __umul24(uint32_t a, uint32_t b) { return (a & 0xffffff) * (b & 0xffffff); }
static uint32_t __usad(uint32_t a, uint32_t b, uint32_t c) { return c + (a > b ? a - b : b - a); }
static int __hadd(int a, int b) { return ((int64_t)a + b) >> 1; }
static int __rhadd(int a, int b) { return ((int64_t)a + b + 1) >> 1; }
static uint32_t __uhadd(uint32_t a, uint32_t b) { return ((uint64_t)a + b) >> 1; }
static uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t s) {
  uint64_t ab = (uint64_t)b << 32 | a; uint32_t r = 0;
  for (int i = 0; i < 4; i++) r |= (uint32_t)(ab >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
  return r;
}
static uint32_t __funnelshift_l(uint32_t lo, uint32_t hi, uint32_t s) { return ((uint64_t)hi << 32 | lo) << (s & 31) >> 32; }
static uint32_t __funnelshift_r(uint32_t lo, uint32_t hi, uint32_t s) { return ((uint64_t)hi << 32 | lo) >> (s & 31); }
static uint32_t __funnelshift_lc(uint32_t lo, uint32_t hi, uint32_t s) { s = min(s, 32u); return s == 32 ? lo : __funnelshift_l(lo, hi, s); }
static uint32_t __funnelshift_rc(uint32_t lo, uint32_t hi, uint32_t s) { s = min(s, 32u); return s == 32 ? hi : __funnelshift_r(lo, hi, s); }
static int __dp4a(int a, int b, int c) { for (int i = 0; i < 4; i++) c += (int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i); return c; }
static uint32_t __dp4a(uint32_t a, uint32_t b, uint32_t c) { for (int i = 0; i < 4; i++) c += (uint8_t)(a >> 8 * i) * (uint8_t)(b >> 8 * i); return c; }
template <class F> static uint32_t bytewise(uint32_t a, uint32_t b, F f) {
  uint32_t r = 0;
  for (int i = 0; i < 32; i += 8) r |= (uint32_t)(uint8_t)f((uint8_t)(a >> i), (uint8_t)(b >> i)) << i;
  return r;
}
template <class F> static uint32_t halfwise(uint32_t a, uint32_t b, F f) {
  return (uint32_t)(uint16_t)f((uint16_t)a, (uint16_t)b) | (uint32_t)(uint16_t)f((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16;
}
static uint32_t __vadd4(uint32_t a, uint32_t b) { return bytewise(a, b, [](uint8_t x, uint8_t y) { return x + y; }); }
static uint32_t __vaddus4(uint32_t a, uint32_t b) { return bytewise(a, b, [](uint8_t x, uint8_t y) { return min(x + y, 255); }); }
static uint32_t __vaddss4(uint32_t a, uint32_t b) { return bytewise(a, b, [](int8_t x, int8_t y) { return max(min(x + y, 127), -128); }); }
static uint32_t __vabsdiffu4(uint32_t a, uint32_t b) { return bytewise(a, b, [](uint8_t x, uint8_t y) { return abs(x - y); }); }
static uint32_t __vabsdiffs4(uint32_t a, uint32_t b) { return bytewise(a, b, [](int8_t x, int8_t y) { return abs(x - y); }); }
static uint32_t __vavgu4(uint32_t a, uint32_t b) { return bytewise(a, b, [](uint8_t x, uint8_t y) { return (x + y + 1) / 2; }); }
static uint32_t __vmaxs4(uint32_t a, uint32_t b) { return bytewise(a, b, [](int8_t x, int8_t y) { return max(x, y); }); }
static uint32_t __vminu4(uint32_t a, uint32_t b) { return bytewise(a, b, [](uint8_t x, uint8_t y) { return min(x, y); }); }
static uint32_t __vcmpgtu4(uint32_t a, uint32_t b) { return bytewise(a, b, [](uint8_t x, uint8_t y) { return x > y ? 255 : 0; }); }
static uint32_t __vsetles4(uint32_t a, uint32_t b) { return bytewise(a, b, [](int8_t x, int8_t y) { return x <= y; }); }
static uint32_t __vcmpeq4(uint32_t a, uint32_t b) { return bytewise(a, b, [](uint8_t x, uint8_t y) { return x == y ? 255 : 0; }); }
static uint32_t __vsadu4(uint32_t a, uint32_t b) { uint32_t d = __vabsdiffu4(a, b), s = 0; for (int i = 0; i < 32; i += 8) s += d >> i & 255; return s; }
static uint32_t __vadd2(uint32_t a, uint32_t b) { return halfwise(a, b, [](uint16_t x, uint16_t y) { return x + y; }); }
static uint32_t __vmaxu2(uint32_t a, uint32_t b) { return halfwise(a, b, [](uint16_t x, uint16_t y) { return max(x, y); }); }
static uint32_t __vmins2(uint32_t a, uint32_t b) { return halfwise(a, b, [](int16_t x, int16_t y) { return min(x, y); }); }
static uint32_t __vsubss2(uint32_t a, uint32_t b) { return halfwise(a, b, [](int16_t x, int16_t y) { return max(min(x - y, 32767), -32768); }); }
static uint32_t __vabs4(uint32_t a) { return bytewise(a, 0, [](int8_t x, int8_t) { return abs(x); }); }
static uint32_t __vneg2(uint32_t a) { return halfwise(a, 0, [](int16_t x, int16_t) { return -x; }); }

// --- floats ---
static float __uint_as_float(uint32_t x) { return as<float>(x); }
static uint32_t __float_as_uint(float x) { return raw(x); }
static float __int_as_float(int x) { return as<float>((uint32_t)x); }
static int __float_as_int(float x) { return (int)raw(x); }
static double __longlong_as_double(long long x) { return as<double>(x); }
static long long __double_as_longlong(double x) { return raw(x); }
static double __hiloint2double(int hi, int lo) { return as<double>((uint64_t)(uint32_t)hi << 32 | (uint32_t)lo); }
static int __double2hiint(double x) { return raw(x) >> 32; }
static int __double2loint(double x) { return raw(x); }
static float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static float __fadd_rn(float a, float b) { return a + b; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fdiv_rn(float a, float b) { return a / b; }
static float __fsqrt_rn(float a) { return sqrtf(a); }
static int __float2int_rn(float a) { return lrintf(a); }
static float __saturatef(float a) { return a > 0 ? a < 1 ? a : 1 : 0; }
