// Who sends from which address: nodes and slots, stand-ins, warm-up, and the choice for each message.
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { rememberRefused } from "../path/other-source.ts";
import { shareBySource } from "../queue/leases.ts";
import { giveBackAttempts, isUncounted, ration } from "../queue/ration.ts";
import type { Counted, Job, Lane } from "../types.ts";
import { choose } from "./exits.ts";
import { type Departure, holdersOf, type KnownSource } from "./sources.ts";
import { dailyLimit, warmupDay } from "./warmup.ts";

const DAY_MS = 86_400_000;
const source = (id: string, change: Partial<KnownSource> = {}): KnownSource => ({
  id,
  org_id: "org",
  pool: "pool",
  ip: `10.0.0.${id}`,
  ehlo: "a.example",
  warmup_started_at: null,
  removed_at: null,
  held_at: null,
  ...change,
});
const byId = (...sources: KnownSource[]) => new Map(sources.map((one) => [one.id, one]));

describe("the nodes that may hold an address's slots", () => {
  const addresses = new Map([
    [1, ["10.0.0.1", "10.0.0.2"]],
    [2, ["10.0.0.2"]],
    [3, []],
  ]);
  const nodes = [1, 2, 3];
  const holders = (id: string, ...all: KnownSource[]) => holdersOf(id, byId(...all), { nodes, addresses });

  it("are those that have it; all have the shared one", () => {
    assert.deepEqual(holders("1", source("1"), source("2")), [1]);
    assert.deepEqual(holders("2", source("1"), source("2")), [1, 2]);
    assert.deepEqual(holders("0", source("0", { ip: null, org_id: null, pool: null })), nodes);
  });

  it("are those with another address of its pool, when its machine is gone or it was taken out", () => {
    assert.deepEqual(holders("9", source("9"), source("2")), [1, 2]);
    assert.deepEqual(holders("9", source("9"), source("1", { pool: "other" }), source("2")), [1, 2]);
    assert.deepEqual(holders("1", source("1", { removed_at: new Date() }), source("2")), [1, 2]);
  });

  it("are all, when nobody has any of its pool: somebody has to tell, and to let mail expire", () => {
    assert.deepEqual(holders("9", source("9"), source("8")), nodes);
    assert.deepEqual(holders("1", source("1", { removed_at: new Date() })), nodes);
    assert.deepEqual(holders("9", source("9"), source("1", { org_id: "another" })), nodes);
  });
});

describe("slots", () => {
  const lease = (source_id: string, slot: number, node_id: number | null) => ({ source_id, slot, node_id });
  const of = (id: string) => (id === "a" ? [1] : [1, 2]);

  it("are shared out source by source", () => {
    const all = ["a", "b"].flatMap((id) => [0, 1, 2, 3].map((slot) => lease(id, slot, null)));
    const count = (me: number) => {
      const { take } = shareBySource(all, of, me, () => true);
      return [
        take.filter((slot) => slot.source_id === "a").length,
        take.filter((slot) => slot.source_id === "b").length,
      ];
    };
    assert.deepEqual(
      [count(1), count(2)],
      [
        [4, 2],
        [0, 2],
      ],
    );
  });

  it("are let go of by a node that may hold them no longer, once idle", () => {
    const all = [lease("a", 0, 2), lease("a", 1, 2)];
    const { take, give, drain } = shareBySource(all, of, 2, ({ slot }) => slot === 0);
    assert.deepEqual([take, give, drain], [[], [all[0]], [all[1]]]);
  });
});

describe("a warm-up", () => {
  const started = new Date("2026-11-20T23:30:00Z");
  const at = (text: string) => Date.parse(text);

  it("goes by calendar days, from 50 to no limit", () => {
    assert.deepEqual(
      ["2026-11-20T23:59:59Z", "2026-11-21T00:00:00Z", "2026-11-22T12:00:00Z"].map((text) =>
        dailyLimit(started, at(text)),
      ),
      [50, 100, 200],
    );
    assert.equal(warmupDay(started, at("2026-11-21T00:00:00Z")), 2);
    let last = 0;
    for (let day = 0; day < 17; day += 1) {
      const limit = dailyLimit(started, started.getTime() + day * DAY_MS) as number;
      assert.ok(limit > last, `day ${day}`);
      last = limit;
    }
    assert.equal(dailyLimit(started, started.getTime() + 17 * DAY_MS), null);
    assert.equal(dailyLimit(null, 0), null);
    assert.equal(dailyLimit(started, started.getTime() - 3 * DAY_MS), 50, "a clock that was set back");
  });
});

