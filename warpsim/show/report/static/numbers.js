// Exact numbers: codes of the element formats, products, sums, and the one place where sums are rounded.
//
// A number is { kind, negative, significand (BigInt), scale, exponent }: significand * 2**scale, with the
// exponent that tensor cores align by. The same definitions as warpsim/sums/arithmetic/reference.py, which the tests
// compare with this file.

export const FINITE = 0;
const INFINITE = 1;
export const NAN = 2;

export const ZERO = { kind: FINITE, negative: false, significand: 0n, scale: 0, exponent: 0 };

export function magnitudeOf(value) {
  return value < 0n ? -value : value;
}

export function bitLength(value) {
  return value ? value.toString(2).length : 0;
}

export function ones(count) {
  return (1n << BigInt(count)) - 1n;
}

export function maskOf(format) {
  return ones(format.bits);
}

function signBitOf(format) {
  return format.signed ? 1n << BigInt(format.bits - 1) : 0n;
}

export function signed(number) {
  return number.negative ? -number.significand : number.significand;
}

// --- codes -----------------------------------------------------------------------------------------

// The number that a code stands for; bits beyond the format, and those the multiplier ignores, are dropped.
export function decode(code, format) {
  const bits = code & maskOf(format);
  if (!format.is_float) {
    const value = bits - ((bits & signBitOf(format)) << 1n);
    return { kind: FINITE, negative: value < 0n, significand: magnitudeOf(value), scale: 0, exponent: 0 };
  }
  const used = bits >> BigInt(format.ignored_bits);
  const fraction = used & ones(format.fraction_bits);
  const field = Number((used >> BigInt(format.fraction_bits)) & ones(format.exponent_bits));
  const normal = field > 0 || format.fraction_bits === 0; // without fractions neither zero nor subnormals
  const exponent = normal ? field - format.bias : format.minimum_exponent;
  return {
    kind: kindOf(field, fraction, format),
    negative: (code & signBitOf(format)) !== 0n,
    significand: fraction + (normal ? 1n << BigInt(format.fraction_bits) : 0n),
    scale: exponent - format.fraction_bits,
    exponent,
  };
}

// What an exponent field of ones means: (fraction, fraction of ones) -> kind. Specials of isa/formats.py.
const SPECIALS = {
  "infinities": (fraction) => (fraction ? NAN : INFINITE),
  "one NaN": (fraction, full) => (fraction === full ? NAN : FINITE),
  "none": () => FINITE,
};

function kindOf(field, fraction, format) {
  if (field !== Number(ones(format.exponent_bits))) return FINITE;
  return SPECIALS[format.specials](fraction, ones(format.fraction_bits));
}

// x * y, exact and not normalised: 1.5 * 1.5 = 2.25 keeps exponent 0. Inf * 0 is NaN.
export function product(x, y) {
  const kind = Math.max(x.kind, y.kind);
  const significand = x.significand * y.significand;
  return {
    kind: kind === INFINITE && !significand ? NAN : kind,
    negative: x.negative !== y.negative,
    significand,
    scale: x.scale + y.scale,
    exponent: x.exponent + y.exponent,
  };
}

// The finite terms add up to total * 2**scale.
export function exactSum(terms) {
  const scale = Math.min(...terms.map((term) => term.scale));
  const total = terms.reduce((sum, term) => sum + (signed(term) << BigInt(term.scale - scale)), 0n);
  return { total, scale };
}

// --- rounding --------------------------------------------------------------------------------------

// rest is what was cut off: 0 nothing, 1 less than half a unit, 2 half, 3 more.
const NEAREST_EVEN = {
  increments: (negative, odd, rest) => rest + (odd ? 1 : 0) > 2,
  overflows: () => true,
  zeroIsNegative: false,
};
const TOWARD_ZERO = { increments: () => false, overflows: () => false, zeroIsNegative: false };
const DOWNWARD = {
  increments: (negative, odd, rest) => negative && rest > 0,
  overflows: (negative) => negative,
  zeroIsNegative: true,
};
const UPWARD = {
  increments: (negative, odd, rest) => !negative && rest > 0,
  overflows: (negative) => !negative,
  zeroIsNegative: false,
};

