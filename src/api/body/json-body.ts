// Reading a JSON body: bounded depth and number of values, `__proto__`, U+0000 and numbers that no double holds refused, the
// exact bytes kept for idempotency. An absent body is `undefined`, also when the client sent Content-Type: application/json
// with nothing behind it.
import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { findUnstorable, hasLongNumber, mayBeUnstorable, parseMarked } from "../../platform/database/storable.ts";
import type { Took, WorkMeter } from "../../platform/process/thread-ms.ts";
import { Refusal } from "../../platform/refusal.ts";
import { countJson, type JsonCounts, type JsonExcess } from "./count-json.ts";

const DEPTH_MAX = 32;
/** Members and elements in all: a batch of 100 e-mails with 1,000 variables each has half of them. */
const VALUES_MAX = 200_000;

/** RFC 9110 §8.4.1. Some clients name a charset here, and send plain text. */
const COMPRESSED = /gzip|deflate|compress|br|zstd/i;

export type Reading = {
  /** True if the body holds more than is read on this thread. */
  isHeavy(request: FastifyRequest, counts: JsonCounts): boolean;
  /** What reading the body took, whatever came of it. */
  spent(request: FastifyRequest, took: Took): void;
};

const ANY: Reading = { isHeavy: () => false, spent: () => undefined };

/**
 * Installs the JSON parser on `app`. What is not UTF-8 (RFC 8259 §8.1), malformed JSON, too deep nesting and `__proto__`
 * keys are 400 `invalid_json`, too many values 400 `payload_too_large`. A body that is heavy is not parsed: its route gets it as
 * `rawBody`.
 */
export function readJsonBodies(app: FastifyInstance, meter: WorkMeter, { isHeavy, spent }: Reading = ANY): void {
  // Of what type nothing is does not matter: clients of many languages name one all the same.
  app.addHook("onRequest", async ({ raw: { headers } }) => {
    const isEmpty = headers["content-length"] === undefined || Number(headers["content-length"]) === 0;
    if (isEmpty && headers["transfer-encoding"] === undefined) delete headers["content-type"];
  });
  const parse = app.getDefaultJsonParser("error", "error") as Parse;
  app.removeContentTypeParser(["application/json", "text/plain"]);
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    const bytes = body as Buffer;
    request.rawBody = bytes;
    meter.begin();
    const { error, value } = read(request as FastifyRequest, bytes, { isHeavy, parse });
    spent(request as FastifyRequest, meter.end());
    done(error, value);
  });
}

type Read = { error: Error | null; value?: unknown };
type Parse = (request: FastifyRequest, text: string, done: (error: Error | null, value?: unknown) => void) => void;

function read(request: FastifyRequest, bytes: Buffer, how: Pick<Reading, "isHeavy"> & { parse: Parse }): Read {
  if (bytes.length === 0) return { error: null };
  // Deliberate: nothing is decompressed. A small body could become a large one.
  if (COMPRESSED.test(request.headers["content-encoding"] ?? "")) {
    const what = "the body is compressed; send it as it is, without the header 'Content-Encoding'";
    return { error: new Refusal("validation_error", what) };
  }
  const counts = countJson(bytes, { depth_max: DEPTH_MAX, values_max: VALUES_MAX });
  if (counts.kind !== "counted") return { error: excessive(counts) };
  if (how.isHeavy(request, counts)) return { error: null };
  // Decoded all the same, the text would hold U+FFFD where it held something else.
  if (!isUtf8(bytes)) return { error: new Refusal("invalid_json", "the body is not UTF-8 (RFC 8259 §8.1)") };
  const text = bytes.toString("utf8");
  let parsed: Read = { error: null };
  // Calls back before it returns.
  how.parse(request, text, (error, value) => {
    parsed = { error, value };
  });
  if (parsed.error) return { error: new Refusal("invalid_json", whyRefused(withoutMark(text))) };
  const hasLong = hasLongNumber(text);
  const marked = hasLong ? parseMarked(withoutMark(text)) : parsed.value;
  const problem = hasLong || mayBeUnstorable(text) ? findUnstorable(marked) : null;
  if (problem === null) return parsed;
  request.unstorable = true;
  return request.routeOptions.config.judges_items ? { error: null, value: marked } : { error: problem };
}

/** RFC 8259 §8.1: a byte order mark may be passed over. The parser does so by itself, JSON.parse refuses it. */
function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}

function whyRefused(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return "the body is not valid JSON";
  }
  return "the body holds a name that is not taken: __proto__, or prototype below constructor";
}

function excessive({ kind, field }: JsonExcess): Refusal {
  const detail = field === "" ? {} : { field };
  const where = field === "" ? "" : ` in the '${field}' field`;
  if (kind === "too_deep") {
    return new Refusal("invalid_json", `the body nests deeper than ${DEPTH_MAX} levels${where}`, detail);
  }
  const what = `the body holds more than ${VALUES_MAX} members and elements${where}`;
  return new Refusal("payload_too_large", what, detail);
}
