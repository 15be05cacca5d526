
/* --- programs in exact integers --- */

static uint64_t low_bits(int count) { return count > 63 ? UINT64_MAX : (UINT64_C(1) << count) - 1; }

static wide magnitude(const term *n) {
  wide x;
  x.h = HIGH(*n);
  x.l = n->m;
  return x;
}

static int is_zero(const term *n) { return (HIGH(*n) | n->m) == 0; }

/* The exponent of the leading 1 bit; of zero, Inf and NaN that of the alignment. */
static int32_t leading(const term *n) {
  return n->kind || is_zero(n) ? n->e : n->scale + length_wide(magnitude(n)) - 1;
}

static term read_code(uint64_t code, const format *f, int subnormals) {
  term n;
  uint64_t normal = UINT64_C(1) << f->fraction;
  int32_t field, bias = (1 << (f->exponent ? f->exponent - 1 : 0)) - 1;
  memset(&n, 0, sizeof n);
  n.negative = f->is_signed && (code >> (f->bits - 1) & 1);
  if (!f->exponent) {
    code &= low_bits(f->bits);
    n.m = n.negative ? low_bits(f->bits) - code + 1 : code;
    n.live = n.m != 0;
    return n;
  }
  code = code >> f->ignored & low_bits(f->exponent + f->fraction);
  field = (int32_t)(code >> f->fraction);
  n.m = code & (normal - 1);
  if (f->specials == 2 && field == (1 << f->exponent) - 1) n.kind = n.m ? NOT_A_NUMBER : INFINITE;
  if (f->specials == 1 && code == low_bits(f->exponent + f->fraction)) n.kind = NOT_A_NUMBER;
  n.e = field == 0 && f->fraction ? 1 - bias : field - bias;
  if (field || !f->fraction) n.m |= normal;
  n.scale = n.e - f->fraction;
  n.live = n.m != 0;
  if (n.m == 0 || n.m >= normal) return n;
  if (subnormals == as_zero) n.m = 0, n.live = 0;
  if (subnormals == as_leading) n.e = leading(&n);
  if (subnormals == as_raised) n.m += n.m == normal - 1;
  return n;
}

static term product_of(const term *x, const term *y, int aligned) {
  term n;
  memset(&n, 0, sizeof n);
  n.m = x->m * y->m;
#if WIDE
  {
    uint64_t xl = x->m & 0xffffffffu, xh = x->m >> 32, yl = y->m & 0xffffffffu, yh = y->m >> 32;
    uint64_t middle = xl * yh + (xl * yl >> 32), other = xh * yl + (middle & 0xffffffffu);
    n.h = xh * yh + (middle >> 32) + (other >> 32);
  }
#endif
  n.scale = x->scale + y->scale;
  n.e = x->e + y->e;
  n.negative = x->negative ^ y->negative;
  n.kind = x->kind > y->kind ? x->kind : y->kind;
  if (n.kind == INFINITE && is_zero(&n)) n.kind = NOT_A_NUMBER;
  n.live = x->live & y->live;
  if (aligned == by_leading_bit || (aligned == by_carries && leading(&n) > n.e)) n.e = leading(&n);
  return n;
}

/* What Inf and NaN make of a sum: 0 nothing, 1 +Inf, 2 -Inf, 3 NaN. */
static int special_of(const term *x, int count) {
  int found = 0, i;
  for (i = 0; i < count; i++) found |= x[i].kind == NOT_A_NUMBER ? 3 : x[i].kind ? 1 + x[i].negative : 0;
  return found;
}

static uint64_t special_code(int found, const format *f) {
  uint64_t infinity = low_bits(f->exponent) << f->fraction;
  return found == 3 ? f->nan : infinity | (found == 2 ? UINT64_C(1) << (f->bits - 1) : 0);
}

/* The magnitude x * 2**scale as a code, rounded once to a precision; what the rounding did is noted.
   overflows: too large is always Inf. flushes: a subnormal sum is zero. */
