import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "../../test/support/until.ts";
import type { WebhookSink } from "../../test/support/webhook-sink.ts";
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
import { EVENT_TYPES } from "./types.ts";

let stage: Stage;
let sink: WebhookSink;
let other: { org_id: string; live_key: string };
const NOWHERE = "01900000-0000-7000-8000-000000000000";
const FIELDS = [
  ...["id", "endpoint_id", "event_id", "event", "attempt", "status", "status_code", "error", "duration_ms"],
  ...["attempt_id", "created_at", "next_attempt_at"],
];

before(async () => {
  stage = await setStage();
  await stage.hooks({ poll_ms: 50 });
  sink = await stage.receiver();
  other = await stage.api.organization();
});
after(() => stage.close());

/** An endpoint whose deliveries are in every status: 2 delivered, 1 failed, 1 retrying, 1 pending. */
async function endpointWithHistory() {
  const { api } = stage;
  const { id } = await addWebhook(api, `${sink.url}/history`, { events: [...EVENT_TYPES] });
  const list = () => deliveries(api, `&endpoint_id=${id}`);
  const one = async (event: "email.delivered" | "email.bounced") => {
    const made = outgoing(api, { event, endpoint_ids: [id] });
    await produce(api, [made]);
    return made.event_id;
  };
  sink.respond(() => ({ status: 200 }));
  await one("email.delivered");
  await one("email.bounced");
  await settled(api, "delivered", 2, `&endpoint_id=${id}`);
  sink.respond(() => ({ status: 503 }));
  const failed = await one("email.delivered");
  await until("it failed once", async () => (await list()).some((row) => row.status === "retrying") || null);
  await makeLastAttemptDue(id);
  await until("it failed", async () => (await list()).some((row) => row.status === "failed") || null);
  const retrying = await one("email.delivered");
  await until("the next failed once", async () => (await list()).some((row) => row.status === "retrying") || null);
  await api.world.db.execute(
    `insert into webhook_queue (org_id, id, webhook_id, event_id, event, body_bytes, created_at, next_attempt_at)
     select org_id, $2, webhook_id, event_id, event, 1, $3::timestamptz, $3::timestamptz + interval '1 day'
       from webhook_delivery where webhook_id = $1 and event = 'email.delivered' limit 1`,
    [id, api.world.random.uuid(), new Date(api.world.clock.now())],
  );
  sink.respond(() => ({ status: 200 }));
  return { id, failed, retrying };
}

/** The next attempt of what the endpoint has queued is its seventh, and due. */
async function makeLastAttemptDue(id: string): Promise<void> {
  const { db, clock } = stage.api.world;
  const now = new Date(clock.now());
  await db.execute("update webhook_queue set attempt = 6, next_attempt_at = $2 where webhook_id = $1", [id, now]);
  await db.execute("update webhook_lane set next_at = $2 where webhook_id = $1", [id, now]);
}

