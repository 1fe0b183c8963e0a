// Values with structure drawn from the bytes of an input, so that changing, splicing and shrinking the input changes the
// values, and a saved input gives the same values again. When the bytes are used up, everything is the least there is.
import type { Chance } from "../faults/seeded.ts";

export type Draw = {
  /** From `from` to `to`, both included. */
  between(from: number, to: number): number;
  pick<T>(from: readonly T[]): T;
  /** True one time in `times`. */
  oneIn(times: number): boolean;
  /** Up to `max` characters: mostly the pieces given, now and then any character there is. */
  text(max: number, pieces?: readonly string[]): string;
  bytes(max: number): Buffer;
  list<T>(max: number, make: () => T): T[];
};

const PIECES = [
  ..."abcdefghij KLM 0123456789 .-_,;:@<>()[]\"'\\/=?!#$%&*+^`{|}~\t".split(""),
  ...[
    "é",
    "ß",
    "日本",
    "😀",
    "=?",
    "?=",
    "%0A",
    "&amp;",
    "\u200d",
    "\u202e",
    "\u00a0",
    "İ",
    "\u0301",
    "ab cd ",
    "the quick ",
  ],
];

/** Draws from the bytes, the first ones first. */
export function drawFrom(input: Buffer): Draw {
  let at = 0;
  const byte = (): number => input[at++] ?? 0;
  const between = (from: number, to: number): number => {
    const span = to - from + 1;
    const value =
      span <= 256 ? byte() : span <= 65_536 ? byte() * 256 + byte() : byte() * 65_536 + byte() * 256 + byte();
    return from + (value % span);
  };
  const draw: Draw = {
    between,
    pick: (from) => from[between(0, from.length - 1)] as never,
    oneIn: (times) => between(0, times - 1) === times - 1,
    text(max, pieces = PIECES) {
      let text = "";
      for (let length = between(0, max); length > 0; length -= 1) text += anyPiece(draw, pieces);
      return text.slice(0, max);
    },
    bytes(max) {
      const length = between(0, max);
      const from = at;
      at += length;
      return Buffer.from(input.subarray(from, from + length));
    },
    list: (max, make) => Array.from({ length: between(0, max) }, make),
  };
  return draw;
}

function anyPiece(draw: Draw, pieces: readonly string[]): string {
  const kind = draw.between(0, 31);
  if (kind === 30) return String.fromCharCode(draw.between(0, 0xffff));
  if (kind === 31) return String.fromCodePoint(draw.between(0, 0x10_ffff));
  return draw.pick(pieces);
}

/** Random bytes to draw from, for the `generate` of a target. */
export function randomBytes(chance: Chance, max: number): Buffer {
  return Buffer.from(Array.from({ length: chance.between(1, max) }, () => chance.between(0, 255)));
}
