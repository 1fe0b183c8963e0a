// The model against PostgreSQL: the same random statements of the engine on both, and the same rows after each. What the
// simulation says of the engine holds only as far as this does.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as finishing from "../../src/outbound/path/finish-queries.ts";
import * as queries from "../../src/outbound/queries.ts";
import * as healing from "../../src/outbound/queue/lane-queries.ts";
import * as nodes from "../../src/outbound/queue/node-queries.ts";
import { type Db, openDb, type Query, type Tx } from "../../src/platform/database/db.ts";
import { makePartitions } from "../../src/platform/database/partitions.ts";
import { createRandom } from "../../src/platform/random.ts";
import { type Chance, chanceOf } from "../faults/seeded.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { rounds } from "../support/rounds.ts";
import { createOutboundRows, type DeliveryRow, keyOf, outboundStatements, SOURCE_ID, wake } from "./outbound-rows.ts";
import { readArray } from "./read-array.ts";
import type { Universe } from "./universe.ts";

const STEPS = 600;
const SEEDS = [1, 2, 3].slice(0, rounds(1, 3));
const SLOTS = 16;
const DOMAINS = ["a.example", "b.example", "c.example"];
const ORG_ID = "00000000-0000-7000-8000-00000000000a";
const MINUTE_MS = 60_000;

let database: TestDatabase;
let db: Db;

before(async () => {
  database = await testDatabase();
  db = openDb(database.url, { onError: () => undefined });
  await makePartitions(db, Date.now());
  await db.query("insert into organization (id, name, plan, state) values ($1, 'x', 'scale', 'active')", [ORG_ID]);
});

after(async () => {
  await db?.close();
  await database?.drop();
});

/** One of the two, with the names it gave to what both know by other names. */
type Side = {
  query: Query;
  nodes: number[];
  lanes: Map<string, number>;
  insert(row: DeliveryRow): Promise<void>;
  state(): Promise<unknown>;
};

type Turn = { chance: Chance; now: number; live: { message_id: string; position: number }[] };
/** What a statement returned, in words that both sides share. */
type Step = (side: Side, turn: Turn) => Promise<unknown>;

function realSide(): Side {
  const nodeIds: number[] = [];
  const lanes = new Map<string, number>();
  return {
    query: { query: db.query, execute: db.execute },
    nodes: nodeIds,
    lanes,
    async insert(row) {
      await db.query(
        `insert into recipient (org_id, message_id, position, email, kind, status) values ($1, $2, $3, $4, 'to', 'queued')`,
        [row.org_id, row.message_id, row.position, row.email],
      );
      await db.query(
        `with d as (
           insert into delivery (org_id, message_id, position, lane_id, email, due_at, created_at, expires_at, owner, return_path_host)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'x') returning lane_id, due_at, owner)
         update lane set next_at = d.due_at from d where d.owner is null and lane.id = d.lane_id and lane.next_at > d.due_at`,
        [
          ...[row.org_id, row.message_id, row.position, row.lane_id, row.email],
          ...[new Date(row.due_at), new Date(row.created_at), new Date(row.expires_at), row.owner],
        ],
      );
    },
    async state() {
      const [deliveries, laneRows, recipients, nodeRows, leases] = await Promise.all([
        db.query("select message_id, lane_id, due_at, attempts, owner from delivery order by message_id"),
        db.query("select domain, next_at, paused_until from lane order by domain"),
        db.query("select message_id, status from recipient order by message_id"),
        db.query("select id from node order by id"),
        db.query("select slot, node_id from lease order by slot"),
      ]);
      return shown({ nodes: nodeIds, lanes }, {
        deliveries,
        lanes: laneRows,
        recipients,
        nodes: nodeRows,
        leases,
      } as never);
    },
  };
}

