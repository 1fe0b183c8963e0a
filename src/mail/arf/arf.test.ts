// Complaints: the corpora of mail-auth, KumoMTA, flanker, MimeKit and Sisimai, and small reports of our own.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseBounce } from "../dsn/dsn.ts";
import { parseComplaint } from "./arf.ts";
import type { ComplaintReport } from "./types.ts";

const corpora = join(import.meta.dirname, "../../../../shared/data");
const skip = existsSync(join(corpora, "arf-feedback")) ? false : "../shared/data is not here";
const json = (path: string) => JSON.parse(readFileSync(join(corpora, path), "utf8"));

function read(mail: string | Buffer): ComplaintReport {
  const report = parseComplaint(Buffer.from(mail));
  assert.ok(report !== null);
  return report;
}

function readFile(path: string): ComplaintReport {
  return read(readFileSync(join(corpora, path)));
}

// mail-auth writes types as Rust names and dates as seconds; lines of a folded field keep their ends there.
const bare = (text: string | null) => text?.replace(/^<|>$/g, "") ?? null;
const seconds = (date: string | null) => (date === null ? null : Date.parse(date) / 1_000);
const kebab = (name: string) => name.replace(/(?<!^)([A-Z])/g, "-$1").toLowerCase();
const oneLine = (text: string) => text.replace(/\s+/g, " ");

test("every field of mail-auth's reports is read as mail-auth reads it", { skip }, () => {
  const names = readdirSync(join(corpora, "arf-feedback/mail-auth")).filter((name) => name.endsWith(".eml"));
  assert.ok(names.length >= 4);
  for (const name of names) {
    const want = json(`arf-feedback/mail-auth/${name.replace(".eml", ".json")}`);
    const got = readFile(`arf-feedback/mail-auth/${name}`);
    assert.equal(got.feedback_type, kebab(want.feedback_type), name);
    assert.equal(seconds(got.arrival_date), want.arrival_date, name);
    assert.deepEqual(got.authentication_results, want.authentication_results.map(oneLine), name);
    assert.equal(got.incidents, want.incidents, name);
    assert.equal(got.original_envelope_id, want.original_envelope_id, name);
    assert.equal(got.original_mail_from, bare(want.original_mail_from), name);
    assert.deepEqual(got.original_rcpt_to, want.original_rcpt_to === null ? [] : [bare(want.original_rcpt_to)], name);
    assert.deepEqual(got.reported_domains, want.reported_domain, name);
    assert.deepEqual(got.reported_uris, want.reported_uri, name);
    assert.equal(got.reporting_mta, want.reporting_mta, name);
    assert.equal(got.source_ip, want.source_ip, name);
    assert.equal(got.user_agent, want.user_agent, name);
    assert.equal(Number(got.version), want.version, name);
    assert.equal(got.dkim_domain, want.dkim_domain, name);
    assert.equal(got.auth_failure ?? "unspecified", want.auth_failure.toLowerCase(), name);
  }
});

type Row = { recipient: string; feedbacktype: string; messageid: string; reason: string };

function compare(path: string, rows: Row[]): void {
  const got = readFile(path);
  assert.equal(got.feedback_type, rows[0]!.feedbacktype, path);
  const known = rows.map(({ recipient }) => recipient).filter((email) => !email.startsWith("undisclosed-"));
  // Where Sisimai gives up we take Removal-Recipient or the To of the message.
  if (known.length > 0) assert.deepEqual(got.recipients, known, path);
  if (rows[0]!.messageid !== "") assert.equal(got.original.message_id, rows[0]!.messageid, path);
}

test("recipients, types and Message-IDs agree with Sisimai on every report it reads", { skip }, (t) => {
  const opinions: Record<string, Row[]> = json("arf-feedback/second-opinion.json");
  const others = Object.entries(opinions).filter(([, rows]) => rows.length > 0);
  for (const [name, rows] of others) compare(`arf-feedback/${name}`, rows);
  const expected: Record<string, { bounces: Row[] }> = json("bounce-sisimai/expected.json");
  const feedback = Object.entries(expected).filter(([, { bounces }]) => bounces[0]?.reason === "feedback");
  for (const [name, { bounces }] of feedback) compare(`bounce-sisimai/eml/${name}`, bounces);
  t.diagnostic(`${others.length + feedback.length} reports`);
  assert.ok(feedback.length >= 9 && others.length >= 8);
});

