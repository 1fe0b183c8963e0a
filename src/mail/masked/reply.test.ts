// Replies never show the mailbox they come from: a property over random MIME trees, with an oracle that shares no code with
// scrub and gate (postal-mime reads the finished message), and mutations that prove that the property can fail.
// POSTERN_LEAK_TREES=100000 node --test src/mail/masked/reply.test.ts looks at more trees.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import PostalMime from "postal-mime";
import { SHAPES } from "./client-shapes.fixture.ts";
import { findLeaks } from "./leak-gate.ts";
import { diceOf, randomMessage } from "./random-tree.fixture.ts";
import { buildReply, type ReplyOrder, type ReplySteps } from "./reply.ts";
import { scrubParts } from "./scrub-parts.ts";

const D = "anna.real@home.real.example";
const A = "k3x@mask.example";
const R = "r.aaaaaaaaaaaaaaaaaaaaaaaaaa@mask.example";
const C = "shop@example.com";
const TREES = Number(process.env.POSTERN_LEAK_TREES ?? 2_000);

function order(): ReplyOrder {
  return {
    from: { name: "Anna", email: A },
    to: [{ name: null, email: C }],
    cc: [],
    date_ms: 1_795_000_000_000,
    message_id: "m1@mask.example",
    in_reply_to: ["<c1@example.com>"],
    references: ["<c0@example.com>", "<c1@example.com>"],
    hidden: [{ from: D, to: A }],
    restored: [
      { from: R, to: C },
      { from: " (shop at example.com)", to: "" },
      { from: "shop at example.com", to: C },
    ],
    redact: "all",
    names: [R],
    token_seed: "token",
  };
}

const reply = (bytes: Buffer | string, steps?: ReplySteps) => {
  const given = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.replace(/\r?\n/g, "\r\n"));
  return steps ? buildReply(given, order(), steps) : buildReply(given, order());
};

/** Does a reader of the message, or of its bytes, find the address? */
async function shows(bytes: Buffer): Promise<boolean> {
  const mail = await PostalMime.parse(bytes, { attachmentEncoding: "arraybuffer", forceRfc822Attachments: true });
  const texts = [
    bytes.toString("latin1"),
    bytes.toString("utf8"),
    mail.subject ?? "",
    mail.text ?? "",
    mail.html ?? "",
  ];
  for (const { value } of mail.headers) texts.push(String(value));
  for (const attachment of mail.attachments) {
    const content = Buffer.from(attachment.content as ArrayBuffer);
    texts.push(attachment.filename ?? "", content.toString("utf8"), content.toString("latin1").replaceAll("\0", ""));
    if (attachment.mimeType === "message/rfc822" && (await shows(content))) return true;
  }
  return texts.some(readsAddress);
}

