// Elements, words and lanes in words: for cells, for those who listen, and for the line at the bottom.

import { decode } from "./numbers.js";
import { hexadecimal, shortText, valueText } from "./texts.js";
import { placesText } from "./links.js";

const NAMES = { l: "A", scale_a: "scale A", scale_b: "scale B", e: "metadata" };

function nameOf(operand) {
  return NAMES[operand] ?? operand.toUpperCase();
}

// The stored column of A that a logical one is; -1 where it is dropped.
function storedColumn(instruction, row, k) {
  return instruction.columnsOf(row).indexOf(k);
}

function codeText(instruction, operand, code) {
  return hexadecimal(code, instruction.formatOf(operand).bits);
}

function numberText(instruction, operand, code) {
  return valueText(decode(code, instruction.formatOf(operand)));
}

// What a cell shows: its value, its code, or the lane and element in the manual's notation.
export function cellText(instruction, operand, row, column, product, mode) {
  if (operand === "l") {
    const position = storedColumn(instruction, row, column);
    return position < 0 ? "" : cellText(instruction, "a", row, position, product, mode);
  }
  const code = instruction.code(operand, row, column, product);
  if (mode === "code") return codeText(instruction, operand, code).slice(2);
  if (mode === "place") return tagOf(instruction, operand, row, column, product);
  return shortText(decode(code, instruction.formatOf(operand)));
}

// "T5:a3"; lane, column and lowest bit in tensor memory, as "5:C300.16"; the byte address of what lies in shared memory.
function tagOf(instruction, operand, row, column, product) {
  if (!(operand in instruction.words)) return addressText(instruction, operand, row, column);
  const place = instruction.layout.at(operand, row, column, product);
  if (instruction.layout.tensor_memory) {
    const low = place.bits < 32 ? `.${place.low_bit}` : "";
    return `${place.lane}:${instruction.registerName(operand, place.register)}${low}`;
  }
  return `T${place.lane}:${operand.replace("scale_", "s")}${place.index}`;
}

function addressOf(instruction, operand, row, column) {
  const [, columns] = instruction.layout.extent(operand);
  return instruction.addresses[operand]?.[row * columns + column];
}

function addressText(instruction, operand, row, column) {
  const address = addressOf(instruction, operand, row, column);
  return address === undefined ? "not read" : hexadecimal(address, 16);
}

// The lowest and the highest address of elements in shared memory.
function memoryText(addresses) {
  return `shared memory ${hexadecimal(Math.min(...addresses), 16)}..${hexadecimal(Math.max(...addresses), 16)}`;
}

// "T5 %a1[31..16]", with the statement's own name of the register.
export function placeText(instruction, place) {
  const { operand, lane, register, low_bit: low, bits } = place;
  return `${instruction.layout.laneName(lane)} ${instruction.registerName(operand, register)}[${low + bits - 1}..${low}]`;
}

function elementPlace(instruction, operand, row, column, product) {
  if (operand in instruction.words) {
    return placeText(instruction, instruction.layout.at(operand, row, column, product));
  }
  const text = addressText(instruction, operand, row, column);
  return text === "not read" ? text : `shared memory ${text}`;
}

export function elementLabel(instruction, operand, row, column, product) {
  if (operand === "l") {
    const position = storedColumn(instruction, row, column);
    return position < 0
      ? `A[${row},${column}] dropped`
      : `A[${row},${column}], stored column ${position}`;
  }
  const code = instruction.code(operand, row, column, product);
  const place = elementPlace(instruction, operand, row, column, product);
  const value = numberText(instruction, operand, code);
  const label = `${nameOf(operand)}[${row},${column}] ${value}, ${codeText(instruction, operand, code)}, ${place}`;
  return operand === "d" && instruction.differs(row, column, product)
    ? `${label}, differs from the expected ${numberText(instruction, "d", instruction.expectedCode(row, column, product))}`
    : label;
}

// The bits of a metadata field.
export function bitsOf(instruction, place) {
  return instruction.bits(place).toString(2).padStart(place.bits, "0");
}

