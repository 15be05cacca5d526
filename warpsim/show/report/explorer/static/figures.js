// The figures of a form, as in the PTX manual: boxes of elements that lie side by side in one lane, between
// labelled rows and columns. Data only; drawing.js shows them, writings.js writes them down.
//
// A figure: { name, title, corner, cells, rows, columns, rowLabels, columnLabels }. A cell: { text, lines, lane,
// register, places, row, height, column, width }, in rows and columns of its matrix.

const WARP = 32;

function range(start, end) {
  return Array.from({ length: end - start }, (_, index) => start + index);
}

export function span(first, count) {
  return count > 1 ? `${first}..${first + count - 1}` : String(first);
}

export function bitRange(place) {
  return `[${place.low + place.bits - 1}..${place.low}]`;
}

// A figure from its cells: the rows and columns that they cover, in order.
export function figureOf(name, title, corner, cells) {
  const spans = (first, count) =>
    [...new Map(cells.map((cell) => [cell[first], [cell[first], cell[count]]])).values()].sort((x, y) => x[0] - y[0]);
  const rows = spans("row", "height");
  const columns = spans("column", "width");
  return {
    name, title, corner, cells, rows, columns,
    rowLabels: rows.map(([first, count]) => span(first, count)),
    columnLabels: columns.map(([first, count]) => span(first, count)),
  };
}

// Lines of cells, an empty one null: what a table of the figure shows.
export function gridOf(figure) {
  const at = new Map(figure.cells.map((cell) => [`${cell.row}/${cell.column}`, cell]));
  return figure.rows.map(([row]) => figure.columns.map(([column]) => at.get(`${row}/${column}`) ?? null));
}

// --- fragments -------------------------------------------------------------------------------------

// What is in a part: the places of a warp of a warpgroup, or of one of several products.
function inPart(form, part) {
  if (form.products > 1) return (place) => place.product === part;
  return (place) => form.warps === 1 || Math.floor(place.lane / WARP) === part;
}

export function partName(form, part) {
  if (form.products > 1) {
    const low = 4 * part;
    return `product ${part} (lanes ${low}..${low + 3} and ${low + 16}..${low + 19})`;
  }
  return `warp ${part} (lanes ${WARP * part}..${WARP * part + WARP - 1})`;
}

function partSuffix(form, part) {
  return form.parts > 1 ? `, ${partName(form, part)}` : "";
}

function continues(run, place) {
  const last = run.at(-1);
  const step = [place.row - last.row, place.column - last.column];
  if (place.lane !== last.lane || step[0] + step[1] !== 1 || step[0] * step[1] !== 0) return false;
  if (run.length === 1) return true;
  const before = run.at(-2);
  return step[0] === last.row - before.row && step[1] === last.column - before.column;
}

// Consecutive elements of a lane that continue in one direction.
export function runsOf(places) {
  const runs = [];
  for (const place of places) {
    if (runs.length && continues(runs.at(-1), place)) runs.at(-1).push(place);
    else runs.push([place]);
  }
  return runs;
}

function runCell(run) {
  const [first, last] = [run[0], run.at(-1)];
  const names = run.map((place) => `${place.operand}${place.index}`);
  const listed = names.length <= 2 ? names.join(",") : `${names[0]}..${names.at(-1)}`;
  const short = names.length === 1 ? names[0] : `${names[0]}${names.length === 2 ? "," : "–"}${last.index}`;
  return {
    text: `T${first.lane}:{${listed}}`,
    lines: [`T${first.lane}`, short],
    lane: first.lane,
    register: first.register,
    places: run,
    row: first.row,
    height: last.row - first.row + 1,
    column: first.column,
    width: last.column - first.column + 1,
  };
}

// A cell of a sparse A over the whole chunks that its stored elements come from.
function logicalCell(form, cell) {
  const { chunk, stored } = form.pattern;
  const first = Math.floor(cell.column / stored);
  const last = Math.floor((cell.column + cell.width - 1) / stored);
  return { ...cell, column: chunk * first, width: chunk * (last - first + 1) };
}

function matrixTitle(form, operand) {
  return `${operand.toUpperCase()} of ${form.sparse ? "sparse " : ""}${form.size}, .${form.types[operand]}`;
}

// A, B, C or D in registers; ``logical`` for a sparse A over its logical columns.
export function matrixFigure(form, operand, part, logical = false) {
  const places = form.places(operand).filter(inPart(form, part));
  const cells = runsOf(places).map(runCell);
  const title = matrixTitle(form, operand);
  if (operand !== "a" || !form.sparse) {
    return figureOf(operand, title + partSuffix(form, part), "row \\ column", cells);
  }
  const more = logical ? ", logical columns that the elements come from" : ", stored columns";
  const shown = logical ? cells.map((cell) => logicalCell(form, cell)) : cells;
  return figureOf("a", title + more + partSuffix(form, part), "row \\ column", shown);
}

