// Whom a bounce is about, given who the message went to and whose return path it came to.
import assert from "node:assert/strict";
import { test } from "node:test";
import { apportion, type Sent } from "./apportion.ts";
import type { BounceRecipient } from "./types.ts";

const sent: Sent[] = ["anna@one.example", "Bert@two.example", "carl@xn--mnchen-3ya.example"].map((email, position) => ({
  email,
  position,
}));

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

const shortly = (findings: BounceRecipient[], position = 0) =>
  apportion(findings, sent, position).map((portion) => [
    portion.position,
    portion.finding.action,
    portion.finding.bounce_type,
    portion.is_sure,
  ]);

test("a report about the very recipient whose copy came back is sure, in any case and form of the domain", () => {
  assert.deepEqual(shortly([finding("ANNA@ONE.example")]), [[0, "failed", "hard", true]]);
  assert.deepEqual(shortly([finding("bert@two.example")], 1), [[1, "failed", "hard", true]]);
  assert.deepEqual(shortly([finding("carl@münchen.example")], 2), [[2, "failed", "hard", true]]);
  assert.deepEqual(shortly([finding(null, { original: "anna@one.example" })]), [[0, "failed", "hard", true]]);
});

test("a member of an alias or list that ours was expanded to makes ours bounce, but not surely", () => {
  const dead = finding("dead@inside.example", { original: "anna@one.example" });
  const alive = finding("a@inside.example", { original: "anna@one.example", action: "delivered", bounce_type: null });
  assert.deepEqual(shortly([dead]), [[0, "failed", "hard", false]]);
  assert.deepEqual(shortly([alive, dead]), [[0, "failed", "hard", false]]);
  assert.deepEqual(shortly([dead, finding("anna@one.example")]), [[0, "failed", "hard", true]]);
  const soft = finding("anna@one.example", { bounce_type: "soft" });
  assert.deepEqual(shortly([soft, dead]), [[0, "failed", "hard", false]]);
});

test("other recipients of the message that a report names have bounced, but not surely", () => {
  assert.deepEqual(shortly([finding("anna@one.example"), finding("bert@two.example")]), [
    [0, "failed", "hard", true],
    [1, "failed", "hard", false],
  ]);
  assert.deepEqual(shortly([finding("bert@two.example")]), [[1, "failed", "hard", false]]);
});

test("a report about a stranger is about the recipient whose copy came back, not surely; one without a name surely", () => {
  assert.deepEqual(shortly([finding("mailbox@behind.example")], 2), [[2, "failed", "hard", false]]);
  assert.deepEqual(shortly([finding(null), finding("mailbox@behind.example")], 2), [[2, "failed", "hard", false]]);
  assert.deepEqual(shortly([finding(null)], 2), [[2, "failed", "hard", true]]);
});

test("of several things said about one recipient the gravest counts", () => {
  const delayed = finding("anna@one.example", { action: "delayed", bounce_type: "soft" });
  const soft = finding("anna@one.example", { bounce_type: "soft" });
  const delivered = finding("anna@one.example", { action: "delivered", bounce_type: null });
  const all = [delivered, delayed, soft, finding("anna@one.example")];
  assert.deepEqual(shortly(all), [[0, "failed", "hard", true]]);
  assert.deepEqual(shortly(all.toReversed()), [[0, "failed", "hard", true]]);
  assert.deepEqual(shortly([delivered, delayed]), [[0, "delayed", "soft", true]]);
  assert.deepEqual(shortly([delivered, finding("x@behind.example")]), [[0, "delivered", null, true]]);
});

test("nothing said, or a position that the message does not have, is about nobody", () => {
  assert.deepEqual(shortly([]), []);
  assert.deepEqual(shortly([finding("x@behind.example")], 7), []);
});
