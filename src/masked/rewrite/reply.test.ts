// Replies never show the mailbox they come from: a property over random MIME trees, with an oracle that shares no code with
// scrub and gate (postal-mime reads the finished message), and mutations that prove that the property can fail.
// POSTERN_LEAK_TREES=100000 node --test src/masked/rewrite/reply.test.ts looks at more trees.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import PostalMime from "postal-mime";
import { rounds } from "../../../test/support/rounds.ts";
import { SHAPES } from "./client-shapes.fixture.ts";
import { findLeaks } from "./gate/leak-gate.ts";
import { diceOf, randomMessage } from "./random-tree.fixture.ts";
import { buildReply, type ReplyOrder, type ReplySteps } from "./reply.ts";
import { A, C, D, HEAD, order, R } from "./reply-order.fixture.ts";
import { scrubParts } from "./scrub/scrub-parts.ts";
import { D_IDN, shows } from "./shown-reply.fixture.ts";

const TREES = Number(process.env.POSTERN_LEAK_TREES ?? rounds(300, 2_000));

const reply = (bytes: Buffer | string, steps?: ReplySteps, d = D) => {
  const given = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.replace(/\r?\n/g, "\r\n"));
  return steps ? buildReply(given, order(d), steps) : buildReply(given, order(d));
};

type Tally = { built: number; held: number; refused: number; shown: number[] };

async function overTrees(count: number, steps?: ReplySteps): Promise<Tally> {
  const tally: Tally = { built: 0, held: 0, refused: 0, shown: [] };
  for (let seed = 1; seed <= count; seed += 1) {
    const d = seed % 4 === 0 ? D_IDN : D;
    const result = reply(randomMessage(diceOf(seed), d), steps, d);
    tally[result.kind] += 1;
    if (result.kind === "built" && (await shows(result.bytes))) tally.shown.push(seed);
  }
  return tally;
}

