// The page at work: what is shown, and what the mouse and keys do.

import { Catalogue } from "./catalogue.js";
import { Chooser } from "./chooser.js";
import { copyText, notice, saveText } from "./copying.js";
import { showDescriptors, showFormulas, showHead } from "./details.js";
import { byId, make } from "./elements.js";
import { partName } from "./figures.js";
import { lightsOf } from "./lights.js";
import { Board } from "./panels.js";
import { readPayload } from "./payload.js";
import { say } from "./saying.js";
import { codeOf, cuteOf, ptxOf } from "./snippets.js";
import { nextTheme, startTheme } from "./theme.js";
import { FORMATS } from "./writings.js";

const PLAIN = {
  part: 0, selector: 0, colouring: "lane", logical: false, swizzle: "128B", majors: { a: "K", b: "K" }, shared: true, zoom: 1,
  ids: { byte_a: 0, thread_a: 0, byte_b: 0, thread_b: 0 },
};
const COLOURINGS = ["lane", "register", "plain"];
const SWIZZLES = ["none", "32B", "64B", "128B"];

class Explorer {
  constructor(catalogue, start) {
    this.catalogue = catalogue;
    this.state = structuredClone(PLAIN);
    this.pinned = null;
    this.pointed = null;
    this.form = catalogue.byMnemonic.get(start) ?? catalogue.forms[0];
    this.chooser = new Chooser(catalogue, (forms) => this.choose(forms));
  }

  // --- what is shown ------------------------------------------------------------------------------

  choose(forms) {
    const same = forms.find((form) => form.n === this.form.n && form.lanes === this.form.lanes);
    this.show(same ?? forms[0]);
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
    const room = byId("main").clientWidth - 40;
    this.room = room;
    this.board?.close();
    this.board = new Board(this.form, this.state, room);
    byId("composite").replaceChildren(this.board.composite);
    byId("others").replaceChildren(...this.board.others);
    this.controls();
    showFormulas(this.form, this.state);
    showDescriptors(this.form, this.state);
    this.light();
    this.remember();
  }

  // --- controls -----------------------------------------------------------------------------------

  controls() {
    const { form, state } = this;
    const sizes = this.catalogue.groups[form.group];
    byId("controls").replaceChildren(...[
      sizes.length > 1 && this.sizes(sizes),
      this.choice("colouring", "Colour by", COLOURINGS.map((one) => [one, one === "plain" ? "nothing" : one]), state.colouring, (value) => this.set({ colouring: value })),
      form.parts > 1 && this.choice("part", form.products > 1 ? "Product" : "Warp", Array.from({ length: form.parts }, (_, at) => [at, String(at), partName(form, at)]), state.part, (value) => this.set({ part: Number(value) })),
      form.sparse && form.selectors.length > 1 && this.choice("selector", "Selector", form.selectors.map((one) => [one, String(one)]), state.selector, (value) => this.set({ selector: Number(value) })),
      form.sparse && !(form.shared && state.shared) && this.choice("logical", "A", [[false, "as stored"], [true, "logical k"]], state.logical, (value) => this.set({ logical: value === "true" })),
      form.shared && this.choice("shared", "A in", [[true, "shared memory"], [false, "registers"]], state.shared, (value) => this.set({ shared: value === "true" })),
      ...(form.scale ? this.scaleChoices() : []),
      this.zoom(),
    ].filter(Boolean));
    if (form.shared) byId("tile-controls").replaceChildren(...this.tileChoices());
  }

  choice(name, legend, options, now, act) {
    const field = make(
      "fieldset", { class: "choice", "data-choice": name }, make("legend", {}, legend),
      options.map(([value, text, title, refused]) => make(
        "label", { title: title ?? null, class: refused ? "refused" : null },
        make("input", { type: "radio", name, value: String(value), checked: value === now, disabled: Boolean(refused) }), text,
      )),
    );
    field.addEventListener("change", (event) => {
      act(event.target.value);
      document.querySelector(`[data-choice="${name}"] input:checked`)?.focus();
    });
    return field;
  }

  sizes(forms) {
    const select = make("select", { id: "sizes", "aria-label": "N" }, forms.map((form) =>
      make("option", { value: form.mnemonic, selected: form === this.form }, `N = ${form.n}`)));
    select.addEventListener("change", () => {
      this.show(this.catalogue.byMnemonic.get(select.value));
      byId("sizes").focus();
    });
    return select;
  }

  scaleChoices() {
    return ["a", "b"].flatMap((side) => {
      const { byte_ids: bytes, thread_ids: threads } = this.form.scaleTable(side);
      const made = (kind, values) => values.length > 1 && this.choice(
        `${kind}_${side}`, `${side.toUpperCase()} ${kind} id`, values.map((one) => [one, String(one)]), this.state.ids[`${kind}_${side}`],
        (value) => this.set({ ids: { ...this.state.ids, [`${kind}_${side}`]: Number(value) } }));
      return [made("byte", bytes), made("thread", threads)];
    });
  }

