// What cannot even be read as an HTTP request is answered in the form of every other error, then the connection closes.
// Not here: requests that could be read (errors.ts).
import type { Socket } from "node:net";

type Reading = Error & { code?: string };

const SENTENCES = new Map([
  ["HPE_HEADER_OVERFLOW", "the path and the headers are longer than allowed"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "the request did not arrive in time"],
]);
const UNREADABLE = "the request is not valid HTTP";

/** Answers a request that Node's parser gave up on, with `{error, code, request_id}`, and closes the connection. */
export function answerUnreadable(error: Reading, socket: Socket, requestId: string): void {
  // The other side is gone, or an answer is under way.
  if (error.code === "ECONNRESET" || socket.destroyed || !socket.writable) {
    socket.destroy(error);
    return;
  }
  const sentence = SENTENCES.get(error.code ?? "") ?? UNREADABLE;
  const body = JSON.stringify({ error: sentence, code: "validation_error", request_id: requestId });
  const head = [
    // Deliberate: 400 also for what came too slowly. The contract's table has no 408.
    "HTTP/1.1 400 Bad Request",
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
