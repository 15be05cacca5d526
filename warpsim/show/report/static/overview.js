// All matrix instructions of a launch: a cell each, in rows by line and warp and columns by step, marked by what is
// odd about them. A canvas: pages have tens of thousands of cells.

import { make } from "./elements.js";
import { cellsOf, commandOf, overviewText, rowName } from "./overview_cells.js";

const NAMES = 236; // pixels of the names of rows, at most
const FONT = "11px system-ui, sans-serif";
const TOP = 18; // of the numbers of steps
const MOST = 16000; // pixels of a side of a canvas
const HINT = "Point at a cell, or move with the arrow keys; a click or Enter shows its matrices below.";

function clamp(value, least, most) {
  return Math.min(Math.max(value, least), most);
}

export class Overview {
  // read(reference) returns an array of the page; go(index) shows an instruction of it.
  constructor(section, overview, read, go) {
    Object.assign(this, { section, overview, go, wanted: null, index: -1, lit: new Set() });
    this.cells = cellsOf(overview, read);
    this.canvas = section.querySelector("canvas");
    this.told = section.querySelector("#overview-told");
    this.byPlace = new Map(this.cells.filter(({ place }) => place).map((cell) => [cell.place - 1, cell]));
    this.arrange();
    this.listen();
    this.tell(null);
  }

  // Rows that are drawn: all, or those that have a cell with the wanted mark.
  arrange() {
    const shown = this.cells.filter((cell) => this.wanted === null || (cell.marked >> this.wanted) & 1);
    this.rows = [...new Set(shown.map(({ row }) => row))].sort((one, two) => one - two);
    this.lines = new Map(this.rows.map((row, at) => [row, at]));
    this.grid = new Map(this.cells.filter(({ row }) => this.lines.has(row))
      .map((cell) => [`${this.lines.get(cell.row)}/${cell.step}`, cell]));
    this.height = clamp(Math.floor((MOST - TOP) / Math.max(this.rows.length, 1)), 2, 14);
    this.names = this.widest();
    const room = this.canvas.parentElement.clientWidth - this.names - 24;
    const wide = clamp(Math.floor(room / this.overview.steps), 16, 48); // of few steps
    this.width = clamp(Math.floor((MOST - NAMES) / this.overview.steps), 1, wide);
    this.canvas.width = this.names + this.width * this.overview.steps + 1;
    this.canvas.height = TOP + this.height * this.rows.length + 1;
    Object.assign(this.canvas.dataset, { names: this.names, top: TOP, height: this.height, width: this.width });
    this.draw();
  }

  // Pixels of the longest name of a row.
  widest() {
    const paint = this.canvas.getContext("2d");
    paint.font = FONT;
    const lengths = this.rows.slice(0, 2000).map((row) => paint.measureText(rowName(this.overview.rows[row])).width);
    return Math.min(NAMES, Math.ceil(Math.max(60, ...lengths)) + 12);
  }

  listen() {
    const { canvas, section } = this;
    canvas.addEventListener("pointermove", (event) => this.tell(this.cellAt(event)));
    canvas.addEventListener("pointerleave", () => this.tell(this.focused ?? null));
    canvas.addEventListener("click", (event) => this.choose(this.cellAt(event)));
    canvas.addEventListener("keydown", (event) => this.press(event));
    section.querySelector("#overview-marks").addEventListener("click", (event) => {
      const button = event.target.closest("[data-bit]");
      if (!button) return;
      const bit = Number(button.dataset.bit);
      this.wanted = this.wanted === bit ? null : bit;
      for (const one of section.querySelectorAll("[data-bit]")) {
        one.setAttribute("aria-pressed", String(Number(one.dataset.bit) === this.wanted));
      }
      this.arrange();
    });
    new MutationObserver(() => this.draw()).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  cellAt(event) {
    const row = Math.floor((event.offsetY - TOP) / this.height);
    const step = Math.floor((event.offsetX - this.names) / this.width);
    return this.grid.get(`${row}/${step}`) ?? null;
  }

  choose(cell) {
    if (!cell) return;
    this.focused = cell;
    if (cell.place) this.go(cell.place - 1);
    this.draw();
    this.tell(cell);
  }

  press(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step && !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!step) return void this.choose(this.focused);
    const from = this.focused ?? this.byPlace.get(this.index) ?? this.cells[0];
    const [row, column] = [(this.lines.get(from.row) ?? 0) + step[0], from.step + step[1]];
    this.focused = this.grid.get(`${row}/${column}`) ?? from;
    this.draw();
    this.tell(this.focused);
  }