function modelSide(): Side {
  const rows = createOutboundRows();
  const universe = { monotonic: () => 0, wall: () => 0 } as unknown as Universe;
  const statements = outboundStatements(universe, rows, {});
  const run = (text: string, values: readonly unknown[] = []) => {
    const statement = statements.get(text);
    if (!statement) throw new Error(`the model knows no such statement: ${text}`);
    return statement(values.map(readArray));
  };
  const nodeIds: number[] = [];
  const lanes = new Map<string, number>();
  return {
    query: {
      query: async (text, values) => run(text, values) as never,
      execute: async (text, values) => Number(run(text, values)),
    },
    nodes: nodeIds,
    lanes,
    async insert(row) {
      const { org_id, message_id, position, email } = row;
      rows.deliveries.set(keyOf(message_id, position), { ...row });
      rows.recipients.set(keyOf(message_id, position), { org_id, message_id, position, email, status: "queued" });
      if (row.owner === null) wake(rows, row.lane_id, row.due_at);
    },
    async state() {
      const by =
        <T>(key: keyof T) =>
        (a: T, b: T) =>
          a[key] < b[key] ? -1 : 1;
      return shown(
        { nodes: nodeIds, lanes },
        {
          deliveries: [...rows.deliveries.values()].sort(by("message_id")),
          lanes: [...rows.lanes.values()].sort(by("domain")),
          recipients: [...rows.recipients.values()].sort(by("message_id")),
          nodes: [...rows.nodes.values()].sort(by("id")),
          leases: [...rows.leases.values()].sort(by("slot")),
        },
      );
    },
  };
}

type Tables = {
  deliveries: Pick<DeliveryRow, "message_id" | "lane_id" | "due_at" | "attempts" | "owner">[];
  lanes: { domain: string; next_at: number; paused_until: number | null }[];
  recipients: { message_id: string; status: string }[];
  nodes: { id: number }[];
  leases: { slot: number; node_id: number | null }[];
};

/** With nodes by the order they came in, lanes by their domain, times as numbers. */
function shown(side: Pick<Side, "nodes" | "lanes">, tables: Tables): unknown {
  const nodeOf = (id: number | null) => (id === null ? null : side.nodes.indexOf(id));
  const laneOf = (id: number) => [...side.lanes].find(([, lane]) => lane === id)?.[0];
  const ms = (at: number | Date | null) => (at === null ? null : at instanceof Date ? at.getTime() : Number(at));
  return {
    deliveries: tables.deliveries.map((row) => [
      row.message_id,
      laneOf(row.lane_id),
      ms(row.due_at),
      row.attempts,
      nodeOf(row.owner),
    ]),
    lanes: tables.lanes.map((row) => [row.domain, ms(row.next_at), ms(row.paused_until)]),
    recipients: tables.recipients.map((row) => [row.message_id, row.status]),
    nodes: tables.nodes.map(({ id }) => nodeOf(id)),
    leases: tables.leases.map((row) => [row.slot, nodeOf(row.node_id)]),
  };
}

// --- steps ------------------------------------------------------------------------------------------------------------

const SLOTS_OF_ALL = Array.from({ length: SLOTS }, (_, slot) => ({ source_id: SOURCE_ID, slot }));

const register: Step = async ({ query, nodes: known }) => {
  const [row] = await nodes.registerNode(query as Db, "machine", 1, ["mta"]);
  known.push(row!.id);
};

const makeLanes: Step = async ({ query, lanes }, { now }) => {
  const wanted = DOMAINS.map((domain, n) => ({
    ...{ org_id: ORG_ID, source_id: SOURCE_ID, domain, class: 0, slot: n, relay_domain_id: null },
  }));
  for (const lane of await queries.upsertLanes(query as Db, wanted, new Date(now))) lanes.set(lane.domain, lane.id);
};

function nodeOf(side: Side, chance: Chance): number {
  return side.nodes[chance.between(0, side.nodes.length - 1)] as number;
}

function laneIds(side: Side, chance: Chance): number[] {
  return DOMAINS.filter(() => chance.float() < 0.6).map((domain) => side.lanes.get(domain) as number);
}

const names = (rows: { message_id: string }[]): string[] => rows.map(({ message_id }) => message_id).sort();

