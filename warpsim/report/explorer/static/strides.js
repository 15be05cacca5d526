// Modes evaluated: [extent, step, step …] is one digit of an index, fastest first, and what it adds to each
// coordinate. The slowest digit is whatever is left of the index.

export function pointOf(modes, index, coordinates) {
  const point = new Array(coordinates).fill(0);
  let rest = index;
  modes.forEach(([extent, ...steps], at) => {
    const digit = at === modes.length - 1 ? rest : rest % extent;
    rest = Math.floor(rest / extent);
    steps.forEach((step, coordinate) => { point[coordinate] += digit * step; });
  });
  return point;
}

export function pointsOf(modes, count, coordinates) {
  return Array.from({ length: count }, (_, index) => pointOf(modes, index, coordinates));
}

// How many indices the modes have.
export function extentOf(modes) {
  return modes.reduce((total, [extent]) => total * extent, 1);
}

// Modes of one coordinate, neighbours joined where the second goes on where the first ends.
export function joined(modes) {
  const found = [];
  for (const [extent, step] of modes.filter(([size]) => size > 1)) {
    const last = found.at(-1);
    if (last && last[1] * last[0] === step) last[0] *= extent;
    else found.push([extent, step]);
  }
  return found.length ? found : [[1, 0]];
}

// As few modes as will do for numbers, counted from the first: [extent, step], fastest first.
export function modesOf(numbers) {
  const found = [];
  let rest = numbers.map((one) => one - numbers[0]);
  while (rest.length > 1) {
    const step = rest[1];
    const bend = rest.findIndex((one, at) => one !== step * at);
    const extent = bend < 0 ? rest.length : bend;
    found.push([extent, step]);
    rest = rest.filter((_, at) => at % extent === 0);
  }
  return found.length ? found : [[1, 0]];
}
