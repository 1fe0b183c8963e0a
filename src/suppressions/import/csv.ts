// Comma-separated text (RFC 4180) as programs really write it, read in pieces: CRLF, LF or CR; `,` `;` tab or `|`; a
// stray quote inside a quoted field is kept where the field ends on its own line. A quote that is never closed damages
// what it swallows, never more, and every swallowed line is given back as a defect: nothing disappears silently. That
// recovery is why no library does this: docs/decisions/0041-own-parts.md. It knows nothing of columns or meaning.

export type CsvDefect = "unclosed_quote" | "inside_unclosed_quote" | "row_too_long" | "too_many_fields";
export type CsvRecord = { fields: string[] } | { defect: CsvDefect; raw: string };
export type CsvReader = {
  /** The records that are complete with this text; blank lines are left out. */
  push(text: string): CsvRecord[];
  /** What is left when the text ends. */
  end(): CsvRecord[];
};

export const ROW_CHARS_MAX = 256 * 1024;
export const FIELDS_MAX = 1_000;
const RAW_CHARS_MAX = 200;
const SEPARATORS = [",", ";", "\t", "|"];

type Step =
  | { kind: "record"; fields: string[]; next: number }
  | { kind: "defect"; defect: CsvDefect; next: number }
  | { kind: "incomplete" };
type Scan = { text: string; separator: string; final: boolean; lineEnd: (at: number) => number };
type State = { rest: string; skipping: boolean };

/** A reader for text with that separator. Rows over 256 Ki characters or 1,000 fields are defects. */
export function createCsvReader(separator: string): CsvReader {
  const state: State = { rest: "", skipping: false };
  const read = (text: string, final: boolean): CsvRecord[] => {
    const whole = state.rest + text;
    return take(state, { text: whole, separator, final, lineEnd: lineEnds(whole) });
  };
  return { push: (text) => read(text, false), end: () => read("", true) };
}

/**
 * The separator of a file by its first line: the candidate that occurs most often outside quotes, or what a `sep=;` line
 * (as Excel writes it) says; `skip` is the length of that line.
 */
export function detectSeparator(text: string): { separator: string; skip: number } {
  const directive = /^\s*sep=([,;|\t])[ \t]*(\r\n|\n|\r)/i.exec(text);
  if (directive) return { separator: directive[1]!, skip: directive[0].length };
  const line = firstLine(text);
  let best = { separator: ",", count: 0 };
  for (const separator of SEPARATORS) {
    const count = line.split(separator).length - 1;
    if (count > best.count) best = { separator, count };
  }
  return { separator: best.separator, skip: 0 };
}

// Quoted parts are taken out, line ends in them too: a heading may hold any of these characters.
function firstLine(text: string): string {
  const plain = text.slice(0, ROW_CHARS_MAX).replace(/"(?:[^"]|"")*"/g, "");
  const at = plain.search(/\S/);
  if (at === -1) return "";
  const before = plain.slice(0, at);
  const from = Math.max(before.lastIndexOf("\r"), before.lastIndexOf("\n")) + 1;
  return before.slice(from) + (/^[^\r\n]*/.exec(plain.slice(at))?.[0] ?? "");
}

function take(state: State, scan: Scan): CsvRecord[] {
  const records: CsvRecord[] = [];
  let at = state.skipping ? skipLine(state, scan) : 0;
  while (at < scan.text.length) {
    const step = readRecord(scan, at);
    if (step.kind === "incomplete") {
      if (scan.text.length - at <= ROW_CHARS_MAX) break;
      at = giveUp(state, scan, at, records);
    } else {
      if (step.kind === "defect") addLines(records, scan.text.slice(at, step.next), step.defect);
      else if (step.fields.length > FIELDS_MAX) addLines(records, scan.text.slice(at, step.next), "too_many_fields");
      else if (step.fields.some((field) => field.trim() !== "")) records.push({ fields: step.fields });
      at = step.next;
    }
  }
  state.rest = scan.text.slice(at);
  return records;
}

function skipLine(state: State, scan: Scan): number {
  const end = scan.lineEnd(0);
  if (end === Number.POSITIVE_INFINITY) return scan.text.length;
  state.skipping = false;
  return afterLineEnd(scan.text, end);
}

// A row beyond the limit: an opened quote that swallowed many lines, or one endless line.
function giveUp(state: State, scan: Scan, at: number, records: CsvRecord[]): number {
  const last = Math.max(scan.text.lastIndexOf("\n"), scan.text.lastIndexOf("\r"));
  if (last < at) {
    addLines(records, scan.text.slice(at, at + RAW_CHARS_MAX), "row_too_long");
    state.skipping = true;
    return scan.text.length;
  }
  addLines(records, scan.text.slice(at, last + 1), "unclosed_quote");
  return last + 1;
}

function addLines(records: CsvRecord[], text: string, defect: CsvDefect): void {
  let kind = defect;
  for (const line of text.split(/\r\n|\n|\r/)) {
    if (line.trim() === "") continue;
    records.push({ defect: kind, raw: line.slice(0, RAW_CHARS_MAX) });
    if (kind === "unclosed_quote") kind = "inside_unclosed_quote";
  }
}

