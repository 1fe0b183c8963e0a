// GET /v1/events over real sockets: what is read are the bytes that webhooks get, in the order of commits.
import assert from "node:assert/strict";
import { type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { setUp } from "../../../test/support/people.ts";
import { until } from "../../../test/support/until.ts";
import { uuidFloor, uuidTime } from "../../platform/random.ts";
import { bodyOf } from "../event-body.ts";
import { outgoing, produce } from "../receiver.fixture.ts";
import type { OutgoingEvent } from "../types.ts";
import { enqueueWebhooks } from "../webhooks.ts";

let api: TestApi;
let port: number;

before(async () => {
  api = await testApi();
  await api.app.listen({ host: "127.0.0.1", port: 0 });
  port = (api.app.server.address() as AddressInfo).port;
});
after(() => api.close());

type Reader = { org_id: string; live_key: string; test_key: string };

// Requests wait where an event is sure to come: transactions of other tests on the same server may hold it back for a moment.

/** An organization whose events are read from now on, and where its reading begins. */
async function reader(): Promise<Reader & { start: string }> {
  const organization = await api.organization();
  const { status, body } = await read(organization.live_key);
  assert.equal(status, 200);
  assert.deepEqual(body.events, []);
  return { ...organization, start: body.next };
}

const read = (key: string, query = "") => api.ask("GET", `/v1/events${query}`, undefined, { key });

const event = (org_id: string, more: Partial<OutgoingEvent> = {}) => outgoing(api, { org_id, ...more });

async function listen(key: string, query: string, headers: Record<string, string> = {}) {
  return open(query, { authorization: `Bearer ${key}`, ...headers });
}

async function open(query: string, headers: Record<string, string>) {
  const all = { accept: "text/event-stream", ...headers };
  const call = request({ port, host: "127.0.0.1", path: `/v1/events${query}`, headers: all });
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    call.on("response", resolve).on("error", reject).end();
  });
  const noted = { text: "", ended: false };
  answer.on("end", () => {
    noted.ended = true;
  });
  answer.setEncoding("utf8").on("data", (text: string) => {
    noted.text += text;
  });
  return { answer, noted, stop: () => void call.destroy() };
}

test("events are read with the bytes that a webhook gets, and the next request goes on behind them", async () => {
  const { org_id, live_key, start } = await reader();
  const events = [event(org_id), event(org_id, { event: "email.bounced" })];
  await produce(api, events);
  const { body } = await read(live_key, `?after=${start}&wait=20`);
  assert.deepEqual(
    body.events,
    events.map((one) => ({
      event_id: one.event_id,
      event: one.event,
      timestamp: one.at.toISOString(),
      body: bodyOf(one).toString(),
    })),
  );
  assert.equal(body.next, events[1]?.event_id);
  const next = await read(live_key, `?after=${events[0]?.event_id}&wait=20`);
  assert.deepEqual(
    next.body.events.map((one: { event_id: string }) => one.event_id),
    [events[1]?.event_id],
  );
  const none = await read(live_key, `?after=${events[1]?.event_id}`);
  assert.deepEqual([none.body.events, none.body.next], [[], events[1]?.event_id]);
});

test("types and limit choose; a name that is no event is refused with those that are", async () => {
  const { org_id, live_key, start } = await reader();
  await produce(api, [event(org_id), event(org_id, { event: "email.bounced" }), event(org_id)]);
  const names = async (query: string) =>
    (await read(live_key, `?after=${start}&wait=20${query}`)).body.events.map((one: { event: string }) => one.event);
  assert.deepEqual(await names("&types=email.bounced,email.complained"), ["email.bounced"]);
  assert.deepEqual(await names("&limit=1"), ["email.delivered"]);
  const { status, body } = await read(live_key, "?types=email.sent");
  assert.deepEqual([status, body.field], [400, "types"]);
  assert.match(body.error, /email\.delivered/);
});

test("a request that waits is answered when something happens, and empty when nothing does", async () => {
  const { org_id, live_key, start } = await reader();
  const waiting = read(live_key, `?after=${start}&wait=20`);
  const startedAt = performance.now();
  const one = event(org_id);
  await produce(api, [one]);
  assert.equal((await waiting).body.events[0].event_id, one.event_id);
  assert.ok(performance.now() - startedAt < 10_000, "long before its time is up");
  const { body } = await read(live_key, `?after=${one.event_id}&wait=1`);
  assert.deepEqual(body.events, []);
});