static uint64_t rounded(wide x, int32_t scale, int negative, const format *f, int precision, int mode, int overflows,
                        int flushes) {
  int32_t low = 3 - (1 << (f->exponent - 1)) - precision, place = length_wide(x) + scale - precision, down;
  uint64_t kept, rest, grown, infinity = low_bits(f->exponent) << f->fraction, code;
  int away;
  now.negative = negative;
  now.zero = (x.h | x.l) == 0;
  now.subnormal = !now.zero && place < low;
  if (now.subnormal && flushes) return 0;
  if (now.zero || place < low) place = low;
  down = place - scale;
  x = down > 2 ? down_sticky(x, down - 2) : up(x, 2 - down); /* two more bits: half, and anything less */
  kept = x.l >> 2 | x.h << 62;
  rest = x.l & 3;
  away = mode == round_rn   ? rest > 2 || (rest == 2 && (kept & 1))
         : mode == round_ra ? rest >= 2
                            : rest && ((mode == round_rm && negative) || (mode == round_rp && !negative));
  grown = kept + (uint64_t)away;
  now.tail = (int)rest;
  now.odd = (int)(kept & 1);
  now.vanished = grown == 0 && !now.zero;
  now.carried = kept > 0 && (grown & kept) == 0;
  code = ((uint64_t)(place - low) << f->fraction) + (grown << (f->fraction + 1 - precision));
  now.overflow = place - low >= 1 << f->exponent || code >= infinity;
  if (!now.overflow) return code;
  away = overflows || mode == round_rn || mode == round_ra || (mode == round_rm ? negative : mode == round_rp && !negative);
  return infinity - !away;
}

/* The exact sum of numbers, rounded once as IEEE 754 has it. */
static uint64_t ieee_code(const term *x, int count, const format *f, int mode, int flushes) {
  uint64_t sign = UINT64_C(1) << (f->bits - 1), code;
  int32_t top = INT32_MIN, place = 0, s, size;
  int found = special_of(x, count), alike = 1, negative, i;
  wide sum = {0, 0}, part;
  now.zero = now.tail = now.overflow = now.subnormal = now.vanished = now.carried = 0;
  if (found) return special_code(found, f);
  for (i = 0; i < count; i++) {
    size = length_wide(magnitude(x + i));
    if (size && size + x[i].scale > top) top = size + x[i].scale;
    if (x[i].negative != x[0].negative) alike = 0;
  }
  if (top != INT32_MIN) place = top - 126; /* the scale of the last of 128 bits */
  for (i = 0; i < count; i++) {
    part = magnitude(x + i);
    size = length_wide(part);
    s = x[i].scale - place;
    if (size) part = s >= 0 ? up(part, s) : down_sticky(up(part, 126 - size), 126 - size - s);
    sum = add_wide(sum, x[i].negative ? minus(part) : part);
  }
  negative = (int)(sum.h >> 63);
  if (negative) sum = minus(sum);
  now.negative = negative;
  now.zero = (sum.h | sum.l) == 0;
  if (now.zero) return (alike ? x[0].negative : mode == round_rm) ? sign : 0;
  code = rounded(sum, place, negative, f, f->fraction + 1, mode, 0, flushes);
  return negative && !(flushes && now.subnormal) ? code | sign : code;
}

/* A number of another format: exact where that has all of them. */
static term converted(const term *x, const format *f, int mode, int exact) {
  term n = *x;
  int32_t least = 2 - (1 << (f->exponent - 1));
  if (!exact) return read_code(ieee_code(x, 1, f, mode, 0), f, as_stored);
  n.m <<= f->fraction - (n.e - n.scale);
  for (; n.m && n.m < UINT64_C(1) << f->fraction && n.e > least; n.m <<= 1) n.e--;
  if (n.m == 0) n.e = least;
  n.scale = n.e - f->fraction;
  return n;
}

