// Lighting up: marks what belongs together on the board, down to the digits of registers.

import { make } from "./elements.js";

// Elements of a board by key, and what is lit among them.
export class Lamps {
  constructor(root, refresh = () => {}) {
    this.refresh = refresh; // makes a cell out of view show what it should before it is lit
    this.cells = new Map();
    for (const cell of root.querySelectorAll("[data-key]")) this.cells.set(cell.dataset.key, cell);
    this.lit = [];
  }

  show(lights) {
    this.clear();
    for (const [key, level] of lights.elements) {
      const cell = this.cells.get(key);
      if (!cell) continue; // of another warp
      this.refresh(cell);
      cell.dataset.light = level;
      this.lit.push(cell);
      const bits = lights.words.get(key);
      if (bits) markDigits(cell, bits);
    }
  }

  clear() {
    for (const cell of this.lit) {
      delete cell.dataset.light;
      if (cell.dataset.key.startsWith("word/")) cell.textContent = cell.textContent; // marks go, text stays
    }
    this.lit = [];
  }
}

// The hexadecimal digits that hold lit bits, marked; the strongest level wins a digit.
function markDigits(cell, bits) {
  const digits = cell.textContent;
  const levels = Array.from(digits, (_, index) => {
    const low = 4 * (digits.length - 1 - index);
    const here = bits.filter((one) => one.low <= low + 3 && one.high >= low);
    return here.some((one) => one.level === "here") ? "here" : here[0]?.level ?? "";
  });
  if (levels.every((level) => level === levels[0])) return; // the whole word
  cell.replaceChildren(...runs(digits, levels));
}

function runs(digits, levels) {
  const pieces = [];
  for (let start = 0; start < digits.length;) {
    let end = start + 1;
    while (end < digits.length && levels[end] === levels[start]) end += 1;
    const text = digits.slice(start, end);
    pieces.push(levels[start] ? make("mark", { "data-light": levels[start] }, text) : text);
    start = end;
  }
  return pieces;
}