test("no event is passed over: what was made earlier and committed later comes after", async () => {
  const { org_id, live_key, start } = await reader();
  const [early, late] = [event(org_id), event(org_id)];
  const written = Promise.withResolvers<void>();
  const committed = Promise.withResolvers<void>();
  const slow = api.world.db.transaction(async (tx) => {
    await enqueueWebhooks(tx, api.world, [early]);
    written.resolve();
    await committed.promise;
  });
  await Promise.race([written.promise, slow]);
  await produce(api, [late]);
  const seen: string[] = [];
  let after = start;
  const readOn = async (wait: number): Promise<void> => {
    const { body } = await read(live_key, `?after=${after}&wait=${wait}`);
    after = body.next;
    seen.push(...body.events.map((one: { event_id: string }) => one.event_id));
  };
  await readOn(0);
  committed.resolve();
  await slow;
  await until("both were read", async () => {
    await readOn(1);
    return seen.length >= 2;
  });
  assert.deepEqual(seen, [early.event_id, late.event_id]);
});

test("a test key reads events of test mail only, and nobody reads another organization's", async () => {
  const { org_id, live_key, test_key, start } = await reader();
  const other = await reader();
  const live = event(org_id);
  const tried = event(org_id, { payload: { ...live.payload, environment: "test" } });
  await produce(api, [live, tried, event(other.org_id)]);
  const ids = async (key: string) =>
    (await read(key, `?after=${start}&wait=20`)).body.events.map((one: { event_id: string }) => one.event_id);
  assert.deepEqual(await ids(test_key), [tried.event_id]);
  assert.deepEqual(await ids(live_key), [live.event_id, tried.event_id]);
});

test("events of organizations that nobody reads are not kept", async () => {
  const { org_id } = await api.organization();
  const one = event(org_id);
  await produce(api, [one]);
  assert.deepEqual(await api.world.db.query("select 1 from webhook_event where id = $1", [one.event_id]), []);
});

test("who goes on behind an event from before the reading began hears until when events may be missing, and that once", async () => {
  const { org_id, live_key } = await api.organization();
  const unread = event(org_id);
  await produce(api, [unread]);
  const before = Date.now();
  const first = await read(live_key, `?after=${unread.event_id}`);
  assert.deepEqual(first.body.events, []);
  const gapUntil = Date.parse(first.body.gap_until);
  assert.ok(gapUntil >= before && gapUntil <= Date.now(), first.body.gap_until);
  const kept = event(org_id);
  await produce(api, [kept]);
  const second = await read(live_key, `?after=${first.body.next}&wait=20`);
  assert.deepEqual([second.body.events[0].event_id, second.body.gap_until], [kept.event_id, null]);
});

test("an id is placed by its bytes: the nil UUID before all events, one in capitals where it is, the largest behind all", async () => {
  const { live_key, start } = await reader();
  const nil = await read(live_key, "?after=00000000-0000-0000-0000-000000000000");
  assert.ok(Date.parse(nil.body.gap_until) <= Date.now(), nil.body.gap_until);
  const largest = "ffffffff-ffff-4fff-bfff-ffffffffffff";
  for (const after of [start.toUpperCase(), largest]) {
    const { body } = await read(live_key, `?after=${after}`);
    assert.deepEqual([body.events, body.gap_until, body.next.toLowerCase()], [[], null, after.toLowerCase()]);
  }
});

