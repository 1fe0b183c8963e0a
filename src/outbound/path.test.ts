// How many connections a path makes towards a site that may not be there.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, it } from "node:test";
import { until } from "../../test/support/until.ts";
import { openSession } from "../mail/smtp/session.ts";
import type { Errand } from "./links.ts";
import { closePath, createPath, drive, type Path, type PathParts, type PathWorld } from "./path.ts";
import type { Outcome } from "./types.ts";

const MESSAGES = 12;
const SOURCE = { id: "source", ip: null, ehlo: "postern.example" };
const SITE = { name: "mx.example", isp: "other", connections_max: 20, messages_per_connection: 100 };

type Sink = { server: Server; port: number; sockets: Socket[]; greets: boolean };
const sinks: Sink[] = [];
const paths: Path[] = [];

afterEach(() => {
  for (const path of paths.splice(0)) closePath(path);
  for (const { server, sockets } of sinks.splice(0)) {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

/** Says nothing until it `greets`; then it takes every message. */
async function startSink(): Promise<Sink> {
  const sink: Sink = { server: createServer(), port: 0, sockets: [], greets: false };
  sinks.push(sink);
  sink.server.on("connection", (socket) => {
    sink.sockets.push(socket);
    socket.on("error", () => undefined);
    if (sink.greets) greet(socket);
  });
  sink.server.listen(0, "127.0.0.1");
  await once(sink.server, "listening");
  sink.port = (sink.server.address() as AddressInfo).port;
  return sink;
}

function greet(socket: Socket): void {
  let text = "";
  let inMessage = false;
  socket.write("220 sink\r\n");
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    for (;;) {
      const mark = inMessage ? "\r\n.\r\n" : "\r\n";
      const end = text.indexOf(mark);
      if (end === -1) return;
      const verb = inMessage ? "." : text.slice(0, 4).toUpperCase();
      text = text.slice(end + mark.length);
      inMessage = verb === "DATA";
      socket.write(inMessage ? "354 go\r\n" : "250 ok\r\n");
    }
  });
}

function greetAll(sink: Sink): void {
  sink.greets = true;
  for (const socket of sink.sockets) greet(socket);
}

type Stage = { world: PathWorld; parts: PathParts; path: Path; outcomes: Outcome[] };

function stageFor(sink: Sink): Stage {
  const outcomes: Outcome[] = [];
  const world = {
    clock: { now: () => Date.now(), monotonic: () => performance.now() },
    seal: { hash: () => Buffer.alloc(32) },
    config: { base_url: "https://postern.example", testing: { outbound_port: sink.port } },
    log: { warn: () => undefined, error: ({ err }: { err: Error }) => assert.fail(err.stack) },
    random: { float: () => 0.5 },
  } as unknown as PathWorld;
  const parts = {
    open: openSession,
    loadBody: async () => null,
    signingKeys: async () => [],
    mayStart: () => true,
    mayEnd: () => true,
    finisher: { push: (_job: unknown, outcome: Outcome) => outcomes.push(outcome), pending: () => 0 },
    results: { note: () => undefined },
    usage: { count: () => undefined },
    isForOther: () => false,
    reach: { connected: () => undefined, unreachable: () => undefined },
    divert: () => false,
    suspend: () => undefined,
    resume: () => undefined,
    stopping: () => false,
  } as unknown as PathParts;
  const path = createPath("source|mx.example", SOURCE, { site: SITE });
  paths.push(path);
  return { world, parts, path, outcomes };
}

function push({ path }: Stage, count: number): void {
  const terms = { kind: "opportunistic", testing: false };
  const plan = {
    domain: "customer.example",
    site: SITE,
    hops: [
      { host: "mx.example", address: "127.0.0.1", terms, policy: { type: "no-policy-found", domain: "", strings: [] } },
    ],
    fresh_until_ms: Number.POSITIVE_INFINITY,
  };
  const lane = { id: 1, org_id: "org", class: 0 };
  for (let n = 0; n < count; n += 1) {
    const job = {
      message_id: `message-${n}`,
      position: 0,
      email: `r${n}@customer.example`,
      mime: Buffer.from("Subject: hello\r\n\r\nhello\r\n"),
      expires_at: new Date(Date.now() + 60_000),
      return_path_host: "bounces.postern.example",
      about: { require_tls: false, origin: "forward", domain_id: "domain" },
    };
    path.fairness.push(lane, { lane, job, plan } as unknown as Errand);
  }
}

describe("a path", () => {
  it("makes two connections to a site that never answered, and more once one of them is open", async () => {
    const sink = await startSink();
    const stage = stageFor(sink);
    push(stage, MESSAGES);
    drive(stage.world, stage.parts, stage.path);
    await until("the connections are made", () => sink.sockets.length >= 2);
    drive(stage.world, stage.parts, stage.path);
    assert.deepEqual([stage.path.dialling, stage.path.workers], [2, 2]);
    greetAll(sink);
    await until("every message has its outcome", () => stage.outcomes.length === MESSAGES);
    assert.ok(stage.outcomes.every(({ kind }) => kind === "delivered"));
    assert.ok(sink.sockets.length > 2, `${sink.sockets.length} connections`);
  });

  it("makes two connections when all its sessions are lost at once, and loses no message over it", async () => {
    const sink = await startSink();
    const stage = stageFor(sink);
    greetAll(sink);
    push(stage, MESSAGES * 20);
    drive(stage.world, stage.parts, stage.path);
    await until(
      "every message has its outcome",
      () => stage.outcomes.length === MESSAGES * 20 && stage.path.workers === 0,
    );
    assert.ok(stage.path.idle.length > 2, `${stage.path.idle.length} sessions`);
    const before = stage.outcomes.length;
    sink.greets = false;
    // The sessions look usable until they are used: each is lost at its first command.
    for (const socket of sink.sockets) {
      socket.removeAllListeners("data");
      socket.on("data", () => socket.destroy());
    }
    const opened = sink.sockets.length;
    push(stage, MESSAGES);
    drive(stage.world, stage.parts, stage.path);
    await until("two are being made", () => stage.path.dialling === 2 && stage.path.workers === 2);
    await until("the connections are made", () => sink.sockets.length === opened + 2);
    assert.equal(stage.outcomes.length, before);
    greetAll(sink);
    await until("every message has its outcome", () => stage.outcomes.length === before + MESSAGES);
    assert.ok(stage.outcomes.every(({ kind }) => kind === "delivered"));
  });
});
