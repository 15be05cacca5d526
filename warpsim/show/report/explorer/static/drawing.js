// A figure as SVG that can be pointed at: boxes, labels, and a layer for what is lit.

import { keyOf } from "./lights.js";
import { laneColour, registerColour } from "./palette.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const CHARACTER = 0.6; // width of a character of the monospaced font, in its size

export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat());
  return element;
}

const FILLS = {
  lane: (cell) => [laneColour(cell.lane), laneColour(cell.lane, true)],
  register: (cell) => [registerColour(cell.register), registerColour(cell.register, true)],
  plain: () => null,
};

// A cell of the pad has a colour only where it is what colours stand for.
function fillOf(cell, colouring) {
  if (cell.only && cell.only !== colouring) return null;
  const pair = FILLS[colouring](cell);
  return pair ? `fill: light-dark(${pair[0]}, ${pair[1]})` : null;
}

// A panel: ``x`` and ``y`` are pixels of a column and a row, ``left`` and ``top`` the room for labels.
export class Panel {
  constructor(figure, { x, y, left, top, colouring, headings = {}, label, font = 10.5 }) {
    Object.assign(this, { figure, x, y, left, top, colouring, headings, font });
    this.firstRow = figure.rows[0][0];
    this.firstColumn = figure.columns[0][0];
    const [lastRow, lastColumn] = [figure.rows.at(-1), figure.columns.at(-1)];
    this.width = Math.ceil(left + x * (lastColumn[0] + lastColumn[1] - this.firstColumn) + 2);
    this.height = Math.ceil(top + y * (lastRow[0] + lastRow[1] - this.firstRow) + 2);
    this.index();
    this.element = this.svg(label ?? figure.title);
  }

  // Whether every box has room for both of its lines.
  get twoLines() {
    this.roomy ??= this.figure.cells.every((cell) => {
      const [, , width, height] = this.rectOf(cell);
      const longest = Math.max(...cell.lines.map((line) => line.length));
      return height >= 2.3 * this.font && longest * this.font * CHARACTER * 0.97 <= width - 3;
    });
    return this.roomy;
  }

  // Where each key is, and which cell is at each place.
  index() {
    this.at = new Map();
    this.cellAt = new Map();
    this.named = new Map(); // cells that are a word or a lane as a whole
    for (const cell of this.figure.cells) {
      if (this.headings.word) this.named.set(this.headings.word(cell), cell);
      cell.places.forEach((place, at) => this.at.set(keyOf(place), { cell, at }));
      for (let row = cell.row; row < cell.row + cell.height; row += 1) {
        for (let column = cell.column; column < cell.column + cell.width; column += 1) {
          this.cellAt.set(`${row}/${column}`, cell);
        }
      }
    }
  }

  svg(label) {
    this.boxes = new Map(this.figure.cells.map((cell) => [cell, this.box(cell)]));
    this.lit = draw("g", { class: "lit-layer" });
    this.texts = this.labels();
    return draw(
      "svg", {
        class: "figure", width: this.width, height: this.height, viewBox: `0 0 ${this.width} ${this.height}`,
        tabindex: "0", role: "application", "aria-label": `${label}: arrow keys move, Enter pins`,
        "data-figure": this.figure.name, style: `--font: ${this.font}px`,
      },
      draw("g", { class: "boxes" }, [...this.boxes.values()]), this.separators(), this.texts, this.lit,
    );
  }

  rectOf(cell) {
    return [
      this.left + (cell.column - this.firstColumn) * this.x, this.top + (cell.row - this.firstRow) * this.y,
      cell.width * this.x, cell.height * this.y,
    ];
  }

  // The part of a cell that one of its places takes.
  rectOfPlace({ cell, at }) {
    const [x, y, width, height] = this.rectOf(cell);
    const count = cell.places.length;
    return cell.height > cell.width
      ? [x, y + (at * height) / count, width, height / count]
      : [x + (at * width) / count, y, width / count, height];
  }

