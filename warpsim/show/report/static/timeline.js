// The timeline of a launch: what is pointed at is told, with what it waits for; matrix instructions lead to theirs.

import { make } from "./elements.js";
import { Folding } from "./folding.js";

const HINT = "Point at a strip, or move with the arrow keys. A click or Enter on an mma or wgmma shows that "
  + "instruction below.";

const FEW = 6;

export class Timeline {
  // go(index) shows an instruction of the page.
  constructor(section, go) {
    this.box = section.querySelector(".box");
    this.told = section.querySelector("#told");
    this.go = go;
    this.index = -1;
    this.strips = new Map(
      [...this.box.querySelectorAll("[data-strip]")].map((strip) => [strip.dataset.strip, strip]),
    );
    this.all = [...this.box.querySelectorAll("g.row")]
      .map((row) => [...row.querySelectorAll("[data-strip]")].sort((one, two) => leftOf(one) - leftOf(two)))
      .filter((row) => row.length);
    new Folding(section, () => this.refresh());
    this.refresh();
    this.listen();
    this.tell(null);
  }

  listen() {
    const { box } = this;
    box.addEventListener("pointerover", (event) => {
      const strip = event.target.closest("[data-strip]");
      if (strip) this.tell(strip);
      else if (event.target.matches(".arrow")) this.tellArrow(event.target);
      else this.tell(this.focused);
    });
    box.addEventListener("pointerleave", () => this.tell(this.focused));
    box.addEventListener("focusin", (event) => {
      const strip = event.target.closest("[data-strip]");
      this.tell(strip);
      if (strip && strip.matches(":focus-visible")) this.reveal(strip);
    });
    box.addEventListener("focusout", () => this.tell(null));
    box.addEventListener("click", (event) => {
      const strip = event.target.closest("[data-strip]");
      if (!strip) return;
      this.focus(strip);
      this.open(strip);
    });
  }

  // Rows that are not folded away, and a strip for the Tab key.
  refresh() {
    this.rows = this.all.filter(([strip]) => isShown(strip));
    if (!isShown(this.box.querySelector('[data-strip][tabindex="0"]'))) {
      this.box.querySelector('[data-strip][tabindex="0"]')?.setAttribute("tabindex", "-1");
      this.rows[0]?.[0].setAttribute("tabindex", "0");
    }
    if (this.index >= 0) this.mark(this.index);
  }

  get focused() {
    const strip = document.activeElement?.closest("[data-strip]");
    return strip && this.box.contains(strip) ? strip : null;
  }

  // The instruction of a strip; of several, the one behind that which is shown.
  open(strip) {
    const places = placesOf(strip);
    if (!places.length) return false;
    this.go(places[(places.indexOf(this.index) + 1) % places.length]);
    this.tell(strip);
    return true;
  }

  // The strip that an instruction of the page is in; the box scrolls to it, the page does not.
  mark(index) {
    this.index = index;
    this.box.querySelector(".shown")?.classList.remove("shown");
    const strip = [...this.strips.values()].find((one) => placesOf(one).includes(index) && isShown(one));
    if (!strip) return;
    strip.classList.add("shown");
    this.reveal(strip);
  }

  reveal(strip) {
    const { box } = this;
    const [outer, inner] = [box.getBoundingClientRect(), strip.getBoundingClientRect()];
    const left = outer.left + box.querySelector(".names").clientWidth + 8;
    const top = outer.top + box.querySelector(".numbers").clientHeight + 4;
    const [right, bottom] = [outer.left + box.clientWidth - 8, outer.top + box.clientHeight - 4];
    if (inner.left < left) box.scrollLeft += inner.left - left;
    else if (inner.right > right) box.scrollLeft += Math.min(inner.right - right, inner.left - left);
    if (inner.top < top) box.scrollTop += inner.top - top;
    else if (inner.bottom > bottom) box.scrollTop += inner.bottom - bottom;
  }

  focus(strip) {
    this.box.querySelector('[data-strip][tabindex="0"]')?.setAttribute("tabindex", "-1");
    strip.setAttribute("tabindex", "0");
    strip.focus({ preventScroll: true });
    this.reveal(strip);
  }

  // --- telling ---

  tell(strip) {
    for (const one of this.box.querySelectorAll(".told, .with, .lit")) one.classList.remove("told", "with", "lit");
    if (!strip) return this.told.replaceChildren(make("span", { class: "hint" }, HINT));
    strip.classList.add("told");
    const number = strip.dataset.strip;
    for (const arrow of this.box.querySelectorAll(`[data-from="${number}"], [data-to="${number}"]`)) {
      arrow.classList.add("lit");
      for (const end of [arrow.dataset.from, arrow.dataset.to]) {
        if (end !== number) this.strips.get(end)?.classList.add("with");
      }
    }
    this.told.replaceChildren(textOf(strip), ...this.whereTo(strip));
    return undefined;
  }

  tellArrow(arrow) {
    this.tell(null);
    arrow.classList.add("lit");
    for (const end of [arrow.dataset.from, arrow.dataset.to]) this.strips.get(end)?.classList.add("with");
    this.told.replaceChildren(textOf(arrow));
  }

  whereTo(strip) {
    const places = placesOf(strip);
    if (!places.length) return [];
    const at = places.indexOf(this.index);
    const which = places.length > 1 ? `instructions ${listed(places)}` : `instruction ${places[0] + 1}`;
    const shown = at < 0 ? "" : `, shown: ${places[at] + 1}`;
    return [make("span", { class: "go" }, `\n→ ${which} of this report${shown}`)];
  }

  // --- keys ---

  // Whether a key did something here.
  press(event) {
    const strip = event.target.closest("[data-strip]");
    if (!strip || event.altKey || event.metaKey || event.ctrlKey) return false;
    const to = ["Enter", " "].includes(event.key) ? this.open(strip) && strip : this.neighbour(strip, event.key);
    if (!to) return false;
    event.preventDefault();
    if (to !== strip) this.focus(to);
    return true;
  }

  // Along the row, or the strip of the next row that is nearest in the order of events.
  neighbour(strip, key) {
    const at = this.rows.findIndex((row) => row.includes(strip));
    const row = this.rows[at];
    const place = row.indexOf(strip);
    const along = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: row.length - 1 }[key];
    if (along !== undefined) return row[along];
    const other = this.rows[{ ArrowUp: at - 1, ArrowDown: at + 1 }[key]];
    const distance = (one) => Math.abs(leftOf(one) - leftOf(strip));
    return other?.reduce((best, one) => (distance(one) < distance(best) ? one : best));
  }
}

// Numbers of instructions, from 1 on: a run, or one by one.
function listed(places) {
  const [first, last] = [places[0], places.at(-1)];
  if (last - first === places.length - 1) return `${first + 1} to ${last + 1}`;
  const shown = places.slice(0, FEW).map((one) => one + 1).join(", ");
  return places.length > FEW ? `${shown} … ${last + 1}` : shown;
}

// The left edge, also of what is not shown.
function leftOf(strip) {
  const shape = strip.querySelector("rect, polygon");
  return shape.matches("rect") ? Number(shape.getAttribute("x")) : parseFloat(shape.getAttribute("points")) - 4;
}

// Whether a strip is not folded away: in its row, or in the heading of its CTA.
function isShown(strip) {
  if (!strip) return false;
  const folded = strip.closest(".of-cta").classList.contains("folded");
  return Boolean(strip.closest(".summary")) === folded;
}

function placesOf(strip) {
  return (strip.dataset.instructions ?? "").split(" ").filter(Boolean).map(Number);
}

function textOf(element) {
  return element.querySelector("title").textContent;
}
