// A request that is answered before its body has come (no key, no such path, too large, too many) is not read to its end:
// the answer says `Connection: close`, and then the connection ends in stages (RFC 9112 §9.6), so that a client that is
// still sending finds the answer before it finds a reset. Not here: what a body may cost while it is read (load.ts).
import type { Socket } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";

/** As much of a body may still come and be thrown away: cheaper than a new connection with its TLS handshake. */
const REST_BYTES_MAX = 64 * 1024;
/** So long a client may take to find the answer, once its own bytes are not taken any more. */
const LINGER_MS = 1_000;

/** To be called before an answer is sent: the connection ends with it if more than 64 KiB of the body may still come. */
export function noteCutOff({ raw }: FastifyRequest, reply: FastifyReply): void {
  // Asked through `inject`, a request has no such thing.
  if (raw.complete !== false) return;
  const announced = raw.headers["content-length"];
  if (announced !== undefined && Number(announced) <= REST_BYTES_MAX) return;
  reply.header("connection", "close");
  const { socket } = raw;
  // What Node calls once the answer is out. Its own destroys the socket at once: bytes that nobody read then make the
  // system send a reset, which overtakes the answer.
  socket.destroySoon = () => linger(socket);
}

/** Ends our half, takes nothing more, and closes when the client has had time to read. */
function linger(socket: Socket): void {
  socket.end();
  // Who listens gets the bytes in place of Node's parser, which would go on reading.
  socket.on("data", () => socket.pause());
  socket.pause();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
}
