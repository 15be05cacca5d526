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
