// The check of signatures must be able to fail.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, it } from "node:test";
import type { SinkRequest } from "../support/webhook-sink.ts";
import { type Checked, checkAll, type Epoch } from "./rotation.ts";

const HISTORY: Epoch[] = [
  { secret: "whsec_a", asked_ms: 1_000_000, answered_ms: 1_000_100, previous_until_ms: 0 },
  { secret: "whsec_b", asked_ms: 2_000_000, answered_ms: 2_000_100, previous_until_ms: 2_100_000 },
];

function signed(t: number, secrets: string[]): SinkRequest {
  const body = Buffer.from("{}");
  const v1 = secrets.map((secret) => `v1=${createHmac("sha256", secret).update(`${t}.{}`).digest("hex")}`);
  return { headers: { "x-service-signature": [`t=${t}`, ...v1].join(",") }, body } as unknown as SinkRequest;
}

function check(t: number, secrets: string[]): Checked {
  const checked = { requests: 0, before_edge: 0, behind_edge: 0, with_two: 0, with_one: 0, with_none: 0, wrong: 0 };
  checkAll([signed(t, secrets)], HISTORY, checked);
  return checked;
}

describe("the check of signatures", () => {
  it("takes two while the grace lasts and one before and after", () => {
    assert.equal(check(1_500, ["whsec_a"]).wrong, 0);
    assert.equal(check(2_050, ["whsec_b", "whsec_a"]).wrong, 0);
    assert.deepEqual(check(2_099, ["whsec_b", "whsec_a"]), {
      requests: 1,
      before_edge: 1,
      behind_edge: 0,
      with_two: 1,
      with_one: 0,
      with_none: 0,
      wrong: 0,
    });
    const behind = check(2_100, ["whsec_b"]);
    assert.deepEqual([behind.wrong, behind.behind_edge, behind.with_one], [0, 1, 1]);
  });

  it("finds one that is missing, one too many, the wrong one, the wrong order and none", () => {
    assert.equal(check(2_050, ["whsec_b"]).wrong, 1);
    assert.equal(check(2_101, ["whsec_b", "whsec_a"]).wrong, 1);
    assert.equal(check(2_101, ["whsec_a"]).wrong, 1);
    assert.equal(check(2_050, ["whsec_a", "whsec_b"]).wrong, 1);
    assert.equal(check(2_050, ["whsec_b", "whsec_x"]).wrong, 1);
    const none = check(2_050, []);
    assert.deepEqual([none.wrong, none.with_none], [1, 1]);
  });
});
