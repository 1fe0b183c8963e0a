// How much there is in a JSON text, before it is parsed: JSON.parse holds the thread for as long as it takes, and a
// million short members take a second of it. One pass over the bytes, no allocation. Not here: whether it is JSON at all
// (JSON.parse says that), and what happens to a body that is too much (json-body.ts).

export type JsonLimits = { depth_max: number; values_max: number };

/**
 * `values`: members of objects and elements of lists, at all levels. `marks`: bytes that cost more than others later on; 0 for
 * a body that is too small to hold many.
 */
export type JsonCounts = { kind: "counted"; values: number; marks: number };
/** `field`: the path of the value that goes beyond the limit; "" for the body itself. */
export type JsonExcess = { kind: "too_deep" | "too_many"; field: string };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACE = 0x7b;
const BRACKET = 0x5b;
const BRACE_END = 0x7d;
const BRACKET_END = 0x5d;
/** A path says where to look; it does not repeat the body. */
const SHOWN_LEVELS_MAX = 4;
const SHOWN_NAME_BYTES_MAX = 100;

/** In a smaller body strings are passed over as a whole, ten times as fast. */
const MARKS_FROM_BYTES = 16 * 1024;
/** Tags, entities, template expressions and escapes: what the readers of HTML and of templates stop at. */
const MARKS = new Uint8Array(256);
for (const mark of "<&{\\") MARKS[mark.charCodeAt(0)] = 1;

/** Where the scan is: for each level whether it is a list, how many it holds, and where the name of the member stands. */
type Place = {
  depth: number;
  isList: boolean[];
  counts: number[];
  nameStarts: number[];
  nameEnds: number[];
  expectsName: boolean;
};

/** Counts until the end or the first excess. Text that is not JSON is counted in some way; it never throws. */
export function countJson(bytes: Buffer, limits: JsonLimits): JsonCounts | JsonExcess {
  const place: Place = { depth: 0, isList: [], counts: [], nameStarts: [], nameEnds: [], expectsName: false };
  const hasMarks = bytes.length >= MARKS_FROM_BYTES;
  let values = 0;
  let marks = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) {
      const start = at + 1;
      at = hasMarks ? start : stringEnd(bytes, start);
      for (; at < bytes.length; at += 1) {
        const inner = bytes[at] as number;
        if (inner === QUOTE) break;
        marks += MARKS[inner] as number;
        if (inner === BACKSLASH) at += 1;
      }
      if (place.expectsName) nameMember(place, start, at);
    } else if (byte === COMMA) {
      values += 1;
      place.expectsName = !place.isList[place.depth];
      place.counts[place.depth] = (place.counts[place.depth] ?? 0) + 1;
      if (values > limits.values_max) return { kind: "too_many", field: pathOf(bytes, place) };
    } else if (byte === BRACE || byte === BRACKET) {
      values += 1;
      if (place.depth >= limits.depth_max) return { kind: "too_deep", field: pathOf(bytes, place) };
      open(place, byte === BRACKET);
    } else if (byte === BRACE_END || byte === BRACKET_END) {
      place.depth = Math.max(0, place.depth - 1);
      place.expectsName = false;
    } else if (byte === COLON) place.expectsName = false;
  }
  return { kind: "counted", values, marks };
}

/** The position of the first quote that no backslash escapes. */
function stringEnd(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(QUOTE, start); at >= 0; at = bytes.indexOf(QUOTE, at + 1)) {
    let escapes = 0;
    while (at - escapes > start && bytes[at - escapes - 1] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
  return bytes.length;
}

function open(place: Place, isList: boolean): void {
  place.depth += 1;
  place.isList[place.depth] = isList;
  place.counts[place.depth] = 0;
  place.nameStarts[place.depth] = 0;
  place.nameEnds[place.depth] = 0;
  place.expectsName = !isList;
}

function nameMember(place: Place, start: number, end: number): void {
  place.nameStarts[place.depth] = start;
  place.nameEnds[place.depth] = end;
  place.expectsName = false;
}

/** The containers around the place, from the outermost: `emails[3].variables`. What is open now is not a part of it. */
function pathOf(bytes: Buffer, place: Place): string {
  let path = "";
  for (let level = 1; level < Math.min(place.depth, SHOWN_LEVELS_MAX + 1); level += 1) {
    if (place.isList[level]) path += `[${place.counts[level]}]`;
    else {
      const start = place.nameStarts[level] as number;
      const end = Math.min(place.nameEnds[level] as number, start + SHOWN_NAME_BYTES_MAX);
      const name = bytes.toString("utf8", start, end);
      path += path === "" ? name : `.${name}`;
    }
  }
  return path;
}
