// Kernels that a reference decides: typed pointers, a structure by value, and pointers whose type only loads show.
#include <cuda_fp16.h>
#include <cstdio>
#include <vector>

struct Params { const float *x, *w; float *y; int rows, columns; float eps; };

__global__ void norm(Params p) {
  int row = blockIdx.x;
  float s = 0;
  for (int i = 0; i < p.columns; i++) s += p.x[row * p.columns + i] * p.x[row * p.columns + i];
  float r = rsqrtf(s / p.columns + p.eps);
  for (int i = threadIdx.x; i < p.columns; i += blockDim.x)
    p.y[row * p.columns + i] = p.x[row * p.columns + i] * r * p.w[i];
}

__global__ void product(const __half *a, const __half *b, float *c, int m, int n, int k, float alpha) {
  int i = blockIdx.x, j = threadIdx.x;
  float s = 0;
  for (int t = 0; t < k; t++) s += __half2float(a[i * k + t]) * __half2float(b[t * n + j]);
  c[i * n + j] = alpha * s;
}

extern "C" __global__ void scaled(const void *a, const void *q, void *c, int n) {
  const __half2 *pairs = (const __half2 *)a;
  int i = threadIdx.x;
  if (i < n) ((float *)c)[i] = __half2float(pairs[i].x) * ((const unsigned char *)q)[i] + __half2float(pairs[i].y);
}

__global__ void fill(int *p, int n) { if (threadIdx.x < n) p[threadIdx.x] = 7; }

template <typename T> T *device(const std::vector<T> &values) {
  T *found;
  cudaMalloc(&found, values.size() * sizeof(T));
  cudaMemcpy(found, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return found;
}

int main() {
  const int m = 16, n = 32, k = 24;
  std::vector<__half> a(m * k), b(k * n);
  std::vector<float> x(8 * 32), w(32), c(m * n), y(8 * 32);
  std::vector<unsigned char> q(32);
  for (int i = 0; i < m * k; i++) a[i] = __float2half((i * 37 % 23 - 11) / 8.0f);
  for (int i = 0; i < k * n; i++) b[i] = __float2half((i * 53 % 29 - 14) / 8.0f);
  for (int i = 0; i < 256; i++) x[i] = (i * 31 % 19 - 9) / 4.0f;
  for (int i = 0; i < 32; i++) w[i] = 1 + i / 32.0f, q[i] = i * 7;
  __half *da = device(a), *db = device(b);
  float *dc = device(c), *dy = device(y);
  fill<<<1, 32>>>((int *)dc, 32);
  for (int repeat = 0; repeat < 2; repeat++) product<<<m, n>>>(da, db, dc, m, n, k, 0.5f);
  cudaMemcpy(c.data(), dc, 4 * m * n, cudaMemcpyDeviceToHost);
  norm<<<8, 32>>>(Params{device(x), device(w), dy, 8, 32, 1e-5f});
  scaled<<<1, 32>>>(da, device(q), dc, 32);
  cudaMemcpy(y.data(), dy, 4 * 256, cudaMemcpyDeviceToHost);
  float s = 0, t = 0;
  for (int i = 0; i < m * n; i++) s += c[i];
  for (int i = 0; i < 256; i++) t += y[i] * y[i];
  printf("%g %.2f\n", s, t);
  return 0;
}