/* The exact sum of neighbours in units of 2**scale, below which they have no bits. */
static term sum_of(const term *x, int count, int32_t scale) {
  term n;
  int64_t sum = 0;
  int i;
  memset(&n, 0, sizeof n);
  for (i = 0; i < count; i++) {
    int64_t part = (int64_t)(x[i].m << (x[i].m ? x[i].scale - scale : 0));
    sum += x[i].negative ? -part : part;
    if (x[i].kind > n.kind) n.kind = x[i].kind;
    n.live |= x[i].live;
  }
  n.scale = scale;
  n.negative = sum < 0;
  n.m = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
  return n;
}

static int32_t top_of(const term *x, const term *of, int count, const int *given) {
  int32_t top = given[0];
  int i;
  for (i = 0; i < count; i++) {
    int counts = given[1] && i >= given[2] && i <= given[3] && of[i].m == 0 && (given[1] == all_zeros || of[i].negative);
    if ((of[i].live || counts) && x[i].e > top) top = x[i].e;
  }
  return top;
}

/* A number in units of 2**unit; at most 2**61 of them, far above what a right alignment leaves. */
static int64_t units_of(const term *x, int32_t unit, int mode) {
  int32_t down = unit - x->scale;
  uint64_t m = x->m, kept = 0, rest = 1, half = 2;
  if (m == 0 || x->kind) return 0;
  if (down <= 0) {
    kept = down < -61 || m >> (61 + down) ? UINT64_C(1) << 61 : m << -down;
    rest = 0;
  } else if (down <= 63) {
    kept = m >> down;
    rest = m & low_bits(down);
    half = UINT64_C(1) << (down - 1);
  }
  switch (mode) {
    case cut_down: kept += rest && x->negative; break;
    case cut_up: kept += rest && !x->negative; break;
    case cut_to_nearest: kept += rest > half || (rest == half && (kept & 1)); break;
    case cut_halves_up: kept += rest >= half; break;
    case cut_away: kept += rest != 0; break;
    case cut_sticky: kept |= rest != 0; break;
    case cut_coarse: kept -= kept & 1; break;
    default: break;
  }
  return x->negative ? -(int64_t)kept : (int64_t)kept;
}

static int64_t total_of(const int64_t *kept, int count, int vanishes) {
  const int64_t most = INT64_C(1) << 62;
  int64_t sum = 0;
  int i;
  for (i = 0; i < count; i++) {
    sum += kept[i];
    sum = sum > most ? most : sum < -most ? -most : sum;
  }
  return vanishes && (sum == 1 || sum == -1) ? 0 : sum;
}

static uint64_t wrapped(int64_t total, const int *given) {
  int64_t half = INT64_C(1) << (given[0] - 1);
  if (given[1]) total = total > half - 1 ? half - 1 : total < -half ? -half : total;
  if (!given[1] && given[2]) total = (int64_t)(((uint64_t)total + (uint64_t)half) & low_bits(given[0])) - half;
  return (uint64_t)total & low_bits(given[2] ? given[2] : given[0]);
}

/* --- run: programs[0] is the rule, programs[i] has mistake i --- */

static struct {
  const operation *at[OPERATIONS];
  unsigned char differs[OPERATIONS]; /* changed, or of a value that differs from the rule's */
  int count;
} programs[MISTAKES + 1];

static void add_operation(int program, const operation *each) { programs[program].at[programs[program].count++] = each; }

static void mark_differences(int program) {
  unsigned char differs[VALUES] = {0};
  int at, i;
  for (at = 0; at < programs[program].count; at++) {
    const operation *o = programs[program].at[at];
    for (i = 0; i < 3; i++) programs[program].differs[at] |= differs[o->value[i]];
    programs[program].differs[at] |= o < rule || o >= rule + RULE;
    differs[o->result] = programs[program].differs[at];
  }
}

static void make_programs(void) {
  int i, j;
  if (programs[0].count) return;
  for (j = 0; j < RULE; j++) add_operation(0, &rule[j]);
  for (i = 1; i <= MISTAKES; i++) {
    const operation *each = changed + mistakes[i - 1].first, *end = each + mistakes[i - 1].count, *found;
    for (j = 0; j < RULE && !mistakes[i - 1].whole; j++) {
      for (found = each; found < end && found->result != rule[j].result; found++) continue;
      if (found == end) add_operation(i, &rule[j]);
      while (found < end && each <= found) add_operation(i, each++);
    }
    while (each < end) add_operation(i, each++);
    mark_differences(i);
  }
}

