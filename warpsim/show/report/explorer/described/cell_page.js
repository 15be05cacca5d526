// The view of tensor memory: where the operands of a tcgen05.mma lie in each CTA, which cells the threads of ld and st
// have, and where cp puts its rows.

import { CellFigure } from "./cell_drawing.js";
import { blocksOf, cellOf, heldIn, keyOfLayout, letterOf, operandsOf, transferred } from "./cells.js";
import { choice } from "./controls.js";
import { Panel } from "./drawing.js";
import { byId, make } from "./elements.js";
import { figureOf } from "./figures.js";

const NAMES = { d: "D", a: "A in tensor memory", e: "Metadata", scale_a: "Scales of A", scale_b: "Scales of B" };
const AXES = {
  d: ["row", "column"], a: ["row", "column"],
  e: ["row", "chunk"], scale_a: ["row", "chunk"], scale_b: ["column", "chunk"],
};
const SECTIONS = {
  d: "9.7.17.10.5", a: "9.7.17.10.5", e: "9.7.17.10.6 to 9.7.17.10.9", scale_a: "9.7.17.10.7", scale_b: "9.7.17.10.7",
};
const GROUPS = [["1", "one CTA"], ["2", "a pair of CTAs"], ["ws", "one CTA, .ws"]];

function groupOf(form) {
  return form.mnemonic.startsWith("tcgen05.mma.ws") ? "ws" : String(form.ctas);
}

function nearest(values, wanted) {
  return values.find((one) => one >= wanted) ?? values.at(-1);
}

export class CellPage {
  constructor(data, page) {
    this.data = data;
    this.page = page;
    this.state = {
      kind: "f16", group: "1", sparse: false, mnemonic: "", m: 128, n: 64, type: "", first: 0, shape: "32x32b", count: 4,
      warp: 0, half: 0, offset: 16, copy: data.copies[0].name,
    };
    this.settle();
  }

  // --- what is chosen -----------------------------------------------------------------------------

  settle() {
    const { state } = this;
    const ofKind = this.data.forms.filter(({ kind }) => kind === state.kind);
    const inGroup = ofKind.filter((form) => groupOf(form) === state.group);
    const like = (inGroup.length ? inGroup : ofKind).filter(({ sparse }) => sparse === state.sparse);
    this.form = like.find(({ mnemonic }) => mnemonic === state.mnemonic) ?? like[0];
    this.alike = like;
    state.group = groupOf(this.form);
    state.mnemonic = this.form.mnemonic;
    state.m = nearest(this.form.m.map(([m]) => m), state.m);
    state.n = nearest(this.form.n, state.n);
    this.type = this.form.types.find((one) => this.nameOf(one) === state.type) ?? this.form.types[0];
    state.type = this.nameOf(this.type);
    if (!this.type.first.includes(state.first)) state.first = 0;
    const shape = this.data.transfers[state.shape];
    state.count = nearest(shape.counts, state.count);
    if (shape.lanes === 32) state.half = 0;
  }

  nameOf({ a, scale, k }) {
    return [a, ...(scale ? [scale] : []), `k${k}`].join(" ");
  }

  get address() {
    const { kind, group, sparse, m, n, type, shape, count, warp, half } = this.state;
    return { kind, group, sparse, m, n, type, shape, count, warp, half };
  }

  recall(given) {
    const { state } = this;
    if (this.data.forms.some(({ kind }) => kind === given.kind)) state.kind = given.kind;
    if (GROUPS.some(([name]) => name === given.group)) state.group = given.group;
    state.sparse = String(given.sparse) === "true";
    if (given.type) state.type = given.type;
    if (given.shape in this.data.transfers) state.shape = given.shape;
    for (const name of ["m", "n", "count", "warp", "half"]) {
      if (Number.isInteger(Number(given[name] ?? "-"))) state[name] = Number(given[name]);
    }
    state.warp = Math.min(3, Math.max(0, state.warp));
    this.settle();
  }

