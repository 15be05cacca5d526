"""The explorer's scripts in V8, without a browser: what they compute of every form, as data and text."""

from __future__ import annotations

import json
from typing import Any

from py_mini_racer import MiniRacer

from warpsim.show.report.explorer import FOLDERS
from warpsim.show.report.explorer.catalogue import catalogue
from warpsim.show.report.page import bundle

_MODULES = ("catalogue.js", "snippets.js", "writings.js", "pasting.js", "words.js", "cells.js")
_GLUE = """
const { Form } = modules["form.js"], figures = modules["figures.js"], writings = modules["writings.js"];
const snippets = modules["snippets.js"], { Catalogue } = modules["catalogue.js"];
const forms = new Map();
let all = null, data = null;
function load(text) {
  data = JSON.parse(text);
  all = new Catalogue(data);
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
function guessed(name, text) {
  return JSON.stringify(modules["pasting.js"].operandOf(forms.get(name), text));
}
function described(name, word, major, rows, columns, size) {
  const { readMatrix, tileOf, troubleOf, boxesOf, touched } = modules["words.js"];
  const kind = data.words.matrix[name], keys = ["name", "span", "raw", "text", "meaning"];
  const fields = readMatrix(kind, BigInt(word), major).map((one) => keys.map((key) => one[key]));
  const extents = { major, size, mn: rows, k: columns }, tile = tileOf(kind, BigInt(word), extents);
  const trouble = troubleOf(kind, BigInt(word));
  if (tile.error) return JSON.stringify({ fields, trouble, error: tile.error });
  const addresses = Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_unused, column) => tile.address(row, column)));
  return JSON.stringify({ fields, trouble, addresses, ...touched(boxesOf(tile, extents)) });
}
function instruction(name, word) {
  const { readInstruction, instructionTrouble, formsOf, productText } = modules["words.js"];
  const kind = data.words.instruction[name];
  const fields = readInstruction(kind, BigInt(word)).map((one) => [one.span, one.name, one.raw, one.meaning]);
  const forms = formsOf(kind, BigInt(word)).map((form) => form.name);
  const product = productText(kind, BigInt(word));
  return JSON.stringify({ fields, forms, product, trouble: instructionTrouble(kind, BigInt(word), name) });
}
function edit(name, word, attribute, value) {
  const changed = modules["words.js"].edited(data.words.matrix[name], BigInt(word), attribute, value);
  return JSON.stringify(changed === null ? null : String(changed));
}
function cells(at, operand, m, n, type, first) {
  const { keyOfLayout, cellOf, heldIn, blocksOf } = modules["cells.js"], form = data.tensor.forms[at];
  const key = keyOfLayout(form, operand, { m, n, type: form.types[type], first });
  const number = data.tensor.keys[key];
  if (number === null) return "null";
  const layout = data.tensor.layouts[number], held = heldIn(layout);
  const places = Array.from({ length: layout.shape[0] }, (_, row) =>
    Array.from({ length: layout.shape[1] }, (_unused, column) => Object.values(cellOf(layout, row, column))));
  const blocks = blocksOf(held).map((one) => [one.cta, one.lane, one.lanes, one.cell, one.cells, one.copy]);
  return JSON.stringify({ places, blocks, held: held.size });
}
function transfer(name, count, offset) {
  const places = modules["cells.js"].transferred(data.tensor.transfers[name], count, offset);
  return JSON.stringify(places.map(({ thread, register, lane, column }) => [thread, register, lane, column]));
}
function groups() { return JSON.stringify(all.groups.map((group) => group.map((form) => form.mnemonic))); }
"""


class Scripts:
    """The modules of the explorer that need no browser, with the whole catalogue loaded."""

    def __init__(self) -> None:
        self._engine = MiniRacer()
        self._engine.eval(bundle(*_MODULES, folders=FOLDERS) + _GLUE)
        self._engine.call("load", json.dumps(catalogue()))

    def close(self) -> None:
        """End the engine's threads, which would outlive the tests."""
        getattr(self._engine, "close", lambda: None)()  # mini-racer has it since 0.13

    def __call__(self, function: str, *arguments: Any) -> Any:
        """What one of the functions above returns."""
        return json.loads(self._engine.call(function, *arguments))