const STEPS_BY_NAME: Record<string, Step> = {
  claim: async (side, { chance, now }) => {
    const node = nodeOf(side, chance);
    const lanes = laneIds(side, chance).map((id) => ({ id, k: chance.between(1, 3) }));
    return names(await queries.claimDue(side.query as Db, node, lanes, { now: new Date(now), mark: null }));
  },
  "claim expired": async (side, { chance, now }) => {
    const node = nodeOf(side, chance);
    const limits = { now: new Date(now), mark: null, limit: 100, suspended: chance.float() < 0.2 ? [ORG_ID] : [] };
    return names(await queries.claimExpired(side.query as Db, node, SLOTS_OF_ALL, limits));
  },
  finish: async (side, { chance, now, live }) => {
    const rows = live.filter(() => chance.float() < 0.2).map((key) => finishRow(side, { key, chance, now }));
    return names(await finishing.finishDeliveries(side.query as Tx, rows, new Date(now)));
  },
  "give back": async (side, { chance, now, live }) => {
    const all = live.filter(() => chance.float() < 0.2);
    // Rows that become due at the same moment have no order, and the two need not choose alike.
    const isLater = chance.float() < 0.3;
    const given = isLater ? all.slice(0, 1) : all;
    const rows = given.map((key) => ({ ...key, org_id: ORG_ID, owner: nodeOf(side, chance) }));
    await queries.returnDeliveries(side.query as Db, rows, new Date(isLater ? momentOf(now, chance) : 0));
  },
  "look for lanes": async (side, { chance, now }) => {
    const held = DOMAINS.filter(() => chance.float() < 0.1);
    const asked = { busy: [], held, now: new Date(now), limit: 100 };
    return (await queries.dueLanes(side.query as Db, SLOTS_OF_ALL, asked)).map(({ domain }) => domain).sort();
  },
  reschedule: async (side, { chance, now }) => {
    const lanes = laneIds(side, chance);
    const rows = await queries.rescheduleLanes(side.query as Db, lanes, new Date(now), chance.pick([0, 2_000]));
    return rows.map(({ asleep }) => asleep).sort();
  },
  pause: async (side, { chance, now }) => {
    await queries.pauseLanes(side.query as Db, laneIds(side, chance), new Date(now + 5 * MINUTE_MS), "dead");
  },
  resume: async (side, { chance, now }) => {
    await queries.resumeLanes(side.query as Db, laneIds(side, chance), new Date(now));
  },
  "wake the forgotten": async ({ query }, { now }) =>
    void (await queries.wakeForgottenLanes(query as Db, SLOTS_OF_ALL, new Date(now))),
  "bring back what is ahead": async ({ query }, { chance, now }) => {
    const at = now - chance.pick([0, 20, 400]) * MINUTE_MS;
    const limits = { accepted_after: new Date(at + MINUTE_MS), retried_after: new Date(at + 9 * MINUTE_MS) };
    await healing.bringBack(query as Db, { now: new Date(at), ...limits });
  },
  "unpark what is parked for too long": async ({ query }, { chance, now }) =>
    healing.unparkBeyond(query as Db, SLOTS_OF_ALL, new Date(now), new Date(now + chance.between(0, 9) * MINUTE_MS)),
  "find what is owned": async (side, { chance }) =>
    names(await queries.ownedKeys(side.query as Db, nodeOf(side, chance))),
  "find what is in doubt": async (side, { chance, live }) => {
    const node = nodeOf(side, chance);
    const attempts = live.map((key) => ({ ...key, attempts: chance.between(0, 2) }));
    return names(await queries.ownedAmong(side.query as Tx, node, attempts));
  },
  "share out": async (side, { chance }) => {
    const slots = SLOTS_OF_ALL.filter(() => chance.float() < 0.5);
    await nodes.setLeases(side.query as Tx, chance.float() < 0.2 ? null : nodeOf(side, chance), slots);
  },
  heartbeat: async (side, { chance }) => nodes.heartbeat(side.query as Db, nodeOf(side, chance)),
  bury: async (side, turn) => {
    const dead = turn.chance.float() < 0.4 ? [nodeOf(side, turn.chance)] : [];
    const buried = await nodes.declareNodesDead(side.query as Tx, 3_600, dead);
    await nodes.freeLeases(side.query as Tx);
    await nodes.freeOrphans(side.query as Tx);
    if (buried.length > 0) await register(side, turn);
    return buried.length;
  },
};

