// A list exported by another provider, bytes in, rows out, in pieces of any size: encoding → CSV or JSON → which
// provider's format → each row's address, reason and scope, or what is wrong with it. Rows are numbered from 1 without
// the heading; every line that a broken quote swallowed is a row of its own. Duplicates are for the caller to find.
import { parseAddress, parseMailbox } from "../../mail/address.ts";
import { type Columns, columnName } from "./columns.ts";
import { type CsvDefect, type CsvRecord, createCsvReader, detectSeparator } from "./csv.ts";
import { customFormat, headerlessFormat, type Looks } from "./custom-format.ts";
import { HEAD_BYTES, openText, type TextSource } from "./encoding.ts";
import { type Accepted, decline, type Format, type Provider, recognizeFormat, type Verdict } from "./formats.ts";
import { createJsonReader, type JsonRecord, looksLikeJson } from "./json-records.ts";
import { kindOfFile } from "./reasons.ts";

/** `email` is lower-cased, as suppressions are kept. */
export type ImportEntry = Omit<Accepted, "ok"> & { row: number; email: string };
export type ImportError = { row: number; column: string | null; value: string | null; message: string };
export type ImportRow = ImportEntry | ImportError;
export type ImportReader = {
  push(bytes: Buffer): ImportRow[];
  end(): ImportRow[];
  /** The format once rows have come out or the end was read; null when no column holds addresses. */
  format(): Format | null;
  /** Headings of the columns whose meaning has to be asked for, once the format is there. */
  asks(): string[];
};

/** Rows seen before the format is decided by what the columns hold. */
const SAMPLE_ROWS = 50;
const HEAD_CHARS = 16 * 1024;
const VALUE_CHARS_MAX = 200;
const DEFECTS: Record<CsvDefect, string> = {
  unclosed_quote: "a quoted field begins in this row and is never closed",
  inside_unclosed_quote: "the row lies inside a quoted field that is never closed",
  row_too_long: "the row is longer than 256 KiB",
  too_many_fields: "the row has more than 1,000 fields",
};

type Defect = { defect: string; raw: string };
/** A CSV row keeps its raw fields and shares the places of the columns; only what is asked for is decoded. */
type Values = { fields: string[]; places: Map<string, number> } | { values: Map<string, string> };
type Plain = Values | Defect;
type Source = { push(text: string): Plain[]; end(): Plain[] };
type Reading = {
  now_ms: number;
  hint: Provider | null;
  file: ReturnType<typeof kindOfFile>;
  head: Buffer;
  text: TextSource | null;
  /** Text gathered until it is clear whether it is CSV or JSON. */
  waiting: string;
  source: Source | null;
  headings: Map<string, string>;
  hasHeading: boolean;
  sample: Plain[] | null;
  format: Format | null;
  row: number;
};

/**
 * A reader for one file. `provider` is what the caller says it is (null: find out), `filename` may be empty; entries that
 * have expired at `now_ms` are declined.
 */
export function createImportReader(options: {
  provider: Provider | null;
  filename: string;
  now_ms: number;
}): ImportReader {
  const reading: Reading = {
    now_ms: options.now_ms,
    hint: options.provider,
    file: kindOfFile(options.filename),
    head: Buffer.alloc(0),
    text: null,
    waiting: "",
    source: null,
    headings: new Map(),
    hasHeading: true,
    sample: [],
    format: null,
    row: 0,
  };
  return {
    push: (bytes) => judge(reading, readBytes(reading, bytes, false), false),
    end: () => judge(reading, readBytes(reading, Buffer.alloc(0), true), true),
    format: () => reading.format,
    asks: () => (reading.format?.asks ?? []).map((name) => printable(reading.headings.get(name) ?? name)),
  };
}

function readBytes(reading: Reading, bytes: Buffer, final: boolean): Plain[] {
  if (reading.text === null) {
    reading.head = reading.head.length === 0 ? bytes : Buffer.concat([reading.head, bytes]);
    if (reading.head.length < HEAD_BYTES && !final) return [];
    reading.text = openText(reading.head);
    const head = reading.head;
    reading.head = Buffer.alloc(0);
    return readText(reading, reading.text.text(head), final);
  }
  return readText(reading, reading.text.text(bytes), final);
}

function readText(reading: Reading, piece: string, final: boolean): Plain[] {
  const text = final ? piece + (reading.text as TextSource).end() : piece;
  if (reading.source !== null) return [...reading.source.push(text), ...(final ? reading.source.end() : [])];
  reading.waiting += text;
  if (reading.waiting.length < HEAD_CHARS && !final) return [];
  const whole = reading.waiting;
  reading.waiting = "";
  // Decided by as much as there always is, so that it does not depend on the size of pieces.
  const head = whole.slice(0, HEAD_CHARS);
  const opened = looksLikeJson(head) ? jsonSource(reading, head) : csvSource(reading, head);
  reading.source = opened.source;
  return [...opened.source.push(whole.slice(opened.skip)), ...(final ? opened.source.end() : [])];
}