  set(changes) {
    Object.assign(this.state, changes);
    this.settle();
    this.draw();
  }

  // --- the page -----------------------------------------------------------------------------------

  draw() {
    this.room = byId("main").clientWidth - 60;
    const operands = operandsOf(this.form, this.type);
    byId("view-cells").replaceChildren(
      make("section", { class: "head" },
        make("h2", {}, this.form.mnemonic),
        make("p", { class: "note" }, `m${this.state.m}n${this.state.n}k${this.type.k}, layout `
          + `${letterOf(this.form, this.state.m)}: 128 lanes and 512 columns of 32 bits in each CTA; columns count from the address of an operand on. PTX ISA 9.3.`),
        this.controls()),
      make("div", { class: "cell-parts" }, operands.map((operand) => this.part(operand))),
      this.transferPart(), this.copyPart(),
    );
    this.page.remember();
  }

  select(id, label, options, now, act) {
    const made = make("select", { id, "aria-label": label }, options.map(([value, text]) =>
      make("option", { value: String(value), selected: value === now }, text)));
    made.addEventListener("change", () => {
      act(made.value);
      byId(id).focus();
    });
    return make("label", { class: "numbered" }, label, made);
  }

  controls() {
    const { state, form } = this;
    const same = (values) => values.map((one) => [one, String(one)]);
    const kinds = [...new Set(this.data.forms.map(({ kind }) => kind))];
    const ofKind = this.data.forms.filter(({ kind }) => kind === state.kind).map(groupOf);
    const groups = GROUPS.filter(([name]) => ofKind.includes(name));
    const vectors = this.alike.map(({ mnemonic }) =>
      [mnemonic, mnemonic.split("block_scale")[1]?.slice(1) || "as usual"]);
    const types = same(form.types.map((one) => this.nameOf(one)));
    return make("div", { class: "row", role: "toolbar", "aria-label": "Form" },
      this.select("cell-kind", "Kind", same(kinds), state.kind, (kind) => this.set({ kind })),
      choice("cell-group", "By", groups, state.group, (group) => this.set({ group })),
      choice("cell-sparse", "A", [[false, "dense"], [true, "sparse"]], state.sparse,
        (one) => this.set({ sparse: one === "true" })),
      choice("cell-m", "M", same(form.m.map(([m]) => m)), state.m, (m) => this.set({ m: Number(m) })),
      this.select("cell-n", "N", same(form.n), state.n, (n) => this.set({ n: Number(n) })),
      types.length > 1 ? this.select("cell-type", "Type of A", types, state.type, (type) => this.set({ type })) : null,
      vectors.length > 1 ? this.select("cell-vector", "Scales", vectors, state.mnemonic,
        (mnemonic) => this.set({ mnemonic })) : null,
      this.type.first.length > 1 ? choice("cell-first", "Scale id", same(this.type.first), state.first,
        (first) => this.set({ first: Number(first) })) : null);
  }

  // --- operands -----------------------------------------------------------------------------------

  part(operand) {
    const number = this.data.keys[keyOfLayout(this.form, operand, { ...this.state, type: this.type })];
    const heading = make("h3", {}, make("span", { class: "name" }, NAMES[operand]), " ");
    const named = { class: `part of-${operand}`, "data-name": operand, "aria-label": NAMES[operand] };
    const section = make("section", named, heading);
    const where = `PTX ISA ${SECTIONS[operand]}`;
    if (number === null || number === undefined) {
      section.append(make("p", { class: "refused" }, `The manual shows this layout in figures only (${where}).`));
      return section;
    }
    const layout = this.data.layouts[number];
    const held = heldIn(layout);
    const drawn = { room: this.room, label: NAMES[operand], names: AXES[operand] };
    const figure = new CellFigure(held, blocksOf(held), drawn);
    const columns = `${figure.cells} column${figure.cells > 1 ? "s" : ""}`;
    heading.append(make("small", {}, `${layout.shape.join(" × ")}, ${columns} of each CTA; ${where}`));
    const scroll = make("div", { class: "scroll row" }, figure.elements);
    scroll.addEventListener("pointermove", (event) => this.point(operand, figure, figure.keyAt(event)));
    scroll.addEventListener("pointerleave", () => this.point(operand, figure, null));
    section.append(this.finder(operand, layout, figure), scroll);
    return section;
  }

