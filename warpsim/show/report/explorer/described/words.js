// Words of descriptors: fields, what they mean, what is wrong with them, and the bytes that they address. What
// fields and tiles are comes from Python as data; a word is a BigInt. Knows no page.

import { pointOf } from "./strides.js";

export const SIZES = [1, 2, 4]; // bytes of an element, as the tables of tiles have them
const LINE = 128; // bytes that a unit of the base offset counts
const BOX = 16; // bytes that stay together

function fieldsOf(kind) {
  return kind.fields.map(([name, attribute, lowest, bits, unit, codes]) =>
    ({ name, attribute, lowest, bits, unit, codes }));
}

function rawOf(word, { lowest, bits }) {
  return Number((word >> BigInt(lowest)) & ((1n << BigInt(bits)) - 1n));
}

function maskOf({ lowest, bits }) {
  return ((1n << BigInt(bits)) - 1n) << BigInt(lowest);
}

export function spanOf({ lowest, bits }) {
  return bits > 1 ? `${lowest + bits - 1}:${lowest}` : String(lowest);
}

function hexOf(number, digits) {
  return `0x${number.toString(16).padStart(digits, "0")}`;
}

export function wordText(word, bits) {
  return hexOf(word, bits / 4);
}

// The word with another value in a field; null where the field cannot hold it.
export function edited(kind, word, attribute, value) {
  const field = fieldsOf(kind).find((one) => one.attribute === attribute);
  const raw = value / field.unit;
  if (!Number.isInteger(raw) || raw < 0 || raw >= 2 ** field.bits) return null;
  return (word & ~maskOf(field)) | (BigInt(raw) << BigInt(field.lowest));
}

// --- 64 bits ---------------------------------------------------------------------------------------

// Which descriptor a word looks like: tcgen05 has 1 in bits 48:46, where wgmma has 0.
export function kindOf(word) {
  return ((word >> 46n) & 7n) === 1n ? "tcgen05" : "wgmma";
}

export function valuesOf(kind, word) {
  return Object.fromEntries(fieldsOf(kind).map((field) => [field.attribute, rawOf(word, field) * field.unit]));
}

function swizzleOf(kind, word) {
  const { swizzle } = valuesOf(kind, word);
  return kind.swizzles.find(({ code }) => code === swizzle) ?? null;
}

// [{ name, attribute, span, raw, value, unit, most, text, meaning, codes }] of a word, read K- or MN-major.
export function readMatrix(kind, word, major) {
  const swizzle = swizzleOf(kind, word);
  return fieldsOf(kind).map((field, at) => {
    const raw = rawOf(word, field);
    const codes = field.attribute === "swizzle" ? kind.swizzles.map(({ code, name }) => [code, name]) : null;
    const meaning = kind.codes?.[field.attribute]?.[raw] ?? swizzle?.meanings[major][at] ?? "";
    return { ...shown(field, raw), codes, meaning: field.attribute === "swizzle" && !swizzle ? "no meaning" : meaning };
  });
}

function shown(field, raw) {
  const value = raw * field.unit;
  const text = field.unit > 1 ? `${hexOf(value, 5)} (${value} bytes)` : String(value);
  return { ...field, span: spanOf(field), raw, value, text, most: (2 ** field.bits - 1) * field.unit };
}

// What is wrong with a word, "" where nothing is; as Python's errors say it.
export function troubleOf(kind, word) {
  const head = `descriptor ${wordText(word, 64)}`;
  const values = valuesOf(kind, word);
  if (kind.constant !== undefined && values.constant !== kind.constant) {
    return `${head}: bits 48:46 are ${values.constant}; legal: ${kind.constant}`;
  }
  const set = kind.reserved.filter(([bit]) => (word >> BigInt(bit)) & 1n);
  if (set.length) {
    const hint = new Set(set.map(([, text]) => text)).size === 1 ? set[0][1] : "";
    return `${head} has reserved bits ${set.map(([bit]) => bit).join(", ")} set${hint}`;
  }
  if (swizzleOf(kind, word)) return "";
  const legal = kind.swizzles.map(({ code, name }) => `${code} (${name})`).join(", ");
  return `${head}: swizzle is ${values.swizzle} (bits 63:61); legal: ${legal}`;
}

// --- tiles -----------------------------------------------------------------------------------------

// The tile of a word: { address(mn, k), swizzle } with k in elements of so many bytes, or { error }. ``mn`` and
// ``k`` are its extents.
export function tileOf(kind, word, { major, size, mn, k }) {
  const trouble = troubleOf(kind, word);
  if (trouble) return { error: trouble };
  const values = valuesOf(kind, word);
  const swizzle = swizzleOf(kind, word);
  const tile = swizzle.tiles[major][SIZES.indexOf(size)];
  const error = unusable(kind, values, swizzle, tile, { major, size, mn, k });
  if (error) return { error };
  return { swizzle, address: (row, column) => addressOf(tile, values, swizzle, row, column * tile.unit) };
}

