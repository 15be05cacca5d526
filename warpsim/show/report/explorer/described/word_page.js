// The view of descriptors: a word and its fields, each edited in place, and what the word addresses or says.

import { choice } from "./controls.js";
import { copyText, notice } from "./copying.js";
import { Panel } from "./drawing.js";
import { byId, make, table } from "./elements.js";
import { figureOf, hex } from "./figures.js";
import { wordsIn } from "./pasting.js";
import {
  boxesOf, edited, formsOf, instructionTrouble, kindOf, productText, readInstruction, readMatrix, tileOf, touched,
  troubleOf, wordText,
} from "./words.js";

const START = { wgmma: 0x4000004000010040n, tcgen05: 0x4000404000010040n, instruction: 0x08100010n };
const NAMES = [["wgmma", "wgmma"], ["tcgen05", "tcgen05"], ["instruction", "tcgen05 instruction"]];
const ROLES = ["a", "d", "b", "c", "e", "scale_a"];
const PLACES = 232448; // bytes of shared memory that a CTA can have

export class WordPage {
  constructor(words, page) {
    this.words = words;
    this.page = page;
    this.state = { kind: "wgmma", of: "f16", word: START.wgmma, major: "K", bits: 16, rows: 64, k: 64 };
    this.others = [];
  }

  get bits() {
    return this.state.kind === "instruction" ? 32 : 64;
  }

  get table() {
    const { kind, of } = this.state;
    return kind === "instruction" ? this.words.instruction[of] : this.words.matrix[kind];
  }

  get address() {
    const { kind, of, word, major, bits, rows, k } = this.state;
    const own = kind === "instruction" ? { of } : { major, bits, rows, k };
    return { kind, word: wordText(word, this.bits), ...own };
  }

  // Choices of an address, or of a button; what is none is left as it is.
  recall(given) {
    const { state } = this;
    const { kind } = given;
    if (NAMES.some(([name]) => name === kind)) Object.assign(state, { kind, word: START[kind] });
    if (given.of in this.words.instruction) state.of = given.of;
    const { words, error } = wordsIn(given.word ?? "", this.bits);
    if (!error) [state.word] = words;
    if (["K", "MN"].includes(given.major)) state.major = given.major;
    for (const name of ["bits", "rows", "k"]) state[name] = Number(given[name]) || state[name];
  }

  set(changes) {
    if (changes.kind && changes.kind !== this.state.kind) Object.assign(this.state, { word: START[changes.kind] });
    Object.assign(this.state, changes);
    if (this.state.bits === 4 && (this.state.kind === "wgmma" || this.state.major === "MN")) this.state.bits = 8;
    this.draw();
  }

  // --- the page -----------------------------------------------------------------------------------

  draw() {
    const { state } = this;
    const kinds = choice("word-kind", "Descriptor of", NAMES, state.kind, (kind) => this.set({ kind }));
    const option = (one) => make("option", { value: one, selected: one === state.of }, `kind::${one}`);
    const select = make(
      "select", { id: "word-of", "aria-label": "Kind" }, Object.keys(this.words.instruction).map(option));
    select.addEventListener("change", () => this.set({ of: select.value }));
    byId("view-words").replaceChildren(
      make("section", { class: "head" }, make("h2", {}, this.title()),
        make("div", { class: "row" }, kinds, ...(state.kind === "instruction" ? [select] : []))),
      make("section", { class: "card" }, this.wordRow(),
        make("p", { id: "word-trouble", class: "failure", role: "status" }),
        make("div", { id: "word-others", class: "row" }),
        make("div", { id: "bits", role: "group", "aria-label": "Bits" }), this.fieldTable()),
      make("section", { class: "card", id: "word-tile" }),
    );
    this.follow();
  }

  title() {
    if (this.state.kind === "instruction") return "Instruction descriptor of tcgen05.mma";
    return this.table.title.replace(/^./, (one) => one.toUpperCase());
  }

