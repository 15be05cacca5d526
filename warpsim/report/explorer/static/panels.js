// The figures of a form on the page: B above D, A beside it, as in CuTe's composite figures; then what every lane
// holds, metadata, scales and tiles in shared memory. Says which sizes they get.

import { Panel } from "./drawing.js";
import { make } from "./elements.js";
import {
  chunksFigure, matrixFigure, padFigure, registersFigure, scaleFigure, sharedFigure, tileFigure, wordsFigure,
} from "./figures.js";

const TOP = 22; // pixels for the labels of columns

function leftOf(figure) {
  return Math.max(...figure.rowLabels.map((one) => one.length)) * 6 + 12;
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

// --- which figures ---------------------------------------------------------------------------------

export function inShared(form, state, operand) {
  return Boolean(form.shared) && (operand === "b" || (operand === "a" && state.shared));
}

function matrixOrTile(form, state, operand) {
  if (!inShared(form, state, operand)) return matrixFigure(form, operand, state.part, state.logical && operand === "a");
  const tile = form.tile(operand, state.swizzle, state.majors[operand]);
  return tile && !tile.error ? sharedFigure(form, operand, tile) : null;
}

// The rows of a figure that a warp has: A in shared memory is shown as D is.
function rowsOfPart(form, state, figure) {
  if (!figure || figure.name !== "a" || form.warps === 1 || !inShared(form, state, "a")) return figure;
  const [first, count] = [(form.m / form.warps) * state.part, form.m / form.warps];
  const inside = (row) => row >= first && row < first + count;
  const kept = figure.rows.map(([row], at) => [row, at]).filter(([row]) => inside(row)).map(([, at]) => at);
  if (!kept.length) return figure;
  return {
    ...figure, cells: figure.cells.filter((cell) => inside(cell.row)), rows: kept.map((at) => figure.rows[at]),
    rowLabels: kept.map((at) => figure.rowLabels[at]),
  };
}

// All figures of a form as they are shown, by name.
export function figuresOf(form, state) {
  const figures = {};
  for (const operand of ["a", "b"]) {
    const figure = rowsOfPart(form, state, matrixOrTile(form, state, operand));
    if (figure) figures[operand] = figure;
  }
  figures.d = matrixFigure(form, "d", state.part);
  if (form.types.c !== form.types.d) figures.c = matrixFigure(form, "c", state.part);
  figures.registers = registersFigure(form, state.part, state.selector, state.ids);
  if (form.sparse) {
    figures.e = chunksFigure(form, state.selector, state.part);
    figures.words = wordsFigure(form, state.selector, state.part);
  }
  if (form.scale) {
    for (const side of ["scale_a", "scale_b"]) figures[side] = scaleFigure(form, side, state.ids);
  }
  if (form.shared) {
    for (const side of ["a", "b"]) {
      const tile = form.tile(side, state.swizzle, state.majors[side]);
      if (tile && !tile.error) figures[`tile_${side}`] = tileFigure(form, side, tile);
    }
  }
  return figures;
}

// --- sizes -----------------------------------------------------------------------------------------

function narrowest(figure) {
  return Math.min(...figure.cells.map((cell) => cell.width));
}

function lowest(figure) {
  return Math.min(...figure.cells.map((cell) => cell.height));
}

function columnsOf(figure) {
  return figure.columns.reduce((total, [, count]) => total + count, 0);
}

// Pixels of a box that shows its second line, and the least that it needs.
function boxWidth(figure) {
  const longest = Math.max(...figure.cells.map((cell) => Math.max(...cell.lines.map((line) => line.length))));
  return longest * 6.3 + 5;
}

// Pixels of a column of A, of B and D, and of a row of B and of A and D; the size of letters.
function compositeSizes(figures, room, zoom) {
  const { a, b, d } = figures;
  const wide = columnsOf(d) > 16;
  const upright = b && !wide ? boxWidth(b) / narrowest(b) : 0;
  const least = { a: a ? boxWidth(a) / narrowest(a) : 0, d: Math.max(boxWidth(d) / narrowest(d), upright, wide ? 17 : 0) };
  const labels = 2 * 46 + 60;
  const needed = (a ? columnsOf(a) * least.a : 0) + columnsOf(d) * least.d;
  const stretch = wide ? 1 : clamp((room - labels) / needed, 0.8, 2.1);
  const font = 10.5 * clamp(Math.sqrt(stretch), 0.95, 1.18) * zoom ** 0.6;
  const y = 30 * clamp(stretch, 0.95, 1.15);
  return { a: least.a * stretch * zoom, d: least.d * stretch * zoom, b: (b ? rowHeight(b, y) : 0) * zoom, y: y * zoom, font };
}

// A box of B is as high as one of D where it is upright, so that both lines fit; in shared memory higher.
function rowHeight(b, y) {
  const least = lowest(b);
  if (b.cells.some((cell) => cell.lines.length === 1)) return least > 1 ? Math.max(46 / least, 6) : y * 0.8;
  return y / least;
}

// --- panels ----------------------------------------------------------------------------------------

const TITLES = {
  a: "A", b: "B", c: "C", d: "D", e: "Metadata by chunk", words: "Metadata by word", scale_a: "Scales of A",
  scale_b: "Scales of B", registers: "Registers of each lane", pad: "Lanes and registers",
};

function block(name, title, note, panel, extra = []) {
  const tools = make("button", { type: "button", class: "export", "data-export": name, title: "copy or save this figure" }, "Export");
  return make(
    "section", { class: `part of-${name}`, "data-name": name, "aria-label": title },
    make("h3", {}, make("span", { class: "name" }, title), " ", make("small", {}, note), tools, ...extra),
    make("div", { class: "scroll" }, panel.element),
  );
}

// Boxes that show the same columns move as one.
function scrollTogether(blocks) {
  const boxes = blocks.filter(Boolean).map((one) => one.querySelector(".scroll"));
  for (const box of boxes) {
    box.addEventListener("scroll", () => {
      for (const other of boxes) if (other.scrollLeft !== box.scrollLeft) other.scrollLeft = box.scrollLeft;
    });
  }
}

export class Board {
  constructor(form, state, room) {
    this.figures = figuresOf(form, state);
    this.panels = [];
    this.form = form;
    this.state = state;
    this.composite = this.makeComposite(room);
    this.others = this.makeOthers(room);
  }

  panel(figure, options) {
    const panel = new Panel(figure, { left: leftOf(figure), top: TOP, colouring: this.state.colouring, ...options });
    this.panels.push(panel);
    return panel;
  }

  makeComposite(room) {
    const { form, figures } = this;
    const { a, b, d, y, font } = compositeSizes(figures, room, this.state.zoom);
    const same = form.types.c === form.types.d;
    const under = { x: d, left: Math.max(...[figures.b, figures.d].filter(Boolean).map(leftOf)), font }; // B on D
    const made = {
      pad: this.pad(font),
      b: figures.b && this.matrix("b", "B", { ...under, y: b }),
      a: figures.a && this.matrix("a", "A", { x: a, y, font }),
      d: this.matrix("d", same ? "D and C" : "D", { ...under, y }),
      c: figures.c && this.matrix("c", "C", { ...under, y }),
    };
    if (figures.e) Object.assign(made, this.metadata({ a: a * columnsOf(figures.a ?? figures.e), d: d * columnsOf(figures.d), y, font }));
    scrollTogether([made.b, made.d, made.c]);
    return make("div", { class: "composite" }, Object.values(made).filter(Boolean));
  }

  matrix(operand, title, sizes) {
    return block(operand, title, this.note(operand), this.panel(this.figures[operand], sizes));
  }

  // Below A, as wide as it, the chunks; below D the words.
  metadata({ a, d, y, font }) {
    const { e, words } = this.figures;
    const width = (figure, own) => Math.max(own / columnsOf(figure), 30 / narrowest(figure));
    return {
      e: block("e", TITLES.e, "which lane's bits describe a chunk of A", this.panel(e, { x: width(e, a), y, font })),
      words: block("words", TITLES.words, "which chunk a word's bits describe", this.panel(words, {
        x: Math.max(boxWidth(words), Math.min((d - 24) / columnsOf(words), 76)), y, font,
      })),
    };
  }

  // Every lane, and the registers of one: what to point at to see what they hold.
  pad(font) {
    const figure = padFigure(this.form, this.state.part);
    const panel = this.panel(figure, { x: 35, y: 25, font, headings: { word: (cell) => cell.key } });
    return block("pad", TITLES.pad, "g = lane / 4, t = lane % 4", panel);
  }

  note(operand) {
    const { form, state } = this;
    const [rows, columns] = form.extent(operand);
    const logical = operand === "a" && form.sparse && state.logical && !inShared(form, state, "a");
    const stored = operand === "a" && form.sparse ? (logical ? " logical" : " stored") : "";
    const size = `${rows} × ${logical ? form.k : columns}${stored}, ${form.types[operand]}`;
    if (inShared(form, state, operand)) return `${size}, shared memory`;
    return `${size}, ${form.registers[operand]} register${form.registers[operand] > 1 ? "s" : ""}`;
  }

  makeOthers(room) {
    const { form, figures } = this;
    const found = [];
    const fitted = (figure, more = {}) => {
      const least = Math.max(boxWidth(figure), 6.2 * Math.max(...figure.columnLabels.map((one) => one.length)) + 8) / narrowest(figure);
      const fitting = (room - leftOf(figure) - 40) / columnsOf(figure);
      return { x: clamp(fitting, least, least * 1.35), y: 26, ...more };
    };
    for (const side of ["scale_a", "scale_b"].filter((one) => figures[one])) {
      found.push(block(side, TITLES[side], `.${form.scale.type}`, this.panel(figures[side], fitted(figures[side], { y: 30 }))));
    }
    for (const side of ["a", "b"].filter((one) => figures[`tile_${one}`])) {
      const name = `tile_${side}`;
      found.push(block(name, `${side.toUpperCase()} as packed in shared memory`, "16 bytes a box, one colour for the same four banks",
        this.panel(figures[name], fitted(figures[name], { y: 22, label: `tile of ${side.toUpperCase()}` }))));
    }
    found.push(this.registerMap(fitted));
    return found;
  }

  registerMap(fitted) {
    const { figures, form } = this;
    const figure = figures.registers;
    const operandOf = (name) => form.operands.find((one) => name === `%${one}` || new RegExp(`^%${one}\\d+$`).test(name));
    const headings = {
      row: (at) => `lane/${figure.rowLabels[at].slice(1)}`,
      column: (at) => {
        const operand = operandOf(figure.columnLabels[at]);
        return `register/${operand}/${figure.columnLabels[at].slice(operand.length + 1) || 0}`;
      },
      word: (cell) => `word/${cell.places[0].operand}/${cell.lane}/${cell.register}`,
    };
    const panel = this.panel(figure, fitted(figure, { y: 20, headings }));
    return block("registers", TITLES.registers, "rows and columns of the elements, low bits first; point at a lane or a register", panel);
  }

  light(lights) {
    for (const panel of this.panels) panel.light(lights);
  }

  panelOf(element) {
    const svg = element.closest?.("svg.figure");
    return svg ? this.panels.find((panel) => panel.element === svg) : null;
  }
}
