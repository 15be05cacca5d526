// The page at work: what the mouse and keys do.

import { byId } from "./elements.js";
import { focusCell, moveInGrid } from "./keyboard.js";
import { keyOf, subjectOf } from "./links.js";
import { readReport } from "./model.js";
import { Page } from "./page.js";
import { readPayload } from "./payload.js";
import { nextTheme, startTheme } from "./theme.js";

function subjectAt(event) {
  const cell = event.target.closest?.("[data-key]");
  return cell ? subjectOf(cell.dataset.key) : null;
}

function isSame(first, second) {
  return first !== null && second !== null && keyOf(first) === keyOf(second);
}

function listenToBoard(page) {
  const board = byId("board");
  board.addEventListener("pointerover", (event) => page.point(subjectAt(event)));
  board.addEventListener("pointerleave", () => page.point(null));
  board.addEventListener("focusin", (event) => page.point(subjectAt(event)));
  board.addEventListener("click", (event) => {
    const cell = event.target.closest("[data-key]");
    if (!cell) return;
    const subject = subjectOf(cell.dataset.key);
    if (isSame(subject, page.pinned)) page.release();
    else page.pin(subject);
    if (cell.isConnected) focusCell(cell);
  });
  board.addEventListener("dblclick", (event) => {
    const subject = subjectAt(event);
    if (subject?.operand === "d" && subject.kind === "element") page.pin(subject, true);
  });
}

function listenToDock(page) {
  // What is scrolled into view stops above the dock, however high that is.
  new ResizeObserver(([{ target }]) => {
    document.documentElement.style.setProperty("--dock", `${target.offsetHeight}px`);
    page.revealPinned();
  }).observe(byId("dock"));
  const place = byId("explanation");
  place.addEventListener("pointerover", (event) => page.point(subjectAt(event)));
  place.addEventListener("pointerleave", () => page.point(null));
  byId("explain").addEventListener("click", () => {
    page.explaining = !page.explaining;
    page.refresh();
  });
  byId("release").addEventListener("click", () => page.release());
}

function listenToControls(page) {
  byId("before").addEventListener("click", () => page.show(page.index - 1));
  byId("after").addEventListener("click", () => page.show(page.index + 1));
  byId("prove").addEventListener("click", () => page.prove());
  byId("help-button").addEventListener("click", () => byId("help").showModal());
  byId("parts").addEventListener("click", (event) => {
    const { part } = event.target.dataset;
    if (part !== undefined) page.show(page.index, Number(part));
  });
  byId("cells").addEventListener("change", () => {
    page.showing.again(page.mode);
  });
  for (const list of [byId("steps"), byId("axis")]) {
    list?.addEventListener("click", (event) => {
      const step = event.target.closest("[data-index]");
      if (step) page.show(Number(step.dataset.index));
    });
  }
  for (const place of [byId("checks"), byId("failures")]) {
    place?.addEventListener("click", (event) => {
      const { check } = event.target.closest("[data-check]")?.dataset ?? {};
      if (check) page.showCheck(page.report.checks[Number(check)]);
    });
  }
  byId("next").addEventListener("click", () => page.nextDifference());
  addEventListener("hashchange", () => page.recall());
}

function nextMode() {
  const choices = [...document.querySelectorAll("#cells input")];
  const next = choices[(choices.findIndex((one) => one.checked) + 1) % choices.length];
  next.checked = true;
  next.dispatchEvent(new Event("change", { bubbles: true }));
}

const KEYS = {
  "[": (page) => page.show(page.index - 1),
  "]": (page) => page.show(page.index + 1),
  n: (page) => page.nextDifference(),
  v: nextMode,
  t: nextTheme,
  "?": () => byId("help").showModal(),
};

// Enter and Space on a cell pin it; of D, a second Enter opens the explanation.
function activate(page, event) {
  const subject = subjectAt(event);
  if (!subject || subject.kind === "pair") return false;
  const isD = subject.kind === "element" && subject.operand === "d";
  const again = isSame(subject, page.pinned);
  if (again && isD) page.pin(subject, !page.explaining);
  else if (again) page.release();
  else page.pin(subject);
  return true;
}

function listenToKeys(page) {
  document.addEventListener("keydown", (event) => {
    if (byId("help").open || event.target.matches("input")) return;
    if (moveInGrid(event)) return;
    if (page.timeline?.press(event)) return;
    const done = event.key === "Escape" ? (page.source?.clear() || page.release())
      : ["Enter", " "].includes(event.key) ? activate(page, event)
        : stepWithArrows(page, event) || pressed(page, event);
    if (done) event.preventDefault();
  });
}

function pressed(page, event) {
  const action = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
  action?.(page);
  return Boolean(action);
}

// Up and down in the list of instructions.
function stepWithArrows(page, event) {
  if (event.target !== byId("steps")) return false;
  const last = page.instructions.length - 1;
  const to = { ArrowUp: page.index - 1, ArrowDown: page.index + 1, Home: 0, End: last }[event.key];
  if (to === undefined) return false;
  page.show(to);
  return true;
}

async function start() {
  startTheme();
  const { document: report, buffer } = await readPayload();
  const page = new Page(report, readReport(report, buffer));
  listenToKeys(page);
  if (!page.instructions.length) {
    document.documentElement.dataset.ready = "yes";
    return;
  }
  byId("shown").hidden = false;
  listenToBoard(page);
  listenToDock(page);
  listenToControls(page);
  page.recall();
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => {
  byId("trouble").hidden = false;
  byId("trouble").textContent = `This report cannot be shown: ${error.message}`;
});
