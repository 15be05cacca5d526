// CTAs of a timeline folded to the row of their heading: groups move up, and arrows between CTAs follow or hide.

const MARKS = { true: "▸", false: "▾" };

export class Folding {
  // changed() is called when something was folded or unfolded.
  constructor(section, changed) {
    this.changed = changed;
    const box = section.querySelector(".box");
    const groups = (name) => [...box.querySelectorAll(`.${name} .of-cta`)];
    const events = groups("events");
    this.svgs = [...box.querySelectorAll(".names, .events")];
    this.ctas = groups("names").map((names, at) => ({
      groups: [names, events[at]], head: names.querySelector(".head"), folded: false,
      ...Object.fromEntries(["top", "height", "head"].map((name) => [`${name}Pixels`, Number(names.dataset[name])])),
    }));
    this.bottom = Math.max(...this.svgs.map((svg) => Number(svg.getAttribute("height"))));
    this.arrows = [...box.querySelectorAll(".across .arrow")].map((arrow) => ({ arrow, ...this.endsOf(arrow) }));
    this.listen(section);
    const many = "folded" in box.dataset;
    this.ctas.forEach((cta, at) => { cta.folded = many && at > 0; });
    this.lay();
  }

  listen(section) {
    for (const cta of this.ctas) {
      if (this.ctas.length < 2) break;
      cta.head.setAttribute("tabindex", "0");
      const turn = () => this.fold([cta], !cta.folded);
      cta.head.addEventListener("click", turn);
      cta.head.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        turn();
      });
    }
    for (const button of section.querySelectorAll("[data-fold]")) {
      button.addEventListener("click", () => this.fold(this.ctas, button.dataset.fold === "all"));
    }
  }

  fold(ctas, folded) {
    for (const cta of ctas) cta.folded = folded;
    this.lay();
    this.changed();
  }

  // Move every CTA up by what is folded above it.
  lay() {
    let up = 0;
    for (const cta of this.ctas) {
      cta.up = up;
      for (const group of cta.groups) {
        group.setAttribute("transform", `translate(0 ${-up})`);
        group.classList.toggle("folded", cta.folded);
      }
      cta.head.setAttribute("aria-expanded", String(!cta.folded));
      const mark = cta.head.querySelector(".fold-mark");
      mark.textContent = this.ctas.length > 1 ? MARKS[cta.folded] : "";
      if (cta.folded) up += cta.heightPixels - cta.headPixels;
    }
    for (const svg of this.svgs) svg.setAttribute("height", this.bottom - up);
    for (const one of this.arrows) this.follow(one);
  }

  // --- arrows between CTAs --------------------------------------------------------------------------

  endsOf(arrow) {
    const [x, y, , , , , right, end] = arrow.getAttribute("d").match(/-?[\d.]+/g).map(Number);
    const at = (place) => this.ctas.find(({ topPixels, heightPixels }) => place < topPixels + heightPixels) ?? this.ctas[0];
    return { x, y, right, end, from: at(y), to: at(end) };
  }

  follow({ arrow, x, y, right, end, from, to }) {
    const shown = !from.folded && !to.folded;
    arrow.classList.toggle("away", !shown);
    if (!shown) return;
    const [first, last] = [y - from.up, end - to.up];
    const bend = Math.min(Math.max(Math.abs(last - first) / 2, 8), 60) * (first < last ? 1 : -1);
    arrow.setAttribute("d", `M${x},${first} C${x},${first + bend} ${right},${last - bend} ${right},${last}`);
  }
}