function readsAddress(given: string): boolean {
  let text = given
    .replace(/[\u200b\u00ad]/g, "")
    .replaceAll("\uff20", "@")
    .replace(/\+AEA-?/g, "@")
    .replace(/\r?\n[ \t]/g, "");
  for (let layer = 0; layer < 3; layer += 1) {
    text = text
      .replace(/&(?:#64|#x40|commat);/gi, "@")
      .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
      .replace(/&amp;/g, "&")
      .replace(/%([0-7][0-9a-f])/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  const plain = (one: string) => one.toLowerCase().replace("+tag@", "@").includes(D);
  return plain(text) || plain(text.replace(/<[^<>]*>/g, ""));
}

type Tally = { built: number; held: number; refused: number; shown: number[] };

async function overTrees(count: number, steps?: ReplySteps): Promise<Tally> {
  const tally: Tally = { built: 0, held: 0, refused: 0, shown: [] };
  for (let seed = 1; seed <= count; seed += 1) {
    const result = reply(randomMessage(diceOf(seed), D), steps);
    tally[result.kind] += 1;
    if (result.kind === "built" && (await shows(result.bytes))) tally.shown.push(seed);
  }
  return tally;
}

const noScrub: ReplySteps["scrub"] = (bytes, tools) => {
  const replacer = { text: (text: string) => ({ text, count: 0 }), html: (text: string) => ({ text, count: 0 }) };
  return scrubParts(bytes, { ...tools, replacers: { own: replacer, quoted: replacer, strict: replacer } });
};

describe("over random MIME trees", () => {
  it("the address is gone or the message is held", async (test) => {
    const tally = await overTrees(TREES);
    test.diagnostic(`${TREES} trees: ${tally.built} built, ${tally.held} held, ${tally.refused} refused`);
    assert.deepEqual(tally.shown, []);
    assert.ok(tally.built > TREES / 2, "most replies leave: holding everything would be no proof");
  });

  it("without the scrub the gate holds every message that shows the address", async () => {
    const tally = await overTrees(300, { scrub: noScrub, gate: findLeaks });
    assert.deepEqual(tally.shown, []);
    assert.ok(tally.held > 100, `${tally.held} held`);
  });

  it("without the gate the property fails", async () => {
    const tally = await overTrees(300, { scrub: scrubParts, gate: () => [] });
    assert.ok(tally.shown.length > 0);
    const neither = await overTrees(300, { scrub: noScrub, gate: () => [] });
    assert.ok(neither.shown.length > tally.shown.length);
  });
});

const HEAD = `From: Anna <${D}>
To: <${R}>
Subject: Re: order
Message-ID: <x@home.real.example>
Date: Fri, 20 Nov 2026 12:00:00 +0100
MIME-Version: 1.0
`;

describe("a reply", () => {
  it("has exactly the fields of the allow-list, in UTC, from the alias", () => {
    const noise = `X-Originating-IP: [192.0.2.9]\nUser-Agent: Client\nOrganization: Home\nAutocrypt: addr=${D}\nThread-Index: AAA=\nImportance: high\nAuto-Submitted: auto-replied; owner-email="${D}"\nDisposition-Notification-To: ${D}\n`;
    const result = reply(`${HEAD}${noise}Content-Type: text/plain\n\nYes.\n`);
    assert.equal(result.kind, "built", JSON.stringify(result));
    const text = result.kind === "built" ? result.bytes.toString() : "";
    const names = text.slice(0, text.indexOf("\r\n\r\n")).match(/^[A-Za-z-]+(?=:)/gm);
    assert.deepEqual(names, [
      "From",
      "To",
      "Subject",
      "Date",
      "Message-ID",
      "In-Reply-To",
      "References",
      "Auto-Submitted",
      "Importance",
      "MIME-Version",
      "Content-Type",
      "Content-Transfer-Encoding",
    ]);
    assert.match(text, /^From: Anna <k3x@mask\.example>\r$/m);
    assert.match(text, /^Date: .* \+0000\r$/m);
    assert.match(text, /^Auto-Submitted: auto-replied\r$/m);
  });

  it("is refused when it is encrypted, because nobody can look into it", () => {
    const result = reply(`${HEAD}Content-Type: multipart/encrypted; boundary=b\n\n--b\n\nx\n--b--\n`);
    assert.deepEqual(result, { kind: "refused", reason: "encrypted" });
  });

  it("is unwrapped from its signature, whose certificate names the author", () => {
    const body = `--b\nContent-Type: text/plain\n\nYes.\n--b\nContent-Type: application/pkcs7-signature; name=smime.p7s\n\nxx\n--b--\n`;
    const result = reply(`${HEAD}Content-Type: multipart/signed; boundary=b\n\n${body}`);
    assert.ok(result.kind === "built" && !/pkcs7|multipart/.test(result.bytes.toString()));
  });

  it("keeps inline images, under new Content-IDs", () => {
    const body = `--b\nContent-Type: text/html\n\n<img src="cid:logo@home.real.example">\n--b\nContent-Type: image/png; name=logo.png\nContent-ID: <logo@home.real.example>\nContent-Disposition: inline\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--b--\n`;
    const result = reply(`${HEAD}Content-Type: multipart/related; boundary=b\n\n${body}`);
    const text = result.kind === "built" ? result.bytes.toString() : "";
    const [, id] = /cid:([^">]+)/.exec(text) ?? [];
    assert.ok(id?.endsWith("@mask.example"));
    assert.ok(text.includes(`Content-ID: <${id}>`));
    assert.ok(!text.includes("home.real.example"));
  });

  it("answers an invitation as the alias, to the contact", () => {
    const ics = `BEGIN:VCALENDAR\nMETHOD:REPLY\nBEGIN:VEVENT\nORGANIZER:mailto:${R}\nATTENDEE;PARTSTAT=ACCEPTED:mailto:${D}\nEND:VEVENT\nEND:VCALENDAR\n`;
    const result = reply(`${HEAD}Content-Type: text/calendar; method=REPLY; charset=utf-8\n\n${ics}`);
    const text = result.kind === "built" ? result.bytes.toString() : "";
    assert.match(text, /^ORGANIZER:mailto:shop@example\.com\r$/m);
    assert.match(text, /^ATTENDEE;PARTSTAT=ACCEPTED:mailto:k3x@mask\.example\r$/m);
    assert.match(text, /^Content-Type: text\/calendar; charset=utf-8; method=REPLY\r$/m);
  });

  it("counts what it replaced", () => {
    const result = reply(`${HEAD}Content-Type: text/plain\n\n${D} and ${D.toUpperCase()}\n> To: ${R}\n`);
    assert.equal(result.kind === "built" ? result.redactions : result.kind, 3);
  });

  it("is held, naming the part, when a file shows the address", () => {
    const body = Buffer.from(`\x00${D}`).toString("base64");
    const result = reply(
      `${HEAD}Content-Type: application/octet-stream\nContent-Transfer-Encoding: base64\n\n${body}\n`,
    );
    assert.equal(result.kind, "held");
    assert.ok(result.kind === "held" && result.leaks.every(({ where }) => !where.includes("anna")));
    assert.match(result.kind === "held" ? (result.leaks[0]?.where ?? "") : "", /application\/octet-stream/);
  });
});

describe("a reply as written by", () => {
  for (const { program, what, message, keeps, attachments = [] } of SHAPES) {
    it(`${program}: ${what}`, async () => {
      const result = reply(message({ d: D, r: R, a: A }));
      assert.equal(result.kind, "built", JSON.stringify(result));
      const bytes = result.kind === "built" ? result.bytes : Buffer.alloc(0);
      assert.ok(!(await shows(bytes)));
      assert.doesNotMatch(bytes.toString("latin1"), new RegExp(R), "no reverse address");
      const mail = await PostalMime.parse(bytes);
      const read = `${mail.html ?? ""}\n${mail.text ?? ""}`;
      assert.match(read, keeps);
      assert.doesNotMatch(read, /shop at example\.com/, "the decoration is undone");
      if (message({ d: D, r: R, a: A }).includes("wrote:")) assert.match(read, /shop@example\.com|Shop wrote/);
      assert.deepEqual(
        mail.attachments.map(({ mimeType }) => mimeType),
        attachments,
      );
    });
  }
});

describe("the answer to an invitation", () => {
  it("names alias and contact, and nobody else, in every copy of the calendar", async () => {
    for (const { program, message } of SHAPES.filter(({ attachments }) => attachments?.includes("text/calendar"))) {
      const result = reply(message({ d: D, r: R, a: A }));
      const mail = await PostalMime.parse(result.kind === "built" ? result.bytes : "");
      for (const { content } of mail.attachments) {
        const lines = Buffer.from(content as ArrayBuffer)
          .toString()
          .replace(/\r?\n /g, "")
          .split(/\r?\n/);
        const mailboxes = new Set(
          lines.flatMap((line) => line.toLowerCase().match(/mailto:[^;:"]+|email=[^;:"]+/g) ?? []),
        );
        const allowed = [`mailto:${A}`, `mailto:${C}`, `email=${A}`];
        assert.deepEqual(
          [...mailboxes].filter((one) => !allowed.includes(one)),
          [],
          program,
        );
        assert.ok(
          lines.some((line) => line.startsWith("ORGANIZER") && line.endsWith(`mailto:${C}`)),
          program,
        );
        assert.ok(
          lines.some((line) => line.startsWith("ATTENDEE") && line.endsWith(`mailto:${A}`)),
          program,
        );
      }
    }
  });
});
