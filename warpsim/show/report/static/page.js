// The state of the page: which instruction is shown, what is pointed at or pinned, and what follows from it.

import { partsOf } from "./board.js";
import { describe } from "./describe.js";
import { byId, make } from "./elements.js";
import { computedCode, explain } from "./explain.js";
import { explanationElements } from "./explanation.js";
import { productOf, rowsShown } from "./grids.js";
import { focusCell, reveal, revealWithin } from "./keyboard.js";
import { elementKey, exists, keyOf, lightsOf, subjectOf } from "./links.js";
import { Overview } from "./overview.js";
import { Showing } from "./showing.js";
import { Source } from "./source.js";
import { Timeline } from "./timeline.js";

const WARP = 32;
const HINT = "Point at an element, a lane, a register or metadata bits; click or press Enter to pin it. "
  + "? lists the keys.";

function order({ lane, register, low_bit: low }) {
  return (lane * 1024 + register) * 64 + low;
}

export class Page {
  constructor(report, instructions) {
    this.report = report;
    this.instructions = instructions;
    this.part = 0;
    this.pinned = null;
    this.pointed = null;
    this.explaining = false;
    this.showing = new Showing(byId("board"));
    const lit = (lines, instructions) => this.markLines(lines, instructions);
    this.source = byId("source") && new Source(byId("source"), (index) => this.show(index), lit);
    this.overview = report.overview
      && new Overview(byId("overview"), report.overview, instructions.read, (index) => this.show(index));
    this.timeline = byId("timeline") && new Timeline(byId("timeline"), (index) => this.show(index));
  }

  get instruction() {
    return this.instructions[this.index];
  }

  get lamps() {
    return this.showing.lamps;
  }

  get product() {
    return productOf(this.instruction, this.part);
  }

  get mode() {
    return document.querySelector("#cells input:checked").value;
  }

  // --- instructions ---

  // Show an instruction; what is pinned stays so if the instruction has it.
  show(index, part = this.part) {
    const isNew = index !== this.index;
    this.index = Math.min(Math.max(index, 0), this.instructions.length - 1);
    const parts = partsOf(this.instruction);
    this.part = Math.min(part, Math.max(parts.length - 1, 0));
    this.pointed = null;
    if (this.pinned && !exists(this.instruction, this.pinned)) this.pinned = null;
    this.markStep();
    this.markEvent();
    this.showHead(parts);
    this.showing.show(this.instruction, this.part, this.product, this.mode);
    this.refresh();
    if (isNew) byId("spoken").textContent = `Instruction ${this.index + 1}: ${this.instruction.layout.mnemonic}`;
  }

  markStep() {
    const steps = byId("steps");
    const step = steps.children[this.index];
    steps.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
    step.setAttribute("aria-selected", "true");
    steps.setAttribute("aria-activedescendant", step.id);
    step.scrollIntoView({ block: "nearest" });
  }

  // The mark of the instruction among those of its launch.
  markEvent() {
    this.timeline?.mark(this.index);
    this.source?.mark(this.index);
    this.overview?.mark(this.index);
    document.querySelector("#axis .shown")?.classList.remove("shown");
    document.querySelector(`#axis [data-index="${this.index}"]`)?.classList.add("shown");
  }

  // Instructions of lines of the PTX, in the list and in the overview.
  markLines(lines, instructions) {
    [...byId("steps").children].forEach((step, at) => step.classList.toggle("of-line", instructions.has(at)));
    this.overview?.light(lines);
  }

  showHead(parts) {
    const { instruction } = this;
    const { layout } = instruction;
    const { evidence } = layout;
    byId("mnemonic").textContent = layout.mnemonic;
    byId("statement").textContent = instruction.statement;
    const place = instruction.line === null ? [] : [`line ${instruction.line}`];
    const where = [...(instruction.source ? [`${instruction.source} (${place[0]})`] : place), layout.target];
    if (instruction.warp !== null) where.push(`warp ${instruction.warp}`);
    if (instruction.executed) where.push(instruction.executed);
    byId("facts").replaceChildren(
      make("span", {}, where.join(" · ")),
      make("span", { class: `badge ${evidence.label}`, title: evidence.text }, evidence.label),
      make("span", { class: "evidence" }, evidence.text.slice(evidence.label.length).replace(/^: /, "")),
      ...instruction.notes.map((note) => make("span", { class: "note" }, note)),
    );
    byId("position").textContent = `${this.index + 1} of ${this.instructions.length}`;
    byId("before").disabled = this.index === 0;
    byId("after").disabled = this.index === this.instructions.length - 1;
    byId("proof").textContent = "";
    byId("parts").replaceChildren(...parts.map((name, at) =>
      make("button", { type: "button", "data-part": at, "aria-pressed": String(at === this.part) }, name)));
    this.showFailures();
  }