  wordRow() {
    const input = make("input", {
      id: "word", type: "text", "aria-label": "Word, in any print", spellcheck: "false", autocomplete: "off",
      value: wordText(this.state.word, this.bits),
    });
    input.addEventListener("input", () => this.typed(input.value));
    input.addEventListener("change", () => { input.value = wordText(this.state.word, this.bits); });
    const copy = make("button", { type: "button" }, "Copy");
    copy.addEventListener("click", async () => {
      notice((await copyText(wordText(this.state.word, this.bits))) ? "Word copied" : "the clipboard refused");
    });
    return make("div", { class: "row" }, make("label", { for: "word" }, "Word"), input, copy,
      make("span", { id: "halves", class: "note" }));
  }

  // A word that was typed or pasted; the others of its text can be chosen. A descriptor of the other instruction is
  // shown as what it is.
  typed(text) {
    const { words, error } = wordsIn(text, this.bits);
    byId("word").toggleAttribute("aria-invalid", Boolean(error));
    if (error) return this.complain(error);
    const [word] = words;
    const { kind } = this.state;
    const other = kind === "instruction" ? kind : kindOf(word);
    this.others = words.length > 1 ? words : [];
    this.state.word = word;
    const whole = /[0-9a-f]{16}/i.test(text); // what is typed in part is not a descriptor of the other yet
    if (whole && other !== kind && troubleOf(this.table, word) && !troubleOf(this.words.matrix[other], word)) {
      this.set({ kind: other, word });
      byId("word").value = text;
      byId("word").focus();
    } else this.follow();
    return undefined;
  }

  complain(text) {
    byId("word-trouble").textContent = text;
    byId("word-trouble").hidden = !text;
  }

  read() {
    const { kind, word, major } = this.state;
    return kind === "instruction" ? readInstruction(this.table, word) : readMatrix(this.table, word, major);
  }

  trouble() {
    const { kind, of, word } = this.state;
    return kind === "instruction" ? instructionTrouble(this.table, word, of) : troubleOf(this.table, word);
  }

  // --- fields -------------------------------------------------------------------------------------

  fieldTable() {
    const rows = this.read().map((field, at) => ({
      "data-field": field.attribute, class: `of-${ROLES[at % ROLES.length]}`,
      cells: [make("span", { class: "name" }, field.name), field.span, make("span", { class: "raw" }),
        this.control(field), make("span", { class: "meaning" })],
    }));
    return table("Fields", ["field", "bits", "raw", "value", "meaning"], rows, { className: "plain wrapped fields" });
  }

  control(field) {
    const label = `${field.name}${field.unit > 1 ? " in bytes" : ""}`;
    const option = ([code, name]) => make("option", { value: code }, name);
    const made = field.codes
      ? make("select", { "aria-label": field.name }, field.codes.map(option))
      : make("input", { type: "number", min: 0, max: field.most, step: field.unit, "aria-label": label });
    made.addEventListener("input", () => this.edit(field, made));
    return made;
  }

  edit(field, control) {
    const value = control.value === "" ? NaN : Number(control.value);
    const word = edited(this.table, this.state.word, field.attribute, value);
    control.toggleAttribute("aria-invalid", word === null);
    if (word === null) {
      const steps = field.unit > 1 ? ` in steps of ${field.unit}` : "";
      this.complain(`${field.name}: expected 0 to ${field.most}${steps}`);
      return;
    }
    this.state.word = word;
    this.follow();
    byId("word").value = wordText(word, this.bits);
  }

  // Everything that a word says, written anew; what is being edited stays as it is.
  follow() {
    const { word } = this.state;
    for (const field of this.read()) this.followField(field);
    this.complain(this.trouble());
    if (document.activeElement !== byId("word")) byId("word").value = wordText(word, this.bits);
    const half = (at) => wordText((word >> BigInt(at)) & 0xffffffffn, 32);
    byId("halves").textContent = this.bits === 64 ? `high ${half(32)}, low ${half(0)}` : "";
    this.drawBits();
    byId("word-others").replaceChildren(...this.others.map((one) => this.other(one)));
    if (this.state.kind === "instruction") this.drawProduct();
    else this.drawTile();
    this.page.remember();
  }

