// What names mean: a0, a1 … are elements of a fragment, %a0 is a register, which holds one or several of them.

function elements(operand, count) {
  if (count === 1) return `${operand}0`;
  return count === 2 ? `${operand}0,1` : `${operand}0 to ${operand}${count - 1}`;
}

// Of names { operand, name, count, bits }: the register of each operand that has its element 0, in lane T0.
export function namingText(names) {
  const held = names.map(({ operand, name, count }) => `${name} holds ${elements(operand, count)}`);
  const bits = names[0]?.bits ?? 32;
  const order = names.some(({ count }) => count > 1) ? "; of several elements the first is in the low bits" : "";
  return `T5 is lane 5. Without a percent sign, ${names[0]?.operand ?? "a"}0, ${names[0]?.operand ?? "a"}1 … are the `
    + `elements of a lane in the order of the PTX manual; with it, they are registers of ${bits} bits: `
    + `${held.join(", ")}${order}.`;
}
