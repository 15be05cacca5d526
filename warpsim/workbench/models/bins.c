
/* --- numbers, and what a step of a sum did --- */

enum { FINITE, INFINITE, NOT_A_NUMBER };

typedef struct {
  uint64_t m; /* magnitude, in units of 2**scale */
#if WIDE
  uint64_t h; /* its high half */
#endif
  int32_t scale, e; /* e: the exponent by which it is aligned */
  unsigned char negative, kind, live; /* live: takes part in the alignment */
} term;

#if WIDE
#define HIGH(x) (x).h
#else
#define HIGH(x) UINT64_C(0)
#endif
#define MAGNITUDE(x) ((x).m | HIGH(x))

typedef struct {
  const term *x; /* the terms, C last */
  int count, finite, special;
  int32_t top, unit;
  const int64_t *kept;
  int64_t total;
  int by_product, by_c, live;
  int cut_product, cut_c, cut_plus, cut_minus, cut_unit;
  int negative, tail, odd, overflow, subnormal, vanished, carried, zero; /* of the rounding */
} step;

static step now;

#if ALIGNED
/* The parts of a unit that alignment cut off a term. */
static double lost_of(const step *s, int i) {
  int32_t down = s->unit - s->x[i].scale, k;
  uint64_t m = s->x[i].m;
  double part;
  if (down <= 0 || m == 0) return 0;
  part = (double)(down > 63 ? m : m & ((UINT64_C(1) << down) - 1));
  for (k = 0; k < down && part > 0; k++) part /= 2;
  return part;
}

static void look_at_terms(step *s) {
  double sum = 0, lost;
  int i;
  s->by_product = s->by_c = s->live = 0;
  s->cut_product = s->cut_c = s->cut_plus = s->cut_minus = 0;
  for (i = 0; i < s->count; i++) {
    int c = i == s->count - 1, sets = s->x[i].live && s->x[i].e == s->top;
    s->live += s->x[i].live;
    s->by_product |= sets && !c;
    s->by_c |= sets && c;
    if (!s->finite || (lost = lost_of(s, i)) <= 0) continue;
    s->cut_product |= !c;
    s->cut_c |= c;
    s->cut_plus |= !s->x[i].negative;
    s->cut_minus |= s->x[i].negative;
    sum += s->x[i].negative ? -lost : lost;
  }
  s->cut_unit = sum >= 1 || sum <= -1;
}

#endif

#if ALIGNED
/* Whether a term lies so far below one that sets the alignment. */
static int gap(const step *s, int below, int of_c) {
  int i, first = of_c ? s->count - 1 : 0, last = of_c ? s->count : s->count - 1;
  for (i = first; i < last; i++)
    if (s->x[i].live && s->top - s->x[i].e == below) return 1;
  return 0;
}

static int zero_above(const step *s) {
  int i;
  for (i = 0; i < s->count - 1; i++)
    if (s->x[i].m == 0 && s->x[i].kind == 0 && s->x[i].e > s->top) return 1;
  return 0;
}

static int product_beyond(const step *s, int exponent) {
  int i;
  for (i = 0; i < s->count - 1; i++)
    if (s->x[i].m && s->x[i].kind == 0 && s->x[i].e > exponent) return 1;
  return 0;
}

#endif

#if IEEE
static int several(const step *s) {
  int i, found = 0;
  for (i = 0; i < s->count; i++) found += MAGNITUDE(s->x[i]) != 0;
  return found > 1;
}

static int zeros_differ(const step *s) {
  int i, minus = 0;
  for (i = 0; i < s->count; i++) {
    if (MAGNITUDE(s->x[i])) return 0;
    minus += s->x[i].negative;
  }
  return minus > 0 && minus < s->count;
}
#endif

#if FLOATS
/* --- what makes Inf or NaN --- */

typedef struct {
  int count, invalid, nan, infinite, plus, minus, first, last, steps_of_plus, steps_of_minus, same_step;
  int inf_zero, zero_inf, nan_zero, zero_nan, nan_a, nan_b, nan_inf, beside_invalid, beside_nan, scale;
} causes;

