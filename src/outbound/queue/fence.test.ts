// The fence is the node id under which a delivery was taken, not the one that this process has now: a process that was
// declared dead goes on under another id, may take the same delivery again, and still holds what it did under the old one.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { deferredLocally, tooLate } from "../path/attempt.ts";
import { createFinisher, type Finisher } from "../path/finish.ts";
import * as finishing from "../path/finish-queries.ts";
import * as queries from "../queries.ts";
import type { Job, Outcome } from "../types.ts";
import { laneFinder } from "./lanes.ts";
import { holdLeases } from "./leases.ts";
import { createMemory } from "./memory.ts";

const BEFORE = 4711;
const NOW = 4712;

let api: TestApi;
let dns: DnsServer;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  await addVerifiedDomain(api, dns, "sender.example");
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

type Row = { owner: number | null; attempts: number; lane_id: number };

/** A delivery that the process had taken as `BEFORE` and has taken again as `NOW`. */
async function taken(): Promise<{ job: Job; row(): Promise<Row | undefined> }> {
  const body = { from: "a@sender.example", to: ["anna@recipient.example"], subject: "x", text_body: "x" };
  const { status, body: sent } = await api.ask("POST", "/v1/send", body);
  assert.equal(status, 202);
  const { db } = api.world;
  const [found] = await db.query<Job>("update delivery set owner = $2 where message_id = $1 returning *", [
    sent.id,
    NOW,
  ]);
  const [about] = await queries.describeMessages(db, [{ org_id: found!.org_id, message_id: sent.id }]);
  const job: Job = { ...found!, owner: BEFORE, mime: null, about: { ...about!, blob_key: null } };
  const row = async () =>
    (await db.query<Row>("select owner, attempts, lane_id from delivery where message_id = $1", [sent.id]))[0];
  return { job, row };
}

function finisher(): Finisher {
  return createFinisher(api.world, { done: () => undefined, committed: () => undefined });
}

const refused: Outcome = { ...deferredLocally("busy", "4.3.0", "local"), smtp_code: "451" };

test("an outcome of what was taken under an earlier id leaves what was taken again alone", async () => {
  const { job, row } = await taken();
  const late = finisher();
  late.push(job, refused);
  await late.drain();
  assert.deepEqual(await row(), { owner: NOW, attempts: 0, lane_id: job.lane_id });
  const own = finisher();
  own.push({ ...job, owner: NOW }, refused);
  await own.drain();
  assert.deepEqual(await row(), { owner: null, attempts: 1, lane_id: job.lane_id });
});

test("a commit that is repeated leaves alone what the same node has taken again meanwhile", async () => {
  const { job, row } = await taken();
  const own = { ...job, owner: NOW };
  const first = finisher();
  first.push(own, { ...refused, retry_at_once: true });
  await first.drain();
  const { db } = api.world;
  await db.query("update delivery set owner = $2 where message_id = $1", [job.message_id, NOW]);
  const again = finisher();
  again.push(own, refused);
  again.push(own, { ...refused, kind: "bounced" });
  await again.drain();
  assert.deepEqual(await row(), { owner: NOW, attempts: 1, lane_id: job.lane_id });
});

test("mail whose time is over before another attempt keeps what the server said last", async () => {
  const { job } = await taken();
  const own = { ...job, owner: NOW };
  const { db } = api.world;
  const finish = finisher();
  finish.push(own, refused);
  await finish.drain();
  await db.query("update delivery set owner = $2 where message_id = $1", [job.message_id, NOW]);
  finish.push({ ...own, attempts: 1 }, tooLate({ ...own, attempts: 1 }));
  await finish.drain();
  const { body } = await api.ask("GET", `/v1/emails/${job.message_id}`);
  const { status, attempts, bounce_type, bounce_code, diag_code, diag_message, bounce_class } =
    body.email.recipients[0];
  assert.deepEqual([body.email.status, status, attempts], ["expired", "expired", 1]);
  assert.deepEqual([bounce_type, bounce_code, diag_code, diag_message], ["soft", "451", "4.3.0", "busy"]);
  assert.equal(bounce_class, "expired");
  const reported = (await api.ask("GET", `/v1/emails/${job.message_id}/events`)).body.events;
  assert.deepEqual([reported.at(-1).event_type, reported.at(-1).attempt], ["expired", null]);
});

