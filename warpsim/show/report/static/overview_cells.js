// Cells of the overview of a launch: what each is, in words, and the command that shows it.

// Cells: { row, step, marked, place }, place is the number in the page from 1 on, 0 for none.
export function cellsOf({ count, row, step, marked, place }, read) {
  const columns = [row, step, marked, place].map(read);
  return Array.from({ length: count }, (_, at) => {
    const [own, column, bits, number] = columns.map((values) => values[at]);
    return { at, row: own, step: column, marked: bits, place: number };
  });
}

export function rowName({ line, source, cta, warp }) {
  return `${source ? `${source} (${line})` : `line ${line}`} · CTA (${cta.join(", ")}) · warp ${warp}`;
}

// What a cell is, in words.
export function overviewText(overview, cell) {
  const row = overview.rows[cell.row];
  const odd = overview.marks.filter(({ bit }) => (cell.marked >> bit) & 1).map(({ text }) => text);
  return [`${rowName(row)}, step ${cell.step}: ${row.what}`, ...odd].join(". ");
}

// The command that makes a page with the matrices of a cell.
export function commandOf(overview, cell) {
  const { cta, warp, line } = overview.rows[cell.row];
  const file = overview.path || "RECORDING";
  return `warpsim view ${file} --select "cta=${cta.join(",")} warp=${warp} line=${line} step=${cell.step}"`;
}
