/* --- random numbers: splitmix64 --- */

static uint64_t random_state;

static uint64_t random_word(void) {
  uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static int random_below(int limit) { return (int)((random_word() >> 32) * (uint64_t)limit >> 32); }

/* --- stimulus: a tile of a theme, turned about by symmetries of the corner, and some codes changed --- */

typedef struct {
  word_t a[ROWS][STORED], b[DEPTH][COLUMNS], c[ROWS][COLUMNS];
  uint32_t field[ROWS][CHUNKS], scale_a[ROWS][SCALES], scale_b[SCALES][COLUMNS];
} tile;

static tile drawn;

static void load_tile(int seed) {
  int i, j;
  for (i = 0; i < ROWS; i++) {
    for (j = 0; j < STORED; j++) drawn.a[i][j] = seed_a[seed][i * STORED + j];
    for (j = 0; j < COLUMNS; j++) drawn.c[i][j] = seed_c[seed][i * COLUMNS + j];
#if SPARSE
    for (j = 0; j < CHUNKS; j++) drawn.field[i][j] = seed_e[seed][i * CHUNKS + j];
#endif
#if SCALED
    for (j = 0; j < SCALES; j++) drawn.scale_a[i][j] = seed_scale_a[seed][i * SCALES + j];
#endif
  }
  for (i = 0; i < DEPTH; i++)
    for (j = 0; j < COLUMNS; j++) drawn.b[i][j] = seed_b[seed][i * COLUMNS + j];
#if SCALED
  for (i = 0; i < SCALES; i++)
    for (j = 0; j < COLUMNS; j++) drawn.scale_b[i][j] = seed_scale_b[seed][i * COLUMNS + j];
#endif
}

#define EXCHANGE(type, x, y) \
  do {                       \
    type kept_ = (x);        \
    (x) = (y);               \
    (y) = kept_;             \
  } while (0)

static void exchange_rows(int x, int y) {
  int j;
  for (j = 0; j < STORED; j++) EXCHANGE(word_t, drawn.a[x][j], drawn.a[y][j]);
  for (j = 0; j < COLUMNS; j++) EXCHANGE(word_t, drawn.c[x][j], drawn.c[y][j]);
  for (j = 0; j < CHUNKS; j++) EXCHANGE(uint32_t, drawn.field[x][j], drawn.field[y][j]);
  for (j = 0; j < SCALES; j++) EXCHANGE(uint32_t, drawn.scale_a[x][j], drawn.scale_a[y][j]);
}

static void exchange_columns(int x, int y) {
  int i;
  for (i = 0; i < DEPTH; i++) EXCHANGE(word_t, drawn.b[i][x], drawn.b[i][y]);
  for (i = 0; i < ROWS; i++) EXCHANGE(word_t, drawn.c[i][x], drawn.c[i][y]);
  for (i = 0; i < SCALES; i++) EXCHANGE(uint32_t, drawn.scale_b[i][x], drawn.scale_b[i][y]);
}

/* Two places of k whose products are added in one step: the sum stays. */
static void exchange_places(int x, int y) {
  int i, j;
  if (place_group[x] != place_group[y]) return;
  for (i = 0; i < ROWS; i++) {
    for (j = 0; j < STORED / PLACES; j++)
      EXCHANGE(word_t, drawn.a[i][x * (STORED / PLACES) + j], drawn.a[i][y * (STORED / PLACES) + j]);
#if SPARSE
    EXCHANGE(uint32_t, drawn.field[i][x], drawn.field[i][y]);
#endif
  }
  for (i = 0; i < DEPTH / PRODUCTS / PLACES; i++)
    for (j = 0; j < PRODUCTS; j++) {
      int first = j * (DEPTH / PRODUCTS) + i, at;
      for (at = 0; at < COLUMNS; at++)
        EXCHANGE(word_t, drawn.b[first + x * (DEPTH / PRODUCTS / PLACES)][at],
                 drawn.b[first + y * (DEPTH / PRODUCTS / PLACES)][at]);
    }
}

#if FLOATS
/* The other sign of a row or a column, C included: every sum becomes its negative. */
static void negate_row(int row) {
  int j;
  for (j = 0; j < STORED; j++) drawn.a[row][j] ^= A_SIGN;
  for (j = 0; j < COLUMNS; j++) drawn.c[row][j] ^= C_SIGN;
}

static void negate_column(int column) {
  int i;
  for (i = 0; i < DEPTH; i++) drawn.b[i][column] ^= B_SIGN;
  for (i = 0; i < ROWS; i++) drawn.c[i][column] ^= C_SIGN;
}
#endif

static word_t changed_code(word_t code, word_t other, word_t mask) {
  switch (random_below(4)) {
    case 0: return (code + 1) & mask;
    case 1: return (code - 1) & mask;
    case 2: return (code ^ (word_t)1 << random_below(CODE_BITS)) & mask;
    default: return other;
  }
}

/* Change some codes by one unit, one bit, or into another code of the tile: of C in a quarter of the outputs. */
static void change_codes(int count) {
  int i, j;
  while (count-- > 0) {
    i = random_below(ROWS), j = random_below(STORED);
    drawn.a[i][j] = changed_code(drawn.a[i][j], drawn.a[random_below(ROWS)][random_below(STORED)], A_MASK);
    i = random_below(DEPTH), j = random_below(COLUMNS);
    drawn.b[i][j] = changed_code(drawn.b[i][j], drawn.b[random_below(DEPTH)][random_below(COLUMNS)], B_MASK);
  }
  for (i = 0; i < ROWS; i++)
    for (j = 0; j < COLUMNS; j++)
      if (random_below(4) == 0)
        drawn.c[i][j] = changed_code(drawn.c[i][j], drawn.c[random_below(ROWS)][random_below(COLUMNS)], C_MASK);
}

static void turn_about(void) {
  int at;
  for (at = 0; at < ROWS; at++) {
    exchange_rows(at, at / (ROWS / PRODUCTS) * (ROWS / PRODUCTS) + random_below(ROWS / PRODUCTS));
#if FLOATS
    if (random_below(2)) negate_row(at);
#endif
  }
  for (at = 0; at < COLUMNS; at++) {
    exchange_columns(at, random_below(COLUMNS));
#if FLOATS
    if (random_below(2)) negate_column(at);
#endif
  }
  for (at = 0; at < PLACES; at++) exchange_places(at, random_below(PLACES));
}

/* The tile that a case starts from: the first SEEDS cases are the tiles as they were drafted. */
static int tile_of(uint64_t seed, int at) {
  random_state = seed * UINT64_C(0xd1342543de82ef95) + (uint64_t)(uint32_t)at;
  random_word();
  return at < SEEDS ? at : random_below(SEEDS);
}

static void draw_tile(uint64_t seed, int at) {
  load_tile(tile_of(seed, at));
  if (at < SEEDS) return;
  turn_about();
  if (random_below(2)) change_codes(1 << random_below(6));
}

/* --- what a step of a sum did --- */

enum { FINITE, INFINITE, NOT_A_NUMBER };

typedef struct {
  const number *x;     /* the terms, C last */
  const int *fraction; /* of each term */
  int count, finite, aligned;
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
  int32_t down = s->unit - s->x[i].e + s->fraction[i], k;
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

#if ROUNDED
static void look_at_rounding(step *s, int precision, int nearest, int fraction, int exponent_bits) {
  int32_t smallest = 3 - (1 << (exponent_bits - 1)) - precision, place, down;
  uint64_t m = s->total < 0 ? (uint64_t)-s->total : (uint64_t)s->total, kept, grown, rest, half;
  s->negative = s->total < 0;
  s->zero = m == 0;
  place = length(m) + s->unit - precision;
  s->subnormal = m && place < smallest;
  if (m == 0 || place < smallest) place = smallest;
  down = place - s->unit;
  kept = m == 0 || down > 63 ? 0 : down > 0 ? m >> down : m << -down;
  rest = down > 63 ? m : down > 0 ? m & ((UINT64_C(1) << down) - 1) : 0;
  half = down > 64 ? UINT64_MAX : down > 0 ? UINT64_C(1) << (down - 1) : 1;
  s->tail = rest == 0 ? 0 : rest < half ? 1 : rest == half ? 2 : 3;
  s->odd = (int)(kept & 1);
  grown = kept + (nearest && (s->tail == 3 || (s->tail == 2 && s->odd)));
  s->vanished = grown == 0 && m;
  s->carried = kept > 0 && (grown & kept) == 0;
  s->overflow = ((uint64_t)(place - smallest) << fraction) + (grown << (fraction + 1 - precision)) >=
                ((UINT64_C(1) << exponent_bits) - 1) << fraction;
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

static causes why_special(const number *a, const number *b) {
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

/* --- bins --- */

typedef struct {
  const char *name;
  long long outputs; /* or cases, of metadata and immediates */
  int first;         /* the first case that hit it */
} bin_count;

static unsigned char hit[BINS + 1];

static void hit_if(int bin, int condition) {
  if (condition) hit[bin] = 1;
}

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