static causes why_special(const term *a, const term *b) {
  causes w;
  uint64_t plus = 0, minus = 0, apart = 0, apart_invalid = 0, apart_nan = 0, group;
  int k;
  memset(&w, 0, sizeof w);
  for (k = 0; k < STORED; k++) {
    int x = a[k].kind, y = b[k].kind, x0 = a[k].m == 0, y0 = b[k].m == 0;
    int not_valid = (x == INFINITE && y0) || (x0 && y == INFINITE), is_nan = x == NOT_A_NUMBER || y == NOT_A_NUMBER;
    int infinite = (x == INFINITE || y == INFINITE) && !not_valid && !is_nan;
    if (!(not_valid || is_nan || infinite)) continue;
    group = UINT64_C(1) << step_of[k];
    w.count++;
    w.inf_zero |= x == INFINITE && y0;
    w.zero_inf |= x0 && y == INFINITE;
    w.nan_zero |= x == NOT_A_NUMBER && y0;
    w.zero_nan |= x0 && y == NOT_A_NUMBER;
    w.nan_a |= x == NOT_A_NUMBER && y == FINITE && !y0;
    w.nan_b |= y == NOT_A_NUMBER && x == FINITE && !x0;
    w.nan_inf |= is_nan && (x == INFINITE || y == INFINITE);
    w.invalid += not_valid;
    w.nan += is_nan;
    if (infinite && a[k].negative == b[k].negative) plus |= group, w.plus++;
    if (infinite && a[k].negative != b[k].negative) minus |= group, w.minus++;
    if (infinite) apart |= UINT64_C(1) << added_in[k];
    if (not_valid) apart_invalid |= UINT64_C(1) << added_in[k];
    if (is_nan) apart_nan |= UINT64_C(1) << added_in[k];
    w.first |= k == 0;
    w.last |= k == STORED - 1;
  }
  w.infinite = w.plus + w.minus;
  w.beside_invalid = (apart & apart_invalid) != 0;
  w.beside_nan = (apart & apart_nan) != 0;
  w.same_step = (plus & minus) != 0;
  for (; plus; plus &= plus - 1) w.steps_of_plus++;
  for (; minus; minus &= minus - 1) w.steps_of_minus++;
  return w;
}

#endif

#if !FLOATS
static int strays(const step *s, int up) {
  int64_t sum = s->kept[s->count - 1];
  int i, found = up ? sum >= INT64_C(0x80000000) : sum < -INT64_C(0x80000000);
  for (i = 0; i < s->count - 1; i++) {
    sum += s->kept[i];
    found |= up ? sum >= INT64_C(0x80000000) : sum < -INT64_C(0x80000000);
  }
  return found;
}

static int products_are(const step *s, int64_t value) {
  int i;
  for (i = 0; i < s->count - 1; i++)
    if (s->kept[i] != value) return 0;
  return 1;
}

static int lone_product(const step *s) {
  int i, found = -1;
  for (i = 0; i < s->count - 1; i++)
    if (s->kept[i]) found = found == -1 ? i : -2;
  return found;
}
#endif

/* --- bins: 1 to BINS in the order of the table; BINS + 1 is out of reach --- */

static unsigned char hit[BINS + 2];

static int bin_of(const char *name) {
  int i;
  for (i = 0; i < BINS && strcmp(bins[i].name, name); i++) continue;
  return i + 1;
}

static int numbered_bin(const char *format, int number) {
  char name[80];
  snprintf(name, sizeof name, format, number);
  return bin_of(name);
}

#define HIT(name, condition)               \
  do {                                     \
    static int bin_;                       \
    if (!bin_) bin_ = bin_of(name);        \
    if (bin_ <= BINS && (condition)) hit[bin_] = 1; \
  } while (0)
#define BY_SIGN(name, condition)                      \
  HIT(name "positive", (condition) && !s->negative); \
  HIT(name "negative", (condition) && s->negative)
#define BY_TAIL(name, condition)                                   \
  BY_SIGN(name "below half a unit, ", (condition) && s->tail == 1); \
  BY_SIGN(name "half a unit, ", (condition) && s->tail == 2);       \
  BY_SIGN(name "above half a unit, ", (condition) && s->tail == 3)

#if FLOATS
static int vanished_before, beyond, overflowed;

static void see_rounding(const step *s, int last) {
  int normal = s->finite && !s->subnormal && !s->overflow;
  HIT("rounding: exact", s->finite && !s->zero && s->tail == 0);
  BY_TAIL("rounding: ", normal);
  HIT("rounding: half a unit above an even number", normal && s->tail == 2 && !s->odd);
  HIT("rounding: half a unit above an odd number", normal && s->tail == 2 && s->odd);
  HIT("rounding: carries into the next binade", normal && s->carried);
  HIT("subnormal result: exact", s->finite && s->subnormal && s->tail == 0);
  HIT("subnormal result: inexact", s->finite && s->subnormal && s->tail > 0);
  HIT("chain: a sum before the last overflows", !last && s->finite && s->overflow);
  BY_SIGN("rounds to zero: ", s->finite && s->vanished);
  BY_SIGN("overflow: ", s->finite && s->overflow);
}
#endif

