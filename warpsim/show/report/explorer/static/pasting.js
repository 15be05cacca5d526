// Words in any print, and what they hold for a form: registers of an operand, lane by lane, or metadata.

import { byId, make, table } from "./elements.js";
import { describedWords } from "./described_words.js";
import { decode } from "./numbers.js";
import { hexadecimal, shortText } from "./texts.js";

const MOST = 1 << 16; // words of one text

// A number that is not a label: 0x…, a decimal (perhaps negative), or bare hexadecimal digits of a whole word.
const NUMBER = /(?<![\w.%])(?:0[xX]([0-9a-fA-F]{1,16})|(-?\d+)|([0-9a-fA-F]{8}|[0-9a-fA-F]{16}))[uUlL]*(?![\w.])/g;
// Labels of prints: "T5:", "lane 5:", "tid=5", "%a0 =", "a[3]:", "r0=".
const LABEL = /\b(?:lane|thread|tid|T)\s*[=:]?\s*\d+\b\s*[:=,]?|%?\b[a-z]\w*\s*\[\s*\d+\s*\]\s*[:=]?|%\w+\s*[:=]?|\b[a-z_]\w*\s*=/gi;
const LANE = /^\s*(?:lane|thread|tid|T)\s*[=:]?\s*(\d+)\b/i;

// Whether all bare numbers of a text are eight (or sixteen) hexadecimal digits: a dump of words, not of decimals.
function isDump(text) {
  const bare = text.split(/[\s,;{}()[\]]+/).filter((one) => /^[0-9a-fA-F]+$/.test(one));
  return bare.length > 0 && bare.every((one) => one.length === 8 || one.length === 16);
}

// The numbers of a text in their order, as BigInts of so many bits; throws a RangeError for one that is too wide.
function numbersOf(text, bits, dump) {
  return [...text.matchAll(NUMBER)].map(([, hex, decimal, bare]) => {
    const digits = hex ?? bare ?? (dump ? decimal : null);
    const value = digits ? BigInt(`0x${digits}`) : BigInt(decimal);
    if (value >= 1n << BigInt(bits) || value < -(1n << BigInt(bits - 1))) {
      throw new RangeError(`${digits ? `0x${digits}` : decimal} does not fit in ${bits} bits`);
    }
    return BigInt.asUintN(bits, value);
  });
}

// Words by lane where every line with numbers names its lane, otherwise in their order; { words, error }. Lanes that
// no line names are left out of the array.
export function wordsIn(text, bits = 32, registers = 1) {
  const lines = text.split("\n").map((line) => ({ lane: line.match(LANE)?.[1], rest: line.replace(LABEL, " ") }));
  const dump = isDump(lines.map(({ rest }) => rest).join(" "));
  try {
    const rows = lines.map(({ lane, rest }) => ({ lane, words: numbersOf(rest, bits, dump) }))
      .filter(({ words }) => words.length);
    const all = rows.flatMap(({ words }) => words);
    if (!all.length) return { words: [], error: "no number is in this text" };
    if (all.length > MOST) return { words: [], error: `${all.length} words: at most ${MOST}` };
    if (rows.some(({ lane }) => lane === undefined || Number(lane) > 255)) return { words: all, error: null };
    const placed = [];
    for (const { lane, words } of rows) words.forEach((word, at) => { placed[Number(lane) * registers + at] = word; });
    return { words: placed, error: null };
  } catch (error) {
    if (error instanceof RangeError) return { words: [], error: error.message };
    throw error;
  }
}

// How many words each lane has, and how many lanes: those of an operand in registers.
export function sizeOf(form, operand) {
  return { lanes: form.lanes, registers: form.registers[operand] };
}

// What words hold: { cells: [{ place, code, text }], note }. Words are those of lane 0 first, then of lane 1 …; cells
// without words stay empty. Metadata: the bits of each chunk, and the columns that they keep.
export function held(form, operand, words, { selector = 0, ids = {}, product = 0 } = {}) {
  const { lanes, registers } = sizeOf(form, operand);
  const places = form.places(operand, selector, ids).filter((place) => place.product === product);
  const cells = places.map((place) => {
    const word = words[place.lane * registers + place.register];
    if (word === undefined) return { place, text: "", code: null };
    const code = (word >> BigInt(place.low)) & ((1n << BigInt(place.bits)) - 1n);
    return { place, code, text: textOf(form, operand, place, code) };
  });
  const needed = lanes * registers;
  return { cells, note: noteOf(Object.keys(words).length, needed, registers, lanes) };
}

function textOf(form, operand, place, code) {
  if (operand === "e") return fieldText(form, place, code);
  const name = operand.startsWith("scale_") ? form.scale.type : form.types[operand];
  const format = form.formats[name];
  return format ? shortText(decode(code, format)) : hexadecimal(code, place.bits);
}

// "1101 1,3": the bits, and the columns of the chunk that they keep.
function fieldText(form, place, code) {
  const { pattern } = form;
  const binary = code.toString(2).padStart(place.bits, "0");
  const each = place.bits / pattern.stored;
  if (!Number.isInteger(each) || 2 ** each !== pattern.chunk) return binary;
  const first = pattern.chunk * place.column;
  const kept = Array.from({ length: pattern.stored }, (_, at) =>
    first + Number((code >> BigInt(at * each)) & ((1n << BigInt(each)) - 1n)));
  return `${binary} ${kept.join(",")}`;
}