const noScrub: ReplySteps["scrub"] = (bytes, tools) => {
  const nothing = (text: string) => ({ text, count: 0 });
  const replacer = { text: nothing, html: nothing, name: nothing };
  return scrubParts(bytes, {
    ...tools,
    replacers: { own: replacer, quoted: replacer, strict: replacer, files: replacer, notes: replacer },
  });
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

  it("names no part that is not there, because its Content-ID tells where it was made", () => {
    const body = `<img src="cid:part1.x%40home.real.example"><td background='cid:part1.x@home.real.example'><a href="https://home.real.example/">Lucid:yes@a.example</a>`;
    const text = built(`Content-Type: text/html\n\n${body}`).replace(/=\r\n/g, "");
    const [one, two] = [...text.matchAll(/cid:([a-z0-9]+@mask\.example)/gi)].map(([, id]) => id);
    assert.ok(one !== undefined && one === two, text);
    assert.doesNotMatch(text, /part1/);
    assert.match(text, /href="https:\/\/home\.real\.example\/">Lucid:yes@a\.example</);
  });

  it("answers an invitation as the alias, to the contact", () => {
    const ics = `BEGIN:VCALENDAR\nMETHOD:REPLY\nBEGIN:VEVENT\nORGANIZER:mailto:${R}\nATTENDEE;PARTSTAT=ACCEPTED:mailto:${D}\nEND:VEVENT\nEND:VCALENDAR\n`;
    const result = reply(`${HEAD}Content-Type: text/calendar; method=REPLY; charset=utf-8\n\n${ics}`);
    const text = result.kind === "built" ? result.bytes.toString() : "";
    assert.match(text, /^ORGANIZER:mailto:shop@example\.com\r$/m);
    assert.match(text, /^ATTENDEE;PARTSTAT=ACCEPTED:mailto:k3x@mask\.example\r$/m);
    assert.match(text, /^Content-Type: text\/calendar; charset=utf-8; method=REPLY\r$/m);
  });

  it("calls its author by the alias's name in calendars and in attached mails, not by the mailbox's", () => {
    const ics = `BEGIN:VCALENDAR\nMETHOD:REPLY\nORGANIZER;CN=Shop:mailto:${R}\nATTENDEE;CN="Anna Real";DIR="ldap://real/anna";PARTSTAT=ACCEPTED:mailto:${D}\nATTENDEE;CN=Bob Other:mailto:bob@b.example\nEND:VCALENDAR\n`;
    const inner = `From: "Real, Anna" <${D}>\nTo: =?utf-8?Q?Anna_R=C3=A9al?= <${D.toUpperCase()}>, Shop (shop at example.com) <${R}>\nCc: Bob Other <bob@b.example>\nSubject: x\n\nhi`;
    const body = `--b\nContent-Type: text/calendar; method=REPLY\n\n${ics}\n--b\nContent-Type: message/rfc822\n\n${inner}\n--b--\n`;
    const text = built(`Content-Type: multipart/mixed; boundary=b\n\n${body}`).replace(/\r\n[ ]/g, "");
    assert.match(text, /^ATTENDEE;CN=Anna;PARTSTAT=ACCEPTED:mailto:k3x@mask\.example\r$/m);
    assert.match(text, /^ATTENDEE;CN=Bob Other:mailto:bob@b\.example\r$/m);
    assert.match(text, /^ORGANIZER;CN=Shop:mailto:shop@example\.com\r$/m);
    assert.match(text, /^From: Anna <k3x@mask\.example>\r$/m);
    assert.match(text, /^To: Anna <k3x@mask\.example>, ?Shop <shop@example\.com>\r$/m);
    assert.match(text, /^Cc: Bob Other <bob@b\.example>\r$/m);
    assert.doesNotMatch(text, /Real|R=C3|ldap/);
  });

  it("shows the mailbox in no return path that it quotes", () => {
    const paths = D.replace("@", "=");
    const srs = `SRS0=abc=XY=${D.split("@").reverse().join("=")}@fwd.example`;
    const text = built(`\n> Return-Path: <bounces+12-${paths}@list.example>\n> Sender: ${srs}\n`);
    assert.match(text, /^> Return-Path: <bounces\+12-k3x=mask\.example@list\.example>\r$/m);
    assert.match(text, /^> Sender: SRS0=abc=XY=mask\.example=k3x@fwd\.example\r$/m);
  });

  it("loses what HTML says of its author by itself", () => {
    const properties = "<o:Author>Anna Real</o:Author><o:LastAuthor>Anna Real</o:LastAuthor><o:Pages>1</o:Pages>";
    const head = `<meta name=Author content="Anna Real"><meta name="viewport" content="width=1"><!--[if gte mso 9]>${properties}<![endif]-->`;
    const text = built(
      `Content-Type: text/html; charset=utf-8\n\n<html><head>${head}</head><body>Yes. Anna</body></html>\n`,
    );
    assert.doesNotMatch(text, /Anna Real/);
    assert.ok(text.includes("viewport") && text.includes("<o:Pages>1</o:Pages>") && text.includes("Yes. Anna"));
  });

  it("says nobody's name where the alias has none", () => {
    const ics = `BEGIN:VCALENDAR\nMETHOD:REPLY\nATTENDEE;CN=Anna Real;PARTSTAT=ACCEPTED:mailto:${D}\nEND:VCALENDAR\n`;
    const bytes = Buffer.from(`${HEAD}Content-Type: text/calendar; method=REPLY\n\n${ics}`.replace(/\n/g, "\r\n"));
    const result = buildReply(bytes, { ...order(), from: { name: null, email: A } });
    const text = result.kind === "built" ? result.bytes.toString() : "";
    assert.match(text, /^ATTENDEE;PARTSTAT=ACCEPTED:mailto:k3x@mask\.example\r$/m);
  });

  it("with quotes only cleaned, ends where an earlier mail begins in any language", () => {
    const starts = [
      ["De : Anna", "Envoyé : hier"],
      ["De\u00a0: Anna", "À : x"],
      ["*From:* Anna", "*Sent:* x"],
      ["Lähettäjä: Anna", ""],
      ["Kimden: Anna", ""],
      ["Feladó: Anna", ""],
      ["보낸 사람: Anna", ""],
      ["寄件者：Anna", ""],
      ["送信者: Anna", ""],
    ];
    for (const [from, more] of starts) {
      const bytes = Buffer.from(
        `${HEAD}Content-Type: text/plain; charset=utf-8\n\nBonjour, ${D}\n\n${from} <${D}>\n${more}\n${D}\n`.replace(
          /\n/g,
          "\r\n",
        ),
      );
      const quoted = buildReply(bytes, { ...order(), redact: "quoted" });
      assert.equal(quoted.kind, "built", from);
      assert.equal(quoted.kind === "built" && quoted.redactions, 2, from);
      const gated = buildReply(bytes, { ...order(), redact: "quoted" }, { scrub: noScrub, gate: findLeaks });
      assert.equal(gated.kind, "held", from);
    }
  });

  it("shows no mailbox without its tag either, nor the other name of its provider", () => {
    const tagged = built(
      "Content-Type: text/plain\n\nmail me: anna@real.example\n",
      undefined,
      "anna+mask@real.example",
    );
    assert.match(tagged, new RegExp(`^mail me: ${A}\\r$`, "m"));
    const gmail = built("Content-Type: text/plain\n\nannareal@googlemail.com\n", undefined, "anna.real+m@gmail.com");
    assert.match(gmail, new RegExp(`^${A}\\r$`, "m"));
    const held = reply(
      `${HEAD}Content-Type: text/plain\n\nanna+x@real.example\n`,
      { scrub: noScrub, gate: findLeaks },
      "anna+mask@real.example",
    );
    assert.equal(held.kind, "held");
  });

  it("goes to somebody whom another service hides, and names them as they are known", () => {
    const there = `r.${"c".repeat(26)}@mask2.example`;
    const ics = `BEGIN:VCALENDAR\r\nMETHOD:REPLY\r\nORGANIZER:mailto:${R}\r\nEND:VCALENDAR\r\n`;
    const result = buildReply(
      Buffer.from(`${HEAD}Content-Type: text/calendar; method=REPLY\n\n`.replace(/\n/g, "\r\n") + ics),
      {
        ...order(),
        to: [{ name: null, email: "friend@party.example" }],
        restored: [{ from: R, to: there }],
      },
    );
    assert.match(
      result.kind === "built" ? result.bytes.toString() : result.kind,
      new RegExp(`ORGANIZER:mailto:${there}`),
    );
  });

  it("counts what it replaced", () => {
    const result = reply(`${HEAD}Content-Type: text/plain\n\n${D} and ${D.toUpperCase()}\n> To: ${R}\n`);
    assert.equal(result.kind === "built" ? result.redactions : result.kind, 3);
  });

  const built = (text: string, steps?: ReplySteps, d?: string) => {
    const result = reply(`${HEAD}${text}`, steps, d);
    assert.equal(result.kind, "built", JSON.stringify(result));
    return result.kind === "built" ? result.bytes.toString() : "";
  };
  const kindOf = (text: string) => reply(`${HEAD}${text}`).kind;

  it("is not flowed any more: its reader would join the halves of an address (RFC 3676)", () => {
    const flowed = (delsp: string) =>
      built(
        `Content-Type: text/plain; format=flowed${delsp}\n\nI can be reached at anna.real@home.re \nal.example and \nby phone.\n> a quoted \n> line\n>> deeper\n-- \nAnna\n`,
      );
    const glued = flowed("; delsp=yes");
    assert.match(glued, new RegExp(`^I can be reached at ${A} andby phone\\.\r$`, "m"));
    assert.match(glued, /^> a quotedline\r\n>> deeper\r\n-- ?(?:=20)?\r\nAnna\r$/m);
    const spaced = flowed("");
    assert.match(spaced, /^> a quoted line\r$/m);
    assert.doesNotMatch(glued + spaced, /format=|delsp/);
    const within = built(
      `Content-Type: text/plain; format=flowed\n\n> > to anna.real@ \n> > home.real.example \n> > and\n> on\n`,
    );
    assert.match(
      within,
      /^> > to k3x@ mask\.example and\r\n> on\r$/m,
      "quotes within quotes, with blanks in their marks",
    );
  });

  it("shows an international mailbox neither in letters nor in codes", () => {
    for (const text of [
      "anna.real@höme.idn.example",
      "ANNA.REAL@HÖME.idn.example",
      "anna.real@ho\u0308me.idn.example",
      "anna.real@hÃ¶me.idn.example",
      D_IDN,
    ]) {
      assert.match(
        built(`Content-Type: text/plain; charset=utf-8\n\n<${text}>\n`, undefined, D_IDN),
        new RegExp(`^<${A}>\\r$`, "m"),
        text,
      );
    }
  });

  it("loses keys and signatures in its text, quoted ones too; signed text is unwrapped", () => {
    const armor = (kind: string) =>
      `-----BEGIN PGP ${kind}-----\nVersion: GnuPG v2\n\n${Buffer.from(`Anna <${D}> and some more`).toString("base64")}\n=njUN\n-----END PGP ${kind}-----\n`;
    const signed = `-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nYes.\n  - item\n- -- \nAnna\n${armor("SIGNATURE")}`;
    const key = armor("PUBLIC KEY BLOCK");
    for (const type of ["text/plain", "text/html"]) {
      const text = built(`Content-Type: ${type}\n\nHello\n${signed}\n${key}\n${key.replace(/^/gm, "> ")}\nBye\n`);
      assert.match(text, /Hello.*Yes\..*Anna.*Bye/s);
      assert.match(text, /^ {2}- item\r$/m);
      assert.doesNotMatch(text, /PGP|Hash|QW5uYS|njUN/);
    }
    assert.equal(kindOf(`Content-Type: text/plain\n\n${armor("MESSAGE")}`), "refused");
    assert.equal(kindOf(`Content-Type: text/plain\n\n> ${armor("MESSAGE").replace(/\n/g, "\n> ")}`), "built");
    assert.equal(kindOf(`Content-Type: text/x-key; name=key.txt\n\n${key}`), "held");
  });

  it("loses a signature whose first line is joined to the text, or has another case or kind; its subject begins none", () => {
    const packet = Buffer.from("a signature that names a key and nobody else").toString("base64");
    for (const begin of ["-----BEGIN PGP SIGNATURE-----", "-----begin pgp signature-----", "-----BEGIN PGP X/1-----"]) {
      const text = built(`Content-Type: text/plain\n\nBye, Anna ${begin}\nVersion: X\n\n${packet}\n=abcd\n`);
      assert.match(text, /Bye, Anna/);
      assert.doesNotMatch(text, /pgp|YSBzaWdu|abcd/i, begin);
    }
    const glued = `Yes -----BEGIN PGP MESSAGE-----\n\n${packet}\n-----END PGP MESSAGE-----\n`;
    assert.equal(kindOf(`Content-Type: text/plain\n\n${glued}`), "refused");
    assert.equal(kindOf("Content-Type: text/plain\n\nIt says -----BEGIN PGP MESSAGE-----\nand no more\n"), "built");
    const subject = reply(`From: ${D}\nSubject: See -----BEGIN PGP MESSAGE-----\nContent-Type: text/plain\n\nx\n`);
    assert.ok(subject.kind === "built" && /^Subject: See BEGIN PGP MESSAGE-----\r$/m.test(subject.bytes.toString()));
  });

  it("loses what holds the address in an encoding, over lines too; in files it says the alias; other encoded things stay", () => {
    const pem = (text: string) =>
      `-----BEGIN CERTIFICATE-----\n${Buffer.from(`0\x82 ${text} padding of a certificate`)
        .toString("base64")
        .replace(/(.{40})/g, "$1\n")}\n-----END CERTIFICATE-----\n`;
    const link = (text: string) => `see https://t.example/open/${Buffer.from(text).toString("base64url")}?x=1\n`;
    const certificate = built(`Content-Type: text/plain\n\nsee\n${pem(`email ${D}`)}there\n`);
    assert.match(certificate, /see\r\n-----BEGIN CERTIFICATE-----\r\nhidden\r\n-----END CERTIFICATE-----\r\nthere/);
    const [digits, file] = [Buffer.from(D).toString("hex"), "Content-Type: text/csv; name=a.csv"];
    assert.match(built(`Content-Type: text/plain\n\n${link(D)}`), /see https:\/\/t\.example\/open\/hidden\?x=1/);
    assert.match(built(`Content-Type: text/html\n\n<p>x ${digits}</p>`), /<p>x hidden<\/p>/);
    const [, sheet = ""] = built(`${file}\n\n${link(D)}`).split("\r\n\r\n");
    assert.equal(Buffer.from(sheet, "base64").toString(), link(A).replace("\n", "\r\n"));
    for (const sent of [pem("CN=api.example"), link("shop@example.com")])
      assert.ok(built(`Content-Type: text/plain\n\n${sent}`).includes(sent.slice(0, 60).split("\n")[0] as string));
  });

  it("says the alias where the address is written for people, for folders or by other programs", () => {
    const html = (text: string) => built(`Content-Type: text/html\n\n<p>${text}</p>\n`);
    for (const text of [
      ...[
        "anna.real (at) home.real (dot) example",
        "anna.real(at)home.real(dot)example",
        "anna.real{at}home.real{punkt}example",
      ],
      ...["anna dot real at home dot real dot example", "anna[dot]real[at]home[dot]real[dot]example"],
      ...[
        "https://x-my.sharepoint.com/personal/anna_real_home_real_example/Documents",
        '"anna.real\\u0040home.real.example"',
      ],
      ...["https://urldefense.proofpoint.com/v2/url?u=mailto-3Aanna.real-40home.real.example&d=x"],
      ...['<a href="mai&Tab;lto:anna.re&NewLine;al@home.real.example">x</a>'],
    ]) {
      for (const sent of [built(`Content-Type: text/plain\n\n${text}\n`), html(text)].slice(
        text.includes("<") ? 1 : 0,
      )) {
        const body = sent.slice(sent.indexOf("\r\n\r\n")).replace(/=\r\n/g, "");
        assert.doesNotMatch(body, /anna|home/i, text);
        assert.match(body, /k3x/, text);
      }
    }
  });

  it("names the alias where it quotes a reverse address that nobody restores", () => {
    const other = "r.cccccccccccccccccccccccccc@mask.example";
    const ics = `BEGIN:VCALENDAR\nATTENDEE:mailto:${other}\nEND:VCALENDAR\n`;
    const body = `--b\nContent-Type: text/html\n\n<a href="mailto:${other.replace("@", "%40")}">${other}</a>\n--b\nContent-Type: text/calendar\n\n${ics}\n--b\nContent-Type: message/rfc822\n\nCc: X <${other}>\n\n${other}\n--b--\n`;
    const text = built(`Content-Type: multipart/mixed; boundary=b\n\n${body}`);
    assert.doesNotMatch(text, /r\.c{26}/);
    assert.match(text, new RegExp(`<a href="mailto:${A}">${A}</a>`));
    assert.equal(kindOf(`Content-Type: application/x-any\n\n${other}\n`), "held");
  });

  it("is held for a server's name, but not for the ids that its recipient gave", () => {
    const held = (text: string, more: Partial<ReplyOrder>) =>
      buildReply(Buffer.from(`${HEAD}Content-Type: text/plain\n\n${text}\n`.replace(/\n/g, "\r\n")), {
        ...order(),
        names: ["mail.hoster.example"],
        ...more,
      }).kind;
    const references = ["<c0@mail.hoster.example>", "<c1@mail.hoster.example>"];
    assert.equal(held("Yes.", { references, in_reply_to: references.slice(1) }), "built");
    assert.equal(held("sent by mail.hoster.example", { references }), "held");
  });

  it("has a subject that was sent without encoding, in the charset of the text; an attached mail its fields", async () => {
    const built = (text: string) => {
      const result = reply(Buffer.from(text.replace(/\n/g, "\r\n"), "latin1"));
      return result.kind === "built" ? result.bytes.toString() : result.kind;
    };
    const greeting = "\xf0\xd2\xc9\xd7\xc5\xd4";
    const inner = `From: ${greeting} <${D}>\nSubject: ${greeting}\nContent-Type: text/plain; charset=koi8-r\n\nhi\n`;
    const plain = built(`Subject: ${greeting}\nContent-Type: text/plain; charset=koi8-r\n\nhi\n`);
    assert.equal((await PostalMime.parse(plain)).subject, "Привет");
    const nested = built(`Subject: x\nContent-Type: message/rfc822\n\n${inner}`);
    const attached = await PostalMime.parse(nested.slice(nested.indexOf("\r\n\r\n") + 4));
    assert.equal(attached.subject, "Привет");
  });

  it("names the ids that its reader sent as they are, whatever they hold", () => {
    const ids = ["<c0@example.com>", `<${D}>`, `<1.${D.toUpperCase()}>`];
    const given = { ...order(), in_reply_to: ids.slice(1), references: ids };
    const result = buildReply(Buffer.from(`${HEAD}\nYes.\n`), given);
    assert.equal(result.kind, "built");
    const text = result.kind === "built" ? result.bytes.toString() : "";
    assert.ok(
      text.includes(`In-Reply-To: ${ids.slice(1).join("\r\n ")}\r\nReferences: ${ids.join("\r\n ")}\r\n`),
      text,
    );
    const secrets = { addresses: [D], names: [], allowed: "nothing" as const, given: ids };
    for (const id of ids.slice(1)) {
      assert.equal(findLeaks(Buffer.from(`References: ${id}\r\n\r\nYes.\r\n`), secrets).length, 1, id);
    }
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