#if ALIGNED
#define GAPS(name, below)                                                    \
  HIT(name ": product below product", s->finite && s->by_product && gap(s, below, 0)); \
  HIT(name ": product below C", s->finite && s->by_c && gap(s, below, 0));             \
  HIT(name ": C below product", s->finite && s->by_product && gap(s, below, 1))

static void see_aligned(const step *s, int last) {
  static int carries[CARRIES + 1];
  uint64_t size = s->total < 0 ? (uint64_t)-s->total : (uint64_t)s->total;
  int i;
  HIT("alignment: set by a product alone", s->finite && s->by_product && !s->by_c);
  HIT("alignment: set by C alone", s->finite && s->by_c && !s->by_product);
  HIT("alignment: set by C and a product", s->finite && s->by_c && s->by_product);
  HIT("alignment: set by the exponent floor", s->finite && s->live && !s->by_product && !s->by_c);
  HIT("alignment: a zero product of larger exponent", s->finite && s->live && zero_above(s));
  HIT("cut: a product", s->cut_product);
  HIT("cut: C", s->cut_c);
  HIT("cut: a positive term", s->cut_plus);
  HIT("cut: a negative term", s->cut_minus);
  HIT("cut: parts that add up to a unit", s->cut_unit);
  HIT("cancellation: to zero", s->finite && s->live > 1 && s->total == 0);
  HIT("cancellation: to one unit of the alignment", s->finite && s->live > 1 && size == 1);
  GAPS("gap F-1", FRACTION_BITS - 1);
  GAPS("gap F", FRACTION_BITS);
  GAPS("gap F+1", FRACTION_BITS + 1);
  GAPS("gap F+2", FRACTION_BITS + 2);
  for (i = 1; i <= CARRIES; i++) {
    if (!carries[i]) carries[i] = numbered_bin("carry: %d bits above the largest exponent", i);
    if (s->finite && length(size) == FRACTION_BITS + i + 1) hit[carries[i]] = 1;
  }
  see_rounding(s, last);
  overflowed |= s->finite && s->overflow;
  vanished_before = s->finite && s->vanished && s->negative;
  beyond |= product_beyond(s, (1 << (formats[D_FORMAT].exponent - 1)) - 1);
}
#endif

#if IEEE
/* An IEEE operation; of emulated fp8 that which adds C. */
static void see_ieee(const step *s, int last) {
  HIT("addition: cancels to zero", s->finite && s->zero && several(s));
  HIT("addition: of zeros of different signs", s->finite && zeros_differ(s));
#if EMULATED
  HIT("chain: a sum before the last overflows", !last && s->finite && s->overflow);
  HIT("subnormal result: exact", s->finite && s->subnormal && s->tail == 0);
  BY_SIGN("overflow: ", s->finite && s->overflow);
  BY_TAIL("addition of C: ", s->finite && !s->overflow);
  HIT("addition of C: -0 to a negative sum rounded to zero",
      vanished_before && s->x[0].m == 0 && s->x[0].kind == 0 && s->x[0].negative);
#else
  see_rounding(s, last);
#endif
  overflowed |= s->finite && s->overflow;
  vanished_before = s->finite && s->vanished && s->negative;
}
#endif

#if !FLOATS
static void see_integer(const step *s) {
  static int alone[STORED];
  const int64_t top = INT64_C(0x80000000);
  int inside = s->total >= -top && s->total < top, place = lone_product(s), i;
  HIT("integer: largest result", s->total == top - 1);
  HIT("integer: smallest result", s->total == -top);
  HIT("integer: one above the range", s->total == top);
  HIT("integer: one below the range", s->total == -top - 1);
  HIT("integer: above the range", s->total >= top);
  HIT("integer: below the range", s->total < -top);
  HIT("integer: leaves the range upwards and comes back", inside && strays(s, 1));
  HIT("integer: leaves the range downwards and comes back", inside && strays(s, 0));
  HIT("integer: all products zero", products_are(s, 0));
  HIT("integer: products cancel", !products_are(s, 0) && s->total == s->kept[s->count - 1]);
  HIT("integer: largest product in every place", products_are(s, LARGEST_PRODUCT));
  HIT("integer: smallest product in every place", products_are(s, SMALLEST_PRODUCT));
  for (i = 0; i < STORED && !alone[i]; i++) alone[i] = numbered_bin("integer: product %d alone", i);
  if (place >= 0) hit[alone[place]] = 1;
}
#endif