test("no bounce of the corpora is taken for a complaint, and no complaint for a bounce", { skip }, () => {
  const expected: Record<string, { bounces: Row[] }> = json("bounce-sisimai/expected.json");
  for (const [name, { bounces }] of Object.entries(expected)) {
    const mail = readFileSync(join(corpora, "bounce-sisimai/eml", name));
    const isFeedback = bounces[0]?.reason === "feedback";
    assert.equal(parseComplaint(mail) !== null, isFeedback, name);
    assert.equal(parseBounce(mail).kind === "complaint", isFeedback, name);
  }
  for (const name of readdirSync(join(corpora, "bounce-flufl/mail"))) {
    assert.equal(parseComplaint(readFileSync(join(corpora, "bounce-flufl/mail", name))), null, name);
  }
});

test("AOL's report gives the Message-ID of its sentence and the redacted recipient of the message", { skip }, () => {
  const report = readFile("arf-feedback/flanker/aol.eml");
  assert.equal(report.original.message_id, "20101117174130.28884.55421@luna");
  assert.deepEqual(report.recipients, ["redacted@aol.com"]);
  assert.deepEqual([report.user_agent, report.source_ip, report.meaning], ["AOL SComp", "173.193.210.34", "complaint"]);
});

function arf(
  fields: string,
  returned = "From: me@us.example\nTo: user@there.example\nMessage-ID: <m@us.example>\nX-Postern-Id: tok\n",
) {
  return `From: feedback@there.example
To: fbl@us.example
Subject: FW: Hello
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: text/plain

This is an email abuse report.

--b
Content-Type: message/feedback-report

${fields}
--b
Content-Type: message/rfc822

${returned}
Hello
--b--
`;
}

test("types mean what RFC 5965 and RFC 6591 say: abuse is a complaint, not-spam and auth-failure are none", () => {
  const meanings = {
    abuse: "complaint",
    fraud: "complaint",
    virus: "complaint",
    other: "complaint",
    "x-new": "complaint",
    "not-spam": "not_spam",
    "NOT-SPAM": "not_spam",
    "auth-failure": "auth_failure",
    "opt-out": "unsubscribe",
    "opt-out-list": "unsubscribe",
    '"auth-failure"': "auth_failure",
  };
  for (const [type, meaning] of Object.entries(meanings)) {
    assert.equal(read(arf(`Feedback-Type: ${type}\nUser-Agent: x/1\nVersion: 1\n`)).meaning, meaning, type);
  }
});

test("a report that has lost its type is one of authentication failures where only those have its fields", () => {
  const { meaning, feedback_type } = read(arf("User-Agent: x/1\nVersion: 1\nAuth-Failure: dmarc\n"));
  assert.deepEqual([meaning, feedback_type], ["auth_failure", "auth-failure"]);
  assert.equal(read(arf("Version: 1\nIdentity-Alignment: none\n")).meaning, "auth_failure");
  assert.equal(read(arf("Version: 1\n")).meaning, "complaint");
});

test("our token, the feedback id of RFC 9477 and the recipient come from the returned head when the report redacts", () => {
  const returned =
    "Delivered-To: user@there.example\nTo: a@there.example, b@there.example\nCFBL-Feedback-ID: 111:222:333\nMessage-ID: <m@us.example>\nX-Postern-Id: tok\n";
  const report = read(
    arf("Feedback-Type: abuse\nOriginal-Rcpt-To: redacted\nOriginal-Rcpt-To: <redacted>\n", returned),
  );
  assert.deepEqual(report.original_rcpt_to, []);
  assert.deepEqual(report.recipients, ["user@there.example"]);
  assert.deepEqual([report.original.x_postern_id, report.original.message_id], ["tok", "m@us.example"]);
  assert.equal(report.cfbl_feedback_id, "111:222:333");
});

