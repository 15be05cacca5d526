// Tensor memory: where operands of tcgen05.mma lie by CTA, lane and column, and what ld and st move. A layout is
// (row, column) -> (CTA, lane, column, bit) as modes from Python. Knows no page.

import { pointOf, pointsOf } from "./strides.js";

function counted(size, at) {
  return Array.from({ length: size }, (_, index) => at(index));
}

// --- operands --------------------------------------------------------------------------------------

// The key of the layout of an operand: what Python's tables call it.
export function keyOfLayout(form, operand, { m, n, type, first }) {
  const letter = letterOf(form, m);
  return {
    d: `d ${letter} ${n}`,
    a: `a ${letter} ${type.stored_k} ${type.storage}`,
    e: `e ${letter} ${type.storage} ${type.chunks}`,
    scale_a: `scale_a ${m} ${type.factors} ${form.ctas} ${first}`,
    scale_b: `scale_b ${n} ${type.factors} ${letter} ${first}`,
  }[operand];
}

export function letterOf(form, m) {
  return form.m.find(([one]) => one === m)[1];
}

export function operandsOf(form, type) {
  return ["d", "a", ...(form.sparse ? ["e"] : []), ...(type.factors ? ["scale_a", "scale_b"] : [])];
}

// Where element (row, column) lies, in its first copy: { cta, lane, cell, bit }.
export function cellOf(layout, row, column) {
  const [down, across] = [pointOf(layout.rows, row, 4), pointOf(layout.columns, layout.first + column, 4)];
  const [cta, lane, cell, bit] = down.map((step, at) => step + across[at]);
  return { cta, lane, cell, bit };
}

// What every cell holds, by "cta/lane/cell": { copy, elements: [{ row, column, bit }] }, low bits first.
export function heldIn(layout) {
  const held = new Map();
  const down = counted(layout.shape[0], (row) => pointOf(layout.rows, row, 4));
  const across = counted(layout.shape[1], (column) => pointOf(layout.columns, layout.first + column, 4));
  layout.copies.forEach((more, copy) => down.forEach((one, row) => across.forEach((two, column) => {
    const key = `${one[0] + two[0]}/${one[1] + two[1] + more}/${one[2] + two[2]}`;
    if (!held.has(key)) held.set(key, { copy, elements: [] });
    held.get(key).elements.push({ row, column, bit: one[3] + two[3] });
  })));
  for (const { elements } of held.values()) elements.sort((one, two) => one.bit - two.bit);
  return held;
}

// Cells that go on alike, as rectangles: { cta, lane, lanes, cell, cells, copy, elements }, ``elements`` those of the
// first cell. Down, rows go on by one a lane; across, columns by one a cell, where a cell has one element.
export function blocksOf(held) {
  const runs = new Map();
  const open = [...held].map(([key, value]) => [...key.split("/").map(Number), value])
    .sort((one, two) => one[0] - two[0] || one[2] - two[2] || one[1] - two[1]);
  const columns = [];
  for (const [cta, lane, cell, { copy, elements }] of open) {
    const sign = elements.map(({ row, column, bit }) => `${row - lane},${column},${bit}`).join(" ");
    const last = columns.at(-1);
    const goesOn = last && last.cta === cta && last.cell === cell && last.copy === copy && last.sign === sign
      && last.lane + last.lanes === lane;
    if (goesOn) last.lanes += 1;
    else columns.push({ cta, lane, lanes: 1, cell, cells: 1, copy, elements, sign });
  }
  return columns.filter((one) => !joined(runs, one));
}

// Whether a run of lanes was added to the block on its left.
function joined(runs, one) {
  const key = `${one.cta}/${one.lane}/${one.lanes}/${one.copy}`;
  const left = runs.get(key);
  const [own, other] = [one.elements, left?.elements ?? []];
  const beside = left && left.cell + left.cells === one.cell && own.length === 1 && other.length === 1
    && other[0].row === own[0].row && other[0].column + left.cells === own[0].column;
  if (beside) left.cells += 1;
  else runs.set(key, one);
  return Boolean(beside);
}

export function spanOf(first, last, name) {
  return first === last ? `${name} ${first}` : `${name}s ${first}..${last}`;
}

// Lines of text on a block: its rows, and their columns; of several groups of rows, each on a line.
export function blockLines({ lanes, cells, elements }, names = ["row", "column"]) {
  const groups = Map.groupBy(elements, ({ row }) => row);
  return [...groups].flatMap(([row, own]) => {
    const last = own.at(-1).column + cells - 1;
    return [spanOf(row, row + lanes - 1, names[0]), spanOf(own[0].column, last, names[1])];
  });
}

// --- ld and st -------------------------------------------------------------------------------------

// Where each register of each thread lies: [{ thread, register, lane, column }], from the lane and column addressed.
export function transferred(shape, count, offset = 0) {
  const threads = pointsOf(shape.thread, 32, 2);
  const registers = pointsOf(shape.register, shape.registers, 2);
  return threads.flatMap(([lane, column], thread) => {
    const right = shape.split && thread >= 16 ? offset : 0;
    return counted(count, (again) => registers.map(([down, across], at) => ({
      thread, register: again * shape.registers + at, lane: lane + down,
      column: column + across + again * shape.repeat + right,
    }))).flat();
  });
}
