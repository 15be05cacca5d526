// Cells of tensor memory as SVG: a figure for each CTA, lanes down and columns to the right, with blocks of elements
// that go on alike.

import { blockLines } from "./cells.js";
import { draw } from "./drawing.js";
import { laneColour } from "./palette.js";

const LANES = 128;
const LANE = 2.5; // pixels
const [LEFT, TOP] = [64, 22];
const WIDEST = [[1, 320], [2, 200], [4, 150], [16, 104], [512, 12]]; // cells, and pixels of each at most
const LETTER = 6.3; // pixels of a character

function columnWidth(cells, room) {
  const most = WIDEST.find(([count]) => cells <= count)[1];
  return Math.min(Math.max((room - LEFT - 8) / cells, 2), most);
}

export class CellFigure {
  constructor(held, blocks, { room, label, names }) {
    Object.assign(this, { held, blocks, label, names });
    this.cells = Math.max(...blocks.map(({ cell, cells }) => cell + cells));
    this.ctas = Math.max(...blocks.map(({ cta }) => cta)) + 1;
    this.x = columnWidth(this.cells, this.ctas > 1 && room > 900 ? room / 2 - 12 : room);
    this.elements = Array.from({ length: this.ctas }, (_, cta) => this.svg(cta));
  }

  svg(cta) {
    const [width, height] = [Math.ceil(LEFT + this.x * this.cells + 4), TOP + LANE * LANES + 4];
    const own = this.blocks.filter((block) => block.cta === cta);
    return draw(
      "svg", {
        class: "figure cells", width, height, viewBox: `0 0 ${width} ${height}`, "data-cta": cta, role: "img",
        "aria-label": `${this.label}${this.ctas > 1 ? `, CTA ${cta} of the pair` : ""}`,
      },
      draw("g", { class: "labels" }, this.labels(cta)), draw("g", {}, own.map((block) => this.box(block))),
      draw("g", { class: "lit-layer" }),
    );
  }

  rect({ lane, lanes, cell, cells }) {
    return [LEFT + cell * this.x, TOP + lane * LANE, cells * this.x, lanes * LANE];
  }

  box(block) {
    const [x, y, width, height] = this.rect(block);
    const hue = Math.floor(block.elements[0].row / 16) * 4 + (block.cell % 2);
    const fill = `fill: light-dark(${laneColour(hue)}, ${laneColour(hue, true)})`;
    const rect = draw("rect", { x, y, width, height, style: fill, class: block.copy ? "copy" : null });
    return draw("g", { class: "box" }, rect, this.texts(block, x + width / 2, y, width, height));
  }

  // The lines that fit, lying or standing, with or without names; otherwise none.
  texts(block, x, y, width, height) {
    const all = [...blockLines(block, this.names), ...(block.copy ? ["(copy)"] : [])];
    const bare = all.map((line) => line.replace(/^[a-z]+ /, ""));
    const fits = (across, down) => (lines) =>
      lines.length * 12 <= down && lines.every((line) => line.length * LETTER < across - 2);
    const lying = [all, [all.join(", ")]].find(fits(width, height));
    const standing = lying ? null : [all, [all.join(", ")]].find(fits(height, width));
    const lines = lying ?? standing ?? [bare, [bare.join(", ")]].find(fits(width, height)) ?? [];
    const middle = y + height / 2;
    return lines.map((line, at) => draw("text", {
      x, y: middle + 12 * at - 6 * (lines.length - 1) + 3.5, class: "small",
      transform: standing ? `rotate(-90 ${x} ${middle})` : null,
    }, line));
  }

  labels(cta) {
    const text = (x, y, name, more = {}) => draw("text", { x, y, class: `label ${name}`, ...more });
    const put = (x, y, name, words) => {
      const made = text(x, y, name);
      made.textContent = words;
      return made;
    };
    const every = Math.max(1, Math.ceil(26 / this.x));
    const step = [1, 2, 4, 8, 16, 32, 64].find((one) => one >= every) ?? 64;
    const columns = Array.from({ length: Math.ceil(this.cells / step) }, (_, at) => at * step);
    return [
      put(30, 11, "across", this.ctas > 1 ? `CTA ${cta}` : "lane"),
      ...columns.map((at) => put(LEFT + (at + (this.x > 12 ? 0.5 : 0)) * this.x, TOP - 6, "across", `+${at}`)),
      ...[0, 32, 64, 96].flatMap((lane) => [
        put(LEFT - 6, TOP + lane * LANE + 9, "down", String(lane)),
        put(LEFT - 6, TOP + (lane + 16) * LANE + 4, "down faint", `warp ${lane / 32}`),
      ]),
      put(LEFT - 6, TOP + 127 * LANE + 2, "down", "127"),
    ];
  }

  // The "cta/lane/cell" at a point of the page, null where no element lies.
  keyAt(event) {
    const svg = event.target.closest?.("svg.cells");
    if (!svg) return null;
    const box = svg.getBoundingClientRect();
    const lane = Math.floor((event.clientY - box.top - TOP) / LANE);
    const cell = Math.floor((event.clientX - box.left - LEFT) / this.x);
    const key = `${svg.dataset.cta}/${lane}/${cell}`;
    return this.held.has(key) ? key : null;
  }

  // Mark cells, each a "cta/lane/cell".
  light(keys) {
    for (const svg of this.elements) {
      const own = keys.map((key) => key.split("/").map(Number)).filter(([cta]) => String(cta) === svg.dataset.cta);
      svg.querySelector(".lit-layer").replaceChildren(...own.map(([, lane, cell]) => {
        const [x, y, width, height] = this.rect({ lane, lanes: 1, cell, cells: 1 });
        return draw("rect", { x: x - 2, y: y - 2, width: width + 4, height: height + 4, "data-light": "here" });
      }));
    }
  }
}
