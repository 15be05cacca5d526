
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
  const seed_tile *from = &seeds[seed];
  int i, j;
  for (i = 0; i < ROWS; i++) {
    for (j = 0; j < STORED; j++) drawn.a[i][j] = from->a[i * STORED + j];
    for (j = 0; j < COLUMNS; j++) drawn.c[i][j] = from->c[i * COLUMNS + j];
#if SPARSE
    for (j = 0; j < CHUNKS; j++) drawn.field[i][j] = from->e[i * CHUNKS + j];
#endif
#if SCALED
    for (j = 0; j < SCALES; j++) drawn.scale_a[i][j] = from->scale_a[i * SCALES + j];
#endif
  }
  for (i = 0; i < DEPTH; i++)
    for (j = 0; j < COLUMNS; j++) drawn.b[i][j] = from->b[i * COLUMNS + j];
#if SCALED
  for (i = 0; i < SCALES; i++)
    for (j = 0; j < COLUMNS; j++) drawn.scale_b[i][j] = from->scale_b[i * COLUMNS + j];
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
