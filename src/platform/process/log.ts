// The log: one JSON line each on standard output. It carries ids, codes, sizes and domains; no local parts, subjects,
// bodies or keys (reliability rule 15). What a careless caller passes is cut down here, by field name and by content.
// Not here: what is worth logging, and request logging (api/).
import { type DestinationStream, type Logger, pino } from "pino";
import { type Lines, linesTo } from "./output-problem.ts";

export type Log = Logger;

/** Fields whose value is never written, compared without case, `-` and `_`. */
const SECRET_FIELDS = new Set([
  ...["authorization", "cookie", "setcookie", "secret", "password", "pass", "token", "apikey", "key", "masterkey"],
  ...[
    "secretkey",
    "accesskey",
    "privatekey",
    "credentials",
    "signature",
    "body",
    "html",
    "text",
    "htmlbody",
    "textbody",
  ],
  ...["subject", "to", "from", "cc", "bcc", "replyto", "sender", "recipient", "recipients", "email", "emails"],
  ...["address", "addresses", "mailfrom", "rcptto", "envelope", "localpart", "headers", "rawheaders", "attachments"],
  ...["content", "raw", "payload", "variables", "connectionstring", "databaseurl"],
]);
/** The fields of an error that are logged: the driver's `detail`, `where` and `parameters` hold values of rows. */
const ERROR_FIELDS = ["code", "constraint", "table", "column", "severity", "routine", "syscall", "address_family"];

const STRING_LENGTH_MAX = 2_000;
const STACK_LENGTH_MAX = 4_000;
const DEPTH_MAX = 4;
const ENTRIES_MAX = 50;
const LOCAL_PART_LENGTH_MAX = 320;
const REDACTED = "[redacted]";
const STDOUT = 1;

/**
 * A log for one role of the program. `level` is pino's (`silent`…`trace`). Fields named like secrets or mail content are
 * replaced by "[redacted]"; in every other text the local part of an address and our secrets are; texts are cut at 2,000.
 */
export function createLog(options: { level: string; role: string; destination?: DestinationStream }): Log {
  const settings = {
    level: options.level,
    base: { role: options.role, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: cleanFields, bindings: cleanFields },
    serializers: { err: (value: unknown) => value, error: (value: unknown) => value },
    hooks: { logMethod: cleanMessage },
  };
  const log: Logger = pino(settings, options.destination ?? ownOutput((fields, text) => log.error(fields, text)));
  // pino formats the fields of a child only once it has them as text; children inherit this from their parent.
  const { child } = log;
  return Object.assign(log, {
    child(this: Logger, bindings: Record<string, unknown>, settings?: object) {
      return child.call(this, cleanFields(bindings), settings);
    },
  }) as Log;
}

let output: Lines | null = null;

/** Standard output, which all logs of a process share. */
function ownOutput(say: (fields: object, text: string) => void): Lines {
  output ??= linesTo(STDOUT, (lost, code) =>
    say({ lost, code }, "lines of this log could not be written and are lost"),
  );
  return output;
}

/** The text without what must not be logged: `anna@example.com` becomes `…@example.com`, `whsec_…` becomes `whsec_[redacted]`. */
export function cleanText(text: string, lengthMax: number = STRING_LENGTH_MAX): string {
  const cut = text.length > lengthMax ? `${text.slice(0, lengthMax)}… (${text.length} characters)` : text;
  return withoutSecrets(cut.includes("@") ? withoutLocalParts(cut) : cut);
}

function withoutSecrets(text: string): string {
  return text
    .replace(/\b(whsec_|svc_live_|svc_test_)[0-9A-Za-z_-]+/g, `$1${REDACTED}`)
    .replace(/\b(Bearer|Basic) +[0-9A-Za-z+/=._~-]+/gi, `$1 ${REDACTED}`)
    .replace(/(\w:\/\/[^\s:/@]{0,200}):[^\s/@]{1,200}@/g, `$1:${REDACTED}@`);
}

function withoutLocalParts(text: string): string {
  let clean = "";
  let done = 0;
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", at + 1)) {
    const start = localPartStart(text, at, done);
    if (start < at) {
      clean += `${text.slice(done, start)}…`;
      done = at;
    }
  }
  return clean + text.slice(done);
}

function localPartStart(text: string, at: number, floor: number): number {
  if (text[at - 1] === '"') {
    const quote = text.lastIndexOf('"', at - 2);
    return quote >= floor && at - quote <= LOCAL_PART_LENGTH_MAX ? quote : at;
  }
  let start = at;
  while (start > floor && at - start < LOCAL_PART_LENGTH_MAX && !/[\s<>()[\]",;:@/\\]/.test(text[start - 1]!))
    start -= 1;
  return start;
}

// pino's own way through: (fields?, message?, ...values). Without a message pino takes the error's, uncleaned.
function cleanMessage(this: Logger, args: unknown[], method: (this: Logger, ...args: never[]) => void): void {
  const clean = args.map((value) => (typeof value === "string" ? cleanText(value) : value));
  if (clean[0] instanceof Error) clean[0] = { err: clean[0] };
  const { err } = (clean[0] ?? {}) as { err?: unknown };
  if (clean.length === 1 && err instanceof Error) clean.push(cleanText(err.message));
  method.apply(this, clean as never[]);
}

function cleanFields(fields: Record<string, unknown>): Record<string, unknown> {
  return cleanObject(fields, 0) as Record<string, unknown>;
}

function cleanObject(object: object, depth: number): unknown {
  const clean = new Map<string, unknown>();
  for (const [name, value] of Object.entries(object).slice(0, ENTRIES_MAX)) {
    clean.set(name, isSecretField(name, value) ? REDACTED : cleanValue(value, depth + 1));
  }
  return Object.fromEntries(clean);
}

// A number or a flag under such a name is a size or a count, and stays.
function isSecretField(name: string, value: unknown): boolean {
  const harmless = value === null || value === undefined || typeof value === "number" || typeof value === "boolean";
  return !harmless && SECRET_FIELDS.has(name.toLowerCase().replace(/[-_]/g, ""));
}

function cleanValue(value: unknown, depth: number): unknown {
  if (typeof value === "string") return cleanText(value);
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Error) return cleanError(value, depth);
  if (value instanceof Date) return value;
  if (ArrayBuffer.isView(value)) return `(${value.byteLength} bytes)`;
  if (depth >= DEPTH_MAX) return "(deeper)";
  if (Array.isArray(value)) return value.slice(0, ENTRIES_MAX).map((item) => cleanValue(item, depth + 1));
  if (value instanceof Map) return cleanObject(Object.fromEntries([...value].slice(0, ENTRIES_MAX)), depth);
  // A request, a socket, a client: nobody knows what is inside.
  return isPlain(value) ? cleanObject(value, depth) : `(${value.constructor?.name ?? "object"})`;
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function cleanError(error: Error, depth: number): unknown {
  const clean: Record<string, unknown> = { type: error.name, message: cleanText(error.message) };
  for (const name of ERROR_FIELDS) {
    const value = (error as unknown as Record<string, unknown>)[name];
    if (typeof value === "string" || typeof value === "number") clean[name] = value;
  }
  if (error.stack) clean.stack = cleanText(error.stack, STACK_LENGTH_MAX);
  if (error.cause !== undefined && depth < DEPTH_MAX) clean.cause = cleanValue(error.cause, depth + 1);
  return clean;
}
