// What belongs together: an element and what it is made of, a lane and what it holds. Levels as in the report:
// here, from (feeds it), to (is fed by it), with (meets it).
//
// Keys: "a/3/5" is element (3, 5) of A, "e/3/2" the metadata of row 3's chunk 2, "scale_a/3/0" a scale, "lane/5" a
// lane, "word/a/5/2" register 2 of A in lane 5, "register/a/2" that register in all lanes, "tile/b/8/0" 16 bytes.

export function keyOf(place) {
  if (place.operand === "tile") return `tile/${place.side}/${place.row}/${place.column}`;
  return `${place.operand}/${place.row}/${place.column}`;
}

function range(start, end) {
  return Array.from({ length: end - start }, (_, index) => start + index);
}

function chunkOf(form, column) {
  return Math.floor(column / form.pattern.stored);
}

// The k of B that a stored column of A may meet, and the stored columns that a k may be.
function meets(form, column) {
  if (!form.sparse) return [column];
  const first = form.pattern.chunk * chunkOf(form, column);
  return range(first, first + form.pattern.chunk);
}

function storedOf(form, k) {
  if (!form.sparse) return [k];
  const first = form.pattern.stored * Math.floor(k / form.pattern.chunk);
  return range(first, first + form.pattern.stored);
}

const ELEMENT = {
  d(form, row, column, put) {
    range(0, form.extent("a")[1]).forEach((k) => put(`a/${row}/${k}`, "from"));
    range(0, form.k).forEach((k) => put(`b/${k}/${column}`, "from"));
    put(`c/${row}/${column}`, "from");
    if (form.sparse) range(0, form.k / form.pattern.chunk).forEach((chunk) => put(`e/${row}/${chunk}`, "from"));
    if (form.scale) {
      range(0, form.scaleTable("a").chunks).forEach((chunk) => put(`scale_a/${row}/${chunk}`, "from"));
      range(0, form.scaleTable("b").chunks).forEach((chunk) => put(`scale_b/${chunk}/${column}`, "from"));
    }
  },
  c(form, row, column, put) {
    put(`d/${row}/${column}`, "to");
  },
  a(form, row, column, put) {
    range(0, form.n).forEach((n) => put(`d/${row}/${n}`, "to"));
    meets(form, column).forEach((k) => range(0, form.n).forEach((n) => put(`b/${k}/${n}`, "with")));
    if (form.sparse) put(`e/${row}/${chunkOf(form, column)}`, "from");
    if (form.scale) {
      const each = form.extent("a")[1] / form.scaleTable("a").chunks;
      put(`scale_a/${row}/${Math.floor(column / each)}`, "with");
    }
  },
  b(form, row, column, put) {
    range(0, form.m).forEach((m) => put(`d/${m}/${column}`, "to"));
    storedOf(form, row).forEach((k) => range(0, form.m).forEach((m) => put(`a/${m}/${k}`, "with")));
    if (form.scale) {
      const each = form.k / form.scaleTable("b").chunks;
      put(`scale_b/${Math.floor(row / each)}/${column}`, "with");
    }
  },
  e(form, row, chunk, put) {
    const { stored } = form.pattern;
    range(stored * chunk, stored * (chunk + 1)).forEach((column) => put(`a/${row}/${column}`, "to"));
  },
  scale_a(form, row, chunk, put) {
    const each = form.extent("a")[1] / form.scaleTable("a").chunks;
    range(each * chunk, each * (chunk + 1)).forEach((column) => put(`a/${row}/${column}`, "to"));
  },
  scale_b(form, chunk, column, put) {
    const each = form.k / form.scaleTable("b").chunks;
    range(each * chunk, each * (chunk + 1)).forEach((k) => put(`b/${k}/${column}`, "to"));
  },
};

// Places that a lane, a word or a register holds.
export function heldBy(form, state, key) {
  const [kind, ...rest] = key.split("/");
  const operands = kind === "lane" ? form.operands : [rest[0]];
  const numbers = rest.slice(-2).map(Number);
  const [lane, register] = { lane: [numbers[0]], word: numbers, register: [null, numbers.at(-1)] }[kind];
  return operands.flatMap((operand) => form.places(operand, state.selector, state.ids)
    .filter((place) => lane === null || place.lane === lane)
    .filter((place) => register === undefined || place.register === register));
}

// Keys and levels that a subject lights.
export function lightsOf(form, state, key) {
  const lights = new Map();
  if (!key) return lights;
  const [kind, ...rest] = key.split("/");
  const put = (name, level) => { if (!lights.has(name)) lights.set(name, level); };
  put(key, "here");
  if (["lane", "word", "register"].includes(kind)) {
    heldBy(form, state, key).forEach((place) => put(keyOf(place), "here"));
    if (kind === "word") holders(rest[0], Number(rest[1]), Number(rest[2]), put);
    return lights;
  }
  ELEMENT[kind]?.(form, ...rest.map(Number), put);
  tilesOf(form, state, [...lights], put);
  const place = placeOf(form, state, kind, Number(rest[0]), Number(rest[1]));
  if (place) holders(kind, place.lane, place.register, put);
  return lights;
}

function holders(operand, lane, register, put) {
  put(`lane/${lane}`, "here");
  put(`register/${operand}/${register}`, "here");
}

// The 16 bytes of packed tiles that hold lit elements in shared memory.
function tilesOf(form, state, lit, put) {
  for (const side of form.shared ? ["a", "b"] : []) {
    const tile = form.tile(side, state.swizzle, state.majors[side]);
    if (tile.error || (side === "a" && !state.shared)) continue;
    const step = (16 / tile.size) * tile.elements;
    const boxed = (mn, k) => (tile.major === "K"
      ? [mn, (Math.floor(k / step) * step) / tile.elements] : [Math.floor(mn / step) * step, k / tile.elements]);
    for (const [key, level] of lit.filter(([one]) => one.startsWith(`${side}/`))) {
      const [row, column] = key.split("/").slice(1).map(Number);
      put(`tile/${side}/${(side === "a" ? boxed(row, column) : boxed(column, row)).join("/")}`, level);
    }
  }
}

// Where an element, field or scale lies; nothing for one that is shown in shared memory.
export function placeOf(form, state, operand, row, column) {
  if (!form.inRegisters(operand) || (operand === "a" && form.shared && state.shared)) return null;
  const product = form.products > 1 ? state.part : 0;
  return form.places(operand, state.selector, state.ids)
    .find((place) => place.row === row && place.column === column && place.product === product) ?? null;
}