/** `skip`: how much of the head is no list. */
type Opened = { source: Source; skip: number };

function jsonSource(reading: Reading, head: string): Opened {
  const reader = createJsonReader(head, (raw) => (reading.text as TextSource).field(raw));
  const named = (records: JsonRecord[]): Plain[] =>
    records
      .map((record) => ("defect" in record ? record : { values: renamed(reading, record.values) }))
      .filter((record) => "defect" in record || [...record.values.values()].some((value) => value !== ""));
  return { source: { push: (text) => named(reader.push(text)), end: () => named(reader.end()) }, skip: 0 };
}

function renamed(reading: Reading, values: Map<string, string>): Map<string, string> {
  const named = new Map<string, string>();
  for (const [heading, value] of values) {
    const name = columnName(heading);
    if (!reading.headings.has(name) && reading.headings.size < 1_000) reading.headings.set(name, heading);
    named.set(name, value.trim());
  }
  return named;
}

function csvSource(reading: Reading, head: string): Opened {
  const { separator, skip } = detectSeparator(head);
  const reader = createCsvReader(separator);
  const heading: { columns: Heading | null } = { columns: null };
  const plain = (records: CsvRecord[]): Plain[] => {
    const rows: Plain[] = [];
    for (const record of records) {
      if ("defect" in record) rows.push({ defect: DEFECTS[record.defect], raw: fieldText(reading, record.raw) });
      else if (heading.columns === null) heading.columns = readHeading(reading, record.fields, rows);
      else rows.push(...toRows(reading, heading.columns, record.fields));
    }
    return rows;
  };
  return {
    source: { push: (text) => plain(reader.push(text)), end: () => plain(reader.end()) },
    skip,
  };
}

type Heading = { count: number; places: Map<string, number> };

// A first row that holds an address is data: the list has no heading, and its columns are called 1, 2, 3.
function readHeading(reading: Reading, fields: string[], rows: Plain[]): Heading {
  const texts = fields.map((field) => fieldText(reading, field));
  reading.hasHeading = !texts.some((text) => readAddress(text) !== null);
  const heading: Heading = { count: 0, places: new Map() };
  if (reading.hasHeading) {
    for (const text of texts) addColumn(reading, heading, text);
    return heading;
  }
  rows.push(...toRows(reading, heading, fields));
  return heading;
}

// Of two columns with one name the first counts (Mandrill writes expires_at twice); one without a name is not seen.
function addColumn(reading: Reading, heading: Heading, text: string): void {
  const name = columnName(text);
  if (name !== "" && !heading.places.has(name)) {
    heading.places.set(name, heading.count);
    reading.headings.set(name, text);
  }
  heading.count += 1;
}

// Without a heading, a line of nothing but addresses is as many rows.
function toRows(reading: Reading, heading: Heading, fields: string[]): Plain[] {
  const filled = reading.hasHeading || fields.length === 1 ? [] : fields.filter((field) => field.trim() !== "");
  const several = filled.length > 1 && filled.every((field) => fieldText(reading, field).includes("@"));
  return (several ? filled.map((field) => [field]) : [fields]).map((cells) => toValues(reading, heading, cells));
}

function toValues(reading: Reading, heading: Heading, fields: string[]): Plain {
  if (!reading.hasHeading) {
    while (heading.count < fields.length) addColumn(reading, heading, String(heading.count + 1));
  } else if (fields.length > heading.count && fields.slice(heading.count).some((field) => field.trim() !== "")) {
    const raw = fieldText(reading, fields.join(",").slice(0, VALUE_CHARS_MAX));
    return { defect: `the row has ${fields.length} fields, the heading ${heading.count}`, raw };
  }
  return { fields, places: heading.places };
}

function fieldText(reading: Reading, raw: string): string {
  return (reading.text as TextSource).field(raw).trim();
}

/** Numbers and judges rows; the first ones wait until there are enough to recognize the format by. */
function judge(reading: Reading, rows: Plain[], final: boolean): ImportRow[] {
  if (reading.sample === null) return rows.map((row) => judgeRow(reading, row));
  for (const row of rows) reading.sample.push(row);
  if (reading.sample.length < SAMPLE_ROWS && !final) return [];
  const waiting = reading.sample;
  reading.format = chooseFormat(reading, waiting.slice(0, SAMPLE_ROWS));
  reading.sample = null;
  return waiting.map((row) => judgeRow(reading, row));
}

