"""Functions of a golden model in C99: numbers of codes, and the operations on them.

stdint.h only; no floating point, no tables, no static data. Magnitudes are shifted, never signed values. Also
valid C++, as simulators compile it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...isa.formats import Format, Specials
from ...isa.rules import Output

_NUMBER = """typedef struct {
  uint64_t m;       /* magnitude: in units of 2**(e - fraction bits of its list) */@
  int32_t e;        /* exponent by which it is aligned */
  uint8_t negative;
  uint8_t kind;     /* 0 finite, 1 Inf, 2 NaN */
  uint8_t live;     /* takes part in the alignment */
} number;"""
_HIGH_HALF = "\n  uint64_t h;       /* high half of the magnitude */"

_MUL = """/* Exact, not normalised: 1.5 * 1.5 keeps exponent 0. Inf * 0 is NaN. */
static number mul(number x, number y) {
  number n = @empty;@
  n.e = x.e + y.e;
  n.negative = x.negative ^ y.negative;
  n.kind = x.kind > y.kind ? x.kind : y.kind;
  if (n.kind == 1 && @zero) n.kind = 2;
  n.live = x.live & y.live;
  return n;
}"""
_NARROW_MUL = "\n  n.m = x.m * y.m;"
_WIDE_MUL = """
  uint64_t xl = x.m & 0xffffffffu, xh = x.m >> 32, yl = y.m & 0xffffffffu, yh = y.m >> 32;
  uint64_t middle = xl * yh + (xl * yl >> 32), other = xh * yl + (middle & 0xffffffffu);
  n.m = x.m * y.m;
  n.h = xh * yh + (middle >> 32) + (other >> 32);"""

CUT = """/* A number without its lowest bits, down of them (-down are added): toward zero. */
static int64_t cut_zero(number n, int32_t down) {
  uint64_t m = n.m;
  if (m == 0 || n.kind || down > 63) return 0;
  m = down > 0 ? m >> down : m << -down;
  return n.negative ? -(int64_t)m : (int64_t)m;
}"""

SPECIAL = """/* What Inf and NaN make of a sum: 0 nothing, 1 +Inf, 2 -Inf, 3 NaN. */
static int32_t special(const number *x, int count) {
  int32_t found = 0;
  int i;
  for (i = 0; i < count; i++) {
    if (x[i].kind == 2) return 3;
    if (x[i].kind == 1) found |= x[i].negative ? 2 : 1;
  }
  return found;
}"""

LENGTH = """/* The bits of a magnitude. */
static int32_t length(uint64_t m) {
  int32_t n = 0, s;
  for (s = 32; s; s >>= 1) {
    if (m >> s) {
      m >>= s;
      n += s;
    }
  }
  return m ? n + 1 : n;
}"""

WIDE = """typedef struct {
  uint64_t h, l;
} wide;

static wide up(wide x, int32_t s) {
  if (s >= 64) {
    x.h = s > 127 ? 0 : x.l << (s - 64);
    x.l = 0;
  } else if (s > 0) {
    x.h = x.h << s | x.l >> (64 - s);
    x.l <<= s;
  }
  return x;
}

/* What is shifted out sets the last bit. */
static wide down_sticky(wide x, int32_t s) {
  uint64_t lost;
  if (s <= 0) return x;
  if (s > 127) {
    lost = x.h | x.l;
    x.h = 0;
    x.l = 0;
  } else if (s >= 64) {
    lost = x.l | (s > 64 ? x.h << (128 - s) : 0);
    x.l = x.h >> (s - 64);
    x.h = 0;
  } else {
    lost = x.l << (64 - s);
    x.l = x.l >> s | x.h << (64 - s);
    x.h >>= s;
  }
  x.l |= lost != 0;
  return x;
}

static wide add_wide(wide x, wide y) {
  wide z;
  z.l = x.l + y.l;
  z.h = x.h + y.h + (z.l < x.l);
  return z;
}

static wide minus(wide x) {
  wide z;
  z.l = ~x.l + 1;
  z.h = ~x.h + (z.l == 0);
  return z;
}