// --- metadata and scales ---------------------------------------------------------------------------

function fieldCell(place, row, column, width, text, lines) {
  return {
    text, lines, lane: place.lane, register: place.register, places: [place], row, height: 1, column, width,
  };
}

function metadataTitle(form, selector) {
  return `Metadata of sparse ${form.size}, .${form.types.a}, selector ${selector}`;
}

function chunkCells(form, selector, part) {
  const width = form.pattern.chunk;
  return form.places("e", selector).filter(inPart(form, part)).map((place) =>
    fieldCell(place, place.row, width * place.column, width, `T${place.lane}:${bitRange(place)}`,
      [`T${place.lane}`, bitRange(place)]));
}

// Over the chunks of A: which lane's bits describe each.
export function chunksFigure(form, selector, part) {
  const title = `${metadataTitle(form, selector)}: the bits that describe each chunk of A`;
  return figureOf("e", title + partSuffix(form, part), "row \\ columns", chunkCells(form, selector, part));
}

// A line for each word that is read, its highest bits first.
export function wordsFigure(form, selector, part) {
  const chunks = chunkCells(form, selector, part);
  const lanes = [...new Set(chunks.map((cell) => cell.lane))].sort((x, y) => x - y);
  const lows = [...new Set(chunks.map((cell) => cell.places[0].low))].sort((x, y) => y - x);
  const cells = chunks.map((cell) => {
    const [rows, columns] = [span(cell.row, 1), span(cell.column, cell.width)];
    const at = [lanes.indexOf(cell.lane), lows.indexOf(cell.places[0].low)];
    return fieldCell(cell.places[0], at[0], at[1], 1, `[${rows}][${columns}]`, [`row ${rows}`, columns]);
  });
  const figure = figureOf(
    "words", `${metadataTitle(form, selector)}: the chunks [row][columns] that each word describes`
      + partSuffix(form, part), "word \\ bits", cells);
  const bits = chunks[0].places[0].bits;
  figure.rowLabels = lanes.map((lane) => `T${lane} %e`);
  figure.columnLabels = lows.map((low) => `[${low + bits - 1}..${low}]`);
  return figure;
}

export function scaleFigure(form, operand, ids) {
  const side = operand.at(-1);
  const cells = form.places(operand, 0, ids).map((place) =>
    fieldCell(place, place.row, place.column, 1, `T${place.lane}:${bitRange(place)}`,
      [`T${place.lane}`, bitRange(place)]));
  const width = form.k / form.scaleTable(side).chunks;
  const title = `Scales of ${side.toUpperCase()}, ${form.size}, .${form.scale.type}: chunks of ${width} along k`;
  return figureOf(operand, title, side === "a" ? "row \\ chunk" : "chunk \\ column", cells);
}

// --- registers -------------------------------------------------------------------------------------

// What every lane holds: a line for each lane, a column for each register.
export function registersFigure(form, part, selector, ids) {
  const columns = form.operands.flatMap((operand) =>
    range(0, form.registers[operand]).map((register) => form.registerName(operand, register)));
  const at = new Map(columns.map((name, index) => [name, index]));
  const words = new Map();
  for (const operand of form.operands) {
    for (const place of form.places(operand, selector, ids).filter(inPart(form, part))) {
      const key = `${place.lane}/${at.get(form.registerName(operand, place.register))}`;
      if (!words.has(key)) words.set(key, []);
      words.get(key).push(place);
    }
  }
  const lanes = [...new Set([...words.keys()].map((key) => Number(key.split("/")[0])))].sort((x, y) => x - y);
  const cells = [...words].map(([key, places]) => wordCell(lanes, ...key.split("/").map(Number), places));
  const title = `Registers of ${form.size}${partSuffix(form, part)}`;
  const figure = figureOf("registers", title, "lane \\ register", cells);
  figure.rowLabels = figure.rows.map(([row]) => `T${lanes[row]}`);
  figure.columnLabels = figure.columns.map(([column]) => columns[column]);
  return figure;
}

function wordCell(lanes, lane, column, places) {
  const ordered = [...places].sort((x, y) => x.low - y.low || x.row - y.row);
  const [first, last] = [ordered[0], ordered.at(-1)];
  const rows = first.row === last.row ? String(first.row) : `${first.row}:${last.row}`;
  const columns = first.column === last.column ? String(first.column) : `${first.column}:${last.column}`;
  return {
    text: `[${rows}][${columns}]`, lines: [`${rows},${columns}`], lane, register: first.register,
    places: ordered, row: lanes.indexOf(lane), height: 1, column, width: 1,
  };
}