static struct {
  term *list;
  int64_t *kept, number; /* number: an exponent, a total, a code */
  int count;
} value[VALUES], of_rule[VALUES];

static term terms[TERMS];
static int64_t units[TERMS];

/* Write the list of numbers that an operation makes; return its length. */
static int make_list(const operation *o, const word_t *const *codes, term *x) {
  const int *g = o->given, *v = o->value;
  const term *left = value[v[0]].list, *right = value[v[1]].list;
  int count = value[v[0]].count, i, j;
  switch (o->name) {
    case op_read:
      count = v[0] < INPUTS ? input_count[v[0]] : 1;
      for (i = 0; i < count; i++)
        x[i] = read_code(v[0] < INPUTS ? codes[v[0]][i] : (uint64_t)value[v[0]].number, formats + g[0], g[1]);
      return count;
    case op_zero: return memset(x, 0, sizeof *x), 1;
    case op_mul:
      for (i = 0; i < count; i++) x[i] = product_of(left + i, right + i, g[0]);
      return count;
    case op_bits:
      for (i = 0; i < count; i++) {
        x[i] = left[i];
        x[i].m = g[0] ? left[i].m ^ right[i].m : left[i].m & right[i].m;
        x[i].live = x[i].m != 0;
      }
      return count;
    case op_convert:
      for (i = 0; i < count; i++) x[i] = converted(left + i, formats + g[0], g[1], g[2]);
      return count;
    case op_sum:
      for (i = j = 0; j < count; i++, j += g[0]) x[i] = sum_of(left + j, count - j < g[0] ? count - j : g[0], g[1]);
      return i;
    case op_take:
      for (i = 0; i < g[1]; i++) x[i] = left[places[g[0] + i]];
      return g[1];
    default: /* op_join */
      for (i = j = 0; j < g[0]; j++) {
        memcpy(x + i, value[v[j]].list, (size_t)value[v[j]].count * sizeof *x);
        i += value[v[j]].count;
      }
      return i;
  }
}

/* An exponent, a total or a code. */
static int64_t make_number(const operation *o) {
  const int *g = o->given, *v = o->value;
  int64_t x = value[v[0]].number, y = value[v[1]].number;
  const term *list = value[v[0]].list;
  wide sum = {0, 0};
  switch (o->name) {
    case op_top: return top_of(list, value[v[1]].list, value[v[0]].count, g);
    case op_int: return g[0];
    case op_add: return x + g[0];
    case op_max: return x > y ? x : y;
    case op_ge: return x >= y;
    case op_pick: return x ? y : value[v[2]].number;
    case op_total: return total_of(value[v[0]].kept, value[v[0]].count, g[0]);
    case op_ieee: return (int64_t)ieee_code(list, value[v[0]].count, formats + g[0], g[1], g[2]);
    case op_wrap: return (int64_t)wrapped(x, g);
    default: break; /* op_round */
  }
  now.special = special_of(value[v[2]].list, value[v[2]].count);
  sum.l = x < 0 ? (uint64_t)-x : (uint64_t)x;
  y = (int64_t)rounded(sum, (int32_t)y, x < 0, formats + g[0], g[1], g[2], g[3], g[4]);
  if (now.special) return (int64_t)special_code(now.special, formats + g[0]);
  return x < 0 && y ? y | (int64_t)1 << (formats[g[0]].bits - 1) : y;
}

static void note(int64_t **shown, int64_t number) {
  if (*shown) *(*shown)++ = number;
}

/* The intermediates of a list, in the order of NAME_trace. */
static void note_products(int64_t **shown, const term *x, int count) {
  int i;
  if (!*shown) return;
#if WIDE
  for (i = 0; i < count; i++) note(shown, (int64_t)x[i].h);
  for (i = 0; i < count; i++) note(shown, (int64_t)x[i].m);
  for (i = 0; i < count; i++) note(shown, x[i].negative);
#else
  for (i = 0; i < count; i++) note(shown, x[i].negative ? -(int64_t)x[i].m : (int64_t)x[i].m);
#endif
  for (i = 0; i < count; i++) note(shown, x[i].e);
}

