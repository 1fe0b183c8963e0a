// Inputs from inputs: a few random changes of bytes, words, lines and sizes. The same chance gives the same input.
import type { Chance } from "../faults/seeded.ts";

export type Stock = { seeds: readonly Buffer[]; words: readonly string[]; bytes_max: number };

type Mutation = (input: Buffer, chance: Chance, stock: Stock) => Buffer;

const CHANGES_MAX = 6;
const PIECE_BYTES_MAX = 64;

/** What parsers trip over, whatever their format. */
const ODD = [
  ...["\0", "\r", "\n", "\r\n", "\r\n\r\n", "\n.\n", "\r\n.\r\n", "\t", "\x0b", "\x7f", "\x80", "\xff", "\xc0\xaf"],
  ...[
    "\u0085",
    "\u00a0",
    "\u200b",
    "\u202e",
    "\u2028",
    "\ufeff",
    "\ufffd",
    "\u{1f600}",
    "\u0130",
    "\u212a",
    "\xed\xa0\x80",
  ],
  ...["__proto__", "constructor", "toString", "null", "NaN", "-1", "0", "2147483648", "9007199254740993", "1e400"],
  ...[
    '"',
    "'",
    "\\",
    "<",
    ">",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{{",
    "}}",
    "%",
    "%00",
    "%0d%0a",
    "=",
    ";",
    ":",
    ",",
    "@",
    ".",
    "..",
  ],
  ...["=?utf-8?B?", "?=", "&#x0;", "<!--", "]]>", "${", "*", "?", "$", "#", "=0D=0A", "--"],
].map((text) => Buffer.from(text, /[\u0100-\u{10ffff}]/u.test(text) ? "utf8" : "latin1"));

const MUTATIONS: readonly Mutation[] = [
  flipBits,
  flipBits,
  replaceByte,
  insertOdd,
  insertOdd,
  insertWord,
  insertWord,
  removeRange,
  removeRange,
  copyRange,
  swapLines,
  dropLine,
  repeatLine,
  spliceSeed,
  spliceSeed,
  changeNumber,
  changeCase,
  changeLineEnds,
  truncate,
  growRange,
];

/** A seed with one to six changes, never longer than the target takes. */
export function mutate(chance: Chance, stock: Stock): Buffer {
  let input = stock.seeds.length === 0 ? Buffer.alloc(0) : chance.pick(stock.seeds);
  const changes = chance.between(1, CHANGES_MAX);
  for (let done = 0; done < changes; done += 1) input = chance.pick(MUTATIONS)(input, chance, stock);
  return input.length > stock.bytes_max ? input.subarray(0, stock.bytes_max) : input;
}

function replace(input: Buffer, from: number, to: number, by: Buffer): Buffer {
  return Buffer.concat([input.subarray(0, from), by, input.subarray(to)]);
}

function place(input: Buffer, chance: Chance): number {
  return chance.between(0, input.length);
}

function range(input: Buffer, chance: Chance, max = PIECE_BYTES_MAX): [from: number, to: number] {
  const from = place(input, chance);
  return [from, Math.min(input.length, from + chance.between(1, max))];
}

function flipBits(input: Buffer, chance: Chance): Buffer {
  if (input.length === 0) return input;
  const copy = Buffer.from(input);
  const at = chance.between(0, input.length - 1);
  copy[at] = copy[at]! ^ (1 << chance.between(0, 7));
  return copy;
}

function replaceByte(input: Buffer, chance: Chance): Buffer {
  if (input.length === 0) return input;
  const copy = Buffer.from(input);
  copy[chance.between(0, input.length - 1)] = chance.between(0, 255);
  return copy;
}

function insertOdd(input: Buffer, chance: Chance): Buffer {
  const at = place(input, chance);
  return replace(input, at, at, chance.pick(ODD));
}

function insertWord(input: Buffer, chance: Chance, { words }: Stock): Buffer {
  if (words.length === 0) return insertOdd(input, chance);
  const at = place(input, chance);
  const to = chance.between(0, 1) === 0 ? at : Math.min(input.length, at + chance.between(1, 12));
  return replace(input, at, to, Buffer.from(chance.pick(words)));
}

function removeRange(input: Buffer, chance: Chance): Buffer {
  const [from, to] = range(input, chance);
  return replace(input, from, to, Buffer.alloc(0));
}

function copyRange(input: Buffer, chance: Chance): Buffer {
  const [from, to] = range(input, chance, 1_024);
  const at = place(input, chance);
  return replace(input, at, at, input.subarray(from, to));
}

function lines(input: Buffer): string[] {
  return input.toString("latin1").split(/(?<=\n)/);
}

function onLines(input: Buffer, change: (all: string[]) => void): Buffer {
  const all = lines(input);
  change(all);
  return Buffer.from(all.join(""), "latin1");
}

function swapLines(input: Buffer, chance: Chance): Buffer {
  return onLines(input, (all) => {
    const [one, other] = [chance.between(0, all.length - 1), chance.between(0, all.length - 1)];
    [all[one], all[other]] = [all[other]!, all[one]!];
  });
}

function dropLine(input: Buffer, chance: Chance): Buffer {
  return onLines(input, (all) => void all.splice(chance.between(0, all.length - 1), 1));
}

function repeatLine(input: Buffer, chance: Chance): Buffer {
  return onLines(input, (all) => {
    const at = chance.between(0, all.length - 1);
    all.splice(at, 0, ...Array.from({ length: chance.between(1, 4) }, () => all[at]!));
  });
}

function spliceSeed(input: Buffer, chance: Chance, { seeds }: Stock): Buffer {
  if (seeds.length === 0) return input;
  const other = chance.pick(seeds);
  const [from, to] = range(other, chance, 2_048);
  const at = place(input, chance);
  const end = chance.between(0, 2) === 0 ? input.length : at;
  return replace(input, at, end, other.subarray(from, to));
}

const NUMBERS = [
  "0",
  "-1",
  "1",
  "255",
  "256",
  "65536",
  "4294967296",
  "99999999999999999999",
  "1e9",
  "0x10",
  "00",
  "1.5",
];

function changeNumber(input: Buffer, chance: Chance): Buffer {
  const found = [...input.subarray(0, 16_384).toString("latin1").matchAll(/\d+/g)];
  if (found.length === 0) return insertOdd(input, chance);
  const { index, 0: digits } = chance.pick(found);
  return replace(input, index, index + digits.length, Buffer.from(chance.pick(NUMBERS)));
}

function changeCase(input: Buffer, chance: Chance): Buffer {
  const [from, to] = range(input, chance);
  const text = input.toString("latin1", from, to);
  const changed = chance.between(0, 1) === 0 ? text.toUpperCase() : text.toLowerCase();
  return changed.length === text.length ? replace(input, from, to, Buffer.from(changed, "latin1")) : input;
}

function changeLineEnds(input: Buffer, chance: Chance): Buffer {
  const end = chance.pick(["\n", "\r\n", "\r", "\r\r\n", "\n\r", "\r\n "]);
  return Buffer.from(input.toString("latin1").replace(/\r?\n/g, end), "latin1");
}

function truncate(input: Buffer, chance: Chance): Buffer {
  return input.subarray(0, place(input, chance));
}

/** Repeats a piece until the input is as large as it may be, or nearly: what takes quadratic time shows. */
function growRange(input: Buffer, chance: Chance, { bytes_max, seeds }: Stock): Buffer {
  const [from, to] = range(input, chance, chance.pick([1, 2, 8, 64, 1_024]));
  if (to <= from) return seeds.length === 0 ? insertOdd(input, chance) : input;
  const room = Math.max(0, bytes_max - input.length);
  const wanted = chance.between(0, 3) === 0 ? room : Math.min(room, 2 ** chance.between(4, 12));
  const piece = input.subarray(from, to);
  const times = Math.floor(wanted / piece.length);
  return replace(input, from, from, Buffer.alloc(times * piece.length, piece));
}
