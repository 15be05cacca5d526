// Figures written down: as text like that of ``warpsim layout``, CSV, Markdown and LaTeX, and as SVG.

import { gridOf } from "./figures.js";
import { laneColour, registerColour } from "./palette.js";

// --- text and Markdown -----------------------------------------------------------------------------

function lineOf(label, boxes) {
  return [label, ...boxes].join(" | ").trimEnd();
}

export function textOf(figure) {
  const grid = gridOf(figure);
  const label = Math.max(figure.corner.length, ...figure.rowLabels.map((one) => one.length));
  const widths = figure.columnLabels.map((name, at) =>
    Math.max(name.length, ...grid.map((line) => line[at]?.text.length ?? 0)));
  const head = lineOf(figure.corner.padEnd(label), figure.columnLabels.map((name, at) => centred(name, widths[at])));
  const lines = grid.map((line, row) => lineOf(
    figure.rowLabels[row].padStart(label), line.map((cell, at) => (cell?.text ?? "").padEnd(widths[at]))));
  return [figure.title, head, ...lines].join("\n");
}

// As Python centres: the odd space goes to the left where the width is odd.
function centred(text, width) {
  const room = width - text.length;
  const left = Math.floor(room / 2) + (room & width & 1);
  return text.padStart(text.length + left).padEnd(width);
}

export function markdownOf(figure) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const escaped = (text) => text.replaceAll("\\", "\\\\").replaceAll("|", "\\|");
  const rows = gridOf(figure).map((cells, row) =>
    line([`**${figure.rowLabels[row]}**`, ...cells.map((cell) => (cell ? `\`${cell.text}\`` : ""))]));
  const rule = line(["---:", ...figure.columnLabels.map(() => ":---")]);
  return [`**${escaped(figure.title)}**`, "", line([escaped(figure.corner), ...figure.columnLabels]), rule, ...rows]
    .join("\n");
}

// --- CSV: a line for each element ------------------------------------------------------------------

const COLUMNS = {
  tile: ["operand", "mn", "k", "address"],
  other: ["operand", "product", "row", "column", "lane", "register", "index", "low_bit", "bits"],
};

export function csvOf(figure) {
  const places = figure.cells.flatMap((cell) => cell.places);
  const kind = figure.name === "tile" ? "tile" : "other";
  const values = (place) => (kind === "tile"
    ? [place.side, place.row, place.column, place.address]
    : [place.operand, place.product, place.row, place.column, place.lane, place.register, place.index, place.low,
      place.bits]);
  return [COLUMNS[kind], ...places.map(values)].map((line) => line.join(",")).join("\n");
}

// --- LaTeX: a picture of TikZ ----------------------------------------------------------------------

function latexEscaped(text) {
  const special = { "\\": "\\textbackslash{}", "–": "--" };
  return text.replace(/[\\{}%#&_$–]/g, (one) => special[one] ?? `\\${one}`);
}

function rgb(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `{rgb,255:red,${red};green,${green};blue,${blue}}`;
}

// Boxes stand in the columns and rows of the grid: as wide as their text needs, whatever they cover.
export function latexOf(figure, colouring = "lane") {
  const grid = gridOf(figure);
  const texts = [...figure.columnLabels, ...figure.cells.map((one) => one.text)];
  const longest = Math.max(...texts.map((one) => one.length));
  const width = (0.16 * longest + 0.2).toFixed(2);
  const boxes = grid.flatMap((line, row) => line.flatMap((cell, column) => (cell ? [
    `\\filldraw[fill=${rgb(colourOf(cell, colouring))}] (${column},${row}) rectangle (${column + 1},${row + 1});`,
    `\\node at (${column}.5,${row}.5) {${latexEscaped(cell.text)}};`,
  ] : [])));
  return [
    `% ${figure.title}`,
    "\\documentclass[tikz,border=4pt]{standalone}",
    "\\begin{document}",
    `\\begin{tikzpicture}[x=${width}cm,y=-0.5cm,every node/.style={font=\\ttfamily\\footnotesize}]`,
    `\\node[anchor=west] at (0,-1.6) {${latexEscaped(figure.title)}};`,
    ...figure.columnLabels.map((name, at) => `\\node at (${at}.5,-0.5) {${latexEscaped(name)}};`),
    ...figure.rowLabels.map((name, at) => `\\node[anchor=east] at (-0.1,${at}.5) {${latexEscaped(name)}};`),
    ...boxes,
    "\\end{tikzpicture}",
    "\\end{document}",
  ].join("\n");
}

function colourOf(cell, colouring) {
  if (colouring === "plain") return "#ffffff";
  return colouring === "register" ? registerColour(cell.register) : laneColour(cell.lane);
}

export const FORMATS = {
  text: { name: "Text", suffix: "txt", write: textOf },
  csv: { name: "CSV", suffix: "csv", write: csvOf },
  markdown: { name: "Markdown", suffix: "md", write: markdownOf },
  latex: { name: "LaTeX", suffix: "tex", write: latexOf },
};
