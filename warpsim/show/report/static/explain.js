// How one element of D came about: the document of `warpsim explain --json`, computed here from the
// registers of the trace. Every code and every exact integer is a string, so that no digit is lost.

import {
  FINITE, bitLength, decode, exactSum, ieee, ieeeSum, magnitudeOf, maskOf, ones, ordinal, product,
  signed, specialCode,
} from "./numbers.js";
import { stepsOf } from "./rules.js";
import { exactText, hexadecimal, quotientText, toNumber, valueText } from "./texts.js";

// The document of D[row, column] of an instruction (model.js).
export function explain(instruction, row, column, part = 0) {
  const { layout, formats } = instruction;
  const pairs = pairsOf(instruction, row, column, part);
  const c = factorOf(instruction, "c", row, column, part);
  const numbers = numbersOf(instruction, pairs, c);
  const { numbers: summed, steps } = stepsOf(numbers);
  const stepOf = new Map(steps.flatMap((step, at) => positionsOf(step).map((position) => [position, at])));
  const d = formats[layout.formats.d];
  const code = codeAfter(instruction, steps, row, column);
  const { evidence, rule } = layout;
  return {
    mnemonic: layout.mnemonic,
    target: layout.target,
    row,
    column,
    product: part,
    place: instruction.place("d", row, column, part),
    ...resultOf(code, d),
    ...rule,
    evidence,
    notes: [...instruction.notes, ...keptNotes(instruction, row, column)],
    c: factorDocument(c, formats),
    products: pairs.map((pair, position) => ({
      position,
      k: pair.k,
      a: factorDocument(pair.a, formats),
      b: factorDocument(pair.b, formats),
      product: numberDocument(summed[position]),
      step: stepOf.get(position),
      ...(pair.metadata ? { metadata: pair.metadata } : {}),
      ...(pair.scales
        ? { scale_a: factorDocument(pair.scales[0], formats), scale_b: factorDocument(pair.scales[1], formats) }
        : {}),
    })),
    steps: steps.map(stepDocument),
    other_sums: otherSums(instruction, numbers, pairs, summed, d, code),
  };
}

// The code that the steps end in, without the words around it.
export function computedCode(instruction, row, column, part = 0) {
  const pairs = pairsOf(instruction, row, column, part);
  const { steps } = stepsOf(numbersOf(instruction, pairs, factorOf(instruction, "c", row, column, part)));
  return codeAfter(instruction, steps, row, column);
}

// The code of D: what the steps end in, but in a disabled lane what D held before.
function codeAfter(instruction, steps, row, column) {
  return instruction.keeps(row, column) ? instruction.codeBefore(row, column) : steps[steps.length - 1].code;
}

function keptNotes(instruction, row, column) {
  return instruction.keeps(row, column) ? ["disable-output-lane: this lane of D stays as it was"] : [];
}

// --- operands --------------------------------------------------------------------------------------

function factorOf(instruction, operand, row, column, part) {
  return {
    code: instruction.code(operand, row, column, part),
    format: instruction.layout.formats[operand],
    place: instruction.place(operand, row, column, part),
  };
}

// Of every product its k and its factors, scales and metadata, each with its place.
function pairsOf(instruction, row, column, part) {
  const { layout } = instruction;
  return instruction.columnsOf(row).map((k, position) => ({
    k,
    a: factorOf(instruction, "a", row, position, part),
    b: factorOf(instruction, "b", k, column, part),
    metadata: layout.pattern ? selectionOf(instruction, row, position, k) : null,
    scales: layout.scale ? scalesOf(instruction, row, column, k) : null,
  }));
}

// What made a stored element of A the one of column k: field, its place, and the index in it.
function selectionOf(instruction, row, position, k) {
  const { pattern } = instruction.layout;
  const chunk = Math.floor(position / pattern.stored);
  const place = instruction.place("e", row, chunk);
  const index = Math.floor((k % pattern.chunk) / pattern.unit);
  return { place, field: Number(instruction.bits(place)), index };
}

function scalesOf(instruction, row, column, k) {
  const chunk = instruction.scaleChunk(k);
  return [["scale_a", row, chunk], ["scale_b", chunk, column]].map(([operand, first, second]) => {
    const place = instruction.place(operand, first, second);
    return { code: instruction.bits(place), format: instruction.layout.scale.format, place };
  });
}

function numbersOf(instruction, pairs, c) {
  const { layout, formats } = instruction;
  const numberOf = (factor) => decode(factor.code, formats[factor.format]);
  return {
    program: layout.program,
    layout,
    formats,
    a: pairs.map((pair) => numberOf(pair.a)),
    b: pairs.map((pair) => numberOf(pair.b)),
    c: numberOf(c),
    scales: layout.scale ? pairs.map((pair) => product(...pair.scales.map(numberOf))) : [],
  };
}

// --- documents -------------------------------------------------------------------------------------

