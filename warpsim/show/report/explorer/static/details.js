// What is known of a form besides its figures: its name, registers, targets, arithmetic, formulas and descriptors.

import { byId, make, table } from "./elements.js";
import { namingText } from "./naming.js";
import { cuteLayout, cuteText } from "./snippets.js";

// --- head ------------------------------------------------------------------------------------------

// A mnemonic that can break at its dots, the shape and types coloured like their matrices.
function mnemonicPieces(form) {
  const spelled = [form.types.d, form.types.a, form.types.b, form.types.c];
  let at = 0;
  return form.mnemonic.split(/(?=\.)/).flatMap((piece) => {
    const bare = piece.slice(1);
    const isType = bare === spelled[at] && form.formats[bare];
    const operand = isType ? "dabc"[at] : null;
    if (isType) at += 1;
    const name = /^\.m\d+n\d+k\d+$/.test(piece) ? "shape" : operand ? `of-${operand}` : null;
    return [make("wbr"), name ? make("span", { class: `piece ${name}` }, piece) : piece];
  });
}

function counted(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function facts(form) {
  const names = { e: "metadata", scale_a: "scales of A", scale_b: "scales of B" };
  const registers = form.operands.map((operand) =>
    `${names[operand] ?? operand.toUpperCase()} ${form.registers[operand]}`);
  const shared = form.shared ? ["A in registers or shared memory, B in shared memory"] : [];
  const sparse = form.sparse
    ? [`${form.pattern.name} sparse: ${form.stored_k} of ${form.k} columns of A stored`] : [];
  const several = form.products > 1 ? [`${form.products} products at once`] : [];
  return [
    form.lanes > 32 ? "warpgroup, 128 lanes" : "warp, 32 lanes", ...several, ...sparse, ...shared,
    `${form.register_bits}-bit registers a lane: ${registers.join(", ")}`, `PTX ${form.since}`,
  ];
}

export function showHead(form) {
  byId("mnemonic").replaceChildren(...mnemonicPieces(form));
  byId("facts").replaceChildren(...facts(form).map((text) => make("li", {}, text)));
  showTargets(form);
  byId("naming").textContent = namingText(namesOf(form));
}

// The registers that hold element 0 of each operand, and how many elements each holds.
function namesOf(form) {
  return form.operands.filter((operand) => "abcd".includes(operand)).map((operand) => ({
    operand, name: form.registerName(operand, 0), bits: form.register_bits,
    count: form.register_bits / form.layout(operand).storage,
  }));
}

// --- targets ---------------------------------------------------------------------------------------

function showTargets(form) {
  const rules = new Map(form.rules.map((rule) => [rule.target, rule]));
  byId("targets").replaceChildren(...form.allTargets.map((target) => {
    const rule = rules.get(target);
    const title = rule ? `${target}: ${rule.label}` : `${target} does not have this form`;
    const state = rule ? (rule.label === "validated" ? "legal validated" : "legal") : "illegal";
    const said = rule ? "" : make("span", { class: "spoken" }, " no");
    return make("li", { class: state, title }, target, said);
  }));
  byId("arithmetic").replaceChildren(arithmeticTable(form), ...sassLines(form));
}

function wrapped(caption, header, rows) {
  return table(caption, header, rows, { className: "plain wrapped" });
}

function arithmeticTable(form) {
  const groups = Map.groupBy(form.rules, (rule) => `${rule.text}\n${rule.evidence}`);
  const rows = [...groups.values()].map((rules) => ({
    cells: [rules.map((rule) => rule.target).join(", "), rules[0].text, rules[0].evidence],
  }));
  return wrapped("How each target sums, and why that is believed", ["targets", "sums", "evidence"], rows);
}

function sassLines(form) {
  if (!form.sass?.length) return [];
  const rows = form.sass.map(([targets, names]) => ({ cells: [targets, names] }));
  return [wrapped("What ptxas 13.0 makes of it", ["targets", "SASS"], rows)];
}

// --- formulas --------------------------------------------------------------------------------------

const HEADINGS = { e: "Metadata", scale_a: "Scales of A", scale_b: "Scales of B" };

function formulaBlock(form, operand, state) {
  const { section, domain, lines, more } = form.formula(operand);
  const shown = lines[operand === "e" ? state.selector : 0];
  const product = form.products > 1 ? state.part : 0;
  const cute = operand.startsWith("scale_") ? []
    : [make("p", { class: "cute" }, cuteText(cuteLayout(form, operand, state.selector, product)))];
  return make(
    "div", { class: `formula of-${operand}` },
    make("h4", {}, make("span", { class: "name" }, HEADINGS[operand] ?? operand.toUpperCase()), " ",
      make("small", {}, `${domain}; PTX ISA ${section}`)),
    make("pre", {}, [...shown, ...more].join("\n")), ...cute,
  );
}

export function showFormulas(form, state) {
  const operands = form.operands.filter((operand) => operand !== "c" || form.types.c !== form.types.d);
  byId("formulas").replaceChildren(...operands.map((operand) => formulaBlock(form, operand, state)));
}

// --- descriptors -----------------------------------------------------------------------------------

export function showDescriptors(form, state) {
  byId("shared").hidden = !form.shared;
  if (!form.shared) return;
  byId("descriptors").replaceChildren(...["a", "b"].map((side) => descriptorBlock(form, side, state)));
}

function descriptorBlock(form, side, state) {
  const tile = form.tile(side, state.swizzle, state.majors[side]);
  const title = make("h4", {}, make("span", { class: "name" }, `${side.toUpperCase()} descriptor`), " ");
  if (!tile || tile.error) {
    const reason = make("p", { class: "refused" }, tile?.error ?? "none");
    return make("div", { class: `formula of-${side}` }, title, reason);
  }
  const size = `${counted(tile.extent[0], "row")} of ${tile.extent[1] * tile.elements}`;
  title.append(make("code", { id: `word-${side}` }, tile.word), make("small", {}, ` at address 0, packed ${size}`));
  const rows = tile.fields.map(([name, bits, raw, value, meaning]) => ({ cells: [name, bits, raw, value, meaning] }));
  return make("div", { class: `formula of-${side}` }, title,
    wrapped(`Descriptor of ${side.toUpperCase()}`, ["field", "bits", "raw", "value", "meaning"], rows));
}