/* --- codes and whole dot products --- */

static const char *const input_names[] = {"a", "b", "c", "scale_a", "scale_b"};
#define CODE_KINDS 14

static void see_code(int input, uint64_t code, int kind) {
  static const char *const floats[CODE_KINDS] = {
      "+0", "-0", "subnormal", "smallest subnormal", "largest subnormal", "smallest normal number",
      "largest finite number", "odd significand", "+Inf", "-Inf", "NaN", "signaling NaN", "ignored bits set",
      "NaN in ignored bits only"};
  static const char *const integers[CODE_KINDS] = {"zero", "one", "largest", "smallest", "minus one"};
  static int bin[INPUTS][CODE_KINDS];
  const format *f = &formats[input_format[input]];
  const char *const *names = f->exponent ? floats : integers;
  uint64_t mask = f->bits > 63 ? UINT64_MAX : (UINT64_C(1) << f->bits) - 1, ignored = code & ((UINT64_C(1) << f->ignored) - 1);
  uint64_t sign = f->is_signed ? UINT64_C(1) << (f->bits - 1) : 0, hidden = UINT64_C(1) << f->fraction, kept;
  uint64_t all = (hidden << f->exponent) - 1, largest = f->specials == 2 ? all - hidden : f->specials == 1 ? all - 1 : all;
  int held[CODE_KINDS] = {0}, negative = (code & sign) != 0, i;
  code &= mask;
  kept = (code & ~sign) >> f->ignored;
  if (f->exponent) {
    held[0] = kept == 0 && !negative;
    held[1] = kept == 0 && negative;
    held[2] = kept > 0 && kept < hidden;
    held[3] = kept == 1;
    held[4] = kept == hidden - 1;
    held[5] = kept == (f->fraction ? hidden : 0);
    held[6] = kept == largest;
    held[7] = kind == FINITE && (kept & 1);
    held[8] = kind == INFINITE && !negative;
    held[9] = kind == INFINITE && negative;
    held[10] = kind == NOT_A_NUMBER;
    held[11] = kind == NOT_A_NUMBER && !(kept & (f->fraction ? hidden >> 1 : 1));
    held[12] = kind == FINITE && ignored;
    held[13] = kind == INFINITE && ignored;
  } else {
    held[0] = code == 0;
    held[1] = code == 1;
    held[2] = code == (mask ^ sign);
    held[3] = code == sign;
    held[4] = code == mask;
  }
  for (i = 0; i < CODE_KINDS && names[i]; i++) {
    if (!bin[input][i]) {
      char name[40];
      snprintf(name, sizeof name, "%s: %s", input_names[input], names[i]);
      bin[input][i] = bin_of(name);
    }
    if (held[i]) hit[bin[input][i]] = 1;
  }
}

#if FLOATS
static int unselected_nan, unselected_inf;

#define INFINITIES(inf_sign, other, count_of, mine)                                                      \
  HIT("special: " inf_sign "Inf product alone", shown && alone && w.count_of == 1);                      \
  HIT("special: two " inf_sign "Inf products alone", shown && two && w.count_of == 2);                   \
  HIT("special: C = " inf_sign "Inf alone", shown && w.count == 0 && z->kind == INFINITE && mine);       \
  HIT("special: " inf_sign "Inf product and C = " inf_sign "Inf",                                             \
      shown && w.count == 1 && w.count_of == 1 && z->kind == INFINITE && mine);                     \
  HIT("special: " inf_sign "Inf product against C = " other "Inf",                                       \
      shown && w.count == 1 && w.count_of == 1 && z->kind == INFINITE && !(mine))

