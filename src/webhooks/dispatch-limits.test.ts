import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { until } from "../../test/support/until.ts";
import * as queue from "./queue-queries.ts";
import {
  addWebhook,
  deliveries,
  outgoing,
  produce,
  requests,
  type Stage,
  setStage,
  settled,
} from "./receiver.fixture.ts";

let stage: Stage;

before(async () => {
  stage = await setStage();
});
after(() => stage.close());
afterEach(async () => {
  for (const { id } of (await stage.api.ask("GET", "/v1/webhooks?limit=100")).body.webhooks) {
    await stage.api.ask("DELETE", `/v1/webhooks/${id}`);
  }
});

function events(count: number) {
  return Array.from({ length: count }, () => outgoing(stage.api));
}

test("a receiver that does not answer in time fails the attempt with that reason", async () => {
  const hooks = await stage.hooks({ attempt_timeout_ms: 300 });
  const sink = await stage.receiver();
  sink.respond(() => ({ status: 200, delay_ms: 20_000 }));
  const { id } = await addWebhook(stage.api, sink.url);
  await produce(stage.api, events(1));
  const [row] = await until("the attempt ended", async () => {
    const rows = await deliveries(stage.api, `&endpoint_id=${id}`);
    return rows[0]?.attempt === 1 ? rows : null;
  });
  assert.deepEqual([row?.status, row?.status_code], ["retrying", null]);
  assert.match(String(row?.error), /^timeout: no complete answer within 300 ms/);
  assert.ok(Number(row?.duration_ms) >= 290 && Number(row?.duration_ms) < 10_000, String(row?.duration_ms));
  await hooks.stop();
});

test("dead and slow receivers get four attempts at once each and hold nobody up", async () => {
  const hooks = await stage.hooks({ attempt_timeout_ms: 60_000 });
  const slow = await stage.receiver();
  slow.respond(() => ({ status: 200, delay_ms: 60_000 }));
  const live = await stage.receiver();
  const other = await stage.api.organization();
  const slowHook = await addWebhook(stage.api, slow.url);
  const sameOrg = await addWebhook(stage.api, `${live.url}/same`);
  const otherOrg = await addWebhook(stage.api, `${live.url}/other`, {}, { key: other.live_key });
  await produce(
    stage.api,
    events(300).map((event) => ({ ...event, endpoint_ids: [slowHook.id] })),
  );
  await requests(slow, 4);
  await produce(stage.api, [
    ...events(50).map((event) => ({ ...event, endpoint_ids: [sameOrg.id] })),
    ...events(50).map((event) => ({ ...event, org_id: other.org_id, endpoint_ids: [otherOrg.id] })),
  ]);
  await requests(live, 100);
  // None of the four has been answered yet.
  assert.equal(slow.requests.length, 4);
  await stage.api.ask("DELETE", `/v1/webhooks/${slowHook.id}`);
  await slow.stop();
  await hooks.stop();
});

test("two dispatchers share the work and send nothing twice", async () => {
  const sink = await stage.receiver();
  const ids: string[] = [];
  for (let index = 0; index < 8; index += 1) ids.push((await addWebhook(stage.api, `${sink.url}/${index}`)).id);
  const pair = [await stage.hooks(), await stage.hooks()];
  const sent = events(150);
  await Promise.all([produce(stage.api, sent.slice(0, 75)), produce(stage.api, sent.slice(75))]);
  await requests(sink, 1_200);
  for (const id of ids) {
    await until(`endpoint ${id}`, async () => {
      const { body } = await stage.api.ask("GET", `/v1/webhook-deliveries?endpoint_id=${id}&status=delivered`);
      return body.total === 150 || null;
    });
  }
  for (const hooks of pair) await hooks.stop();
  const keys = sink.requests.map(({ path, headers }) => `${path} ${headers["x-service-event-id"]}`);
  assert.equal(keys.length, 1_200);
  assert.equal(new Set(keys).size, 1_200);
});

