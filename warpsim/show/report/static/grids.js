// The matrices, registers and metadata of one instruction as grids: tables whose cells can be reached with
// the arrow keys and carry the key of what they show.

import { make } from "./elements.js";
import { elementKey, wordKey } from "./links.js";
import { bitsOf, cellText, elementLabel, fieldText, placeText } from "./describe.js";

const WARP = 32;

// A grid: cells are { text, key, label, className }, or null for a box that stays empty.
function grid(label, corner, columns, rows, className = "") {
  const heading = (scope, { text, key, title, span }) =>
    make("th", {
      scope, "data-key": key ?? null, tabindex: key ? "-1" : null, title: title ?? null, colspan: span ?? null,
    }, text);
  const top = make("tr", {}, make("td", { class: "corner" }, corner), columns.map((one) => heading("col", one)));
  const lines = rows.map(({ header, cells }) =>
    make("tr", {}, heading("row", header), cells.map((cell) => cell ? box(cell) : make("td", { class: "empty" }))));
  const table = make(
    "table", { role: "grid", class: `grid ${className}`, "aria-label": label },
    make("thead", {}, top), make("tbody", {}, lines),
  );
  table.querySelector("tbody [data-key]")?.setAttribute("tabindex", "0");
  return table;
}

function box({ text, key, label, className }) {
  return make("td", {
    role: "gridcell", tabindex: "-1", "data-key": key, "aria-label": label, class: className || null,
  }, text);
}

function range(start, end) {
  return Array.from({ length: end - start }, (_, index) => start + index);
}

// --- matrices --------------------------------------------------------------------------------------

// The rows that are shown of an operand: those of one warp of a wgmma, those whose D lies in 32 lanes of tensor
// memory, otherwise all.
export function rowsShown(instruction, operand, part) {
  const [rows] = instruction.layout.extent(operand);
  const warps = instruction.layout.lanes / WARP;
  if (warps === 1 || ["b", "scale_b"].includes(operand)) return range(0, rows);
  if (instruction.layout.tensor_memory) return instruction.layout.rowsOf(part);
  return range((rows / warps) * part, (rows / warps) * (part + 1));
}

// Which of the independent products of m8n8k4 f16 a part is; the parts of a wgmma are its warps.
export function productOf(instruction, part) {
  return instruction.layout.products > 1 ? part : 0;
}

export function matrixGrid(instruction, operand, part, mode) {
  const [, columns] = instruction.layout.extent(operand);
  const product = productOf(instruction, part);
  const rows = rowsShown(instruction, operand, part).map((row) => ({
    header: { text: String(row) },
    cells: range(0, columns).map((column) => elementCell(instruction, operand, row, column, product, mode)),
  }));
  const names = range(0, columns).map((column) => ({ text: String(column) }));
  const label = `${operand === "l" ? "A, logical" : operand.toUpperCase()}, rows and columns`;
  return grid(label, "", names, rows, `matrix of-${operand}`);
}

function elementCell(instruction, operand, row, column, product, mode) {
  const text = cellText(instruction, operand, row, column, product, mode);
  const differs = operand === "d" && instruction.differs(row, column, product);
  return {
    text,
    key: elementKey(operand, row, column),
    label: elementLabel(instruction, operand, row, column, product),
    className: differs ? "differs" : text === "" ? "dropped" : "",
  };
}

// What a cell of a grid shows, by its key; null for one that is not a cell of an operand.
function contentOf(instruction, key, product, mode) {
  const [kind, ...rest] = key.split("/");
  if (kind === "word") return wordCell(instruction, rest[0], Number(rest[1]), Number(rest[2]));
  if (kind === "e") return fieldCell(instruction, instruction.layout.at("e", Number(rest[0]), Number(rest[1])));
  return elementCell(instruction, kind, Number(rest[0]), Number(rest[1]), product, mode);
}

// Make a cell show an instruction; light stays as it is.
export function refreshCell(cell, instruction, product, mode) {
  const { text, label, className } = contentOf(instruction, cell.dataset.key, product, mode);
  if (Array.isArray(text)) cell.replaceChildren(...text);
  else if (cell.textContent !== text || cell.firstElementChild) cell.textContent = text;
  cell.setAttribute("aria-label", label);
  cell.className = className || "";
}

// --- registers -------------------------------------------------------------------------------------