test("a pause of more than seven days is a gap for its reader, and none for one that reads on", async () => {
  const { org_id, live_key, start } = await reader();
  const seen = event(org_id);
  await produce(api, [seen]);
  assert.equal((await read(live_key, `?after=${start}&wait=20`)).body.gap_until, null);
  await api.world.db.execute("update event_listener set until = now() - interval '1 minute' where org_id = $1", [
    org_id,
  ]);
  const stream = await listen(live_key, "", { "last-event-id": seen.event_id });
  await until("the stream says it", () => /^event: gap\ndata: {"until":"20[^"]+Z"}\n\n/m.test(stream.noted.text));
  stream.stop();
  const { body } = await read(live_key, `?after=${seen.event_id}`);
  assert.ok(Date.parse(body.gap_until) <= Date.now());
  assert.equal((await read(live_key, `?after=${body.next}`)).body.gap_until, null);
});

test("a reader to whom nothing comes for long moves on, and misses nothing", async () => {
  const { org_id, live_key } = await reader();
  const quiet = uuidFloor(Date.now() - 3 * 86_400_000);
  await api.world.db.execute("update event_listener set since = now() - interval '9 days' where org_id = $1", [org_id]);
  const { body } = await read(live_key, `?after=${quiet}`);
  assert.deepEqual([body.events, body.gap_until], [[], null]);
  assert.ok(Math.abs(uuidTime(body.next) - (Date.now() - 3_600_000)) < 60_000, body.next);
  const one = event(org_id);
  await produce(api, [one]);
  assert.equal((await read(live_key, `?after=${body.next}&wait=20`)).body.events[0].event_id, one.event_id);
});

test("a stream has each event under its id and name, and goes on behind Last-Event-ID", async () => {
  const { org_id, live_key, start } = await reader();
  const first = await listen(live_key, `?after=${start}`);
  assert.match(String(first.answer.headers["content-type"]), /^text\/event-stream/);
  const [one, two] = [event(org_id), event(org_id)];
  await produce(api, [one]);
  const block = ({ event_id, event: name }: OutgoingEvent, body: string) =>
    `id: ${event_id}\nevent: ${name}\ndata: ${body}\n\n`;
  await until("the first event is there", () => first.noted.text.includes(block(one, bodyOf(one).toString())));
  first.stop();
  await produce(api, [two]);
  const again = await listen(live_key, "", { "last-event-id": one.event_id });
  await until("the second is there", () => again.noted.text.includes(block(two, bodyOf(two).toString())));
  assert.ok(!again.noted.text.includes(`id: ${one.event_id}\nevent:`), "the first does not come again");
  again.stop();
});

test("a stream that was lost before its first event goes on where it began", async () => {
  const { org_id, live_key } = await reader();
  const first = await listen(live_key, "");
  await until("it says where it is", () => /^id: .+\n/m.test(first.noted.text));
  const [, start = ""] = /^id: (.+)$/m.exec(first.noted.text) ?? [];
  assert.doesNotMatch(first.noted.text, /^data:/m);
  first.stop();
  const missed = event(org_id);
  await produce(api, [missed]);
  const again = await listen(live_key, "", { "last-event-id": start });
  await until("what happened meanwhile is there", () => again.noted.text.includes(missed.event_id));
  again.stop();
});

test("Last-Event-ID goes before after, as a browser that connects again sends both; what is no id is refused", async () => {
  const { org_id, live_key, start } = await reader();
  const [one, two] = [event(org_id), event(org_id)];
  await produce(api, [one]);
  await read(live_key, `?after=${start}&wait=10`);
  await produce(api, [two]);
  // An id in capitals is the same id.
  const again = await listen(live_key, `?after=${start}`, { "last-event-id": one.event_id.toUpperCase() });
  await until("the second is there", () => again.noted.text.includes(two.event_id));
  assert.ok(!again.noted.text.includes(`id: ${one.event_id}\nevent:`), "the first does not come again");
  again.stop();
  for (const wrong of ["zzz", "-".repeat(36)]) {
    const refused = await listen(live_key, "", { "last-event-id": wrong });
    assert.equal(refused.answer.statusCode, 400);
    await until("it says what is wrong", () => /'Last-Event-ID' header must be a UUID/.test(refused.noted.text));
  }
});

test("a stream ends with the key that opened it: nothing that happens after the revocation comes", async () => {
  const { org_id, live_key, start } = await reader();
  const made = await api.ask("POST", "/v1/api-keys", { name: "tail", environment: "live" }, { key: live_key });
  const [revoked, other] = [
    await listen(made.body.secret, `?after=${start}`),
    await listen(live_key, `?after=${start}`),
  ];
  assert.equal((await api.ask("DELETE", `/v1/api-keys/${made.body.key.id}`, undefined, { key: live_key })).status, 200);
  const late = event(org_id);
  await produce(api, [late]);
  await until("the other key has the event", () => other.noted.text.includes(late.event_id));
  await until("the stream of the revoked key has ended", () => revoked.noted.ended);
  assert.ok(!revoked.noted.text.includes(late.event_id), revoked.noted.text);
  other.stop();
});

test("a stream ends with the session that opened it, and with the role", async () => {
  const { org_id, start } = await reader();
  const owner = await setUp(api, "owner@stream.example", org_id);
  const headers = {
    cookie: `__Host-postern=${owner.token()}`,
    ...{ host: "api.postern.test", "x-postern-organization": org_id, "x-postern-environment": "live" },
  };
  const stream = await open(`?after=${start}`, headers);
  assert.equal(stream.answer.statusCode, 200);
  await api.world.db.execute("update membership set role = 'viewer' where org_id = $1", [org_id]);
  const unseen = event(org_id);
  await produce(api, [unseen]);
  await until("the stream of one who became a viewer has ended", () => stream.noted.ended);
  assert.ok(!stream.noted.text.includes(unseen.event_id), stream.noted.text);
  await api.world.db.execute("update membership set role = 'developer' where org_id = $1", [org_id]);
  const second = await open(`?after=${start}`, headers);
  await until("a developer reads it", () => second.noted.text.includes(unseen.event_id));
  await owner.ask("POST", "/dashboard/api/sign-out");
  const late = event(org_id);
  await produce(api, [late]);
  await until("the stream of one who signed out has ended", () => second.noted.ended);
  assert.ok(!second.noted.text.includes(late.event_id), second.noted.text);
});

test("a request that waited with a key that was revoked meanwhile is 401", async () => {
  const { org_id, live_key, start } = await reader();
  const made = await api.ask("POST", "/v1/api-keys", { name: "wait", environment: "live" }, { key: live_key });
  const waiting = read(made.body.secret, `?after=${start}&wait=20`);
  await api.ask("DELETE", `/v1/api-keys/${made.body.key.id}`, undefined, { key: live_key });
  await produce(api, [event(org_id)]);
  const { status, body } = await waiting;
  assert.deepEqual([status, body.code], [401, "invalid_api_key"]);
});

test("more than twenty waiting requests of one organization are refused for now, others are not", async () => {
  const [greedy, modest] = [await reader(), await reader()];
  const streams = await Promise.all(
    Array.from({ length: 20 }, () => listen(greedy.live_key, `?after=${greedy.start}`)),
  );
  await until("all of them wait", async () => {
    const { status } = await read(greedy.live_key, `?after=${greedy.start}&wait=1`);

    return status === 503;
  });
  assert.equal((await read(modest.live_key, `?after=${modest.start}&wait=1`)).status, 200);
  for (const { stop } of streams) stop();
});

test("mail that is received and stored is an event for readers, without any endpoint", async () => {
  const { live_key, start } = await reader();
  const domain = await api.ask("POST", "/v1/domains", { domain: "read.example", type: "inbound" }, { key: live_key });
  const alias = { domain_id: domain.body.id, local_part: "desk", action: "store" };
  const made = await api.ask("POST", "/v1/aliases", alias, { key: live_key });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const mail = { from: "anna@sender.example", to: "desk@read.example", subject: "Hello", text: "Hello" };
  const { body } = await api.ask("POST", "/v1/inbound-emails/simulate", mail, { key: live_key });
  const { events } = (await read(live_key, `?after=${start}&wait=5`)).body;
  assert.deepEqual(
    [events.length, events[0]?.event, JSON.parse(events[0]?.body).email_id],
    [1, "email.received", body.email.id],
  );
});

test("the log of one endpoint is that of all, of this endpoint", async () => {
  const made = await api.ask("POST", "/v1/webhooks", { url: "https://127.0.0.1:9/x", events: ["email.delivered"] });
  await api.ask("POST", "/v1/webhooks", { url: "https://127.0.0.1:9/y", events: ["email.delivered"] });
  await produce(api, [outgoing(api)]);
  const { id } = made.body.webhook;
  const { body } = await api.ask("GET", `/v1/webhooks/${id}/deliveries`);
  assert.deepEqual([body.total, body.deliveries[0].endpoint_id], [1, id]);
  assert.equal((await api.ask("GET", "/v1/webhooks/00000000-0000-7000-8000-00000000dead/deliveries")).status, 404);
});
