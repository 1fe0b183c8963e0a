import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import Stripe from "stripe";
import { until } from "../../test/support/until.ts";
import type { SinkRequest, WebhookSink } from "../../test/support/webhook-sink.ts";
import { createSeal } from "../platform/storage/seal.ts";
import { secretContext } from "./attempt.ts";
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
let sink: WebhookSink;
const verifier = new Stripe("sk_test_x").webhooks.signature!;
const POLL_MS = 50;
const MINUTE_S = 60;
const HOUR_S = 3_600;

before(async () => {
  stage = await setStage();
  await stage.hooks({ poll_ms: POLL_MS });
});
after(() => stage.close());
afterEach(async () => {
  for (const { id } of (await stage.api.ask("GET", "/v1/webhooks?limit=100")).body.webhooks) {
    await stage.api.ask("DELETE", `/v1/webhooks/${id}`);
  }
});

function accepts(request: SinkRequest, secret: string): boolean {
  try {
    const header = String(request.headers["x-service-signature"]);
    const now = Math.floor(stage.api.world.clock.now() / 1000);
    return verifier.verifyHeader(request.body, header, secret, 300, undefined, now * 1000);
  } catch {
    return false;
  }
}

test("an event is posted once: exact body, all headers once, a signature that Stripe's verifier accepts", async () => {
  sink = await stage.receiver();
  const { id, secret } = await addWebhook(stage.api, `${sink.url}/in?x=1`);
  const event = outgoing(stage.api);
  await produce(stage.api, [event]);
  const [request] = await requests(sink, 1);
  assert.ok(request);
  assert.deepEqual([request.method, request.path], ["POST", "/in?x=1"]);
  assert.deepEqual(JSON.parse(request.body.toString("utf8")), {
    event: "email.delivered",
    timestamp: event.at.toISOString(),
    event_id: event.event_id,
    ...event.payload,
  });
  const names = request.raw_headers.filter((_value, index) => index % 2 === 0).map((name) => name.toLowerCase());
  assert.equal(new Set(names).size, names.length, "no header twice");
  assert.equal(request.headers["content-type"], "application/json");
  assert.equal(request.headers["x-service-event"], "email.delivered");
  assert.equal(request.headers["x-service-event-id"], event.event_id);
  assert.equal(request.headers["x-service-attempt"], "1");
  assert.match(String(request.headers["x-service-delivery-id"]), /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  assert.match(String(request.headers["user-agent"]), /^Postern/);
  assert.match(String(request.headers["x-service-signature"]), /^t=\d{10},v1=[0-9a-f]{64}$/);
  assert.equal(accepts(request, secret), true);
  const [row] = await settled(stage.api, "delivered", 1, `&endpoint_id=${id}`);
  assert.ok(row);
  const { duration_ms, created_at, id: _id, ...rest } = row;
  assert.ok(Number(duration_ms) >= 0);
  assert.ok(created_at.endsWith("Z"));
  assert.deepEqual(rest, {
    endpoint_id: id,
    event_id: event.event_id,
    event: "email.delivered",
    attempt: 1,
    status: "delivered",
    status_code: 200,
    error: null,
    attempt_id: request.headers["x-service-delivery-id"],
    next_attempt_at: null,
  });
  const shown = (await stage.api.ask("GET", `/v1/webhooks/${id}`)).body.webhook;
  assert.equal(shown.consecutive_failures, 0);
  assert.ok(Math.abs(Date.parse(shown.last_success_at) - stage.api.world.clock.now()) < 5_000);
});

test("a receiver that is down gets seven attempts at the contract's offsets with the same bytes, then the delivery failed", async () => {
  sink = await stage.receiver();
  sink.respond(() => ({ status: 500 }));
  const { id, secret } = await addWebhook(stage.api, sink.url);
  await produce(stage.api, [outgoing(stage.api)]);
  await requests(sink, 1);
  const offsets = [
    MINUTE_S,
    6 * MINUTE_S,
    36 * MINUTE_S,
    2 * HOUR_S + 36 * MINUTE_S,
    10 * HOUR_S + 36 * MINUTE_S,
    34 * HOUR_S + 36 * MINUTE_S,
  ];
  let made = 1;
  try {
    for (const offset of offsets) {
      const [row] = await until("the retry is scheduled", async () => {
        const rows = await deliveries(stage.api, `&endpoint_id=${id}`);
        return rows[0]?.attempt === made && rows[0].status === "retrying" ? rows : null;
      });
      assert.deepEqual([row?.status_code, row?.error], [500, "the receiver answered 500"]);
      const dueS = (Date.parse(String(row?.next_attempt_at)) - stage.api.world.clock.now()) / 1000;
      const expectedS = offset - (offsets[made - 2] ?? 0);
      assert.ok(dueS > expectedS - 3 && dueS < expectedS + 1.1, `attempt ${made + 1} is due in ${dueS} s`);
      // Never early: a moment before, nothing comes in four polls.
      await stage.moveClock(offset - 4);
      await wait(4 * POLL_MS);
      assert.equal(sink.requests.length, made, `nothing before ${offset} s`);
      const moved = performance.now();
      await stage.moveClock(offset);
      made += 1;
      await requests(sink, made);
      assert.ok(performance.now() - moved < 10_000, "a jump of the clock takes effect soon");
      assert.equal(accepts(sink.requests[made - 1] as SinkRequest, secret), true);
    }
    const [row] = await settled(stage.api, "failed", 1, `&endpoint_id=${id}`);
    assert.deepEqual([row?.attempt, row?.next_attempt_at], [7, null]);
    await stage.moveClock(80 * HOUR_S);
    await wait(4 * POLL_MS);
    assert.equal(sink.requests.length, 7);
    const attempts = sink.requests.map((request) => request.headers["x-service-attempt"]);
    assert.deepEqual(attempts, ["1", "2", "3", "4", "5", "6", "7"]);
    assert.equal(new Set(sink.requests.map((request) => request.body.toString("hex"))).size, 1);
    assert.equal(new Set(sink.requests.map((request) => request.headers["x-service-event-id"])).size, 1);
    assert.equal(new Set(sink.requests.map((request) => request.headers["x-service-delivery-id"])).size, 7);
    assert.equal((await stage.api.ask("GET", `/v1/webhooks/${id}`)).body.webhook.consecutive_failures, 7);
  } finally {
    await stage.moveClock(0);
  }
});

test("what waited for days has all its seven attempts, at a receiver that failed ten times in a row too", async () => {
  sink = await stage.receiver();
  sink.respond(() => ({ status: 500 }));
  const { id } = await addWebhook(stage.api, sink.url);
  const events = Array.from({ length: 10 }, () => outgoing(stage.api));
  await produce(stage.api, events);
  const rowsAt = (attempt: number) =>
    until(`attempt ${attempt} of all`, async () => {
      const rows = await deliveries(stage.api, `&days=30&endpoint_id=${id}`);
      return rows.filter((row) => row.attempt === attempt).length === events.length ? rows : null;
    });
  await rowsAt(1);
  try {
    for (let made = 2; made <= 7; made += 1) {
      await stage.moveClock((96 + (made - 2) * 25) * HOUR_S);
      for (const row of await rowsAt(made)) {
        assert.deepEqual([row.status, row.status_code], [made < 7 ? "retrying" : "failed", 500], `attempt ${made}`);
      }
    }
    assert.equal(sink.requests.length, 7 * events.length);
  } finally {
    await stage.moveClock(0);
  }
});

test("any 2xx is success; every other status is not, and redirects are not followed", async () => {
  sink = await stage.receiver();
  const { id } = await addWebhook(stage.api, sink.url);
  for (const status of [200, 201, 202, 204, 299]) {
    sink.respond(() => ({ status }));
    const event = outgoing(stage.api);
    await produce(stage.api, [event]);
    const row = await find(id, event.event_id, ({ attempt }) => attempt === 1);
    assert.deepEqual([row.status, row.status_code], ["delivered", status], String(status));
  }
  const before = sink.requests.length;
  for (const status of [301, 302, 307, 308, 304, 400, 401, 404, 429, 500, 503]) {
    sink.respond(() => ({ status, headers: { location: `${sink.url}/elsewhere` } }));
    const event = outgoing(stage.api);
    await produce(stage.api, [event]);
    const row = await find(id, event.event_id, ({ attempt }) => attempt === 1);
    assert.deepEqual([row.status, row.status_code], ["retrying", status], String(status));
  }
  assert.equal(sink.requests.length, before + 11);
  assert.ok(sink.requests.every((request) => request.path === "/"));
});

async function find(
  endpointId: string,
  eventId: string,
  predicate: (row: Awaited<ReturnType<typeof deliveries>>[number]) => boolean,
) {
  return until(`the delivery of ${eventId}`, async () => {
    const rows = await deliveries(stage.api, `&endpoint_id=${endpointId}`);
    return rows.find((row) => row.event_id === eventId && predicate(row)) ?? null;
  });
}

test("a receiver that cannot be reached is a failed attempt with a reason and without a status code", async () => {
  const gone = await stage.receiver();
  await gone.stop();
  const { id } = await addWebhook(stage.api, gone.url);
  const unknown = await addWebhook(stage.api, "https://no-such-host.invalid/");
  const event = outgoing(stage.api);
  await produce(stage.api, [event]);
  const refused = await find(id, event.event_id, ({ attempt }) => attempt === 1);
  assert.deepEqual([refused.status, refused.status_code], ["retrying", null]);
  assert.match(String(refused.error), /^connect: ECONNREFUSED/);
  const unresolved = await find(unknown.id, event.event_id, ({ attempt }) => attempt === 1);
  assert.match(String(unresolved.error), /^dns: /);
});

test("outbound events go to endpoints of that event, of all domains or of the event's, whose pattern takes the recipient", async () => {
  const domains = ["scope-a.example.com", "scope-b.example.com"];
  const ids: string[] = [];
  for (const domain of domains) ids.push((await stage.api.ask("POST", "/v1/domains", { domain })).body.id);
  sink = await stage.receiver();
  const to = (path: string, more: Record<string, unknown>) => addWebhook(stage.api, `${sink.url}/${path}`, more);
  await to("all", {});
  await to("domain-a", { domain_id: ids[0] });
  await to("domain-b", { domain_id: ids[1] });
  await to("bounced", { events: ["email.bounced"] });
  await to("glob", { match_pattern: "ANNA@*" });
  await to("other-glob", { match_pattern: "bert@*" });
  await to("re2", { match_pattern: "re:@example\\.net$" });
  await to("inbound", { events: ["email.received"] });
  const disabled = await to("disabled", {});
  await stage.api.ask("PUT", `/v1/webhooks/${disabled.id}`, { enabled: false });
  await produce(stage.api, [outgoing(stage.api, { domain_id: String(ids[0]), recipient: "Anna@Example.NET" })]);
  await requests(sink, 4);
  await wait(4 * POLL_MS);
  assert.deepEqual(sink.requests.map(({ path }) => path).sort(), ["/all", "/domain-a", "/glob", "/re2"]);
  assert.equal(new Set(sink.requests.map(({ body }) => body.toString())).size, 1);
});

test("email.received goes to the chosen endpoints only, if they subscribe and their pattern takes the recipient", async () => {
  sink = await stage.receiver();
  const to = (path: string, more: Record<string, unknown>) =>
    addWebhook(stage.api, `${sink.url}/${path}`, { events: ["email.received"], ...more });
  const chosen = await to("chosen", {});
  await to("not-chosen", {});
  const unsubscribed = await to("unsubscribed", { events: ["email.delivered"] });
  const elsewhere = await to("elsewhere", { match_pattern: "sales@*" });
  const received = {
    event: "email.received" as const,
    recipient: "support@example.com",
    endpoint_ids: [chosen.id, unsubscribed.id, elsewhere.id],
  };
  await produce(stage.api, [outgoing(stage.api, received)]);
  await produce(stage.api, [outgoing(stage.api, { event: "email.received", recipient: "support@example.com" })]);
  await requests(sink, 1);
  await wait(4 * POLL_MS);
  assert.deepEqual(
    sink.requests.map(({ path }) => path),
    ["/chosen"],
  );
});

test("an event reaches no endpoint of another organization, even when chosen by id", async () => {
  const other = await stage.api.organization();
  sink = await stage.receiver();
  const foreign = await addWebhook(stage.api, `${sink.url}/foreign`, {}, { key: other.live_key });
  const own = await addWebhook(stage.api, `${sink.url}/own`);
  await produce(stage.api, [outgoing(stage.api, { endpoint_ids: [foreign.id, own.id] })]);
  await requests(sink, 1);
  await wait(4 * POLL_MS);
  assert.deepEqual(
    sink.requests.map(({ path }) => path),
    ["/own"],
  );
  const seen = await stage.api.ask("GET", "/v1/webhook-deliveries", undefined, { key: other.live_key });
  assert.equal(seen.body.total, 0);
});

test("410 disables the endpoint at once: its queue fails with a reason, and enabling it starts afresh", async () => {
  sink = await stage.receiver();
  let status = 500;
  sink.respond(() => ({ status }));
  const { id } = await addWebhook(stage.api, sink.url);
  await produce(stage.api, [outgoing(stage.api), outgoing(stage.api)]);
  await until("both failed once", async () => {
    const rows = await deliveries(stage.api, `&endpoint_id=${id}`);
    return rows.every((row) => row.attempt === 1) || null;
  });
  status = 410;
  await produce(stage.api, [outgoing(stage.api)]);
  const rows = await settled(stage.api, "failed", 3, `&endpoint_id=${id}`);
  assert.deepEqual(rows.map((row) => row.error).sort(), [
    "the endpoint answered 410 and was disabled",
    "the endpoint answered 410 and was disabled",
    "the receiver answered 410: the endpoint is disabled",
  ]);
  assert.equal((await stage.api.ask("GET", `/v1/webhooks/${id}`)).body.webhook.enabled, false);
  const listed = await stage.api.ask("GET", `/v1/webhook-deliveries?endpoint_id=${id}`);
  assert.match(listed.body.warnings[0], /answered 410/);
  await produce(stage.api, [outgoing(stage.api)]);
  status = 200;
  const enabled = await stage.api.ask("PUT", `/v1/webhooks/${id}`, { enabled: true });
  assert.deepEqual([enabled.body.webhook.enabled, enabled.body.webhook.consecutive_failures], [true, 0]);
  const event = outgoing(stage.api);
  await produce(stage.api, [event]);
  await find(id, event.event_id, (row) => row.status === "delivered");
  assert.equal(sink.requests.length, 4, "what came while it was disabled is not sent");
});

test("what a disabled endpoint has queued waits for it to be enabled, and fails after three days", async () => {
  sink = await stage.receiver();
  sink.respond(() => ({ status: 500 }));
  const { id } = await addWebhook(stage.api, sink.url);
  await produce(stage.api, [outgoing(stage.api)]);
  await until(
    "it failed once",
    async () => (await deliveries(stage.api, `&endpoint_id=${id}`))[0]?.attempt === 1 || null,
  );
  await stage.api.ask("PUT", `/v1/webhooks/${id}`, { enabled: false });
  try {
    await stage.moveClock(2 * HOUR_S);
    await wait(4 * POLL_MS);
    assert.equal(sink.requests.length, 1, "nothing is sent while disabled");
    sink.respond(() => ({ status: 200 }));
    await stage.api.ask("PUT", `/v1/webhooks/${id}`, { enabled: true });
    await settled(stage.api, "delivered", 1, `&endpoint_id=${id}`);
    sink.respond(() => ({ status: 500 }));
    const second = outgoing(stage.api);
    await produce(stage.api, [second]);
    await find(id, second.event_id, (row) => row.attempt === 1);
    await stage.api.ask("PUT", `/v1/webhooks/${id}`, { enabled: false });
    await stage.moveClock(2 * HOUR_S + 71 * HOUR_S);
    await wait(4 * POLL_MS);
    assert.equal((await find(id, second.event_id, () => true)).status, "retrying");
    await stage.moveClock(2 * HOUR_S + 73 * HOUR_S);
    const row = await find(id, second.event_id, ({ status }) => status === "failed");
    assert.match(String(row.error), /disabled for 3 days/);
  } finally {
    await stage.moveClock(0);
  }
});

test("deleting an endpoint drops its queue; the log of finished deliveries stays", async () => {
  sink = await stage.receiver();
  const { id } = await addWebhook(stage.api, sink.url);
  await produce(stage.api, [outgoing(stage.api)]);
  await settled(stage.api, "delivered", 1, `&endpoint_id=${id}`);
  sink.respond(() => ({ status: 500 }));
  await produce(stage.api, [outgoing(stage.api)]);
  await requests(sink, 2);
  await stage.api.ask("DELETE", `/v1/webhooks/${id}`);
  await settled(stage.api, "delivered", 1, `&endpoint_id=${id}`);
  await until("the queue is empty", async () => {
    const [row] = await stage.api.world.db.query<{ total: number }>(
      "select count(*) as total from webhook_queue where org_id = $1 and webhook_id = $2",
      [stage.api.org_id, id],
    );
    return row?.total === 0 || null;
  });
});

test("an endpoint without a secret gets no signature; one whose secret cannot be opened gets no request", async () => {
  sink = await stage.receiver();
  const bare = await addWebhook(stage.api, `${sink.url}/bare`);
  const broken = await addWebhook(stage.api, `${sink.url}/broken`);
  const set = (id: string, secret: Buffer | null) =>
    stage.api.world.db.execute("update webhook set secret = $3 where org_id = $1 and id = $2", [
      stage.api.org_id,
      id,
      secret,
    ]);
  await set(bare.id, null);
  await set(broken.id, stage.api.world.seal.seal(Buffer.from("whsec_x"), "something else"));
  const event = outgoing(stage.api);
  await produce(stage.api, [event]);
  const row = await find(broken.id, event.event_id, ({ attempt }) => attempt === 1);
  assert.match(String(row.error), /secret cannot be opened/);
  await find(bare.id, event.event_id, ({ status }) => status === "delivered");
  assert.deepEqual(
    sink.requests.map(({ path, headers }) => [path, headers["x-service-signature"]]),
    [["/bare", undefined]],
  );
});

// --- rotation --------------------------------------------------------------------------------------------------------

async function signatures(id: string): Promise<SinkRequest> {
  const event = outgoing(stage.api);
  await produce(stage.api, [event]);
  await find(id, event.event_id, ({ status }) => status === "delivered");
  return sink.requests.at(-1) as SinkRequest;
}

function count(request: SinkRequest): number {
  return String(request.headers["x-service-signature"]).split(",v1=").length - 1;
}

async function rotate(id: string, grace_seconds: number): Promise<string> {
  const rotated = await stage.api.ask("POST", `/v1/webhooks/${id}/rotate`, { grace_seconds });
  return rotated.body.secret;
}

test("two signatures exactly while the grace lasts: at −10 s two, at 0 and +1 s one, never none", async () => {
  sink = await stage.receiver();
  const { id, secret: old } = await addWebhook(stage.api, sink.url);
  assert.equal(count(await signatures(id)), 1);
  const next = await rotate(id, 3_600);
  const { webhook } = (await stage.api.ask("GET", `/v1/webhooks/${id}`)).body;
  const endMs = Date.parse(webhook.previous_secret_expires_at);
  const sinceMs = stage.api.world.clock.now() - performance.now();
  const setTo = (ms: number) => stage.moveClock((endMs + ms - (sinceMs + performance.now())) / 1000);
  try {
    const during = await signatures(id);
    assert.deepEqual([count(during), accepts(during, old), accepts(during, next)], [2, true, true]);
    const header = String(during.headers["x-service-signature"]);
    const t = /^t=(\d+),/.exec(header)?.[1];
    const hmac = (secret: string) => createHmac("sha256", secret).update(`${t}.`).update(during.body).digest("hex");
    assert.equal(header, `t=${t},v1=${hmac(next)},v1=${hmac(old)}`, "the new secret first");
    await setTo(-10_000);
    const before = await signatures(id);
    assert.deepEqual([count(before), accepts(before, old), accepts(before, next)], [2, true, true]);
    for (const ms of [0, 1_000]) {
      await setTo(ms);
      const request = await signatures(id);
      assert.deepEqual([count(request), accepts(request, old), accepts(request, next)], [1, false, true], `${ms} ms`);
    }
    const after = (await stage.api.ask("GET", `/v1/webhooks/${id}`)).body.webhook;
    assert.equal(after.previous_secret_expires_at, null);
  } finally {
    await stage.moveClock(0);
  }
});

test("a secret whose master key was lost and that was rotated, as the runbook says, holds nothing back", async () => {
  sink = await stage.receiver();
  const { id } = await addWebhook(stage.api, sink.url);
  const { org_id, world } = stage.api;
  const lost = createSeal(randomBytes(32)).seal(Buffer.from("whsec_x"), secretContext(org_id, id));
  await world.db.execute("update webhook set secret = $3 where org_id = $1 and id = $2", [org_id, id, lost]);
  const next = await rotate(id, 3_600);
  const request = await signatures(id);
  assert.deepEqual([count(request), accepts(request, next)], [1, true]);
});

test("with grace 0 the old secret stops at once", async () => {
  sink = await stage.receiver();
  const { id, secret: old } = await addWebhook(stage.api, sink.url);
  const next = await rotate(id, 0);
  const request = await signatures(id);
  assert.deepEqual([count(request), accepts(request, old), accepts(request, next)], [1, false, true]);
});

test("rotated twice within the grace, the two newest secrets sign; grace 0 then leaves the newest alone", async () => {
  sink = await stage.receiver();
  const { id, secret: first } = await addWebhook(stage.api, sink.url);
  const second = await rotate(id, 3_600);
  const third = await rotate(id, 3_600);
  const request = await signatures(id);
  assert.deepEqual(
    [first, second, third].map((secret) => accepts(request, secret)),
    [false, true, true],
  );
  assert.equal(count(request), 2);
  const fourth = await rotate(id, 0);
  const last = await signatures(id);
  assert.deepEqual(
    [second, third, fourth].map((secret) => accepts(last, secret)),
    [false, false, true],
  );
});

test("a retry is signed again: with the secret that is valid then, and its own time", async () => {
  sink = await stage.receiver();
  sink.respond(() => ({ status: 500 }));
  const { id, secret: old } = await addWebhook(stage.api, sink.url);
  await produce(stage.api, [outgoing(stage.api)]);
  await requests(sink, 1);
  const next = await rotate(id, 0);
  try {
    await stage.moveClock(MINUTE_S + 2);
    const [first, second] = await requests(sink, 2);
    assert.ok(first && second);
    assert.deepEqual([accepts(second, old), accepts(second, next)], [false, true]);
    const t = (request: SinkRequest) => Number(/^t=(\d+)/.exec(String(request.headers["x-service-signature"]))?.[1]);
    assert.ok(t(second) - t(first) >= MINUTE_S, `${t(second) - t(first)}`);
    assert.deepEqual(second.body, first.body);
  } finally {
    await stage.moveClock(0);
  }
});
