// One form and where everything of it lies: elements, metadata fields, scales, bytes of shared tiles.

import { extentOf, pointOf, pointsOf } from "./strides.js";

const MATRICES = ["a", "b", "c", "d"];

export class Form {
  constructor(catalogue, entry) {
    Object.assign(this, entry);
    this.tables = catalogue.tables;
    this.formats = catalogue.formats;
    this.allTargets = catalogue.targets;
    [this.m, this.n, this.k] = entry.shape;
    this.size = `m${this.m}n${this.n}k${this.k}`;
    this.sparse = Boolean(entry.pattern);
    this.warps = this.lanes / 32;
    this.operands = Object.keys(entry.registers).filter((one) => one !== "c" || this.lanes === 32); // wgmma's C is D
    this.cache = new Map();
  }

  // The targets that have the form, by name.
  get targetNames() {
    return this.tables.targets[this.targets].map((at) => this.allTargets[at]);
  }

  // [{ target, text, label, evidence }]: how each target sums, and why that is believed.
  get rules() {
    const rules = this.tables.arithmetic[this.arithmetic].map((at) => this.tables.rules[at]);
    return this.targetNames.map((target, at) => ({ target, ...rules[at] }));
  }

  get selectors() {
    return this.sparse ? this.metadata.map((_, at) => at) : [];
  }

  // Warps of a warpgroup, or independent products: what is shown one at a time.
  get parts() {
    return Math.max(this.warps, this.products);
  }

  layout(operand) {
    return this.tables.layouts[this.layouts[operand]];
  }

  formula(operand) {
    return this.tables.formulas[this.formulas[operand]];
  }

  // Rows and columns of a matrix as it is stored.
  extent(operand) {
    const stored = this.sparse ? this.stored_k : this.k;
    return { a: [this.m, stored], b: [this.k, this.n], c: [this.m, this.n], d: [this.m, this.n] }[operand];
  }

  inRegisters(operand) {
    return operand in this.registers;
  }

  // %a0 is register 0 of a; metadata and scales are single registers.
  registerName(operand, register) {
    return `%${operand}${MATRICES.includes(operand) ? register : ""}`;
  }

  // --- places ---------------------------------------------------------------------------------------

  // Every place of an operand, by lane and index (fields and scales by row and column). ids: the byte and
  // thread ids of the scales of A and of B.
  places(operand, selector = 0, ids = {}) {
    const key = JSON.stringify([operand, selector, ids]);
    if (!this.cache.has(key)) this.cache.set(key, this.found(operand, selector, ids));
    return this.cache.get(key);
  }

  found(operand, selector, ids) {
    if (operand === "e") return this.fields(selector);
    if (operand.startsWith("scale_")) return this.scalePlaces(operand, ids);
    const layout = this.layout(operand);
    const lanes = pointsOf(layout.lanes, this.lanes, 2);
    const values = pointsOf(layout.values, extentOf(layout.values), 2);
    return lanes.flatMap((origin, lane) =>
      values.map((step, index) => this.element(operand, layout, lane, index, origin, step)));
  }

  element(operand, layout, lane, index, origin, step) {
    const slots = layout.register_bits / layout.storage;
    const row = origin[0] + step[0];
    return {
      operand,
      lane,
      register: Math.floor(index / slots),
      index,
      low: (index % slots) * layout.storage + layout.shift,
      bits: layout.bits,
      row: row % layout.rows,
      column: origin[1] + step[1],
      product: Math.floor(row / layout.rows),
    };
  }

  fields(selector) {
    const { rows, chunks, first, bits, extent } = this.tables.metadata[this.metadata[selector]];
    const along = pointsOf(chunks, extent[1], 2);
    return pointsOf(rows, extent[0], 2).flatMap((origin, row) => along.map((step, column) => {
      const low = origin[1] + step[1];
      const lane = first + origin[0] + step[0];
      return { operand: "e", lane, register: 0, index: low / bits, low, bits, row, column, product: 0 };
    }));
  }

  scaleTable(side) {
    return this.tables.scales[this.scale.sides[side]];
  }

  scalePlaces(operand, ids) {
    const side = operand.at(-1);
    const { lines, threads, count, chunks } = this.scaleTable(side);
    const [byte, thread] = [ids[`byte_${side}`] ?? 0, ids[`thread_${side}`] ?? 0];
    const lane = (line) => pointOf(lines, line, 2)[0] + pointOf(threads, thread, 2)[0];
    const place = (line, chunk) => ({
      operand, lane: lane(line), register: 0, index: byte + chunk, low: 8 * (byte + chunk), bits: 8,
      row: side === "a" ? line : chunk, column: side === "a" ? chunk : line, product: 0,
    });
    const [outer, inner] = side === "a" ? [count, chunks] : [chunks, count];
    return Array.from({ length: outer * inner }, (_, at) => {
      const [first, second] = [Math.floor(at / inner), at % inner];
      return side === "a" ? place(first, second) : place(second, first);
    });
  }

  // --- shared memory --------------------------------------------------------------------------------

  // { swizzle, major, mn, k … } of the packed tile of A or B, or { error }.
  tile(operand, swizzle, major) {
    const found = this.tables.tiles[this.shared[operand]];
    return found.find((one) => one.swizzle === swizzle && one.major === major);
  }

  // The byte, from the start of a tile, of its element (mn, k); bits of b1 count in bytes along k.
  address(tile, mn, k) {
    const unit = Math.floor(k / tile.elements);
    const offset = pointOf(tile.mn, mn, 1)[0] + pointOf(tile.k, unit, 1)[0];
    return swizzled(offset, tile.mask);
  }
}

// Bits 6:4 are exclusive-ored with as many of bits 9:7 as the mask has.
export function swizzled(offset, mask) {
  return offset ^ (((offset >> 7) & mask) << 4);
}
