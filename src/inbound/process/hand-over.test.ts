// A forward that the process itself can send goes on from memory once it is committed; whatever happens to the commit, room that was
// reserved is used or given back, and the forward is sent by somebody.
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";
import { type Job, type Lane, laneFinder, type Outbound } from "../../outbound/outbound.ts";
import type { RawMessage } from "../../sending/types.ts";
import type { Mail, Outcome } from "../types.ts";
import { createFinisher } from "./finish.ts";
import { KEPT } from "./outcome.ts";

const NODE = 7_001;
const r: Receiving = await startTestReceiving();
after(() => r.close());

let node: ReturnType<typeof createNode>;
let notified = 0;
let serial = 0;

beforeEach(async () => {
  node = createNode();
  notified = 0;
  await r.api.world.db.execute("truncate delivery");
});

/** An engine that has room for `room` deliveries, and remembers what it gets. */
function createNode(room = Number.POSITIVE_INFINITY) {
  const state = { reserved: 0, bytes: 0, jobs: [] as Job[] };
  const outbound: Pick<Outbound, "reserve" | "release" | "offer"> = {
    reserve(_lane: Lane, bytes: number) {
      if (state.reserved >= room) return null;
      state.reserved += 1;
      state.bytes += bytes;
      return NODE;
    },
    release(_lane: Lane, bytes: number) {
      state.reserved -= 1;
      state.bytes -= bytes;
    },
    offer(_lane: Lane, job: Job) {
      state.reserved -= 1;
      state.jobs.push(job);
    },
  };
  return { state, outbound: outbound as Outbound };
}

function finisherOf(outbound: Outbound | null) {
  const { world } = r.api;
  const findLane = laneFinder(world);
  const notifyOutbound = () => {
    notified += 1;
  };
  return createFinisher(world, { findLane, outbound: () => outbound, notifyOutbound });
}

/** A mail of masked addresses that is being worked on, with its claim. */
async function claimedMail() {
  const { world, org_id } = r.api;
  serial += 1;
  const id = world.random.uuid();
  const claim_id = world.random.uuid();
  await world.db.execute(
    `insert into inbound_queue (org_id, id, raw_id, claim_id, next_attempt_at, lease_until)
       values ($1, $2, $2, $3, now(), now() + interval '1 hour')`,
    [org_id, id, claim_id],
  );
  const mail = { org_id, id, rule_ids: [], route: { alias_id: null }, replayed: false };
  return { mail: mail as unknown as Mail, claim_id, attempts: 1, faults: 0 };
}

function forward(recipient = `anna${serial}@home.example`): RawMessage {
  const { world, org_id } = r.api;
  return {
    org_id,
    id: world.random.uuid(),
    environment: "live",
    domain_id: r.domain.id,
    origin: "forward",
    message_id: `${serial}@in.example`,
    from_address: "shop@in.example",
    from_header: "shop@in.example",
    subject: "Order",
    metadata: {},
    recipient,
    envelope_from: null,
    return_path_host: "bounces.in.example",
    mime: Buffer.from("Subject: Order\r\n\r\nx\r\n"),
    blob_key: null,
    created_at: new Date(world.clock.now()),
  };
}

const outcomeOf = (forwards: RawMessage[], more: Partial<Outcome> = {}): Outcome => ({
  ...{ ...KEPT, forgets: true, ...more },
  forwards,
});

const rows = () =>
  r.api.world.db.query<{ message_id: string; owner: number | null }>(
    "select message_id, owner::int from delivery order by message_id",
  );

test("a forward is written in the node's name and offered to it once it is committed", async () => {
  const job = await claimedMail();
  const message = forward();
  const end = finisherOf(node.outbound).finish(job, outcomeOf([message]));
  assert.equal(await end, null);
  assert.deepEqual(await rows(), [{ message_id: message.id, owner: NODE }]);
  const [offered] = node.state.jobs;
  assert.deepEqual(
    [offered?.message_id, offered?.email, offered?.owner, offered?.mime?.toString()],
    [message.id, message.recipient, NODE, message.mime.toString()],
  );
  assert.equal(offered?.about.rfc_message_id, message.message_id);
  assert.deepEqual([node.state.jobs.length, node.state.reserved, notified], [1, 0, 0]);
});

test("what the node has no room for, or another process sends, is queued and said", async () => {
  node = createNode(1);
  const messages = [forward("a@home.example"), forward("b@home.example")];
  assert.equal(await finisherOf(node.outbound).finish(await claimedMail(), outcomeOf(messages)), null);
  const owners = new Map((await rows()).map(({ message_id, owner }) => [message_id, owner]));
  assert.deepEqual(
    messages.map(({ id }) => owners.get(id)),
    [NODE, null],
  );
  assert.deepEqual([node.state.jobs.length, node.state.reserved, notified], [1, 0, 1]);
  const other = forward();
  assert.equal(await finisherOf(null).finish(await claimedMail(), outcomeOf([other])), null);
  assert.equal(notified, 2);
});

test("a commit that fails gives the room back and offers nothing", async () => {
  const failing = outcomeOf([forward()], { also: () => Promise.reject(new Error("not today")) });
  const failure = await finisherOf(node.outbound).finish(await claimedMail(), failing);
  assert.match(String(failure), /not today/);
  const { jobs, reserved, bytes } = node.state;
  assert.deepEqual([await rows(), jobs, reserved, bytes], [[], [], 0, 0]);
});

test("a mail whose claim lapsed is finished by nobody here: its room is given back", async () => {
  const job = await claimedMail();
  const lapsed = { ...job, claim_id: r.api.world.random.uuid() };
  assert.equal(await finisherOf(node.outbound).finish(lapsed, outcomeOf([forward()])), null);
  assert.deepEqual([await rows(), node.state.jobs, node.state.reserved, notified], [[], [], 0, 0]);
});

test("a forward whose lane was dropped since it was looked up is queued under the new one, and claimed later", async () => {
  const { db } = r.api.world;
  const finisher = finisherOf(node.outbound);
  assert.equal(await finisher.finish(await claimedMail(), outcomeOf([forward("c@gone.example")])), null);
  assert.equal(node.state.jobs.length, 1);
  await db.execute("delete from delivery");
  await db.execute("delete from lane where domain = 'gone.example'");
  const again = forward("c@gone.example");
  assert.equal(await finisher.finish(await claimedMail(), outcomeOf([again])), null);
  assert.deepEqual(await rows(), [{ message_id: again.id, owner: null }]);
  assert.deepEqual([node.state.jobs.length, node.state.reserved, notified], [1, 0, 1]);
});
