// What people copy of a form: the PTX statement, CuTe layouts, C code that computes places.

// --- PTX -------------------------------------------------------------------------------------------

const SIZED = { f64: "f64", f32: "f32" }; // of C and D; everything else is bits

function registerType(form, operand) {
  if (form.register_bits === 64) return "f64";
  return "cd".includes(operand) ? SIZED[form.types[operand]] ?? "b32" : "b32";
}

function vector(form, operand) {
  const names = Array.from({ length: form.registers[operand] }, (_, at) => `%${operand}${at}`);
  const lines = [];
  for (let at = 0; at < names.length; at += 8) lines.push(names.slice(at, at + 8).join(", "));
  return `{${lines.join(",\n     ")}}`;
}

function declarations(form, operands) {
  return operands.map((operand) =>
    `.reg .${registerType(form, operand)} %${operand}<${form.registers[operand]}>;`);
}

function immediates({ byte_a = 0, thread_a = 0, byte_b = 0, thread_b = 0 }) {
  return [`{%scale_a0}, {${byte_a}, ${thread_a}}`, `{%scale_b0}, {${byte_b}, ${thread_b}}`];
}

function statement(form, operands) {
  return `${form.mnemonic}\n    ${operands.join(",\n    ")};`;
}

// Declarations and statement of a form; of a wgmma A from registers or shared memory, with its fence and wait.
export function ptxOf(form, { selector = 0, ids = {}, shared = true, tiles = {} } = {}) {
  if (form.lanes > 32) return warpgroupPtx(form, selector, shared, tiles);
  const rest = [form.sparse ? `%e0, ${selector}` : null, ...(form.scale ? immediates(ids) : [])];
  const operands = [..."dabc"].map((operand) => vector(form, operand));
  return [...declarations(form, form.operands), statement(form, [...operands, ...rest.filter(Boolean)])].join("\n");
}

function warpgroupPtx(form, selector, shared, tiles) {
  const inRegisters = ["d", ...(shared ? [] : ["a"]), ...(form.sparse ? ["e"] : [])];
  const transposed = (operand) => (tiles[operand] === "MN" ? 1 : 0);
  const trans = form.formats[form.types.a].bits === 16
    ? [...(shared ? [transposed("a")] : []), transposed("b")] : [];
  const scales = form.formats[form.types.a].float ? [1, 1] : [];
  const operands = [
    vector(form, "d"), shared ? "%desc_a" : vector(form, "a"), "%desc_b",
    ...(form.sparse ? [`%e0, ${selector}`] : []),
    ["%scale_d", ...scales, ...trans].join(", "),
  ];
  return [
    ...declarations(form, inRegisters), `.reg .b64 ${shared ? "%desc_a, " : ""}%desc_b;`, ".reg .pred %scale_d;",
    "wgmma.fence.sync.aligned;", statement(form, operands),
    "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;",
  ].join("\n");
}

// --- CuTe ------------------------------------------------------------------------------------------

// { domain, codomain, thread, value, lanes, first }: modes of a fragment; of m8n8k4 of a product.
export function cuteLayout(form, operand, selector = 0, product = 0) {
  return form.tables.cute[form.cute[operand]][operand === "e" ? selector : product];
}

function nested(numbers) {
  return numbers.length === 1 ? String(numbers[0]) : `(${numbers.join(",")})`;
}

function pair(modes) {
  return [0, 1].map((at) => nested(modes.map((mode) => mode[at])));
}

export function cuteText({ domain, codomain: to, thread, value, lanes, first }) {
  const [[threadShape, threadStride], [valueShape, valueStride]] = [pair(thread), pair(value)];
  const text = `${domain} -> ${to}  (${threadShape},${valueShape}):(${threadStride},${valueStride})`;
  if (!lanes) return text;
  return `${text}  lane = ${pair(lanes).join(":")}${first ? ` + ${first}` : ""}`;
}

// The operands that have a layout of their own in CuTe's notation: D only beside a C of another format.
export function cuteOperands(form) {
  const same = form.types.c === form.types.d;
  const all = form.operands.filter((operand) => !operand.startsWith("scale_"));
  return all.includes("c") && same ? all.filter((operand) => operand !== "d") : all;
}

function typed(kind, numbers) {
  const inner = numbers.map((one) => (one <= 1024 && (one & (one - 1)) === 0 ? `_${one}` : `Int<${one}>`));
  return inner.length === 1 ? inner[0] : `${kind}<${inner.join(",")}>`;
}

function typedLayout({ thread, value }) {
  const part = (kind, at) => `${kind}<${[thread, value].map((modes) => typed(kind, modes.map((mode) => mode[at])))}>`;
  return `Layout<${part("Shape", 0)},\n                       ${part("Stride", 1)}>`;
}

export function cuteOf(form, { selector = 0, product = 0 } = {}) {
  const lines = cuteOperands(form).map((operand) => {
    const layout = cuteLayout(form, operand, selector, product);
    const name = `${operand.toUpperCase()}Layout`;
    return `// ${cuteText(layout)}\nusing ${name} = ${typedLayout(layout)};`;
  });
  return [`// ${form.mnemonic}`, ...lines].join("\n");
}

// --- C ---------------------------------------------------------------------------------------------

function sum(terms) {
  return terms.filter(Boolean).join(" + ") || "0";
}