// The logical columns that a metadata field selects: "6,7".
export function fieldText(instruction, place) {
  const { stored } = instruction.layout.pattern;
  const columns = instruction.columnsOf(place.row).slice(stored * place.column, stored * (place.column + 1));
  return columns.length > 2 ? `${columns[0]}…${columns[columns.length - 1]}` : columns.join(",");
}

// --- the line at the bottom ------------------------------------------------------------------------

// What a subject is, in pieces { text, kind }: kind is an operand, "strong", "bad" or nothing.
export function describe(instruction, product, subject) {
  return KINDS[subject.kind](instruction, product, subject);
}

function piece(text, kind = "") {
  return { text, kind };
}

function elementPieces(instruction, operand, row, column, product) {
  const code = instruction.code(operand, row, column, product);
  return [
    piece(`${nameOf(operand)}[${row},${column}]`, operand),
    piece(numberText(instruction, operand, code), "strong"),
    piece(codeText(instruction, operand, code)),
    piece(elementPlace(instruction, operand, row, column, product)),
  ];
}

function rowOfA(instruction, row, product) {
  const stored = instruction.columnsOf(row).map((_, position) => position);
  if (!("a" in instruction.words)) return memoryText(stored.map((k) => addressOf(instruction, "a", row, k)));
  return placesText(instruction, stored.map((position) => instruction.layout.at("a", row, position, product)));
}

function columnOfB(instruction, column, product) {
  const [length] = instruction.layout.extent("b");
  const rows = Array.from({ length }, (_, k) => k);
  if (!("b" in instruction.words)) return memoryText(rows.map((k) => addressOf(instruction, "b", k, column)));
  return placesText(instruction, rows.map((k) => instruction.layout.at("b", k, column, product)));
}