  tileChoices() {
    const { form, state } = this;
    const reason = (side, swizzle, major) => form.tile(side, swizzle, major)?.error;
    const swizzles = SWIZZLES.map((one) => [one, one, null, ["a", "b"].every((side) => reason(side, one, state.majors[side]))]);
    const majors = (side) => ["K", "MN"].map((one) => {
      const refused = SWIZZLES.every((swizzle) => reason(side, swizzle, one));
      return [one, one, refused ? reason(side, "none", one) : null, refused];
    });
    return [
      this.choice("swizzle", "Swizzle", swizzles, state.swizzle, (value) => this.set({ swizzle: value })),
      ...["a", "b"].map((side) => this.choice(`major_${side}`, `${side.toUpperCase()} major`, majors(side), state.majors[side],
        (value) => this.set({ majors: { ...state.majors, [side]: value } }))),
    ];
  }

  zoom() {
    const button = (text, label, act) => {
      const made = make("button", { type: "button", "aria-label": label, title: label }, text);
      made.addEventListener("click", act);
      return made;
    };
    return make("span", { class: "zoom" }, button("−", "Smaller", () => this.zoomBy(1 / 1.2)), button("+", "Larger", () => this.zoomBy(1.2)));
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
    byId("line").replaceChildren(...(key ? this.pieces(key) : [make("span", { class: "hint" },
      "Point at an element, a lane or a register to see what belongs to it; click or Enter pins it. ", make("kbd", {}, "?"), " lists the keys.")]));
    byId("release").hidden = !this.pinned;
    document.body.classList.toggle("pinned", Boolean(this.pinned));
  }

  pieces(key) {
    return say(this.form, this.state, key).map(({ text, operand, strong, hint }) =>
      make("span", { class: [operand ? `chip of-${operand}` : "", strong ? "strong" : "", hint ? "hint" : ""].join(" ").trim() || null }, text));
  }

  // --- the address --------------------------------------------------------------------------------

  remember() {
    const { state } = this;
    const parts = new URLSearchParams({ form: this.form.mnemonic });
    for (const name of ["part", "selector", "colouring", "logical", "swizzle", "shared"]) {
      if (state[name] !== PLAIN[name] && (this.form.shared || !["swizzle", "shared"].includes(name))) parts.set(name, state[name]);
    }
    for (const side of this.form.shared ? ["a", "b"] : []) {
      if (state.majors[side] !== "K") parts.set(`major_${side}`, state.majors[side]);
    }
    if (this.pinned) parts.set("at", this.pinned);
    history.replaceState(null, "", `#${parts.toString().replaceAll("%2F", "/").replaceAll("%3A", ":")}`);
  }

  recall() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const form = this.catalogue.byMnemonic.get(parts.get("form")) ?? this.form;
    for (const name of ["part", "selector"]) this.state[name] = Number(parts.get(name) ?? 0) || 0;
    if (COLOURINGS.includes(parts.get("colouring"))) this.state.colouring = parts.get("colouring");
    if (SWIZZLES.includes(parts.get("swizzle"))) this.state.swizzle = parts.get("swizzle");
    this.state.logical = parts.get("logical") === "true";
    this.state.shared = parts.get("shared") !== "false";
    for (const side of ["a", "b"]) this.state.majors[side] = parts.get(`major_${side}`) === "MN" ? "MN" : "K";
    this.show(form);
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
    const tiles = form.shared ? { a: state.shared ? form.tile("a", state.swizzle, state.majors.a) : null, b: form.tile("b", state.swizzle, state.majors.b) } : {};
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
    this.written = { text: FORMATS[format].write(figure, this.state.colouring), name: `${this.form.mnemonic.replaceAll("::", "-")}-${figure.name}.${FORMATS[format].suffix}` };
    byId("export-text").value = this.written.text;
  }
}

// --- listening ---------------------------------------------------------------------------------------

function listenToFigures(page) {
  const places = byId("figures");
  places.addEventListener("pointermove", (event) => page.point(page.board.panelOf(event.target)?.keyAt(event) ?? null));
  places.addEventListener("pointerleave", () => page.point(null));
  places.addEventListener("click", (event) => {
    const { export: name } = event.target.dataset;
    if (name) {
      page.openExport(name);
      return;
    }
    const key = page.board.panelOf(event.target)?.keyAt(event);
    if (key) page.pin(key);
  });
  places.addEventListener("focusout", () => page.point(null));
}