  box(cell) {
    const [x, y, width, height] = this.rectOf(cell);
    const rect = draw("rect", { x, y, width, height, style: fillOf(cell, this.colouring) });
    return draw("g", { class: "box" }, rect, this.text(cell, x + width / 2, y + height / 2, width, height));
  }

  // Two lines where they fit, otherwise the first; upright boxes have it turned.
  text(cell, x, y, width, height) {
    const size = this.font;
    const fits = (line, room) => line.length * size * CHARACTER <= room - 3;
    const [first, second] = cell.lines;
    const line = (text, at, name) => draw("text", { x, y: y + at * size, class: name }, text);
    if (second && this.twoLines) {
      return [line(first, -0.22, "strong"), line(second, 0.92, "small")];
    }
    if (fits(first, width) && height >= 12) return [line(first, 0.35, "strong")];
    if (!fits(first, height) || width < 11) return [];
    return [draw("text", { x, y: y + 0.35 * size, class: "strong", transform: `rotate(-90 ${x} ${y})` }, first)];
  }

  // Thin lines between the elements of a box; ticks at its edge where a line would strike its text through.
  separators() {
    const lines = this.figure.cells.flatMap((cell) => cell.places.slice(1).map((_, at) => {
      const [x, y, width, height] = this.rectOfPlace({ cell, at: at + 1 });
      if (cell.height > cell.width) return height < 7 ? "" : `M${x + 1} ${y}h${this.twoLines ? width - 2 : 3}`;
      return width < 9 ? "" : `M${x} ${y + height - 4}v3`;
    }));
    return draw("path", { class: "separators", d: lines.join("") });
  }

  // Rows on the left, columns on top: only where they begin if there is no room, and not all if there is less.
  labels() {
    return draw("g", { class: "labels" }, this.columnLabels(), this.rowLabels());
  }

  label(x, y, text, name, key) {
    return draw("text", { x, y, class: `label ${name}`, "data-key": key ?? null }, text);
  }

  columnLabels() {
    const { columns, columnLabels } = this.figure;
    const narrow = Math.min(...columns.map(([, count]) => count * this.x));
    const room = (names) => Math.max(...names.map((one) => one.length)) * 10 * CHARACTER + 5;
    const short = columnLabels.map((name) => name.replace(/^(\d+)\.\.\d+$/, "$1"));
    const names = room(columnLabels) <= narrow ? columnLabels : short;
    const every = Math.max(1, Math.ceil(room(names) / narrow));
    return columns.flatMap(([first, count], at) => (at % every ? [] : [
      this.label(this.left + (first - this.firstColumn + count / 2) * this.x, this.top - 6, names[at], "across",
        this.headings.column?.(at)),
    ]));
  }

  rowLabels() {
    const { rows, rowLabels } = this.figure;
    const step = Math.max(1, Math.ceil(12 / (this.y * Math.min(...rows.map(([, count]) => count)))));
    return rows.flatMap(([first, count], at) => (at % step ? [] : [
      this.label(this.left - 6, this.top + (first - this.firstRow + count / 2) * this.y + 3.5, rowLabels[at], "down",
        this.headings.row?.(at)),
    ]));
  }

  // --- pointing -------------------------------------------------------------------------------------

  // The key at a point of the page, null where nothing is.
  keyAt(event) {
    const own = event.target.closest?.("[data-key]")?.dataset.key;
    if (own) return own;
    const box = this.element.getBoundingClientRect();
    const scale = box.width / this.width;
    return this.keyOfPoint((event.clientX - box.left) / scale, (event.clientY - box.top) / scale);
  }

  keyOfPoint(x, y) {
    const [column, row] = [(x - this.left) / this.x + this.firstColumn, (y - this.top) / this.y + this.firstRow];
    const cell = this.cellAt.get(`${Math.floor(row)}/${Math.floor(column)}`);
    if (!cell) return null;
    if (this.headings.word) return this.headings.word(cell);
    const share = cell.height > cell.width ? (row - cell.row) / cell.height : (column - cell.column) / cell.width;
    const at = Math.min(cell.places.length - 1, Math.max(0, Math.floor(share * cell.places.length)));
    return keyOf(cell.places[at]);
  }

