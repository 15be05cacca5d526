// The instructions of a trace as the rest of the page sees them: places, words, codes and columns.
//
// Layouts travel as data: no formula of any fragment stands in these scripts.

import { wordsOfD } from "./forecast.js";
import { maskOf } from "./numbers.js";

const ARRAYS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: BigUint64Array };
const PLACE_FIELDS = ["lane", "register", "index", "low_bit", "row", "column", "product"];

// The arrays of a report: one block of bytes, and references { at, count, bytes } into it.
class Arrays {
  constructor(buffer) {
    this.buffer = buffer;
  }

  read({ at, count, bytes }) {
    return new ARRAYS[bytes](this.buffer, at, count);
  }
}

// Where everything of one form lies. A place is { operand, lane, register, index, low_bit, bits, row,
// column, product }; rows and columns are chunks where metadata and scales have those.
class Layout {
  constructor(document, arrays) {
    Object.assign(this, document);
    this.arrays = arrays;
    this.read = new Map();
  }

  // A lane of registers in the manual's notation, or one of tensor memory.
  laneName(lane) {
    return this.tensor_memory ? `lane ${lane}` : `T${lane}`;
  }

  // The rows of D in the 32 lanes of a part.
  rowsOf(part) {
    const places = this.places("d").filter(({ lane }) => Math.floor(lane / 32) === part);
    return [...new Set(places.map(({ row }) => row))].sort((x, y) => x - y);
  }

  places(operand) {
    return this.table(operand).places;
  }

  at(operand, row, column, product = 0) {
    return this.table(operand).byElement.get(`${product}/${row}/${column}`);
  }

  inWord(operand, lane, register) {
    return this.table(operand).byWord.get(`${lane}/${register}`) ?? [];
  }

  table(operand) {
    if (!this.read.has(operand)) this.read.set(operand, this.tabulated(operand));
    return this.read.get(operand);
  }

  tabulated(operand) {
    const { places: reference, bits, count } = this.operands[operand];
    const values = this.arrays.read(reference);
    const [byElement, byWord, places] = [new Map(), new Map(), []];
    for (let at = 0; at < count; at += 1) {
      const place = { operand, bits };
      PLACE_FIELDS.forEach((name, field) => { place[name] = values[field * count + at]; });
      places.push(place);
      byElement.set(`${place.product}/${place.row}/${place.column}`, place);
      const word = `${place.lane}/${place.register}`;
      if (!byWord.has(word)) byWord.set(word, []);
      byWord.get(word).push(place);
    }
    return { places, byElement, byWord };
  }

  // Rows and columns of an operand's matrix; "l" is A over its logical columns.
  extent(operand) {
    const { m, n, k } = this.shape;
    const chunks = this.pattern ? k / this.pattern.chunk : 0;
    const scales = this.scale?.chunks;
    return {
      a: [m, this.stored_k], l: [m, k], b: [k, n], c: [m, n], d: [m, n], e: [m, chunks],
      scale_a: [m, scales], scale_b: [scales, n],
    }[operand];
  }
}

// Computes each value when it is first asked for.
function lazy(names, compute) {
  const values = {};
  for (const name of names) {
    Object.defineProperty(values, name, {
      enumerable: true,
      configurable: true,
      get() {
        Object.defineProperty(values, name, { enumerable: true, value: compute(name) });
        return values[name];
      },
    });
  }
  return values;
}

// One executed instruction: a document, its layout, and the words that it read and wrote. Words are an
// array, or { result }: those of an earlier instruction's D, or { differences } from a forecast of D.
class Instruction {
  constructor(document, index, layouts, formats, arrays, all) {
    Object.assign(this, document);
    this.index = index;
    this.layout = layouts[document.layout];
    this.formats = formats;
    this.arrays = arrays;
    this.all = all;
    this.references = document.words;
    this.words = lazy(Object.keys(document.words), (name) => this.wordsAt(document.words[name]));
    this.expectedWords = lazy(["d"], () => this.wordsAt(document.expected));
    this.codes = lazy(Object.keys(document.codes), (name) => arrays.read(document.codes[name]));
    this.columns = document.columns && arrays.read(document.columns);
    this.addresses = Object.fromEntries(
      Object.entries(document.memory).map(([side, one]) => [side, arrays.read(one.addresses)]),
    );
  }

