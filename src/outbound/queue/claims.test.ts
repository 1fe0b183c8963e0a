// When a lane has work again: a message that is committed while the lane is looked at must not wait for the lane's retries,
// nor for another organization's backlog.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import pg from "pg";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { makeDeepQueue } from "../../../test/support/deep-queue.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { until } from "../../../test/support/until.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import type { Sources } from "../pools/sources.ts";
import { rescheduleLanes, wakeForgottenLanes } from "../queries.ts";
import { DEFAULT_SOURCE_ID, type Job } from "../types.ts";
import { type Claimer, createClaimer } from "./claims.ts";
import type { Leases } from "./leases.ts";
import { createMemory, type Memory } from "./memory.ts";

const NODE = 4712;
const HOUR_MS = 3_600_000;

let api: TestApi;
let dns: DnsServer;
let other: pg.Client;
let claimer: Claimer | null = null;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  await addVerifiedDomain(api, dns, "sender.example");
  other = new pg.Client({ connectionString: api.database_url, options: "-c postern.scope=system" });
  await other.connect();
});

afterEach(async () => {
  await claimer?.stop();
  claimer = null;
});

after(async () => {
  await other?.end();
  await api?.close();
  await dns?.stop();
});

/** Two e-mails in one lane: the first waits for its retry in an hour, the second is due. */
async function twoInOneLane(domain: string): Promise<{ lane: number; slot: number; fresh: string }> {
  const ids: string[] = [];
  for (const name of ["anna", "bert"]) {
    const body = { from: "a@sender.example", to: [`${name}@${domain}`], subject: "x", text_body: "x" };
    const answer = await api.ask("POST", "/v1/send", body);
    assert.equal(answer.status, 202);
    ids.push(answer.body.id);
  }
  const [waiting, fresh] = ids as [string, string];
  const retry = new Date(api.world.clock.now() + HOUR_MS);
  await api.world.db.query("update delivery set due_at = $2, attempts = 1 where message_id = $1", [waiting, retry]);
  const [row] = await api.world.db.query<{ lane: number; slot: number }>(
    "select l.id as lane, l.slot from delivery d join lane l on l.id = d.lane_id where d.message_id = $1",
    [fresh],
  );
  assert.ok(row);
  return { ...row, fresh };
}

async function nextAt(lane: number): Promise<number> {
  const [row] = await api.world.db.query<{ next_at: Date }>("select next_at from lane where id = $1", [lane]);
  return row?.next_at.getTime() ?? Number.NaN;
}

/** The row as it is while the transaction that inserts it is not committed: nobody else sees it. */
async function hideUntilCommit(id: string): Promise<void> {
  const { rows } = await other.query("delete from delivery where message_id = $1 returning *", [id]);
  const row = rows[0];
  const names = Object.keys(row);
  await other.query("begin");
  await other.query(
    `insert into delivery (${names.map((name) => `"${name}"`).join(", ")}) values (${names.map((_, n) => `$${n + 1}`).join(", ")})`,
    Object.values(row),
  );
}

/** Claims for a node that never finishes anything. */
function startClaiming(slots: number[]): { claimed: Job[]; memory: Memory } {
  const memory = createMemory();
  const claimed: Job[] = [];
  claimer = createClaimer(api.world, {
    leases: {
      node: () => NODE,
      slots: () => slots.map((slot) => ({ source_id: DEFAULT_SOURCE_ID, slot })),
      mayStart: () => true,
    } as unknown as Leases,
    memory,
    sources: {
      departure: () => ({ problem: "none" }),
      isUnlimited: () => true,
      today: () => "2026-11-20",
    } as unknown as Sources,
    suspended: { ids: async () => [] },
    held: { domains: async () => [] },
    take: (_lane, job) => claimed.push(job),
  });
  return { claimed, memory };
}

