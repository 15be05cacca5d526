// The source of a kernel and its PTX side by side, beside the matrices: a line that is chosen marks its statements,
// a statement its line, and both the instructions that they became; an instruction marks where it comes from.

export class Source {
  // go(index) shows an instruction of the page; light(lines, instructions) marks those of lines of the PTX elsewhere.
  constructor(section, go, light) {
    Object.assign(this, { section, go, light, index: -1, chosen: null });
    this.lines = [...section.querySelectorAll(".line")];
    this.statements = [...section.querySelectorAll(".statement")];
    section.addEventListener("click", (event) => {
      const place = event.target.closest("button")?.closest("li");
      if (place) this.choose(place);
    });
  }

  // Choose a line or a statement, or nothing again; a statement shows the instruction behind that which is shown.
  choose(place) {
    const again = place === this.chosen && !placesOf(place).length;
    this.chosen = again || (place === this.chosen && place.matches(".line")) ? null : place;
    this.markChosen();
    const places = placesOf(place);
    if (this.chosen?.matches(".statement") && places.length) {
      this.go(places[(places.indexOf(this.index) + 1) % places.length]);
    }
  }

  clear() {
    if (!this.chosen) return false;
    this.chosen = null;
    this.markChosen();
    return true;
  }

  // The statements of a line, or those that its instructions come from: a call has them where it was inlined.
  statementsOf(line) {
    const [own, reached] = [numbersOf(line.dataset.statements), placesOf(line)];
    const became = (one) => placesOf(one).some((place) => reached.includes(place));
    return this.statements.filter((one) => own.includes(Number(one.dataset.number)) || became(one));
  }

  linesOf(statement) {
    return this.lines.filter((line) => this.statementsOf(line).includes(statement));
  }

  markChosen() {
    const { chosen } = this;
    const isLine = chosen?.matches(".line");
    const statements = isLine ? this.statementsOf(chosen) : [chosen].filter(Boolean);
    const lines = isLine ? [chosen] : chosen ? this.linesOf(chosen) : [];
    for (const one of [...this.lines, ...this.statements]) {
      one.classList.toggle("chosen", lines.includes(one) || statements.includes(one));
      one.querySelector("button")?.setAttribute("aria-pressed", String(one === chosen));
    }
    const [other] = isLine ? statements : lines;
    if (other) reveal(other);
    this.light(new Set(statements.map((one) => Number(one.dataset.line))), new Set(statements.flatMap(placesOf)));
  }

  // The lines and the statement of the instruction that is shown; the listings scroll, the page does not.
  mark(index) {
    this.index = index;
    for (const list of [this.lines, this.statements]) {
      const own = list.filter((one) => placesOf(one).includes(index));
      for (const one of list) one.classList.toggle("shown", own.includes(one));
      if (own.length) reveal(own[0]);
    }
  }
}

function numbersOf(text) {
  return text.split(" ").filter(Boolean).map(Number);
}

function placesOf(place) {
  return numbersOf(place.dataset.instructions);
}

// Scroll the listing of a line so far that it can be seen.
function reveal(line) {
  const list = line.closest(".listing");
  const [outer, inner] = [list.getBoundingClientRect(), line.getBoundingClientRect()];
  if (inner.top < outer.top + 24 || inner.bottom > outer.bottom) {
    list.scrollTop += inner.top - outer.top - outer.height / 3;
  }
}