/** Within minutes, and hardly ever the same twice. */
function momentOf(now: number, { between }: Chance): number {
  return now + between(MINUTE_MS, 10 * MINUTE_MS);
}

function finishRow(
  side: Side,
  { key, chance, now }: { key: Turn["live"][0]; chance: Chance; now: number },
): finishing.FinishRow {
  const final = chance.float() < 0.3;
  const none = { delivered_at: null, bounce_type: null, bounce_code: null, diag_code: null, diag_message: null };
  return {
    ...{ ...key, ...none, org_id: ORG_ID, owner: nodeOf(side, chance), final },
    status: final ? "delivered" : "deferred",
    attempts: chance.between(1, 3),
    had_attempts: chance.between(0, 2),
    next_attempt_at: final ? null : new Date(momentOf(now, chance)),
    ...{ bounce_class: null, isp: null, deferred_event_at: null, absent_since: null },
  };
}

for (const seed of SEEDS) {
  test(`the model does what PostgreSQL does, statement by statement (seed ${seed})`, async () => {
    for (const table of ["delivery", "recipient", "lane", "node"]) await db.query(`delete from ${table}`);
    await db.query("update lease set node_id = null");
    const [real, model] = [realSide(), modelSide()];
    const chance = chanceOf(seed);
    const random = createRandom({ now: () => Date.now() });
    const live: Turn["live"] = [];
    let now = Math.floor(Date.now() / 1000) * 1000;
    for (const side of [real, model]) {
      const turn = { chance, now, live };
      await register(side, turn);
      await register(side, turn);
      await makeLanes(side, turn);
    }
    for (let step = 0; step < STEPS; step += 1) {
      now += chance.between(0, 2) * MINUTE_MS;
      if (chance.float() < 0.15) await insertBoth([real, model], { chance, now, live }, random.uuid());
      assert.deepEqual(await model.state(), await real.state(), `step ${step}: after the insert`);
      const name = chance.pick(Object.keys(STEPS_BY_NAME));
      // Both draw the same.
      const drawn = chance.between(0, 2 ** 31);
      const [expected, got] = [
        await STEPS_BY_NAME[name]!(real, { chance: chanceOf(drawn), now, live }),
        await STEPS_BY_NAME[name]!(model, { chance: chanceOf(drawn), now, live }),
      ];
      assert.deepEqual(got, expected, `step ${step}, ${name}: what it returned`);
      assert.deepEqual(await model.state(), await real.state(), `step ${step}, ${name}: the rows behind it`);
    }
    assert.ok(live.length > 30, "there was something to do it with");
  });
}

async function insertBoth(sides: Side[], { chance, now, live }: Turn, message_id: string): Promise<void> {
  const domain = chance.pick(DOMAINS);
  const owner = chance.float() < 0.3 ? chance.between(0, (sides[0] as Side).nodes.length - 1) : null;
  const due_at = now + chance.between(-2, 5) * MINUTE_MS + live.length;
  const expires_at = now + chance.pick([1, 30, 4_000]) * MINUTE_MS;
  for (const side of sides) {
    const lane_id = side.lanes.get(domain) as number;
    const node = owner === null ? null : (side.nodes[owner] as number);
    const dates = { due_at, expires_at, created_at: now, deferred_event_at: null, absent_since: null };
    const email = `someone@${domain}`;
    await side.insert({ org_id: ORG_ID, message_id, position: 0, lane_id, email, attempts: 0, owner: node, ...dates });
  }
  live.push({ message_id, position: 0 });
}
