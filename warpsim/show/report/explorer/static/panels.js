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
  if (!inShared(form, state, operand)) {
    return matrixFigure(form, operand, state.part, state.logical && operand === "a");
  }
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

function sharedTile(form, state, side) {
  const tile = form.tile(side, state.swizzle, state.majors[side]);
  return tile && !tile.error ? tile : null;
}

// How to make the figures of a form as they are shown, by name; made when they are looked at.
function makersOf(form, state) {
  const makers = {};
  const matrix = (operand) => () => rowsOfPart(form, state, matrixOrTile(form, state, operand));
  for (const operand of ["a", "b"]) {
    if (!inShared(form, state, operand) || sharedTile(form, state, operand)) makers[operand] = matrix(operand);
  }
  makers.d = () => matrixFigure(form, "d", state.part);
  const own = form.types.c !== form.types.d && form.operands.includes("c");
  if (own) makers.c = () => matrixFigure(form, "c", state.part);
  if (form.sparse) {
    makers.e = () => chunksFigure(form, state.selector, state.part);
    makers.words = () => wordsFigure(form, state.selector, state.part);
  }
  for (const side of form.scale ? ["scale_a", "scale_b"] : []) {
    makers[side] = () => scaleFigure(form, side, state.ids);
  }
  for (const side of form.shared ? ["a", "b"] : []) {
    const tile = sharedTile(form, state, side);
    if (tile) makers[`tile_${side}`] = () => tileFigure(form, side, tile);
  }
  makers.registers = () => registersFigure(form, state.part, state.selector, state.ids);
  return makers;
}

