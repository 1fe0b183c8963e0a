// Exported lists as JSON, read in pieces: an array of objects, an object that holds such an array (`{"items": […]}`, the
// first one counts), an array of addresses alone, one object, or one object a line (NDJSON). A record's nested values become
// columns (`reason.code`). A broken line of NDJSON is one defect; a broken array ends the reading with a defect.
// Why no library: docs/decisions/0041-own-parts.md.

export type JsonRecord = { values: Map<string, string> } | { defect: string; raw: string };
export type JsonReader = {
  push(text: string): JsonRecord[];
  end(): JsonRecord[];
};

export const RECORD_CHARS_MAX = 64 * 1024;
const NESTING_MAX = 64;
const VALUES_MAX = 200;
const VALUE_CHARS_MAX = 8_192;
const RAW_CHARS_MAX = 200;

/** True if the text begins like JSON. */
export function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

/**
 * A reader for the JSON that begins with `head` (which is not consumed by this); `decode` brings a string to its final
 * characters. Records over 64 Ki characters are defects.
 */
export function createJsonReader(head: string, decode: (raw: string) => string): JsonReader {
  if (isLines(head)) return lineReader(decode);
  return /^\s*\[\s*"/.test(head) ? addressReader(decode) : treeReader(decode);
}

function isLines(head: string): boolean {
  const line = /^\s*(\{[^\r\n]*\})[ \t]*(\r|\n|$)/.exec(head)?.[1];
  if (line === undefined) return false;
  const record = parse(line);
  return record !== null && !Object.values(record).some(holdsRecords);
}

function holdsRecords(value: unknown): boolean {
  return Array.isArray(value) && value.some((item) => typeof item === "object" && item !== null);
}

function lineReader(decode: (raw: string) => string): JsonReader {
  let rest = "";
  const take = (text: string, final: boolean): JsonRecord[] => {
    const lines = (rest + text).split(/\r\n|\n|\r/);
    rest = final ? "" : (lines.pop() ?? "");
    const records = lines.filter((line) => line.trim() !== "").map((line) => toRecord(line, decode));
    if (rest.length > RECORD_CHARS_MAX) {
      records.push(toRecord(rest, decode));
      rest = "";
    }
    return records;
  };
  return { push: (text) => take(text, false), end: () => take("", true) };
}

// `["a@example.com", "b@example.com"]`: each address is a record with the one column `email`.
function addressReader(decode: (raw: string) => string): JsonReader {
  let rest = "";
  let broken = false;
  const take = (text: string, final: boolean): JsonRecord[] => {
    if (broken) return [];
    rest += text;
    const items = [...rest.matchAll(/\s*[[,]\s*("(?:[^"\\]|\\[\s\S])*")/gy)];
    const records = items.map(([, address]) => toRecord(`{"email":${address}}`, decode));
    rest = rest.slice(items.reduce((chars, [item]) => chars + item.length, 0));
    const mayGoOn = final ? /^\s*\]\s*$/ : /^\s*([[,]\s*("[\s\S]*)?|\]\s*)?$/;
    broken = rest.length > RECORD_CHARS_MAX || !mayGoOn.test(rest);
    if (broken)
      records.push({
        defect: "from here on it is not an array of addresses alone",
        raw: rest.trim().slice(0, RAW_CHARS_MAX),
      });
    return records;
  };
  return { push: (text) => take(text, false), end: () => take("", true) };
}

function toRecord(text: string, decode: (raw: string) => string): JsonRecord {
  if (text.length > RECORD_CHARS_MAX)
    return { defect: "the record is longer than 64 KiB", raw: text.slice(0, RAW_CHARS_MAX) };
  const record = parse(decode(text.replace(/,\s*$/, "")));
  if (record === null) return { defect: "the line is not a JSON object", raw: text.slice(0, RAW_CHARS_MAX) };
  return { values: flatten(record) };
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/** Scalars as text, well-formed (JSON can write half a surrogate pair); an array of scalars joined by commas; an object's members under `outer.inner`; deeper is left out. */
function flatten(record: Record<string, unknown>): Map<string, string> {
  const values = new Map<string, string>();
  const put = (name: string, value: unknown): void => {
    if (values.size < VALUES_MAX) values.set(name, asText(value).slice(0, VALUE_CHARS_MAX).toWellFormed());
  };
  for (const [name, value] of Object.entries(record)) {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      for (const [inner, innerValue] of Object.entries(value)) put(`${name}.${inner}`, innerValue);
    } else put(name, value);
  }
  return values;
}

function asText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value))
    return value
      .filter((item) => typeof item !== "object")
      .map(String)
      .join(",");
  return typeof value === "object" ? "" : String(value);
}

type Tree = {
  /** Open brackets, outermost first. */
  open: string[];
  inString: boolean;
  escaped: boolean;
  /** What has been read of a record; before the array of records is found, of the whole document. */
  kept: string;
  /** Brackets around each record once their array is found; `left` after that array, until the document ends. */
  level: number | "left" | null;
  broken: boolean;
};

// Brackets are matched outside strings. Records are the objects of the document's first array that holds objects (further
// arrays are links, paging); a document without such an array is one record. Documents may follow each other.
function treeReader(decode: (raw: string) => string): JsonReader {
  const tree: Tree = { open: [], inString: false, escaped: false, kept: "", level: null, broken: false };
  return {
    push: (text) => (tree.broken ? [] : walk(tree, text, decode)),
    end: () => (!tree.broken && (tree.open.length > 0 || tree.kept.trim() !== "") ? [breakOff(tree)] : []),
  };
}

const marks = /["{}[\]]/g;
const stringMarks = /["\\]/g;

function walk(tree: Tree, text: string, decode: (raw: string) => string): JsonRecord[] {
  const records: JsonRecord[] = [];
  let from = 0;
  let at = 0;
  while (at < text.length && !tree.broken) {
    const place = nextMark(tree, text, at);
    if (place === -1) break;
    at = place + 1;
    const mark = text[place] as string;
    if (tree.inString || mark === '"') {
      at = string(tree, text, place);
    } else if (mark === "{" || mark === "[") {
      if (opens(tree, mark)) from = place;
      if (tree.open.length > NESTING_MAX) records.push(breakOff(tree));
    } else {
      const closed = closes(tree, mark);
      if (closed === "broken") records.push(breakOff(tree));
      if (closed === "record") records.push(toRecord(tree.kept + text.slice(from, at), decode));
      if (closed !== "inner") {
        tree.kept = "";
        from = at;
      }
    }
  }
  if (keeps(tree)) tree.kept += text.slice(from);
  if (tree.kept.length > RECORD_CHARS_MAX) records.push(breakOff(tree));
  return records;
}

function keeps(tree: Tree): boolean {
  if (tree.broken || tree.level === "left") return false;
  return tree.level === null || tree.open[tree.level] === "{";
}

function nextMark(tree: Tree, text: string, from: number): number {
  const pattern = tree.inString ? stringMarks : marks;
  pattern.lastIndex = tree.escaped ? from + 1 : from;
  tree.escaped = false;
  return pattern.exec(text)?.index ?? -1;
}

/** Enters, leaves or goes on in a string at `place`; returns where to read on. */
function string(tree: Tree, text: string, place: number): number {
  if (!tree.inString) tree.inString = true;
  else if (text[place] === '"') tree.inString = false;
  else if (place + 1 < text.length) return place + 2;
  else tree.escaped = true;
  return place + 1;
}

/** Notes an opened bracket; true when a record begins with it. */
function opens(tree: Tree, mark: string): boolean {
  const inArray = tree.open.at(-1) === "[";
  tree.open.push(mark);
  if (mark !== "{" || !inArray || tree.level === "left") return false;
  if (tree.level === null) {
    tree.level = tree.open.length - 1;
    tree.kept = "";
  }
  return tree.open.length - 1 === tree.level;
}

function closes(tree: Tree, mark: string): "record" | "broken" | "outer" | "inner" {
  const opened = tree.open.pop();
  if (opened !== (mark === "}" ? "{" : "[")) return "broken";
  const depth = tree.open.length;
  const isRecord = mark === "}" && (tree.level === null ? depth === 0 : depth === tree.level);
  if (typeof tree.level === "number" && depth < tree.level) tree.level = "left";
  if (depth > 0) return isRecord ? "record" : tree.level === "left" ? "outer" : "inner";
  tree.level = null;
  return isRecord ? "record" : "outer";
}

function breakOff(tree: Tree): JsonRecord {
  tree.broken = true;
  const raw = tree.kept.trim().slice(0, RAW_CHARS_MAX);
  tree.kept = "";
  return { defect: "the JSON is not well formed from here on", raw };
}
