// Rewritten senders: there and back, forged, aged, too long.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { rounds } from "../../test/support/rounds.ts";
import { readSrs, writeSrs } from "./srs.ts";

const DAY_MS = 86_400_000;
const now_ms = Date.UTC(2026, 10, 20);
const mac = (text: string) => createHmac("sha256", "a key").update(text).digest();
const key = { mac, now_ms };

test("a sender comes back, whatever case the mail folded it to", () => {
  const written = writeSrs("anna@example.com", key);
  assert.match(written ?? "", /^SRS0=[a-z2-7]{9}=[a-z2-7]{2}=example\.com=anna$/);
  assert.deepEqual(readSrs(written ?? "", key), { kind: "sender", sender: "anna@example.com" });
  assert.deepEqual(readSrs(written?.toLowerCase() ?? "", key), { kind: "sender", sender: "anna@example.com" });
  assert.deepEqual(readSrs(written?.toUpperCase() ?? "", key), { kind: "sender", sender: "ANNA@EXAMPLE.COM" });
});

test("what no local part can hold without quotes is not written into one", () => {
  for (const local of ["a..b", "a.", "a,b", "a@b", "a(b)", "a:b", "a\\b"]) {
    assert.equal(writeSrs(`${local}@docomo.example`, key), null, local);
  }
  assert.equal(writeSrs("root@[192.0.2.1]", key), null);
  for (const sender of [".a@b.example", "j\u00fcrgen@b.example", "a+b=c@b.example"]) {
    assert.deepEqual(readSrs(writeSrs(sender, key) ?? "", key), { kind: "sender", sender });
  }
});

test("any address comes back, or is too long or needs quotes", () => {
  const local = fc.stringMatching(/^[a-zA-Z0-9.+=_-]{1,30}$/);
  fc.assert(
    fc.property(local, fc.domain(), (name, domain) => {
      const sender = `${name}@${domain}`;
      const written = writeSrs(sender, key);
      const isLong = `SRS0=123456789=12=${domain}=${name}`.length > 64;
      if (written === null) return isLong || /^srs[01]|\.\.|\.$/i.test(name);
      const read = readSrs(written, key);
      return read.kind === "sender" && read.sender === sender && Buffer.byteLength(written) <= 64;
    }),
    { numRuns: rounds(300, 3_000) },
  );
});

test("a rewritten sender is rewritten once more, and leads back to its maker", () => {
  const first = "SRS0=abcdefghi=aa=origin.example=anna@hop.example";
  const second = writeSrs(first, key);
  assert.match(second ?? "", /^SRS1=[a-z2-7]{9}=[a-z2-7]{2}=hop\.example==abcdefghi=aa=origin\.example=anna$/);
  assert.deepEqual(readSrs(second ?? "", key), { kind: "sender", sender: first });
  const third = writeSrs(`${second}@two.example`, key);
  assert.deepEqual(readSrs(third ?? "", key), { kind: "sender", sender: first }, "the middle hop is left out");
});

test("another program's second rewriting keeps its first maker, and a broken one is a sender like others", () => {
  const theirs = "SRS1=4Xy=hop.example==abcd=aa=origin.example=anna@two.example";
  const sender = "SRS0=abcd=aa=origin.example=anna@hop.example";
  assert.deepEqual(readSrs(writeSrs(theirs, key) ?? "", key), { kind: "sender", sender });
  for (const broken of ["SRS1=x=a=@two.example", "SRS1=x@two.example", "SRS1==@two.example"]) {
    assert.deepEqual(readSrs(writeSrs(broken, key) ?? "", key), { kind: "sender", sender: broken });
  }
});

test("it is good for ten days, and not before it was written", () => {
  const written = writeSrs("anna@example.com", key) ?? "";
  const after = (days: number) => readSrs(written, { mac, now_ms: now_ms + days * DAY_MS }).kind;
  assert.deepEqual(
    [after(0), after(10), after(11), after(400), after(-1)],
    ["sender", "sender", "aged", "aged", "aged"],
  );
});

test("one changed character is enough to be refused", () => {
  const written = writeSrs("anna@example.com", key) ?? "";
  for (let at = 5; at < written.length; at += 1) {
    const changed = `${written.slice(0, at)}${written[at] === "b" ? "c" : "b"}${written.slice(at + 1)}`;
    assert.notEqual(readSrs(changed, key).kind, "sender", changed);
  }
  assert.equal(
    readSrs(written, { mac: (text) => createHmac("sha256", "another").update(text).digest(), now_ms }).kind,
    "forged",
  );
  for (const none of ["", "anna", "SRS0=x=y=z", "SRS0==aa=example.com=anna", "SRS2=abcdefghi=aa=example.com=anna"]) {
    assert.equal(readSrs(none, key).kind, "none", none);
  }
});

test("what cannot be a sender or does not fit is not written", () => {
  for (const sender of [
    "",
    "anna",
    "@example.com",
    '"a b"@example.com',
    "a b@example.com",
    `${"a".repeat(40)}@example.com`,
  ]) {
    assert.equal(writeSrs(sender, key), null, sender);
  }
});
