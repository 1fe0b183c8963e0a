import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { after, test } from "node:test";
import Fastify from "fastify";
import { until } from "../../test/support/until.ts";
import type { Api } from "../platform/http.ts";
import { createLog } from "../platform/log.ts";
import { createMetrics } from "../platform/metrics.ts";
import type { Shortage } from "../platform/pressure.ts";
import { answerError } from "./errors.ts";
import { limitLoad } from "./load.ts";

const KIB = 1024;
const log = createLog({ level: "silent", role: "test" });
const closing: (() => Promise<unknown>)[] = [];
after(() => Promise.all(closing.map((close) => close())));

/** A server whose one route waits until `answer` is called. */
async function serve(bytesMax: number) {
  const app = Fastify({ bodyLimit: 10 * 1024 * KIB });
  const metrics = createMetrics();
  const state: { short: Shortage | null } = { short: null };
  let gate = Promise.withResolvers<void>();
  app.setErrorHandler((error, request, reply) => answerError(log, error, request, reply));
  limitLoad(app as unknown as Api, { metrics }, { shortage: () => state.short }, bytesMax);
  app.all("/", async (request) => {
    await gate.promise;
    return { bytes: (request.body as { text?: string })?.text?.length ?? 0 };
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  closing.push(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  const held = async () => Number(/^postern_body_bytes (\d+)$/m.exec(await metrics.text())?.[1] ?? 0);
  const answer = () => {
    gate.resolve();
    gate = Promise.withResolvers();
  };
  return { port, state, metrics, held, answer, open: () => gate.resolve() };
}

type Answered = { status: number; retry_after: string | null; body: { bytes?: number; code?: string } };

async function post(port: number, letters: number, chunked = false): Promise<Answered> {
  const body = JSON.stringify({ text: "x".repeat(letters) });
  const headers = { "content-type": "application/json", ...(chunked ? {} : { "content-length": body.length }) };
  const request = httpRequest({ port, host: "127.0.0.1", method: "POST", path: "/", headers });
  request.on("error", () => undefined);
  request.end(body);
  const [response] = await once(request, "response");
  let text = "";
  for await (const piece of response) text += piece;
  return { status: response.statusCode, retry_after: response.headers["retry-after"] ?? null, body: JSON.parse(text) };
}

test("bodies count until their requests are answered; more than there is room for get 503 with Retry-After", async () => {
  const { port, held, answer, metrics } = await serve(1_000 * KIB);
  const first = post(port, 800 * KIB);
  await until("the bodies are counted", async () => (await held()) >= 800 * KIB);
  const refused = await post(port, 300 * KIB);
  assert.deepEqual([refused.status, refused.retry_after, refused.body.code], [503, "1", "unavailable"]);
  assert.match(await metrics.text(), /postern_shed_total\{why="bytes"\} 1/);
  const small = post(port, 10 * KIB);
  await until("the bodies are counted", async () => (await held()) >= 810 * KIB);
  answer();
  assert.deepEqual([(await first).body.bytes, (await small).body.bytes], [800 * KIB, 10 * KIB]);
  await until("nothing is held any more", async () => (await held()) === 0);
});

test("a body that outgrows the room while it arrives is refused, announced or not", async () => {
  const { port, held, open } = await serve(500 * KIB);
  open();
  assert.equal((await post(port, 600 * KIB)).status, 503);
  assert.equal((await post(port, 600 * KIB, true)).status, 503);
  await until("nothing is held any more", async () => (await held()) === 0);
  assert.equal((await post(port, 400 * KIB, true)).body.bytes, 400 * KIB);
});

test("a client that goes away takes its bytes with it", async () => {
  const { port, held } = await serve(1_000 * KIB);
  const socket = connect(port, "127.0.0.1");
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${900 * KIB}\r\n\r\n`);
  socket.write("x".repeat(700 * KIB));
  await until("the bodies are counted", async () => (await held()) >= 700 * KIB);
  socket.destroy();
  await until("nothing is held any more", async () => (await held()) === 0);
});

test("while the disk or the memory is short, changes are put off and reading goes on", async () => {
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