// Tensor cores cut like TOWARD_ZERO, but what is too large becomes Inf.
const TRUNCATED = { increments: () => false, overflows: () => true, zeroIsNegative: false };

export const ROUNDINGS = {
  "": NEAREST_EVEN,
  rn: NEAREST_EVEN,
  rz: TOWARD_ZERO,
  rm: DOWNWARD,
  rp: UPWARD,
};

// The magnitude without its count lowest bits (or shifted up), and what was cut off, 0 to 3.
export function cut(magnitude, count) {
  if (count <= 0) return { kept: magnitude << BigInt(-count), rest: 0 };
  const shift = BigInt(count);
  const low = magnitude & ones(count);
  const half = 1n << (shift - 1n);
  return { kept: magnitude >> shift, rest: (low >= half ? 2 : 0) + ((low & (half - 1n)) > 0n ? 1 : 0) };
}

function infinityOf(format) {
  return ones(format.exponent_bits) << BigInt(format.fraction_bits);
}

// Code of magnitude * 2**scale with that sign, rounded once to precision significant bits.
function pack(negative, magnitude, scale, format, precision, rounding) {
  const smallest = format.minimum_exponent - (precision - 1);
  const own = bitLength(magnitude) + scale - precision;
  const unit = magnitude ? Math.max(own, smallest) : smallest;
  const { kept, rest } = cut(magnitude, unit - scale);
  const rounded = kept + (rounding.increments(negative, (kept & 1n) === 1n, rest) ? 1n : 0n);
  const binades = BigInt(unit - smallest) << BigInt(format.fraction_bits);
  let code = binades + (rounded << BigInt(format.fraction_bits + 1 - precision));
  if (code >= infinityOf(format)) code = infinityOf(format) - (rounding.overflows(negative) ? 0n : 1n);
  return code | (negative ? signBitOf(format) : 0n);
}

// Code of a sum with Inf or NaN among its terms; null where all are finite.
export function specialCode(terms, format) {
  const infinities = new Set(terms.filter((term) => term.kind === INFINITE).map((term) => term.negative));
  if (infinities.size === 2 || terms.some((term) => term.kind === NAN)) return BigInt(format.nan);
  if (!infinities.size) return null;
  return infinityOf(format) | (infinities.has(true) ? signBitOf(format) : 0n);
}

// Code of the sum, rounded once, as IEEE 754 has it: a conversion, an addition, a fused multiply-add.
export function ieeeSum(terms, format, rounding = NEAREST_EVEN) {
  const special = specialCode(terms, format);
  if (special !== null) return special;
  const { total, scale } = exactSum(terms);
  const negative = total ? total < 0n : zeroIsNegative(terms, rounding);
  return pack(negative, magnitudeOf(total), scale, format, format.fraction_bits + 1, rounding);
}

function zeroIsNegative(terms, rounding) {
  const signs = new Set(terms.map((term) => term.negative));
  return signs.size === 1 ? signs.has(true) : rounding.zeroIsNegative;
}

// The sum of the terms rounded to nearest in a format.
export function ieee(format, ...terms) {
  return decode(ieeeSum(terms, format), format);
}

// Code of total * 2**unit as a tensor core rounds it. Zero is +0, also where a negative sum rounds to it.
export function rounded(total, unit, output, format) {
  const rounding = output.nearest ? NEAREST_EVEN : TRUNCATED;
  const code = pack(total < 0n, magnitudeOf(total), unit, format, output.precision, rounding);
  return code === signBitOf(format) ? 0n : code;
}

// Codes as consecutive integers, so that their difference counts the numbers between; both zeros are 0.
export function ordinal(code, format) {
  const sign = signBitOf(format);
  const magnitude = code & maskOf(format) & ~sign;
  return code & sign ? -magnitude : magnitude;
}