test("a message committed while its lane was looked at is claimed within seconds, whatever else waits in the lane", async () => {
  const { lane, slot, fresh } = await twoInOneLane("race.example");
  await hideUntilCommit(fresh);
  const dueAt = await nextAt(lane);
  const claimed = startClaiming([slot]).claimed;
  await until("the lane is looked at", async () => (await nextAt(lane)) !== dueAt);
  await other.query("commit");
  await until("it is claimed before the lane's retry", () => claimed.length > 0, 10_000);
  assert.deepEqual([claimed.length, claimed[0]?.message_id], [1, fresh]);
});

test("a lane that was deferred by mistake is found by the sweep, one that is parked still is left alone", async () => {
  const { lane, slot } = await twoInOneLane("sweep.example");
  const slots = [{ source_id: DEFAULT_SOURCE_ID, slot }];
  const nowMs = api.world.clock.now();
  const later = new Date(nowMs + HOUR_MS);
  const sweep = () => wakeForgottenLanes(api.world.db, slots, new Date(nowMs));
  await api.world.db.query("update lane set next_at = $2 where id = $1", [lane, later]);
  await sweep();
  const [first] = await api.world.db.query<{ due_at: Date }>(
    "select min(due_at) as due_at from delivery where lane_id = $1",
    [lane],
  );
  assert.equal(await nextAt(lane), first?.due_at.getTime());
  const park = (until: Date) =>
    api.world.db.query("update lane set next_at = $2, paused_until = $3 where id = $1", [lane, later, until]);
  await park(later);
  await sweep();
  assert.equal(await nextAt(lane), later.getTime());
  await park(new Date(nowMs - HOUR_MS));
  await sweep();
  assert.equal(await nextAt(lane), first?.due_at.getTime(), "a pause that is over is none");
});

test("a lane without due rows is looked at once more after the linger, then at its first row's time, or never", async () => {
  const { lane, fresh } = await twoInOneLane("linger.example");
  const now = new Date(api.world.clock.now());
  await api.world.db.query("delete from delivery where message_id = $1", [fresh]);
  assert.deepEqual(await rescheduleLanes(api.world.db, [lane], now, 2_000), [{ id: lane, asleep: true }]);
  assert.equal(await nextAt(lane), now.getTime() + 2_000);
  await rescheduleLanes(api.world.db, [lane], now, 0);
  assert.ok((await nextAt(lane)) > now.getTime() + HOUR_MS / 2);
  await api.world.db.query("delete from delivery where lane_id = $1", [lane]);
  await rescheduleLanes(api.world.db, [lane], now, 0);
  const [row] = await api.world.db.query<{ never: boolean }>(
    "select next_at = 'infinity' as never from lane where id = $1",
    [lane],
  );
  assert.equal(row?.never, true);
});

test("an organization's backlog fills its share of the memory, and another's message is claimed beside it", async () => {
  const tomorrow = new Date(api.world.clock.now() + 24 * HOUR_MS).toISOString();
  const original = { from: "a@sender.example", to: ["x@d0.deep.example"], subject: "x", text_body: "x" };
  const { body } = await api.ask("POST", "/v1/send", { ...original, scheduled_at: tomorrow });
  await makeDeepQueue(other, { message_id: body.id, rows: 10_600, lanes: 53, domain: "deep.example" });
  const { claimed, memory } = startClaiming(Array.from({ length: 16 }, (_none, slot) => slot));
  await until("the share is full", () => memory.crowded().length > 0);
  const full = claimed.length;
  assert.ok(full >= 10_000 && full < 10_600, `${full} were claimed`);
  const newcomer = await api.organization();
  await addVerifiedDomain(api, dns, "newcomer.example", { key: newcomer.live_key });
  const message = { from: "b@newcomer.example", to: ["y@d1.deep.example"], subject: "y", text_body: "y" };
  const sent = await api.ask("POST", "/v1/send", message, { key: newcomer.live_key });
  assert.equal(sent.status, 202);
  await until("it is claimed", () => claimed.length > full);
  assert.deepEqual(
    claimed.slice(full).map(({ message_id }) => message_id),
    [sent.body.id],
  );
});