test("the log lists every delivery newest first, with all fields, filters, pages and an exact total", async () => {
  const { api } = stage;
  const { id, failed, retrying } = await endpointWithHistory();
  const all = await api.ask("GET", `/v1/webhook-deliveries?endpoint_id=${id}`);
  assert.equal(all.status, 200, JSON.stringify(all.body));
  assert.deepEqual(Object.keys(all.body).sort(), ["deliveries", "limit", "offset", "total", "warnings"]);
  assert.deepEqual([all.body.total, all.body.limit, all.body.offset], [5, 50, 0]);
  const rows = all.body.deliveries;
  for (const row of rows) assert.deepEqual(Object.keys(row).sort(), [...FIELDS].sort());
  assert.deepEqual(
    rows.map((row: { status: string }) => row.status),
    ["pending", "retrying", "failed", "delivered", "delivered"],
  );
  assert.deepEqual(
    rows.map((row: { attempt: number }) => row.attempt),
    [0, 1, 7, 1, 1],
  );
  assert.equal(rows[1].event_id, retrying);
  assert.equal(rows[2].event_id, failed);
  assert.deepEqual([rows[2].status_code, rows[2].error], [503, "the receiver answered 503"]);
  const ids = rows.map((row: { id: string }) => row.id);
  assert.deepEqual(ids, [...ids].sort().reverse());

  const totals = { pending: 1, retrying: 1, failed: 1, delivered: 2 };
  for (const [status, total] of Object.entries(totals)) {
    const some = await api.ask("GET", `/v1/webhook-deliveries?endpoint_id=${id}&status=${status}`);
    assert.equal(some.body.total, total, status);
    assert.ok(some.body.deliveries.every((row: { status: string }) => row.status === status));
  }
  const bounced = await api.ask("GET", `/v1/webhook-deliveries?endpoint_id=${id}&event=email.bounced`);
  assert.deepEqual([bounced.body.total, bounced.body.deliveries[0].event], [1, "email.bounced"]);
  const of = async (list: string) => (await api.ask("GET", `/v1/webhook-deliveries?event_ids=${list}`)).body;
  assert.deepEqual([(await of(retrying)).total, (await of(`${retrying},${failed}`)).total], [1, 2]);
  assert.deepEqual([(await of(failed)).deliveries[0].event_id, (await of(api.org_id)).total], [failed, 0]);
  const stranger = { key: (await api.organization()).live_key };
  const theirs = await api.ask("GET", `/v1/webhook-deliveries?event_ids=${failed}`, undefined, stranger);
  assert.equal(theirs.body.total, 0);
  const page = await api.ask("GET", `/v1/webhook-deliveries?endpoint_id=${id}&limit=2&offset=3`);
  assert.deepEqual(
    page.body.deliveries.map((row: { id: string }) => row.id),
    ids.slice(3),
  );
  assert.equal(page.body.total, 5);
});

test("days bounds the list, and what is older than the retention draws a warning", async () => {
  const { api } = stage;
  const { id } = await addWebhook(api, `${sink.url}/days`);
  await produce(api, [outgoing(api, { endpoint_ids: [id] })]);
  await settled(api, "delivered", 1, `&endpoint_id=${id}`);
  try {
    await stage.moveClock(3 * 86_400);
    const count = async (query: string) =>
      (await api.ask("GET", `/v1/webhook-deliveries?endpoint_id=${id}${query}`)).body.total;
    assert.equal(await count("&days=2"), 0);
    assert.equal(await count("&days=4"), 1);
    assert.equal(await count(""), 1, "7 days unless asked otherwise");
  } finally {
    await stage.moveClock(0);
  }
  for (const query of [
    "days=0",
    "days=91",
    "status=sent",
    "endpoint_id=x",
    "event=email.opened",
    "limit=101",
    "x=1",
    "event_ids=x",
    "event_ids=",
  ]) {
    const answer = await api.ask("GET", `/v1/webhook-deliveries?${query}`);
    assert.deepEqual([answer.status, answer.body.code], [400, "validation_error"], query);
  }
});

test("warnings name endpoints that fail again and again or are disabled", async () => {
  const { api } = stage;
  const { live_key: key } = await api.organization();
  const { id } = await addWebhook(api, sink.url, {}, { key });
  const warnings = async () => (await api.ask("GET", "/v1/webhook-deliveries", undefined, { key })).body.warnings;
  assert.deepEqual(await warnings(), []);
  await api.world.db.execute("update webhook_lane set consecutive_failures = 5 where webhook_id = $1", [id]);
  assert.deepEqual(await warnings(), [`endpoint ${id} failed 5 times in a row`]);
  await api.ask("PUT", `/v1/webhooks/${id}`, { enabled: false }, { key });
  assert.match((await warnings())[0], /is disabled/);
});

