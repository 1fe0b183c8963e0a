import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { startProcessorTime } from "../../../../test/support/processor-time.ts";
import { rounds } from "../../../../test/support/rounds.ts";
import { readSubmittedHead, type SubmittedHead } from "./submitted-head.ts";

const OWN = "From: Shop <orders@sender.example>";

function message(...lines: string[]): Buffer {
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\nbody\r\n`);
}

function read(...lines: string[]): SubmittedHead {
  const result = readSubmittedHead(message(...lines));
  assert.ok(result.ok, JSON.stringify(result));
  return result.head;
}

function problemOf(bytes: Buffer): string {
  const result = readSubmittedHead(bytes);
  assert.ok(!result.ok);
  return `${result.problem}: ${result.reason}`;
}

describe("readSubmittedHead", () => {
  it("reads what the record of the e-mail needs", () => {
    const head = read(
      "From: =?utf-8?q?Sh=C3=B6p?= <Orders@SENDER.example>",
      "To: Anna <Anna@recipient.example>, team: b@recipient.example;",
      "Cc: c@recipient.example (C)",
      "Reply-To: help@sender.example",
      "Subject: =?utf-8?b?R3LDvMOfZQ==?= aus",
      "  Berlin",
      "Date: Fri, 20 Nov 2026 10:00:00 +0000",
      "Message-ID: <x.1@sender.example>",
    );
    assert.deepEqual([head.from.name, head.from.address.email], ["Shöp", "Orders@sender.example"]);
    assert.deepEqual(
      [[...head.to], [...head.cc]],
      [["anna@recipient.example", "b@recipient.example"], ["c@recipient.example"]],
    );
    assert.deepEqual([head.reply_to, head.subject], [["help@sender.example"], "Grüße aus  Berlin"]);
    assert.deepEqual([head.message_id, head.has_date], ["x.1@sender.example", true]);
  });

  it("keeps the fields as they were, but for those that must not leave", () => {
    const kept = [
      OWN,
      "To: a@b.example,",
      "\tc@d.example",
      "X-Odd:   spaces   stay",
      "List-Unsubscribe: <https://x.example>",
    ];
    const gone = [
      "Bcc: secret@b.example,",
      " other@b.example",
      "return-path: <x@y.example>",
      "Resent-Bcc: q@b.example",
    ];
    const own = ["X-Service-Tag: a", "X-Service-Metadata-Order: 7", "X-Postern-Id: forged", "X-SERVICE-Anything: x"];
    const head = read(...gone, ...kept, ...own);
    assert.equal(Buffer.concat(head.kept).toString(), `${kept.join("\r\n")}\r\n`);
    assert.deepEqual(head.tags, ["a"]);
    assert.deepEqual([...head.metadata], [["order", "7"]]);
  });

  it("reads tags and metadata with encoded words, names in any case", () => {
    const head = read(
      OWN,
      "X-Service-Tag: =?utf-8?q?gr=C3=BCn?=",
      "x-service-tag: b",
      "X-Service-Metadata-Order_Id: 17",
      "X-Service-Metadata-__proto__: y",
    );
    assert.deepEqual(head.tags, ["grün", "b"]);
    assert.deepEqual(
      [...head.metadata],
      [
        ["order_id", "17"],
        ["__proto__", "y"],
      ],
    );
  });

  it("takes From in the forms that people write", () => {
    for (const from of [
      "orders@sender.example",
      "<orders@sender.example>",
      '"Shop, Inc." <orders@sender.example>',
      "Shop (Berlin) <orders@sender.example>",
      "orders@sender.example (Shop)",
      '"ceo@victim.example" <orders@sender.example>',
      "=?utf-8?q?ceo=40victim=2Eexample?= <orders@sender.example>",
      "\r\n Shop\r\n <orders@sender.example>",
    ]) {
      assert.equal(read(`From: ${from}`).from.address.email, "orders@sender.example", from);
    }
  });

  it("refuses a From that somebody could read otherwise", () => {
    for (const from of [
      "",
      "orders",
      "orders@sender.example, ceo@victim.example",
      "ceo@victim.example <orders@sender.example>, x@y.example",
      "<ceo@victim.example> <orders@sender.example>",
      "<ceo@victim.example>, <orders@sender.example>",
      "<@sender.example:ceo@victim.example>",
      "ceo@victim.example (<orders@sender.example>",
      "ceo@victim.example (x) <orders@sender.example>",
      "(ceo) ceo@victim.example, orders@sender.example",
      "list: orders@sender.example;",
      "ceo@victim.example\0<orders@sender.example>",
      '"x" <orders@sender.example> ceo@victim.example',
      "orders@sender.example@victim.example",
      "orders@[192.0.2.1]",
      "ceo@victim.example;orders@sender.example",
    ]) {
      assert.match(problemOf(message(`From: ${from}`)), /^author: /, from);
    }
    assert.match(problemOf(message("Subject: x")), /^author: the message has no From/);
    assert.match(problemOf(message(OWN, "FROM: a@b.example")), /^author: the message has more than one From/);
  });

  it("refuses a From as long as a header may be without looking through it", () => {
    const folds = `\r\n ${" ".repeat(900)}`.repeat(280);
    for (const from of [`${"a@".repeat(450)}${folds}!`, `"x${'\\"'.repeat(400)}${folds}" <a@b.example>`]) {
      const head = Buffer.from(`From: ${from}\r\n\r\n`);
      assert.ok(head.length < 256 * 1024);
      const used = startProcessorTime();
      const result = readSubmittedHead(head);
      assert.ok(used() < 200, `${used()} ms`);
      assert.ok(!result.ok && result.problem === "author");
    }
  });

  it("names everybody the head calls a sender", () => {
    const head = read(
      OWN,
      "Sender: s@one.example",
      "Resent-From: a@two.example, B <b@three.example>",
      "Resent-Sender: c@four.example",
    );
    assert.deepEqual(
      head.senders.map(({ field, address }) => `${field} ${address.domain}`),
      ["Sender one.example", "Resent-From two.example", "Resent-From three.example", "Resent-Sender four.example"],
    );
    for (const field of ["Sender: nobody", "Sender:", "Resent-From: a@b@c"]) {
      assert.match(problemOf(message(OWN, field)), /^author: /, field);
    }
  });

  it("refuses what receivers would refuse or read in two ways", () => {
    const cases: [Buffer, RegExp][] = [
      [message(OWN, "Subject: a", "subject: b"), /more than one subject/],
      [message(OWN, "Message-ID: <a@b>", "Message-ID: <c@d>"), /more than one Message-ID/],
      [message(OWN, "Subject : a"), /space before its colon/],
      [message(OWN, "no field at all"), /not a header field/],
      [message("From orders@sender.example Fri Nov 20", OWN), /not a header field/],
      [message(OWN, `X: ${"x".repeat(996)}`), /999 octets/],
      [Buffer.from(`${OWN}\r\n\r\n${"y".repeat(999)}`), /999 octets/],
      [message(OWN, ...Array.from({ length: 1_001 }, (_, i) => `X-${i}: 1`)), /1,000 fields/],
      [message(OWN, ...Array.from({ length: 300 }, () => `X: ${"z".repeat(950)}`)), /256 KiB/],
    ];
    for (const [bytes, reason] of cases) {
      const problem = problemOf(bytes);
      assert.match(problem, /^malformed: /);
      assert.match(problem, reason);
    }
    assert.ok(readSubmittedHead(Buffer.from(`${OWN}\r\n\r\n${"y".repeat(998)}\r\n`)).ok);
  });

  it("leaves out a Message-ID that is none", () => {
    for (const id of ["x", "<x>", "<a b@c>", "<a@b", `<${"a".repeat(900)}@b>`, ""]) {
      const head = read(OWN, `Message-ID: ${id}`);
      assert.deepEqual([head.message_id, head.kept.length], [null, 1], id);
    }
  });

  it("ends the last field of a message without a body", () => {
    const result = readSubmittedHead(Buffer.from("From: a@b.example\r\nSubject: x"));
    assert.ok(result.ok);
    assert.equal(Buffer.concat(result.head.kept).toString(), "From: a@b.example\r\nSubject: x\r\n");
    assert.equal(result.head.body_offset, 29);
  });

  it("answers any bytes with a head or a reason", () => {
    const piece = fc.constantFrom(
      ...[
        "From:",
        "From: a@b.example",
        "Sender:",
        "\r\n",
        " ",
        "<",
        ">",
        "@",
        "(",
        ")",
        '"',
        "\\",
        ",",
        ";",
        ":",
        "=?utf-8?q?",
        "?=",
        "é",
        "x",
        "X-Service-Tag:",
      ],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const result = readSubmittedHead(Buffer.from(pieces.join("")));
        if (result.ok) assert.ok(result.head.from.address.domain.includes("."));
        else assert.ok(result.reason.length > 0);
      }),
      { numRuns: rounds(200, 2_000) },
    );
  });
});
