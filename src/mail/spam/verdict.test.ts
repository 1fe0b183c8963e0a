// What is done with a mail by its domain's settings.
import assert from "node:assert/strict";
import { test } from "node:test";
import { disorder, type Evidence, rule, type Verdict } from "./verdict.ts";

const thresholds = { tag: 5, quarantine: 8, reject: 15 };
const off = { tag: null, quarantine: null, reject: null };
const dmarc_action = { reject: "quarantine", quarantine: "tag" } as const;
const clean: Evidence = { score: 0, insists: false, dmarc_asks: null, blocked: false };

test("the score decides by the highest threshold that it reaches", () => {
  const cases: [number, Verdict][] = [
    [-3, "ham"],
    [4.99, "ham"],
    [5, "tag"],
    [7.9, "tag"],
    [8, "quarantine"],
    [14.9, "quarantine"],
    [15, "reject"],
    [1_000, "reject"],
  ];
  for (const [score, verdict] of cases) {
    assert.equal(rule({ ...clean, score }, { thresholds, dmarc_action }).verdict, verdict, String(score));
  }
  assert.deepEqual(rule({ ...clean, score: 9.5 }, { thresholds, dmarc_action }), {
    verdict: "quarantine",
    reason: "its spam score is 9.5",
  });
});

test("a threshold that is off is never reached", () => {
  const at = (score: number, more: object) =>
    rule({ ...clean, score }, { thresholds: { ...thresholds, ...more }, dmarc_action }).verdict;
  assert.deepEqual([at(99, { reject: null }), at(9, { quarantine: null }), at(99, off)], ["quarantine", "tag", "ham"]);
});

test("what an engine insists on is refused whatever the score; where refusing is off, it gets the strongest that is on", () => {
  const insisted = (more: object) =>
    rule({ ...clean, insists: true, score: 1_000 }, { thresholds: { ...thresholds, ...more }, dmarc_action });
  assert.deepEqual(insisted({ reject: 1_001 }), { verdict: "reject", reason: "it is spam beyond doubt" });
  assert.deepEqual(insisted({ reject: null }), { verdict: "quarantine", reason: "it is spam beyond doubt" });
  assert.equal(insisted({ reject: null, quarantine: null }).verdict, "tag");
  assert.deepEqual(insisted(off), { verdict: "ham", reason: null });
});

test("who is blocked is refused whatever the thresholds, and DMARC by the domain's wish", () => {
  const settings = { thresholds: off, dmarc_action };
  assert.deepEqual(rule({ ...clean, blocked: true }, settings), {
    verdict: "reject",
    reason: "the sender is blocked",
  });
  assert.equal(rule({ ...clean, dmarc_asks: "reject" }, settings).verdict, "quarantine");
  assert.equal(rule({ ...clean, dmarc_asks: "quarantine" }, settings).verdict, "tag");
  const none = { thresholds, dmarc_action: { reject: "none", quarantine: "none" } as const };
  assert.equal(rule({ ...clean, dmarc_asks: "reject" }, none).verdict, "ham");
  assert.equal(rule({ ...clean, dmarc_asks: "reject", score: 20 }, settings).verdict, "quarantine");
  assert.equal(rule({ ...clean, dmarc_asks: "reject", score: 20 }, { thresholds, dmarc_action }).verdict, "reject");
});

test("thresholds out of order are found, those that are off left out", () => {
  assert.equal(disorder(thresholds), null);
  assert.equal(disorder({ tag: 5, quarantine: 5, reject: 5 }), null);
  assert.deepEqual(disorder({ tag: 9, quarantine: 8, reject: 15 }), { later: "quarantine", earlier: "tag" });
  assert.deepEqual(disorder({ tag: 5, quarantine: null, reject: 4 }), { later: "reject", earlier: "tag" });
  assert.equal(disorder({ tag: null, quarantine: 3, reject: null }), null);
});
