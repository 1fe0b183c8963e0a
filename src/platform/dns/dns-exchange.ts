// One question to one name server: UDP from a fresh port with a random id, TCP when the answer is truncated (RFC 7766),
// without EDNS when the server answers FORMERR to it (RFC 6891 §7). Not here: retries, caching, aliases (resolver.ts).
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { connect, isIP } from "node:net";
import { decodeMessage, encodeQuery, type Message, type Question, TYPES } from "./dns-message.ts";

export type Server = { host: string; port: number };
export type Outcome = { kind: "answer"; message: Message } | { kind: "failed"; reason: string };
export type AskOptions = { timeout_ms: number; ad: boolean; dnssec: boolean };

const FORMERR = 1;
const MESSAGE_BYTES_MAX = 65_535;
/** Answers that do not fit the question are ignored, so that a forger must guess; after this many we give the attempt up. */
const STRAY_ANSWERS_MAX = 100;

type Query = { id: number; question: Question; bytes: Buffer };
type Judged = Outcome | null;

/** Reads `host:port`, `[v6]:port` or an address alone (port 53); throws for anything but an IP address. */
export function parseServer(text: string): Server {
  const match = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(text) ?? /^([^:]+)(?::(\d{1,5}))?$/.exec(text);
  const host = isIP(text) ? text : (match?.[1] ?? "");
  const port = isIP(text) ? 53 : Number(match?.[2] ?? 53);
  if (!isIP(host) || port < 1 || port > 65_535) throw new Error(`"${text}" is not a name server; write 127.0.0.1:53`);
  return { host, port };
}

/** Asks once, within `timeout_ms` in all. A failure says why in a word or two ("timeout", "bad answer"); it never throws. */
export async function askServer(server: Server, question: Question, options: AskOptions): Promise<Outcome> {
  const deadline = performance.now() + options.timeout_ms;
  const left = () => Math.max(1, deadline - performance.now());
  let query = makeQuery(question, { ...options, edns: true });
  let outcome = await overUdp(server, query, left());
  if (outcome.kind === "answer" && outcome.message.rcode === FORMERR) {
    query = makeQuery(question, { ...options, edns: false });
    outcome = await overUdp(server, query, left());
  }
  if (outcome.kind === "answer" && outcome.message.truncated) return overTcp(server, query, left());
  return outcome;
}

function makeQuery(question: Question, options: { edns: boolean; ad: boolean; dnssec: boolean }): Query {
  const id = randomInt(0x10000);
  return { id, question, bytes: encodeQuery(id, question, options) };
}

// null: not an answer to this question, wait on. RFC 5452 §9.1: id and question must match; the source address does,
// because the socket is connected. An error answer may come without the question.
function judge(query: Query, bytes: Buffer): Judged {
  if (bytes.length < 12 || bytes.readUInt16BE(0) !== query.id) return null;
  const message = decodeMessage(bytes);
  if (message === null) return { kind: "failed", reason: "bad answer" };
  const asked = message.question;
  if (asked === null) return message.rcode === 0 ? null : { kind: "answer", message };
  const same = asked.type === TYPES[query.question.type] && asked.name === query.question.name;
  return same ? { kind: "answer", message } : null;
}

function overUdp(server: Server, query: Query, timeoutMs: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = createSocket(isIP(server.host) === 6 ? "udp6" : "udp4");
    let strays = 0;
    let ended = false;
    const end = (outcome: Outcome) => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      socket.close();
      resolve(outcome);
    };
    const timer = setTimeout(() => end({ kind: "failed", reason: "timeout" }), timeoutMs);
    socket.on("error", (error) => end(networkFailure(error)));
    socket.on("message", (bytes) => {
      const judged = judge(query, bytes);
      strays += judged ? 0 : 1;
      if (judged) end(judged);
      else if (strays > STRAY_ANSWERS_MAX) end({ kind: "failed", reason: "bad answer" });
    });
    socket.connect(server.port, server.host, () => {
      if (!ended) socket.send(query.bytes);
    });
  });
}

function overTcp(server: Server, query: Query, timeoutMs: number): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = connect({ host: server.host, port: server.port, noDelay: true });
    const end = (outcome: Outcome) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(() => end({ kind: "failed", reason: "timeout" }), timeoutMs);
    let received: Buffer = Buffer.alloc(0);
    socket.on("error", (error) => end(networkFailure(error)));
    socket.on("close", () => end({ kind: "failed", reason: "bad answer" }));
    socket.on("connect", () => socket.write(Buffer.concat([uint16(query.bytes.length), query.bytes])));
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk.subarray(0, MESSAGE_BYTES_MAX + 2 - received.length)]);
      const length = received.length < 2 ? Number.POSITIVE_INFINITY : received.readUInt16BE(0);
      if (received.length - 2 < length) return;
      end(judgeStream(query, received.subarray(2, 2 + length)));
    });
  });
}

// On a connection of our own there is nothing to wait for: one answer, and it must be the right one.
function judgeStream(query: Query, bytes: Buffer): Outcome {
  const judged = judge(query, bytes);
  if (judged?.kind === "answer" && !judged.message.truncated) return judged;
  return { kind: "failed", reason: "bad answer" };
}

function networkFailure(error: Error): Outcome {
  return { kind: "failed", reason: `network: ${(error as NodeJS.ErrnoException).code ?? error.message}` };
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