  // The middle of what a key names, in pixels of the figure.
  middle(key) {
    const found = this.found(key);
    if (!found) return null;
    const [x, y, width, height] = found;
    return [x + width / 2, y + height / 2, width, height];
  }

  found(key) {
    if (this.at.has(key)) return this.rectOfPlace(this.at.get(key));
    const cell = this.cellOf(key);
    return cell ? this.rectOf(cell) : null;
  }

  // The cell that a key names as a whole.
  cellOf(key) {
    return this.named.get(key) ?? null;
  }

  // The key beside another: one place on in a direction, or the first key there is.
  beside(key, [dx, dy]) {
    const middle = key && this.middle(key);
    if (!middle) return this.firstKey();
    const [x, y, width, height] = middle;
    const stepX = this.headings.word ? this.x : width;
    const stepY = this.headings.word ? this.y : height;
    const to = [x + dx * Math.max(stepX, 1), y + dy * Math.max(stepY, 1)];
    return this.keyOfPoint(...to) ?? this.beyond(x, y, dx, dy) ?? key;
  }

  firstKey() {
    const [x, y, width, height] = this.rectOf(this.figure.cells[0]);
    const [{ places }] = this.figure.cells;
    return places.length ? this.keyOfPoint(x + width / places.length / 3, y + height / places.length / 3)
      : this.keyOfPoint(x + width / 2, y + height / 2);
  }

  // Across a gap, as in the register map's words that nobody reads.
  beyond(x, y, dx, dy) {
    for (let step = 1; step < 64; step += 1) {
      const key = this.keyOfPoint(x + dx * step * this.x, y + dy * step * this.y);
      if (key && (dx ? this.x : this.y) * step > 1) return key;
    }
    return null;
  }

  // --- light ----------------------------------------------------------------------------------------

  light(lights) {
    const { cells, marks } = this.held(lights);
    for (const [cell, held] of cells) marks.push(...this.marksOf(cell, held));
    const bright = [...cells.keys()].map((cell) => this.boxes.get(cell).cloneNode(true)); // above the dimmed ones
    this.element.classList.toggle("focused", cells.size > 0);
    this.lit.replaceChildren(
      ...bright, ...marks.toSorted((x, y) => (x.dataset.light === "here") - (y.dataset.light === "here")));
    for (const label of this.texts.querySelectorAll("[data-key]")) {
      label.classList.toggle("on", lights.has(label.dataset.key));
    }
  }

  // Lit places by their cells, and marks of cells that are lit as a whole.
  held(lights) {
    const [cells, marks] = [new Map(), []];
    for (const [key, level] of lights) {
      const found = this.at.get(key);
      const whole = found ? null : this.cellOf(key);
      const cell = found?.cell ?? whole;
      if (cell && !cells.has(cell)) cells.set(cell, []);
      if (found) cells.get(cell).push([found, level, key]);
      if (whole) marks.push(this.mark(this.rectOf(whole), level, key));
    }
    return { cells, marks };
  }

  marksOf(cell, held) {
    const whole = held.length === cell.places.length && held.every(([, level]) => level === held[0]?.[1]);
    if (whole && held.length) return [this.mark(this.rectOf(cell), held[0][1], held[0][2])];
    return held.map(([found, level, key]) => this.mark(this.rectOfPlace(found), level, key));
  }

  mark([x, y, width, height], level, key) {
    return draw("rect", {
      x: x + 1, y: y + 1, width: Math.max(width - 2, 1), height: Math.max(height - 2, 1), rx: 1.5,
      "data-light": level, "data-of": key, class: `of-${key.split("/")[0]}`,
    });
  }
}
