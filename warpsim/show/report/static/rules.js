// The program of a rule, interpreted: a step for each rounded operation, with every term and what alignment cut
// off it. The program comes with the layout, with the names of its terms (workbench/explanation/rule_steps.py).

import {
  ROUNDINGS, ZERO, cut, decode, exactSum, ieee, ieeeSum, magnitudeOf, product, rounded, signed,
  specialCode,
} from "./numbers.js";

const ROUNDING_NAMES = { rn: "to nearest even", rz: "toward zero", rm: "down", rp: "up" };

function live(number) {
  return { ...number, live: number.significand !== 0n };
}

function inUnits(number, unit) {
  const { kept } = cut(number.significand, unit - number.scale);
  return number.negative ? -kept : kept;
}

function sumOf(members) {
  const { total, scale } = exactSum(members);
  const kind = Math.max(...members.map((each) => each.kind));
  const ways = { kind, negative: total < 0n, exponent: 0, live: members.some((each) => each.live) };
  return { ...ways, significand: magnitudeOf(total), scale };
}

function clamped(total, bits, clamps) {
  const limit = 1n << BigInt(bits - 1);
  const value = !clamps ? total : total >= limit ? limit - 1n : total < -limit ? -limit : total;
  return value & ((1n << BigInt(bits)) - 1n);
}

// Operations by name: (values, what is given, formats) -> value.
const OPERATIONS = {
  zero: () => [{ ...ZERO, live: false }],
  mul: ([x, y]) => x.map((each, at) => ({ ...product(each, y[at]), live: each.live && y[at].live })),
  bits: ([x, y], [operation]) => x.map((each, at) => live({
    ...ZERO,
    significand: operation === "xor" ? each.significand ^ y[at].significand : each.significand & y[at].significand,
  })),
  convert: ([x], [format], formats) => x.map((each) => live(ieee(formats[format], each))),
  sum: ([x], [count]) => x.filter((_, at) => at % count === 0).map((_, at) => sumOf(x.slice(at * count, (at + 1) * count))),
  take: ([x], [places]) => places.map((place) => x[place]),
  join: (lists) => lists.flat(),
  top: ([x, of], [floor]) => Math.max(floor, ...x.filter((_, at) => of[at].live).map((each) => each.exponent)),
  int: (_, [value]) => value,
  add: ([x], [addend]) => x + addend,
  max: ([x, y]) => Math.max(x, y),
  ge: ([x, y]) => x >= y,
  pick: ([condition, x, y]) => (condition ? x : y),
  cut: ([x, unit]) => x.map((each) => inUnits(each, unit)),
  total: ([x]) => x.reduce((sum, each) => sum + each, 0n),
  round: ([total, unit, x], [output], formats) => {
    const special = specialCode(x, formats[output.format]);
    return special === null ? rounded(total, unit, output, formats[output.format]) : special;
  },
  ieee: ([x], [format, mode], formats) => ieeeSum(x, formats[format], ROUNDINGS[mode]),
  wrap: ([total], [bits, clamps]) => clamped(total, bits, clamps),
};

function valuesOf({ program, formats, a, b, c, scales }) {
  const values = { A: a.map(live), B: b.map(live), C: [live(c)], S: scales.map(live) };
  for (const { result, name, values: names, given } of program.operations) {
    if (result in values || result === "SA" || result === "SB") continue;
    const of = names.map((each) => values[each]);
    values[result] = name === "read" ? [live(decode(of[0], formats[given[0]]))] : OPERATIONS[name](of, given, formats);
  }
  return values;
}

// --- steps -----------------------------------------------------------------------------------------

function termsOf({ program, values }, list, kept, unit, aligned) {
  return values[list].map((number, at) => {
    const { name, positions } = program.labels[list][at];
    return { name, positions, aligns: number.live || !aligned, number, kept: kept[at], unit };
  });
}

// The operation whose units a total adds.
function cutOf(reading, total) {
  const { name, values: names } = reading.of[total];
  if (name === "pick") return cutOf(reading, names[reading.values[names[0]] ? 1 : 2]);
  return reading.of[names[0]];
}

function fusedStep(reading, { result, values: [total, scale], given: [output] }) {
  const { values, of, program, formats } = reading;
  const from = cutOf(reading, total);
  const bits = of[scale].name === "add" ? -of[scale].given[0] : program.fraction_bits;
  const unit = values[scale] < program.lowest / 2 ? -bits : values[scale]; // everything is zero
  return {
    operation: "fused sum",
    terms: termsOf(reading, from.values[0], values[from.result], unit, true),
    exponent: unit + bits,
    unit,
    code: values[result],
    format: formats[output.format],
    rounding: `${output.precision} bits, ${output.nearest ? "to nearest even" : "toward zero"}`,
    precision: output.precision,
  };
}

// A sum rounded once: nothing is cut before.
function ieeeStep(reading, { result, values: [list], given: [name, mode] }) {
  const format = reading.formats[name];
  const unit = Math.min(...reading.values[list].map((each) => each.scale));
  const kept = reading.values[list].map((each) => signed(each) << BigInt(each.scale - unit));
  const terms = termsOf(reading, list, kept, unit, false);
  const multiplies = terms.some((term) => term.positions.length);
  const added = multiplies ? "fma" : "add";
  return {
    operation: terms.length > 1 ? added : multiplies ? "multiply" : `convert to ${name}`,
    terms,
    exponent: null,
    unit,
    code: reading.values[result],
    format,
    rounding: `${format.fraction_bits + 1} bits, ${ROUNDING_NAMES[mode]}`,
    precision: format.fraction_bits + 1,
  };
}

// An exact sum, wrapped or clamped to D's bits.
function exactStep(reading, { result, values: [total], given: [bits, clamps] }) {
  const from = cutOf(reading, total);
  const { bit_operation: counted, formats: { d } } = reading.layout;
  return {
    operation: counted ? `${counted} and count of ones` : "integer sum",
    terms: termsOf(reading, from.values[0], reading.values[from.result], 0, false),
    exponent: null,
    unit: 0,
    code: reading.values[result],
    format: reading.formats[d],
    rounding: clamps ? `clamped to ${bits} bits` : `modulo 2**${bits}`,
    precision: 0,
  };
}

const STEPS = { round: fusedStep, ieee: ieeeStep, wrap: exactStep };

// The products as their steps take them, and the steps, of numbers in stored order; the last code is D's.
export function stepsOf(inputs) {
  const { program } = inputs;
  const of = Object.fromEntries(program.operations.map((each) => [each.result, each]));
  const reading = { ...inputs, of, values: valuesOf(inputs) };
  const steps = program.operations.filter((each) => each.name in STEPS).map((each) => STEPS[each.name](reading, each));
  return { numbers: reading.values[program.products], steps };
}