test("a failed delivery is replayed with the same event id and body, a new delivery id and attempt 1", async () => {
  const { api } = stage;
  const { failed, id } = await endpointWithHistory();
  const [row] = await deliveries(api, `&endpoint_id=${id}&status=failed`);
  const before = sink.requests.filter(({ headers }) => headers["x-service-event-id"] === failed);
  const replayed = await api.ask("POST", `/v1/webhook-deliveries/${row?.id}/replay`);
  assert.equal(replayed.status, 202, JSON.stringify(replayed.body));
  assert.deepEqual(Object.keys(replayed.body.delivery).sort(), [...FIELDS].sort());
  const { id: newId, event_id, attempt, status } = replayed.body.delivery;
  assert.notEqual(newId, row?.id);
  assert.deepEqual([event_id, attempt, status], [failed, 0, "pending"]);
  const again = await requests(sink, before.length + 1, ({ headers }) => headers["x-service-event-id"] === failed);
  assert.equal(again.at(-1)?.headers["x-service-attempt"], "1");
  assert.deepEqual(again.at(-1)?.body, before[0]?.body);
  const after = await until("it is delivered", async () => {
    const rows = await deliveries(api, `&endpoint_id=${id}&status=delivered`);
    return rows.find((delivery) => delivery.id === newId) ?? null;
  });
  assert.equal(after.attempt, 1);
  const [old] = await deliveries(api, `&endpoint_id=${id}&status=failed`);
  assert.equal(old?.id, row?.id, "history stays as it was");
});

test("a delivered one can be replayed too; one that waits for its retry is sent now and keeps its count", async () => {
  const { api } = stage;
  const { id, retrying } = await endpointWithHistory();
  const [done] = await deliveries(api, `&endpoint_id=${id}&status=delivered`);
  assert.equal((await api.ask("POST", `/v1/webhook-deliveries/${done?.id}/replay`, {})).status, 202);
  const [waiting] = await deliveries(api, `&endpoint_id=${id}&status=retrying`);
  const hastened = await api.ask("POST", `/v1/webhook-deliveries/${waiting?.id}/replay`);
  assert.deepEqual([hastened.status, hastened.body.delivery.id], [202, waiting?.id]);
  const row = await until("it is delivered", async () => {
    const rows = await deliveries(api, `&endpoint_id=${id}&status=delivered`);
    return rows.find(({ event_id }) => event_id === retrying) ?? null;
  });
  assert.deepEqual([row.id, row.attempt], [waiting?.id, 2]);
});

test("a replay for a disabled or deleted endpoint is 409, for an unknown delivery 404", async () => {
  const { api } = stage;
  const { id } = await addWebhook(api, `${sink.url}/closed`);
  await produce(api, [outgoing(api, { endpoint_ids: [id] })]);
  const [row] = await settled(api, "delivered", 1, `&endpoint_id=${id}`);
  const path = `/v1/webhook-deliveries/${row?.id}/replay`;
  await api.ask("PUT", `/v1/webhooks/${id}`, { enabled: false });
  const range = { from: "2026-01-01T00:00:00Z", status: "delivered" };
  for (const refused of [await api.ask("POST", path), await api.ask("POST", `/v1/webhooks/${id}/replay`, range)]) {
    assert.deepEqual([refused.status, refused.body.code], [409, "invalid_state"]);
  }
  await api.ask("DELETE", `/v1/webhooks/${id}`);
  const deleted = await api.ask("POST", path);
  assert.deepEqual([deleted.status, deleted.body.code], [409, "invalid_state"]);
  for (const unknown of [NOWHERE, "x"]) {
    assert.equal((await api.ask("POST", `/v1/webhook-deliveries/${unknown}/replay`)).status, 404);
  }
  assert.equal((await api.ask("POST", path, { now: true })).status, 400);
});

test("another organization neither sees nor replays the deliveries", async () => {
  const { api } = stage;
  const { id } = await addWebhook(api, `${sink.url}/mine`);
  await produce(api, [outgoing(api, { endpoint_ids: [id] })]);
  const [row] = await settled(api, "delivered", 1, `&endpoint_id=${id}`);
  const as = { key: other.live_key };
  assert.equal((await api.ask("GET", "/v1/webhook-deliveries", undefined, as)).body.total, 0);
  assert.equal((await api.ask("GET", `/v1/webhook-deliveries?endpoint_id=${id}`, undefined, as)).body.total, 0);
  assert.equal((await api.ask("POST", `/v1/webhook-deliveries/${row?.id}/replay`, undefined, as)).status, 404);
});

