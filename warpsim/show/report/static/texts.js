// Numbers, codes and bits in words that lose nothing without saying so. The wording of warpsim explain.

import { FINITE, NAN, bitLength, cut, decode, magnitudeOf, signed } from "./numbers.js";

const LONGEST = 24; // of more dropped bits than these, leading zeros are counted and the end is left out
const DOUBLE = { precision: 53, smallest: -1074, largest: 1023 };

// value * 2**scale as the nearest double: { kept, unit } with kept of at most 53 bits; null beyond its range.
function nearestDouble(value, scale) {
  const magnitude = magnitudeOf(value);
  const unit = Math.max(bitLength(magnitude) + scale - DOUBLE.precision, DOUBLE.smallest);
  const { kept, rest } = cut(magnitude, unit - scale);
  const whole = kept + (rest + Number(kept & 1n) > 2 ? 1n : 0n);
  return bitLength(whole) + unit > DOUBLE.largest + 1 ? null : { kept: whole, unit };
}

// value * 2**scale as a JavaScript number, correctly rounded.
export function toNumber(value, scale) {
  const found = nearestDouble(value, scale);
  const magnitude = found ? Number(found.kept) * 2 ** found.unit : Infinity;
  return value < 0n ? -magnitude : magnitude;
}

// A value of nine significant digits as C's %.9g writes it, from the double nearest to value * 2**scale.
function general({ kept, unit }, digits) {
  const numerator = unit > 0 ? kept << BigInt(unit) : kept;
  const denominator = unit < 0 ? 1n << BigInt(-unit) : 1n;
  let exponent = Math.floor(Math.log10(Number(kept)) + unit * Math.log10(2));
  while (numerator >= 10n ** BigInt(Math.max(exponent + 1, 0)) * denominator && exponent >= -1) exponent += 1;
  let text = decimalDigits(numerator, denominator, exponent, digits);
  while (text.length > digits) text = decimalDigits(numerator, denominator, (exponent += 1), digits);
  while (text.length < digits) text = decimalDigits(numerator, denominator, (exponent -= 1), digits);
  return placed(text, exponent, digits);
}

// numerator / denominator in units of 10**(exponent + 1 - digits), to the nearest even.
function decimalDigits(numerator, denominator, exponent, digits) {
  const power = digits - 1 - exponent;
  const above = numerator * (power > 0 ? 10n ** BigInt(power) : 1n);
  const below = denominator * (power < 0 ? 10n ** BigInt(-power) : 1n);
  const whole = above / below;
  const twice = (above % below) * 2n;
  const up = twice > below || (twice === below && whole & 1n);
  return (whole + (up ? 1n : 0n)).toString();
}

function placed(text, exponent, digits) {
  const bare = (number) => (number.includes(".") ? number.replace(/\.?0+$/, "") : number);
  if (exponent < -4 || exponent >= digits) {
    const sign = exponent < 0 ? "-" : "+";
    const power = String(Math.abs(exponent)).padStart(2, "0");
    return `${bare(`${text[0]}.${text.slice(1)}`)}e${sign}${power}`;
  }
  if (exponent < 0) return bare(`0.${"0".repeat(-exponent - 1)}${text}`);
  return bare(`${text.slice(0, exponent + 1)}.${text.slice(exponent + 1)}`);
}

// significand * 2**scale in nine significant digits, of integers all; as a power of two beyond doubles.
export function fractionText(value, scale) {
  const [odd, power] = reduced(value, scale);
  if (power >= 0 && bitLength(odd) + power <= 53) return (odd << BigInt(power)).toString();
  const found = nearestDouble(odd, power);
  if (!found || !found.kept) return exactText(value, scale);
  return (value < 0n ? "-" : "") + general(found, 9);
}

// The same number with an odd significand.
function reduced(value, scale) {
  if (!value) return [0n, 0];
  const shift = bitLength(value & -value) - 1;
  return [value >> BigInt(shift), scale + shift];
}

