// The page at work: which form is shown and how, what is pinned, and the address that brings it back.

import { Catalogue } from "./catalogue.js";
import { Chooser } from "./chooser.js";
import { COLOURINGS, SWIZZLES, showControls } from "./controls.js";
import { copyText, notice } from "./copying.js";
import { showDescriptors, showFormulas, showHead } from "./details.js";
import { byId, make } from "./elements.js";
import { lightsOf } from "./lights.js";
import { listenToControls, listenToFigures, listenToKeys } from "./listening.js";
import { Board } from "./panels.js";
import { listenToPaste, showPasted } from "./pasting.js";
import { readPayload } from "./payload.js";
import { say } from "./saying.js";
import { codeOf, cuteOf, ptxOf } from "./snippets.js";
import { startTheme } from "./theme.js";
import { Views } from "./views.js";
import { FORMATS } from "./writings.js";

const PLAIN = {
  part: 0, selector: 0, colouring: "lane", logical: false, swizzle: "128B", majors: { a: "K", b: "K" }, shared: true,
  zoom: 1,
  ids: { byte_a: 0, thread_a: 0, byte_b: 0, thread_b: 0 },
};
const HINT = "Point at an element, a lane or a register to see what belongs to it; click or Enter pins it. ";

class Explorer {
  constructor(catalogue, start) {
    this.catalogue = catalogue;
    this.state = structuredClone(PLAIN);
    this.pinned = null;
    this.pointed = null;
    this.form = catalogue.byMnemonic.get(start) ?? catalogue.forms[0];
    this.chooser = new Chooser(catalogue, (forms) => this.choose(forms));
    this.views = new Views(this, catalogue);
  }

  // --- what is shown ------------------------------------------------------------------------------

  choose(forms) {
    const same = forms.find((form) => form.n === this.form.n && form.lanes === this.form.lanes);
    this.show(same ?? forms[0]);
    if (this.views.now !== "forms") this.views.show("forms");
  }

  show(form) {
    this.form = form;
    this.pinned = null;
    this.settle();
    showHead(form);
    this.chooser.mark(form.group);
    document.title = `${form.mnemonic}: warpsim explorer`;
    this.redraw();
  }

  // Choices that the form does not have go back to the first.
  settle() {
    const { state, form } = this;
    if (state.part >= form.parts) state.part = 0;
    if (state.selector >= Math.max(1, form.selectors.length)) state.selector = 0;
    if (!form.sparse) state.logical = false;
    for (const side of form.scale ? ["a", "b"] : []) {
      const { byte_ids: bytes, thread_ids: threads } = form.scaleTable(side);
      if (!bytes.includes(state.ids[`byte_${side}`])) state.ids[`byte_${side}`] = 0;
      if (!threads.includes(state.ids[`thread_${side}`])) state.ids[`thread_${side}`] = 0;
    }
    if (form.shared) this.settleTile();
  }

  // Majors and a swizzle that both tiles have.
  settleTile() {
    const { state, form } = this;
    const works = (side, swizzle, major) => !form.tile(side, swizzle, major).error;
    for (const side of ["a", "b"]) {
      if (!SWIZZLES.some((one) => works(side, one, state.majors[side]))) state.majors[side] = "K";
    }
    const fits = (swizzle) => ["a", "b"].every((side) => works(side, swizzle, state.majors[side]));
    if (!fits(state.swizzle)) state.swizzle = SWIZZLES.toReversed().find(fits) ?? "none";
  }

  set(changes) {
    Object.assign(this.state, changes);
    this.settle();
    this.redraw();
  }

  redraw() {
    if (this.views.now !== "forms") return this.views.redraw();
    const room = byId("main").clientWidth - 40;
    this.room = room;
    this.board?.close();
    this.board = new Board(this.form, this.state, room);
    byId("composite").replaceChildren(this.board.composite);
    byId("others").replaceChildren(...this.board.others);
    showControls(this);
    showFormulas(this.form, this.state);
    showDescriptors(this.form, this.state);
    showPasted(this);
    this.light();
    this.remember();
    return undefined;
  }

  zoomBy(factor) {
    this.set({ zoom: factor ? Math.min(3, Math.max(0.4, this.state.zoom * factor)) : 1 });
  }

  // --- pointing -----------------------------------------------------------------------------------

  get subject() {
    return this.pointed ?? this.pinned;
  }

  point(key) {
    if (key === this.pointed) return;
    this.pointed = key;
    this.light();
  }

  pin(key) {
    this.pinned = key === this.pinned ? null : key;
    this.light();
    this.remember();
  }

