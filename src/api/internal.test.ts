import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { testConfig } from "../../test/support/api.ts";
import { ownsNamed } from "../cells/owns.ts";
import { createClock } from "../platform/clock.ts";
import { createMoves } from "../platform/moves.ts";
import { createLog } from "../platform/process/log.ts";
import { createMetrics } from "../platform/process/metrics.ts";
import { createSeal } from "../platform/storage/seal.ts";
import type { World } from "../platform/world.ts";
import { type InternalServer, startInternalServer } from "./internal.ts";

let server: InternalServer;
let ask: () => Promise<unknown[]>;
const moves = createMoves();

before(async () => {
  const world = {
    config: testConfig({ POSTERN_INTERNAL: "127.0.0.1:0" }),
    log: createLog({ level: "silent", role: "test" }),
    metrics: createMetrics(),
    held: () => null,
    db: { query: () => ask() } as unknown as World["db"],
    moves,
    seal: createSeal(Buffer.alloc(32, 7)),
    clock: createClock({}),
  };
  server = await startInternalServer(world, { sends: true, answer_ms: 50, owns: ownsNamed(world) });
});
after(() => server.stop());

async function get(path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(server.address + path);
  return { status: response.status, text: await response.text() };
}

const up = async () => /^postern_database_up (\d)$/m.exec((await get("/metrics")).text)?.[1];

describe("the internal listener", () => {
  it("says ready only once the process is, while its database answers, and never again once it stops", async () => {
    ask = async () => [];
    assert.equal((await get("/readyz")).status, 503);
    server.ready();
    assert.deepEqual([(await get("/readyz")).status, await up()], [200, "1"]);
    ask = () => Promise.reject(new Error("away"));
    assert.deepEqual([(await get("/readyz")).status, await up()], [503, "0"]);
    ask = async () => [];
    server.unready();
    assert.deepEqual([(await get("/readyz")).status, await up()], [503, "1"]);
    server.ready();
  });

  it("says that sending is paused, why and what to do: a process that sends is not ready, its doors are", async () => {
    const since = new Date("2026-11-24T02:00:00Z");
    ask = async () => [{ paused_at: since, reason: "a copy" }];
    const { status, text } = await get("/readyz");
    assert.equal(status, 503);
    const reported = { sending: "paused", since: since.toISOString(), reason: "a copy" };
    const remedy = "postern resume, once the queue was looked at";
    assert.deepEqual(JSON.parse(text), { status: "not ready", ...reported, remedy });
    const doors = await get("/readyz/doors");
    assert.deepEqual([doors.status, JSON.parse(doors.text)], [200, { status: "ready", ...reported, remedy }]);
    ask = () => Promise.reject(new Error("away"));
    assert.equal((await get("/readyz/doors")).status, 503);
  });

  it("says what is this Postern's own, and never no while it cannot know", async () => {
    const owns = async (search: string) => {
      const { status, text } = await get(`/owns?${search}`);
      return [status, JSON.parse(text).owns];
    };
    ask = async () => [];
    assert.deepEqual(await owns("domain=customer.example"), [200, false]);
    assert.deepEqual(await owns(`key_digest=${"0".repeat(64)}`), [200, false]);
    assert.deepEqual(await owns("host=postern.test"), [200, true]);
    assert.deepEqual(await owns("domain=BOUNCES.postern.test"), [200, true]);
    assert.deepEqual(await owns("host=customer.example"), [200, false]);
    ask = async () => [{ org_id: "x" }];
    assert.deepEqual(await owns("domain=customer.example"), [200, true]);
    assert.deepEqual(await owns(`key_digest=${"0".repeat(64)}`), [200, true]);
    moves.know(["x"]);
    assert.deepEqual(JSON.parse((await get("/owns?domain=customer.example")).text), { owns: true, moving: true });
    moves.know([]);
    ask = () => Promise.reject(new Error("away"));
    assert.deepEqual(await owns("domain=customer.example"), [503, undefined]);
    for (const search of ["", "key_digest=svc_live_x", "name=customer.example"]) {
      assert.deepEqual(await owns(search), [400, undefined], search);
    }
  });

  it("answers for a database that stands still, too: it is not up", async () => {
    ask = () => new Promise(() => undefined);
    assert.deepEqual([(await get("/readyz")).status, await up()], [503, "0"]);
    assert.equal((await get("/healthz")).status, 200);
  });
});
