// Small helpers for building elements.

// An element with attributes ("class", "data-…", "aria-…") and children: elements or text; null is left out.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

export function byId(name) {
  return document.getElementById(name);
}

// A table with a line of headings; cells are text or elements. numeric says which columns align right.
export function table(caption, header, rows, { numeric = [], className = "plain" } = {}) {
  const align = (index) => (numeric.includes(index) ? "number" : null);
  const cell = (tag, text, index, more = {}) => make(tag, { class: align(index), ...more }, text);
  return make(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make(
      "table", { class: className },
      make("caption", {}, caption),
      make("thead", {}, make("tr", {}, header.map((text, index) => cell("th", text, index, { scope: "col" })))),
      make("tbody", {}, rows.map(({ cells, ...attributes }) =>
        make("tr", attributes, cells.map((text, index) => cell("td", text, index))))),
    ),
  );
}
