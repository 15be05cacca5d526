// Threads that work together: sorting, scans, reductions, histograms, transposes, stencils, locks.
#include "common.h"
// run: bitonic 2 256 4096
KERNEL(bitonic) {
  DYNAMIC_SHARED(uint32_t, s); int t = threadIdx.x, m = 2 * blockDim.x; const uint32_t *p = in + blockIdx.x * m;
  s[t] = p[t]; s[t + blockDim.x] = p[t + blockDim.x];
  for (int k = 2; k <= m; k <<= 1) for (int j = k >> 1; j > 0; j >>= 1) {
    __syncthreads();
    int a = 2 * t - (t & (j - 1)), b = a + j; bool up = (a & k) == 0; uint32_t x = s[a], y = s[b];
    if ((x > y) == up) { s[a] = y; s[b] = x; }
  }
  __syncthreads(); out[blockIdx.x * m + t] = s[t]; out[blockIdx.x * m + t + blockDim.x] = s[t + blockDim.x];
}
// run: oddeven 2 50
KERNEL(oddeven) {
  __shared__ int s[100]; int t = threadIdx.x; s[2 * t] = in[blockIdx.x * 100 + 2 * t]; s[2 * t + 1] = in[blockIdx.x * 100 + 2 * t + 1]; __syncthreads();
  for (int r = 0; r < 100; r++) { int a = 2 * t + (r & 1); if (a + 1 < 100 && s[a] > s[a + 1]) { int x = s[a]; s[a] = s[a + 1]; s[a + 1] = x; } __syncthreads(); }
  out[blockIdx.x * 100 + t] = s[t]; out[blockIdx.x * 100 + t + 50] = s[t + 50];
}
// run: hillis 3 200
KERNEL(hillis) {
  __shared__ uint32_t s[2][200]; int t = threadIdx.x, k = 0; s[0][t] = in[GLOBAL]; __syncthreads();
  for (int d = 1; d < 200; d *= 2) { s[1 - k][t] = t >= d ? s[k][t] + s[k][t - d] : s[k][t]; k = 1 - k; __syncthreads(); }
  out[GLOBAL] = s[k][t];
}
// run: blelloch 2 64 1024
KERNEL(blelloch) {
  DYNAMIC_SHARED(int, s); int t = threadIdx.x, m = 128, offset = 1; s[2 * t] = in[blockIdx.x * m + 2 * t]; s[2 * t + 1] = in[blockIdx.x * m + 2 * t + 1];
  for (int d = m >> 1; d > 0; d >>= 1) { __syncthreads(); if (t < d) s[offset * (2 * t + 2) - 1] += s[offset * (2 * t + 1) - 1]; offset *= 2; }
  if (t == 0) s[m - 1] = 0;
  for (int d = 1; d < m; d *= 2) { offset >>= 1; __syncthreads(); if (t < d) { int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1, x = s[a]; s[a] = s[b]; s[b] += x; } }
  __syncthreads(); out[blockIdx.x * m + 2 * t] = s[2 * t]; out[blockIdx.x * m + 2 * t + 1] = s[2 * t + 1];
}
__device__ uint32_t warp_scan(uint32_t x) { for (int d = 1; d < 32; d *= 2) { uint32_t y = __shfl_up_sync(~0u, x, d); if (lane_id() >= d) x += y; } return x; }
// run: shuffled_scan 2 224
KERNEL(shuffled_scan) {
  __shared__ uint32_t sums[32]; int t = threadIdx.x; uint32_t x = warp_scan(in[GLOBAL]);
  if (t % 32 == 31) sums[t / 32] = x; __syncthreads();
  if (t < 32) { uint32_t y = t < (int)blockDim.x / 32 ? sums[t] : 0; sums[t] = warp_scan(y) - y; }
  __syncthreads(); out[GLOBAL] = x + sums[t / 32];
}
struct alignas(8) Status { uint32_t value, state; };
// run: look_back 6 64
KERNEL(look_back) {
  __shared__ uint32_t before; volatile uint32_t *status = out + 4096; uint32_t x = in[GLOBAL] & 0xffff; __shared__ uint32_t all[64];
  all[threadIdx.x] = x; __syncthreads();
  for (int d = 1; d < 64; d *= 2) { uint32_t y = threadIdx.x >= d ? all[threadIdx.x - d] : 0; __syncthreads(); all[threadIdx.x] += y; __syncthreads(); }
  if (threadIdx.x == 0) {
    uint32_t total = all[63]; status[2 * blockIdx.x] = total; __threadfence(); status[2 * blockIdx.x + 1] = blockIdx.x ? 1 : 2; 
    uint32_t sum = 0;
    for (int j = (int)blockIdx.x - 1; j >= 0; j--) { uint32_t state; do { state = status[2 * j + 1]; __nanosleep(20); } while (state == 0); __threadfence(); sum += status[2 * j]; }
    before = sum;
  }
  __syncthreads(); out[GLOBAL] = all[threadIdx.x] + before;
}
// run: reductions 3 160
KERNEL(reductions) {
  __shared__ volatile int s[160]; int t = threadIdx.x; int x = in[GLOBAL]; s[t] = x; __syncthreads();
  for (int m = 160; m > 1; m = (m + 1) / 2) { int half = (m + 1) / 2; if (t < m / 2) s[t] = min(s[t], s[t + half]); __syncthreads(); }
  int sum = x; for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  int top = x; for (int d = 16; d; d >>= 1) top = max(top, __shfl_down_sync(~0u, top, d));
  long long wide = x; for (int d = 8; d; d >>= 1) wide += __shfl_xor_sync(0xffffffff, wide, d, 16);
  atomicAdd(out + 2000, sum); if (lane_id() == 0) { atomicMax((int *)out + 2001, top); atomicMin(out + 2002, (unsigned)x); atomicXor(out + 2003, x); }
  atomicAdd((unsigned long long *)(out + 2010), (unsigned long long)wide); atomicOr(out + 2004, 1u << (x & 31)); atomicInc(out + 2005, 77u); atomicSub(out + 2006, 3u);
  out[GLOBAL] = sum ^ top ^ (int)(wide >> 32); if (t == 0) out[1000 + blockIdx.x] = s[0];
  int c = __syncthreads_count(x > 0); if (__syncthreads_or(x == 5)) c += 1000; if (__syncthreads_and(x != 5)) c += 2000; out[3000 + GLOBAL] = c;
}
// run: votes 2 128
KERNEL(votes) {
  uint32_t x = in[GLOBAL], *o = out + 10 * GLOBAL; o[0] = __ballot_sync(~0u, x & 1); o[1] = __any_sync(~0u, (x & 31) == 0); o[2] = __all_sync(~0u, x > 100);
  if (lane_id() % 3 == 1) { uint32_t mask = 0x92492492; o[3] = __ballot_sync(mask, x & 2); o[4] = __shfl_sync(mask, x, 4); o[5] = __shfl_xor_sync(mask, x, 0); }
  else { uint32_t mask = ~0x92492492; __syncwarp(mask); o[3] = __shfl_sync(mask, x, 3); }
  o[6] = __shfl_sync(~0u, x, lane_id() + 3, 8); o[7] = __shfl_down_sync(~0u, x, 5, 16); o[8] = (uint32_t)(__shfl_sync(~0u, (double)x, 31 - lane_id())); o[9] = __shfl_up_sync(~0u, x, 2, 4);
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
// run from sm_80: matched 2 96
KERNEL(matched) {
  uint32_t x = in[GLOBAL], *o = out + 8 * GLOBAL; int same; o[0] = __match_any_sync(~0u, x & 7); o[1] = __match_any_sync(~0u, (uint64_t)(x & 3) << 40); o[2] = __match_all_sync(~0u, x, &same); o[3] = same; o[2] += __match_all_sync(~0u, blockIdx.x, &same); o[4] = same;
  o[5] = __reduce_add_sync(~0u, x); o[6] = __reduce_max_sync(~0u, (int)x); uint32_t peers = o[0]; o[7] = __reduce_xor_sync(peers, x) ^ __reduce_min_sync(peers, x);
}
#endif
// run: histogram 4 192
KERNEL(histogram) {
  __shared__ unsigned bins[256]; for (int b = threadIdx.x; b < 256; b += blockDim.x) bins[b] = 0; __syncthreads();
  for (unsigned i = GLOBAL; i < 4 * (unsigned)n; i += gridDim.x * blockDim.x) { atomicAdd(&bins[((const uint8_t *)in)[i]], 1u); atomicAdd(out + 512 + (in[i % 1000] >> 28), 1u); }
  __syncthreads(); for (int b = threadIdx.x; b < 256; b += blockDim.x) if (bins[b]) atomicAdd(out + b, bins[b]);
}
// run: transpose 3,2 32,8
KERNEL(transpose) {
  __shared__ uint32_t tile[32][33]; int w = 90, h = 60, x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads(); x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}
// run: stencil 5,3,2 8,4,2
KERNEL(stencil) {
  __shared__ int s[4][6][10]; int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
  for (int q = THREAD; q < 240; q += 64) {
    int gx = (int)blockIdx.x * 8 + q % 10 - 1, gy = (int)blockIdx.y * 4 + q / 10 % 6 - 1, gz = (int)blockIdx.z * 2 + q / 60 - 1;
    s[q / 60][q / 10 % 6][q % 10] = gx >= 0 && gx < 37 && gy >= 0 && gy < 11 && gz >= 0 && gz < 4 ? (int)in[(gz * 11 + gy) * 37 + gx] >> 8 : 0;
  }
  __syncthreads(); if (x >= 37 || y >= 11) return;
  int a = threadIdx.x + 1, b = threadIdx.y + 1, c = threadIdx.z + 1;
  out[(z * 11 + y) * 37 + x] = 6 * s[c][b][a] - s[c][b][a - 1] - s[c][b][a + 1] - s[c][b - 1][a] - s[c][b + 1][a] - s[c - 1][b][a] - s[c + 1][b][a];
}
__device__ int lock_word; __device__ unsigned counted, last_done;
// run: locked 5 40
KERNEL(locked) {
  for (bool done = false; !done;) if (atomicCAS(&lock_word, 0, 1) == 0) { __threadfence(); volatile uint32_t *o = out; o[0] = o[0] + in[GLOBAL]; o[1] = o[1] + 1; __threadfence(); atomicExch(&lock_word, 0); done = true; }
  __shared__ bool last; __syncthreads(); if (threadIdx.x == 0) { __threadfence(); last = atomicInc(&counted, gridDim.x - 1) == gridDim.x - 1; } __syncthreads();
  if (last && threadIdx.x == 0) out[2] = __ldcg(out) * 3;
}
// run: float_max 3 64 0 float
KERNEL(float_max) {
  float x = __uint_as_float(in[GLOBAL]); int *a = (int *)out, old = *(volatile int *)a, seen;
  do { seen = old; if (__int_as_float(seen) >= x) break; old = atomicCAS(a, seen, __float_as_int(x)); } while (old != seen);
  uint64_t *w = (uint64_t *)(out + 2), o = *(volatile uint64_t *)w, s;
  do { s = o; o = atomicCAS((unsigned long long *)w, (unsigned long long)s, (unsigned long long)(s + in[GLOBAL])); } while (o != s);
}
// run: ragged 3 77
KERNEL(ragged) { unsigned i = GLOBAL; if (i >= 200) return; __syncthreads(); if (i % 5 == 0) return; uint32_t x = in[i]; for (int k = 0; k < (int)(x % 17); k++) { if (k == 11) break; if (k & 1) continue; x = x * 5 + k; } 
  switch (x % 9) { case 0: x += 3; case 1: x ^= 99; break; case 4: x *= 7; break; case 5: return; case 7: x = ~x; break; default: x -= 1; } out[i] = x; }
// run: product_naive 3,2 16,16 0 float
KERNEL(product_naive) { int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x; if (r >= 31 || c >= 45) return; const float *a = (const float *)in, *b = a + 2000; float s = 0; for (int k = 0; k < 37; k++) s = __fmaf_rn(a[r * 37 + k], b[k * 45 + c], s); ((float *)out)[r * 45 + c] = s; }
// run: product_tiled 3,2 16,16 0 float
KERNEL(product_tiled) {
  __shared__ float x[16][16], y[16][17]; int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x; const float *a = (const float *)in, *b = a + 2000; float s = 0;
  for (int k = 0; k < 37; k += 16) { x[threadIdx.y][threadIdx.x] = r < 31 && k + threadIdx.x < 37 ? a[r * 37 + k + threadIdx.x] : 0; y[threadIdx.y][threadIdx.x] = c < 45 && k + threadIdx.y < 37 ? b[(k + threadIdx.y) * 45 + c] : 0; __syncthreads();
    for (int q = 0; q < 16; q++) s = __fmaf_rn(x[threadIdx.y][q], y[q][threadIdx.x], s); __syncthreads(); }
  if (r < 31 && c < 45) ((float *)out)[r * 45 + c] = s;
}
// run: radix 1 128
KERNEL(radix) {
  __shared__ uint32_t a[128], b[128]; __shared__ int zeros[4]; int t = threadIdx.x; a[t] = in[t] & 0xffff; __syncthreads(); uint32_t *p = a, *q = b;
  for (int bit = 0; bit < 16; bit++) { uint32_t x = p[t]; bool one = x >> bit & 1; uint32_t v = __ballot_sync(~0u, !one); int below = __popc(v & ((1u << lane_id()) - 1)); if (lane_id() == 0) zeros[t / 32] = __popc(v); __syncthreads();
    int z = 0, base = 0; for (int k = 0; k < 4; k++) { if (k < t / 32) base += zeros[k]; z += zeros[k]; } int rank = base + below; q[one ? z + t - rank : rank] = x; __syncthreads(); uint32_t *o = p; p = q; q = o; }
  out[t] = p[t];
}