export function registerGrid(instruction, part) {
  const warps = instruction.layout.lanes / WARP;
  const first = warps > 1 ? WARP * part : 0;
  const columns = instruction.operands.flatMap((operand) =>
    range(0, instruction.layout.operands[operand].registers).map((register) => ({ operand, register })));
  const rows = range(first, first + WARP).map((lane) => ({
    header: { text: headingOf(instruction, lane), key: `lane/${lane}`, title: `everything that lane ${lane} holds` },
    cells: columns.map(({ operand, register }) => wordCell(instruction, operand, lane, register)),
  }));
  const names = columns.map(({ operand, register }) => ({
    text: instruction.registerName(operand, register),
    key: `register/${operand}/${register}`,
    title: `${operand}, ${instruction.layout.tensor_memory ? "column" : "register"} ${register}, in every lane`,
  }));
  const label = instruction.layout.tensor_memory ? "Tensor memory by lane and column" : "Registers by lane";
  const made = grid(label, "lane", names, rows, "registers");
  made.querySelector("thead").prepend(operandLine(instruction));
  return made;
}

// A lane at the head of its line.
function headingOf({ layout }, lane) {
  return layout.tensor_memory ? String(lane) : layout.laneName(lane);
}

// The operands above their registers.
function operandLine(instruction) {
  const cells = instruction.operands.map((operand) =>
    make("th", {
      scope: "colgroup", colspan: instruction.layout.operands[operand].registers, class: `of-${operand}`,
    }, make("span", {}, operand === "e" ? "metadata" : operand.replace("_", " "))));
  return make("tr", { class: "operands" }, make("td", { class: "corner" }), cells);
}

function wordCell(instruction, operand, lane, register) {
  const read = instruction.layout.inWord(operand, lane, register).length > 0;
  const digits = hexDigits(instruction, operand, lane, register);
  const not = read ? "" : ", not read";
  return {
    text: digits,
    key: wordKey(operand, lane, register),
    label: `${instruction.layout.laneName(lane)} ${instruction.registerName(operand, register)} 0x${digits}${not}`,
    className: `of-${operand}${read ? "" : " unread"}`,
  };
}

function hexDigits(instruction, operand, lane, register) {
  const word = instruction.word(operand, lane, register);
  return word.toString(16).padStart(instruction.layout.register_bits / 4, "0");
}

// --- metadata and scales ---------------------------------------------------------------------------

// A line for each word that is read, its highest bits first, as the manual draws it.
export function metadataGrid(instruction, part) {
  const warps = instruction.layout.lanes / WARP;
  const places = instruction.layout.places("e")
    .filter((place) => warps === 1 || Math.floor(place.lane / WARP) === part);
  const at = new Map(places.map((place) => [`${place.lane}/${place.low_bit}`, place]));
  const lanes = [...new Set(places.map((place) => place.lane))].sort((x, y) => x - y);
  const lows = [...new Set(places.map((place) => place.low_bit))].sort((x, y) => y - x);
  const columns = lows.map((low) => ({ text: `[${low + 3}..${low}]` }));
  const rows = lanes.map((lane) => ({
    header: { text: headingOf(instruction, lane), key: `lane/${lane}` },
    cells: lows.map((low) => fieldCell(instruction, at.get(`${lane}/${low}`))),
  }));
  return grid("Metadata by lane and bits", "", columns, rows, "metadata of-e");
}

function fieldCell(instruction, place) {
  if (!place) return null;
  const columns = fieldText(instruction, place);
  const bits = bitsOf(instruction, place);
  return {
    text: [make("b", {}, bits), make("span", {}, ` ${columns}`)],
    key: elementKey("e", place.row, place.column),
    label: `metadata ${placeText(instruction, place)} ${bits}: row ${place.row} takes columns ${columns}`,
  };
}

export function scaleGrid(instruction, operand, mode) {
  const [rows, columns] = instruction.layout.extent(operand);
  const lines = range(0, rows).map((row) => ({
    header: { text: String(row) },
    cells: range(0, columns).map((column) => elementCell(instruction, operand, row, column, 0, mode)),
  }));
  const names = range(0, columns).map((column) => ({ text: String(column) }));
  return grid(`${operand.replace("_", " ")} by rows and columns`, "", names, lines, `matrix of-${operand}`);
}