test("several recipients, domains, addresses and results are all kept, addresses once", () => {
  const report = read(
    arf(
      "Feedback-Type: abuse\nOriginal-Rcpt-To: <a@there.example>\nOriginal-Rcpt-To: b@there.example\nOriginal-Rcpt-To: a@there.example\nReported-Domain: us.example\nReported-Domain: links.example\nReported-URI: https://links.example/1\nAuthentication-Results: there.example;\n spf=pass\nIncidents: 12\nSource-IP: 2001:db8::1\nReporting-MTA: dns; mx.there.example\n",
    ),
  );
  assert.deepEqual(report.recipients, ["a@there.example", "b@there.example"]);
  assert.deepEqual(report.reported_domains, ["us.example", "links.example"]);
  assert.deepEqual(report.reported_uris, ["https://links.example/1"]);
  assert.deepEqual(report.authentication_results, ["there.example; spf=pass"]);
  assert.deepEqual([report.incidents, report.source_ip, report.reporting_mta], [12, "2001:db8::1", "mx.there.example"]);
});

test("invalid addresses and counts become null and 1", () => {
  const ip = (value: string) => read(arf(`Feedback-Type: abuse\nSource-IP: ${value}\n`)).source_ip;
  assert.deepEqual(["x.x.x.x", "999.1.1.1", "1", "", "192.0.2.1 (host)", "[192.0.2.1]", "IPv6:2001:db8::1"].map(ip), [
    null,
    null,
    null,
    null,
    "192.0.2.1",
    "192.0.2.1",
    "2001:db8::1",
  ]);
  const incidents = (value: string) => read(arf(`Feedback-Type: abuse\nIncidents: ${value}\n`)).incidents;
  assert.deepEqual(["0", "-5", "many", "7", "99999999999999"].map(incidents), [1, 1, 1, 7, 1_000_000]);
});

test("a type of feedback that is cut in the middle of a character can be stored", () => {
  const report = read(arf(`Feedback-Type: ${"a".repeat(49)}😀\n`));
  assert.equal(report.feedback_type, `${"a".repeat(49)}\u{fffd}`);
});

test("a report whose fields stand in the text, or that lacks its last part, is read as far as it goes", () => {
  const text = arf("").replace(
    "This is an email abuse report.",
    "Report.\n\nFeedback-Type: fraud\nSource-IP: 192.0.2.9\n",
  );
  const report = read(text.replace("message/feedback-report", "text/plain"));
  assert.deepEqual([report.feedback_type, report.source_ip], ["fraud", "192.0.2.9"]);
  const cut = arf("Feedback-Type: abuse\nOriginal-Mail-From: <b+tok@us.example>\n").split(
    "Content-Type: message/rfc822",
  )[0]!;
  assert.deepEqual([read(cut).original_mail_from, read(cut).original.message_id], ["b+tok@us.example", null]);
});

test("Microsoft's report without fields gives recipient, address and date of its head", () => {
  const mail =
    "From: staff@hotmail.com\nTo: fbl@us.example\nDate: Thu, 1 Jan 2026 10:00:00 +0000\nSubject: complaint about message from 192.0.2.7\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nX-HmXmrOriginalRecipient: <user@hotmail.example>\nTo: other@us.example\nFrom: Me <me@us.example>\nMessage-ID: <m@us.example>\nX-Postern-Id: tok\n\nhi\n--b--\n";
  const report = read(mail);
  assert.deepEqual([report.format, report.meaning, report.source_ip], ["jmrp", "complaint", "192.0.2.7"]);
  assert.deepEqual([report.recipients, report.original_mail_from], [["user@hotmail.example"], "me@us.example"]);
  assert.deepEqual([report.arrival_date, report.original.x_postern_id], ["Thu, 1 Jan 2026 10:00:00 +0000", "tok"]);
});