test("a range replays what failed in it, each once, and says how many there are left", async () => {
  const { api } = stage;
  const { world } = api;
  const { id } = await addWebhook(api, `${sink.url}/range`);
  sink.respond(({ path }) => ({ status: path === "/range" ? 500 : 200 }));
  const made = Array.from({ length: 5 }, () => outgoing(api, { endpoint_ids: [id] }));
  await produce(api, made);
  await until("all failed once", async () => {
    const rows = await deliveries(api, `&endpoint_id=${id}`);
    return (rows.length === 5 && rows.every((row) => row.attempt === 1)) || null;
  });
  await makeLastAttemptDue(id);
  await settled(api, "failed", 5, `&endpoint_id=${id}`);
  sink.respond(() => ({ status: 200 }));
  const replay = (body: object) => api.ask("POST", `/v1/webhooks/${id}/replay`, body);
  const early = await replay({ from: "2020-01-01T00:00:00Z", to: "2020-01-02T00:00:00Z" });
  assert.deepEqual([early.status, early.body], [202, { replayed: 0, remaining: 0 }]);
  const delivered = await replay({ from: "2020-01-01T00:00:00Z", status: "delivered" });
  assert.equal(delivered.body.replayed, 0);
  const from = new Date(world.clock.now() - 60_000).toISOString();
  assert.deepEqual((await replay({ from })).body, { replayed: 5, remaining: 0 });
  await settled(api, "delivered", 5, `&endpoint_id=${id}&status=delivered`);
  assert.deepEqual((await replay({ from })).body, { replayed: 0, remaining: 0 }, "each is taken once");
  const events = new Set((await deliveries(api, `&endpoint_id=${id}`)).map((row) => row.event_id));
  assert.equal(events.size, 5, "replays keep the event's id");
});

test("a range needs a start before its end, and known words", async () => {
  const { api } = stage;
  const { id } = await addWebhook(api, sink.url);
  const replay = (body: object) => api.ask("POST", `/v1/webhooks/${id}/replay`, body);
  const bad: Array<[body: object, field: string]> = [
    [{}, "from"],
    [{ from: "yesterday" }, "from"],
    [{ from: "2026-01-02T00:00:00Z", to: "2026-01-01T00:00:00Z" }, "from"],
    [{ from: "2999-01-01T00:00:00Z" }, "from"],
    [{ from: "2026-01-02T00:00:00Z", to: 7 }, "to"],
    [{ from: "2026-01-02T00:00:00Z", status: "pending" }, "status"],
    [{ from: "2026-01-02T00:00:00Z", days: 1 }, "days"],
  ];
  for (const [body, field] of bad) {
    const answer = await replay(body);
    assert.deepEqual([answer.status, answer.body.field], [400, field], JSON.stringify(body));
  }
});

test("a test sends a signed sample of any event now, and answers with the outcome", async () => {
  const { api } = stage;
  const { id } = await addWebhook(api, `${sink.url}/test`, { events: ["email.bounced"] });
  for (const [body, event] of [
    [undefined, "email.bounced"],
    [{}, "email.bounced"],
    ...EVENT_TYPES.map((type) => [{ event: type }, type] as const),
  ] as const) {
    const tested = await api.ask("POST", `/v1/webhooks/${id}/test`, body);
    assert.equal(tested.status, 200, JSON.stringify(tested.body));
    const { delivery } = tested.body;
    assert.deepEqual(Object.keys(delivery).sort(), [...FIELDS].sort());
    assert.deepEqual(
      [delivery.status, delivery.status_code, delivery.event, delivery.attempt],
      ["delivered", 200, event, 1],
    );
    const request = sink.requests.at(-1);
    assert.equal(request?.headers["x-service-delivery-id"], delivery.attempt_id);
    assert.match(String(request?.headers["x-service-signature"]), /^t=\d+,v1=/);
    const sent = JSON.parse(String(request?.body));
    assert.deepEqual([sent.event, sent.event_id, sent.environment], [event, delivery.event_id, "test"]);
    for (const field of ["timestamp", "email_id", "message_id"]) assert.equal(typeof sent[field], "string", field);
    assert.doesNotMatch(
      sent.diag_message ?? "",
      /^\d/,
      "as in events of real answers, the codes have fields of their own",
    );
    const listed = await deliveries(api, `&endpoint_id=${id}`);
    assert.deepEqual(listed[0], delivery);
  }
});

