// What belongs together: for anything pointed at, the elements, metadata, scales and register bits that
// feed it, that it feeds, or that it meets in a product.
//
// A subject is { kind: "element", operand, row, column }, { kind: "word", operand, lane, register },
// { kind: "lane", lane }, { kind: "register", operand, register } or { kind: "pair", row, column, position }
// (one product of D[row, column]). Operand "l" is A over its logical columns.

export function elementKey(operand, row, column) {
  return `${operand}/${row}/${column}`;
}

export function wordKey(operand, lane, register) {
  return `word/${operand}/${lane}/${register}`;
}

const STRENGTH = { here: 3, from: 2, to: 2, with: 1 };

// What is lit: levels by key of an element, and bits with their levels by key of a word.
//
// Levels: "here" is what is pointed at, "from" feeds it, "to" is fed by it, "with" meets it in a product.
class Lights {
  constructor(instruction, product) {
    this.instruction = instruction;
    this.layout = instruction.layout;
    this.product = product;
    this.elements = new Map();
    this.words = new Map();
  }

  set(key, level) {
    const before = this.elements.get(key);
    if (!before || STRENGTH[level] > STRENGTH[before]) this.elements.set(key, level);
  }

  // An element, metadata field or scale, its bits, and for A the logical column it comes from.
  add(operand, row, column, level) {
    this.set(elementKey(operand, row, column), level);
    if (operand === "a" && this.layout.pattern) {
      this.set(elementKey("l", row, this.instruction.columnsOf(row)[column]), level);
    }
    if (this.instruction.operands.includes(operand)) {
      this.addBits(this.layout.at(operand, row, column, this.product), level);
    }
  }

  addPlace(place, level) {
    if (place.product === this.product) this.add(place.operand, place.row, place.column, level);
  }

  addBits({ operand, lane, register, low_bit: low, bits }, level) {
    const key = wordKey(operand, lane, register);
    this.set(key, level);
    if (!this.words.has(key)) this.words.set(key, []);
    this.words.get(key).push({ low, high: low + bits - 1, level });
  }

  // Rows, or columns, of a matrix by number.
  count(operand, axis) {
    return this.layout.extent(operand)[axis];
  }
}

function range(count) {
  return Array.from({ length: count }, (_, index) => index);
}

// --- elements --------------------------------------------------------------------------------------

function feedsOf(lights, row, column, level) {
  const { instruction, layout } = lights;
  instruction.columnsOf(row).forEach((k, position) => {
    lights.add("a", row, position, level);
    lights.add("b", k, column, level);
  });
  if (!instruction.absent.includes("c")) lights.add("c", row, column, level);
  if (layout.pattern) range(lights.count("e", 1)).forEach((chunk) => lights.add("e", row, chunk, level));
  if (layout.scale) {
    range(layout.scale.chunks).forEach((chunk) => {
      lights.add("scale_a", row, chunk, level);
      lights.add("scale_b", chunk, column, level);
    });
  }
}

function fromD(lights, { row, column }) {
  lights.add("d", row, column, "here");
  feedsOf(lights, row, column, "from");
}

function fromC(lights, { row, column }) {
  lights.add("c", row, column, "here");
  lights.add("d", row, column, "to");
}

function fromA(lights, { row, column }) {
  const { instruction, layout } = lights;
  const k = instruction.columnsOf(row)[column];
  lights.add("a", row, column, "here");
  if (layout.pattern) lights.add("e", row, Math.floor(column / layout.pattern.stored), "from");
  if (layout.scale) lights.add("scale_a", row, instruction.scaleChunk(k), "from");
  range(lights.count("d", 1)).forEach((n) => {
    lights.add("b", k, n, "with");
    lights.add("d", row, n, "to");
  });
}

function fromB(lights, { row: k, column }) {
  const { instruction, layout } = lights;
  lights.add("b", k, column, "here");
  if (layout.scale) lights.add("scale_b", instruction.scaleChunk(k), column, "from");
  range(lights.count("d", 0)).forEach((row) => {
    const position = instruction.columnsOf(row).indexOf(k);
    if (position < 0) return; // the row's metadata drops this k
    lights.add("a", row, position, "with");
    lights.add("d", row, column, "to");
  });
}

function fromField(lights, { row, column: chunk }) {
  const { pattern } = lights.layout;
  lights.add("e", row, chunk, "here");
  range(pattern.stored).forEach((at) => lights.add("a", row, pattern.stored * chunk + at, "to"));
  range(pattern.chunk).forEach((at) => lights.set(elementKey("l", row, pattern.chunk * chunk + at), "with"));
}

