// That no delivery is left in a lane that nobody looks at, whatever clocks do: lanes are dropped by the database's time, and
// remembered by processes that know nothing of it.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../../../test/support/moved-clock.ts";
import { until } from "../../../test/support/until.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { dropIdleLanes, moveDeliveries, rescheduleLanes } from "../queries.ts";
import type { Job, Lane } from "../types.ts";
import { laneWatch } from "./homeless.ts";
import { isLaneGone } from "./lane-queries.ts";
import { createRehomer } from "./rehome.ts";
import { watchSteps } from "./stepped-clock.ts";

const DAY_MS = 86_400_000;
const START = "2026-11-02T09:00:00.000Z";
const OWNER = 4711;

let api: TestApi;
let dns: DnsServer;
let clock: MovedClock;

before(async () => {
  dns = await startDnsServer();
  clock = runningClock(START);
  api = await testApi({ POSTERN_DNS: dns.address }, byClock(clock));
});

beforeEach(async () => {
  clock.set(START);
  await api.world.db.execute("delete from delivery");
  await addVerifiedDomain(api, dns, "sender.example").catch(() => undefined);
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

async function send(to: string): Promise<string> {
  const body = { from: "a@sender.example", to: [to], subject: "x", text_body: "x" };
  const answer = await api.ask("POST", "/v1/send", body);
  assert.equal(answer.status, 202, JSON.stringify(answer.body));
  return answer.body.id;
}

/** The delivery as it waits, with its lane; `lane` null: nobody would ever look at it. */
async function waiting(id: string): Promise<{ lane_id: number; due_at: Date; lane: number | null; next_at: Date }> {
  const [row] = await api.world.db.query<{ lane_id: number; due_at: Date; lane: number | null; next_at: Date }>(
    `select d.lane_id, d.due_at, l.id as lane, l.next_at from delivery d left join lane l on l.id = d.lane_id
      where d.message_id = $1`,
    [id],
  );
  assert.ok(row);
  return row;
}

/**
 * Its mail is gone and nobody has used its lane for eight days. The lane goes once no transaction is left that is older than
 * its retirement, and other tests have theirs on this server.
 */
async function dropLaneOf(id: string): Promise<number> {
  const { lane_id } = await waiting(id);
  await api.world.db.execute("delete from delivery where message_id = $1", [id]);
  await rescheduleLanes(api.world.db, [lane_id], new Date(clock.now()), 0);
  clock.move(8 * DAY_MS);
  await until("the lane is dropped", async () => {
    await dropIdleLanes(api.world.db, new Date(clock.now() - 7 * DAY_MS), 5_000);
    return (await api.world.db.query("select 1 from lane where id = $1", [lane_id])).length === 0;
  });
  return lane_id;
}

test("mail sent after its remembered lane was dropped has a lane that looks at it", async () => {
  const dropped = await dropLaneOf(await send("anna@recipient.example"));
  await stayWarm();
  const ids = await Promise.all([
    send("bert@recipient.example"),
    send("carl@recipient.example"),
    send("d@other.example"),
  ]);
  for (const id of ids) {
    const { lane, lane_id, next_at, due_at } = await waiting(id);
    assert.equal(lane, lane_id);
    assert.notEqual(lane, dropped);
    assert.ok(next_at <= due_at);
  }
});

test("mail sent again by hand after its remembered lane was dropped has a lane that looks at it", async () => {
  const id = await send("erik@again.example");
  const other = await send("frida@again.example");
  await api.world.db.execute("update recipient set status = 'failed' where message_id = $1", [id]);
  await api.world.db.execute("update message set status = 'failed' where id = $1", [id]);
  await api.world.db.execute("delete from delivery where message_id = $1", [id]);
  await dropLaneOf(other);
  await stayWarm();
  const again = await api.ask("POST", `/v1/emails/${id}/retry`);
  assert.equal(again.status, 200, JSON.stringify(again.body));
  const { lane, lane_id } = await waiting(id);
  assert.equal(lane, lane_id);
});

test("mail that moves to a relay whose remembered lane was dropped finds another", async () => {
  const id = await send("gerd@moved.example");
  const [job] = await api.world.db.query<Job>("update delivery set owner = $2 where message_id = $1 returning *", [
    id,
    OWNER,
  ]);
  const [lane] = await api.world.db.query<Lane>("select * from lane where id = $1", [job!.lane_id]);
  const { findLane } = api.engine;
  const [row] = await api.world.db.query<{ domain_id: string }>("select domain_id from message where id = $1", [id]);
  const relay_domain_id = row!.domain_id;
  const remembered = await findLane({ ...lane!, relay_domain_id });
  await api.world.db.execute("delete from lane where id = $1", [remembered.id]);
  const gone = moveDeliveries(api.world.db, [{ ...job!, owner: OWNER, lane_id: remembered.id }]);
  await assert.rejects(gone, (error) => isLaneGone(error));
  const rehomer = createRehomer(api.world, { findLane, done: () => undefined, moved: () => undefined });
  rehomer.push({ lane: lane!, job: { ...job!, about: { domain_id: relay_domain_id } } as Job });
  await rehomer.drain();
  const moved = await waiting(id);
  assert.equal(moved.lane, moved.lane_id);
  assert.notEqual(moved.lane, remembered.id);
});

test("a lane that mail is being put into while it is retired is not deleted", async () => {
  const id = await send("hans@slow.example");
  const { lane_id } = await waiting(id);
  const { db } = api.world;
  await rescheduleLanes(db, [lane_id], new Date(clock.now()), 0);
  const [row] = await db.query<Record<string, unknown>>("delete from delivery where message_id = $1 returning *", [id]);
  await db.execute("update lane set next_at = 'infinity' where id = $1", [lane_id]);
  await db.transaction(async (tx) => {
    // An insert that looked at the lane before it was retired, and is not committed yet.
    await tx.execute(
      `insert into delivery (${Object.keys(row!)
        .map((name) => `"${name}"`)
        .join(", ")})
       values (${Object.keys(row!)
         .map((_, n) => `$${n + 1}`)
         .join(", ")})`,
      Object.values(row!),
    );
    for (let n = 0; n < 3; n += 1) await dropIdleLanes(db, new Date(clock.now() + DAY_MS), 5_000);
  });
  for (let n = 0; n < 3; n += 1) await dropIdleLanes(db, new Date(clock.now() + DAY_MS), 5_000);
  assert.equal((await waiting(id)).lane, lane_id);
});

test("mail whose lane is not there is counted, and has one again after the next look", async () => {
  const id = await send("ida@homeless.example");
  const gauge = async () => /^postern_deliveries_unwatched (\d+)$/m.exec(await api.world.metrics.text())?.[1];
  await laneWatch(api.world)();
  assert.equal(await gauge(), "0");
  await api.world.db.execute("update delivery set owner = $2 where message_id = $1", [id, OWNER]);
  const { lane_id } = await waiting(id);
  await api.world.db.execute("delete from lane where id = $1", [lane_id]);
  await api.world.db.execute("update delivery set owner = null where message_id = $1", [id]);
  await laneWatch(api.world)();
  const { lane, next_at, due_at } = await waiting(id);
  assert.ok(lane !== null && lane !== lane_id);
  assert.ok(next_at <= due_at);
  assert.equal(await gauge(), "0");
});

test("mail that its lane sleeps through, or that waits beyond anything that can be scheduled, is counted", async () => {
  const gauge = async () => /^postern_deliveries_unwatched (\d+)$/m.exec(await api.world.metrics.text())?.[1];
  const [asleep, ahead] = [await send("jens@asleep.example"), await send("kurt@ahead.example")];
  await api.world.db.execute("update lane set next_at = 'infinity' where id = $1", [(await waiting(asleep)).lane_id]);
  await laneWatch(api.world)();
  assert.equal(await gauge(), "0", "a sweep of the engines comes first");
  clock.move(3 * 60_000);
  await api.world.db.execute("update delivery set due_at = $2 where message_id = $1", [
    ahead,
    new Date(clock.now() + 400 * DAY_MS),
  ]);
  await laneWatch(api.world)();
  assert.equal(await gauge(), "2");
});

test("after the clock was set back 400 days, mail waits no longer than it would have", async () => {
  const steps = watchSteps(api.world);
  const before = await send("lena@early.example");
  clock.move(400 * DAY_MS);
  await stayWarm();
  const fresh = await send("max@late.example");
  await api.world.db.execute("update delivery set attempts = 3, due_at = $2 where message_id = $1", [
    before,
    new Date(clock.now() + 3_600_000),
  ]);
  await api.world.db.execute("update lane set next_at = 'infinity'");
  steps.notice();
  clock.move(-400 * DAY_MS);
  await steps.look([]);
  for (const id of [before, fresh]) {
    const { due_at, next_at } = await waiting(id);
    assert.ok(
      due_at.getTime() <= clock.now(),
      `${due_at.toISOString()} is ahead of ${new Date(clock.now()).toISOString()}`,
    );
    assert.ok(next_at <= due_at);
  }
  const [times] = await api.world.db.query<{ expires_at: Date }>(
    "select expires_at from delivery where message_id = $1",
    [fresh],
  );
  const leftMs = times!.expires_at.getTime() - clock.now();
  assert.ok(leftMs > 2.9 * DAY_MS && leftMs <= 3 * DAY_MS, "and has its three days");
});

test("mail that is scheduled for later is left alone when the clock is set back", async () => {
  const steps = watchSteps(api.world);
  const scheduled_at = new Date(clock.now() + 20 * DAY_MS).toISOString();
  const body = { from: "a@sender.example", to: ["nora@later.example"], subject: "x", text_body: "x", scheduled_at };
  const { body: sent } = await api.ask("POST", "/v1/send", body);
  clock.move(-30_000);
  await steps.look([]);
  assert.equal((await waiting(sent.id)).due_at.toISOString(), scheduled_at);
});

/** A domain that was idle for long is not held to its limits here. */
async function stayWarm(): Promise<void> {
  await api.world.db.execute("update warming set phase = 'warmed'");
}
