// Whom the real mailbox's mail program would answer: after a forward, nobody but people that the alias knows, in whatever
// shape an invitation came. The oracle is postal-mime and a search for the stranger, who stands in such lines only.
// POSTERN_LEAK_TREES=20000 looks at more mails.
import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import PostalMime from "postal-mime";
import { rounds } from "../../../../test/support/rounds.ts";
import { makeZip } from "../../../mail/dmarc-report/zip.fixture.ts";
import { randomInvitation } from "../random-invitation.fixture.ts";
import { diceOf } from "../random-tree.fixture.ts";
import { calendarPeople, guardCalendars } from "./calendar-parts.ts";

const STRANGER = "evil@stranger.example";
const R = "r.aaaaaaaaaaaaaaaaaaaaaaaaaa@mask.example";
const A = "k3x@mask.example";
const D = "anna@real.example";
const INVITED = {
  known: [
    { from: "shop@example.com", to: R },
    { from: A, to: D },
  ],
  author: R,
};
const TREES = Number(process.env.POSTERN_LEAK_TREES ?? rounds(80, 400));

async function shows(bytes: Buffer): Promise<boolean> {
  const mail = await PostalMime.parse(bytes, { attachmentEncoding: "arraybuffer", forceRfc822Attachments: true });
  const texts = [bytes.toString("latin1"), mail.text ?? "", mail.html ?? ""];
  for (const { content, mimeType } of mail.attachments) {
    const file = Buffer.from(content as ArrayBuffer);
    texts.push(file.toString("utf8"), file.toString("latin1").replaceAll("\0", ""));
    if (mimeType === "message/rfc822" && (await shows(file))) return true;
  }
  return texts.some((text) => {
    const unfolded = text.replace(/\r?\n[ \t]/g, "");
    const whole = bytes.includes("charset=utf-7") ? unfolded.replace(/\+AEA-?/g, "@") : unfolded;
    return whole.replace(/%40/g, "@").toLowerCase().includes(STRANGER);
  });
}

describe("over random invitations", () => {
  it("no answer goes to a stranger", async () => {
    const shown: number[] = [];
    let before = 0;
    for (let seed = 1; seed <= TREES; seed += 1) {
      const given = randomInvitation(diceOf(seed), STRANGER);
      if (await shows(given)) before += 1;
      if (await shows(guardCalendars(given, INVITED))) shown.push(seed);
    }
    assert.deepEqual(shown, []);
    assert.ok(before > TREES / 2, "the oracle sees the stranger in what came");
  });
});

const mail = (body: string) =>
  Buffer.from(`From: shop@example.com\nMIME-Version: 1.0\n${body}`.replace(/\r?\n/g, "\r\n"));
const event = (lines: string) => `BEGIN:VCALENDAR\nBEGIN:VEVENT\n${lines}\nSUMMARY:Tea\nEND:VEVENT\nEND:VCALENDAR\n`;
const guarded = (lines: string, head = "Content-Type: text/calendar; method=REQUEST; charset=utf-8") =>
  guardCalendars(mail(`${head}\n\n${event(lines)}`), INVITED).toString();