  // Mark the rows of lines of the PTX.
  light(lines) {
    this.lit = lines;
    this.canvas.dataset.lit = this.rows.filter((row) => lines.has(this.overview.rows[row].line)).length;
    this.draw();
  }

  // The cell of the instruction that is shown.
  mark(index) {
    this.index = index;
    this.draw();
  }

  tell(cell) {
    if (!cell) return this.told.replaceChildren(make("span", { class: "hint" }, HINT));
    const more = cell.place
      ? [make("span", { class: "go" }, ` → instruction ${cell.place} of this page`)]
      : [make("span", {}, " Its matrices are not in this page: "), make("code", {}, commandOf(this.overview, cell))];
    return this.told.replaceChildren(overviewText(this.overview, cell), ...more);
  }

  // --- drawing ---

  draw() {
    const paint = this.canvas.getContext("2d");
    const style = getComputedStyle(this.section);
    const colour = (name) => style.getPropertyValue(name).trim();
    const probe = make("span", {});
    this.section.append(probe);
    const real = (name) => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    this.colours = Object.fromEntries(["--ink", "--muted", "--grid", "--a", "--b", "--c", "--e", "--bad", "--d"]
      .map((name) => [name, colour(name) ? real(name) : "gray"]));
    probe.remove();
    paint.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.drawNames(paint);
    for (const cell of this.grid.values()) this.drawCell(paint, cell);
    for (const cell of [this.byPlace.get(this.index), this.focused]) this.drawFrame(paint, cell);
  }

  drawNames(paint) {
    paint.font = `${clamp(this.height - 2, 8, 11)}px system-ui, sans-serif`;
    paint.textBaseline = "middle";
    const every = Math.ceil(11 / this.height);
    this.rows.forEach((row, at) => {
      const isLit = this.lit.has(this.overview.rows[row].line);
      if (isLit) this.drawBand(paint, at);
      if (at % every) return;
      paint.fillStyle = this.colours[isLit ? "--ink" : "--muted"];
      paint.fillText(rowName(this.overview.rows[row]), 2, TOP + (at + 0.5) * this.height, this.names - 8);
    });
    const apart = Math.max(1, Math.ceil(28 / this.width));
    for (let step = 0; step < this.overview.steps; step += apart) {
      paint.fillText(String(step), this.names + step * this.width + 1, TOP / 2);
    }
  }

  // Behind a row of a line that is chosen.
  drawBand(paint, at) {
    paint.globalAlpha = 0.22;
    paint.fillStyle = this.colours["--d"];
    paint.fillRect(0, TOP + at * this.height, this.canvas.width, this.height);
    paint.globalAlpha = 1;
  }

  drawCell(paint, cell) {
    const names = ["--bad", "--bad", "--c", "--e"];
    const bit = [0, 1, 2, 3].find((one) => (cell.marked >> one) & 1);
    const [x, y] = [this.names + cell.step * this.width, TOP + this.lines.get(cell.row) * this.height];
    const [width, height] = [Math.max(this.width - 1, 1), Math.max(this.height - 1, 1)];
    paint.globalAlpha = bit === undefined ? 0.35 : 1;
    paint.fillStyle = this.colours[names[bit] ?? "--a"];
    if (cell.place || bit !== undefined) paint.fillRect(x, y, width, height);
    else paint.fillRect(x, y + height / 3, width, Math.max(height / 3, 1)); // without its matrices: low
    paint.globalAlpha = 1;
  }

  drawFrame(paint, cell) {
    if (!cell || !this.lines.has(cell.row)) return;
    paint.strokeStyle = this.colours["--ink"];
    paint.lineWidth = 2;
    const [x, y] = [this.names + cell.step * this.width, TOP + this.lines.get(cell.row) * this.height];
    paint.strokeRect(x - 1, y - 1, this.width + 1, this.height + 1);
  }
}
