// The queue as operators see it: counted by destination, paged and filtered, for operators alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { type Browser, browserOf, PASSWORD, setUp } from "../../../test/support/people.ts";
import { until } from "../../../test/support/until.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { dropOrdered } from "./drop.ts";
import { createHeld } from "./held.ts";
import { retry } from "./orders.ts";

const QUEUE = "/dashboard/api/operator/queue";
const HOUR_MS = 3_600_000;
let api: TestApi;
let dns: DnsServer;
let operator: Browser;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  await addVerifiedDomain(api, dns, "sender.example");
  operator = await setUp(api, "operator@example.net");
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

async function send(to: string, change: Record<string, unknown> = {}): Promise<string> {
  const mail = { from: "a@sender.example", to: [to], subject: "x", text_body: "x", ...change };
  const { status, body } = await api.ask("POST", "/v1/send", mail);
  assert.equal(status, 202, JSON.stringify(body));
  return body.id;
}

/** As an attempt would leave it. */
async function defer(id: string, reply: string): Promise<void> {
  const retry = new Date(api.world.clock.now() + HOUR_MS);
  await api.world.db.query("update delivery set due_at = $2, attempts = 1 where message_id = $1", [id, retry]);
  await api.world.db.query(
    "update recipient set status = 'deferred', attempts = 1, diag_message = $2 where message_id = $1",
    [id, reply],
  );
}