/* What makes Inf or NaN of D: w of the products, z of C; asked: nothing else does. */
static void see_special(causes w, const term *z, int asked) {
  int alone = w.count == 1 && z->kind == FINITE, two = w.count == 2 && z->kind == FINITE, shown = asked && !w.scale;
  HIT("special: Inf * 0 alone", shown && alone && w.inf_zero);
  HIT("special: 0 * Inf alone", shown && alone && w.zero_inf);
  HIT("special: NaN * 0 alone", shown && alone && w.nan_zero);
  HIT("special: 0 * NaN alone", shown && alone && w.zero_nan);
  HIT("special: NaN of A alone", shown && alone && w.nan_a);
  HIT("special: NaN of B alone", shown && alone && w.nan_b);
  HIT("special: NaN times Inf alone", shown && alone && w.nan_inf);
  HIT("special: in the first place alone", shown && alone && w.first);
  HIT("special: in the last place alone", shown && alone && w.last);
  HIT("special: +Inf and -Inf products alone", shown && two && w.plus == 1 && w.minus == 1);
  HIT("special: Inf product beside Inf * 0", shown && two && w.beside_invalid);
  HIT("special: Inf product beside NaN", shown && two && w.beside_nan);
  HIT("special: Inf products of one sign in two steps",
      shown && two && (w.steps_of_plus == 2 || w.steps_of_minus == 2));
  HIT("special: Inf products of both signs in two steps", shown && two && w.plus && w.minus && !w.same_step);
  HIT("special: Inf product beside C = NaN", shown && w.count == 1 && w.infinite && z->kind == NOT_A_NUMBER);
  HIT("special: C = Inf beside Inf * 0", shown && w.count == 1 && w.invalid && z->kind == INFINITE);
  HIT("special: C = Inf beside NaN", shown && w.count == 1 && w.nan && z->kind == INFINITE);
  HIT("special: C = NaN alone", shown && w.count == 0 && z->kind == NOT_A_NUMBER);
  INFINITIES("+", "-", plus, !z->negative);
  INFINITIES("-", "+", minus, z->negative);
}

static void see_result(uint64_t code, int only_minus_zeros) {
  const format *d = &formats[D_FORMAT];
  uint64_t sign = UINT64_C(1) << (d->bits - 1), m = code & (sign - 1), normal = UINT64_C(1) << d->fraction;
  uint64_t infinity = (normal << d->exponent) - normal, unit = UINT64_C(1) << (d->fraction + 1 - PRECISION);
  int negative = (code & sign) != 0;
  HIT("result: +zero", m == 0 && !negative);
  HIT("result: -zero", m == 0 && negative);
  HIT("result: +smallest subnormal", m == unit && !negative);
  HIT("result: -smallest subnormal", m == unit && negative);
  HIT("result: +smallest normal number", m == normal && !negative);
  HIT("result: -smallest normal number", m == normal && negative);
  HIT("result: +largest finite number", m == infinity - unit && !negative);
  HIT("result: -largest finite number", m == infinity - unit && negative);
  HIT("result: +Inf", m == infinity && !negative);
  HIT("result: -Inf", m == infinity && negative);
  HIT("result: NaN", m > infinity);
  HIT("result: zero of nothing but negative zeros", only_minus_zeros);
  HIT("overflow: a product beyond D's range, not the sum", beyond && m < infinity);
  HIT("unselected B: NaN", m <= infinity && unselected_nan);
  HIT("unselected B: Inf", m < infinity && unselected_inf);
}

static int is_subnormal(const term *x, int input) {
  return x->m && !x->kind && x->m < UINT64_C(1) << formats[input_format[input]].fraction;
}

/* Factors, C, the scales of each product (0 without scales), products, D. */
static void see_dot(const term *x, const term *y, const term *z, const term *sa, const term *sb, const term *p,
                    uint64_t code) {
  causes w = why_special(x, y);
  int only_minus_zeros = MAGNITUDE(z[0]) == 0 && z->negative, both_subnormal = 0;
  int nan_scale_a = 0, nan_scale_b = 0, scaled_nonzero = 0, asked, finite, k;
  for (k = 0; k < STORED; k++) {
    only_minus_zeros &= p[k].kind == 0 && MAGNITUDE(p[k]) == 0 && p[k].negative;
    both_subnormal |= is_subnormal(x + k, 0) && is_subnormal(y + k, 1);
    if (!sa) continue;
    nan_scale_a |= sa[k].kind == NOT_A_NUMBER;
    nan_scale_b |= sb[k].kind == NOT_A_NUMBER;
    scaled_nonzero |= (sa[k].kind || sb[k].kind) && x[k].m && y[k].m;
  }
  w.scale = nan_scale_a || nan_scale_b;
  asked = (z->kind != FINITE || w.count || w.scale) && !overflowed;
  finite = asked && w.count == 0 && z->kind == FINITE;
  see_special(w, z, asked);
  HIT("special: NaN of scale A alone", finite && nan_scale_a && !nan_scale_b);
  HIT("special: NaN of scale B alone", finite && nan_scale_b && !nan_scale_a);
  HIT("special: NaN scale of zero products", finite && w.scale && !scaled_nonzero);
  HIT("special: product of subnormal numbers", both_subnormal);
  see_result(code, only_minus_zeros);
}
#endif