test("what a dead process had claimed is attempted again once its lease is over, and its late outcome counts for nothing", async () => {
  const { world, org_id } = stage.api;
  const sink = await stage.receiver();
  const { id: webhook_id } = await addWebhook(stage.api, sink.url);
  await produce(stage.api, events(1));
  const claim = { id: world.random.uuid(), at: new Date(world.clock.now()), lease_s: 3 };
  const [row] = await queue.claimDeliveries(world.db, [{ org_id, webhook_id, rows: 5 }], claim);
  assert.ok(row);
  const hooks = await stage.hooks();
  await wait(700);
  assert.equal(sink.requests.length, 0, "a claimed delivery belongs to its claimer");
  await requests(sink, 1);
  await settled(stage.api, "delivered", 1, `&endpoint_id=${webhook_id}`);
  const late = {
    attempt_id: world.random.uuid(),
    status_code: 500,
    error: "late",
    duration_ms: 1,
    tried: true,
    gone: false,
  };
  const at = new Date(world.clock.now());
  const touched = await world.db.transaction(async (tx) => [
    await queue.finishDeliveries(tx, [{ ...late, row, status: "failed", at, next_attempt_at: null }]),
    await queue.retryDeliveries(tx, [{ ...late, row, status: "retrying", at, next_attempt_at: at }]),
  ]);
  assert.deepEqual(touched, [0, 0]);
  await settled(stage.api, "delivered", 1, `&endpoint_id=${webhook_id}`);
  await hooks.stop();
});

test("a dispatcher that stops finishes what is under way and gives the rest back untouched", async () => {
  const sink = await stage.receiver();
  sink.respond(() => ({ status: 200, delay_ms: 400 }));
  const { id } = await addWebhook(stage.api, sink.url);
  const first = await stage.hooks();
  await produce(stage.api, events(20));
  await requests(sink, 4);
  await first.stop();
  const sent = sink.requests.length;
  const [held] = await stage.api.world.db.query<{ total: number }>(
    "select count(*) as total from webhook_queue where org_id = $1 and claim_id is not null",
    [stage.api.org_id],
  );
  assert.equal(held?.total, 0);
  const rows = await deliveries(stage.api, `&endpoint_id=${id}`);
  assert.equal(rows.filter((row) => row.status === "delivered").length, sent);
  assert.equal(rows.filter((row) => row.status === "pending").length, 20 - sent);
  sink.respond(() => ({ status: 200 }));
  const second = await stage.hooks();
  await requests(sink, 20);
  await settled(stage.api, "delivered", 20, `&endpoint_id=${id}`);
  await second.stop();
  assert.equal(new Set(sink.requests.map(({ headers }) => headers["x-service-event-id"])).size, 20);
});

test("a hint from another process arrives through the database", async () => {
  const hooks = await stage.hooks({ poll_ms: 60_000 });
  const sink = await stage.receiver();
  await addWebhook(stage.api, sink.url);
  // Without the in-process hint, as another process would.
  const { enqueueWebhooks } = await import("./webhooks.ts");
  await stage.api.world.db.transaction((tx) => enqueueWebhooks(tx, stage.api.world, events(1)));
  await stage.api.world.db.query("select pg_notify('postern_hooks', '')");
  await requests(sink, 1);
  await hooks.stop();
});

test("a large body arrives whole, and the same event is stored once for all endpoints", async () => {
  const sink = await stage.receiver();
  await addWebhook(stage.api, `${sink.url}/1`);
  await addWebhook(stage.api, `${sink.url}/2`);
  const hooks = await stage.hooks();
  const event = outgoing(stage.api);
  event.payload = { ...event.payload, text: "ä\u2028\u0000\ud800".repeat(300_000) };
  await produce(stage.api, [event]);
  const [a, b] = await requests(sink, 2);
  assert.ok(a && b && a.body.length > 1_500_000);
  assert.deepEqual(a.body, b.body);
  assert.equal(JSON.parse(a.body.toString("utf8")).text, event.payload.text);
  const [stored] = await stage.api.world.db.query<{ total: number }>(
    "select count(*) as total from webhook_event where org_id = $1 and id = $2",
    [stage.api.org_id, event.event_id],
  );
  assert.equal(stored?.total, 1);
  await hooks.stop();
});

test("a producer's transaction that fails leaves no delivery, and one that waits cannot be slept past", async () => {
  const { world } = stage.api;
  const sink = await stage.receiver();
  await addWebhook(stage.api, sink.url);
  const hooks = await stage.hooks();
  const { enqueueWebhooks } = await import("./webhooks.ts");
  const failing = world.db.transaction(async (tx) => {
    await enqueueWebhooks(tx, world, events(3));
    throw new Error("the outcome could not be recorded");
  });
  await assert.rejects(failing, /could not be recorded/);
  await produce(stage.api, events(1));
  await requests(sink, 1);
  // The lane is awake now. A transaction stays open past the moment when the dispatcher would send it to sleep.
  await world.db.transaction(async (tx) => {
    await enqueueWebhooks(tx, world, events(1));
    await wait(2_600);
  });
  await requests(sink, 2);
  assert.equal(sink.requests.length, 2);
  await hooks.stop();
});
