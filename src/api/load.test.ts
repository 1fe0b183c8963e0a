import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { after, test } from "node:test";
import multipart from "@fastify/multipart";
import Fastify from "fastify";
import { until } from "../../test/support/until.ts";
import type { Account, Api } from "../http/http.ts";
import { createLog } from "../platform/process/log.ts";
import { createMetrics } from "../platform/process/metrics.ts";
import type { Shortage } from "../platform/process/pressure.ts";
import { answerError } from "./errors.ts";
import { limitLoad } from "./load.ts";

const KIB = 1024;
const LIMIT = 10 * 1024 * KIB;
const log = createLog({ level: "silent", role: "test" });
const closing: (() => Promise<unknown>)[] = [];
after(() => Promise.all(closing.map((close) => close())));

type State = { short: Shortage | null; begun: number; late_errors: string[]; gate: PromiseWithResolvers<void> };

/** A server whose routes wait until `answer` is called: `/`, and `/form`, which reads a file in parts only then. */
async function serve(bytesMax: number) {
  const app = Fastify({ bodyLimit: LIMIT, forceCloseConnections: true });
  const metrics = createMetrics();
  const state: State = { short: null, begun: 0, late_errors: [], gate: Promise.withResolvers() };
  app.setErrorHandler((error, request, reply) => answerError(log, error, request, reply));
  app.addHook("onRequest", async (request) => {
    const org_id = request.headers["x-org"];
    if (org_id) request.account = { org_id } as Account;
  });
  limitLoad(app as unknown as Api, { metrics }, { shortage: () => state.short }, bytesMax);
  app.addHook("preParsing", async (_request, _reply, payload) => {
    state.begun += 1;
    return payload;
  });
  app.all("/", async (request) => {
    await state.gate.promise;
    return { bytes: (request.body as { text?: string })?.text?.length ?? 0 };
  });
  app.addContentTypeParser("application/x-late", async (_request: unknown, stream: AsyncIterable<Buffer>) => {
    await state.gate.promise;
    try {
      for await (const _piece of stream);
    } catch (error) {
      state.late_errors.push((error as Error).message);
    }
  });
  app.register(async (scope) => {
    await scope.register(multipart, { throwFileSizeLimit: false, limits: { fileSize: LIMIT } });
    scope.post("/form", async (request) => {
      await state.gate.promise;
      let bytes = 0;
      for await (const part of request.parts()) {
        if (part.type !== "file") continue;
        for await (const piece of part.file) {
          request.holdBytes(piece.length);
          bytes += piece.length;
        }
      }
      return { bytes };
    });
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  closing.push(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  const held = async () => Number(/^postern_body_bytes (\d+)$/m.exec(await metrics.text())?.[1] ?? 0);
  const answer = () => {
    state.gate.resolve();
    state.gate = Promise.withResolvers();
  };
  return { port, state, metrics, held, answer, open: () => state.gate.resolve() };
}

type Answered = { status: number; retry_after: string | null; body: { bytes?: number; code?: string; error?: string } };
type Sent = { chunked?: boolean; org?: string | null; path?: string; type?: string; body?: string };

let organizations = 0;

/** Of an organization of its own, unless one is named; null: without a key. */
async function post(port: number, letters: number, sent: Sent = {}): Promise<Answered> {
  const { chunked = false, path = "/", type = "application/json", body = jsonOf(letters) } = sent;
  organizations += 1;
  const org = sent.org === undefined ? `org-${organizations}` : sent.org;
  const headers = {
    "content-type": type,
    ...(org === null ? {} : { "x-org": org }),
    ...(chunked ? {} : { "content-length": body.length }),
  };
  const request = httpRequest({ port, host: "127.0.0.1", method: "POST", path, headers });
  request.on("error", () => undefined);
  request.end(body);
  const [response] = await once(request, "response");
  let text = "";
  for await (const piece of response) text += piece;
  return { status: response.statusCode, retry_after: response.headers["retry-after"] ?? null, body: JSON.parse(text) };
}

function jsonOf(letters: number): string {
  return JSON.stringify({ text: "x".repeat(letters) });
}

function formOf(letters: number): string {
  const head = 'content-disposition: form-data; name="file"; filename="f"\r\ncontent-type: text/plain\r\n\r\n';
  return `--b\r\n${head}${"x".repeat(letters)}\r\n--b--\r\n`;
}

/** The head of a request and nothing of its body. */
function begin(port: number, path: string, headers: string): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\n${headers}\r\n\r\n`);
  return socket;
}

/** Reads as much as `pattern` needs. */
async function readUntil(socket: Socket, pattern: RegExp): Promise<string> {
  let text = "";
  socket.on("data", (piece) => {
    text += piece;
  });
  return until(
    () => `an answer that has ${pattern}, not ${text}`,
    () => pattern.test(text) && text,
  );
}

test("bodies count until their requests are answered; more than there is room for get 503 with Retry-After", async () => {
  const { port, held, answer, metrics } = await serve(1_000 * KIB);
  const first = post(port, 400 * KIB);
  const second = post(port, 400 * KIB);
  await until("the bodies are counted", async () => (await held()) >= 800 * KIB);
  const refused = await post(port, 300 * KIB);
  assert.deepEqual([refused.status, refused.retry_after, refused.body.code], [503, "1", "unavailable"]);
  assert.match(await metrics.text(), /postern_shed_total\{why="bytes"\} 1/);
  const small = post(port, 10 * KIB);
  await until("the bodies are counted", async () => (await held()) >= 810 * KIB);
  answer();
  assert.deepEqual([(await first).body.bytes, (await second).body.bytes], [400 * KIB, 400 * KIB]);
  assert.equal((await small).body.bytes, 10 * KIB);
  await until("nothing is held any more", async () => (await held()) === 0);
});

test("a body that outgrows the room while it arrives is refused, announced or not", async () => {
  const { port, held, open } = await serve(500 * KIB);
  open();
  assert.equal((await post(port, 600 * KIB)).status, 503);
  assert.equal((await post(port, 600 * KIB, { chunked: true })).status, 503);
  await until("nothing is held any more", async () => (await held()) === 0);
  assert.equal((await post(port, 200 * KIB, { chunked: true })).body.bytes, 200 * KIB);
});

test("what is only announced takes no room: neither many small bodies that never come nor a large form", async () => {
  const { port, held, state, open } = await serve(1_000 * KIB);
  const small = "content-type: application/json\r\ncontent-length: 61440";
  const sockets = Array.from({ length: 40 }, (_none, n) => begin(port, "/", `x-org: silent-${n}\r\n${small}`));
  const form = `content-type: Multipart/Form-Data; boundary=b\r\ncontent-length: ${900 * KIB}`;
  sockets.push(begin(port, "/form", `x-org: form\r\n${form}`));
  await until("all have begun", () => state.begun === 41);
  open();
  assert.equal((await post(port, 200 * KIB)).body.bytes, 200 * KIB);
  sockets[0]?.write("x".repeat(1_000));
  await until("what came is counted", async () => (await held()) === 1_000);
  for (const socket of sockets) socket.destroy();
  await until("nothing is held any more", async () => (await held()) === 0);
});

test("what an organization has no room left for is refused at its announcement, and not read first", async () => {
  const { port, held, answer } = await serve(1_000 * KIB);
  const first = post(port, 400 * KIB, { org: "many" });
  await until("the body is counted", async () => (await held()) >= 400 * KIB);
  const head = `content-type: application/json\r\ncontent-length: ${200 * KIB}`;
  const second = begin(port, "/", `x-org: many\r\n${head}`);
  assert.match(await readUntil(second, /"unavailable"/), /^HTTP\/1\.1 503 .*retry-after: 1\r\n/is);
  const other = begin(port, "/", `x-org: other\r\n${head}`);
  other.write("x".repeat(1_000));
  await until("that of others is read", async () => (await held()) > 400 * KIB + 900);
  for (const socket of [second, other]) socket.destroy();
  answer();
  assert.equal((await first).status, 200);
});

test("what announces more than its route takes is 400 before any of it comes, a form too", async () => {
  const { port, held } = await serve(100_000 * KIB);
  for (const [path, type] of [
    ["/", "application/json"],
    ["/form", "multipart/form-data; boundary=b"],
    ["/", "application/x-late"],
  ] as const) {
    const socket = begin(port, path, `x-org: a\r\ncontent-type: ${type}\r\ncontent-length: ${LIMIT + 1}`);
    const text = await readUntil(socket, /"code"/);
    assert.match(
      text,
      /^HTTP\/1\.1 400 .*"error":"[^"]*: this operation takes at most \d+ (?:bytes|KiB|MiB)","code":"payload_too_large"/s,
    );
    socket.destroy();
  }
  assert.equal(await held(), 0);
});

test("one organization has half of the room, one client without a key a sixteenth; others find theirs", async () => {
  const { port, held, answer, metrics } = await serve(1_000 * KIB);
  const first = post(port, 450 * KIB, { org: "greedy" });
  await until("the body is counted", async () => (await held()) >= 450 * KIB);
  const refused = await post(port, 100 * KIB, { org: "greedy" });
  assert.deepEqual([refused.status, refused.retry_after], [503, "1"]);
  assert.match(refused.body.error ?? "", /^too many of your large requests/);
  assert.equal((await post(port, 100 * KIB, { org: null })).status, 503);
  assert.match(await metrics.text(), /postern_shed_total\{why="share"\} 2/);
  const others = [post(port, 200 * KIB), post(port, 50 * KIB, { org: null })];
  await until("others are counted", async () => (await held()) >= 700 * KIB);
  answer();
  assert.equal((await first).status, 200);
  for (const other of others) assert.equal((await other).status, 200);
  await until("nothing is held any more", async () => (await held()) === 0);
});

test("a form is whole however late its route begins to read, announced or not, and counted then", async () => {
  const { port, held, state, answer, open } = await serve(1_000 * KIB);
  const form = { path: "/form", type: "multipart/form-data; boundary=b", body: formOf(300 * KIB) };
  for (const chunked of [true, false]) {
    const asked = post(port, 0, { ...form, chunked });
    await until("it has begun", () => state.begun > 0);
    // Once more around: what somebody else would read is read by now.
    await post(port, 10, { type: "text/nothing" });
    answer();
    assert.deepEqual([(await asked).status, (await asked).body.bytes], [200, 300 * KIB]);
    state.begun = 0;
  }
  open();
  assert.equal((await post(port, 0, { ...form, body: formOf(600 * KIB) })).status, 503);
  await until("nothing is held any more", async () => (await held()) === 0);
});

test("a client that goes away takes its bytes with it", async () => {
  const { port, held } = await serve(2_000 * KIB);
  const socket = begin(port, "/", `x-org: a\r\ncontent-type: application/json\r\ncontent-length: ${900 * KIB}`);
  socket.write("x".repeat(700 * KIB));
  await until("the bodies are counted", async () => (await held()) >= 700 * KIB);
  socket.destroy();
  await until("nothing is held any more", async () => (await held()) === 0);
});

test("a client that goes away before its body is read is noticed by who reads, and by nobody else", async () => {
  const { port, held, state, open } = await serve(2_000 * KIB);
  const socket = begin(port, "/", `x-org: a\r\ncontent-type: application/x-late\r\ncontent-length: ${90 * KIB}`);
  socket.write("x".repeat(10 * KIB));
  await until("it is counted", async () => (await held()) === 10 * KIB);
  socket.destroy();
  await until("it is noticed", async () => (await held()) === 0);
  open();
  await until("the reader gets the error", () => state.late_errors.length === 1);
});

test("behind a body that nobody reads the connection goes on", async () => {
  const { port, open } = await serve(2_000 * KIB);
  open();
  const unread = "x".repeat(300 * KIB);
  const head = `x-org: a\r\ncontent-length: ${unread.length}`;
  for (const [method, status] of [
    ["GET", 200],
    ["POST", 400],
  ] as const) {
    const socket = connect(port, "127.0.0.1");
    socket.write(`${method} / HTTP/1.1\r\nhost: x\r\ncontent-type: text/nothing\r\n${head}\r\n\r\n${unread}`);
    socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    const text = await readUntil(socket, /HTTP\/1\.1 \d+.*HTTP\/1\.1 200/s);
    assert.ok(text.startsWith(`HTTP/1.1 ${status} `), text);
    socket.destroy();
  }
});

test("while the disk or the memory is short, changes are refused for now and reading goes on", async () => {
  const { port, state, open } = await serve(1_000 * KIB);
  open();
  for (const [short, wait] of [
    ["disk", "30"],
    ["memory", "5"],
  ] as const) {
    state.short = short;
    const refused = await post(port, 10);
    assert.deepEqual([refused.status, refused.retry_after], [503, wait]);
    assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200);
  }
  state.short = null;
  assert.equal((await post(port, 10)).status, 200);
});