export function figuresOf(form, state) {
  const figures = {};
  for (const [name, make_] of Object.entries(makersOf(form, state))) {
    let made = null;
    Object.defineProperty(figures, name, { enumerable: true, get: () => (made ??= make_()) });
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

// Pixels that a box needs for so many of its lines.
function boxWidth(figure, lines = 2) {
  const longest = Math.max(...figure.cells.flatMap((cell) => cell.lines.slice(0, lines).map((line) => line.length)));
  return longest * 6.3 + 5;
}

// Pixels that columns of A, and of B and D, need at least for so many lines.
function leastSizes({ a, b, d }, wide, lines) {
  const of = (figure) => boxWidth(figure, lines) / narrowest(figure);
  return { a: a ? of(a) : 0, d: Math.max(of(d), b && !wide ? of(b) : 0, wide ? 17 : 0) };
}

// Pixels of a column of A, of B and D, and of a row of B and of A and D; the size of letters.
function compositeSizes(figures, room, zoom) {
  const { a, b, d } = figures;
  const wide = columnsOf(d) > 16;
  const needs = (least) => (one) => Math.max(PAD, a ? one * columnsOf(a) * least.a + leftOf(a) : 0)
    + one * columnsOf(d) * least.d + Math.max(...[b, d].filter(Boolean).map(leftOf)) + FRAMES <= room;
  const both = leastSizes(figures, wide, 2);
  const least = wide || needs(both)(SMALLEST) ? both : leastSizes(figures, wide, 1);
  const stretch = wide ? 1 : largest(needs(least));
  const font = 10.5 * clamp(Math.sqrt(stretch), 0.95, 1.18) * zoom ** 0.6;
  const y = 30 * clamp(stretch, 0.95, 1.15);
  const high = b ? rowHeight(b, y) : 0;
  return { a: least.a * stretch * zoom, d: least.d * stretch * zoom, b: high * zoom, y: y * zoom, font };
}

const SMALLEST = 0.88;
const PAD = 312; // pixels of the lanes and registers
const FRAMES = 62; // and of what is around and between two figures

// How far boxes can grow, from what they need at least.
function largest(fits) {
  for (let one = 2.1; one > SMALLEST; one -= 0.02) if (fits(one)) return one;
  return SMALLEST;
}

// A box of B is as high as one of D where it is upright, so that both lines fit; in shared memory higher.
function rowHeight(b, y) {
  const least = lowest(b);
  if (b.cells.some((cell) => cell.lines.length === 1)) return least > 1 ? 46 / least : y * 0.8;
  return y / least;
}

// --- panels ----------------------------------------------------------------------------------------

const BANKS = "16 bytes a box, one colour for the same four banks";
const WORDS = "rows and columns of the elements, low bits first; point at a lane or a register";
const TITLES = {
  a: "A", b: "B", c: "C", d: "D", e: "Metadata by chunk", words: "Metadata by word", scale_a: "Scales of A",
  scale_b: "Scales of B", registers: "Registers of each lane", pad: "Lanes and registers",
};

function block(name, title, note, panel, extra = []) {
  const tools = name === "pad" ? "" : make("button", {
    type: "button", class: "export", "data-export": name, title: "copy or save this figure",
  }, "Export");
  return make(
    "section", { class: `part of-${name}`, "data-name": name, "aria-label": title },
    make("h3", {}, make("span", { class: "name" }, title), " ", make("small", {}, note), tools, ...extra),
    make("div", { class: "scroll" }, panel?.element ?? []),
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
    const wide = { a: a * columnsOf(figures.a ?? figures.e), d: d * columnsOf(figures.d) };
    if ("e" in figures) Object.assign(made, this.metadata({ ...wide, y, font }));
    scrollTogether([made.b, made.d, made.c]);
    const slim = columnsOf(figures.d) > 16 && room < 1100; // D needs the room beside A
    return make("div", { class: slim ? "composite slim" : "composite" }, Object.values(made).filter(Boolean));
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
        x: Math.max((boxWidth(words) * font) / 10.5, Math.min((d - 24) / columnsOf(words), 76)), y, font,
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

  // Figures below the composite, drawn when they come near the window.
  makeOthers(room) {
    const { form } = this;
    const type = `.${form.scale?.type}`;
    const notes = { scale_a: type, scale_b: type, tile_a: BANKS, tile_b: BANKS, registers: WORDS };
    const fill = (seen) => seen.filter((one) => one.isIntersecting).forEach((one) => this.fill(one.target, room));
    this.watcher = new IntersectionObserver(fill, { rootMargin: "600px" });
    return Object.keys(notes).filter((name) => name in this.figures).map((name) => {
      const title = TITLES[name] ?? `${name.at(-1).toUpperCase()} as packed in shared memory`;
      const made = block(name, title, notes[name], null);
      made.classList.add("waiting");
      this.watcher.observe(made);
      return made;
    });
  }

  // Draw those that have not come near the window yet: paper has no window.
  fillAll(room) {
    this.others.filter((one) => one.matches(".waiting")).forEach((one) => this.fill(one, room));
  }

  fill(place, room) {
    this.watcher.unobserve(place);
    const { name } = place.dataset;
    const figure = this.figures[name];
    const label = 6.2 * Math.max(...figure.columnLabels.map((one) => one.length)) + 8;
    const least = Math.max(boxWidth(figure), label) / narrowest(figure);
    const fitting = (room - leftOf(figure) - 40) / columnsOf(figure);
    const heights = { registers: 20, tile_a: 22, tile_b: 22 };
    const headings = name === "registers" ? this.registerHeadings(figure) : {};
    const panel = this.panel(figure, { x: clamp(fitting, least, least * 1.35), y: heights[name] ?? 30, headings });
    place.classList.remove("waiting");
    place.querySelector(".scroll").replaceChildren(panel.element);
    panel.light(this.lights ?? new Map());
  }

  registerHeadings(figure) {
    const { form } = this;
    const operandOf = (name) => form.operands.find((one) => new RegExp(`^%${one}\\d*$`).test(name));
    return {
      row: (at) => `lane/${figure.rowLabels[at].slice(1)}`,
      column: (at) => {
        const operand = operandOf(figure.columnLabels[at]);
        return `register/${operand}/${figure.columnLabels[at].slice(operand.length + 1) || 0}`;
      },
      word: (cell) => `word/${cell.places[0].operand}/${cell.lane}/${cell.register}`,
    };
  }

  close() {
    this.watcher.disconnect();
  }

  light(lights) {
    this.lights = lights;
    for (const panel of this.panels) panel.light(lights);
  }

  panelOf(element) {
    const svg = element.closest?.("svg.figure");
    return svg ? this.panels.find((panel) => panel.element === svg) : null;
  }
}