function readRecord(scan: Scan, start: number): Step {
  const end = scan.lineEnd(start);
  const found = end !== Number.POSITIVE_INFINITY;
  const line = scan.text.slice(start, found ? end : undefined);
  if (line.includes('"')) return readQuotedRecord(scan, start);
  if (!found && !scan.final) return { kind: "incomplete" };
  const next = found ? afterLineEnd(scan.text, end) : scan.text.length;
  return { kind: "record", fields: line.split(scan.separator, FIELDS_MAX + 1), next };
}

function readQuotedRecord(scan: Scan, start: number): Step {
  const { text, separator, final } = scan;
  const fields: string[] = [];
  let at = start;
  for (;;) {
    const open = skipSpaces(text, at);
    if (text[open] === '"') {
      const quoted = readQuoted(scan, open + 1);
      if (quoted.kind !== "field") return quoted;
      fields.push(quoted.value);
      at = quoted.next;
    } else {
      const end = endOfPlain(scan, at);
      fields.push(text.slice(at, end));
      at = end;
    }
    if (at >= text.length) return final ? { kind: "record", fields, next: at } : { kind: "incomplete" };
    if (text[at] !== separator) return { kind: "record", fields, next: afterLineEnd(text, at) };
    at += 1;
    if (fields.length > FIELDS_MAX) return tooManyFields(scan, at);
  }
}

/** The whole line is passed over, so it must be there: its rest would be taken for a row. */
function tooManyFields(scan: Scan, at: number): Step {
  if (scan.lineEnd(at) === Number.POSITIVE_INFINITY && !scan.final) return { kind: "incomplete" };
  return { kind: "defect", defect: "too_many_fields", next: nextLine(scan, at) };
}

type Quoted = { kind: "field"; value: string; next: number } | Exclude<Step, { kind: "record" }>;

// `open` is the place after the opening quote; `next` of a field is the separator, the line end or the text's end.
function readQuoted(scan: Scan, open: number): Quoted {
  const { text, separator, final } = scan;
  let at = open;
  let isBalanced = false;
  for (;;) {
    const quote = text.indexOf('"', at);
    // Every quote of the field has its pair where the line ends or another field opens: a text with a quoted beginning.
    if (isBalanced && (quote === -1 || quote > scan.lineEnd(open) || opensField(scan, at, quote)))
      return unquoted(scan, open - 1, at);
    if (quote === -1)
      return final ? { kind: "defect", defect: "unclosed_quote", next: text.length } : { kind: "incomplete" };
    const after = skipSpaces(text, quote + 1);
    const next = text[after];
    if (text[quote + 1] === '"') {
      at = quote + 2;
    } else if (next === undefined && !final) {
      return { kind: "incomplete" };
    } else if (next === undefined || next === separator || next === "\n" || next === "\r") {
      return { kind: "field", value: text.slice(open, quote).replaceAll('""', '"'), next: after };
    } else if (scan.lineEnd(open) > quote) {
      // Deliberate deviation from RFC 4180: a bare quote within a field on one line is a character of it.
      at = quote + 1;
      // One behind a blank opens something else: `"He said "no`.
      isBalanced = !isBalanced && text[quote - 1] !== " ";
    } else {
      return strayQuote(scan, quote);
    }
  }
}

function opensField({ text, separator }: Scan, from: number, quote: number): boolean {
  let at = quote - 1;
  while (at > from && text[at] === " ") at -= 1;
  return at >= from && text[at] === separator;
}

// `"Doe, Jane" <jane@example.com>`: the field as it stands, up to the separator behind its last quote.
function unquoted(scan: Scan, start: number, behindQuote: number): Quoted {
  const { text, final } = scan;
  if (scan.lineEnd(start) === Number.POSITIVE_INFINITY && !final) return { kind: "incomplete" };
  const next = endOfPlain(scan, behindQuote);
  return { kind: "field", value: text.slice(start, next), next };
}

// The quote opened lines ago meets one that closes nothing: the opening one was stray. The damage ends with this line.
function strayQuote(scan: Scan, quote: number): Quoted {
  if (scan.text.slice(quote).search(/[\r\n]/) === -1 && !scan.final) return { kind: "incomplete" };
  return { kind: "defect", defect: "unclosed_quote", next: nextLine(scan, quote) };
}

function nextLine(scan: Scan, at: number): number {
  const offset = scan.text.slice(at).search(/[\r\n]/);
  return offset === -1 ? scan.text.length : afterLineEnd(scan.text, at + offset);
}

function endOfPlain(scan: Scan, at: number): number {
  const line = Math.min(scan.lineEnd(at), scan.text.length);
  // Within the line: in a list of one column the next separator may be nowhere.
  const separator = scan.text.slice(at, line).indexOf(scan.separator);
  return separator === -1 ? line : at + separator;
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text[at] === " ") at += 1;
  return at;
}

function afterLineEnd(text: string, end: number): number {
  return text[end] === "\r" && text[end + 1] === "\n" ? end + 2 : end + 1;
}

/** The first line end at or after a place, Infinity when there is none; remembers, so that a pass over the text is linear. */
function lineEnds(text: string): (at: number) => number {
  const find = (mark: string) => {
    let from = -1;
    let found = -1;
    return (at: number): number => {
      if (at >= from && at <= found) return found;
      from = at;
      const place = text.indexOf(mark, at);
      found = place === -1 ? Number.POSITIVE_INFINITY : place;
      return found;
    };
  };
  const lf = find("\n");
  const cr = find("\r");
  return (at) => Math.min(lf(at), cr(at));
}
