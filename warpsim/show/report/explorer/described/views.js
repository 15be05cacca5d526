// The three views of the explorer: instructions, descriptors, tensor memory; one is shown, and the address says which.

import { CellPage } from "./cell_page.js";
import { byId } from "./elements.js";
import { WordPage } from "./word_page.js";

const HINTS = {
  words: "Type or paste a word, or change a field: the other follows. Point at a box of the tile to see its bytes.",
  cells: "Point at a cell to see what lies in it.",
};

export class Views {
  constructor(explorer, { words, tensor }) {
    this.explorer = explorer;
    this.now = "forms";
    this.pages = { words: new WordPage(words, this), cells: new CellPage(tensor, this) };
    for (const button of document.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => this.show(button.dataset.view));
    }
  }

  // Show a view; ``given`` are choices of it.
  show(name, given = null) {
    this.now = name;
    byId("shown").hidden = name !== "forms";
    for (const one of Object.keys(this.pages)) byId(`view-${one}`).hidden = one !== name;
    for (const button of document.querySelectorAll("[data-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.view === name));
    }
    document.body.dataset.view = name;
    if (name === "forms") {
      this.explorer.redraw();
      return;
    }
    if (given) this.pages[name].recall(given);
    this.pages[name].draw();
    this.say("");
  }

  redraw() {
    if (this.now === "cells") this.pages.cells.draw();
  }

  showWord(kind, word, of) {
    this.show("words", { kind, word, of });
    scrollTo(0, 0);
  }

  // The operands of a form of an instruction descriptor with those fields.
  showCells(kind, form, fields) {
    const value = (name) => fields.find(({ attribute }) => attribute === name).value;
    const group = form.name.includes("ws") ? "ws" : form.name.match(/::(\d)/)[1];
    this.show("cells", { kind, group, sparse: Boolean(form.sparse), m: value("m"), n: value("n") });
  }

  say(text) {
    byId("line").textContent = text || HINTS[this.now];
  }

  remember() {
    if (this.now === "forms") return;
    const parts = new URLSearchParams({ view: this.now, ...this.pages[this.now].address });
    try {
      history.replaceState(null, "", `#${parts}`);
    } catch {
      // a notebook's frame has no address of its own
    }
  }

  // Whether an address names a view other than that of instructions, which is shown then.
  recall(parts) {
    const name = parts.get("view");
    if (!(name in this.pages)) return false;
    this.show(name, Object.fromEntries(parts));
    return true;
  }
}
