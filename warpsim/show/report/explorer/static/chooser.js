// Choosing a form: the search box, the filters and the list of what matches.

import { byId, make } from "./elements.js";
import { shapeName, tagsOf } from "./catalogue.js";

const FILTERS = ["target", "family", "shape", "type"];

export class Chooser {
  constructor(catalogue, choose) {
    Object.assign(this, { catalogue, choose, found: [], group: null });
    this.fill();
    byId("search").addEventListener("input", () => this.refresh());
    FILTERS.forEach((name) => byId(`filter-${name}`).addEventListener("change", () => this.refresh()));
    byId("clear").addEventListener("click", () => this.clear());
    byId("forms").addEventListener("click", (event) => this.clicked(event));
    this.refresh();
  }

  fill() {
    for (const [name, values] of Object.entries(this.catalogue.choices())) {
      byId(`filter-${name}`).append(...values.map((value) => make("option", { value }, value)));
    }
  }

  get wanted() {
    const filters = Object.fromEntries(FILTERS.map((name) => [name, byId(`filter-${name}`).value]));
    return { text: byId("search").value, ...filters };
  }

  clear() {
    byId("search").value = "";
    FILTERS.forEach((name) => { byId(`filter-${name}`).value = ""; });
    this.refresh();
    byId("search").focus();
  }

  refresh() {
    this.found = this.catalogue.search(this.wanted);
    const count = this.found.reduce((total, { forms }) => total + forms.length, 0);
    const [some, all] = [count, this.catalogue.forms.length].map((one) => one.toLocaleString("en"));
    byId("count").textContent = `${some} of ${all} forms`;
    byId("clear").hidden = Object.values(this.wanted).every((value) => !value);
    byId("none").hidden = this.found.length > 0;
    let family = null;
    byId("forms").replaceChildren(...this.found.flatMap((one) => {
      const own = this.catalogue.groups[one.at][0].family;
      const heading = own === family ? [] : [make("li", { class: "family", role: "presentation" }, own)];
      family = own;
      return [...heading, this.item(one)];
    }));
    this.mark(this.group);
  }

  item({ at, forms }) {
    const [form] = forms;
    const type = (operand) => make("i", { class: `of-${operand}` }, form.types[operand]);
    const added = form.types.c === form.types.d ? [] : [" + ", type("c")];
    const more = forms.length > 1 ? [make("small", { class: "many" }, `${forms.length} N`)] : [];
    return make(
      "li", { role: "option", id: `group-${at}`, "data-group": at, "aria-selected": "false", title: form.mnemonic },
      make("b", {}, forms.length > 1 ? shapeName(form) : form.size),
      make("span", { class: "types" }, type("d"), " ← ", type("a"), " · ", type("b"), ...added),
      ...tagsOf(form).map((tag) => make("span", { class: "tag" }, tag)), ...more,
    );
  }

  clicked(event) {
    const item = event.target.closest("[data-group]");
    if (item) this.pick(Number(item.dataset.group));
  }

  // Show a group: the form with the N that is shown now where it matches, otherwise the first.
  pick(at) {
    const { forms } = this.found.find((one) => one.at === at);
    this.choose(forms);
  }

  // One on or back among what is found.
  step(by) {
    const now = this.found.findIndex(({ at }) => at === this.group);
    const next = now < 0 ? 0 : now + by;
    if (next >= 0 && next < this.found.length) this.pick(this.found[next].at);
  }

  first() {
    if (this.found.length) this.pick(this.found[0].at);
  }

  mark(group) {
    this.group = group;
    const list = byId("forms");
    for (const item of list.querySelectorAll('[aria-selected="true"]')) item.setAttribute("aria-selected", "false");
    const item = byId(`group-${group}`);
    list.setAttribute("aria-activedescendant", item ? item.id : "");
    if (!item) return;
    item.setAttribute("aria-selected", "true");
    const [outer, inner] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) {
      list.scrollTop += inner.top - outer.top - outer.height / 3;
    }
  }
}
