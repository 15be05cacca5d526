// Integers of all widths, hashes, bits and SIMD in a word.
#include "common.h"
// run: hashes 4 96
KERNEL(hashes) {
  unsigned i = GLOBAL; uint32_t h = in[i];
  h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; h ^= h >> 16;
  uint64_t f = 14695981039346656037ull;
  const uint8_t *bytes = (const uint8_t *)(in + i);
  for (int k = 0; k < 13; k++) { f ^= bytes[k]; f *= 1099511628211ull; }
  uint64_t z = f + 0x9e3779b97f4a7c15ull; z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull; z = (z ^ (z >> 27)) * 0x94d049bb133111ebull; z ^= z >> 31;
  uint32_t crc = ~0u;
  for (int k = 0; k < 5; k++) { crc ^= bytes[k]; for (int b = 0; b < 8; b++) crc = crc >> 1 ^ (0xedb88320u & -(crc & 1)); }
  out[4 * i] = h; out[4 * i + 1] = (uint32_t)f; out[4 * i + 2] = z >> 32; out[4 * i + 3] = ~crc;
}
// run: narrow 3 65
KERNEL(narrow) {
  unsigned i = GLOBAL; const int8_t *s8 = (const int8_t *)in; const uint8_t *u8 = (const uint8_t *)in;
  const int16_t *s16 = (const int16_t *)in; const uint16_t *u16 = (const uint16_t *)in;
  int8_t a = s8[i], b = s8[i + 1000]; uint8_t c = u8[i + 3]; int16_t d = s16[i + 5]; uint16_t e = u16[i + 7];
  a += b; a *= c; c -= a; d <<= (c & 7); e >>= (a & 7); d = d / (int16_t)(b ? b : 3); e %= (uint16_t)(c | 1);
  int8_t q = (int8_t)(a / (int8_t)((b | 1) == -1 ? 5 : (b | 1)));
  bool less = a < (int)c; d ^= (int16_t)~e; c = (uint8_t)(c << 3 | c >> 5); a = -a; a = a < 0 ? -a : a;
  int8_t *o8 = (int8_t *)out; int16_t *o16 = (int16_t *)(out + 4096);
  o8[8 * i] = a; o8[8 * i + 1] = c; o8[8 * i + 2] = q; o8[8 * i + 3] = less; o8[8 * i + 4] = d >> 8; o8[8 * i + 5] = !e;
  o16[3 * i] = d; o16[3 * i + 1] = e; o16[3 * i + 2] = (int16_t)(a * c - d * e);
}
// run: wide 3 64
KERNEL(wide) {
  unsigned i = GLOBAL; const uint64_t *p = (const uint64_t *)in; uint64_t *o = (uint64_t *)out + 12 * i;
  uint64_t a = p[i], b = p[i + 200] >> (i % 64), c = p[i + 400]; int64_t s = (int64_t)a, t = (int64_t)b >> 3; int32_t u = (int32_t)c;
  o[0] = a / (b | 1); o[1] = a % (b | 1); o[2] = s / (t | 1); o[3] = s % (t | 1); o[4] = __umul64hi(a, c); o[5] = __mul64hi(s, (int64_t)c);
  o[6] = a << (c & 63) | a >> (-c & 63); o[7] = (uint64_t)(s >> (i % 64)); o[8] = (uint64_t)u * (uint64_t)(int64_t)(int32_t)b;
  o[9] = __popcll(a) + __clzll(b) + __ffsll(c); o[10] = __brevll(a); o[11] = (uint64_t)(s < t) << 32 | (a > c) | (uint64_t)min(s, t) ^ max(a, c);
}
// run: i128 2 64
KERNEL(i128) {
  unsigned i = GLOBAL; const uint64_t *p = (const uint64_t *)in; uint64_t *o = (uint64_t *)out + 8 * i;
  unsigned __int128 x = (unsigned __int128)p[i] << 64 | p[i + 1], y = (unsigned __int128)p[i + 2] << 64 | p[i + 3];
  __int128 sx = (__int128)x, sy = (__int128)y >> 5;
  unsigned __int128 m = x * y, s = x + y, d = x - y; 
  o[0] = (uint64_t)(m >> 64); o[1] = (uint64_t)m; o[2] = (uint64_t)(s >> 64); o[3] = (uint64_t)(d >> 64);
  o[4] = (uint64_t)(x / ((y >> (i % 128)) | 1)); o[5] = (uint64_t)(sx % (sy | 1)); o[6] = (uint64_t)(sx >> (i % 128)); o[7] = x < y;
}
// run: bits 4 64
KERNEL(bits) {
  unsigned i = GLOBAL; uint32_t a = in[i], b = in[i + 300], c = in[i + 600]; int s = (int)a, t = (int)b; uint32_t *o = out + 24 * i;
  o[0] = __popc(a); o[1] = __clz(a >> (i % 33 > 31 ? 31 : i % 33)); o[2] = __ffs(a << (i % 32)); o[3] = __brev(a); o[4] = __umulhi(a, b); o[5] = __mulhi(s, t);
  o[6] = __mul24(s, t); o[7] = __umul24(a, b); o[8] = __usad(a, b, c); o[9] = __hadd(s, t); o[10] = __rhadd(s, t); o[11] = __uhadd(a, b);
  o[12] = __byte_perm(a, b, c & 0x7777); o[13] = __funnelshift_l(a, b, c); o[14] = __funnelshift_r(a, b, c); o[15] = __funnelshift_lc(a, b, c % 40);
  o[16] = __funnelshift_rc(a, b, c % 40); o[17] = __dp4a(s, t, (int)c); o[18] = __dp4a(a, b, c); o[19] = abs(s); o[20] = s / (t >> 20 | 1); o[21] = a % (b >> 9 | 1);
  o[22] = (s >> 3) % 1000 + a / 7 + s / -13; o[23] = (a >> 5 & 0x1ff) | (b & 0xff) << 20 | (uint32_t)(s << 7 >> 25);
}
// run: simd 4 64
KERNEL(simd) {
  unsigned i = GLOBAL; uint32_t a = in[i], b = in[i + 300], *o = out + 20 * i;
  o[0] = __vadd4(a, b); o[1] = __vaddus4(a, b); o[2] = __vaddss4(a, b); o[3] = __vabsdiffu4(a, b); o[4] = __vabsdiffs4(a, b); o[5] = __vavgu4(a, b);
  o[6] = __vmaxs4(a, b); o[7] = __vminu4(a, b); o[8] = __vcmpgtu4(a, b); o[9] = __vsetles4(a, b); o[10] = __vsadu4(a, b); o[11] = __vadd2(a, b);
  o[12] = __vmaxu2(a, b); o[13] = __vmins2(a, b); o[14] = __vsubss2(a, b); o[15] = __vabs4(a); o[16] = __vneg2(a); o[17] = __vcmpeq4(a & 0x0f0f0f0f, b & 0x0f0f0f0f);
}
struct Packed { uint32_t low : 5; int32_t middle : 11; uint32_t high : 16; uint64_t wide : 40; int64_t rest : 24; };
union Word { uint32_t u; int32_t s; float f; uint8_t b[4]; int16_t h[2]; struct { uint32_t m : 23, e : 8, s : 1; } parts; };
// run: fields 2 70
KERNEL(fields) {
  unsigned i = GLOBAL; Packed p; memset(&p, 0, sizeof p);
  p.low = in[i]; p.middle = in[i + 1]; p.high = in[i + 2]; p.wide = (uint64_t)in[i + 3] << 13 | i; p.rest = (int64_t)(int32_t)in[i + 4];
  p.middle += p.low; p.rest -= p.middle; p.wide ^= p.high; p.low++;
  Word w; w.u = in[i + 5]; w.b[i % 4] ^= w.b[(i + 1) % 4]; w.h[i & 1] += 77; w.parts.e = 127; w.parts.s ^= 1;
  memcpy(out + 8 * i, &p, sizeof p); out[8 * i + 5] = w.u; out[8 * i + 6] = (uint32_t)p.middle; out[8 * i + 7] = (uint32_t)(int)p.rest;
}
// run: vectors 2 64
KERNEL(vectors) {
  unsigned i = GLOBAL; const uchar4 *c = (const uchar4 *)in; const short2 *h = (const short2 *)in; const uint4 *q = (const uint4 *)in; const ulonglong2 *l = (const ulonglong2 *)in;
  uchar4 a = c[i], b = c[i + 9]; short2 s = h[i + 3]; uint4 v = q[i]; ulonglong2 w = l[i]; const char3 *t = (const char3 *)in; char3 z = t[i]; const ushort4 *us = (const ushort4 *)in; ushort4 k = us[i];
  a.x += b.w; a.y ^= b.z; a.z = a.z > b.y ? a.z : b.y; a.w = (unsigned char)((a.w * b.x) >> 8); s.x = -s.y; s.y += a.x;
  ((uchar4 *)out)[i] = a; ((short2 *)(out + 256))[i] = s; ((uint4 *)(out + 1024))[i] = make_uint4(v.w, v.z ^ v.x, v.y + v.w, v.x);
  ((ulonglong2 *)(out + 2048))[i] = make_ulonglong2(w.y + w.x, w.x * 3); ((char3 *)(out + 4096))[i] = make_char3(z.z, z.x, z.y + z.x); ((ushort4 *)(out + 5000))[i] = make_ushort4(k.w, k.x & k.y, k.z * k.z, k.y);
}
// run: collatz 5 33
KERNEL(collatz) { unsigned i = GLOBAL; uint64_t x = in[i] % 10000 + 1; int steps = 0; while (x != 1) { x = x & 1 ? 3 * x + 1 : x >> 1; steps++; } out[i] = steps; }
// run: gcd 3 50
KERNEL(gcd) { unsigned i = GLOBAL; uint32_t a = in[i] % 100000, b = in[i + 1] % 100000; while (b) { uint32_t t = a % b; a = b; b = t; } out[i] = a; 
  uint64_t m = 1000000007ull, r = 1, base = in[i + 5] % m; for (uint32_t e = in[i + 6]; e; e >>= 1) { if (e & 1) r = r * base % m; base = base * base % m; } out[i + 200] = (uint32_t)r; }
