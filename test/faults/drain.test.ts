// The verdict must be able to fail: a harness that passes everything proves nothing.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judge, sumUp } from "./drain.ts";
import type { Stage } from "./stage.ts";

type Story = {
  acknowledged: string[];
  copies: Record<string, number>;
  doubts?: Record<string, number>;
  statuses?: Record<string, string>;
  stored?: number;
  hooks?: string[];
  died?: string[];
  broken?: number;
  failures?: string[];
};

/** A stage that has seen this story; ids and Message-IDs are the same words. */
function stageOf({
  acknowledged,
  copies,
  doubts = {},
  statuses,
  stored,
  hooks = acknowledged,
  died = [],
  broken = 0,
  failures = [],
}: Story): Stage {
  const shown = statuses ?? Object.fromEntries(acknowledged.map((id) => [id, "delivered"]));
  const answers: [word: string, rows: unknown[]][] = [
    ["from event", Object.entries(doubts).map(([message_id, count]) => ({ message_id, doubts: count }))],
    ["any($1", Object.entries(shown).map(([id, status]) => ({ id, status }))],
    ["count(*)", [{ total: stored ?? acknowledged.length }]],
  ];
  return {
    recorder: {
      all: () => acknowledged.map((id) => ({ key: id, id, message_id: id })),
      total: () => acknowledged.length,
      broken: () => broken,
      forget: () => undefined,
    },
    sink: { copies: new Map(Object.entries(copies)) },
    receiver: {
      requests: hooks.map((id) => ({ body: Buffer.from(JSON.stringify({ event: "email.delivered", email_id: id })) })),
    },
    died,
    failures: () => failures,
    forgetFailures: () => undefined,
    rows: async (text: string) => answers.find(([word]) => text.includes(word))?.[1] ?? [],
  } as unknown as Stage;
}

const whole = { acknowledged: ["a", "b"], copies: { a: 1, b: 1 } };

describe("the verdict", () => {
  it("passes when each message arrived once", async () => {
    const verdict = await judge(stageOf(whole));
    assert.deepEqual([verdict.ok, verdict.acknowledged, verdict.lost, verdict.duplicates], [true, 2, 0, 0]);
  });

  it("fails for a lost message", async () => {
    const verdict = await judge(stageOf({ ...whole, copies: { a: 1 } }));
    assert.deepEqual([verdict.ok, verdict.lost], [false, 1]);
  });

  it("passes for a copy that the timeline explains, and fails for one that it does not", async () => {
    const twice = { ...whole, copies: { a: 2, b: 1 } };
    assert.equal((await judge(stageOf({ ...twice, doubts: { a: 1 } }))).ok, true);
    const silent = await judge(stageOf(twice));
    assert.deepEqual([silent.ok, silent.duplicates, silent.flagged], [false, 1, 0]);
    assert.equal((await judge(stageOf({ ...twice, doubts: { b: 1 } }))).ok, false);
    const thrice = { ...whole, copies: { a: 3, b: 1 }, doubts: { a: 1 } };
    assert.equal((await judge(stageOf(thrice))).ok, false);
  });

  it("fails for a key that made two messages, a record that is wrong, a missing webhook, a process that died", async () => {
    assert.equal((await judge(stageOf({ ...whole, stored: 3 }))).ok, false);
    assert.equal((await judge(stageOf({ ...whole, statuses: { a: "delivered", b: "deferred" } }))).ok, false);
    assert.equal((await judge(stageOf({ ...whole, hooks: ["a"] }))).ok, false);
    assert.equal((await judge(stageOf({ ...whole, died: ["mta ended with 1"] }))).ok, false);
  });

  it("fails for a request that was answered 500, though all arrived", async () => {
    const verdict = await judge(stageOf({ ...whole, broken: 1, failures: ["why"] }));
    assert.deepEqual([verdict.ok, verdict.answered_500, verdict.failures, verdict.lost], [false, 1, ["why"], 0]);
  });

  it("of several rounds fails with one of them, and with none", async () => {
    const good = await judge(stageOf(whole));
    const bad = await judge(stageOf({ ...whole, copies: { a: 1 } }));
    assert.deepEqual([sumUp([good, good]).ok, sumUp([good, bad]).ok, sumUp([]).ok], [true, false, false]);
    assert.equal(sumUp([good, bad]).lost, 1);
  });
});