describe("what may be claimed", () => {
  const lane = (id: number, source_id: string) => ({ id, source_id }) as Lane;
  const lanes = [lane(1, "warm"), lane(2, "new"), lane(3, "new"), lane(4, "gone")];
  const wanted = lanes.map(({ id }) => ({ id, k: 30 }));
  const ofNew = { source_id: "new", day: "2026-11-20" };

  /** `room` attempts are left to the new address. */
  function book(room: number) {
    const given: [string, number][] = [];
    const departures = new Map<string, Departure>([
      ["new", { source: source("new", { warmup_started_at: new Date(0) }) }],
      ["gone", { problem: "no address" }],
    ]);
    const sources = {
      isUnlimited: (id: string) => id === "warm",
      departure: (id: string) => departures.get(id) as Departure,
      grant: async (_source: KnownSource, count: number) => Math.min(count, room),
      today: () => "2026-11-20",
      giveBack: async ({ source_id }: Counted, count: number) => void given.push([source_id, count]),
    };
    return { sources, given };
  }

  it("is cut to the attempts that a new address has left, and what was not taken is given back", async () => {
    const { sources, given } = book(40);
    const cut = await ration(sources, lanes, wanted);
    assert.deepEqual(
      [...cut.wanted].sort((a, b) => a.id - b.id),
      [
        { id: 1, k: 30 },
        { id: 2, k: 30 },
        { id: 3, k: 10 },
        { id: 4, k: 30 },
      ],
    );
    assert.deepEqual([1, 2, 3, 4].map(cut.countedOf), [undefined, ofNew, ofNew, undefined]);
    await cut.settle([...Array(25).fill({ lane_id: 2 }), { lane_id: 3 }, { lane_id: 1 }]);
    assert.deepEqual(given, [["new", 14]]);
  });

  it("is given back as a whole when a later grant fails", async () => {
    const { sources, given } = book(40);
    const gone: Departure = { source: source("gone", { warmup_started_at: new Date(0) }) };
    const departure = (id: string): Departure => (id === "gone" ? gone : sources.departure(id));
    const grant = async ({ id }: KnownSource, count: number) => {
      if (id === "gone") throw new Error("the database is away");
      return Math.min(count, 40);
    };
    await assert.rejects(ration({ ...sources, departure, grant }, lanes, wanted), /away/);
    assert.deepEqual(given, [["new", 40]]);
  });

  it("is counted before it leaves from a limited address, also where it was claimed while none of its pool could send", async () => {
    const { sources } = book(40);
    const { countedOf } = await ration(sources, lanes, wanted);
    const job = (laneId: number) => ({ counted: countedOf(laneId) });
    assert.equal(isUncounted(sources, { id: "new" }, job(4)), true, "its pool is back by now");
    assert.equal(isUncounted(sources, { id: "new" }, job(2)), false);
    assert.equal(isUncounted(sources, { id: "warm" }, job(4)), false);
  });

  it("is given back, on its own day, by mail that was put back without an attempt", async () => {
    const { sources, given } = book(40);
    const [monday, tuesday] = [ofNew, { ...ofNew, day: "2026-11-21" }];
    await giveBackAttempts(sources, [{ counted: monday }, {}, { counted: tuesday }, { counted: monday }]);
    assert.deepEqual(given, [
      ["new", 2],
      ["new", 1],
    ]);
  });

  it("is nothing from lanes whose address has none left", async () => {
    const cut = await ration(book(0).sources, lanes, wanted);
    assert.deepEqual(cut.wanted.map(({ id }) => id).sort(), [1, 4]);
  });
});