test("a test of a failing or disabled endpoint says so and changes nothing of it", async () => {
  const { api } = stage;
  const { id } = await addWebhook(api, `${sink.url}/failing`);
  await api.ask("PUT", `/v1/webhooks/${id}`, { enabled: false });
  const before = (await api.ask("GET", `/v1/webhooks/${id}`)).body;
  for (const status of [500, 410]) {
    sink.respond(() => ({ status }));
    const tested = await api.ask("POST", `/v1/webhooks/${id}/test`, {});
    assert.deepEqual(
      [tested.status, tested.body.delivery.status, tested.body.delivery.status_code],
      [200, "failed", status],
    );
  }
  sink.respond(() => ({ status: 200 }));
  assert.deepEqual((await api.ask("GET", `/v1/webhooks/${id}`)).body, before);
  assert.equal((await api.ask("POST", `/v1/webhooks/${id}/test`, { event: "email.opened" })).status, 400);
});

test("two tests of one endpoint at the same time: the second is 409", async () => {
  const { api } = stage;
  const { id } = await addWebhook(api, `${sink.url}/twice`);
  sink.respond(() => ({ status: 200, delay_ms: 300 }));
  const answers = await Promise.all([1, 2].map(() => api.ask("POST", `/v1/webhooks/${id}/test`, {})));
  sink.respond(() => ({ status: 200 }));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
});

test("an organization's tests leave room for others', however long its endpoints take", async () => {
  const { api } = stage;
  const other = await api.organization();
  const ids = await Promise.all(Array.from({ length: 51 }, async () => (await addWebhook(api, `${sink.url}/slow`)).id));
  const free = Promise.withResolvers<void>();
  sink.respond(({ path }) => ({ status: 200, until: path === "/slow" ? free.promise : undefined }));
  const refused = Promise.withResolvers<number>();
  const slow = ids.map(async (id) => {
    const { status } = await api.ask("POST", `/v1/webhooks/${id}/test`);
    if (status !== 200) refused.resolve(status);
    return status;
  });
  assert.equal(await refused.promise, 503);
  const created = await api.ask("POST", "/v1/webhooks", { url: `${sink.url}/fast` }, { key: other.live_key });
  const tested = await api.ask("POST", `/v1/webhooks/${created.body.webhook.id}/test`, undefined, {
    key: other.live_key,
  });
  free.resolve();
  await Promise.all(slow);
  sink.respond(() => ({ status: 200 }));
  assert.deepEqual([tested.status, tested.body.delivery?.status], [200, "delivered"], JSON.stringify(tested.body));
});

test("an event whose body is not kept any more fails with that reason, and cannot be replayed", async () => {
  const { api } = stage;
  const { id } = await addWebhook(api, `${sink.url}/lost`);
  const event = outgoing(api, { endpoint_ids: [id] });
  await produce(api, [event]);
  const [row] = await settled(api, "delivered", 1, `&endpoint_id=${id}`);
  await api.world.db.execute("delete from webhook_event where org_id = $1 and id = $2", [api.org_id, event.event_id]);
  const refused = await api.ask("POST", `/v1/webhook-deliveries/${row?.id}/replay`);
  assert.deepEqual([refused.status, refused.body.code], [409, "invalid_state"]);
  const now = new Date(api.world.clock.now());
  await api.world.db.execute(
    `insert into webhook_queue (org_id, id, webhook_id, event_id, event, body_bytes, created_at, next_attempt_at)
     values ($1, $2, $3, $4, 'email.delivered', 1, $5, $5)`,
    [api.org_id, api.world.random.uuid(), id, event.event_id, now],
  );
  await api.world.db.execute("update webhook_lane set next_at = $2 where webhook_id = $1", [id, now]);
  const [failed] = await settled(api, "failed", 1, `&endpoint_id=${id}&status=failed`);
  assert.deepEqual([failed?.attempt, failed?.error], [0, "the event's body is not kept any more"]);
});
