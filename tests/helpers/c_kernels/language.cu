// What C++ has beyond expressions: tables of functions, classes, recursion, local arrays, globals, templates.
#include "common.h"
typedef uint32_t (*Step)(uint32_t, uint32_t);
__device__ __noinline__ uint32_t plus(uint32_t a, uint32_t b) { return a + b; }
__device__ __noinline__ uint32_t times(uint32_t a, uint32_t b) { return a * (b | 1); }
__device__ __noinline__ uint32_t mixed(uint32_t a, uint32_t b) { return a << 7 ^ b >> 3 ^ b; }
__device__ Step steps[3] = {plus, times, mixed};
__device__ int counter_table[4] = {3, -1, 4, 100};
__device__ int *pointers[3] = {counter_table + 2, counter_table, counter_table + 3};
__device__ const char *const words[3] = {"alpha", "be", "gamma ray"};
__constant__ float weights[5] = {0.5f, -1.25f, 3e-40f, 1e30f, 7.f};
__constant__ struct { short s; double d; char c[3]; } record = {-7, 2.5, {'x', 'y', 'z'}};
// run: function_table 2 48
KERNEL(function_table) { unsigned i = GLOBAL; uint32_t x = in[i]; for (int k = 0; k < 6; k++) x = steps[(x >> 4) % 3](x, in[i + k]); out[i] = x; }
// run: globals 2 48
KERNEL(globals) { unsigned i = GLOBAL; int *p = pointers[in[i] % 3]; const char *w = words[in[i + 1] % 3]; int length = 0; while (w[length]) length++; out[3 * i] = *p + length; out[3 * i + 1] = __float_as_uint(weights[in[i] % 5]); out[3 * i + 2] = record.s + record.c[in[i] % 3] + (int)(record.d * 4); }
struct Shape { int w, h; __device__ Shape(int a, int b) : w(a), h(b) {} __device__ virtual int area() const { return w * h; } __device__ virtual int edge() const = 0; __device__ virtual ~Shape() {} };
struct Box : Shape { __device__ Box(int a, int b) : Shape(a, b) {} __device__ int edge() const override { return 2 * (w + h); } };
struct Line : Shape { int extra; __device__ Line(int a) : Shape(a, 1), extra(a * 3) {} __device__ int area() const override { return -extra; } __device__ int edge() const override { return w; } };
__device__ __noinline__ int measured(const Shape *s) { return s->area() * 31 + s->edge(); }
// run: classes 2 48
KERNEL(classes) { unsigned i = GLOBAL; Box b(in[i] & 255, in[i + 1] & 255); Line l(in[i + 2] & 63); const Shape *s = in[i] & 1024 ? (const Shape *)&b : (const Shape *)&l; out[i] = measured(s) + (in[i] & 1 ? s->edge() : 0); }
__device__ __noinline__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__device__ __noinline__ uint64_t fibonacci(int k) { return k < 2 ? k : fibonacci(k - 1) + fibonacci(k - 2); }
__device__ __noinline__ void quick(int *a, int lo, int hi) { if (lo >= hi) return; int p = a[hi], j = lo; for (int k = lo; k < hi; k++) if (a[k] < p) { int t = a[k]; a[k] = a[j]; a[j++] = t; } a[hi] = a[j]; a[j] = p; quick(a, lo, j - 1); quick(a, j + 1, hi); }
// run: recursion 1 40
KERNEL(recursion) { unsigned i = GLOBAL; int a[20]; for (int k = 0; k < 20; k++) a[k] = in[20 * i + k]; quick(a, 0, 19); for (int k = 0; k < 20; k++) out[20 * i + k] = a[k]; out[1000 + i] = ackermann(in[i] % 3, in[i] / 3 % 4); out[1100 + i] = fibonacci(in[i + 1] % 10); }
struct Big { int a[7]; double d; char c; short s[3]; };
__device__ __noinline__ Big turned(Big b, char k) { for (int i = 0; i < 7; i++) b.a[i] = b.a[i] * k + i; b.d = b.d / 3 + k; b.c ^= k; b.s[k & 1] += b.c; return b; }
// run: by_value 2 40
KERNEL(by_value) { unsigned i = GLOBAL; Big b; for (int k = 0; k < 7; k++) b.a[k] = in[i + k]; b.d = in[i]; b.c = in[i + 1]; b.s[0] = b.s[1] = b.s[2] = in[i + 2]; b = turned(turned(b, 3), (char)in[i + 3]);
  out[9 * i] = b.a[in[i] % 7]; out[9 * i + 1] = b.a[3]; out[9 * i + 2] = __double_as_longlong(b.d) >> 32; out[9 * i + 3] = (uint32_t)__double_as_longlong(b.d); out[9 * i + 4] = b.c; out[9 * i + 5] = b.s[0] * b.s[1]; out[9 * i + 6] = b.s[2]; }