function resultOf(code, format) {
  return { code: hexadecimal(code, format.bits), value: valueText(decode(code, format)) };
}

function numberDocument(number) {
  const exact = number.kind === FINITE ? exactText(signed(number), number.scale) : null;
  return { value: valueText(number), exact, exponent: number.exponent };
}

function factorDocument({ code, format, place }, formats) {
  const number = decode(code, formats[format]);
  const text = hexadecimal(code, formats[format].bits);
  return { format, code: text, ...numberDocument(number), place };
}

function positionsOf(step) {
  return step.terms.flatMap((term) => term.positions);
}

function stepDocument(step) {
  const special = step.terms.some((term) => term.number.kind !== FINITE);
  const total = step.terms.reduce((sum, term) => sum + term.kept, 0n);
  const leading = total ? bitLength(magnitudeOf(total)) - 1 + step.unit : null;
  const width = droppedWidth(step, leading);
  return {
    operation: step.operation,
    special,
    exponent: step.exponent,
    unit: step.unit,
    terms: step.terms.map((term) => termDocument(term, special)),
    sum: special ? null : total.toString(),
    leading: special ? null : leading,
    rounding: step.rounding,
    dropped: special ? null : (magnitudeOf(total) & ones(width)).toString(),
    dropped_bits: special ? null : width,
    ...resultOf(step.code, step.format),
  };
}

// How many low bits of the sum the result has no room for, gradual underflow included.
function droppedWidth({ precision, format, unit }, leading) {
  if (leading === null || !precision) return 0;
  const own = leading - (precision - 1);
  return Math.max(0, Math.max(own, format.minimum_exponent - (precision - 1)) - unit);
}

function termDocument(term, special) {
  const width = Math.max(0, term.unit - term.number.scale);
  const document = {
    name: term.name, products: term.positions, aligns: term.aligns, ...numberDocument(term.number),
  };
  if (special) return document;
  const dropped = term.number.significand & ones(width);
  return { ...document, kept: term.kept.toString(), cut: dropped.toString(), cut_bits: width };
}

// --- other ways to sum -----------------------------------------------------------------------------

// The exact sum, and IEEE chains of fused and of separate operations, from C over ascending k.
function otherSums({ layout, formats }, numbers, pairs, summed, d, code) {
  const scaled = layout.scale && !layout.bit_operation;
  const addends = layout.bit_operation ? summed : numbers.a.map((x, index) => {
    const plain = product(x, numbers.b[index]);
    return scaled ? product(plain, numbers.scales[index]) : plain;
  });
  const order = addends.map((_, index) => index).sort((x, y) => pairs[x].k - pairs[y].k || x - y);
  const terms = order.map((index) => addends[index]);
  if (!d.is_float) return [exactInteger(terms, numbers.c, d, code)];
  const working = d.bits > 32 ? d : formats.f32;
  const chained = (add) => terms.reduce(add, numbers.c);
  const fused = chained((total, term) => ieee(working, term, total));
  const separate = chained((total, term) => ieee(working, ieee(working, term), total));
  const { name } = working;
  return [
    exactly(terms, numbers.c, d, code),
    apart(`IEEE fma chain in ${name}, from C, k ascending`, fused, d, code),
    apart(`${name} products, then ${name} sums, from C, k ascending`, separate, d, code),
  ];
}

function exactly(products, c, format, code) {
  const terms = [...products, c];
  const nearest = hexadecimal(ieeeSum(terms, format), format.bits);
  const name = `exact sum, rounded once to the nearest ${format.name}`;
  if (specialCode(terms, format) !== null) return { name, code: nearest, ulps: null, exact: null };
  const { total, scale } = exactSum(terms);
  const found = decode(code, format);
  const exact = quotientText(total, scale);
  if (found.kind !== FINITE) return { name, code: nearest, ulps: null, exact };
  const leading = total ? bitLength(magnitudeOf(total)) - 1 + scale : format.minimum_exponent;
  const ulp = Math.max(leading, format.minimum_exponent) - format.fraction_bits;
  const difference = exactSum([found, { negative: true, significand: total, scale }]); // found - total
  return { name, code: nearest, ulps: toNumber(difference.total, difference.scale - ulp), exact };
}

function apart(name, number, format, code) {
  const other = ieeeSum([number], format);
  const finite = [code, other].every((each) => decode(each, format).kind === FINITE);
  const ulps = finite ? Number(ordinal(code, format) - ordinal(other, format)) : null;
  return { name, code: hexadecimal(other, format.bits), ulps, exact: null };
}

function exactInteger(terms, c, format, code) {
  const total = signed(c) + terms.reduce((sum, term) => sum + signed(term), 0n);
  return {
    name: "exact sum, before it becomes 32 bits",
    code: hexadecimal(total & maskOf(format), format.bits),
    ulps: Number(signed(decode(code, format)) - total),
    exact: total.toString(),
  };
}