const MOST = 16; // registers of an operand that the pad has

// The lanes of a part by group and thread, and below them the registers: cells with the key of what they stand for.
export function padFigure(form, part) {
  const first = form.warps > 1 ? WARP * part : 0;
  const box = (row, column, text, key, more) => ({
    text, lines: [text], lane: 0, register: 0, places: [], row, height: 1, column, width: 1, key, ...more,
  });
  const lanes = range(0, WARP).map((lane) =>
    box(lane % 4, Math.floor(lane / 4), `T${first + lane}`, `lane/${first + lane}`, { lane, only: "lane" }));
  const lines = form.operands.filter((operand) => form.registers[operand] <= MOST).flatMap((operand) =>
    range(0, Math.ceil(form.registers[operand] / 8)).map((line) => [operand, line]));
  const registers = lines.flatMap(([operand, line], row) =>
    range(8 * line, Math.min(form.registers[operand], 8 * line + 8)).map((register) =>
      box(row + 5, register % 8, form.registerName(operand, register).replace("scale_", "s"),
        `register/${operand}/${register}`, { register, only: "register" })));
  const names = { e: "E", scale_a: "SA", scale_b: "SB" };
  const figure = figureOf("pad", "Lanes and registers", "", [...lanes, ...registers]);
  const nameOf = ([operand]) => names[operand] ?? operand.toUpperCase();
  figure.rowLabels = figure.rows.map(([row]) => (row < 4 ? `t${row}` : nameOf(lines[row - 5])));
  figure.columnLabels = range(0, 8).map((group) => `g${group}`);
  return figure;
}

// --- shared memory ---------------------------------------------------------------------------------

const UNIT = 16; // bytes that no swizzle separates

export function hex(address) {
  return `0x${address.toString(16).padStart(4, "0")}`;
}

// A packed tile in boxes of 16 bytes, along K or along M or N as it is stored. Places are { operand: "shared/a", mn,
// k, address }, one for each box.
export function tileFigure(form, operand, tile) {
  const step = UNIT / tile.size;
  const [mn, k] = tile.extent;
  const [lines, length] = tile.major === "K" ? [mn, k] : [k, mn];
  const cells = range(0, lines).flatMap((line) => range(0, length / step).map((box) =>
    tileCell(form, operand, tile, line, box, step)));
  const names = ["k", operand === "a" ? "m" : "n"];
  const [along, name] = tile.major === "K" ? names : names.toReversed();
  const title = `${operand.toUpperCase()} of ${form.size}, .${form.types[operand]}, in shared memory, `
    + `${tile.major}-major, swizzle ${tile.swizzle}: addresses of 16 bytes`;
  return figureOf("tile", title, `${name} \\ ${along}`, cells);
}

function tileCell(form, operand, tile, line, box, step) {
  const [mn, k] = tile.major === "K" ? [line, box * step] : [box * step, line];
  const address = form.address(tile, mn, k * tile.elements);
  const bank = Math.floor(address / UNIT) % 8;
  return {
    text: hex(address), lines: [hex(address)], lane: 4 * bank, register: bank, address,
    places: [{ operand: "tile", side: operand, row: mn, column: k, address }],
    row: line, height: 1, column: box * step, width: step,
  };
}

// The part of a packed tile that the instruction reads, over the matrix: A is m x k, B is k x n.
export function sharedFigure(form, operand, tile) {
  const [rows, columns] = form.extent(operand);
  const along = (UNIT / tile.size) * tile.elements;
  const inRows = (tile.major === "K") === (operand === "b"); // boxes stand upright
  const [height, width] = inRows ? [along, 1] : [1, along];
  const cells = range(0, Math.ceil(rows / height)).flatMap((line) => range(0, Math.ceil(columns / width)).map((box) =>
    sharedCell(form, operand, tile, [line * height, box * width], [height, width], [rows, columns])));
  const title = `${matrixTitle(form, operand)}, in shared memory, ${tile.major}-major, swizzle ${tile.swizzle}`;
  return figureOf(operand, title, "row \\ column", cells);
}

function sharedCell(form, operand, tile, [row, column], [height, width], [rows, columns]) {
  const places = range(row, Math.min(row + height, rows)).flatMap((y) =>
    range(column, Math.min(column + width, columns)).map((x) => {
      const address = form.address(tile, ...(operand === "a" ? [y, x] : [x, y]));
      return { operand, row: y, column: x, address, shared: true };
    }));
  const { address } = places[0];
  const bank = Math.floor(address / UNIT) % 8;
  return {
    text: hex(address), lines: [hex(address)], lane: 4 * bank, register: bank, places,
    row, height: Math.min(height, rows - row), column, width: Math.min(width, columns - column),
  };
}
