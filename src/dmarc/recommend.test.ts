import assert from "node:assert/strict";
import { test } from "node:test";
import type { PublishedPolicy } from "../mail/dmarc-report/types.ts";
import { type Observed, recommend } from "./recommend.ts";

const policy = (p: PublishedPolicy["p"], more: Partial<PublishedPolicy> = {}): PublishedPolicy => ({
  ...{ domain: "example.com", p, sp: null, np: null, adkim: null, aspf: null, pct: null, fo: null },
  ...{ testing: null, discovery_method: null, ...more },
});
const observed = (more: Partial<Observed> = {}): Observed => ({
  ...{ policy: policy("none"), total: 1_000, aligned: 1_000, days: 20, failing: [], ...more },
});

test("one step at a time, when all mail passes for long enough", () => {
  assert.equal(recommend(observed()).next_policy, "quarantine");
  assert.match(recommend(observed()).reason, /100\.0 % of 1000 messages in 20 days pass/);
  assert.equal(recommend(observed({ policy: policy("quarantine") })).next_policy, "reject");
  assert.equal(recommend(observed({ policy: policy("reject") })).next_policy, "reject");
});

test("nothing is recommended on too little", () => {
  assert.deepEqual(recommend(observed({ total: 0, aligned: 0, policy: null })), {
    ...{ next_policy: null, blocking_sources: [] },
    reason: "No counted report yet: nothing is known about the mail of this domain.",
  });
  assert.equal(recommend(observed({ days: 13 })).next_policy, "none");
  assert.match(
    recommend(observed({ total: 99, aligned: 99 })).reason,
    /Too little to judge by: 99 messages in 20 days/,
  );
});

test("a source that fails for more than half a percent blocks, whoever it is, but for a forwarder", () => {
  const failing = (classification: "unknown" | "authorised" | "forwarder", failed: number) =>
    recommend(observed({ aligned: 1_000 - failed, failing: [{ source_ip: "192.0.2.9", failed, classification }] }));
  assert.deepEqual(failing("authorised", 6).blocking_sources, ["192.0.2.9"]);
  assert.match(failing("authorised", 6).reason, /1 of them known to be yours/);
  assert.match(failing("unknown", 6).reason, /those that are yours/);
  assert.equal(failing("unknown", 5).next_policy, "quarantine");
  assert.equal(failing("forwarder", 300).next_policy, "quarantine");
});

test("many small failures hold back as well", () => {
  const failing = Array.from({ length: 10 }, (_, at) => ({
    ...{ source_ip: `192.0.2.${at}`, failed: 4, classification: "unknown" as const },
  }));
  const reported = recommend(observed({ aligned: 960, failing }));
  assert.equal(reported.next_policy, "none");
  assert.match(reported.reason, /96\.0 % of the mail passes/);
});

test("a policy in test mode is first applied to all mail", () => {
  const testing = recommend(observed({ policy: policy("quarantine", { testing: true }) }));
  assert.equal(testing.next_policy, "quarantine");
  assert.match(testing.reason, /remove pct= and t=y/);
  assert.equal(recommend(observed({ policy: policy("reject", { pct: 20 }) })).next_policy, "reject");
  assert.match(recommend(observed({ policy: policy("reject", { pct: 20 }) })).reason, /apply to all mail/);
});