test("an arrival under an earlier id is reported as ambiguous", async () => {
  const { job, row } = await taken();
  const late = finisher();
  late.push(job, { ...refused, kind: "delivered" });
  await late.drain();
  assert.equal((await row())?.owner, NOW);
  const { body } = await api.ask("GET", `/v1/emails/${job.message_id}/events`);
  const types = (body.events as { event_type: string }[]).map(({ event_type }) => event_type);
  assert.ok(types.includes("ambiguous"), types.join());
});

test("what was taken under an earlier id is not given back, and not moved", async () => {
  const { job, row } = await taken();
  const { db } = api.world;
  await queries.returnDeliveries(db, [job], new Date(0));
  const { org_id } = job;
  const other = await laneFinder(api.world)({
    org_id,
    source_id: "00000000-0000-7000-8000-000000000001",
    domain: "other.example",
    class: 0,
  });
  await queries.moveDeliveries(db, [{ ...job, lane_id: other.id }]);
  assert.deepEqual(await row(), { owner: NOW, attempts: 0, lane_id: job.lane_id });
});

test("a delivery that is known under an earlier id is not known under this one", () => {
  const memory = createMemory();
  const key = { message_id: "m", position: 0, lane_id: 1, mime: null };
  memory.hold({ ...key, owner: BEFORE } as Job);
  memory.hold({ ...key, owner: NOW } as Job);
  memory.finish({ ...key, owner: BEFORE } as Job);
  assert.deepEqual([memory.holds({ ...key, owner: BEFORE }), memory.holds({ ...key, owner: NOW })], [false, true]);
});

test("what a dead node of the machine left behind may go once its end is committed, not before", async () => {
  const [dead] = await api.world.db.query<{ id: number }>(
    "insert into node (machine, pid, roles) values ('machine/boot/space', 999999, '{mta}') returning id",
  );
  const noted: string[] = [];
  const leases = await holdLeases(api.world, {
    roles: ["mta"],
    host: { machine: "machine/boot/space", pid: process.pid, isAlive: (pid) => pid === process.pid },
    isIdle: () => true,
    lookAround: async () => undefined,
    holders: async (_tx, _node, nodes) => {
      noted.push("shared out");
      return () => nodes;
    },
    onRegistered: () => undefined,
    onDead: async (_tx, { id }) => void noted.push(`dead ${id}`),
    onReleased: ({ id }) => void noted.push(`forgotten ${id}`),
    onLost: () => undefined,
  });
  await leases.stop();
  assert.deepEqual(noted.slice(0, 3), [`dead ${dead?.id}`, "shared out", `forgotten ${dead?.id}`]);
});

test("a process that leaves puts what did not end in doubt, in the transaction that frees it", async () => {
  const declared: number[] = [];
  const leases = await holdLeases(api.world, {
    roles: ["mta"],
    host: { machine: "machine/boot/space", pid: process.pid, isAlive: () => true },
    isIdle: () => true,
    lookAround: async () => undefined,
    holders: async (_tx, _node, nodes) => () => nodes,
    onRegistered: () => undefined,
    onDead: async (tx, dead) => {
      const [row] = await tx.query<{ found: boolean }>("select exists (select from node where id = $1) as found", [
        dead.id,
      ]);
      assert.equal(row?.found, true, "it is still there");
      declared.push(dead.id);
    },
    onReleased: () => undefined,
    onLost: () => undefined,
  });
  const node = leases.node();
  await leases.stop();
  assert.deepEqual(declared, [node]);
});

test("an outcome is found by its key, also when statistics are of a time when nothing was owned", async () => {
  const { db } = api.world;
  await db.query("update delivery set owner = null");
  await db.query("analyze delivery");
  const { job, row } = await taken();
  await db.transaction(async (tx) => {
    const scans = () => tx.query("select pg_stat_get_xact_numscans('delivery_owned'::regclass) as scans");
    const before = await scans();
    await finishing.finishDeliveries(tx, [finishRow(job)], new Date());
    assert.deepEqual(await scans(), before, "all that the node owns was looked through");
  });
  assert.equal(await row(), undefined);
});

function finishRow(job: Job): finishing.FinishRow {
  const nothing = { bounce_type: null, bounce_code: null, diag_code: null, diag_message: null, bounce_class: null };
  return {
    ...nothing,
    owner: NOW,
    had_attempts: job.attempts,
    org_id: job.org_id,
    message_id: job.message_id,
    position: job.position,
    final: true,
    status: "delivered",
    attempts: 1,
    next_attempt_at: null,
    delivered_at: new Date(),
    isp: null,
    deferred_event_at: null,
    absent_since: null,
  };
}