function listenToControls(page) {
  byId("release").addEventListener("click", () => page.pin(page.pinned));
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  byId("drawer").addEventListener("click", () => toggleDrawer());
  for (const kind of ["ptx", "cute", "c"]) byId(`copy-${kind}`).addEventListener("click", () => page.copy(kind));
  byId("export-figure").addEventListener("change", () => page.writeExport());
  byId("export-format").addEventListener("change", () => page.writeExport());
  byId("export-copy").addEventListener("click", async () => notice((await copyText(page.written.text)) ? "copied" : "the clipboard refused"));
  byId("export-save").addEventListener("click", () => saveText(page.written.name, page.written.text));
  addEventListener("hashchange", () => page.recall());
  new ResizeObserver(() => {
    const room = byId("main").clientWidth - 40;
    if (Math.abs(room - page.room) > 8) page.redraw();
  }).observe(byId("main"));
  new ResizeObserver(([{ target }]) => {
    document.documentElement.style.setProperty("--dock", `${target.offsetHeight}px`);
  }).observe(byId("dock"));
}

function toggleDrawer(open = !document.body.classList.contains("choosing")) {
  document.body.classList.toggle("choosing", open);
  byId("drawer").setAttribute("aria-expanded", String(open));
}

function nextOf(values, now, by = 1) {
  return values[(values.indexOf(now) + by + values.length) % values.length];
}

function stepSize(page, by) {
  const forms = page.catalogue.groups[page.form.group];
  page.show(nextOf(forms, page.form, by));
}

const KEYS = {
  "/": () => {
    toggleDrawer(true);
    byId("search").focus();
    byId("search").select();
  },
  "[": (page) => page.chooser.step(-1),
  "]": (page) => page.chooser.step(1),
  n: (page) => stepSize(page, 1),
  N: (page) => stepSize(page, -1),
  c: (page) => page.set({ colouring: nextOf(COLOURINGS, page.state.colouring) }),
  p: (page) => page.set({ part: (page.state.part + 1) % page.form.parts }),
  s: (page) => page.set({ selector: (page.state.selector + 1) % Math.max(1, page.form.selectors.length) }),
  l: (page) => page.set({ logical: !page.state.logical }),
  e: (page) => page.openExport(document.activeElement.closest?.("[data-name]")?.dataset.name),
  "+": (page) => page.zoomBy(1.2),
  "=": (page) => page.zoomBy(1.2),
  "-": (page) => page.zoomBy(1 / 1.2),
  0: (page) => page.zoomBy(0),
  1: (page) => page.copy("ptx"),
  2: (page) => page.copy("cute"),
  3: (page) => page.copy("c"),
  t: nextTheme,
  "?": () => byId("help").showModal(),
};

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Arrows move within a figure; Enter and Space pin what they are at.
function inFigure(page, event) {
  const panel = page.board.panelOf(event.target);
  if (!panel) return false;
  if (ARROWS[event.key]) {
    const from = panel.found(page.subject ?? "") ? page.subject : null;
    page.point(panel.beside(from, ARROWS[event.key]));
    reveal(panel, page.pointed);
    return true;
  }
  if (!["Enter", " "].includes(event.key) || !page.subject) return false;
  page.pin(page.subject);
  return true;
}

// Scroll the box around a figure, and the page, so far that a key can be seen.
function reveal(panel, key) {
  const box = panel.element.parentElement;
  const [x, y, width] = panel.middle(key) ?? [0, 0, 0];
  if (x - width < box.scrollLeft + panel.left) box.scrollLeft = x - width - panel.left;
  if (x + width > box.scrollLeft + box.clientWidth) box.scrollLeft = x + width - box.clientWidth;
  const top = panel.element.getBoundingClientRect().top + y;
  const dock = byId("dock").getBoundingClientRect().top;
  if (top < 40) scrollBy(0, top - 120);
  if (top > dock - 40) scrollBy(0, top - dock + 120);
}

function inChooser(page, event) {
  if (event.target === byId("search") && ["Enter", "ArrowDown"].includes(event.key)) {
    page.chooser.first();
    byId("forms").focus();
    return true;
  }
  if (event.target !== byId("forms")) return false;
  const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[event.key];
  if (event.key === "Enter") toggleDrawer(false);
  else if (!by) return false;
  if (by) page.chooser.step(by);
  return true;
}

function escaped(page) {
  if (document.body.classList.contains("choosing")) toggleDrawer(false);
  if (document.activeElement === byId("search")) document.activeElement.blur();
  if (page.pinned) page.pin(page.pinned);
  page.point(null);
}

function listenToKeys(page) {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") escaped(page);
    if (inChooser(page, event) || inFigure(page, event)) event.preventDefault();
    else if (!event.target.matches("input[type=search], select, textarea")) pressed(page, event);
  });
}

function pressed(page, event) {
  const action = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action(page);
}

async function start() {
  startTheme();
  const { document: start_, buffer } = await readPayload();
  const catalogue = new Catalogue(JSON.parse(new TextDecoder().decode(buffer)));
  const page = new Explorer(catalogue, start_.form);
  listenToFigures(page);
  listenToControls(page);
  listenToKeys(page);
  byId("shown").hidden = false;
  page.recall();
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  byId("trouble").hidden = false;
  byId("trouble").textContent = `This page cannot be shown: ${error.message}`;
});
