// What cannot even be read as an HTTP request, and what Node would answer by itself, is answered in the form of every other
// error. Not here: requests that could be read (errors.ts).
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyRequest } from "fastify";
import type { Log } from "../platform/process/log.ts";
import { Refusal } from "../platform/refusal.ts";
import { logUnread } from "./access-log.ts";

type Reading = Error & { code?: string };

const SENTENCES = new Map([
  ["HPE_HEADER_OVERFLOW", "the path and the headers are longer than allowed"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "the request did not arrive in time"],
]);
const UNREADABLE = "the request is not valid HTTP";

/** Answers a request that Node's parser gave up on, with `{error, code, request_id}`, and closes the connection. */
export function answerUnreadable(log: Log, error: Reading, socket: Socket, request_id: string): void {
  // The other side is gone, or an answer is under way.
  if (error.code === "ECONNRESET" || socket.destroyed || !socket.writable) {
    socket.destroy(error);
    return;
  }
  const sentence = SENTENCES.get(error.code ?? "") ?? UNREADABLE;
  // Deliberate: 400 also for what came too slowly. The contract's table has no 408.
  answerAndClose(log, socket, { status: 400, error: sentence, code: "validation_error", request_id });
}

/** Takes over what a server of Node answers by itself: CONNECT with nothing, an unknown `Expect` with 417. */
export function answerOddRequests(log: Log, server: Server, newId: () => string): void {
  server.on("connect", ({ url }: IncomingMessage, socket: Socket) => {
    const error = `there is no CONNECT ${String(url).slice(0, 200)}`;
    answerAndClose(log, socket, { status: 404, error, code: "not_found", request_id: newId() });
  });
  // RFC 9110 §10.1.1 leaves it to the server: what it does not know it need not meet.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
}

/** A hook: RFC 9112 §3.2 has 400 for a request without a Host field, which Node would give without a body. */
export async function demandHost({ raw }: FastifyRequest): Promise<void> {
  // Of two, what stands before us may have gone by the other one.
  const count = raw.rawHeaders.filter((text, at) => at % 2 === 0 && text.toLowerCase() === "host").length;
  if (count > 1) throw new Refusal("validation_error", "the request has more than one Host header (RFC 9112 §3.2)");
  if (raw.headers.host !== undefined || raw.httpVersion === "1.0") return;
  throw new Refusal("validation_error", "the request has no Host header (RFC 9112 §3.2)");
}

type Answer = { status: 400 | 404; error: string; code: string; request_id: string };

function answerAndClose(log: Log, socket: Socket, { status, ...fields }: Answer): void {
  logUnread(log, fields.request_id, status);
  const body = JSON.stringify(fields);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${fields.request_id}`,
    "connection: close",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  // Not only our half of the connection: of a CONNECT nobody else would ever close the other one.
  socket.destroySoon();
}
