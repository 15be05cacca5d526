// The explanation of one element of D as tables: operands, steps with their alignment, other ways to sum.

import { make, table } from "./elements.js";
import { binaryText, bitsText, codeText, exactText, fractionText, spanText, ulpsText } from "./texts.js";

const LONGEST_EXACT = 32; // characters

function placeText(instruction, factor, absent) {
  const { place } = factor;
  if (!place) return absent;
  const { operand, lane, register, low_bit: low, bits } = place;
  return `${instruction.layout.laneName(lane)} ${instruction.registerName(operand, register)}[${low + bits - 1}..${low}]`;
}

// The elements of the whole explanation; document is explain.js's, actual the code the simulator gave.
export function explanationElements(instruction, document, actual) {
  const equal = BigInt(document.code) === actual;
  const verdict = equal
    ? "✓ recomputed here in exact integers: the simulator's bits"
    : `✗ recomputed here, but the simulator gave 0x${actual.toString(16)}: please report this`;
  return [
    make("p", { class: "rule" }, `${document.mnemonic} on ${document.target}: ${ruleText(document)}`),
    make("p", { class: equal ? "agrees" : "disagrees" }, verdict),
    ...[...document.notes, ...readingNotes(instruction, document)].map((note) => make("p", { class: "note" }, note)),
    make("h4", {}, "Operands and products"),
    instruction.layout.bit_operation ? wordTable(instruction, document) : productTable(instruction, document),
    make("h4", {}, "Steps"),
    ...document.steps.flatMap((step, number) => stepElements(instruction, step, number)),
    make("h4", {}, "Other ways to sum"),
    otherTable(instruction, document),
  ];
}

function ruleText({ rule, length, fraction_bits: bits, group, output, evidence }) {
  const parts = [
    length && `steps of ${length} products`,
    group && `groups of ${group}`,
    bits && `${bits} fraction bits below the largest exponent`,
    output && `to ${output.format}, ${output.precision} bits, ${output.nearest ? "nearest even" : "toward zero"}`,
  ].filter(Boolean);
  return `${[rule, ...parts].join(", ")} (${evidence.label})`;
}

// What the columns of numbers do not say by themselves.
function readingNotes(instruction, document) {
  const notes = ["a", "b"].map((side) => droppedNote(instruction, document, side));
  const aligned = document.steps.some((step) => step.exponent !== null);
  const exponent = "exponent: exp(A) + exp(B), before normalisation (0 for 1.5 * 1.5); "
    + "all terms of a step are shifted to the largest";
  return [...notes, aligned && exponent].filter(Boolean);
}

function droppedNote(instruction, { products }, side) {
  const { format: name } = products[0][side];
  const { ignored_bits: ignored } = instruction.formats[name];
  const low = (1n << BigInt(ignored)) - 1n;
  const count = products.filter((one) => BigInt(one[side].code) & low).length;
  return count && `the low ${ignored} bits of ${side.toUpperCase()} are dropped, since ${name} lacks them; `
    + `${count} of ${products.length} codes have some set, and the values ignore them`;
}

// --- operands --------------------------------------------------------------------------------------

function productTable(instruction, document) {
  const first = document.products[0];
  const header = ["", "k", "A", "code", "value", "B", "code", "value"];
  if (first.metadata) header.splice(5, 0, "metadata", "field", "index");
  if (first.scale_a) header.push("scale A", "scale B");
  const name = first.scale_a && document.rule === "FusedSum" ? "product * scales" : "product";
  header.push(name, "exponent", "step");
  const rows = document.products.map((product) => productRow(instruction, document, product));
  rows.push(cRow(instruction, document, header.length));
  const numbers = ["k", "value", name, "exponent", "step"];
  const numeric = header.flatMap((name, index) => (numbers.includes(name) ? [index] : []));
  return table("Operands and products", header, rows, { numeric });
}

function productRow(instruction, document, product) {
  const { a, b, metadata, scale_a: scaleA, scale_b: scaleB } = product;
  const cells = [String(product.position), String(product.k), placeText(instruction, a, "shared")];
  cells.push(...codeCells(instruction, a));
  if (metadata) {
    const field = metadata.field.toString(2).padStart(4, "0");
    cells.push(placeText(instruction, metadata, ""), field, String(metadata.index));
  }
  cells.push(placeText(instruction, b, "shared"), ...codeCells(instruction, b));
  if (scaleA) cells.push(`${scaleA.value} ${scaleA.code}`, `${scaleB.value} ${scaleB.code}`);
  cells.push(product.product.value, String(product.product.exponent), String(product.step));
  return { cells, "data-key": `pair/${document.row}/${document.column}/${product.position}` };
}

// A code and its value, of more than 32 bits with every digit.
function codeCells(instruction, { code, format }) {
  return [code, codeText(BigInt(code), instruction.formats[format])];
}

function cRow(instruction, { c }, width) {
  const cells = ["c", "", placeText(instruction, c, "not read"), ...codeCells(instruction, c)];
  return { cells: [...cells, ...Array(width - cells.length).fill("")] };
}

