// What a command shows: tables and lines for people at a terminal, JSON for programs. Colours only where a terminal takes them.
export type Output = {
  /** True where programs read: no terminal, or `--json`. */
  isJson: boolean;
  /** Data, on standard output. */
  data(value: unknown): void;
  line(text: string): void;
  /** Words beside the data, on standard error; not with `--quiet`. */
  say(text: string): void;
  paint(style: Style, text: string): string;
  width: number;
};

export type Style = "bold" | "dim" | "green" | "red" | "yellow";
export type Streams = {
  stdout: { write(text: string): unknown; isTTY?: boolean; columns?: number };
  stderr: { write(text: string): unknown; isTTY?: boolean };
};

const CODES: Record<Style, [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  green: [32, 39],
  red: [31, 39],
  yellow: [33, 39],
};
const WIDTH = 100;
const CELL_MAX = 44;
const GAP = "  ";

/** `json`, `quiet`: as asked on the command line. */
export function openOutput(
  { stdout, stderr }: Streams,
  { json = false, quiet = false, noColor = false }: { json?: boolean; quiet?: boolean; noColor?: boolean },
): Output {
  const isJson = json || stdout.isTTY !== true;
  const isColoured = !isJson && !noColor;
  return {
    isJson,
    data: (value) => void stdout.write(`${JSON.stringify(value, null, stdout.isTTY ? 2 : 0)}\n`),
    line: (text) => void stdout.write(`${text}\n`),
    say: (text) => void (quiet || stderr.write(`${text}\n`)),
    paint: (style, text) => (isColoured ? `\x1b[${CODES[style][0]}m${text}\x1b[${CODES[style][1]}m` : text),
    width: stdout.columns || WIDTH,
  };
}

type Row = Record<string, unknown>;

/** What people look for first in a list. */
const FIRST = [
  "id",
  "event_type",
  "operation",
  "email",
  "address",
  "domain",
  "name",
  "slug",
  "status",
  "state",
  "outcome",
  "event",
  "to",
  "to_address",
  "recipient",
  "subject",
  "from",
  "from_address",
  "reason",
  "webhook_url",
  "type",
  "environment",
];
const LAST = ["created_at", "received_at", "timestamp", "at"];

/** Rows as a table that fits the width: the columns that matter most, as many as there is room for. */
export function tableOf(rows: readonly Row[], out: Pick<Output, "paint" | "width">): string {
  const names = columnsOf(rows);
  const cells = rows.map((row) => names.map((name) => cellOf(row[name])));
  const widths = names.map((name, at) => Math.max(name.length, ...cells.map((row) => row[at]?.length ?? 0)));
  const shown: number[] = [];
  let used = 0;
  for (const [at, width] of widths.entries()) {
    if (shown.length > 0 && used + GAP.length + width > out.width) continue;
    shown.push(at);
    used += width + (shown.length > 1 ? GAP.length : 0);
  }
  const lineOf = (row: string[]): string =>
    shown
      .map((at) => (row[at] ?? "").padEnd(widths[at] ?? 0))
      .join(GAP)
      .trimEnd();
  return [out.paint("dim", lineOf(names)), ...cells.map(lineOf)].join("\n");
}

/** Values that stand on one line, in the order in which people ask for them. */
function columnsOf(rows: readonly Row[]): string[] {
  const names = new Set(rows.flatMap((row) => Object.keys(row)));
  const isPlain = (name: string): boolean =>
    rows.every((row) => row[name] === null || typeof row[name] !== "object" || isShortList(row[name])) &&
    rows.some((row) => row[name] !== null && row[name] !== undefined && String(row[name]) !== "");
  const plain = [...names].filter(isPlain);
  const placed = (list: string[]): string[] => list.filter((name) => plain.includes(name));
  const others = plain.filter((name) => !FIRST.includes(name) && !LAST.includes(name));
  const isReference = (name: string): boolean => name.endsWith("_id");
  const said = others.filter((name) => !isReference(name));
  return [...placed(FIRST), ...placed(LAST), ...said, ...others.filter(isReference)];
}

function isShortList(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function cellOf(value: unknown): string {
  const text = printable(Array.isArray(value) ? value.join(", ") : timeOf(value));
  return text.length > CELL_MAX ? `${text.slice(0, CELL_MAX - 1)}…` : text;
}

function timeOf(value: unknown): string {
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value))
    return `${value.slice(0, 19).replace("T", " ")}Z`;
  return value === null || value === undefined ? "–" : String(value);
}

/** One record: its fields below each other. */
export function recordOf(record: Row, out: Pick<Output, "paint">): string {
  const width = Math.max(...Object.keys(record).map((name) => name.length), 0);
  const lines = Object.entries(record).map(([name, value]) => {
    const text =
      value !== null && typeof value === "object" && !isShortList(value) ? JSON.stringify(value) : plainOf(value);
    return `${out.paint("dim", name.padEnd(width))}  ${text}`;
  });
  return lines.join("\n");
}

function plainOf(value: unknown): string {
  return printable(Array.isArray(value) ? value.join(", ") || "–" : timeOf(value));
}

/** Texts of strangers' mail must not move the cursor or paint the terminal. */
export function printable(text: string): string {
  return text.replace(/[\x00-\x1f\x7f-\x9f]/g, " ");
}