const list = async (query = "") => {
  const { status, body } = await operator.ask("GET", `${QUEUE}?${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};
const namesOf = (body: { destinations: { domain: string }[] }) => body.destinations.map(({ domain }) => domain);

test("destinations are listed with what is due, deferred and scheduled, the last reply and the oldest", async () => {
  await send("anna@first.example");
  await defer(await send("bert@first.example"), "451 4.7.1 Greylisted, try later");
  await send("carl@first.example", { scheduled_at: new Date(api.world.clock.now() + HOUR_MS).toISOString() });
  await send("dora@second.example");
  const { destinations, total } = await list();
  assert.equal(total, 2);
  const [first] = destinations;
  const { domain, state, due, deferred, scheduled, in_hand, is_at_least, organizations, last_reply } = first;
  assert.deepEqual([domain, state, due, deferred, scheduled, in_hand], ["first.example", "due", 1, 1, 1, 0]);
  assert.deepEqual([is_at_least, organizations, last_reply], [false, 1, "451 4.7.1 Greylisted, try later"]);
  assert.ok(Math.abs(Date.parse(first.oldest_at) - api.world.clock.now()) < 600_000);
  const one = (await operator.ask("GET", `${QUEUE}/first.example`)).body.destination;
  assert.deepEqual([one.waiting, one.lanes_total, one.lanes[0].why], [3, 1, "due"]);
  assert.deepEqual([one.lanes[0].organization_id, one.lanes[0].class], [api.org_id, "transactional"]);
});

test("the list goes on behind a page, finds a domain by a part of its name, and what a site rests for", async () => {
  const page = await list("limit=1");
  assert.deepEqual(namesOf(page), ["first.example"]);
  const next = await list(`limit=1&after=${encodeURIComponent(page.next)}`);
  assert.deepEqual([namesOf(next), next.next], [["second.example"], null]);
  assert.deepEqual(namesOf(await list("query=SECOND")), ["second.example"]);
  assert.deepEqual(namesOf(await list("query=%25")), []);
  const until = new Date(api.world.clock.now() + HOUR_MS);
  await api.world.db.query(
    "update lane set paused_until = $1, reason = 'it does not answer' where domain = 'second.example'",
    [until],
  );
  const resting = await list("state=resting");
  assert.deepEqual([namesOf(resting), resting.destinations[0].last_reply], [["second.example"], "it does not answer"]);
  assert.deepEqual(namesOf(await list("state=due")), ["first.example"]);
});

test("a retry makes what was tried due and leaves what is scheduled; a site rests no longer", async () => {
  const { status, body } = await operator.ask("POST", `${QUEUE}/first.example/retry`);
  assert.deepEqual([status, body], [200, { hastened: 1, more: false }]);
  const { destinations } = await list("query=first");
  assert.deepEqual([destinations[0].due, destinations[0].deferred, destinations[0].scheduled], [2, 0, 1]);
  assert.equal((await operator.ask("POST", `${QUEUE}/second.example/retry`)).status, 200);
  assert.equal((await list("state=resting")).total, 0);
});

test("a retry says that there is more only where something is left", async () => {
  const act = { person: { id: api.org_id, email: "operator@example.net" }, request: { ip: "127.0.0.1", id: "x" } };
  const later = async () => {
    for (let n = 0; n < 4; n += 1) await defer(await send(`r${n}@many.example`), "451 4.7.1 later");
  };
  await later();
  assert.deepEqual(await retry(api.world, "many.example", act, { at_once: 2, most: 4 }), { hastened: 4, more: false });
  await api.world.db.query("delete from delivery where lane_id in (select id from lane where domain = 'many.example')");
  await later();
  assert.deepEqual(await retry(api.world, "many.example", act, { at_once: 2, most: 2 }), { hastened: 2, more: true });
});

test("an engine follows each destination's retry, also one that is committed behind a later one", async () => {
  const followed: number[] = [];
  let askedAt = api.world.clock.monotonic();
  const clock = { ...api.world.clock, monotonic: () => askedAt };
  const orders = createHeld(
    { ...api.world, clock },
    { onHeld: () => undefined, onRetry: (lanes) => followed.push(...lanes) },
  );
  await orders.domains();
  await send("a@early.example");
  await send("a@after.example");
  const lanes = await api.world.db.query<{ domain: string; id: number }>("select domain, id from lane");
  const idOf = (domain: string) => lanes.find((lane) => lane.domain === domain)?.id;
  const order = (domain: string, at: number) =>
    api.world.db.query("insert into destination_order (domain, retry_at) values ($1, $2)", [domain, new Date(at)]);
  const now = api.world.clock.now();
  const look = (wanted: string) =>
    until(`the retry of ${wanted} is followed`, async () => {
      askedAt += 2_000;
      await orders.domains();
      return followed.includes(idOf(wanted) as number);
    });
  await order("after.example", now);
  await look("after.example");
  await order("early.example", now - 1_000);
  await look("early.example");
});

test("what is dropped fails with an event, what came later stays, and each organization's log says who did", async () => {
  const other = await api.organization();
  await addVerifiedDomain(api, dns, "other.example", { key: other.live_key });
  const mail = { from: "a@other.example", to: ["x@third.example", "y@third.example"], subject: "x", text_body: "x" };
  const theirs = (await api.ask("POST", "/v1/send", mail, { key: other.live_key })).body.id;
  const own = await send("z@third.example");
  const early = await operator.ask("POST", `${QUEUE}/third.example/drop`, {
    accepted_before: new Date(0).toISOString(),
  });
  assert.deepEqual([early.status, early.body.code], [409, "invalid_state"]);
  const suspended = await operator.ask("POST", `${QUEUE}/third.example/suspend`, { note: "they asked us to" });
  assert.equal(suspended.status, 200, JSON.stringify(suspended.body));
  const { waiting, note, suspended_by, lanes } = suspended.body.destination;
  assert.deepEqual(
    [waiting, note, suspended_by, lanes[0].why],
    [3, "they asked us to", "operator@example.net", "suspended"],
  );
  assert.equal((await operator.ask("POST", `${QUEUE}/third.example/retry`)).status, 409);
  const { read_at } = (await operator.ask("GET", `${QUEUE}/third.example`)).body.destination;
  const late = await send("late@third.example");
  await api.world.db.query("update delivery set created_at = $2 where message_id = $1", [
    late,
    new Date(Date.parse(read_at) + 1),
  ]);
  const dropped = await operator.ask("POST", `${QUEUE}/third.example/drop`, { accepted_before: read_at });
  assert.deepEqual([dropped.status, dropped.body.destination.is_dropping], [200, true]);
  await dropOrdered(api.world);
  const after = (await operator.ask("GET", `${QUEUE}/third.example`)).body.destination;
  assert.deepEqual([after.waiting, after.is_dropping, after.dropped], [1, false, 3]);
  for (const [id, key] of [
    [theirs, other.live_key],
    [own, api.live_key],
  ]) {
    const email = (await api.ask("GET", `/v1/emails/${id}`, undefined, { key })).body.email;
    assert.equal(email.status, "failed");
    const [recipient] = email.recipients;
    assert.deepEqual([recipient.status, recipient.attempts, recipient.bounce_type], ["failed", 0, "soft"]);
    assert.match(recipient.diag_message, /the operator dropped/);
    const { events } = (await api.ask("GET", `/v1/emails/${id}/events`, undefined, { key })).body;
    assert.equal(events.at(-1).event_type, "failed");
    const { entries } = (await api.ask("GET", "/v1/audit-log?operation=dropDestination", undefined, { key })).body;
    assert.deepEqual([entries[0].name, entries[0].target], ["operator@example.net", { domain: "third.example" }]);
  }
  assert.equal((await api.ask("GET", `/v1/emails/${late}`)).body.email.status, "queued");
  assert.equal((await operator.ask("POST", `${QUEUE}/third.example/resume`)).status, 200);
  assert.equal((await operator.ask("POST", `${QUEUE}/third.example/resume`)).status, 409);
  assert.equal((await list("state=suspended")).total, 0);
});

test("a drop ends although messages of what waits are gone, and reaches what lies behind them", async () => {
  const ids = [await send("gone@fifth.example"), await send("there@fifth.example")];
  const { db } = api.world;
  // As many as a batch has, in front of the one that is there.
  await db.query(
    `insert into delivery select (d).* from (
       select jsonb_populate_record(d, jsonb_build_object('message_id', gen_random_uuid(), 'due_at', d.due_at - interval '1 day')) as d
         from delivery d, generate_series(1, 300) where d.message_id = $1) as copies`,
    [ids[0]],
  );
  await db.query("delete from delivery where message_id = $1", [ids[0]]);
  assert.equal((await operator.ask("POST", `${QUEUE}/fifth.example/suspend`, {})).status, 200);
  const { read_at, waiting } = (await operator.ask("GET", `${QUEUE}/fifth.example`)).body.destination;
  assert.equal(waiting, 301);
  await operator.ask("POST", `${QUEUE}/fifth.example/drop`, { accepted_before: read_at });
  await dropOrdered(api.world);
  const after = (await operator.ask("GET", `${QUEUE}/fifth.example`)).body.destination;
  assert.deepEqual([after.waiting, after.is_dropping, after.dropped], [0, false, 301]);
  assert.equal((await api.ask("GET", `/v1/emails/${ids[1]}`)).body.email.status, "failed");
  assert.equal((await operator.ask("POST", `${QUEUE}/fifth.example/resume`)).status, 200);
});

test("what a drop has left when its destination is resumed stays in the queue", async () => {
  const id = await send("kept@fourth.example");
  assert.equal((await operator.ask("POST", `${QUEUE}/fourth.example/suspend`, {})).status, 200);
  const { read_at } = (await operator.ask("GET", `${QUEUE}/fourth.example`)).body.destination;
  await operator.ask("POST", `${QUEUE}/fourth.example/drop`, { accepted_before: read_at });
  // Resumed after the process has read what it is to drop, before it drops it.
  const transaction: typeof api.world.db.transaction = async (work, statementMs) => {
    await operator.ask("POST", `${QUEUE}/fourth.example/resume`);
    return api.world.db.transaction(work, statementMs);
  };
  await dropOrdered({ ...api.world, db: { ...api.world.db, transaction } });
  assert.equal((await api.ask("GET", `/v1/emails/${id}`)).body.email.status, "queued");
  assert.equal((await list("query=fourth")).destinations[0].suspended_at, null);
});

test("a suspended destination without mail is listed, so that it can be resumed", async () => {
  assert.equal((await operator.ask("POST", `${QUEUE}/Nowhere.Example/suspend`, {})).status, 200);
  const { destinations } = await list("state=suspended");
  assert.deepEqual([destinations[0].domain, destinations[0].due], ["nowhere.example", 0]);
});

test("it is for operators alone; a drop needs a fresh proof", async () => {
  const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
  const { body } = await operator.ask("POST", path, { email: "owner@example.net", role: "owner" });
  const owner = browserOf(api);
  await owner.ask("POST", "/dashboard/api/links/use", { token: body.link.split("#")[1], name: "", password: PASSWORD });
  const acts: [string, string, unknown?][] = [
    ["GET", QUEUE],
    ["GET", `${QUEUE}/first.example`],
    ["POST", `${QUEUE}/first.example/suspend`, {}],
    ["POST", `${QUEUE}/first.example/resume`],
    ["POST", `${QUEUE}/first.example/retry`],
    ["POST", `${QUEUE}/first.example/drop`, { accepted_before: new Date(0).toISOString() }],
  ];
  for (const [method, url, sent] of acts) {
    const refused = await owner.ask(method, url, sent);
    assert.deepEqual([refused.status, refused.body.code], [403, "role_not_allowed"], url);
    assert.equal((await browserOf(api).ask(method, url, sent)).status, 401, url);
    const withKey = await api.ask(method, url, sent, {
      headers: { origin: "https://api.postern.test", host: "api.postern.test", "x-postern-dashboard": "1" },
    });
    assert.equal(withKey.status, 401, `${url} with an API key`);
  }
  assert.equal((await operator.ask("GET", `${QUEUE}/not%20a%20domain`)).status, 404);
  await operator.forgetProof();
  const late = await operator.ask("POST", `${QUEUE}/first.example/drop`, {
    accepted_before: new Date(0).toISOString(),
  });
  assert.deepEqual([late.status, late.body.code], [403, "proof_needed"]);
});

const SOURCES = "/dashboard/api/operator/sources";
const RELAYS = "/dashboard/api/operator/relays";
const read = async (path: string) => {
  const { status, body } = await operator.ask("GET", path);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};

/** A pool with two addresses: one that is called as it says, forwards and backwards, and one that is not. */
async function addPool(): Promise<{ name: string; named: string; other: string }> {
  const [name, named, other] = ["letters", "10.20.0.61", "10.20.0.62"];
  dns.set(named, "PTR", ["one.sender.example"]);
  dns.set("one.sender.example", "A", [named]);
  dns.set(other, "PTR", ["host-62.provider.example"]);
  const ips = [{ ip: named, ehlo: "one.sender.example", warmup: false }, { ip: other }];
  const made = await api.ask("POST", "/v1/ip-pools", { name, ips });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return { name, named, other };
}

test("sending addresses are listed with their pool, names, warm-up and what waits; they are paged, sought and filtered", async () => {
  const { name, named, other } = await addPool();
  await api.world.db.query(
    "insert into node (machine, pid, roles, addresses) values ('mail-1/boot/space', 1, '{mta}', array[$1, $2]::inet[])",
    [named, other],
  );
  await send("pooled@fifth.example", { ip_pool: name });
  await api.world.db.query(
    `update lane set paused_until = $1, reason = 'it lists this address' where domain = 'fifth.example'`,
    [new Date(api.world.clock.now() + HOUR_MS)],
  );
  const { sources, total } = await read(`${SOURCES}?query=letters`);
  assert.equal(total, 2);
  const [first, second] = sources;
  assert.deepEqual(
    [first.ip, first.ehlo, first.pool, first.organization_id, first.machines, first.state],
    [named, "one.sender.example", name, api.org_id, ["mail-1"], "ready"],
  );
  assert.deepEqual([first.reverse, first.warmup], [{ state: "matches", names: ["one.sender.example"] }, null]);
  assert.deepEqual(second.reverse, { state: "differs", names: ["host-62.provider.example"] });
  assert.deepEqual([second.state, second.warmup.day, second.warmup.daily_limit], ["warming", 1, 50]);
  const placed = sources.find((one: { waiting: number }) => one.waiting > 0);
  assert.deepEqual([placed.waiting, placed.resting, placed.resting_reason], [1, 1, "it lists this address"]);
  const all = await read(`${SOURCES}?limit=1`);
  assert.deepEqual([all.sources[0].ip, all.sources[0].reverse, all.sources[0].organization_id], [null, null, null]);
  const next = await read(`${SOURCES}?limit=1&after=${encodeURIComponent(all.next)}`);
  assert.equal(next.sources[0].ip, named);
  assert.deepEqual(
    (await read(`${SOURCES}?state=warming`)).sources.map(({ ip }: { ip: string }) => ip),
    [other],
  );
  assert.equal((await read(`${SOURCES}?query=${named}`)).total, 1);
  const { name: organization } = (await read("/dashboard/api/operator/organizations")).organizations[0];
  assert.equal((await read(`${SOURCES}?query=${encodeURIComponent(organization)}`)).total, 2);
  assert.equal((await read(`${SOURCES}?query=%25`)).total, 0);
});

test("an address is taken out of use with a reason and given back; its organization's log says who did; the shared one stays", async () => {
  const [shared] = (await read(SOURCES)).sources;
  const refused = await operator.ask("POST", `${SOURCES}/${shared.id}/hold`, {});
  assert.deepEqual([refused.status, refused.body.code], [409, "invalid_state"]);
  const [{ id, ip }] = (await read(`${SOURCES}?query=letters`)).sources;
  assert.equal((await operator.ask("POST", `${SOURCES}/${id}/give-back`)).status, 409);
  const held = await operator.ask("POST", `${SOURCES}/${id}/hold`, { note: "on a block list" });
  assert.equal(held.status, 200, JSON.stringify(held.body));
  const { state, held_by, held_note } = held.body.source;
  assert.deepEqual([state, held_by, held_note], ["out_of_use", "operator@example.net", "on a block list"]);
  assert.equal((await read(`${SOURCES}?state=out_of_use`)).total, 1);
  const { entries } = (await api.ask("GET", "/v1/audit-log?operation=holdSource")).body;
  assert.deepEqual([entries[0].name, entries[0].target], ["operator@example.net", { ip }]);
  const ips = (body: { ip_pool: { ips: { ip: string }[] } }) => body.ip_pool.ips.map((one) => ({ ip: one.ip }));
  const pool = (await api.ask("GET", "/v1/ip-pools/letters")).body;
  const without = ips(pool).filter((one) => one.ip !== ip);
  assert.equal((await api.ask("PUT", "/v1/ip-pools/letters", { ips: without })).status, 200);
  assert.equal((await api.ask("PUT", "/v1/ip-pools/letters", { ips: ips(pool) })).status, 200);
  const again = await read(`${SOURCES}?query=${ip}`);
  assert.deepEqual(
    again.sources.map((one: { state: string }) => one.state),
    ["out_of_use", "out_of_use"],
    "its customer cannot take it back",
  );
  const back = await operator.ask("POST", `${SOURCES}/${id}/give-back`);
  assert.deepEqual([back.status, back.body.source.state, back.body.source.held_note], [200, "leaving", null]);
  assert.equal((await read(`${SOURCES}?state=out_of_use`)).total, 0);
  assert.equal((await operator.ask("POST", `${SOURCES}/nothing/hold`, {})).status, 404);
});

test("relays of all organizations are listed with what waits, why one rests and what it said last", async () => {
  const relayed = await addVerifiedDomain(api, dns, "relayed.example");
  const set = async (domain: string, body: object) => {
    const answer = await api.ask("PUT", `/v1/domains/${domain}/relay`, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  };
  await set("relayed.example", { host: "smtp.relay.example", username: "u", password: "secret" });
  await set("sender.example", { host: "smtp.reserve.example", mode: "fallback" });
  await defer(await send("a@sixth.example", { from: "a@relayed.example" }), "454 4.7.0 Too many logins");
  const { relays, total, port_25_is_closed } = await read(RELAYS);
  assert.deepEqual([total, port_25_is_closed], [2, false]);
  const [first, second] = relays;
  assert.deepEqual(
    [first.domain, first.domain_id, first.host, first.port, first.has_login, first.state],
    ["relayed.example", relayed.id, "smtp.relay.example", 587, true, "in_use"],
  );
  assert.deepEqual([first.waiting, first.last_error], [1, "454 4.7.0 Too many logins"]);
  assert.deepEqual([second.domain, second.state, second.waiting], ["sender.example", "standby", 0]);
  assert.doesNotMatch(JSON.stringify(relays), /secret|password/);
  await api.world.db.query(
    "update lane set paused_until = $1, reason = 'the login was refused' where relay_domain_id = $2",
    [new Date(api.world.clock.now() + HOUR_MS), relayed.id],
  );
  const resting = await read(`${RELAYS}?state=resting`);
  assert.deepEqual([resting.total, resting.relays[0].last_error], [1, "the login was refused"]);
  const page = await read(`${RELAYS}?limit=1`);
  const next = await read(`${RELAYS}?limit=1&after=${encodeURIComponent(page.next)}`);
  assert.deepEqual([next.relays[0].domain, next.next], ["sender.example", null]);
  for (const query of ["reserve", "SENDER.example"]) {
    const sought = await read(`${RELAYS}?query=${query}`);
    assert.deepEqual(
      sought.relays.map(({ domain }: { domain: string }) => domain),
      ["sender.example"],
      query,
    );
  }
});
