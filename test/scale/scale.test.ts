// What `npm run scale` counts: pauses, and a verdict that can fail. And what it prints where there is no Citus.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";
import { lineOf } from "./line.ts";
import type { Played } from "./play.ts";
import type { PoolerPlayed } from "./pooler/play.ts";
import { noTimes } from "./pooler/timed-db.ts";
import { verdictOf } from "./pooler/verdict.ts";
import { createTimeline } from "./timeline.ts";

const VERDICT = {
  acknowledged: 10,
  lost: 0,
  duplicates: 1,
  flagged: 1,
  not_delivered: 0,
  webhooks_missing: 0,
  died: 0,
};
const PAUSES = { longest_pause_ms: 5, others_longest_pause_ms: 2 };

function played(sent: Partial<Played["sent"]> = {}): Played {
  return {
    sent: { ...VERDICT, extra: 0, answered_500: 0, failures: [], ok: true, ...sent },
    received: { ...VERDICT, damaged: 0, not_processed: 0, events_twice: 0, no_room: 0, put_off: 0, ok: true },
    longest_pause_ms: 5,
    moves: [],
    backup: { tables: 1, rows: 1, seconds: 1, different: [] },
    worker_killed: { worker: "127.0.0.1:1", cells: ["cell_1"], down_ms: 1, ...PAUSES },
    node_killed: { processes: 1, left: 1, held: 0, longest_pause_ms: 5 },
  };
}

describe("a timeline", () => {
  let now = 0;
  const timeline = createTimeline(() => now);
  for (const at of [100, 200, 900, 1_000, 2_500]) {
    now = at;
    timeline.note();
  }

  it("has the longest time without mail that reaches into a span", () => {
    assert.equal(timeline.longestPauseMs({ from: 0, to: 3_000 }), 1_500);
    assert.equal(timeline.longestPauseMs({ from: 150, to: 950 }), 700);
    assert.equal(timeline.longestPauseMs({ from: 950, to: 1_100 }), 1_500);
    assert.equal(timeline.longestPauseMs({ from: 110, to: 150 }), 100);
  });

  it("knows whether there was any after a moment", () => {
    assert.equal(timeline.isAfter(2_499), true);
    assert.equal(timeline.isAfter(2_500), false);
  });
});

describe("the last line", () => {
  const of = (sent: Partial<Played["sent"]>) => lineOf({ cells: 1, organizations: 2, seconds: 3 }, played(sent));

  it("sums both ways, and counts as duplicates only those that nothing explains", () => {
    const { ok, acknowledged, lost, duplicates, flagged } = of({});
    assert.deepEqual(
      { ok, acknowledged, lost, duplicates, flagged },
      { ok: true, acknowledged: 20, lost: 0, duplicates: 0, flagged: 2 },
    );
  });

  it("fails when one is lost or doubled, and when a verdict does", () => {
    for (const wrong of [{ lost: 1 }, { duplicates: 2 }, { ok: false }])
      assert.equal(of(wrong).ok, false, JSON.stringify(wrong));
  });

  it("says what is missing where there is no Citus", () => {
    const { status, stdout } = spawnSync(process.execPath, [join(import.meta.dirname, "run.ts"), "--json"], {
      encoding: "utf8",
      env: { ...process.env, POSTERN_CITUS: "/nowhere" },
    });
    assert.equal(status, 3);
    const [sentence = "", line = ""] = stdout.trim().split("\n");
    assert.match(sentence, /^not played: Citus is not installed/);
    const { skipped, ok, acknowledged } = JSON.parse(line);
    assert.deepEqual([ok, acknowledged], [false, 0]);
    assert.match(skipped, /Citus is not installed/);
  });
});

describe("the verdict on nodes behind a pooler", () => {
  const fine = (): PoolerPlayed => ({
    times: [0, 1].map(() => {
      const times = noTimes();
      for (const one of Object.values(times)) one.done = 1;
      return times;
    }),
    seen: {
      ...{ looks: 1, nodes: 2, declared_dead: 0, longest_silence_ms: 5_000, sessions_max: 4, active_max: 4 },
      ...{ waiting_max: 9, looks_with_waiting: 1, clients_max: 20, listening: 2 },
    },
    held: [{ answered: 10, unanswered: 0 }],
    accepted: ["a", "b"],
    arrived: ["b", "a"],
  });
  const verdict = (played: PoolerPlayed) => verdictOf({ nodes: 2, connections: 4, seconds: 9, held_s: 5 }, played);
  const isOk = (played: PoolerPlayed) => verdict(played).ok;

  it("fails when a node is starved or dead, when mail is lost or doubled, and when the pooler never was full", () => {
    assert.equal(isOk(fine()), true);
    const wrong: ((played: PoolerPlayed) => void)[] = [
      ({ times }) => Object.assign(times[1]?.leases ?? {}, { done: 0 }),
      ({ times }) => Object.assign(times[1]?.claim ?? {}, { unanswered: 1 }),
      ({ times }) => Object.assign(times[0]?.heartbeat ?? {}, { unanswered: 1 }),
      ({ held }) => Object.assign(held[0] ?? {}, { unanswered: 1 }),
      ({ seen }) => Object.assign(seen, { declared_dead: 1 }),
      ({ seen }) => Object.assign(seen, { longest_silence_ms: 22_000 }),
      ({ seen }) => Object.assign(seen, { waiting_max: 0 }),
      ({ arrived }) => arrived.pop(),
      ({ arrived }) => arrived.push("a"),
    ];
    for (const [n, change] of wrong.entries()) {
      const played = fine();
      change(played);
      assert.equal(isOk(played), false, `change ${n}`);
    }
    const fewSend = fine();
    Object.assign(fewSend.times[1]?.claim ?? {}, { done: 0 });
    assert.deepEqual(verdict(fewSend).faults, ["1 nodes had mail to send"]);
  });
});
