// What is pointed at, in words: pieces { text, operand, strong, hint } for the line at the foot of the page.

import { bitRange, hex, span } from "./figures.js";
import { heldBy, placeOf } from "./lights.js";

const NAMES = { e: "metadata", scale_a: "scale of A", scale_b: "scale of B" };

function placeText(form, place) {
  return `T${place.lane} ${form.registerName(place.operand, place.register)}${bitRange(place)}`;
}

function elementName(operand, row, column) {
  return `${operand.toUpperCase()}[${row},${column}]`;
}

// Lanes as T0..T3 where they follow one another, otherwise listed.
function lanesText(places) {
  const lanes = [...new Set(places.map((place) => place.lane))].sort((x, y) => x - y);
  const close = lanes.at(-1) - lanes[0] === lanes.length - 1;
  if (lanes.length > 2 && close) return `T${lanes[0]}..T${lanes.at(-1)}`;
  return lanes.length > 8 ? `${lanes.length} lanes` : lanes.map((lane) => `T${lane}`).join(",");
}

// --- elements --------------------------------------------------------------------------------------

function sharedPieces(form, state, operand, row, column) {
  const tile = form.tile(operand, state.swizzle, state.majors[operand]);
  const name = { text: elementName(operand, row, column), operand, strong: true };
  if (!tile || tile.error) return [name, { text: "in shared memory" }];
  const address = form.address(tile, ...(operand === "a" ? [row, column] : [column, row]));
  const bank = Math.floor(address / 4) % 32;
  return [
    name, { text: `byte ${hex(address)} of the packed tile in shared memory`, strong: true },
    { text: `bank ${bank}, ${tile.major}-major, swizzle ${tile.swizzle}`, hint: true },
  ];
}

function sourcesPieces(form, state, row, column) {
  const own = (place) => form.products === 1 || place.product === state.part;
  const line = (operand, test) =>
    form.places(operand, state.selector, state.ids).filter((place) => own(place) && test(place));
  const pieces = [{ text: "sums", hint: true }];
  if (form.shared) {
    const rows = state.shared ? `A row ${row} and ` : "";
    pieces.push({ text: `${rows}B column ${column} of shared memory`, hint: true });
  }
  if (form.inRegisters("a") && !(form.shared && state.shared)) {
    pieces.push({ text: `A row ${row}: ${lanesText(line("a", (place) => place.row === row))}`, operand: "a" });
  }
  if (form.inRegisters("b")) {
    const lanes = lanesText(line("b", (place) => place.column === column));
    pieces.push({ text: `B column ${column}: ${lanes}`, operand: "b" });
  }
  if (form.sparse) {
    pieces.push({ text: `metadata: ${lanesText(line("e", (place) => place.row === row))}`, operand: "e" });
  }
  return pieces;
}

function chunkPieces(form, state, row, column) {
  const { chunk, stored } = form.pattern;
  const at = Math.floor(column / stored);
  const field = placeOf(form, state, "e", row, at);
  return [
    { text: `stored column ${column}, one of k = ${span(chunk * at, chunk)}: which, says`, hint: true },
    { text: placeText(form, field), operand: "e" },
  ];
}

function elementPieces(form, state, operand, row, column) {
  const inShared = form.shared && (operand === "b" || (operand === "a" && state.shared));
  if (inShared) return sharedPieces(form, state, operand, row, column);
  const place = placeOf(form, state, operand, row, column);
  const pieces = [
    { text: elementName(operand, row, column), operand, strong: true },
    { text: placeText(form, place), strong: true },
    { text: `element ${operand}${place.index}, .${form.types[operand]}`, hint: true },
  ];
  if (operand === "d") return [...pieces, ...sourcesPieces(form, state, row, column)];
  return operand === "a" && form.sparse ? [...pieces, ...chunkPieces(form, state, row, column)] : pieces;
}

function fieldPieces(form, state, row, chunk) {
  const place = placeOf(form, state, "e", row, chunk);
  const { stored, chunk: width } = form.pattern;
  return [
    { text: placeText(form, place), operand: "e", strong: true },
    { text: `metadata of row ${row}, columns ${span(width * chunk, width)}:` },
    { text: `says where in them A[${row},${span(stored * chunk, stored)}] stood` },
  ];
}

function scalePieces(form, state, operand, row, column) {
  const place = placeOf(form, state, operand, row, column);
  const of = operand === "scale_a" ? `row ${row}, chunk ${column}` : `column ${column}, chunk ${row}`;
  return [
    { text: placeText(form, place), operand, strong: true },
    { text: `${NAMES[operand]}, ${of} along k, .${form.scale.type}` },
  ];
}

// --- lanes and words -------------------------------------------------------------------------------

function heldText(places) {
  const text = places.slice(0, 6).map((place) => `[${place.row},${place.column}]`).join(" ");
  return places.length > 6 ? `${text} … (${places.length})` : text;
}

function heldPieces(form, state, key) {
  const [kind, ...rest] = key.split("/");
  const title = {
    lane: () => `T${rest[0]}`,
    word: () => `T${rest[1]} ${form.registerName(rest[0], rest[2])}`,
    register: () => `${form.registerName(rest[0], rest[1])} of every lane`,
  }[kind]();
  const groups = Map.groupBy(heldBy(form, state, key), (place) => place.operand);
  const pieces = [...groups].map(([operand, places]) =>
    ({ text: `${operand === "e" ? "metadata" : operand.toUpperCase()} ${heldText(places)}`, operand }));
  return [{ text: title, strong: true }, ...(pieces.length ? pieces : [{ text: "not read", hint: true }])];
}

function tilePieces(form, side, mn, k, state) {
  const tile = form.tile(side, state.swizzle, state.majors[side]);
  const address = form.address(tile, mn, k * tile.elements);
  const name = side === "a" ? "m" : "n";
  const bank = Math.floor(address / 4) % 32;
  return [
    { text: `bytes ${hex(address)}..${hex(address + 15)}`, operand: side, strong: true },
    { text: `${side.toUpperCase()}, ${name} = ${mn}, k = ${k * tile.elements} and on; banks ${bank}..${bank + 3}` },
  ];
}

export function say(form, state, key) {
  const [kind, ...rest] = key.split("/");
  if (["lane", "word", "register"].includes(kind)) return heldPieces(form, state, key);
  if (kind === "tile") return tilePieces(form, rest[0], Number(rest[1]), Number(rest[2]), state);
  const [row, column] = rest.map(Number);
  if (kind === "e") return fieldPieces(form, state, row, column);
  if (kind.startsWith("scale_")) return scalePieces(form, state, kind, row, column);
  return elementPieces(form, state, kind, row, column);
}
