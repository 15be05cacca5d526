// Each rule of summation as a list of steps, with every term and what alignment cut off it.
//
// The twin of warpsim/workbench/explanation/rules.py. A rule takes { rule, layout, formats, a, b, c, scales } with
// numbers in stored order and gives { numbers, steps }; the last step's code is D's.

import {
  FINITE, NEAREST_EVEN, ROUNDINGS, ZERO, cut, decode, exactSum, ieee, ieeeSum, maskOf, product, rounded,
  signed, specialCode,
} from "./numbers.js";

const ROUNDING_NAMES = {
  "": "to nearest even", rn: "to nearest even", rz: "toward zero", rm: "down", rp: "up",
};

// --- fused sums ------------------------------------------------------------------------------------

// Align to the largest exponent, cut each term, add exactly, round once.
function fuse(labels, numbers, exponents, rule, formats) {
  const exponent = Math.max(rule.exponent_floor, ...exponents);
  const unit = exponent - rule.fraction_bits;
  const format = formats[rule.output.format];
  const terms = numbers.map((number, index) => ({
    ...labels[index],
    number,
    kept: aligned(number, unit),
    unit,
  }));
  const special = specialCode(numbers, format);
  const total = terms.reduce((sum, term) => sum + term.kept, 0n);
  const nearest = rule.output.nearest ? "to nearest even" : "toward zero";
  return {
    operation: "fused sum",
    terms,
    exponent,
    unit,
    code: special === null ? rounded(total, unit, rule.output, format) : special,
    format,
    rounding: `${rule.output.precision} bits, ${nearest}`,
    precision: rule.output.precision,
  };
}

function aligned(number, unit) {
  const { kept } = cut(number.significand, unit - number.scale);
  return number.negative ? -kept : kept;
}

// The chain over the chosen [position, number] pairs; each rounded sum is the next step's accumulator.
function chain(rule, formats, chosen, start, before = 0) {
  let accumulator = start;
  const steps = [];
  for (let first = 0; first < chosen.length; first += rule.length) {
    const members = chosen.slice(first, first + rule.length);
    const numbers = [...members.map(([, number]) => number), accumulator.number];
    const labels = members.map(([position, number]) => ({
      name: `product ${position}`, positions: [position], aligns: number.significand !== 0n,
    }));
    labels.push({ name: accumulator.name, positions: [], aligns: accumulator.number.significand !== 0n });
    const exponents = numbers.filter((number) => number.significand).map((number) => number.exponent);
    const step = fuse(labels, numbers, exponents, rule, formats);
    steps.push(step);
    accumulator = { name: `step ${before + steps.length - 1}`, number: decode(step.code, step.format) };
  }
  return steps;
}

function products(a, b) {
  return a.map((x, index) => product(x, b[index]));
}

function fusedSum({ rule, formats, a, b, c, scales }) {
  let numbers = products(a, b);
  if (scales.length) numbers = products(numbers, scales);
  const chosen = numbers.map((number, position) => [position, number]);
  return { numbers, steps: chain(rule, formats, chosen, { name: "c", number: c }) };
}

// Operands become f16 first; both halves are summed from zero, then C is added as IEEE does.
function emulatedF8({ rule, layout, formats, a, b, c }) {
  const asF16 = (numbers) => numbers.map((number) => ieee(formats.f16, number));
  const numbers = products(asF16(a), asF16(b));
  const steps = [];
  let partial = { name: "zero", number: ZERO };
  for (const half of [0, 1]) {
    const chosen = numbers.map((number, position) => [position, number]);
    const mine = chosen.filter(([position]) => position % 4 >> 1 === half);
    steps.push(...chain(rule.step, formats, mine, partial, steps.length));
    const last = steps[steps.length - 1];
    partial = { name: `step ${steps.length - 1}`, number: decode(last.code, last.format) };
  }
  const added = [named("c", c), named(partial.name, partial.number)];
  steps.push(ieeeStep("add", added, formats[layout.formats.d]));
  return { numbers, steps };
}

