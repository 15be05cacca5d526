// What each of several words says as a descriptor, in a line: all readings of it that have no fault, or why it is none.

import { instructionTrouble, kindOf, productText, readMatrix, troubleOf, wordText } from "./words.js";

// [{ word, kind, of, name, said, trouble }] of words of 64 or 32 bits.
export function describedWords(words, bits, values) {
  const read = bits === 64 ? matrixReadings : instructionReadings;
  return values.flatMap((value) => read(words, value));
}

function matrixReadings({ matrix }, value) {
  const kind = kindOf(value);
  const fields = readMatrix(matrix[kind], value, "K").filter(({ attribute }) => attribute !== "constant");
  const said = fields.filter(({ attribute, raw }) => raw || !["base_offset", "absolute"].includes(attribute))
    .map(({ attribute, name, value: number, codes, unit }) => `${SHORT[attribute] ?? name} ${codes
      ? codes.find(([code]) => code === number)?.[1] : unit > 1 ? `0x${number.toString(16)}` : number}`);
  const trouble = troubleOf(matrix[kind], value);
  return [{ word: wordText(value, 64), kind, of: "", name: kind, said: said.join(", "), trouble }];
}

const SHORT = { start_address: "start", leading_byte_offset: "LBO", stride_byte_offset: "SBO" };

function instructionReadings({ instruction }, value) {
  const word = wordText(value, 32);
  const all = Object.entries(instruction).map(([of, kind]) => ({
    word, kind: "instruction", of, name: `kind::${of}`, said: productText(kind, value),
    trouble: instructionTrouble(kind, value, of),
  }));
  const right = all.filter(({ trouble }) => !trouble);
  return right.length ? right : all.slice(0, 1);
}