function ofD(instruction, product, { row, column }) {
  const pieces = elementPieces(instruction, "d", row, column, product);
  if (instruction.differs(row, column, product)) pieces.push(...differencePieces(instruction, row, column, product));
  pieces.push(piece("="), piece(`A row ${row}: ${rowOfA(instruction, row, product)}`, "a"));
  if (instruction.layout.pattern) {
    const fields = instruction.layout.places("e").filter((place) => place.row === row);
    pieces.push(piece("kept by"), piece(`metadata ${placesText(instruction, fields)}`, "e"));
  }
  pieces.push(piece("×"), piece(`B column ${column}: ${columnOfB(instruction, column, product)}`, "b"));
  if (instruction.layout.scale) {
    const [a, b] = [["scale_a", row, 0], ["scale_b", 0, column]].map(([operand, first, second]) =>
      placeText(instruction, instruction.layout.at(operand, first, second)).replace(/\[.*/, ""));
    pieces.push(piece("scaled by"), piece(a, "scale_a"), piece(b, "scale_b"));
  }
  const c = instruction.absent.includes("c") ? "0 (not read)" : elementPlace(instruction, "c", row, column, product);
  return [...pieces, piece("+"), piece(`C: ${c}`, "c")];
}

// Expected and actual, and the bits that differ.
function differencePieces(instruction, row, column, product) {
  const expected = instruction.expectedCode(row, column, product);
  const changed = expected ^ instruction.code("d", row, column, product);
  return [
    piece(`expected ${numberText(instruction, "d", expected)} ${codeText(instruction, "d", expected)}`, "bad"),
    piece(`differing bits ${codeText(instruction, "d", changed)}`, "bad"),
  ];
}

function ofA(instruction, product, { row, column }) {
  const pieces = elementPieces(instruction, "a", row, column, product);
  const k = instruction.columnsOf(row)[column];
  if (instruction.layout.pattern) {
    const place = instruction.layout.at("e", row, Math.floor(column / instruction.layout.pattern.stored));
    pieces.push(piece("is logical column"), piece(String(k), "strong"), piece("by"));
    pieces.push(piece(`metadata ${placeText(instruction, place)} = ${bitsOf(instruction, place)}`, "e"));
  }
  return [...pieces, piece("meets"), piece(`B row ${k}`, "b"), piece("in"), piece(`D row ${row}`, "d")];
}

function ofB(instruction, product, { row: k, column }) {
  const pieces = elementPieces(instruction, "b", k, column, product);
  const [rows] = instruction.layout.extent("d");
  const taken = Array.from({ length: rows }, (_, row) => row).filter((row) => storedColumn(instruction, row, k) >= 0);
  const which = taken.length === rows ? "all rows" : taken.length ? `rows ${taken.join(", ")}` : "no row";
  pieces.push(piece("meets"), piece(`column ${k} of A in ${which}`, "a"));
  return [...pieces, piece("in"), piece(`D column ${column}`, "d")];
}

function ofLogical(instruction, product, { row, column: k }) {
  const position = storedColumn(instruction, row, k);
  if (position >= 0) return ofA(instruction, product, { row, column: position });
  const place = instruction.layout.at("e", row, Math.floor(k / instruction.layout.pattern.chunk));
  return [
    piece(`A[${row},${k}]`, "a"), piece("is dropped: zero by"),
    piece(`metadata ${placeText(instruction, place)} = ${bitsOf(instruction, place)}`, "e"),
    piece(`which takes columns ${fieldText(instruction, place)}`),
  ];
}

function ofField(instruction, product, { row, column: chunk }) {
  const place = instruction.layout.at("e", row, chunk);
  const { chunk: width } = instruction.layout.pattern;
  return [
    piece(`metadata ${placeText(instruction, place)}`, "e"),
    piece(bitsOf(instruction, place), "strong"),
    piece(`keeps columns ${fieldText(instruction, place)} of ${width * chunk}..${width * (chunk + 1) - 1} in`),
    piece(`row ${row} of A`, "a"),
  ];
}

const ELEMENTS = {
  d: ofD,
  a: ofA,
  b: ofB,
  l: ofLogical,
  e: ofField,
  c: (instruction, product, { row, column }) =>
    [...elementPieces(instruction, "c", row, column, product), piece("is added in"), piece(`D[${row},${column}]`, "d")],
  scale_a: (instruction, product, { row, column }) =>
    [...elementPieces(instruction, "scale_a", row, column, product), piece("scales"), piece(`row ${row} of A`, "a")],
  scale_b: (instruction, product, { row, column }) =>
    [...elementPieces(instruction, "scale_b", row, column, product), piece("scales"), piece(`column ${column} of B`, "b")],
};

function ofWord(instruction, product, { operand, lane, register }) {
  const held = instruction.layout.inWord(operand, lane, register);
  const { register_bits: width } = instruction.layout;
  const elements = held.map((place) => `${nameOf(operand)}[${place.row},${place.column}]`);
  const shown = elements.length > 8 ? [...elements.slice(0, 7), "…", elements[elements.length - 1]] : elements;
  return [
    piece(`${instruction.layout.laneName(lane)} ${instruction.registerName(operand, register)}`, operand),
    piece(hexadecimal(instruction.word(operand, lane, register), width), "strong"),
    piece(held.length ? `low bits first: ${shown.join(", ")}` : "is not read by this instruction"),
  ];
}

const KINDS = {
  element: (instruction, product, subject) => ELEMENTS[subject.operand](instruction, product, subject),
  word: ofWord,
  lane: (instruction, product, { lane }) => [
    piece(instruction.layout.laneName(lane), "strong"),
    piece(`holds ${instruction.operands.map((operand) =>
      `${instruction.layout.operands[operand].registers} of ${nameOf(operand)}`).join(", ")} (${instruction.layout.tensor_memory ? "columns" : "registers"})`),
  ],
  register: (instruction, product, { operand, register }) => [
    piece(instruction.registerName(operand, register), operand),
    piece(`${instruction.layout.tensor_memory ? "column" : "register"} ${register} of ${nameOf(operand)} in every lane`),
  ],
};