describe("a message that was refused for its address", () => {
  const job = { message_id: "m", position: 0 } as Job;
  const yesterday = { source_id: "1", day: "2026-11-20" };
  const booked: string[] = [];
  /** Each of `others` has as many attempts left. */
  const pool = (others: KnownSource[], left = 1) => ({
    hasOther: () => others.length > 0,
    sibling: () => others.find(({ id }) => !booked.includes(`none left at ${id}`)) ?? null,
    async grant({ id }: KnownSource, wanted: number) {
      booked.push(left > 0 ? `${wanted} at ${id}` : `none left at ${id}`);
      return Math.min(left, wanted);
    },
    today: () => "2026-11-21",
    giveBack: async ({ source_id, day }: Counted, count: number) =>
      void booked.push(`${count} back at ${source_id} on ${day}`),
  });
  beforeEach(() => void booked.splice(0));

  it("gets one more try from another of the pool, and no third", async () => {
    const memory = rememberRefused(pool([source("2")]));
    assert.equal(memory.avoids(job, source("1")), false);
    assert.equal(memory.note(job, { id: "1" }), true);
    assert.equal(memory.avoids(job, source("1")), true);
    assert.equal((await memory.instead(job, source("1")))?.source.id, "2");
    assert.equal(memory.avoids(job, source("2")), false);
    assert.equal(memory.note(job, { id: "2" }), false);
  });

  it("gets none where there is no other", async () => {
    const memory = rememberRefused(pool([]));
    assert.equal(memory.note(job, { id: "1" }), false);
    assert.equal(memory.avoids(job, source("1")), false);
  });

  it("is counted where it leaves from, and no longer where it was", async () => {
    const memory = rememberRefused(pool([source("2")]));
    memory.note(job, { id: "1" });
    const other = await memory.instead({ ...job, counted: yesterday }, source("1"));
    assert.deepEqual(booked, ["1 at 2", "1 back at 1 on 2026-11-20"]);
    assert.deepEqual(other?.counted, { source_id: "2", day: "2026-11-21" });
    booked.splice(0);
    await memory.instead(job, source("1"));
    assert.deepEqual(booked, ["1 at 2"], "nothing was counted at an address without a limit");
  });

  it("leaves from where it was refused when the others were taken away meanwhile", async () => {
    const others = [source("2")];
    const memory = rememberRefused(pool(others));
    memory.note(job, { id: "1" });
    others.pop();
    const { source: same, counted } = (await memory.instead({ ...job, counted: yesterday }, source("1"))) ?? {};
    assert.deepEqual([same?.id, counted, booked], ["1", yesterday, []]);
    assert.equal(memory.note(job, { id: "1" }), false, "a second refusal ends it");
  });

  it("waits where no other has an attempt left today", async () => {
    const others = pool([source("2"), source("3")], 0);
    await rememberRefused(others).instead(job, source("1"));
    const memory = rememberRefused(others);
    assert.equal(memory.note(job, { id: "1" }), true, "it does not bounce where all attempts are set aside");
    booked.splice(0);
    assert.equal(await memory.instead({ ...job, counted: yesterday }, source("1")), null);
    assert.deepEqual(booked, ["none left at 2", "none left at 3", "1 back at 1 on 2026-11-20"]);
    assert.equal(memory.avoids(job, source("1")), true);
  });
});

describe("the choice of an address", () => {
  const row = (id: string, change: Record<string, unknown> = {}) => ({
    org_id: "org",
    pool: "pool",
    id,
    weight: 1,
    warmup_started_at: null,
    granted: 0,
    bindable: true,
    ...change,
  });
  const nowMs = 10 * DAY_MS;
  const chosen = (...rows: ReturnType<typeof row>[]) =>
    new Set(Array.from({ length: 200 }, (_, n) => choose(rows, `message ${n}`, nowMs)));

  it("is the same for a message each time, and all are chosen", () => {
    assert.equal(choose([row("a"), row("b")], "m", nowMs), choose([row("a"), row("b")], "m", nowMs));
    assert.deepEqual(chosen(row("a"), row("b"), row("c")), new Set(["a", "b", "c"]));
  });

  it("passes over addresses that nobody has, or whose limit is used up, while there are others", () => {
    const full = row("full", { warmup_started_at: new Date(nowMs), granted: 50 });
    const gone = row("gone", { bindable: false });
    assert.deepEqual(chosen(row("a"), full, gone), new Set(["a"]));
    assert.deepEqual(chosen(full, gone), new Set(["full"]));
    assert.deepEqual(chosen(gone), new Set(["gone"]));
    assert.deepEqual(chosen(row("new", { warmup_started_at: new Date(nowMs), granted: 49 }), full), new Set(["new"]));
    assert.deepEqual(chosen(), new Set([null]));
  });
});