  // Expectations about this instruction that failed, with their first difference.
  showFailures() {
    const checks = this.instruction.different ? this.instruction.checks : [];
    const failed = checks.map((number) => this.report.checks[number]).filter((check) => check.different);
    byId("failures").replaceChildren(...failed.map(({ line, registers, different, compared, first, element }, at) => {
      const place = line === null ? registers : `line ${line}, ${registers}`;
      const count = `✗ ${place}: ${different} of ${compared} words differ. `;
      const content = [make("b", {}, count), first ?? ""];
      const number = checks.find((one) => this.report.checks[one] === failed[at]);
      return element
        ? make("button", { type: "button", class: "failure", "data-check": number }, ...content)
        : make("p", { class: "failure" }, ...content);
    }));
    byId("next").hidden = !this.instructions.some((one) => one.different);
  }

  // The instruction of a check and, where it fails, the element that it names.
  showCheck({ instruction, different, element }) {
    if (instruction === null) return;
    if (!different || !element) return void this.show(instruction);
    const [row, column, product] = element;
    this.show(instruction, this.partOf(instruction, { row, product }));
    this.pin({ kind: "element", operand: "d", row, column });
    focusCell(this.lamps.cells.get(elementKey("d", row, column)));
  }

  // --- pointing and pinning ---

  point(subject) {
    if (this.pinned && subject?.kind !== "pair") return;
    this.pointed = subject;
    this.refresh();
  }

  pin(subject, explaining = this.explaining) {
    this.pinned = subject;
    this.pointed = null;
    this.explaining = explaining;
    this.showWarpOf(subject);
    this.refresh();
    this.revealPinned();
  }

  // Scroll to the registers of what is pinned, within the other panels to what meets it, and then to itself.
  revealPinned() {
    if (!this.pinned) return;
    const own = this.lamps.cells.get(keyOf(this.pinned));
    for (const cell of this.lamps.lit) if (cell !== own && cell.dataset.light === "here") reveal(cell);
    const seen = new Set(own ? [own.closest(".scroll")] : []);
    for (const cell of this.lamps.lit) {
      const box = cell.closest(".scroll");
      if (!seen.has(box) && cell.tagName === "TD") revealWithin(box, cell);
      seen.add(box);
    }
    if (own) reveal(own);
    this.showing.soon();
  }

  // The element behind a subject is in another warp of a wgmma: show that one.
  showWarpOf({ kind, operand, row, lane }) {
    if (this.instruction.layout.lanes === WARP) return;
    const isElsewhere = kind === "element" && !rowsShown(this.instruction, operand, this.part).includes(row);
    const part = kind === "element"
      ? this.partOf(this.index, { row })
      : Math.floor((lane ?? WARP * this.part) / WARP);
    if (isElsewhere || (kind !== "element" && part !== this.part)) this.show(this.index, part);
  }

  release() {
    if (!this.pinned && !this.explaining) return false;
    this.pinned = null;
    this.explaining = false;
    this.refresh();
    return true;
  }

  refresh() {
    const subject = this.pointed ?? this.pinned;
    if (subject) this.lamps.show(lightsOf(this.instruction, this.product, subject));
    else this.lamps.clear();
    document.body.classList.toggle("pinned", Boolean(this.pinned));
    this.showLine(subject?.kind === "pair" ? this.pinned : subject);
    if (this.pointed?.kind !== "pair") this.showExplanation();
    this.remember();
  }

  showLine(subject) {
    const classOf = (kind) => (["", "strong", "bad"].includes(kind) ? kind : `chip of-${kind}`);
    const pieces = subject
      ? describe(this.instruction, this.product, subject)
        .map(({ text, kind }) => make("span", { class: classOf(kind) }, text))
      : [make("span", { class: "hint" }, HINT)];
    byId("line").replaceChildren(...pieces);
    byId("release").hidden = !this.pinned;
    byId("explain").hidden = !this.target();
    byId("explain").setAttribute("aria-expanded", String(this.explaining));
    byId("explain").textContent = this.explaining ? "Hide explanation" : "Explain";
  }