/* Note the bins of a step that ends in a code. */
static void see_number(const operation *o, int last) {
  const int *v = o->value;
  if (o->name == op_top) now.top = (int32_t)value[o->result].number;
  if (o->name == op_total) {
    now.total = value[o->result].number;
    now.kept = value[v[0]].kept;
    now.x = value[v[0]].list;
    now.count = value[v[0]].count;
  }
  if (o->name == op_round) {
    now.unit = (int32_t)value[v[1]].number;
    now.x = value[v[2]].list;
    now.count = value[v[2]].count;
    now.finite = !now.special;
  }
  if (o->name == op_ieee) {
    now.x = value[v[0]].list;
    now.count = value[v[0]].count;
    now.finite = !special_of(now.x, now.count);
  }
#if ALIGNED
  if (o->name == op_round) {
    look_at_terms(&now);
    see_aligned(&now, last);
  }
#elif IEEE
  if (o->name == op_round) see_ieee(&now, last);
#endif
#if IEEE
  if (o->name == op_ieee) see_ieee(&now, last);
#endif
#if !FLOATS
  if (o->name == op_wrap) see_integer(&now);
#endif
  (void)last;
}

/* Note the bins of codes, and of the whole dot product. */
static void see_operands(const word_t *const *codes, uint64_t d) {
  int input, i;
  for (input = 0; input < INPUTS; input++)
    for (i = 0; i < input_count[input]; i++) see_code(input, codes[input][i], value[input_numbers[input]].list[i].kind);
#if FLOATS
  see_dot(value[v_A].list, value[v_B].list, value[v_C].list, SCALED ? value[input_numbers[INPUTS - 2]].list : 0,
          SCALED ? value[input_numbers[INPUTS - 1]].list : 0, value[v_PRODUCTS].list, d);
#endif
  (void)d;
}

/* The code of D of a program. shown: room for its intermediates, or 0. looks: bins that it hits are noted.
   A mistake is run after the rule, on the same codes: what does not differ is kept. */
static word_t run_program(int program, const word_t *const *codes, int64_t *shown, int looks) {
  static int used, used_units;
  const int first = used, first_units = used_units, is_rule = program == 0;
  const operation *o = 0;
  uint64_t code;
  int at, i;
  make_programs();
  if (is_rule) used = used_units = 0;
  for (at = 0; at < programs[program].count; at++) {
    int to, all = is_rule || shown;
    o = programs[program].at[at];
    to = o->result;
    if (!all && !programs[program].differs[at]) continue;
    if (o->name <= op_join) {
      value[to].list = terms + used;
      value[to].count = make_list(o, codes, value[to].list);
      used += value[to].count;
      if (o->name == op_mul) note_products(&shown, value[to].list, value[to].count);
    } else if (o->name == op_cut) {
      const term *x = value[o->value[0]].list;
      value[to].count = value[o->value[0]].count;
      value[to].list = value[o->value[0]].list;
      value[to].kept = units + used_units;
      used_units += value[to].count;
      for (i = 0; i < value[to].count; i++) {
        int mode = i == (o->given[2] + value[to].count) % value[to].count ? o->given[1] : o->given[0];
        value[to].kept[i] = units_of(x + i, (int32_t)value[o->value[1]].number, mode);
        note(&shown, value[to].kept[i]);
      }
    } else {
      value[to].number = make_number(o);
      if (o->name == op_round) note(&shown, now.special);
      if (o->name != op_int) note(&shown, value[to].number);
      if (looks) see_number(o, at == programs[program].count - 1);
    }
  }
  code = (uint64_t)value[o->result].number;
  if (looks) see_operands(codes, code);
  if (is_rule) {
    memcpy(of_rule, value, sizeof value);
  } else {
    memcpy(value, of_rule, sizeof value);
    used = first;
    used_units = first_units;
  }
  return (word_t)code;
}