  followField(field) {
    const row = document.querySelector(`#view-words [data-field="${field.attribute}"]`);
    row.querySelector(".raw").textContent = `0x${field.raw.toString(16)}`;
    row.querySelector(".meaning").textContent = field.meaning;
    const control = row.querySelector("input, select");
    if (control.matches("select")) {
      control.querySelector(".unknown")?.remove();
      const known = field.codes.some(([code]) => code === field.value);
      if (!known) control.append(make("option", { value: field.value, class: "unknown" }, `${field.value}: no meaning`));
    }
    if (control !== document.activeElement) control.value = String(field.value);
  }

  other(word) {
    const pressed = { type: "button", "aria-pressed": String(word === this.state.word) };
    const button = make("button", pressed, wordText(word, this.bits));
    button.addEventListener("click", () => {
      this.state.word = word;
      this.follow();
    });
    return button;
  }

  drawBits() {
    const fields = this.read();
    const { word } = this.state;
    const fieldAt = (bit) => fields.findIndex(({ lowest, bits }) => bit >= lowest && bit < lowest + bits);
    const bit = (at) => {
      const field = fieldAt(at);
      const role = field < 0 ? "reserved" : `of-${ROLES[field % ROLES.length]}`;
      const title = `bit ${at}: ${field < 0 ? "reserved" : fields[field].name}`;
      const set = (word >> BigInt(at)) & 1n;
      const edge = at % 8 === 7 ? " byte" : "";
      const named = { type: "button", tabindex: "-1", class: `bit ${role}${edge}`, title, "data-bit": at };
      const button = make("button", named, String(set));
      button.addEventListener("click", () => {
        this.state.word = word ^ (1n << BigInt(at));
        this.follow();
      });
      return button;
    };
    const row = (from) => make("div", { class: "bit-row" }, make("span", { class: "edge" }, String(from + 31)),
      Array.from({ length: 32 }, (_, at) => bit(from + 31 - at)), make("span", { class: "edge" }, String(from)));
    byId("bits").replaceChildren(...(this.bits === 64 ? [row(32), row(0)] : [row(0)]));
  }

  // --- what is addressed --------------------------------------------------------------------------

  drawTile() {
    const { kind, word, major, bits, rows, k } = this.state;
    const size = Math.max(bits, 8) / 8;
    const extents = { major, size, mn: rows, k: (k * bits) / (8 * size) };
    const tile = tileOf(this.table, word, extents);
    const parts = [make("h3", {}, "The tile that it addresses"), this.tileControls(kind, bits)];
    if (tile.error) parts.push(make("p", { class: "refused", id: "tile-error" }, tile.error));
    else parts.push(...this.tileParts(tile, extents, bits));
    const focused = document.activeElement?.id;
    byId("word-tile").replaceChildren(...parts);
    if (focused && byId("word-tile").querySelector(`#${focused}`)) byId(focused).focus();
  }

  tileControls(kind, bits) {
    const { major, rows, k } = this.state;
    const sizes = [...(kind === "tcgen05" ? [4] : []), 8, 16, 32].map((one) => [one, String(one)]);
    const number = (name, label, value, step, most) => {
      const input = make("input", {
        id: `tile-${name}`, type: "number", min: step, max: most, step, value, "aria-label": label,
      });
      input.addEventListener("change", () => {
        const wanted = Math.round(Number(input.value) / step) * step;
        this.set({ [name]: Math.min(most, Math.max(step, wanted || step)) });
      });
      return make("label", { class: "numbered" }, label, input);
    };
    const step = major === "K" ? 128 / bits : 8;
    return make("div", { class: "row" },
      choice("word-major", "Read", [["K", "K-major"], ["MN", "MN-major"]], major, (value) => this.set({ major: value })),
      choice("word-size", "Bits of an element", sizes, bits,
        (value) => this.set({ bits: Number(value), k: 512 / Number(value) })),
      number("rows", "M or N", rows, 8, 256), number("k", "K", k, step, 2048 / bits));
  }