test("what Apple Mail sends for Unsubscribe is an opt-out of its author, and no complaint", () => {
  const mail = "From: User <user@there.example>\nTo: f+token@us.example\nSubject: unsubscribe\n";
  const report = read(`${mail}X-Apple-Unsubscribe: true\n\nunsubscribe\n`);
  assert.deepEqual(
    [report.meaning, report.feedback_type, report.recipients],
    ["unsubscribe", "opt-out", ["user@there.example"]],
  );
  assert.equal(parseComplaint(Buffer.from(`${mail}X-Apple-Unsubscribe: false\n\nunsubscribe\n`)), null);
});

test("a bounce that quotes such a subject, or only begins like one, is no complaint", () => {
  const ndr = (head: string, type: string) =>
    `${head}\nTo: b+t@us.example\nContent-Type: multipart/${type}; boundary=b\n\n--b\n\nYour message could not be delivered.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; user@there.example\nAction: failed\nStatus: 5.1.1\n--b\nContent-Type: message/rfc822\n\nFrom: me@us.example\nTo: user@there.example\n\nhi\n--b--\n`;
  const report = "report; report-type=delivery-status";
  const mailer = "From: Outlook <MicrosoftExchange@there.example>\nSubject: ";
  for (const mail of [
    ndr(`${mailer}Undeliverable: Your complaint about message from Bob`, report),
    ndr(`${mailer}Undeliverable: complaint about message from 192.0.2.7`, report),
    ndr(`${mailer}complaint about message from 192.0.2.7`, report),
    ndr(`${mailer}complaint about message from 192.0.2.7`, "mixed"),
    ndr("From: staff@hotmail.com\nSubject: Undeliverable: x", report),
    ndr("From: mailer-daemon@bounces.spamcop.net\nSubject: failure", report),
  ]) {
    assert.equal(parseComplaint(Buffer.from(mail)), null, mail);
    assert.equal(parseBounce(Buffer.from(mail)).kind, "bounce", mail);
  }
  const returned = `Subject: Undeliverable: complaint about message from 192.0.2.7\nFrom: joe@there.example\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nFrom: me@us.example\n\nhi\n--b--\n`;
  assert.equal(parseComplaint(Buffer.from(returned)), null);
  assert.equal(parseComplaint(Buffer.from(returned.replace("192.0.2.7", "Bob").replace("Undeliverable: ", ""))), null);
  assert.equal(
    read(returned.replace("Undeliverable: ", "").replace("192.0.2.7", "2001:db8::7")).source_ip,
    "2001:db8::7",
  );
});

test("SpamCop's report gives the address and the message behind its banner", () => {
  const mail =
    "From: 123456@reports.spamcop.net\nTo: abuse@us.example\nSubject: [SpamCop (192.0.2.7) id:123456]Hello\n\n[ SpamCop V5 ]\nEmail from 192.0.2.7\n\n[ Offending message ]\nReceived: x\nFrom: me@us.example\nMessage-ID: <m@us.example>\nX-Postern-Id: tok\n\nhi\n";
  const report = read(mail);
  assert.deepEqual([report.format, report.source_ip, report.user_agent], ["spamcop", "192.0.2.7", "SpamCop"]);
  assert.deepEqual([report.original.message_id, report.original.x_postern_id], ["m@us.example", "tok"]);
});

test("limits: 200 recipients, 100 domains", () => {
  const recipients = Array.from({ length: 500 }, (_, at) => `Original-Rcpt-To: u${at}@there.example`).join("\n");
  const domains = Array.from({ length: 500 }, (_, at) => `Reported-Domain: d${at}.example`).join("\n");
  const report = read(arf(`Feedback-Type: abuse\n${recipients}\n${domains}\n`));
  assert.deepEqual([report.recipients.length, report.reported_domains.length], [200, 100]);
});

test("mail of people is no complaint, whatever it says", () => {
  for (const mail of [
    "",
    "From: joe@corp.example\nSubject: complaint about message from you\n\nFeedback-Type: abuse\n",
  ]) {
    assert.equal(parseComplaint(Buffer.from(mail)), null);
  }
});