function chooseFormat(reading: Reading, rows: Plain[]): Format | null {
  const values = rows.flatMap((row) => ("defect" in row ? [] : [row]));
  const columns: Columns = {
    names: new Set(namesIn(reading, values).filter((name) => name !== "")),
    sample: (name) => values.map((row) => readValue(reading, row, name)),
  };
  const looks: Looks = {
    provider: reading.hint ?? "custom",
    file: reading.file,
    holdsAddress: (text) => readAddress(text) !== null,
  };
  if (!reading.hasHeading) return headerlessFormat(columns, looks, reading.hint);
  const known = reading.hint === "custom" ? null : recognizeFormat(columns, reading.file);
  if (known !== null && (reading.hint === null || reading.hint === known.provider)) return known;
  return customFormat(columns, looks);
}

/** Where no heading tells them, the columns of these rows alone: how much of what follows was read already is chance. */
function namesIn({ headings, hasHeading }: Reading, rows: Values[]): string[] {
  const named = rows.flatMap((row) => ("values" in row ? [...row.values.keys()] : []));
  if (named.length > 0) return named;
  const count = Math.max(0, ...rows.map((row) => ("fields" in row ? row.fields.length : 0)));
  const names = [...headings.keys()];
  return hasHeading ? names : names.slice(0, count);
}

function readValue(reading: Reading, row: Values, name: string): string {
  if ("values" in row) return row.values.get(name) ?? "";
  const place = row.places.get(name);
  return place === undefined ? "" : fieldText(reading, row.fields[place] ?? "");
}

function judgeRow(reading: Reading, row: Plain): ImportRow {
  reading.row += 1;
  const { format } = reading;
  if ("defect" in row) return problem(reading, null, row.raw, row.defect);
  const damaged = columnWithNul(row);
  if (damaged !== null) {
    return problem(reading, damaged, readValue(reading, row, damaged), "the value holds a NUL character");
  }
  if (format === null) return problem(reading, null, null, "no column of the file holds addresses");
  const get = (name: string): string => readValue(reading, row, name);
  const given = get(format.email);
  const email = readAddress(given);
  if (email === null) return problem(reading, format.email, given, addressProblem(given));
  const verdict = notExpired(reading, format.judge(get));
  if (!verdict.ok) {
    const message = `'${printable(reading.headings.get(verdict.column) ?? verdict.column)}' ${verdict.message}`;
    return problem(reading, verdict.column, get(verdict.column), message);
  }
  const { ok: _ok, ...entry } = verdict;
  return { row: reading.row, email, ...entry };
}

// As POST /v1/suppressions refuses it: an entry that is over blocks nobody, whatever the preview would count it as.
function notExpired({ now_ms }: Reading, verdict: Verdict): Verdict {
  const isOver = verdict.ok && verdict.expires_at !== null && Date.parse(verdict.expires_at) <= now_ms;
  return isOver ? decline("expiresat", "is in the past") : verdict;
}

function columnWithNul(row: Values): string | null {
  if ("values" in row) return [...row.values].find(([, value]) => value.includes("\0"))?.[0] ?? null;
  const place = row.fields.findIndex((field) => field.includes("\0"));
  if (place === -1) return null;
  return [...row.places].find(([, index]) => index === place)?.[0] ?? String(place + 1);
}

function problem(reading: Reading, column: string | null, value: string | null, message: string): ImportError {
  const heading = column === null ? null : (reading.headings.get(column) ?? column);
  return {
    row: reading.row,
    column: heading === null ? null : printable(heading),
    value: value === null ? null : printable(value),
    message,
  };
}

/** Text that JSON and the database can hold: NUL becomes its picture, lone surrogates the replacement character. */
function printable(text: string): string {
  return text.slice(0, VALUE_CHARS_MAX).replaceAll("\0", "␀").toWellFormed();
}

function addressProblem(given: string): string {
  return given === "" ? "there is no address" : "the address is not a valid e-mail address";
}

const usual = /^[A-Za-z0-9][A-Za-z0-9._+-]*@[A-Za-z0-9.-]+$/;

// Addresses come bare, in angle brackets, with a name, with a leading mailto: or what a spreadsheet's formula guard left
// (an apostrophe, `="…"`), and with invisible marks from copying.
function readAddress(text: string): string | null {
  if (!text.includes("@")) return null;
  if (usual.test(text)) {
    const parsed = parseAddress(text);
    return parsed.ok ? parsed.address.email.toLowerCase() : null;
  }
  const bare = text
    .replace(/^'(?='*[=+\-@])/, "")
    .replace(/^="(.*)"$/, "$1")
    .replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, "")
    .replace(/^mailto:/i, "")
    .trim();
  const parsed = parseMailbox(bare);
  return parsed.ok ? parsed.address.email.toLowerCase() : null;
}