// One step over whole groups: a group's products add up exactly and carry its scales' exponent.
function scaledGroups({ rule, formats, a, b, c, scales }) {
  const numbers = products(a, b);
  const terms = [];
  const labels = [];
  for (let first = 0; first < numbers.length; first += rule.group) {
    const members = numbers.slice(first, first + rule.group);
    const { total, scale: unit } = exactSum(members);
    const group = {
      kind: FINITE, negative: total < 0n, significand: total < 0n ? -total : total, scale: unit, exponent: 0,
    };
    terms.push(product(group, scales[first]));
    const aligns = scales[first].significand !== 0n && members.some((member) => member.significand);
    const positions = members.map((_, index) => first + index);
    labels.push({ name: `group ${labels.length}`, positions, aligns });
  }
  terms.push(c);
  labels.push({ name: "c", positions: [], aligns: c.significand !== 0n });
  const exponents = terms.filter((_, index) => labels[index].aligns).map((term) => term.exponent);
  return { numbers, steps: [fuse(labels, terms, exponents, rule, formats)] };
}

// Groups of 4 scaled products, or of 16 where C outranks all: see ScaledQuads.
function scaledQuads({ rule, formats, a, b, c, scales }) {
  const numbers = products(a, b);
  const scaled = products(numbers, scales);
  const format = formats[rule.output.format];
  const live = scaled.map((term, index) => [term, scales[index]]).filter(([term]) => term.significand !== 0n);
  const tops = live.map(([term]) => term.exponent);
  const ofC = c.significand !== 0n ? [c.exponent] : [];
  const special = specialCode([...scaled, c], format);
  const alone = special !== null || tops.length + ofC.length === 0;
  const outranked = ofC.length > 0 && ofC[0] >= Math.max(...tops);
  const inside = () => Math.max(
    Math.max(...tops, ...ofC) - rule.product_bits, Math.max(...live.map(([, scale]) => scale.exponent)) - rule.fraction_bits,
  );
  const unit = alone ? 0 : outranked ? ofC[0] - rule.fraction_bits : inside();
  const count = alone ? 1 : outranked ? rule.outranked : rule.group;
  const terms = [];
  for (let first = 0; first < scaled.length; first += count) {
    const members = scaled.slice(first, first + count);
    const { total, scale } = alone ? { total: 0n, scale: 0 } : exactSum(members);
    const sum = {
      kind: FINITE, negative: total < 0n, significand: total < 0n ? -total : total, scale, exponent: 0,
    };
    const number = alone ? members[0] : sum;
    const positions = members.map((_, index) => first + index);
    const kept = alone ? 0n : aligned(number, unit);
    terms.push({ name: `group ${terms.length}`, positions, aligns: number.significand !== 0n, number, kept, unit });
  }
  const own = alone ? 0n : aligned(c, unit);
  terms.push({ name: "c", positions: [], aligns: c.significand !== 0n, number: c, kept: own, unit });
  const total = terms.reduce((sum, term) => sum + term.kept, 0n);
  const step = {
    operation: "fused sum",
    terms,
    exponent: alone ? 0 : unit + rule.fraction_bits,
    unit,
    code: special !== null ? special : alone ? 0n : rounded(total, unit, rule.output, format),
    format,
    rounding: `${rule.output.precision} bits, toward zero`,
    precision: rule.output.precision,
  };
  return { numbers, steps: [step] };
}

// --- IEEE operations -------------------------------------------------------------------------------

function named(name, number, positions = []) {
  return { name, number, positions };
}

// A sum rounded once: nothing is cut before.
function ieeeStep(operation, terms, format, rounding = NEAREST_EVEN, roundingName = "to nearest even") {
  const numbers = terms.map((term) => term.number);
  const { scale: unit } = exactSum(numbers);
  return {
    operation,
    terms: terms.map((term) => ({
      ...term, aligns: true, unit, kept: signed(term.number) << BigInt(term.number.scale - unit),
    })),
    exponent: null,
    unit,
    code: ieeeSum(numbers, format, rounding),
    format,
    rounding: `${format.fraction_bits + 1} bits, ${roundingName}`,
    precision: format.fraction_bits + 1,
  };
}