// Why a tile is not known, "" where it is.
function unusable(kind, values, { name, width }, tile, { major, size, mn, k }) {
  if (values.base_offset && name === "none") {
    return `base offset is ${values.base_offset} (bits 51:49); legal without swizzle: 0`;
  }
  const row = k * size;
  if (values.absolute && (row !== 48 || major !== "K" || name !== "128B" || values.base_offset)) {
    return "LBO mode is 1 (bit 52: an address); legal: 0, or 1 for K of 96 (rows of 48 bytes, K-major, 128B swizzle)";
  }
  if (tile.error) return tile.error;
  if (values.absolute || name === "none" || (major === "MN" && kind.constant !== undefined)) return "";
  const first = values.start_address % width;
  const end = first + (major === "K" ? row : Math.min(mn * size, width));
  return end <= width ? ""
    : `the tile has bytes ${first}..${end - 1} of each row, but with ${name} swizzle a row has ${width}, `
      + "and PTX does not say where it continues";
}

function addressOf(tile, values, { width, moves }, row, byte) {
  const { start_address: start, leading_byte_offset: leading, stride_byte_offset: stride } = values;
  const [down, along] = [pointOf(tile.mn, row, 3), pointOf(tile.k, byte, 3)];
  const [constant, times, strides] = down.map((step, at) => step + along[at]);
  const into = start % width;
  const beyond = values.absolute && into + byte >= width ? leading - (start - into) - width : 0;
  const begin = LINE * values.base_offset;
  return begin + moved(start + constant + times * leading + strides * stride + beyond - begin, moves);
}

// An address with its bits exclusive-ored: [lowest bit changed, bits, lowest bit taken], in order.
function moved(address, moves) {
  return moves.reduce((now, [to, bits, taken]) => now ^ (((now >> taken) & ((1 << bits) - 1)) << to), address);
}

// Boxes of 16 bytes of a tile: [{ line, along, mn, k, address }]; lines run along K or along M or N, as it is stored.
export function boxesOf(tile, { major, size, mn, k }) {
  const [lines, length] = major === "K" ? [mn, k] : [k, mn];
  const step = BOX / size;
  return Array.from({ length: lines }, (_, line) => Array.from({ length: Math.ceil(length / step) }, (_unused, box) => {
    const [row, column] = major === "K" ? [line, box * step] : [box * step, line];
    return { line, along: box * step, mn: row, k: column, address: tile.address(row, column) };
  })).flat();
}

// The bytes that boxes take, as [first, end] in order, and how many boxes share their bytes with others.
export function touched(boxes) {
  const starts = [...new Set(boxes.map(({ address }) => address))].sort((one, two) => one - two);
  const ranges = [];
  for (const start of starts) {
    if (ranges.length && ranges.at(-1)[1] === start) ranges.at(-1)[1] = start + BOX;
    else ranges.push([start, start + BOX]);
  }
  return { ranges, shared: boxes.length - starts.length };
}

// --- 32 bits ---------------------------------------------------------------------------------------

// [{ name, attribute, span, raw, value, codes, meaning }] of an instruction descriptor of a kind.
export function readInstruction(kind, word) {
  return fieldsOf(kind).map((field) => {
    const read = shown(field, rawOf(word, field));
    const legal = field.codes?.map(([code]) => code).join(", ");
    const known = field.codes?.find(([code]) => code === read.value)?.[1];
    const meaning = field.codes ? known ?? `${read.value}: no meaning; legal: ${legal}` : String(read.value);
    return { ...read, text: String(read.value), meaning };
  });
}

// Reserved bits, and codes without a meaning; "" where nothing is wrong.
export function instructionTrouble(kind, word, name) {
  const head = `instruction descriptor ${wordText(word, 32)}`;
  const used = fieldsOf(kind).reduce((mask, field) => mask | maskOf(field), 0n);
  const set = Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => ((word & ~used) >> BigInt(bit)) & 1n);
  if (set.length) return `${head} of kind::${name} has reserved bits ${set.join(", ")} set`;
  const without = readInstruction(kind, word).filter(({ codes, meaning }) => codes && meaning.includes(": no meaning"));
  const [wrong] = without.toSorted((one, two) => (one.attribute < two.attribute ? -1 : 1)); // A, B, D, then scales
  if (!wrong) return "";
  const legal = wrong.codes.map(([code, text]) => `${code} (${text})`).join(", ");
  return `${head}: ${wrong.name} is ${wrong.value} (bits ${wrong.span}); legal: ${legal}`;
}

// The forms of a kind whose sparsity, M and N a word has.
export function formsOf(kind, word) {
  const values = valuesOf(kind, word);
  return kind.forms.filter(({ sparse, m, n }) =>
    sparse === values.sparse && m.includes(values.m) && n.includes(values.n));
}

// "m128n64k16, D f32, A f16, B f16".
export function productText(kind, word) {
  const fields = Object.fromEntries(readInstruction(kind, word).map((field) => [field.attribute, field]));
  const k = (fields.k_96?.raw ? 96 : kind.k) * (fields.sparse.raw ? 2 : 1);
  const type = (name, fallback) => (fields[name]?.codes?.length ? fields[name].meaning : fallback);
  const types = `D ${type("d_type", "f32")}, A ${type("a_type")}, B ${type("b_type")}`;
  return `m${fields.m.value}n${fields.n.value}k${k}, ${types}`;
}
