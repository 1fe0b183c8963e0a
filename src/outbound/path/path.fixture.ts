// For tests: a path with a mail server on loopback at its end, and everything around it in memory. A test
// file closes them with `afterEach(closePaths)`.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { openSession } from "../../mail/smtp/session.ts";
import { carryOut, type Hands } from "../carry-out.ts";
import type { Outcome } from "../types.ts";
import type { Effect } from "./effects.ts";
import type { Delivery } from "./links.ts";
import { createPath } from "./path.ts";
import type { Path, PathParts, PathWorld } from "./path-types.ts";
import { createShares } from "./shares.ts";
import { closePath, drive } from "./worker.ts";

const SOURCE = { id: "source", ip: null, ehlo: "postern.example" };
const SITE = { name: "mx.example", isp: "other", connections_max: 20, messages_per_connection: 100 };
const DAY_MS = 86_400_000;

export type Sink = {
  server: Server;
  port: number;
  sockets: Socket[];
  /** Says nothing until it greets; then it takes every message. */
  greets: boolean;
  banner: string;
  /** What it says to a command (`.` is the end of a message) instead of taking it; counted from 0 on each connection. Nothing for "". Breaks off when it throws. */
  answer(verb: string, at: { connection: number; message: number }): string | null;
};
const sinks: Sink[] = [];
const paths: Path[] = [];

/** Closes every path and server that were opened since it was last called. */
export function closePaths(): void {
  for (const path of paths.splice(0)) closePath(path);
  for (const { server, sockets } of sinks.splice(0)) {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
}

/** `at`: another server of a domain has the same port on another loopback address. */
export async function startSink(at: { host?: string; port?: number } = {}): Promise<Sink> {
  const server = createServer();
  const sink: Sink = { server, port: 0, sockets: [], greets: false, banner: "220 sink", answer: () => null };
  sinks.push(sink);
  server.on("connection", (socket) => {
    sink.sockets.push(socket);
    socket.on("error", () => undefined);
    if (sink.greets) greet(sink, socket);
  });
  server.listen(at.port ?? 0, at.host ?? "127.0.0.1");
  await once(server, "listening");
  sink.port = (server.address() as AddressInfo).port;
  return sink;
}

/** One that greets from the start. */
export async function startGreeter(
  change: Partial<Pick<Sink, "banner" | "answer">> = {},
  at: Parameters<typeof startSink>[0] = {},
): Promise<Sink> {
  return Object.assign(await startSink(at), { greets: true, ...change });
}

function greet(sink: Sink, socket: Socket): void {
  const connection = sink.sockets.indexOf(socket);
  let text = "";
  let inMessage = false;
  let message = 0;
  socket.write(`${sink.banner}\r\n`);
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    for (;;) {
      const mark = inMessage ? "\r\n.\r\n" : "\r\n";
      const end = text.indexOf(mark);
      if (end === -1) return;
      const verb = inMessage ? "." : text.slice(0, 4).toUpperCase();
      text = text.slice(end + mark.length);
      const said = answerOf(sink, verb, { connection, message });
      if (said === undefined) {
        socket.destroy();
        return;
      }
      if (verb === ".") message += 1;
      inMessage = verb === "DATA" && said === null;
      if (said !== "") socket.write(`${said ?? (inMessage ? "354 go" : "250 ok")}\r\n`);
      if (said?.startsWith("421")) socket.end();
    }
  });
}

function answerOf(sink: Sink, verb: string, at: { connection: number; message: number }): string | null | undefined {
  try {
    return sink.answer(verb, at);
  } catch {
    return undefined;
  }
}

/** From now on, and on the connections that wait for it. */
export function greetAll(sink: Sink): void {
  sink.greets = true;
  for (const socket of sink.sockets) greet(sink, socket);
}

export type Stage = {
  world: PathWorld;
  parts: PathParts;
  path: Path;
  outcomes: Outcome[];
  /** What the engine had to do (`suspend`, `park`, `resume`, `put back`), and what was logged as an error. */
  noted: string[];
  moveClock(ms: number): void;
};