  // "Where is [row, column]": the answer beside the question, and marked in the figure.
  finder(operand, layout, figure) {
    const [rows, columns] = layout.shape;
    const [down, along] = AXES[operand];
    const number = (name, most) => make("input", {
      type: "number", min: 0, max: most - 1, value: 0, "aria-label": `${name} of ${NAMES[operand]}`,
    });
    const [row, column] = [number(down, rows), number(along, columns)];
    const said = make("output", {});
    const answer = (event) => {
      const [at, across] = [Number(row.value), Number(column.value)];
      const inside = row.validity.valid && column.validity.valid && row.value !== "" && column.value !== "";
      if (!inside) return void said.replaceChildren(`${down} 0 to ${rows - 1}, ${along} 0 to ${columns - 1}`);
      const place = cellOf(layout, at, across);
      const lanes = layout.copies.map((more) => place.lane + more);
      if (event) figure.light(lanes.map((lane) => `${place.cta}/${lane}/${place.cell}`));
      const where = `${this.ctaText(place.cta)}${this.lanesText(lanes)}, column +${place.cell}`;
      return void said.replaceChildren(`${where}, ${this.bitsText(operand, place.bit)}`);
    };
    row.addEventListener("input", answer);
    column.addEventListener("input", answer);
    answer();
    return make("p", { class: "finder row" }, `Where is ${down}`, row, along, column, said);
  }

  lanesText(lanes) {
    return lanes.length > 1 ? `lanes ${lanes.join(", ")}` : `lane ${lanes[0]}`;
  }

  ctaText(cta) {
    return this.form.ctas > 1 ? `CTA ${cta} of the pair, ` : "";
  }

  bitsText(operand, bit) {
    const { bits, shift } = this.type;
    const [first, count] = { d: [bit, 32], a: [bit + shift, bits], e: [bit, 4] }[operand] ?? [bit, 8];
    return `bits ${first + count - 1}..${first}`;
  }

  point(operand, figure, key) {
    figure.light(key ? [key] : []);
    if (!key) return this.page.say("");
    const [cta, lane, cell] = key.split("/").map(Number);
    const { copy, elements } = figure.held.get(key);
    const name = operand.length === 1 && operand !== "e" ? operand.toUpperCase() : NAMES[operand].replace("Scales", "Scale");
    const texts = elements.map(({ row, column, bit }) => `${name}[${row},${column}] in ${this.bitsText(operand, bit)}`);
    return this.page.say(`${this.ctaText(cta)}lane ${lane}, column +${cell}${copy ? " (a copy)" : ""}: ${texts.join("; ")}`);
  }

  // --- ld and st ----------------------------------------------------------------------------------