  tileParts(tile, extents, bits) {
    const boxes = boxesOf(tile, extents);
    const { ranges, shared } = touched(boxes);
    const said = ranges.slice(0, 4).map(([first, end]) => `${hex(first)}..${hex(end - 1)}`).join(", ");
    const more = ranges.length > 4 ? ` and ${ranges.length - 4} more ranges` : "";
    const bytes = ranges.reduce((total, [first, end]) => total + end - first, 0);
    const notes = [`It reads ${bytes.toLocaleString("en")} bytes: ${said}${more}.`];
    if (shared) notes.push(`${shared} of ${boxes.length} boxes lie on bytes of others: do the strides fit the tile?`);
    const last = ranges.at(-1)[1];
    if (last > PLACES) notes.push(`Byte ${hex(last - 1)} is outside the ${PLACES.toLocaleString("en")} bytes of a CTA.`);
    const panel = this.panel(boxes, extents, bits);
    const place = make("div", { class: "scroll" }, panel.element);
    const point = (event) => this.point(panel, event ? panel.keyAt(event) : null, extents, bits);
    place.addEventListener("pointermove", point);
    place.addEventListener("pointerleave", () => point(null));
    return [make("p", { id: "tile-said" }, notes.join(" ")),
      make("p", { class: "note" }, "A box is 16 bytes with its address; one colour for the same four banks."), place];
  }

  panel(boxes, { major, size }, bits) {
    const step = 16 / size;
    const each = major === "K" ? (8 * size) / bits : 1; // elements of a unit along the line
    const cells = boxes.map(({ line, along, mn, k, address }) => {
      const bank = Math.floor(address / 16) % 8;
      const places = [{ operand: "tile", side: "w", row: mn, column: k, address }];
      return {
        text: hex(address), lines: [hex(address)], lane: 4 * bank, register: bank, places, address,
        row: line, height: 1, column: along, width: step,
      };
    });
    const names = major === "K" ? "m or n \\ k" : "k \\ m or n";
    const figure = figureOf("word", "Tile behind the descriptor: addresses of 16 bytes", names, cells);
    figure.columnLabels = figure.columns.map(([first]) => `${first * each}..${(first + step) * each - 1}`);
    const texts = [...cells.map(({ text }) => text), ...figure.columnLabels];
    const longest = Math.max(...texts.map((one) => one.length));
    return new Panel(figure, { x: (longest * 6.3 + 10) / step, y: 21, left: 34, top: 22, colouring: "lane" });
  }

  point(panel, key, { major, size }, bits) {
    panel.light(new Map(key ? [[key, "here"]] : []));
    if (!key) return this.page.say("");
    const { cell } = panel.at.get(key);
    const [{ row, column, address }] = cell.places;
    const each = (8 * size) / bits;
    const [count, bank] = [16 / size, Math.floor(address / 4) % 32];
    const of = (first, many) => (many > 1 ? `${first}..${first + many - 1}` : String(first));
    const [lines, along] = major === "K" ? [1, count * each] : [count, each];
    return this.page.say(`bytes ${hex(address)}..${hex(address + 15)}: m or n ${of(row, lines)}, `
      + `k ${of(column * each, along)}; banks ${bank}..${bank + 3}`);
  }

  // --- what an instruction descriptor says --------------------------------------------------------

  drawProduct() {
    const { of, word } = this.state;
    const forms = formsOf(this.table, word);
    const button = (form) => {
      const made = make("button", { type: "button" }, `.${form.name}`);
      made.addEventListener("click", () => this.page.showCells(of, form, this.read()));
      return made;
    };
    const said = forms.length ? `Forms of kind::${of} with this sparsity, M and N; where each has its operands:`
      : "No form has this sparsity, M and N.";
    byId("word-tile").replaceChildren(
      make("h3", {}, "The product that it describes"), make("p", { id: "product" }, productText(this.table, word)),
      make("p", { class: "note" }, said),
      make("div", { class: "row", id: "product-forms" }, forms.map(button)),
    );
  }
}
