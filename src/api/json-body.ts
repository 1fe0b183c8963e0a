// Reading a JSON body: bounded depth, `__proto__`, U+0000 and numbers that no double holds refused, the exact bytes kept for idempotency. An absent
// body is `undefined`, also when the client sent Content-Type: application/json with nothing behind it.
import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Refusal } from "../platform/refusal.ts";
import { findUnstorable, hasLongNumber, mayBeUnstorable, parseMarked } from "../platform/storable.ts";

const DEPTH_MAX = 32;

/**
 * Installs the JSON parser on `app`. What is not UTF-8 (RFC 8259 §8.1), malformed JSON, too deep nesting and `__proto__`
 * keys are 400 `invalid_json`.
 */
export function readJsonBodies(app: FastifyInstance): void {
  // Of what type nothing is does not matter: clients of many languages name one all the same.
  app.addHook("onRequest", async ({ raw: { headers } }) => {
    const isEmpty = headers["content-length"] === undefined || Number(headers["content-length"]) === 0;
    if (isEmpty && headers["transfer-encoding"] === undefined) delete headers["content-type"];
  });
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeContentTypeParser(["application/json", "text/plain"]);
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (request, body, done) => {
    const bytes = body as Buffer;
    request.rawBody = bytes;
    if (bytes.length === 0) return done(null, undefined);
    if (isTooDeep(bytes)) return done(new Refusal("invalid_json", `the body nests deeper than ${DEPTH_MAX} levels`));
    // Decoded all the same, the text would hold U+FFFD where it held something else.
    if (!isUtf8(bytes)) return done(new Refusal("invalid_json", "the body is not UTF-8 (RFC 8259 §8.1)"));
    const text = bytes.toString("utf8");
    parse(request as FastifyRequest, text, (error, value) => {
      if (error) return done(new Refusal("invalid_json", whyRefused(text)));
      const hasLong = hasLongNumber(text);
      const marked = hasLong ? parseMarked(text) : value;
      const problem = hasLong || mayBeUnstorable(text) ? findUnstorable(marked) : null;
      if (problem === null) return done(null, value);
      request.unstorable = true;
      return request.routeOptions.config.judges_items ? done(null, marked) : done(problem);
    });
  });
}

function whyRefused(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return "the body is not valid JSON";
  }
  return "the body holds a name that is not taken: __proto__, or prototype below constructor";
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function isTooDeep(bytes: Buffer): boolean {
  let depth = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      if (depth > DEPTH_MAX) return true;
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
    }
  }
  return false;
}

/** Index of the closing quote (or the end); `indexOf` runs over base64 attachments at memory speed. */
function endOfString(bytes: Buffer, start: number): number {
  let end = bytes.indexOf(QUOTE, start + 1);
  while (end !== -1) {
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
    end = bytes.indexOf(QUOTE, end + 1);
  }
  return bytes.length;
}