  transferPart() {
    const { state } = this;
    const shape = this.data.transfers[state.shape];
    const same = (values, name = String) => values.map((one) => [one, name(one)]);
    const registers = shape.registers * state.count;
    const first = 32 * state.warp + state.half;
    const places = transferred(shape, state.count, state.offset);
    const columns = Math.max(...places.map(({ column }) => column)) + 1;
    const list = registers > 2 ? `%r0, …, %r${registers - 1}` : ["%r0", "%r0, %r1"][registers - 1];
    const second = shape.split ? `, ${state.offset}` : "";
    const statement = `tcgen05.ld.sync.aligned.${state.shape}.x${state.count}.b32 {${list}}, [address]${second};`;
    const shapes = same(Object.keys(this.data.transfers), (one) => `.${one}`);
    const halves = [[0, "lower 16"], [16, "upper 16"]];
    return make("section", { class: "card", id: "transfers" },
      make("h3", {}, "tcgen05.ld and tcgen05.st: which thread has which cell"),
      make("div", { class: "row" },
        choice("cell-shape", "Shape", shapes, state.shape, (one) => this.set({ shape: one })),
        this.select("cell-count", "Repeated", same(shape.counts, (one) => `.x${one}`), state.count,
          (one) => this.set({ count: Number(one) })),
        choice("cell-warp", "Warp", same([0, 1, 2, 3]), state.warp, (one) => this.set({ warp: Number(one) })),
        shape.lanes === 16 ? choice("cell-half", "Lanes", halves, state.half, (one) => this.set({ half: Number(one) })) : null,
        shape.split ? this.select("cell-offset", "Second column", same([8, 16, 32, 64]), state.offset,
          (one) => this.set({ offset: Number(one) })) : null),
      make("p", {}, make("code", {}, statement)),
      make("p", { class: "note" }, `Warp ${state.warp} of a warpgroup has lanes ${32 * state.warp}..${32 * state.warp + 31} `
        + `alone; this one moves ${shape.lanes} lanes and ${columns} columns, ${registers} register${registers > 1 ? "s" : ""} of each thread. `
        + "A box is a cell of 32 bits: thread, register. PTX ISA 9.3, section 9.7.17.8."),
      this.transferFigure(places, first));
  }

  transferFigure(places, first) {
    const cells = places.map(({ thread, register, lane, column }) => ({
      text: `T${thread} r${register}`, lines: [`T${thread} r${register}`], lane: thread, register, thread,
      places: [{ operand: "ld", row: lane, column }], row: lane, height: 1, column, width: 1,
    }));
    const figure = figureOf("ld", "Cells of ld and st", "lane \\ column", cells);
    figure.rowLabels = figure.rows.map(([row]) => String(first + row));
    figure.columnLabels = figure.columns.map(([column]) => `+${column}`);
    const longest = Math.max(...cells.map(({ text }) => text.length));
    const panel = new Panel(figure, { x: longest * 6.3 + 8, y: 19, left: 34, top: 22, colouring: "lane" });
    const scroll = make("div", { class: "scroll" }, panel.element);
    const point = (key) => {
      const thread = key && panel.at.get(key)?.cell.thread;
      const own = key ? cells.filter((cell) => cell.thread === thread) : [];
      const others = own.map(({ places: [place] }) => [`ld/${place.row}/${place.column}`, "to"]);
      panel.light(new Map([...others, ...(key ? [[key, "here"]] : [])]));
      if (!key) return this.page.say("");
      const { register, row, column } = panel.at.get(key).cell;
      return this.page.say(`lane ${first + row}, column +${column}: T${thread} of the warp, register ${register}; dashed: its others`);
    };
    scroll.addEventListener("pointermove", (event) => point(panel.keyAt(event)));
    scroll.addEventListener("pointerleave", () => point(null));
    return scroll;
  }

  // --- cp -----------------------------------------------------------------------------------------

  copyPart() {
    const { layout, name } = this.data.copies.find((one) => one.name === this.state.copy);
    const held = heldIn(layout);
    const figure = new CellFigure(held, blocksOf(held), { room: this.room, label: `cp ${name}`, names: ["row", "cell"] });
    const options = this.data.copies.map((one) => [one.name, `.${one.name}`]);
    return make("section", { class: "card", id: "copies" },
      make("h3", {}, "tcgen05.cp: where the rows of shared memory go"),
      make("div", { class: "row" }, this.select("cell-copy", "Shape", options, name, (copy) => this.set({ copy }))),
      make("p", { class: "note" }, `${layout.shape[0]} rows of ${layout.shape[1]} cells; PTX ISA 9.3, section 9.7.17.9.`),
      make("div", { class: "scroll" }, figure.elements));
  }
}