function fromLogical(lights, { row, column: k }) {
  const position = lights.instruction.columnsOf(row).indexOf(k);
  if (position >= 0) return fromA(lights, { row, column: position });
  lights.set(elementKey("l", row, k), "here");
  return lights.add("e", row, Math.floor(k / lights.layout.pattern.chunk), "from");
}

function fromScaleA(lights, { row, column: chunk }) {
  lights.add("scale_a", row, chunk, "here");
  lights.instruction.columnsOf(row).forEach((k, position) => {
    if (lights.instruction.scaleChunk(k) === chunk) lights.add("a", row, position, "with");
  });
  range(lights.count("d", 1)).forEach((n) => lights.add("d", row, n, "to"));
}

function fromScaleB(lights, { row: chunk, column }) {
  lights.add("scale_b", chunk, column, "here");
  range(lights.count("b", 0)).forEach((k) => {
    if (lights.instruction.scaleChunk(k) === chunk) lights.add("b", k, column, "with");
  });
  range(lights.count("d", 0)).forEach((row) => lights.add("d", row, column, "to"));
}

const ELEMENTS = {
  a: fromA, l: fromLogical, b: fromB, c: fromC, d: fromD, e: fromField, scale_a: fromScaleA, scale_b: fromScaleB,
};

// --- lanes and registers ---------------------------------------------------------------------------

function fromWord(lights, { operand, lane, register }) {
  lights.set(wordKey(operand, lane, register), "here");
  lights.layout.inWord(operand, lane, register).forEach((place) => lights.addPlace(place, "here"));
}

function fromPlaces(lights, operands, chosen) {
  for (const operand of operands) {
    lights.layout.places(operand).filter(chosen).forEach((place) => lights.addPlace(place, "here"));
  }
}

const KINDS = {
  element: (lights, subject) => ELEMENTS[subject.operand](lights, subject),
  word: fromWord,
  lane: (lights, { lane }) => {
    lights.set(`lane/${lane}`, "here");
    fromPlaces(lights, lights.instruction.operands, (place) => place.lane === lane);
  },
  register: (lights, { operand, register }) => {
    lights.set(`register/${operand}/${register}`, "here");
    fromPlaces(lights, [operand], (place) => place.register === register);
  },
  pair: (lights, { row, column, position }) => {
    fromD(lights, { row, column });
    lights.add("a", row, position, "here");
    lights.add("b", lights.instruction.columnsOf(row)[position], column, "here");
  },
};

// Everything that lights up with a subject.
export function lightsOf(instruction, product, subject) {
  const lights = new Lights(instruction, product);
  KINDS[subject.kind](lights, subject);
  return lights;
}

// The key that an element of the page carries, as a subject.
export function subjectOf(key) {
  const [head, ...rest] = key.split("/");
  const numbers = rest.slice(-2).map(Number);
  if (head === "word") return { kind: "word", operand: rest[0], lane: numbers[0], register: numbers[1] };
  if (head === "lane") return { kind: "lane", lane: Number(rest[0]) };
  if (head === "register") return { kind: "register", operand: rest[0], register: numbers[1] };
  if (head === "pair") {
    const [row, column, position] = rest.map(Number);
    return { kind: "pair", row, column, position };
  }
  return { kind: "element", operand: head, row: numbers[0], column: numbers[1] };
}

export function keyOf(subject) {
  const { kind, operand, row, column, lane, register } = subject;
  if (kind === "word") return wordKey(operand, lane, register);
  if (kind === "lane") return `lane/${lane}`;
  if (kind === "register") return `register/${operand}/${register}`;
  return elementKey(operand, row, column);
}

// Whether an instruction has what a subject names, so that it can stay pinned from one step to the next.
export function exists(instruction, subject) {
  const { kind, operand } = subject;
  if (kind === "lane") return subject.lane < instruction.layout.lanes;
  if (kind !== "element") {
    return instruction.operands.includes(operand)
      && subject.register < instruction.layout.operands[operand].registers;
  }
  const [rows, columns] = instruction.layout.extent(operand);
  return subject.row < (rows ?? 0) && subject.column < (columns ?? 0);
}

// Lanes and registers of places in words: "T12..T15 %a0..%a1", in tensor memory "lane 12..15 C0..C1".
export function placesText(instruction, places) {
  const lanes = places.map((place) => place.lane);
  const registers = places.map((place) => place.register);
  const name = (register) => instruction.registerName(places[0].operand, register);
  const [first, last] = [Math.min(...registers), Math.max(...registers)];
  const named = first === last ? name(first) : `${name(first)}..${name(last)}`;
  const [low, high] = [Math.min(...lanes), Math.max(...lanes)];
  const { layout } = instruction;
  const end = layout.tensor_memory ? high : `T${high}`;
  return `${layout.laneName(low)}${low === high ? "" : `..${end}`} ${named}`;
}