function fusedMultiplyAdd({ layout, formats, a, b, c }) {
  const numbers = products(a, b);
  const format = formats[layout.formats.d];
  const [rounding, name] = [ROUNDINGS[layout.rounding], ROUNDING_NAMES[layout.rounding]];
  const steps = [];
  let before = named("c", c);
  numbers.forEach((number, position) => {
    const terms = [named(`product ${position}`, number, [position]), before];
    const step = ieeeStep("fma", terms, format, rounding, name);
    steps.push(step);
    before = named(`step ${position}`, decode(step.code, format));
  });
  return { numbers, steps };
}

// The routine for m8n8k4 f16 without tensor cores, an f32 operation a step.
function softwareQuad({ layout, formats, a, b, c }) {
  const numbers = products(a, b);
  const d = formats[layout.formats.d];
  const steps = [];
  const done = (operation, terms, format = formats.f32) => {
    const step = ieeeStep(operation, terms, format);
    steps.push(step);
    return named(`step ${steps.length - 1}`, decode(step.code, format));
  };
  const term = (position) => named(`product ${position}`, numbers[position], [position]);
  const fma = (position, addend) => done("fma", [term(position), addend]);
  const multiply = (position) => done("multiply", [term(position)]);
  const accumulator = named("c", c);
  if (d.name === "f32") {
    const sum = [0, 1, 2, 3].reduce((partial, position) => fma(position, partial), named("zero", ZERO));
    done("add", [accumulator, sum]);
  } else {
    const upper = done("add", [accumulator, fma(3, multiply(2))]);
    const lower = fma(1, multiply(0));
    done(`convert to ${d.name}`, [done("add", [upper, lower])], d);
  }
  return { numbers, steps };
}

// --- integers --------------------------------------------------------------------------------------

// One exact sum, wrapped or clamped to D's 32 bits.
function whole({ layout, formats, c }, numbers, operation) {
  const format = formats[layout.formats.d];
  const terms = numbers.map((number, position) => named(`product ${position}`, number, [position]));
  const steps = [...terms, named("c", c)].map((term) => ({
    ...term, aligns: true, unit: 0, kept: signed(term.number),
  }));
  const limit = 1n << BigInt(format.bits - 1);
  let total = steps.reduce((sum, term) => sum + term.kept, 0n);
  if (layout.satfinite) total = total >= limit ? limit - 1n : total < -limit ? -limit : total;
  const step = {
    operation,
    terms: steps,
    exponent: null,
    unit: 0,
    code: total & maskOf(format),
    format,
    rounding: layout.satfinite ? "clamped to 32 bits" : "modulo 2**32",
    precision: 0,
  };
  return { numbers, steps: [step] };
}

function integerSum(inputs) {
  return whole(inputs, products(inputs.a, inputs.b), "integer sum");
}

function bitCount(inputs) {
  const { bit_operation: operation } = inputs.layout;
  const combine = operation === "xor" ? (x, y) => x ^ y : (x, y) => x & y;
  const numbers = inputs.a.map((x, index) => ({
    ...ZERO, significand: combine(x.significand, inputs.b[index].significand),
  }));
  return whole(inputs, numbers, `${operation} and count of ones`);
}

const RULES = {
  FusedSum: fusedSum,
  EmulatedF8: emulatedF8,
  ScaledGroups: scaledGroups,
  ScaledQuads: scaledQuads,
  FusedMultiplyAdd: fusedMultiplyAdd,
  SoftwareQuad: softwareQuad,
  IntegerSum: integerSum,
  BitCount: bitCount,
};

export function stepsOf(inputs) {
  return RULES[inputs.rule.rule](inputs);
}