  light() {
    const key = this.subject;
    this.board.light(lightsOf(this.form, this.state, key));
    const hint = make("span", { class: "hint" }, HINT, make("kbd", {}, "?"), " lists the keys.");
    byId("line").replaceChildren(...(key ? this.pieces(key) : [hint]));
    byId("release").hidden = !this.pinned;
    document.body.classList.toggle("pinned", Boolean(this.pinned));
  }

  pieces(key) {
    return say(this.form, this.state, key).map(({ text, operand, strong, hint }) => {
      const names = [operand && `chip of-${operand}`, strong && "strong", hint && "hint"].filter(Boolean);
      return make("span", { class: names.join(" ") || null }, text);
    });
  }

  // --- the address --------------------------------------------------------------------------------

  remember() {
    const { state } = this;
    const parts = new URLSearchParams({ form: this.form.mnemonic });
    const names = ["part", "selector", "colouring", "logical", ...(this.form.shared ? ["swizzle", "shared"] : [])];
    for (const name of names.filter((one) => state[one] !== PLAIN[one])) parts.set(name, state[name]);
    for (const side of this.form.shared ? ["a", "b"] : []) {
      if (state.majors[side] !== "K") parts.set(`major_${side}`, state.majors[side]);
    }
    if (this.pinned) parts.set("at", this.pinned);
    try {
      history.replaceState(null, "", `#${parts.toString().replaceAll("%2F", "/").replaceAll("%3A", ":")}`);
    } catch {
      // a notebook's frame has no address of its own
    }
  }

  recall() {
    const parts = new URLSearchParams(location.hash.slice(1));
    if (this.views.recall(parts)) return;
    const form = this.catalogue.byMnemonic.get(parts.get("form")) ?? this.form;
    for (const name of ["part", "selector"]) this.state[name] = Number(parts.get(name) ?? 0) || 0;
    if (COLOURINGS.includes(parts.get("colouring"))) this.state.colouring = parts.get("colouring");
    if (SWIZZLES.includes(parts.get("swizzle"))) this.state.swizzle = parts.get("swizzle");
    this.state.logical = parts.get("logical") === "true";
    this.state.shared = parts.get("shared") !== "false";
    for (const side of ["a", "b"]) this.state.majors[side] = parts.get(`major_${side}`) === "MN" ? "MN" : "K";
    this.show(form);
    this.views.show("forms");
    const key = parts.get("at");
    if (key && this.knows(key)) this.pin(key);
  }

  // Whether a key of an address names something of the form.
  knows(key) {
    try {
      return say(this.form, this.state, key).length > 0;
    } catch {
      return false;
    }
  }

  // --- copying ------------------------------------------------------------------------------------

  snippet(kind) {
    const { form, state } = this;
    const sides = form.shared ? [...(state.shared ? ["a"] : []), "b"] : [];
    const tiles = Object.fromEntries(sides.map((side) => [side, form.tile(side, state.swizzle, state.majors[side])]));
    return {
      ptx: () => ptxOf(form, { selector: state.selector, ids: state.ids, shared: state.shared, tiles: state.majors }),
      cute: () => cuteOf(form, { selector: state.selector, product: form.products > 1 ? state.part : 0 }),
      c: () => codeOf(form, { selector: state.selector, tiles }),
    }[kind]();
  }

  async copy(kind) {
    const names = { ptx: "PTX", cute: "CuTe layouts", c: "C code" };
    const done = await copyText(this.snippet(kind));
    notice(done ? `${names[kind]} copied` : "the clipboard refused");
  }

  openExport(name) {
    const figure = this.board.figures[name] ?? this.board.figures.d;
    const select = byId("export-figure");
    select.replaceChildren(...Object.entries(this.board.figures).map(([key, one]) =>
      make("option", { value: key, selected: one === figure }, one.title)));
    this.writeExport();
    byId("export").showModal();
  }

  writeExport() {
    const figure = this.board.figures[byId("export-figure").value];
    const format = document.querySelector('#export-format input:checked').value;
    const name = `${this.form.mnemonic.replaceAll("::", "-")}-${figure.name}.${FORMATS[format].suffix}`;
    this.written = { text: FORMATS[format].write(figure, this.state.colouring), name };
    byId("export-text").value = this.written.text;
  }
}

async function start() {
  startTheme();
  const { document: start_, buffer } = await readPayload();
  const catalogue = new Catalogue(JSON.parse(new TextDecoder().decode(buffer)));
  const page = new Explorer(catalogue, start_.form);
  listenToFigures(page);
  listenToControls(page);
  listenToKeys(page);
  listenToPaste(page);
  page.recall();
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  byId("trouble").hidden = false;
  byId("trouble").textContent = `This page cannot be shown: ${error.message}`;
});