// run: sha 2 32
KERNEL(sha) {
  unsigned i = GLOBAL; uint32_t w[64], s[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (int t = 0; t < 16; t++) w[t] = __byte_perm(in[16 * i + t], 0, 0x0123);
#define ROT(x, n) ((x) >> (n) | (x) << (32 - (n)))
  for (int t = 16; t < 64; t++) w[t] = w[t - 16] + w[t - 7] + (ROT(w[t - 15], 7) ^ ROT(w[t - 15], 18) ^ w[t - 15] >> 3) + (ROT(w[t - 2], 17) ^ ROT(w[t - 2], 19) ^ w[t - 2] >> 10);
  uint32_t v[8]; for (int k = 0; k < 8; k++) v[k] = s[k];
#pragma unroll 4
  for (int t = 0; t < 64; t++) {
    uint32_t a = v[7] + (ROT(v[4], 6) ^ ROT(v[4], 11) ^ ROT(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + w[t] + 0x428a2f98u * (t + 1);
    uint32_t b = (ROT(v[0], 2) ^ ROT(v[0], 13) ^ ROT(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    for (int k = 7; k > 0; k--) v[k] = v[k - 1]; v[4] += a; v[0] = a + b;
  }
  for (int k = 0; k < 8; k++) out[8 * i + k] = s[k] + v[k];
}
