
/* --- types of the tables --- */

typedef struct {
  int bits, exponent, fraction, ignored, is_signed, specials; /* bits of the fields; 2 Inf and NaN, 1 one NaN */
  uint64_t nan;
} format;

/* result = name(values), with what it is given: numbers, or first and count of places. */
typedef struct {
  int name, result, value[3], given[5];
} operation;

enum {
  op_read, op_zero, op_mul, op_bits, op_convert, op_sum, op_take, op_join, op_top, op_int, op_add, op_max, op_ge, op_pick,
  op_cut, op_total, op_round, op_ieee, op_wrap
};
enum { as_stored, as_zero, as_leading, as_raised };         /* subnormal numbers that are read */
enum { by_exponents, by_leading_bit, by_carries };          /* the alignment of products */
enum { no_zeros, all_zeros, negative_zeros };               /* zeros that take part in it */
enum { cut_toward_zero, cut_down, cut_up, cut_to_nearest, cut_halves_up, cut_away, cut_sticky, cut_coarse };
enum { round_rn, round_rz, round_rm, round_rp, round_ra };

/* The rule with one step rewritten: operations that replace those of the same result, or all of them. */
typedef struct {
  const char *name;
  int first, count, whole;
  int traced; /* has the intermediates of the rule */
} mistake_program;

typedef struct {
  const char *name;
  long long outputs; /* or cases, of metadata and immediates */
  int first;         /* the first case that hit it */
} bin_count;