static int32_t length_wide(wide x) { return x.h ? 64 + length(x.h) : length(x.l); }"""

_IEEE = """

/* The exact sum of one or two numbers, rounded once (IEEE 754). scale[i] are the fraction bits of x[i].
   mode: 0 to nearest even, 1 toward zero, 2 down, 3 up. */
static uint64_t ieee(const number *x, const int *scale, int count, int mode, int fraction, int exponent_bits,
                     uint64_t nan) {
  int32_t bias = (1 << (exponent_bits - 1)) - 1, low = 1 - bias - fraction, top = INT32_MIN;
  int32_t place = 0, s, len;
  uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << fraction;
  uint64_t sign = UINT64_C(1) << (fraction + exponent_bits), kept, code, rest;
  int found = (int)special(x, count), negative = 0, alike = 1, away, i;
  wide sum = {0, 0}, term;
  if (found == 3) return nan;
  if (found) return infinity | (found == 2 ? sign : 0);
  for (i = 0; i < count; i++) {
    term.h = @high;
    term.l = x[i].m;
    len = length_wide(term);
    if (len && len + x[i].e - scale[i] > top) top = len + x[i].e - scale[i];
    if (x[i].negative != x[0].negative) alike = 0;
  }
  if (top != INT32_MIN) {
    place = top - 126; /* the scale of the last of 128 bits */
    for (i = 0; i < count; i++) {
      term.h = @high;
      term.l = x[i].m;
      len = length_wide(term);
      if (!len) continue;
      s = x[i].e - scale[i] - place;
      if (s >= 0) {
        term = up(term, s);
      } else { /* first to the top, so that little is lost */
        term = down_sticky(up(term, 126 - len), 126 - len - s);
      }
      sum = add_wide(sum, x[i].negative ? minus(term) : term);
    }
    negative = (int)(sum.h >> 63);
    if (negative) sum = minus(sum);
  }
  if ((sum.h | sum.l) == 0) return (alike ? x[0].negative : mode == 2) ? sign : 0;
  s = length_wide(sum) - (fraction + 1);
  if (place + s < low) s = low - place;
  sum = s > 2 ? down_sticky(sum, s - 2) : up(sum, 2 - s); /* two more bits: half, and anything less */
  kept = sum.l >> 2 | sum.h << 62;
  rest = sum.l & 3;
  away = mode == 0   ? rest > 2 || (rest == 2 && (kept & 1))
         : mode == 2 ? negative && rest
                    : mode == 3 && !negative && rest;
  kept += (uint64_t)away;
  place += s;
  code = place - low >= 1 << exponent_bits ? infinity : ((uint64_t)(place - low) << fraction) + kept;
  if (code >= infinity) {
    away = mode == 0 || (mode == 2 && negative) || (mode == 3 && !negative);
    code = infinity - !away;
  }
  return negative ? code | sign : code;
}"""


def number_type(*, wide: bool) -> str:
    """Return the type of a number; ``wide`` has magnitudes of 128 bits."""
    return _NUMBER.replace("@", _HIGH_HALF if wide else "")


def multiplication(*, wide: bool) -> str:
    """Return the function ``mul``."""
    zero = "(n.m | n.h) == 0" if wide else "n.m == 0"
    return (
        _MUL.replace("@zero", zero)
        .replace("@empty", empty(wide=wide))
        .replace("@", _WIDE_MUL if wide else _NARROW_MUL)
    )


def ieee_sum(*, wide: bool) -> str:
    """Return the function ``ieee``, and what it needs besides ``special`` and ``length``."""
    return WIDE + _IEEE.replace("@high", "x[i].h" if wide else "0")


def c_int(value: int) -> str:
    """Return an integer as an operand of C."""
    return f"({value})" if value < 0 else str(value)


def constant(value: int) -> str:
    """Return an unsigned constant of 64 bits."""
    return f"UINT64_C(0x{value:x})"


def empty(*, wide: bool) -> str:
    """Return the initial value of a number."""
    return f"{{{', '.join('0' * (6 if wide else 5))}}}"


def reading(element: Format, *, wide: bool) -> Iterator[str]:
    """Yield the function ``read_FORMAT``: the number of a code."""
    yield f"static number read_{element}(uint64_t code) {{"
    yield f"  number n = {empty(wide=wide)};"
    yield from _float_lines(element) if element.is_float else _integer_lines(element)
    yield "  n.live = n.m != 0;"
    yield "  return n;"
    yield "}"


def _integer_lines(element: Format) -> Iterator[str]:
    yield f"  uint64_t bits = code & {constant(element.mask)};"
    if element.signed:
        yield f"  n.negative = (uint8_t)(bits >> {element.bits - 1});"
        yield f"  n.m = n.negative ? {constant(1 << element.bits)} - bits : bits;"
    else:
        yield "  n.m = bits;"


def _float_lines(element: Format) -> Iterator[str]:
    fraction, low = element.fraction_bits, element.ignored_bits
    full = (1 << element.exponent_bits) - 1
    if fraction:
        shifted = f"code >> {low}" if low else "code"
        yield f"  uint64_t fraction = {shifted} & {constant((1 << fraction) - 1)};"
    yield f"  int32_t field = (int32_t)(code >> {low + fraction} & 0x{full:x});"
    if fraction:
        yield f"  n.e = field ? field - {element.bias} : {element.minimum_exponent};"
        yield f"  n.m = fraction | (field ? UINT64_C(1) << {fraction} : 0);"
    else:
        yield f"  n.e = field - {element.bias};"
        yield "  n.m = 1;"
    if element.signed:
        yield f"  n.negative = code >> {element.bits - 1} & 1;"
    if element.specials is Specials.INFINITIES:
        yield f"  if (field == {full}) n.kind = fraction ? 2 : 1;"
    elif element.specials is Specials.ONE_NAN:
        also = f" && fraction == {(1 << fraction) - 1}" if fraction else ""
        yield f"  if (field == {full}{also}) n.kind = 2;"


def rounding_name(output: Output) -> str:
    """Return the name of the function that rounds to an output."""
    return f"round_{output.format}_{output.precision}_{'nearest' if output.nearest else 'zero'}"


def rounding(output: Output, element: Format) -> Iterator[str]:
    """Yield the function that rounds ``total * 2**unit`` once; Inf and NaN come before. Zero is +0."""
    smallest = element.minimum_exponent - (output.precision - 1)
    infinity, sign = constant(element.infinity), constant(element.sign_bit)
    way = "to nearest even" if output.nearest else "toward zero"
    yield f"/* {output.precision} bits, {way}, a magnitude that is too large is Inf; zero is +0. */"
    yield f"static uint64_t {rounding_name(output)}(int64_t total, int32_t unit, int32_t found) {{"
    yield "  int negative = total < 0;"
    yield "  uint64_t m = negative ? (uint64_t)-total : (uint64_t)total, kept, code;"
    yield "  int32_t place, down;"
    yield f"  if (found == 3) return {constant(element.canonical_nan)};"
    yield f"  if (found) return {infinity} | (found == 2 ? {sign} : 0);"
    yield "  if (m == 0) return 0;"
    yield f"  place = length(m) + unit - {output.precision};"
    yield f"  if (place < {c_int(smallest)}) place = {c_int(smallest)}; /* subnormal: the unit stays */"
    yield "  down = place - unit;"
    yield "  if (down <= 0) {"
    yield "    kept = m << -down;"
    yield "  } else if (down > 63) {"
    yield "    kept = 0;"
    yield "  } else {"
    if output.nearest:
        yield "    uint64_t half = UINT64_C(1) << (down - 1), rest = m & (2 * half - 1);"
    yield "    kept = m >> down;"
    if output.nearest:
        yield "    if (rest > half || (rest == half && (kept & 1))) kept++;"
    yield "  }"
    shift = element.fraction_bits + 1 - output.precision
    moved = f"(kept << {shift})" if shift else "kept"
    yield f"  code = ((uint64_t)(place - {c_int(smallest)}) << {element.fraction_bits}) + {moved};"
    yield f"  if (code > {infinity}) code = {infinity};"
    yield f"  return code && negative ? code | {sign} : code;"
    yield "}"
