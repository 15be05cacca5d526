// Arrow keys within grids: one cell of each grid can be reached with Tab, its neighbours with the arrows.

const MOVES = {
  ArrowUp: (row, column) => [row - 1, column],
  ArrowDown: (row, column) => [row + 1, column],
  ArrowLeft: (row, column) => [row, column - 1],
  ArrowRight: (row, column) => [row, column + 1],
  Home: (row) => [row, 0],
  End: (row) => [row, Infinity],
  PageUp: (row, column) => [row - 8, column],
  PageDown: (row, column) => [row + 8, column],
};

// Cells by the line that they stand in: headings of registers in a line, headings of lanes in front of theirs.
function linesOf(grid) {
  return Array.from(grid.rows, (row) => Array.from(row.cells).filter((cell) => cell.dataset.key))
    .filter((line) => line.length);
}

export function moveInGrid(event) {
  const cell = event.target.closest("[role=grid] [data-key]");
  const move = MOVES[event.key];
  if (!cell || !move || event.altKey || event.metaKey) return false;
  const grid = cell.closest("[role=grid]");
  const lines = linesOf(grid);
  const row = lines.findIndex((line) => line.includes(cell));
  const hasHeading = (line) => (line[0].tagName === "TH" && line.some((one) => one.tagName === "TD") ? 1 : 0);
  const column = lines[row].indexOf(cell) - hasHeading(lines[row]);
  const [toRow, toColumn] = event.ctrlKey && ["Home", "End"].includes(event.key)
    ? [event.key === "Home" ? 0 : lines.length - 1, event.key === "Home" ? 0 : Infinity]
    : move(row, column);
  const line = lines[clamp(toRow, 0, lines.length - 1)];
  const offset = hasHeading(line);
  focusCell(line[clamp(toColumn + offset, 0, line.length - 1)]);
  event.preventDefault();
  return true;
}

function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

// Focus a cell, which becomes the one that Tab reaches.
export function focusCell(cell) {
  const grid = cell.closest("[role=grid]");
  for (const other of grid.querySelectorAll('[tabindex="0"]')) other.setAttribute("tabindex", "-1");
  cell.setAttribute("tabindex", "0");
  cell.focus({ preventScroll: true });
  reveal(cell);
}

// Scroll the box around a cell, and the page, just so far that it can be seen.
export function reveal(cell) {
  cell.scrollIntoView({ block: "nearest", inline: "nearest" });
}

// Scroll a box alone, so far that a cell in it can be seen beside the headings.
export function revealWithin(box, cell) {
  const [outer, inner] = [box.getBoundingClientRect(), cell.getBoundingClientRect()];
  const heading = cell.parentElement.firstElementChild.offsetWidth;
  const top = cell.closest("table").tHead.offsetHeight;
  if (inner.left < outer.left + heading || inner.right > outer.right) {
    box.scrollLeft += inner.left - outer.left - (outer.width + heading - inner.width) / 2;
  }
  if (inner.top < outer.top + top || inner.bottom > outer.bottom) {
    box.scrollTop += inner.top - outer.top - (outer.height + top - inner.height) / 2;
  }
}
