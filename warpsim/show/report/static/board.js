// The board of one instruction: its panels, laid out like the product itself, with B above D and A beside it.

import { make } from "./elements.js";
import { namingText } from "./naming.js";
import { matrixGrid, metadataGrid, registerGrid, scaleGrid } from "./grids.js";

const WARP = 32;

function sizeText(instruction, operand) {
  const [rows, columns] = instruction.layout.extent(operand);
  return `${rows} × ${columns} ${instruction.formatOf(operand === "l" ? "a" : operand).name}`;
}

function panel(operand, title, detail, ...content) {
  const name = `panel-${operand}`;
  return make(
    "section", { class: `panel of-${operand}`, id: name, "aria-labelledby": `${name}-title` },
    make("h3", { id: `${name}-title` }, make("span", { class: "name" }, title), " ", make("small", {}, detail)),
    ...content,
  );
}

function scrolling(content) {
  return make("div", { class: "scroll" }, content);
}

function matrixPanel(instruction, operand, part, mode, title, detail) {
  const grid = matrixGrid(instruction, operand, part, mode);
  return panel(operand, title, detail, scrolling(grid), memoryNote(instruction, operand));
}

// Where an operand in shared memory lies: its descriptor, field by field.
function memoryNote(instruction, operand) {
  const memory = instruction.memory[operand];
  if (!memory) return null;
  return make(
    "details", { "data-memory": operand }, make("summary", {}, `shared memory, descriptor ${memory.descriptor}`),
    make("pre", {}, memory.explained.join("\n")),
  );
}

function panelOf(instruction, operand, part, mode) {
  const { layout } = instruction;
  const size = layout.extent(operand) && operand !== "e" ? sizeText(instruction, operand) : "";
  return {
    a: () => matrixPanel(instruction, "a", part, mode, "A", layout.pattern ? `${size}, as stored` : size),
    l: () => matrixPanel(instruction, "l", part, mode, "A logical", `${size}, hatched where metadata drops`),
    b: () => matrixPanel(instruction, "b", part, mode, "B", size),
    c: () => matrixPanel(instruction, "c", part, mode, "C", size + (instruction.absent.includes("c") ? ", not read" : "")),
    d: () => matrixPanel(instruction, "d", part, mode, "D", differenceText(instruction, size)),
    e: () => panel("e", "Metadata", metadataText(layout), scrolling(metadataGrid(instruction, part))),
    scale_a: () => panel("scale_a", "Scales of A", size, scrolling(scaleGrid(instruction, "scale_a", mode))),
    scale_b: () => panel("scale_b", "Scales of B", size, scrolling(scaleGrid(instruction, "scale_b", mode))),
    registers: () => panel(
      "registers", ...registersTitle(layout), scrolling(registerGrid(instruction, part)),
      make("p", { class: "note", id: "naming" }, namingText(namesOf(instruction))),
    ),
    notes: () =>
      panel("notes", "Layouts", `formulas of PTX ISA ${layout.tensor_memory ? "9.3" : "9.1"}`, ...noteElements(layout)),
  }[operand]();
}

function registersTitle({ tensor_memory: tensorMemory }) {
  return tensorMemory
    ? ["Tensor memory", "hexadecimal cells, a line for each lane, by column (C)"]
    : ["Registers", "hexadecimal words, one line a lane"];
}

// The registers that hold element 0 of each operand, and what else is in them.
function namesOf(instruction) {
  const { layout } = instruction;
  return instruction.operands.filter((operand) => "abcd".includes(operand)).map((operand) => {
    const own = layout.places(operand).filter((place) => place.lane === 0 && place.register === 0);
    return { operand, name: instruction.registerName(operand, 0), count: own.length, bits: layout.register_bits };
  });
}

function metadataText(layout) {
  const read = layout.operands.e.count < 8 * layout.lanes ? "; other lanes are not read" : "";
  return `${layout.pattern.name}, selector ${layout.selector}: bits, and the columns of A they keep${read}`;
}

// What stands around the cells: the heading of D, the names of registers, and descriptors.
export function refreshFrame(board, instruction) {
  const detail = board.querySelector("#panel-d h3 small");
  if (detail) detail.textContent = differenceText(instruction, sizeText(instruction, "d"));
  for (const heading of board.querySelectorAll('th[data-key^="register/"]')) {
    const [, operand, register] = heading.dataset.key.split("/");
    heading.textContent = instruction.registerName(operand, Number(register));
  }
  for (const note of board.querySelectorAll("details[data-memory]")) {
    const made = memoryNote(instruction, note.dataset.memory);
    made.open = note.open;
    note.replaceWith(made);
  }
}

function differenceText(instruction, size) {
  const { different } = instruction;
  return different ? `${size}, ${different} word${different === 1 ? "" : "s"} not as expected` : size;
}

function noteElements(layout) {
  return Object.values(layout.operands).map(({ notes: [title, ...lines] }) =>
    make("details", {}, make("summary", {}, title), make("pre", {}, lines.join("\n"))));
}

// Which panel stands where: the sides by their places in the grid. Rows of A and D, and columns of B, D and C, stand
// in line.
function arrangement({ layout }) {
  const scaleA = layout.scale ? ["scale_a"] : [];
  const scaleB = layout.scale ? ["scale_b"] : [];
  const above = { registers: ["registers"], b: [...scaleB, "b"] };
  if (layout.pattern) return { ...above, a: ["a", "l"], d: ["d", "c"], under: ["e", "notes"], more: scaleA };
  return { ...above, a: ["a", ...scaleA], d: ["d", "c"], under: ["notes"], more: [] };
}

// Registers have a line of their own where they do not fit beside B, and A where it does not fit beside D: no
// column of them is cut off.
export function fit(board) {
  const cut = (name) => {
    const box = board.querySelector(`#panel-${name} .scroll`);
    return box.scrollWidth > box.clientWidth;
  };
  board.classList.remove("wide", "stacked");
  board.classList.toggle("wide", cut("registers"));
  board.classList.toggle("stacked", cut("a"));
}

// What two boards must have in common for one to be made from the other by changing what cells show.
export function formOf({ layout, memory, absent }, part) {
  return JSON.stringify([layout.number, part, Object.keys(memory), absent]);
}

export function boardOf(instruction, part, mode) {
  return Object.entries(arrangement(instruction)).filter(([, names]) => names.length).map(([place, names]) =>
    make("div", { class: `side at-${place}` }, names.map((operand) => panelOf(instruction, operand, part, mode))));
}

// The lanes of a part; those of a pair are numbered through both CTAs.
function partText({ tensor_memory: tensorMemory, lanes }, part, first, last) {
  if (!tensorMemory) return `warp ${part}: T${first}..T${last}`;
  const cta = lanes > 128 ? (first < 128 ? ", even CTA" : ", odd CTA") : "";
  return `lanes ${first}..${last}${cta}`;
}

// The parts of an instruction that are shown one at a time: warps of a wgmma, 32 lanes of tensor memory, products of
// m8n8k4 f16.
export function partsOf({ layout }) {
  const warps = layout.lanes / WARP;
  if (warps > 1) {
    return Array.from({ length: warps }, (_, part) => partText(layout, part, WARP * part, WARP * (part + 1) - 1));
  }
  return layout.products > 1 ? Array.from({ length: layout.products }, (_, at) => `product ${at}`) : [];
}
