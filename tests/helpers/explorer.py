"""The explorer's scripts in V8, without a browser: what they compute of every form, as data and text."""

from __future__ import annotations

import json
from typing import Any

from py_mini_racer import MiniRacer

from warpsim.report.explorer import FOLDERS
from warpsim.report.explorer.catalogue import catalogue
from warpsim.report.page import bundle

_GLUE = """
const { Form } = modules["form.js"], figures = modules["figures.js"], writings = modules["writings.js"];
const snippets = modules["snippets.js"], { Catalogue } = modules["catalogue.js"];
const forms = new Map();
let all = null;
function load(text) {
  all = new Catalogue(JSON.parse(text));
  for (const form of all.forms) forms.set(form.mnemonic, form);
  return forms.size;
}
function places(name, operand, selector, ids) {
  const names = ["lane", "register", "index", "low", "bits", "row", "column", "product"];
  const fields = (place) => names.map((one) => place[one]);
  return JSON.stringify(forms.get(name).places(operand, selector, JSON.parse(ids)).map(fields));
}
function addresses(name, operand, swizzle, major, elements) {
  const form = forms.get(name), tile = form.tile(operand, swizzle, major);
  const [mn, k] = tile.extent;
  return JSON.stringify(Array.from({ length: mn }, (_, row) =>
    Array.from({ length: k }, (_, column) => form.address(tile, row, column * elements))));
}
function drawn(name, operand, selector) {
  const form = forms.get(name);
  if (operand.startsWith("scale_")) return [figures.scaleFigure(form, operand, {})];
  return Array.from({ length: form.parts }, (_, part) => part).flatMap((part) => {
    const both = [figures.chunksFigure, figures.wordsFigure];
    if (operand === "e") return both.map((make) => make(form, selector, part));
    const views = operand === "a" && form.sparse ? [false, true] : [false];
    return views.map((logical) => figures.matrixFigure(form, operand, part, logical));
  });
}
function written(name, operand, selector, format) {
  return JSON.stringify(drawn(name, operand, selector).map((one) => writings.FORMATS[format].write(one)));
}
function writtenTile(name, operand, swizzle, major) {
  const form = forms.get(name);
  const figure = figures.tileFigure(form, operand, form.tile(operand, swizzle, major));
  return JSON.stringify(writings.textOf(figure));
}
function cute(name, selector) {
  const form = forms.get(name), { cuteText, cuteLayout } = snippets;
  return JSON.stringify(snippets.cuteOperands(form).flatMap((operand) =>
    Array.from({ length: "abcd".includes(operand) ? form.products : 1 }, (_, product) =>
      `${operand.toUpperCase()} ${cuteText(cuteLayout(form, operand, selector, product))}`)));
}
function cuteCode(name) { return JSON.stringify(snippets.cuteOf(forms.get(name))); }
function ptx(name, shared) {
  const form = forms.get(name), selector = form.selectors.at(-1) ?? 0;
  const ids = { byte_a: 0, thread_a: 1, byte_b: 0, thread_b: 3 };
  return JSON.stringify(snippets.ptxOf(form, { shared, selector, ids }));
}
function code(name, selector, swizzle, major) {
  const form = forms.get(name), sides = form.shared ? ["a", "b"] : [];
  const tiles = Object.fromEntries(sides.map((side) => [side, form.tile(side, swizzle, major)]));
  return JSON.stringify(snippets.codeOf(form, { selector, tiles }));
}
function search(wanted) {
  const found = all.search(JSON.parse(wanted)).flatMap((group) => group.forms);
  return JSON.stringify(found.map((form) => form.mnemonic));
}
function pasted(name, operand, text, selector) {
  const form = forms.get(name), { wordsIn, held } = modules["pasting.js"];
  const bits = "abcd".includes(operand) ? form.register_bits : 32;
  const { words, error } = wordsIn(text, bits, form.registers[operand]);
  const { cells, note } = held(form, operand, words, { selector });
  const written = (code) => (code === null ? null : String(code));
  const shown = cells.map(({ place, code, text }) => [place.row, place.column, written(code), text]);
  return JSON.stringify({ error, note, cells: shown });
}
function groups() { return JSON.stringify(all.groups.map((group) => group.map((form) => form.mnemonic))); }
"""


class Scripts:
    """The modules of the explorer that need no browser, with the whole catalogue loaded."""

    def __init__(self) -> None:
        self._engine = MiniRacer()
        self._engine.eval(
            bundle("catalogue.js", "snippets.js", "writings.js", "pasting.js", folders=FOLDERS) + _GLUE
        )
        self._engine.call("load", json.dumps(catalogue()))

    def close(self) -> None:
        """End the engine's threads, which would outlive the tests."""
        getattr(self._engine, "close", lambda: None)()  # mini-racer has it since 0.13

    def __call__(self, function: str, *arguments: Any) -> Any:
        """What one of the functions above returns."""
        return json.loads(self._engine.call(function, *arguments))