  wordsAt(reference) {
    if ("at" in reference) return this.arrays.read(reference);
    if ("differences" in reference) return wordsOfD(this, this.arrays.read(reference.differences));
    return this.all[reference.result].ownD();
  }

  // The words of D after those of every D that they need, the first one first: chains may be long.
  ownD() {
    const needed = [];
    for (let one = this; one; one = one.all[one.references.c?.result]) needed.push(one);
    while (needed.length) needed.pop().words.d;
    return this.words.d;
  }

  // What registers the instruction names, those of A only where it lies in them.
  get operands() {
    return Object.keys(this.layout.operands).filter((operand) => operand in this.words);
  }

  // The place in registers; null for what was not read from any.
  place(operand, row, column, product = 0) {
    if (!(operand in this.words)) return null;
    return documented(this.layout.at(operand, row, column, product));
  }

  word(operand, lane, register, words = this.words[operand]) {
    return BigInt(words[lane * this.layout.operands[operand].registers + register]);
  }

  // The bits of a place, of D also as they were expected.
  bits(place, words) {
    const word = this.word(place.operand, place.lane, place.register, words);
    return (word >> BigInt(place.low_bit)) & ((1n << BigInt(place.bits)) - 1n);
  }

  code(operand, row, column, product = 0) {
    if (operand in this.codes) {
      return BigInt(this.codes[operand][row * this.layout.extent(operand)[1] + column]);
    }
    if (this.absent.includes(operand)) return 0n;
    return this.bits(this.layout.at(operand, row, column, product)) & maskOf(this.formatOf(operand));
  }

  expectedCode(row, column, product = 0) {
    return this.bits(this.layout.at("d", row, column, product), this.expectedWords.d);
  }

  // Whether a check expected other bits of this element of D.
  differs(row, column, product = 0) {
    return this.expected !== null && this.expectedCode(row, column, product) !== this.code("d", row, column, product);
  }

  // Whether the lane of an element of D is disabled, so that it stays as it was.
  keeps(row, column) {
    return this.kept.length > 0 && this.kept.includes(this.layout.at("d", row, column).lane);
  }

  // What D held before: of C, also where the product does not read it.
  codeBefore(row, column) {
    return "c" in this.words ? this.bits(this.layout.at("c", row, column)) : 0n;
  }

  // Whether a check looked at this element of D.
  isChecked(row, column, product = 0) {
    return this.checked.includes(this.layout.at("d", row, column, product).register);
  }

  formatOf(operand) {
    return this.formats[this.layout.formats[operand] ?? this.layout.scale?.format];
  }

  // The logical columns of the stored elements of a row of A.
  columnsOf(row) {
    const { stored_k: stored } = this.layout;
    if (!this.columns) return Array.from({ length: stored }, (_, k) => k);
    return Array.from(this.columns.subarray(row * stored, (row + 1) * stored));
  }

  scaleChunk(k) {
    return Math.floor((k * this.layout.scale.chunks) / this.layout.shape.k);
  }

  // The name that the statement gives a register.
  registerName(operand, register) {
    return this.names[operand]?.[register] ?? `%${operand}${register}`;
  }
}

// A place as `--json` shows it.
function documented(place) {
  const { operand, lane, register, low_bit, bits, row, column, product } = place;
  const shown = { operand, lane, register, low_bit, bits, row, column };
  return product ? { ...shown, product } : shown;
}

// Every instruction of a report's data, with layouts read once.
export function readReport(document, buffer) {
  const arrays = new Arrays(buffer);
  const layouts = document.layouts.map((one, number) => new Layout({ ...one, number }, arrays));
  const instructions = [];
  document.instructions.forEach((one, index) => {
    instructions.push(new Instruction(one, index, layouts, document.formats, arrays, instructions));
  });
  instructions.read = (reference) => arrays.read(reference);
  return instructions;
}
