// The board's cells kept up to date: those in view at once, the others when they come into view or time is left.
//
// A board of twenty thousand cells takes a second to build. Steps of one form keep the board and change what its
// cells show.

import { boardOf, fit, formOf, refreshFrame } from "./board.js";
import { refreshCell } from "./grids.js";
import { Lamps } from "./light.js";

const PAUSE = 400; // milliseconds without a step, after which what is out of view follows
const CELLS = 1500; // of one go
const MARGIN = 40; // pixels around what is in view

export class Showing {
  constructor(board) {
    this.board = board;
    this.step = 0;
    board.addEventListener("scroll", () => this.soon(), { capture: true, passive: true });
    addEventListener("scroll", () => this.soon(), { passive: true });
    addEventListener("resize", () => {
      if (this.form) fit(board);
      this.soon();
    }, { passive: true });
  }

  // Show an instruction; the product of m8n8k4 f16 is in the part.
  show(instruction, part, product, mode) {
    Object.assign(this, { instruction, product, mode });
    const form = formOf(instruction, part);
    this.step += 1;
    if (form === this.form) {
      refreshFrame(this.board, instruction);
      this.follow();
      return;
    }
    this.form = form;
    this.board.replaceChildren(...boardOf(instruction, part, mode));
    fit(this.board);
    this.cells = [...this.board.querySelectorAll("td[data-key]")];
    this.lamps = new Lamps(this.board, (cell) => this.refresh(cell));
    for (const cell of this.cells) cell.shows = this.step;
  }

  // All cells again, in another mode.
  again(mode) {
    this.mode = mode;
    this.step += 1;
    this.follow();
  }

  follow() {
    this.refreshInView();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.rest(0), PAUSE);
  }

  refresh(cell) {
    if (cell.shows === this.step || !cell.matches("td[data-key]")) return;
    cell.shows = this.step;
    refreshCell(cell, this.instruction, this.product, this.mode);
  }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.refreshInView();
    });
  }

  // Rows and columns in view are found by their headings: a few hundred boxes instead of all.
  refreshInView() {
    const found = [...this.board.querySelectorAll(".scroll")].flatMap((box) => inView(box));
    for (const cell of found) this.refresh(cell);
  }

  rest(from) {
    const until = Math.min(from + CELLS, this.cells.length);
    for (let at = from; at < until; at += 1) this.refresh(this.cells[at]);
    if (until < this.cells.length) this.timer = setTimeout(() => this.rest(until));
  }
}

function inView(box) {
  const { left, right, top, bottom } = box.getBoundingClientRect();
  const grid = box.querySelector("[role=grid]");
  if (!grid || bottom < -MARGIN || top > innerHeight + MARGIN) return [];
  const rows = [...grid.tBodies[0].rows].filter((row) => {
    const one = row.getBoundingClientRect();
    return one.bottom >= Math.max(top, 0) - MARGIN && one.top <= Math.min(bottom, innerHeight) + MARGIN;
  });
  const columns = Array.from(grid.tBodies[0].rows[0].cells, (cell, at) => {
    const one = cell.getBoundingClientRect();
    return one.right >= left - MARGIN && one.left <= right + MARGIN ? at : -1;
  });
  return rows.flatMap((row) => columns.map((at) => row.cells[at]).filter((cell) => cell?.dataset.key));
}
