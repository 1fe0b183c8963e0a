import assert from "node:assert/strict";
import { after, test } from "node:test";
import Fastify from "fastify";
import { until } from "../../test/support/until.ts";
import type { Account } from "../http/http.ts";
import { createClock } from "../platform/clock.ts";
import { createLog } from "../platform/process/log.ts";
import { requireKey } from "./auth.ts";
import { answerError } from "./errors.ts";

const log = createLog({ level: "silent", role: "test" });
const closing: (() => Promise<unknown>)[] = [];
after(() => Promise.all(closing.map((close) => close())));

/** A server behind a proxy at 10.0.0.1. A wrong key waits for an hour once three came of one client, two at once. */
async function serve() {
  const app = Fastify({ trustProxy: "10.0.0.1" });
  const lookUp = async (secret: string) => (secret === "right" ? ({ org_id: "a" } as Account) : null);
  const wrong_keys = { per_s: 1e-9, burst: 3, names_max: 10 };
  const limits = { wrong_keys, wait_ms: 3_600_000, waiting_max: 2 };
  app.setErrorHandler((error, request, reply) => answerError(log, error, request, reply));
  let asked = 0;
  app.addHook("onRequest", async () => {
    asked += 1;
  });
  app.addHook("onRequest", requireKey({ clock: createClock({}) }, lookUp, { limits }));
  app.get("/", async () => "in");
  closing.push(() => app.close());
  const ask = (key: string, remoteAddress: string, more: Record<string, string> = {}, signal?: AbortSignal) =>
    app.inject({
      url: "/",
      remoteAddress,
      headers: { authorization: `Bearer ${key}`, ...more },
      ...(signal && { signal }),
    });
  return { ask, asked: () => asked };
}

test("only wrong keys of the client that sent many wait; a right key from there passes, and so do others", async () => {
  const { ask, asked } = await serve();
  const forwarded = (ip: string) => ({ "x-forwarded-for": ip });
  const end = new AbortController();
  for (let n = 0; n < 3; n += 1) assert.equal((await ask("wrong", "10.0.0.1", forwarded("192.0.2.1"))).statusCode, 401);
  const late = Array.from({ length: 2 }, () => ask("wrong", "10.0.0.1", forwarded("192.0.2.1"), end.signal));
  const ended = Promise.allSettled(late);
  await until("both were asked", () => asked() === 5);
  assert.equal((await ask("right", "10.0.0.1", forwarded("192.0.2.1"))).statusCode, 200);
  assert.equal((await ask("wrong", "10.0.0.1", forwarded("192.0.2.2"))).statusCode, 401, "another client");
  const beyond = await ask("wrong", "10.0.0.1", forwarded("192.0.2.1"));
  assert.deepEqual([beyond.statusCode, beyond.headers.connection], [401, "close"]);
  const race = await Promise.race([late[0], ask("right", "192.0.2.9")]);
  assert.equal(race?.statusCode, 200, "those still wait");
  end.abort();
  await ended;
});
