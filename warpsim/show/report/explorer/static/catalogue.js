// All forms, in groups that differ in N alone, and the search through them.

import { Form } from "./form.js";

const SIZE = /m(\d+)n(\d+)k(\d+)/;

function groupKey(form) {
  return form.lanes > 32 ? form.mnemonic.replace(SIZE, "m$1nNk$3") : form.mnemonic;
}

export function shapeName(form) {
  return form.lanes > 32 ? form.size.replace(SIZE, "m$1nNk$3") : form.size;
}

// What tells forms of one shape and types apart.
export function tagsOf(form) {
  const { mnemonic } = form;
  const tags = ["ordered_metadata", "satfinite", "kind::mxf8f6f4", "kind::f8f6f4", "kind::mxf4nvf4", "kind::mxf4",
    "scale_vec::1X", "scale_vec::2X", "scale_vec::4X", ".and", ".xor", ".rn.", ".rz.", ".rm.", ".rp."];
  const found = tags.filter((tag) => mnemonic.includes(tag) && !(tag === "kind::mxf4" && mnemonic.includes("nvf4")));
  const order = form.products > 1 ? [mnemonic.match(/(row|col)\.(row|col)/)[0]] : [];
  const scale = form.scale ? [form.scale.type] : [];
  return [...order, ...found.map((tag) => tag.replaceAll(".", "").replace("kind::", "").replace("_metadata", "")
    .replace("scale_vec::", "")), ...scale];
}

export class Catalogue {
  constructor(data) {
    this.targets = data.targets;
    this.words = data.words;
    this.tensor = data.tensor;
    this.families = data.families;
    this.forms = data.forms.map((entry) => new Form(data, entry));
    this.byMnemonic = new Map(this.forms.map((form) => [form.mnemonic, form]));
    this.groups = [...Map.groupBy(this.forms, groupKey).values()];
    this.groups.forEach((group, at) => group.forEach((form) => { form.group = at; }));
    this.named = new Map(this.forms.map((form) => [form, wordsOf(form)]));
  }

  // Groups that match, each with the forms of it that do: [{ at, forms }].
  search({ text = "", target = "", type = "", shape = "", family = "" }) {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (form) => (!family || form.family === family)
      && (!shape || shapeName(form) === shape)
      && (!type || Object.values(form.types).includes(type))
      && (!target || form.targetNames.includes(target))
      && wanted.every((word) => this.named.get(form).includes(word));
    return this.groups.map((group, at) => ({ at, forms: group.filter(matches) })).filter(({ forms }) => forms.length);
  }

  // The choices of each filter, in the order in which forms come.
  choices() {
    const distinct = (values) => [...new Set(values)];
    return {
      target: this.targets.filter((name) => this.forms.some((form) => form.targetNames.includes(name))),
      family: this.families,
      type: distinct(this.forms.flatMap((form) => Object.values(form.types))),
      shape: distinct(this.forms.map(shapeName)),
    };
  }
}

function wordsOf(form) {
  const kinds = [form.sparse ? "sparse" : "dense", form.scale ? "scaled" : "", form.family, shapeName(form)];
  return [form.mnemonic, ...kinds, form.pattern?.name ?? "", ...(form.sass ?? []).flat()].join(" ").toLowerCase();
}