describe("an invitation", () => {
  it("keeps names, roles and states; addresses that nobody knows become the author's", () => {
    const text = guarded(
      `ORGANIZER;CN="Evil, Ltd";SENT-BY="mailto:x@y.example":mailto:evil%40stranger.example\nATTENDEE;CN=Anna;ROLE=CHAIR;PARTSTAT=NEEDS-ACTION;RSVP=TRUE;EMAIL=${A}:MAILTO:${A.toUpperCase()}\nATTENDEE;CN=Shop:mailto:shop@example.com?subject=x`,
    ).replace(/\r\n /g, "");
    assert.match(text, new RegExp(`^ORGANIZER;CN="Evil, Ltd":mailto:${R}\r$`, "m"));
    assert.match(text, new RegExp(`^ATTENDEE;CN=Anna;ROLE=CHAIR;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:mailto:${D}\r$`, "m"));
    assert.match(text, new RegExp(`^ATTENDEE;CN=Shop:mailto:${R}\r$`, "m"));
    assert.match(text, /^SUMMARY:Tea\r$/m);
    assert.match(text, /^Content-Type: text\/calendar; charset=utf-8; method=REQUEST\r$/m);
  });

  it("is found in a multipart of whatever kind: others see its parts", () => {
    for (const type of ["multipart/%", "multipart/\x9aixed", "multipart/", "Multipart/ mixed"]) {
      const part = `Content-Type: text/calendar\n\n${event(`ORGANIZER:mailto:${STRANGER}`)}`;
      const whole = `From: Shop <shop@example.com>\nMIME-Version: 1.0\nContent-Type: ${type}; boundary=b31\n\n--b31\n${part}--b31--\n`;
      const bytes = Buffer.from(whole.replaceAll("\n", "\r\n"), "latin1");
      assert.ok(!guardCalendars(bytes, INVITED).includes(STRANGER), type);
    }
  });

  it("in UTF-16 arrives in UTF-8", async () => {
    const calendar = Buffer.from(`\ufeff${event(`ORGANIZER:mailto:${STRANGER}`)}Grüße`, "utf16le");
    const bytes = guardCalendars(
      mail(
        `Content-Type: text/calendar; charset=utf-16\nContent-Transfer-Encoding: base64\n\n${calendar.toString("base64")}`,
      ),
      INVITED,
    );
    const read = await PostalMime.parse(bytes);
    const text = Buffer.from(read.attachments[0]?.content as ArrayBuffer).toString();
    assert.ok(text.includes(`ORGANIZER:mailto:${R}`) && text.includes("Grüße"), text);
  });

  it("behind a thousand parts or in sixty multiparts is left out, and all before it stays", () => {
    const calendar = `Content-Type: text/calendar\n\n${event(`ORGANIZER:mailto:${STRANGER}`)}`;
    const many = `Content-Type: multipart/mixed; boundary=b\n\n${Array.from({ length: 1_010 }, (_, n) => `--b\n\npart ${n}\n`).join("")}--b\n${calendar}\n--b--\n`;
    const cut = guardCalendars(mail(many), INVITED).toString();
    assert.ok(cut.includes("part 998") && !cut.includes(STRANGER) && cut.endsWith("\r\n--b--\r\n"));
    let deep = calendar;
    for (let n = 0; n < 60; n += 1)
      deep = `Content-Type: multipart/mixed; boundary=b${n}b\n\n--b${n}b\n${deep}\n--b${n}b--\n`;
    const left = guardCalendars(mail(deep), INVITED).toString();
    assert.ok(!left.includes(STRANGER) && left.includes("was left out here"));
  });

  it("that cannot be read is left out; an unreadable file of another kind is not", () => {
    const odd = (type: string) =>
      guardCalendars(
        mail(`Content-Type: ${type}\n\n<vcalendar><organizer>${STRANGER}</organizer>`),
        INVITED,
      ).toString();
    assert.ok(!odd("application/calendar+xml").includes(STRANGER));
    assert.ok(!odd("application/octet-stream; name=invite.ics").includes(STRANGER));
    assert.ok(odd("application/xml").includes(STRANGER));
  });

  it("that stands in the text as old programs attach files is text only", () => {
    const text = guardCalendars(
      mail(`Content-Type: text/plain; charset=utf-8\n\nGrüße\nbegin 644 invite.ics\nM0D5'24XZ\n\`\nend\n`),
      INVITED,
    ).toString();
    assert.match(text, /^Gr=C3=BC=C3=9Fe\r\n\| begin 644 invite\.ics\r\nM0D5/m);
    const other = mail("Content-Type: text/plain\n\nbegin 644 notes.txt\nM0D5'24XZ\n`\nend\n");
    assert.equal(guardCalendars(other, INVITED), other);
  });

  it("of endless lines, octets or people is left out, or ends with the last that was read", () => {
    const guarded = (lines: string) =>
      guardCalendars(mail(`Content-Type: text/calendar\n\n${event(lines)}`), INVITED).toString("latin1");
    const stranger = `ATTENDEE:mailto:${STRANGER}`;
    for (const much of ["COMMENT:x\n".repeat(150_000), `COMMENT:${"x".repeat(10_000_000)}`, "X:y\r".repeat(150_000)]) {
      const left = guarded(`${much}\n${stranger}`);
      assert.ok(left.length < 1_000 && left.includes("was left out here") && !left.includes(STRANGER));
      assert.deepEqual(calendarPeople(mail(`Content-Type: text/calendar\n\n${event(`${much}\n${stranger}`)}`)), []);
    }
    const crowd = guarded(`${`${stranger}\n`.repeat(30_000)}SUMMARY:Fitting`);
    const named = crowd.match(/^ATTENDEE/gm)?.length ?? 0;
    assert.ok(named > 10_000 && named < 30_000 && !crowd.includes(STRANGER) && crowd.includes("SUMMARY:Fitting"));
    assert.ok(guarded(`${"COMMENT:x\n".repeat(100_000)}${stranger}`).includes("ATTENDEE"));
  });

  it("in an archive stays: nothing imports it but its reader", () => {
    const zip = makeZip([{ name: "invite.ics", content: Buffer.from(event(`ORGANIZER:mailto:${STRANGER}`)) }]);
    const given = mail(`Content-Type: application/zip\nContent-Transfer-Encoding: base64\n\n${zip.toString("base64")}`);
    assert.equal(guardCalendars(given, INVITED), given);
  });
});

test("a mail without a calendar keeps its bytes, whatever is attached", () => {
  for (const body of [
    "Content-Type: text/plain\n\nORGANIZER:mailto:a@b.example",
    "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nSubject: x\n\nhi\n--b--\n",
    "Content-Type: application/ms-tnef; name=winmail.dat\n\nIPM.Note",
  ]) {
    const given = mail(body);
    assert.equal(guardCalendars(given, INVITED), given);
  }
});

test("organizers are collected before attendees, in whatever form, and from attached mails", () => {
  const guests = Array.from({ length: 40 }, (_, n) => `ATTENDEE:mailto:guest${n}@x.example\n`).join("");
  const inner = `Content-Type: text/calendar\n\n${event(`${guests}Organizer;EMAIL=o@y.example:urn:uuid:1`)}`;
  const people = calendarPeople(
    mail(
      `Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/calendar\n\n${event(`${guests}ORGANIZER:mailto:evil%40x.example`)}\n--b\nContent-Type: message/rfc822\n\n${inner}\n--b--\n`,
    ),
  );
  assert.deepEqual(people.slice(0, 3), ["evil@x.example", "o@y.example", "guest0@x.example"]);
  assert.equal(people.length, 30);
});