template <int N, class T> struct Stack { T a[N]; int top = 0; __device__ void push(T x) { a[top++ % N] = x; } __device__ T pop() { return a[--top % N]; } };
// run: interpreter 2 48
KERNEL(interpreter) {
  unsigned i = GLOBAL; Stack<16, int> s; s.push(in[i]); s.push(in[i + 1]);
  for (int k = 0; k < 20; k++) { uint32_t op = in[i + k + 2]; if (s.top < 2) { s.push(op); continue; } if (s.top > 14) { s.pop(); continue; }
    switch (op % 11) { case 0: s.push(s.pop() + s.pop()); break; case 1: { int a = s.pop(), b = s.pop(); s.push(a - b); break; } case 2: { int a = s.pop(); s.push(a); s.push(a ^ 5); break; } case 3: s.push(op >> 8); break; case 4: s.push(-s.pop()); break;
      case 5: { int a = s.pop(), b = s.pop(); s.push(a < b); break; } case 6: if (s.pop() & 1) k += 2; break; case 7: s.push(k); break; case 8: s.push(s.pop() >> 3); break; case 9: { int a = s.pop(), b = s.pop(); s.push(a); s.push(b); break; } default: s.push(7); } }
  int sum = 0; while (s.top > 0) sum = sum * 33 + s.pop(); out[i] = sum;
}
template <class F> __device__ uint32_t folded(const uint32_t *p, int n, uint32_t x, F f) { for (int k = 0; k < n; k++) x = f(x, p[k]); return x; }
// run: lambdas 2 48
KERNEL(lambdas) { unsigned i = GLOBAL; int many = 0; out[2 * i] = folded(in + i, in[i] % 9, 1u, [&](uint32_t a, uint32_t b) { many += b & 1; return a * 31 + b; }); out[2 * i + 1] = many; }
// run: local_arrays 2 48
KERNEL(local_arrays) { unsigned i = GLOBAL; short h[33]; alignas(4) uint8_t c[40]; double d[9]; for (int k = 0; k < 33; k++) h[k] = in[i + k]; for (int k = 0; k < 40; k++) c[k] = k * in[i]; for (int k = 0; k < 9; k++) d[k] = (double)(int)in[i + k] / 7; int sum = 0; for (int k = 0; k < 50; k++) { int j = (in[i] >> (k % 13)) + k; sum += h[(unsigned)j % 33] * c[(unsigned)j % 40]; h[k % 33] ^= sum; c[(unsigned)sum % 40]++; d[(unsigned)sum % 9] += sum; } out[3 * i] = sum; out[3 * i + 1] = (uint32_t)__double_as_longlong(d[in[i] % 9]); const uint32_t *w = (const uint32_t *)c; out[3 * i + 2] = w[in[i] % 10]; }
// run: gotos 2 48
KERNEL(gotos) { unsigned i = GLOBAL; uint32_t x = in[i]; int k = 0; a: x = x * 3 + 1; if (++k > 40) goto d; if (x & 1) goto b; if (x & 2) goto c; goto a; b: x >>= 1; if (x & 4) goto a; if (x & 8) goto c; k += 2; c: x ^= k; if (x & 16) goto b; if (k < 30) goto a; d: out[i] = x; }
struct Node { int key; Node *left, *right; };
__device__ __noinline__ int depth(const Node *n) { return n ? 1 + max(depth(n->left), depth(n->right)) : 0; }
// run: tree 1 33
KERNEL(tree) { unsigned i = GLOBAL; Node pool[12]; Node *root = nullptr; for (int k = 0; k < 12; k++) { pool[k].key = in[12 * i + k]; pool[k].left = pool[k].right = nullptr; Node **at = &root; while (*at) at = pool[k].key < (*at)->key ? &(*at)->left : &(*at)->right; *at = &pool[k]; }
  Node *stack[12]; int top = 0, place = 0; Node *m = root; while (m || top) { while (m) { stack[top++] = m; m = m->left; } m = stack[--top]; out[12 * i + place++] = m->key; m = m->right; } out[2000 + i] = depth(root); }
struct Method { int k; __device__ int first(int x) { return x + k; } __device__ int second(int x) { return x * k; } };
// run: members 1 40
KERNEL(members) { unsigned i = GLOBAL; Method m{(int)in[i]}; int (Method::*f)(int) = in[i + 1] & 1 ? &Method::first : &Method::second; int Big::*dummy = nullptr; (void)dummy; out[i] = (m.*f)(in[i + 2]); }
// run: queens 1 24
KERNEL(queens) { unsigned i = GLOBAL; int size = 6, count = 0; uint32_t cols[8] = {0}, l[8] = {0}, r[8] = {0}, free_[8]; int row = 1; cols[1] = 1u << i % 6; l[1] = cols[1] << 1; r[1] = cols[1] >> 1; free_[1] = ~(cols[1] | l[1] | r[1]) & 63;
  while (row > 0) { if (row == size) { count++; row--; continue; } if (!free_[row]) { row--; continue; } uint32_t b = free_[row] & -free_[row]; free_[row] ^= b; cols[row + 1] = cols[row] | b; l[row + 1] = (l[row] | b) << 1; r[row + 1] = (r[row] | b) >> 1; row++; free_[row] = ~(cols[row] | l[row] | r[row]) & 63; } out[i] = count * 100 + i; }
__device__ static uint32_t scratch[64]; __device__ uint64_t big_counter = 0x123456789abcdefull; __device__ bool flag = true; __device__ uint8_t small_[5] = {1, 2, 3}; __device__ float4 vec = {1, 2, 3, 4};
__device__ void *self = &flag; __device__ struct { int a; const int *b; char c; int (*f)(const Shape *); } mix = {5, &counter_table[1], 'q', measured}; __device__ uint64_t off = 0;
// run: more_globals 1 32
KERNEL(more_globals) { unsigned i = GLOBAL; scratch[i] = in[i]; __syncthreads(); out[6 * i] = scratch[31 - i]; out[6 * i + 1] = (uint32_t)(big_counter >> i); out[6 * i + 2] = flag + small_[i % 5]; out[6 * i + 3] = vec.z * i; Box b(i, 2); out[6 * i + 4] = mix.a + *mix.b + mix.c + mix.f(&b); out[6 * i + 5] = self == (void *)&flag; }