// One digit of a variable, counted from a place value, without what changes nothing.
function digitText(variable, value, extent, last) {
  const divided = value > 1 ? `${variable} / ${value}` : variable;
  return last ? divided : `${divided} % ${extent}`;
}

function times(step, text) {
  if (step === 1) return text;
  return /[ ]/.test(text) ? `${step} * (${text})` : `${step} * ${text}`;
}

// What a coordinate gets from the digits of a variable.
function terms(modes, coordinate, variable) {
  let value = 1;
  return modes.map(([extent, ...steps], at) => {
    const text = digitText(variable, value, extent, at === modes.length - 1);
    value *= extent;
    return steps[coordinate] ? times(steps[coordinate], text) : null;
  });
}

// The index whose digits the coordinates hold: the inverse of modes whose digits move along one of them each.
function inverse(modes, names, all) {
  let value = 1;
  const found = modes.map(([extent, ...steps]) => {
    const along = steps.findIndex((step) => step !== 0);
    const step = steps[along];
    const highest = all.every((mode) => mode[along + 1] <= step);
    const text = times(value, digitText(names[along], step, extent, highest));
    value *= extent;
    return text;
  });
  return sum(found);
}

function define(name, parameters, expression) {
  return `static inline int ${name}(${parameters.map((one) => `int ${one}`).join(", ")}) { return ${expression}; }`;
}

function fragmentCode(form, operand) {
  const layout = form.layout(operand);
  const { lanes, values, rows, storage, shift } = layout;
  const slots = layout.register_bits / storage;
  const coordinate = (at) => sum([...terms(lanes, at, "lane"), ...terms(values, at, "i")]);
  const several = layout.products > 1;
  const names = several ? [`(${rows} * product + row)`, "column"] : ["row", "column"];
  const place = several ? ["product", "row", "column"] : ["row", "column"];
  const all = [...lanes, ...values];
  const low = slots > 1 ? sum([times(storage, `i % ${slots}`), shift || null]) : String(shift);
  return [
    `/* ${operand.toUpperCase()}: element i of a lane */`,
    define(`${operand}_row`, ["lane", "i"], several ? `(${coordinate(0)}) % ${rows}` : coordinate(0)),
    define(`${operand}_column`, ["lane", "i"], coordinate(1)),
    several ? define(`${operand}_product`, ["lane", "i"], `(${coordinate(0)}) / ${rows}`) : null,
    define(`${operand}_register`, ["i"], slots > 1 ? `i / ${slots}` : "i"),
    define(`${operand}_low_bit`, ["i"], low),
    define(`${operand}_lane`, place, inverse(lanes, names, all)),
    define(`${operand}_index`, place, inverse(values, names, all)),
  ].filter(Boolean).join("\n");
}

function metadataCode(form, selector) {
  const { rows, chunks, first } = form.tables.metadata[form.metadata[selector]];
  const coordinate = (at, more) => sum([...terms(rows, at, "row"), ...terms(chunks, at, "chunk"), more]);
  return [
    `/* metadata, selector ${selector}: the field of a row's chunk of ${form.pattern.chunk} columns */`,
    define("e_lane", ["row", "chunk"], coordinate(0, first ? String(first) : null)),
    define("e_low_bit", ["row", "chunk"], coordinate(1)),
  ].join("\n");
}

function scaleCode(form, side) {
  const { lines, threads } = form.scaleTable(side);
  const line = side === "a" ? "row" : "column";
  const lane = sum([...terms(lines, 0, line), ...terms(threads, 0, "thread_id")]);
  return [
    `/* scales of ${side.toUpperCase()} */`,
    define(`scale_${side}_lane`, [line, "thread_id"], lane),
    define(`scale_${side}_low_bit`, ["chunk", "byte_id"], "8 * (byte_id + chunk)"),
  ].join("\n");
}

// The byte of element (mn, k) of a packed tile; eight 1-bit elements share one.
export function tileCode(form, operand, tile) {
  const k = tile.elements > 1 ? `(k / ${tile.elements})` : "k";
  const offset = sum([...terms(tile.mn, 0, "mn"), ...terms(tile.k, 0, k)]);
  const name = `${operand}_address`;
  const kind = `${tile.major}-major, swizzle ${tile.swizzle}`;
  const head = `/* ${operand.toUpperCase()} in shared memory, ${kind}: byte from the start */`;
  if (!tile.mask) return `${head}\n${define(name, ["mn", "k"], offset)}`;
  return `${head}\nstatic inline int ${name}(int mn, int k) {\n  int offset = ${offset};\n`
    + `  return offset ^ (offset >> 7 & ${tile.mask}) << 4;\n}`;
}

// Everything of a form; ``tiles`` are the tiles of A and B of a wgmma as they are shown.
export function codeOf(form, { selector = 0, tiles = {} } = {}) {
  const matrices = form.operands.filter((operand) => "abcd".includes(operand) && operand.length === 1)
    .filter((operand) => operand !== "c" || form.types.c !== form.types.d);
  const packed = Object.entries(tiles).filter(([, tile]) => tile && !tile.error);
  return [
    `/* ${form.mnemonic}: plain C; in CUDA, put __device__ in front */`,
    ...matrices.map((operand) => fragmentCode(form, operand)),
    form.sparse ? metadataCode(form, selector) : null,
    ...(form.scale ? ["a", "b"].map((side) => scaleCode(form, side)) : []),
    ...packed.map(([operand, tile]) => tileCode(form, operand, tile)),
  ].filter(Boolean).join("\n\n");
}
