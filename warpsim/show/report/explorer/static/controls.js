// What can be chosen of how a form is shown: N, colours, parts, selectors, ids of scales, swizzles.

import { byId, make } from "./elements.js";
import { partName } from "./figures.js";

export const COLOURINGS = ["lane", "register", "plain"];
export const SWIZZLES = ["none", "32B", "64B", "128B"];

function numbered(values) {
  return values.map((one) => [one, String(one)]);
}

// A group of radio buttons: options are [value, text, title, refused].
export function choice(name, legend, options, now, act) {
  const button = ([value, text, title, refused]) => make(
    "label", { title: title ?? null, class: refused ? "refused" : null },
    make("input", { type: "radio", name, value: String(value), checked: value === now, disabled: Boolean(refused) }),
    text,
  );
  const field = make(
    "fieldset", { class: "choice", "data-choice": name }, make("legend", {}, legend), options.map(button));
  field.addEventListener("change", (event) => {
    act(event.target.value);
    document.querySelector(`[data-choice="${name}"] input:checked`)?.focus();
  });
  return field;
}

function sizes(page, forms) {
  if (forms.length < 2) return null;
  const select = make("select", { id: "sizes", "aria-label": "N" }, forms.map((form) =>
    make("option", { value: form.mnemonic, selected: form === page.form }, `N = ${form.n}`)));
  select.addEventListener("change", () => {
    page.show(page.catalogue.byMnemonic.get(select.value));
    byId("sizes").focus();
  });
  return select;
}

function colours(page) {
  const options = COLOURINGS.map((one) => [one, one === "plain" ? "nothing" : one]);
  return choice("colouring", "Colour by", options, page.state.colouring, (value) => page.set({ colouring: value }));
}

function parts(page) {
  const { form, state } = page;
  if (form.parts < 2) return null;
  const options = Array.from({ length: form.parts }, (_, at) => [at, String(at), partName(form, at)]);
  const legend = form.products > 1 ? "Product" : "Warp";
  return choice("part", legend, options, state.part, (value) => page.set({ part: Number(value) }));
}

function selectors(page) {
  const { form, state } = page;
  if (form.selectors.length < 2) return null;
  const set = (value) => page.set({ selector: Number(value) });
  return choice("selector", "Selector", numbered(form.selectors), state.selector, set);
}

function columns(page) {
  const { form, state } = page;
  if (!form.sparse || (form.shared && state.shared)) return null;
  const options = [[false, "as stored"], [true, "logical k"]];
  return choice("logical", "A", options, state.logical, (value) => page.set({ logical: value === "true" }));
}

function whereA(page) {
  if (!page.form.shared) return null;
  const options = [[true, "shared memory"], [false, "registers"]];
  return choice("shared", "A in", options, page.state.shared, (value) => page.set({ shared: value === "true" }));
}

function scales(page) {
  const { form, state } = page;
  const made = (kind, side, values) => {
    const name = `${kind}_${side}`;
    const set = (value) => page.set({ ids: { ...state.ids, [name]: Number(value) } });
    return values.length < 2 ? null
      : choice(name, `${side.toUpperCase()} ${kind} id`, numbered(values), state.ids[name], set);
  };
  return (form.scale ? ["a", "b"] : []).flatMap((side) => {
    const { byte_ids: bytes, thread_ids: threads } = form.scaleTable(side);
    return [made("byte", side, bytes), made("thread", side, threads)];
  });
}

function zoom(page) {
  const button = (text, label, factor) => {
    const made = make("button", { type: "button", "aria-label": label, title: label }, text);
    made.addEventListener("click", () => page.zoomBy(factor));
    return made;
  };
  return make("span", { class: "zoom" }, button("−", "Smaller", 1 / 1.2), button("+", "Larger", 1.2));
}

function tiles(page) {
  const { form, state } = page;
  const reason = (side, swizzle, major) => form.tile(side, swizzle, major).error;
  const refused = (one) => ["a", "b"].every((side) => reason(side, one, state.majors[side]));
  const majors = (side) => ["K", "MN"].map((one) => {
    const none = SWIZZLES.every((swizzle) => reason(side, swizzle, one));
    return [one, one, none ? reason(side, "none", one) : null, none];
  });
  const major = (side) => choice(`major_${side}`, `${side.toUpperCase()} major`, majors(side), state.majors[side],
    (value) => page.set({ majors: { ...state.majors, [side]: value } }));
  const swizzles = SWIZZLES.map((one) => [one, one, null, refused(one)]);
  const set = (value) => page.set({ swizzle: value });
  return [choice("swizzle", "Swizzle", swizzles, state.swizzle, set), major("a"), major("b")];
}

export function showControls(page) {
  const made = [
    sizes(page, page.catalogue.groups[page.form.group]), colours(page), parts(page), selectors(page), columns(page),
    whereA(page), ...scales(page), zoom(page),
  ];
  byId("controls").replaceChildren(...made.filter(Boolean));
  if (page.form.shared) byId("tile-controls").replaceChildren(...tiles(page));
}
