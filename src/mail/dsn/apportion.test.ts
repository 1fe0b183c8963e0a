// What a bounce says about the recipient whose return path it came to.
import assert from "node:assert/strict";
import { test } from "node:test";
import { apportion } from "./apportion.ts";
import type { BounceRecipient } from "./types.ts";

function finding(email: string | null, more: Partial<BounceRecipient> = {}): BounceRecipient {
  return {
    email,
    original: null,
    action: "failed",
    status: "5.1.1",
    smtp_code: "550",
    diagnostic: "",
    bounce_type: "hard",
    class: "invalid_recipient",
    suppress: true,
    permanent: true,
    ...more,
  };
}

const anna = "anna@one.example";

function shortly(findings: BounceRecipient[], email = anna) {
  const portion = apportion(findings, email);
  return portion && [portion.finding.action, portion.finding.bounce_type, portion.is_sure];
}

test("a report about the very recipient whose copy came back is sure, in any case and form of the domain", () => {
  assert.deepEqual(shortly([finding("ANNA@ONE.example")]), ["failed", "hard", true]);
  assert.deepEqual(shortly([finding("bert@two.example")], "Bert@two.example"), ["failed", "hard", true]);
  assert.deepEqual(shortly([finding("carl@münchen.example")], "carl@xn--mnchen-3ya.example"), ["failed", "hard", true]);
  assert.deepEqual(shortly([finding(null, { original: anna })]), ["failed", "hard", true]);
});

test("a member of an alias or list that ours was expanded to makes ours bounce, but not surely", () => {
  const dead = finding("dead@inside.example", { original: anna });
  const alive = finding("a@inside.example", { original: anna, action: "delivered", bounce_type: null });
  assert.deepEqual(shortly([dead]), ["failed", "hard", false]);
  assert.deepEqual(shortly([alive, dead]), ["failed", "hard", false]);
  assert.deepEqual(shortly([dead, finding(anna)]), ["failed", "hard", true]);
  const soft = finding(anna, { bounce_type: "soft" });
  assert.deepEqual(shortly([soft, dead]), ["failed", "hard", false]);
});

test("what a report says of others, recipients of the message too, is not said of the one whose copy came back", () => {
  const delivered = finding(anna, { action: "delivered", bounce_type: null });
  assert.deepEqual(shortly([delivered, finding("bert@two.example")]), ["delivered", null, true]);
  const soft = finding(anna, { bounce_type: "soft" });
  assert.deepEqual(shortly([finding("bert@two.example"), soft]), ["failed", "soft", true]);
});

test("a report about somebody else is about the recipient whose copy came back, not surely; one without a name surely", () => {
  assert.deepEqual(shortly([finding("mailbox@behind.example")]), ["failed", "hard", false]);
  assert.deepEqual(shortly([finding(null), finding("mailbox@behind.example")]), ["failed", "hard", false]);
  assert.deepEqual(shortly([finding(null)]), ["failed", "hard", true]);
});

test("of several things said about one recipient the gravest counts", () => {
  const delayed = finding(anna, { action: "delayed", bounce_type: "soft" });
  const soft = finding(anna, { bounce_type: "soft" });
  const delivered = finding(anna, { action: "delivered", bounce_type: null });
  const all = [delivered, delayed, soft, finding(anna)];
  assert.deepEqual(shortly(all), ["failed", "hard", true]);
  assert.deepEqual(shortly(all.toReversed()), ["failed", "hard", true]);
  assert.deepEqual(shortly([delivered, delayed]), ["delayed", "soft", true]);
});

test("nothing said is about nobody", () => {
  assert.equal(shortly([]), null);
});