// 1-bit products by 32: words of A and B, and how many ones they leave.
function wordTable(instruction, document) {
  const rows = [];
  for (let start = 0; start < document.products.length; start += 32) {
    const part = document.products.slice(start, start + 32);
    const sides = ["a", "b"].flatMap((side) => {
      const word = part.reduce((sum, one, bit) => sum + (BigInt(one[side].code) << BigInt(bit)), 0n);
      const place = placeText(instruction, part[0][side], "shared").replace(/\[.*/, "");
      return [place, `0x${word.toString(16).padStart(8, "0")}`];
    });
    const count = part.filter((one) => one.product.value !== "0").length;
    rows.push({ cells: [spanText(start, start + part.length - 1), ...sides, String(count)] });
  }
  const { c } = document;
  rows.push({ cells: ["c", placeText(instruction, c, "not read"), c.code, "", "", c.value] });
  return table("Words and ones", ["k", "A", "word", "B", "word", "ones"], rows, { numeric: [5] });
}

// --- steps -----------------------------------------------------------------------------------------

function stepElements(instruction, step, number) {
  if (step.exponent === null) return [operationTable(instruction, step, number)];
  const floor = step.terms.some((term) => term.aligns) ? "" : " (the floor)";
  const title = `Step ${number}, ${step.operation}: largest exponent ${step.exponent}${floor}, unit 2**${step.unit}`;
  return [
    make("h5", {}, title),
    step.special ? specialTable(step, title) : termTable(step, title),
    make("p", { class: "outcome" }, outcomeText(step)),
  ];
}

function termName({ name, products }) {
  return products.length < 2 ? name : `${name}, products ${spanText(products[0], products[products.length - 1])}`;
}

function termTable(step, title) {
  const values = [...step.terms.map((term) => BigInt(term.kept)), BigInt(step.sum)];
  const digits = Math.max(...values.map((value) => value.toString(2).replace("-", "").length));
  const rows = step.terms.map((term) => ({
    cells: [
      termName(term),
      term.aligns ? String(term.exponent) : "-",
      make("code", {}, binaryText(BigInt(term.kept), step, digits)),
      make("code", { class: "cut" }, bitsText(BigInt(term.cut), term.cut_bits)),
    ],
    class: term.aligns && term.exponent === step.exponent ? "largest" : null,
  }));
  const sum = make("code", {}, binaryText(BigInt(step.sum), step, digits));
  rows.push({ cells: ["sum", "", sum, ""], class: "sum" });
  const header = ["term", "exponent", `in units of 2**${step.unit}`, "cut off"];
  const numeric = [1];
  if (step.terms.some((term) => term.products.length > 1)) { // of groups, scales included
    header.push("exact sum");
    numeric.push(4);
    rows.forEach(({ cells }, at) => cells.push(at < step.terms.length ? step.terms[at].value : ""));
  }
  return table(title, header, rows, { numeric, className: "plain terms" });
}

function specialTable(step, title) {
  return table(title, ["term", "value"], step.terms.map((term) => ({ cells: [termName(term), term.value] })));
}

function outcomeText(step) {
  const code = `${step.code} = ${step.value}`;
  if (step.special) return `Inf or NaN among the terms: ${code}`;
  return `sum = ${exactText(BigInt(step.sum), step.unit)}${normalisation(step)}; ${roundingText(step)}: ${code}`;
}

function normalisation({ leading, exponent }) {
  if (leading === null || leading === exponent) return "";
  const moved = leading - exponent;
  if (moved < 0) return `, leading bit ${-moved} below the largest exponent`;
  return `, a carry of ${moved} bit${moved === 1 ? "" : "s"}`;
}

function roundingText(step) {
  const dropped = bitsText(BigInt(step.dropped), step.dropped_bits);
  return `rounded to ${step.rounding}${dropped ? `, dropping ${dropped}` : ", exact"}`;
}

function operationTable(instruction, step, number) {
  const names = step.terms.map((term) => term.name);
  const listed = names.length < 4 ? names.join(" + ") : `${names[0]} … ${names.slice(-2).join(" + ")}`;
  const exact = step.special ? "-" : sumText(step);
  const dropped = step.special ? "" : bitsText(BigInt(step.dropped), step.dropped_bits);
  const cells = [String(number), step.operation, listed, exact, step.rounding, dropped, step.code];
  const d = instruction.formatOf("d"); // of every operation, where it is wider than 32 bits
  cells.push(d.bits > 32 ? codeText(BigInt(step.code), d) : step.value);
  const header = ["step", "operation", "terms", "exact", "rounding", "dropped", "code", "value"];
  return table(`Step ${number}`, header, [{ cells }]);
}

// The exact sum; nine digits of it where it is long.
function sumText({ sum, unit, dropped_bits: rounds }) {
  const exact = exactText(BigInt(sum), unit);
  return rounds === 0 || exact.length <= LONGEST_EXACT ? exact : `≈ ${fractionText(BigInt(sum), unit)}`;
}

function otherTable(instruction, document) {
  const float = instruction.formatOf("d").is_float;
  const header = ["way", "code", float ? "D minus this sum (ulp)" : "D minus this sum"];
  const rows = document.other_sums.map((one) => ({ cells: [one.name, one.code, ulpsText(one.ulps)] }));
  return table("Other ways to sum", header, rows, { numeric: [2] });
}