/** What of the engine around the path is other than usual. */
export type Change = Partial<Omit<PathParts, "gate"> & PathParts["gate"] & Pick<Hands, "intake" | "otherSource">>;

export function stageFor(sink: Pick<Sink, "port">, change: Change = {}): Stage {
  const outcomes: Outcome[] = [];
  const noted: string[] = [];
  let offsetMs = 0;
  const world = {
    clock: { now: () => Date.now() + offsetMs, monotonic: () => performance.now() + offsetMs },
    seal: { hash: () => Buffer.alloc(32) },
    config: { base_url: "https://postern.example", testing: { outbound_port: sink.port } },
    log: { warn: () => undefined, error: ({ err }: { err: Error }) => noted.push(err.message) },
    random: { float: () => 0.5 },
  } as unknown as PathWorld;
  const hands = {
    finisher: { push: (_job: unknown, outcome: Outcome) => outcomes.push(outcome) },
    usage: { count: () => undefined },
    otherSource: { note: () => false },
    reach: { connected: () => undefined, unreachable: () => undefined },
    intake: { divert: () => false },
    parking: {
      suspend: ({ suspended }: Path) => noted.push(`suspend: ${suspended.reason}`),
      park: () => noted.push("park"),
      resume: () => noted.push("resume"),
      putBack: ({ message_id }: { message_id: string }) => noted.push(`put back: ${message_id}`),
    },
    ...change,
  } as unknown as Hands;
  const parts: PathParts = {
    open: openSession,
    loadBody: async () => null,
    toSevenBit: async (bytes: Buffer) => ({ kind: "written" as const, bytes }),
    signingKeys: async () => [],
    mayStart: () => true,
    mayEnd: () => true,
    results: { note: () => undefined },
    shares: createShares<Path>((at) => drive({ world, parts, path: at })),
    gate: { isStopping: () => false, unrecorded: () => 0, isSuspended: () => false, isHeld: () => false, ...change },
    recheck: { findAgain: () => null },
    carryOut: (at: Path, effect: Effect) => carryOut(world, hands, at, effect),
    ...change,
  } as unknown as PathParts;
  const path = createPath("source|mx.example", SOURCE, { site: SITE });
  paths.push(path);
  const moveClock = (ms: number) => {
    offsetMs += ms;
  };
  return { world, parts, path, outcomes, noted, moveClock };
}

export type Mail = { mime?: Buffer | null; addresses?: string[]; firsts?: number; sender?: string };

/** Puts messages on the path; `addresses` are those of its mail servers, the first of which has `firsts`. */
export function push(
  { path }: Stage,
  count: number,
  { mime, addresses = ["127.0.0.1"], firsts = 1, sender = "domain" }: Mail = {},
): void {
  const terms = { kind: "opportunistic", testing: false };
  const policy = { type: "no-policy-found", domain: "", strings: [] };
  const plan = {
    domain: "customer.example",
    site: SITE,
    hops: addresses.map((address, n) => ({ host: `mx${n < firsts ? "" : n}.example`, address, terms, policy })),
    fresh_until_ms: Number.POSITIVE_INFINITY,
  };
  const lane = { id: sender, org_id: "org", class: 0 } as unknown as Delivery["lane"];
  for (let n = 0; n < count; n += 1) {
    const job = {
      message_id: `message-${n}`,
      position: 0,
      email: `r${n}@customer.example`,
      mime: mime === undefined ? Buffer.from("Subject: hello\r\n\r\nhello\r\n") : mime,
      expires_at: new Date(Date.now() + DAY_MS),
      return_path_host: "bounces.postern.example",
      about: { size: 100, require_tls: false, origin: "forward", domain_id: sender },
    };
    path.fairness.push(lane, { lane, job, plan } as unknown as Delivery);
  }
}

/** All that was pushed so far came to its end without an error. */
export function assertDelivered({ outcomes, noted }: Stage, count: number): void {
  assert.deepEqual(noted, []);
  assert.equal(outcomes.length, count);
  assert.ok(
    outcomes.every(({ kind }) => kind === "delivered"),
    JSON.stringify(outcomes),
  );
}
