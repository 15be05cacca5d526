// The source of a kernel beside its instructions: which line an instruction comes from, and the other way round.

export class Source {
  // go(index) shows an instruction of the page.
  constructor(section, go) {
    this.section = section;
    this.go = go;
    this.index = -1;
    section.addEventListener("click", (event) => {
      const place = event.target.closest("button[data-instructions]");
      if (place) this.open(placesOf(place));
    });
  }

  // Of several instructions, the one behind that which is shown.
  open(places) {
    this.go(places[(places.indexOf(this.index) + 1) % places.length]);
  }

  // The lines and the statement of the instruction that is shown; the section scrolls, the page does not.
  mark(index) {
    this.index = index;
    for (const shown of this.section.querySelectorAll(".shown")) shown.classList.remove("shown");
    const places = [...this.section.querySelectorAll("[data-instructions]")];
    const own = places.filter((place) => placesOf(place).includes(index));
    for (const place of own) place.classList.add("shown");
    const statement = own.find((place) => place.closest("details"));
    if (!statement) return;
    statement.closest("details").open = true;
    const line = statement.closest("li.line");
    if (line) this.section.scrollTop = line.offsetTop - this.section.clientHeight / 3;
  }
}

function placesOf(place) {
  return place.dataset.instructions.split(" ").filter(Boolean).map(Number);
}
