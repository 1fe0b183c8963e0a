// Mails that other masked-address services are tested with, through the product over SMTP: each incoming mail to a masked
// alias (or, where it answers one, from the mailbox to a reverse address), what arrives compared in meaning with what went
// in and with what the other service sends on; bounce notices to the return path of a forward. Where the designs differ by
// intention the difference is explained by its class.
import { globSync, readFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import PostalMime, { type Email } from "postal-mime";
import { C, IP_D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";
import type { Received } from "../support/smtp-sink.ts";
import { answerTo, caseFiles } from "./case-files.ts";
import type { Corpus, Tally } from "./tally.ts";

type Case = {
  file: string;
  bytes: Buffer;
  envelope_from: string;
  /** It is an answer from the mailbox. */
  is_reply: boolean;
  /** What the other service's receiver found out, where it says so. */
  dmarc_reject: boolean;
  /** The notification names a message that is stored elsewhere. */
  is_head_only: boolean;
};
type Notice = { bounceType?: string; bouncedRecipients?: { emailAddress: string }[] };
type Notification = {
  notificationType?: string;
  eventType?: string;
  content?: string;
  bounce?: Notice;
  mail?: { source?: string; destination?: string[]; headers?: { name: string; value: string }[] };
  receipt?: { dmarcVerdict?: { status: string }; dmarcPolicy?: string };
};

const MAILBOX = "real.user@mailbox.example";
const HOST = "mailbox.example";

const WHY = {
  to: "To names the alias, never the mailbox: clients quote that line in their answers",
  from: "From is a reverse address of its own for each contact, not one address for all",
  wrapper: "the body stays as it came; the other service wraps it into a banner of its own",
  spam: "what the spam filter believes to be spam is not forwarded; the other service leaves that to its receiver",
  broken: "the MX refuses what goes in circles or breaks the rules of SMTP (RFC 5321 §6.3, §2.3.8)",
  content: "the notification names a message that is stored elsewhere: only its header came",
} as const;

/** RFC 5321 §6.3 lets a server count them. */
const RECEIVED_MAX = 30;

export const maskedForwarding: Corpus = {
  name: "masked-forwarding",
  slow: true,
  async run(dir, tally) {
    const files = [...caseFiles(dir), ...globSync("**/*.json", { cwd: dir })].sort().map((file) => join(dir, file));
    if (files.length === 0) return;
    const stage = await startMaskedStage();
    try {
      stage.dns.set(HOST, "MX", [{ exchange: `mx.${HOST}`, preference: 10 }]);
      stage.dns.set(`mx.${HOST}`, "A", ["127.0.0.1"]);
      for (const path of files) await tally.attempt(basename(path), () => runFile(stage, tally, path, files));
      await checkPlain(stage, tally);
    } finally {
      await stage.close();
    }
  },
};

/** A filter that keeps everything would explain everything. */
async function checkPlain(stage: MaskedStage, tally: Tally): Promise<void> {
  const alias = await stage.alias({ forward_to: [MAILBOX] });
  stage.sink.messages.length = 0;
  const content = `From: Keeper <${C}>\r\nTo: ${alias.full}\r\nSubject: your order\r\n\r\nIt will arrive on Monday.\r\n`;
  const { text } = await stage.send({ from: C, to: alias.full, content });
  const forward = /^250/.test(text) ? await firstTo(stage, MAILBOX, alias.id) : null;
  tally.check("a plain mail after all of them", "forwarded", forward ? "forwarded" : text);
}

async function runFile(stage: MaskedStage, tally: Tally, path: string, all: readonly string[]): Promise<void> {
  const file = basename(path);
  if (/_expected\./.test(file)) {
    // A notice of the other service about its plans or its dashboard: nothing came in that it answers.
    if (!all.some((other) => incomingOf(path, other))) tally.notes.push(`${file}: no incoming mail belongs to it`);
    return;
  }
  const bytes = readFileSync(path);
  const notification = /\.json$/i.test(file) ? readNotification(bytes) : null;
  if (notification?.bounce) return runBounce(stage, tally, file, notification);
  const incoming = /\.json$/i.test(file) ? notification && fromNotification(file, notification) : fromMail(file, bytes);
  if (!incoming) {
    tally.notes.push(`${file}: holds no mail, not played`);
    return;
  }
  const expected = all.find((other) => incomingOf(other, path));
  await (incoming.is_reply ? runReply : runForward)(stage, tally, incoming, expected);
}

/** `a_incoming.email` and `a_incoming_email_sns_body.json` belong to `a_expected.email`. */
function incomingOf(expected: string, incoming: string): boolean {
  const stem = (path: string) =>
    basename(path, extname(path)).replace(/(?:_(?:incoming|expected|email|sns|body))+$/, "");
  return (
    expected !== incoming &&
    /_expected\./.test(expected) &&
    !/_expected\./.test(incoming) &&
    stem(expected) === stem(incoming)
  );
}

function readNotification(bytes: Buffer): Notification | null {
  try {
    const outer = JSON.parse(bytes.toString()) as Record<string, unknown>;
    const inner = typeof outer.Message === "string" ? JSON.parse(outer.Message) : (outer.Message ?? outer);
    return typeof inner === "object" && inner !== null ? (inner as Notification) : null;
  } catch {
    return null;
  }
}

function fromMail(file: string, bytes: Buffer): Case | null {
  const text = bytes.toString("latin1");
  if (!/^[\x21-\x39\x3b-\x7e]+:/m.test(text.slice(0, 4_000))) return null;
  const from = /^from:[^\n]*?<?([^\s<>"]+@[^\s<>"]+)>/im.exec(text)?.[1] ?? C;
  return { file, bytes, envelope_from: from, is_reply: false, dmarc_reject: false, is_head_only: false };
}

function fromNotification(file: string, { content, mail, receipt }: Notification): Case | null {
  const headers = mail?.headers ?? [];
  if (!content && headers.length === 0) return null;
  const head = headers.map(({ name, value }) => `${name}: ${value.replace(/\r?\n(?![ \t])/g, "\r\n ")}`).join("\r\n");
  return {
    file,
    bytes: Buffer.from(content ?? `${head}\r\n\r\n`),
    envelope_from: mail?.source ?? C,
    is_reply: (mail?.destination ?? []).some((address) => /^repl(?:y|ies)@/i.test(address)),
    dmarc_reject: receipt?.dmarcVerdict?.status === "FAIL" && /reject/i.test(receipt.dmarcPolicy ?? ""),
    is_head_only: !content,
  };
}

const wire = (bytes: Buffer) => Buffer.from(crlf(bytes), "latin1");
const crlf = (bytes: Buffer) =>
  bytes
    .toString("latin1")
    .replace(/\r\n|\r|\n/g, "\r\n")
    .replace(/^\r\n+/, "");
const domainOf = (address: string) => address.slice(address.lastIndexOf("@") + 1).toLowerCase();

async function runForward(stage: MaskedStage, tally: Tally, given: Case, expected: string | undefined): Promise<void> {
  const { file, envelope_from } = given;
  if (given.dmarc_reject) {
    stage.dns.set(`_dmarc.${domainOf(envelope_from)}`, "TXT", ["v=DMARC1; p=reject"]);
    stage.dns.set(domainOf(envelope_from), "TXT", ["v=spf1 -all"]);
  }
  const alias = await stage.alias({ forward_to: [MAILBOX] });
  stage.sink.messages.length = 0;
  const answer = await stage.send({ from: envelope_from, to: alias.full, content: crlf(given.bytes) });
  if (given.dmarc_reject) {
    tally.judge(`${file}: answer`, "550 5.7.1", answer.text.slice(0, 9));
    return;
  }
  if (answer.code !== 250) {
    tally.judge(`${file}: answer`, 250, answer.text, whyRefused(answer.text, Buffer.from(crlf(given.bytes), "latin1")));
    return;
  }
  const forward = (await firstTo(stage, MAILBOX, alias.id))?.bytes;
  if (!forward) {
    const why = (await isQuarantined(stage, alias.id)) ? WHY.spam : null;
    tally.judge(`${file}: forwarded`, true, false, why);
    return;
  }
  const [before, after] = await Promise.all([PostalMime.parse(wire(given.bytes)), PostalMime.parse(forward)]);
  judgeForward(tally, file, { before, after, forward, alias });
  if (!expected) return;
  const theirs = await PostalMime.parse(readFileSync(expected));
  judgeExpected(tally, file, { before, after, theirs, alias });
}

/** Only by the rule that the answer names, and only where the bytes break it. */
function whyRefused(answer: string, bytes: Buffer): string | null {
  const hops = bytes.toString("latin1").match(/^received:/gim)?.length ?? 0;
  if (/^554 5\.4\.6/.test(answer)) return hops > RECEIVED_MAX ? WHY.broken : null;
  if (/^554 5\.[56]\./.test(answer)) return answerTo(bytes) === "554" ? WHY.broken : null;
  return /^550 5\.7\.1 the message is refused: /.test(answer) ? WHY.spam : null;
}

type Forwarded = { before: Email; after: Email; forward: Buffer; alias: { full: string; domain: string } };

function judgeForward(tally: Tally, file: string, { before, after, forward, alias }: Forwarded): void {
  const head = forward.subarray(0, forward.indexOf("\r\n\r\n")).toString("latin1");
  tally.judge(`${file}: From`, true, isReverse(after, alias));
  tally.judge(`${file}: To`, alias.full, after.to?.[0]?.address);
  tally.judge(`${file}: the mailbox is not named`, false, forward.includes(MAILBOX));
  tally.judge(`${file}: Subject`, oneLine(before.subject), oneLine(after.subject));
  tally.judge(`${file}: MIME-Version`, 1, head.match(/^mime-version:/gim)?.length ?? 0);
  tally.judge(`${file}: bodies`, [before.text, before.html], [after.text, after.html]);
  tally.judge(`${file}: attachments`, partsOf(before), partsOf(after));
}

/** An address that stands for the contact. */
function isReverse({ from }: Email, { domain }: Forwarded["alias"]): boolean {
  return new RegExp(`^r\\.[a-z2-7]{26}@${domain}$`).test(from?.address ?? "");
}

const oneLine = (text: string | undefined) => (text ?? "").replace(/\s+/g, " ").trim();
const partsOf = (mail: Email) =>
  mail.attachments.map(({ contentId, mimeType, filename, content }) => [
    contentId,
    mimeType,
    filename,
    /calendar|\/ics$/i.test(mimeType) ? eventOf(content) : lengthOf(content),
  ]);
/** What an invitation says besides whom it concerns: for people masked addresses stand there. */
const eventOf = (content: ArrayBuffer | Uint8Array | string) =>
  (typeof content === "string" ? content : Buffer.from(content as Uint8Array).toString())
    .replace(/\r?\n[ \t]/g, "")
    .split(/\r?\n/)
    .filter((line) => line !== "" && !/^(?:ORGANIZER|ATTENDEE)\b/i.test(line));
const lengthOf = (content: ArrayBuffer | Uint8Array | string) =>
  typeof content === "string" ? content.length : content.byteLength;

type Compared = Pick<Forwarded, "before" | "after" | "alias"> & { theirs: Email };

/** What both services want alike, and what they do each in its own way: that is ours exactly, or it is no reason. */
function judgeExpected(tally: Tally, file: string, { before, after: ours, theirs, alias }: Compared): void {
  const squeeze = (text: string | undefined) => (text ?? "").replace(/<[^>]*>|\s+/g, "");
  const asItCame = squeeze(ours.text) === squeeze(before.text) ? WHY.wrapper : null;
  const [to, from] = [ours.to?.[0]?.address, ours.from?.address];
  tally.judge(`${file}: expected Subject`, theirs.subject ?? "", ours.subject ?? "");
  tally.judge(`${file}: expected inline images`, imagesOf(theirs), imagesOf(ours));
  tally.judge(`${file}: expected text within`, true, squeeze(theirs.text).includes(squeeze(ours.text)), asItCame);
  tally.judge(`${file}: expected To`, theirs.to?.[0]?.address, to, to === alias.full ? WHY.to : null);
  tally.judge(`${file}: expected From`, theirs.from?.address, from, isReverse(ours, alias) ? WHY.from : null);
  tally.judge(`${file}: expected body`, squeeze(theirs.text), squeeze(ours.text), asItCame);
}

const imagesOf = (mail: Email) =>
  mail.attachments
    .filter(({ mimeType }) => mimeType.startsWith("image/"))
    .map(({ mimeType, contentId }) => [mimeType, contentId]);

/** The first that is no request to confirm; null when the alias let nothing through. */
async function firstTo(stage: MaskedStage, email: string, aliasId: string): Promise<Received | null> {
  const until = Date.now() + 5_000;
  for (;;) {
    const found = stage.sink.messages.find(({ to, bytes }) => to[0] === email && !bytes.includes("/masked/confirm/"));
    if (found) return found;
    const [last = ""] = await stage.activity(aliasId);
    if (/ (?:dropped|held|failed) /.test(last) || Date.now() > until) return null;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function isQuarantined(stage: MaskedStage, aliasId: string): Promise<boolean> {
  return (await stage.activity(aliasId)).some((entry) => entry.startsWith("quarantine "));
}

/** The user's answer: sent from a mailbox that its domain vouches for, to the contact's reverse address. */
async function runReply(stage: MaskedStage, tally: Tally, given: Case, expected: string | undefined): Promise<void> {
  const { file } = given;
  const before = await PostalMime.parse(wire(given.bytes));
  const author = before.from?.address ?? given.envelope_from;
  stage.dns.set(domainOf(author), "TXT", [`v=spf1 ip4:${IP_D} -all`]);
  stage.dns.set(domainOf(author), "MX", [{ exchange: `mx.${HOST}`, preference: 10 }]);
  const alias = await stage.alias({ forward_to: [author] });
  const made = await stage.api.ask("POST", `/v1/masked/aliases/${alias.id}/contacts`, { email: C });
  const to = made.body.contact.reply_address;
  const [head = "", ...rest] = crlf(given.bytes).split("\r\n\r\n");
  const addressed = head.replace(/^(?:to|cc):.*(?:\r\n[ \t].*)*\r\n?/gim, "");
  stage.sink.messages.length = 0;
  const content = [`To: ${to}\r\n${addressed}`, ...rest].join("\r\n\r\n");
  const answer = await stage.send({ from: author, to, content, ip: IP_D });
  tally.judge(`${file}: answer`, 250, answer.code);
  const reply = (await firstTo(stage, C, alias.id))?.bytes;
  tally.judge(`${file}: sent on`, true, reply !== undefined);
  if (!reply) return;
  const after = await PostalMime.parse(reply);
  const secret = new RegExp(author.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  tally.judge(`${file}: From`, alias.full, after.from?.address);
  tally.judge(
    `${file}: the mailbox is nowhere`,
    false,
    secret.test(`${reply.toString("latin1")}${after.text}${after.html}`),
  );
  tally.judge(`${file}: Subject`, before.subject ?? "", after.subject ?? "");
  if (!expected) return;
  const theirs = await PostalMime.parse(readFileSync(expected));
  const reason = given.is_head_only ? WHY.content : null;
  tally.judge(`${file}: expected text`, (theirs.text ?? "").trim(), (after.text ?? "").trim(), reason);
}

/** A notice of a bounce comes to the return path of a forward: a hard one counts against the destination, a soft one not. */
async function runBounce(stage: MaskedStage, tally: Tally, file: string, { bounce }: Notification): Promise<void> {
  const email = bounce?.bouncedRecipients?.[0]?.emailAddress ?? MAILBOX;
  stage.dns.set(domainOf(email), "MX", [{ exchange: `mx.${HOST}`, preference: 10 }]);
  const alias = await stage.alias({ forward_to: [email] });
  stage.sink.messages.length = 0;
  await stage.send({ from: C, to: alias.full, content: `From: ${C}\r\nTo: ${alias.full}\r\nSubject: x\r\n\r\nx\r\n` });
  const path = (await firstTo(stage, email, alias.id))?.from ?? "";
  await stage.settle();
  const notice = `From: no-reply@sns.amazonaws.com\r\nTo: ${path}\r\nSubject: Amazon SES Bounce Notification\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${JSON.stringify({ notificationType: "Bounce", bounce, mail: { destination: [email], headers: [] } })}\r\n`;
  const answer = await stage.send({ from: "", to: path, content: notice, ip: IP_D });
  tally.judge(`${file}: answer`, 250, answer.code);
  await stage.settle();
  const entry = (await stage.activity(alias.id)).find((one) => one.startsWith("bounce "))?.split(" ")[2];
  tally.judge(`${file}: counted as`, bounce?.bounceType === "Permanent" ? "hard" : "soft", entry);
  tally.judge(`${file}: the contact hears nothing`, 0, stage.sink.messages.filter(({ to }) => to[0] === C).length);
}