function noteOf(given, needed, registers, lanes) {
  const whole = `${lanes} lanes of ${registers} register${registers === 1 ? "" : "s"}`;
  if (given === needed) return `${given} words: ${whole}`;
  if (given > needed) return `${given} words, but the operand has ${needed} (${whole}): the first ${needed} are shown`;
  return `${given} of ${needed} words (${whole}): cells of the others are empty`;
}

// The operand that the text names, as "%b0 =" or "b[0]:" does, or else the first that has so many words; null where
// nothing fits.
export function operandOf(form, text) {
  const named = form.operands.filter((one) => new RegExp(`(?<![\\w])%?${one}(?:\\d+|\\[\\d+\\])?\\s*[=:]`, "i").test(text));
  if (named.length === 1) return named[0];
  const fits = (one) => {
    const { words, error } = wordsIn(text, "abcd".includes(one) ? form.register_bits : 32, form.registers[one]);
    return !error && Object.keys(words).length === form.lanes * form.registers[one];
  };
  return form.operands.find(fits) ?? null;
}

// --- the box ---------------------------------------------------------------------------------------

const DESCRIPTORS = { words64: "descriptors, 64 bits", words32: "instruction descriptors, 32 bits" };
const NAMES = { e: "metadata", scale_a: "scales of A", scale_b: "scales of B", ...DESCRIPTORS };

// The box: operands to choose from, and the matrix that the pasted words hold; or descriptors, one by one.
export function showPasted({ form, state, catalogue, views }) {
  const select = byId("paste-operand");
  const choices = [...form.operands, ...Object.keys(DESCRIPTORS)];
  const text = byId("paste-text").value;
  const chosen = select.dataset.chosen ?? operandOf(form, text) ?? select.value;
  const now = choices.includes(chosen) ? chosen : choices[0];
  select.replaceChildren(...choices.map((one) =>
    make("option", { value: one, selected: one === now }, NAMES[one] ?? one.toUpperCase())));
  const [place, note] = [byId("paste-matrix"), byId("paste-note")];
  place.replaceChildren();
  if (!text.trim()) return void (note.textContent = "");
  if (now in DESCRIPTORS) return showDescribed(text, now === "words64" ? 64 : 32, catalogue.words, views);
  const bits = "abcd".includes(now) ? form.register_bits : 32;
  if (bits === 32 && wordsIn(text, bits).error?.includes("does not fit")) {
    const wide = wordsIn(text, 64);
    if (!wide.error && describedWords(catalogue.words, 64, wide.words).some(({ trouble }) => !trouble)) {
      return showDescribed(text, 64, catalogue.words, views);
    }
  }
  const { words, error } = wordsIn(text, bits, form.registers[now]);
  const product = form.products > 1 ? state.part : 0;
  const found = held(form, now, words, { selector: state.selector, ids: state.ids, product });
  note.textContent = error ?? found.note;
  if (!error) place.replaceChildren(matrixOf(found.cells));
  return undefined;
}

// A line for each reading of each word, with a button that opens it in the view of descriptors.
function showDescribed(text, bits, words, views) {
  const found = wordsIn(text, bits);
  const readings = found.error ? [] : describedWords(words, bits, found.words);
  byId("paste-note").textContent = found.error
    ?? `${found.words.length} descriptor${found.words.length > 1 ? "s" : ""} of ${bits} bits`;
  if (found.error) return;
  const open = (kind, of, word) => {
    const button = make("button", { type: "button" }, "Open");
    button.addEventListener("click", () => views.showWord(kind, word, of));
    return button;
  };
  const rows = readings.map(({ word, kind, of, name, said, trouble }) => ({
    cells: [word, name, trouble || said, open(kind, of, word)], class: trouble ? "bad" : null,
  }));
  byId("paste-matrix").replaceChildren(
    table("What the words say", ["word", "descriptor of", "what it says", ""], rows, { className: "plain wrapped told" }));
}

function matrixOf(cells) {
  const rows = new Map();
  for (const cell of cells) {
    if (!rows.has(cell.place.row)) rows.set(cell.place.row, []);
    rows.get(cell.place.row)[cell.place.column] = cell;
  }
  const columns = Math.max(...cells.map(({ place }) => place.column)) + 1;
  const heading = Array.from({ length: columns }, (_, at) => String(at));
  const lines = [...rows].sort(([one], [two]) => one - two).map(([row, own]) => ({
    cells: [String(row), ...heading.map((_, at) => own[at]?.text ?? "")],
  }));
  return table("What the words hold", ["", ...heading], lines);
}

// Go to the box from any view, with a text to put in if there is one.
export function goToPaste(page, text = null) {
  if (page.views.now !== "forms") page.views.show("forms");
  const box = byId("paste-text");
  if (text !== null) box.value = text;
  showPasted(page);
  byId("paste").scrollIntoView({ block: "start" });
  box.focus({ preventScroll: true });
}

export function listenToPaste(page) {
  byId("paste-text").addEventListener("input", () => showPasted(page));
  byId("paste-operand").addEventListener("change", ({ target }) => {
    target.dataset.chosen = target.value;
    showPasted(page);
  });
  byId("to-paste").addEventListener("click", () => goToPaste(page));
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain").trim();
    if (!text || event.target.closest?.("input, textarea, dialog")) return;
    event.preventDefault();
    goToPaste(page, text);
  });
}