  // The element of D that can be explained: the pinned one, or that of the pinned element of C.
  target() {
    const subject = this.pinned;
    return subject?.kind === "element" && ["c", "d"].includes(subject.operand) ? subject : null;
  }

  showExplanation() {
    const place = byId("explanation");
    const target = this.explaining ? this.target() : null;
    place.hidden = !target;
    const key = target && `${this.index}/${this.product}/${keyOf(target)}`;
    if (key === this.explained) return;
    this.explained = key;
    if (!target) return place.replaceChildren();
    const { row, column } = target;
    const document = explain(this.instruction, row, column, this.product);
    const title = make("h3", {}, `D[${row},${column}] = ${document.code} = ${document.value}`);
    const actual = this.instruction.code("d", row, column, this.product);
    place.replaceChildren(title, ...explanationElements(this.instruction, document, actual));
    place.scrollTop = 0;
  }

  // --- the address, so that a link leads back ---

  remember() {
    const parts = [`instruction=${this.index + 1}`];
    if (partsOf(this.instruction).length) parts.push(`part=${this.part}`);
    if (this.pinned) parts.push(`at=${keyOf(this.pinned)}`);
    if (this.explaining) parts.push("explain");
    try {
      history.replaceState(null, "", `#${parts.join("&")}`);
    } catch {
      // a notebook's frame has no address of its own
    }
  }

  recall() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (!given.has("instruction")) return this.open();
    this.show(Number(given.get("instruction")) - 1, Number(given.get("part") ?? 0));
    const subject = given.has("at") ? subjectOf(given.get("at")) : null;
    if (subject && exists(this.instruction, subject)) this.pin(subject, given.has("explain"));
  }

  // The first element that is not as expected, otherwise the first instruction.
  open() {
    const index = Math.max(this.instructions.findIndex((one) => one.different), 0);
    const [first] = this.differences(index, null);
    if (!first) return this.show(index);
    this.show(index, this.partOf(index, first));
    this.pin({ kind: "element", operand: "d", row: first.row, column: first.column });
  }

  // --- differences ---

  nextDifference() {
    const found = this.differences(this.index, this.pinned);
    const later = [...this.instructions.keys()].map((at) => (this.index + 1 + at) % this.instructions.length);
    const index = found.length ? this.index : later.find((at) => this.instructions[at].different);
    if (index === undefined) return;
    const [next] = found.length ? found : this.differences(index, null);
    this.show(index, this.partOf(index, next));
    this.pin({ kind: "element", operand: "d", row: next.row, column: next.column });
    focusCell(this.lamps.cells.get(elementKey("d", next.row, next.column)));
  }

  partOf(index, { product, row }) {
    const { layout } = this.instructions[index];
    if (layout.tensor_memory) return Math.floor(layout.at("d", row, 0).lane / WARP);
    return layout.lanes > WARP ? Math.floor(row / (layout.shape.m / 4)) : product;
  }

  // Elements of D that differ, behind the given subject: lane by lane, as checks compare them.
  differences(index, after) {
    const instruction = this.instructions[index];
    if (!instruction.different) return [];
    const places = instruction.layout.places("d")
      .filter(({ row, column, product }) => instruction.differs(row, column, product))
      .sort((x, y) => order(x) - order(y));
    const isD = after?.kind === "element" && after.operand === "d" && index === this.index;
    const start = isD ? order(instruction.layout.at("d", after.row, after.column, this.product)) : -1;
    return places.filter((place) => order(place) > start);
  }

  // --- proof ---

  // Recompute every element of D in this page, and say whether the bits are those of the simulator.
  async prove() {
    const { instruction } = this;
    const { layout } = instruction;
    const [rows, columns] = layout.extent("d");
    const total = layout.products * rows * columns;
    let equal = 0;
    let done = 0;
    for (let product = 0; product < layout.products; product += 1) {
      for (let row = 0; row < rows; row += 1) {
        for (let column = 0; column < columns; column += 1) {
          equal += computedCode(instruction, row, column, product) === instruction.code("d", row, column, product);
        }
        done += columns;
        byId("proof").textContent = `${done} of ${total} …`;
        await new Promise((resolve) => setTimeout(resolve));
        if (this.instruction !== instruction) return;
      }
    }
    byId("proof").textContent = `${equal === total ? "✓" : "✗"} ${equal} of ${total} elements recomputed bit for bit`;
  }
}
