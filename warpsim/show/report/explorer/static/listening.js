// What the mouse and keys do, on figures, on controls and in the list of forms.

import { copyText, notice, saveText } from "./copying.js";
import { COLOURINGS } from "./controls.js";
import { byId } from "./elements.js";
import { goToPaste } from "./pasting.js";
import { nextTheme } from "./theme.js";

export function listenToFigures(page) {
  const places = byId("figures");
  const keyAt = (event) => page.board.panelOf(event.target)?.keyAt(event) ?? null;
  places.addEventListener("pointermove", (event) => page.point(keyAt(event)));
  places.addEventListener("pointerleave", () => page.point(null));
  places.addEventListener("click", (event) => {
    const { export: name } = event.target.dataset;
    if (name) {
      page.openExport(name);
      return;
    }
    const key = keyAt(event);
    if (key) page.pin(key);
  });
  places.addEventListener("focusout", () => page.point(null));
}

export function listenToControls(page) {
  byId("release").addEventListener("click", () => page.pin(page.pinned));
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  byId("drawer").addEventListener("click", () => toggleDrawer());
  for (const kind of ["ptx", "cute", "c"]) byId(`copy-${kind}`).addEventListener("click", () => page.copy(kind));
  byId("export-figure").addEventListener("change", () => page.writeExport());
  byId("export-format").addEventListener("change", () => page.writeExport());
  byId("export-copy").addEventListener("click", async () => {
    notice((await copyText(page.written.text)) ? "copied" : "the clipboard refused");
  });
  byId("export-save").addEventListener("click", () => saveText(page.written.name, page.written.text));
  addEventListener("hashchange", () => page.recall());
  addEventListener("beforeprint", () => page.board.fillAll(page.room));
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
  v: (page) => goToPaste(page),
  t: nextTheme,
  "?": () => byId("help").showModal(),
};

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Arrows move within a figure; Enter and Space pin what they are at.
function inFigure(page, event) {
  const panel = page.board?.panelOf(event.target);
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
  if (page.views.now !== "forms") return;
  if (page.pinned) page.pin(page.pinned);
  page.point(null);
}

export function listenToKeys(page) {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") escaped(page);
    if (inChooser(page, event) || inFigure(page, event)) event.preventDefault();
    else if (!event.target.matches("input:not([type=radio]), select, textarea")) pressed(page, event);
  });
}

const ANYWHERE = ["/", "[", "]", "t", "v", "?"]; // keys that belong to no form

function pressed(page, event) {
  const known = page.views.now === "forms" || ANYWHERE.includes(event.key);
  const action = !known || event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  action(page);
}