// "-1365 * 2**-24".
export function exactText(value, scale) {
  const [odd, power] = reduced(value, scale);
  return power === 0 || !value ? odd.toString() : `${odd} * 2**${power}`;
}

// "3/4": the same as a fraction.
export function quotientText(value, scale) {
  const [odd, power] = reduced(value, scale);
  return power < 0 ? `${odd}/${1n << BigInt(-power)}` : (odd << BigInt(power)).toString();
}

// "-Inf", "NaN", "-0", or the value.
export function valueText(number) {
  const sign = number.negative ? "-" : "";
  if (number.kind === NAN) return "NaN";
  if (number.kind !== FINITE) return `${sign}Inf`;
  if (!number.significand) return `${sign}0`;
  return fractionText(signed(number), number.scale);
}

// The value of a code: nine digits, which tell all codes of 32 bits apart, and of wider ones every digit and the
// same in hexadecimal.
export function codeText(code, format) {
  const number = decode(code, format);
  if (format.bits <= 32 || number.kind !== FINITE || !number.significand) return valueText(number);
  const value = signed(number);
  const [odd, power] = reduced(value, number.scale);
  if (power >= 0) return (odd << BigInt(power)).toString();
  return `${toNumber(value, number.scale)} = ${hexadecimalFloat(value, number.scale)}`;
}

// "-0x1.8p+3", or "0x0.8p-1022" of a subnormal number: a double as C's %a writes it.
function hexadecimalFloat(value, scale) {
  const magnitude = magnitudeOf(value);
  const leading = Math.max(bitLength(magnitude) - 1 + scale, DOUBLE.smallest + DOUBLE.precision - 1);
  const digits = DOUBLE.precision - 1;
  const bits = magnitude << BigInt(scale - leading + digits);
  const fraction = (bits & ((1n << BigInt(digits)) - 1n)).toString(16).padStart(digits / 4, "0");
  const sign = value < 0n ? "-" : "";
  return `${sign}0x${bits >> BigInt(digits)}.${fraction}p${leading < 0 ? "" : "+"}${leading}`;
}

// A value short enough for a cell: four significant digits.
export function shortText(number) {
  const full = valueText(number);
  if (full.length <= 6 || number.kind !== FINITE) return full;
  const value = toNumber(signed(number), number.scale);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return full;
  if (!Number.isFinite(value) || !value) return full.replace(/ \* 2\*\*/, "p");
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
  return String(Number(value.toPrecision(size < 0.1 ? 3 : 4)));
}

// "0x3c00".
export function hexadecimal(code, bits) {
  return `0x${code.toString(16).padStart(Math.ceil(bits / 4), "0")}`;
}

// The bits that were dropped, nothing where all are 0: leading zeros are counted where they are many.
export function bitsText(value, width) {
  if (!value) return "";
  const digits = value.toString(2);
  if (width <= LONGEST) return digits.padStart(width, "0");
  const shown = digits.length <= LONGEST ? digits : `${digits.slice(0, LONGEST)}…`;
  const zeros = width - digits.length;
  return zeros ? `${zeros} zeros, ${shown}` : shown;
}

// Signed, two decimals unless whole or tiny; "-" where Inf or NaN takes part.
export function ulpsText(ulps) {
  if (ulps === null) return "-";
  const sign = ulps < 0 ? "" : "+";
  if (Number.isInteger(ulps)) return sign + ulps;
  return sign + (Math.abs(ulps) >= 1 / 200 ? ulps.toFixed(2) : ulps.toExponential(1));
}

// "3" or "0..7".
export function spanText(first, last) {
  return first === last ? String(first) : `${first}..${last}`;
}

// A sign and binary digits with a point behind the one that weighs 2**exponent.
export function binaryText(value, step, digits) {
  const fraction = step.exponent - step.unit;
  const text = magnitudeOf(value).toString(2).padStart(Math.max(digits, fraction + 1), "0");
  const point = text.length - fraction;
  return `${value < 0n ? "-" : "+"}${text.slice(0, point)}.${text.slice(point)}`;
}
