// D of a wgmma from its differences from a forecast: one fused sum in double precision, operation by
// operation that of warpsim/show/report/forecast.py, which says why.

const F32_BIAS = 127;
const F32_FRACTION_BITS = 23;
const F32 = new Float32Array(1);
const F32_BITS = new Uint32Array(F32.buffer);

// 2 ** exponent for all exponents of normal numbers in double precision, exactly.
const LOWEST = -1022;
const POWERS = new Float64Array(2046).fill(2);
POWERS[0] = 2 ** LOWEST;
for (let at = 1; at < POWERS.length; at += 1) POWERS[at] = 2 * POWERS[at - 1];

function powerOfTwo(exponent) {
  return POWERS[exponent - LOWEST];
}

function low(count) {
  return (2 ** count - 1) >>> 0;
}

function signBitOf(format) {
  return format.signed ? 2 ** (format.bits - 1) : 0;
}

// --- numbers ---------------------------------------------------------------------------------------

// A matrix as significand * 2 ** (exponent - fraction_bits), row by row; Inf and NaN count as their
// fields would as numbers.
function numbersOf(instruction, operand) {
  const [rows, columns] = instruction.layout.extent(operand);
  const format = instruction.formatOf(operand);
  const codes = codesOf(instruction, operand, rows, columns);
  const significands = new Float64Array(codes.length);
  const exponents = new Int32Array(codes.length);
  codes.forEach((code, at) => {
    const negative = (code & signBitOf(format)) !== 0;
    if (!format.is_float) {
      significands[at] = negative ? code - 2 ** format.bits : code;
      return;
    }
    const used = code >>> format.ignored_bits;
    const field = (used >>> format.fraction_bits) & low(format.exponent_bits);
    const fraction = (used & low(format.fraction_bits)) + (field ? 2 ** format.fraction_bits : 0);
    significands[at] = negative ? -fraction : fraction;
    exponents[at] = field ? field - format.bias : format.minimum_exponent;
  });
  return { significands, exponents, fraction_bits: format.is_float ? format.fraction_bits : 0 };
}

function codesOf(instruction, operand, rows, columns) {
  if (operand in instruction.codes) return instruction.codes[operand];
  const codes = new Uint32Array(rows * columns);
  if (instruction.absent.includes(operand)) return codes;
  const { registers } = instruction.layout.operands[operand];
  const words = instruction.words[operand];
  for (const { lane, register, low_bit, bits, row, column } of instruction.layout.places(operand)) {
    codes[row * columns + column] = (words[lane * registers + register] >>> low_bit) & low(bits);
  }
  return codes;
}

// --- the sum ---------------------------------------------------------------------------------------

// C and all products of one element of D, cut to units of the largest exponent and summed.
function sumOf(instruction, { a, b, c }, row, column, columns) {
  const { shape: { n }, stored_k, rule: { exponent_floor = 0, fraction_bits = 0 } } = instruction.layout;
  const [atA, atC] = [row * stored_k, row * n + column];
  let exponent = c.significands[atC] ? Math.max(exponent_floor, c.exponents[atC]) : exponent_floor;
  for (let stored = 0; stored < stored_k; stored += 1) {
    const atB = columns[stored] * n + column;
    if (a.significands[atA + stored] && b.significands[atB]) {
      exponent = Math.max(exponent, a.exponents[atA + stored] + b.exponents[atB]);
    }
  }
  const unit = exponent - fraction_bits;
  const scale = -a.fraction_bits - b.fraction_bits - unit;
  let total = 0;
  total += Math.trunc(c.significands[atC] * powerOfTwo(c.exponents[atC] - c.fraction_bits - unit));
  for (let stored = 0; stored < stored_k; stored += 1) {
    const atB = columns[stored] * n + column;
    const product = a.significands[atA + stored] * b.significands[atB];
    total += Math.trunc(product * powerOfTwo(a.exponents[atA + stored] + b.exponents[atB] + scale));
  }
  return total * powerOfTwo(unit);
}

// By way of f32, whose bits are cut to the precision or rounded to the format; subnormals are zero.
function codeOf(total, output, format) {
  if (!output) return total >>> 0;
  F32[0] = total;
  let [bits] = F32_BITS;
  const shift = F32_FRACTION_BITS - format.fraction_bits;
  if (!output.nearest) {
    bits -= Math.abs(F32[0]) > Math.abs(total) ? 1 : 0;
    bits = (bits & -(2 ** (F32_FRACTION_BITS + 1 - output.precision))) >>> 0;
  }
  const magnitude = (bits & 0x7fffffff) - (F32_BIAS - format.bias) * 2 ** F32_FRACTION_BITS;
  const rounded = Math.max(magnitude + ((1 << shift) >> 1), 0) >>> shift;
  return rounded | (bits >>> 31 ? signBitOf(format) : 0);
}

// The words of D: the forecast's codes plus their differences.
export function wordsOfD(instruction, differences) {
  const { layout } = instruction;
  const { shape: { m, n }, lanes, operands: { d: { registers } }, rule } = layout;
  const numbers = Object.fromEntries(["a", "b", "c"].map((operand) => [operand, numbersOf(instruction, operand)]));
  const columns = Array.from({ length: m }, (_, row) => instruction.columnsOf(row));
  const format = instruction.formatOf("d");
  const words = new Uint32Array(lanes * registers);
  for (const { lane, register, low_bit, row, column } of layout.places("d")) {
    const total = sumOf(instruction, numbers, row, column, columns[row]);
    const code = (codeOf(total, rule.output, format) + differences[row * n + column]) & low(format.bits);
    words[lane * registers + register] |= code << low_bit;
  }
  return words;
}
