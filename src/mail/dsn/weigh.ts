// Class, hard or soft, and suppress, from what a report says. A report proves less than a live reply: it is written by
// a third party, after the conversation. So classify.ts gives the class, the class the type (bounce-types.ts), and this
// file asks for proof before it suppresses (decision 0013): a code about the address, or an answer to RCPT. Words that
// reporters have for themselves are in report-texts.json.

import { anyOf } from "../any-of.ts";
import { bounceType, type ReplyClass } from "../smtp/bounce-types.ts";
import { type Classification, classifyReply, type ReplyStage } from "../smtp/classify.ts";
import { findCodes } from "./reply-codes.ts";
import textTable from "./report-texts.json" with { type: "json" };

export type Codes = { status: string | null; smtp_code: string | null };

/** What is known of one recipient. `near` is about it, surest first; `far` is what the report says besides. */
export type Evidence = {
  near: readonly string[];
  far: readonly string[];
  codes: Codes;
  /** The refused command, null when the report does not tell. */
  stage: ReplyStage | null;
  email: string | null;
  /** false for a warning: the mail is still being tried. */
  isFinal: boolean;
  /** The status was made by the reporter of a bare reply, and is not among the codes: words around it echo that. */
  isMadeUp: boolean;
};

export type Verdict = { class: ReplyClass; bounce_type: "hard" | "soft"; suppress: boolean };

type Found = Pick<Verdict, "class" | "suppress">;

type TextEntry = { id: string; class: string; without_code?: boolean; match: string; unless?: string };

const reportTexts = (textTable as TextEntry[]).map((entry) => ({
  class: entry.class as ReplyClass,
  isWithoutCode: entry.without_code ?? false,
  regexp: new RegExp(anyOf(entry.match), "iu"),
  unless: entry.unless === undefined ? null : new RegExp(anyOf(entry.unless), "iu"),
}));

// classify.ts reads the first 1,000 characters.
const textCharsMax = 1_000;
// The codes that say that the address does not work; classify.ts has the same list for live replies.
const addressCodes = new Set(["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"]);

/** Weighs the evidence. Suppressed is nobody where it is not enough. */
export function weigh(evidence: Evidence): Verdict {
  const code = effectiveCode(evidence);
  const found = fromReporter(evidence) ?? fromReply(evidence, code);
  const mailClass = evidence.isFinal && code < 500 ? finalClass(found.class) : found.class;
  const bounce_type = bounceType(mailClass, code >= 500 && evidence.isFinal);
  // Whom: a report that names nobody is about the one whose return path it came to (apportion.ts).
  return { class: mailClass, bounce_type, suppress: bounce_type === "hard" && found.suppress };
}

// A report without a reply code is read as a refusal that says nothing by itself: 554, or 450 when it may pass.
function effectiveCode({ codes, isFinal }: Evidence): number {
  if (!isFinal) return 450;
  if (codes.smtp_code !== null) return Number(codes.smtp_code);
  return codes.status?.startsWith("4.") ? 450 : 554;
}

// A temporary trouble that ended in failure has used up its retries.
function finalClass(mailClass: ReplyClass): ReplyClass {
  return mailClass === "busy" || mailClass === "connection" || mailClass === "greylisted" ? "expired" : mailClass;
}

// Words that the reporter says of its own knowledge. They come before the codes, which reporters make up.
function fromReporter({ near, far, codes }: Evidence): Found | null {
  for (const text of [...near, ...far].map(oneLine)) {
    const found = reportTexts.find(
      (entry) => isHeard(entry, codes) && entry.regexp.test(text) && !entry.unless?.test(text),
    );
    // The words say that the address does not work; only a code may say so beyond doubt.
    if (found !== undefined) return { class: found.class, suppress: isAddressCode(codes.status) };
  }
  return null;
}

function isHeard(entry: (typeof reportTexts)[number], codes: Codes): boolean {
  if (entry.isWithoutCode && hasRemoteCode(codes)) return false;
  // A refusal by policy (RFC 3463 §3.8) is about us, whatever it says of its own domain. sendmail gives 5.7.27 (RFC 7505:
  // the sender's null MX) to null MX of recipients.
  return !(entry.class === "bad_domain" && /^[45]\.7\.(?!27$)/.test(codes.status ?? ""));
}

// x.0.0, x.1.2 and x.4.x are what mailers give themselves when they never got an answer.
function hasRemoteCode({ status, smtp_code }: Codes): boolean {
  return smtp_code !== null || (status !== null && !/\.(?:0\.0|1\.2|4\.\d{1,3}|5\.0)$/.test(status));
}

function fromReply(evidence: Evidence, code: number): Found {
  const { near, far, codes, stage } = evidence;
  // Unknown stage: a code may say that it is about the address, words alone are not believed to.
  const isByCode = stage === null && isAddressCode(codes.status);
  const asked = { stage: stage ?? (isByCode ? "rcpt" : "final"), code, enhanced: codes.status } as const;
  const answers = [...near, ...far, ""].map((text) => ({ ...classifyReply({ ...asked, text: replyIn(text) }), text }));
  const first = answers[0]!;
  const others = answers.slice(1);
  // A code that says "no such user" beside a text that says "mailbox full": neither is believed to be final.
  const full = others.find(({ rule }) => rule.startsWith("mailbox-"));
  if (full !== undefined && first.class !== "mailbox_full" && first.bounce_type === "hard")
    return { class: full.class, suppress: false };
  if (isDecided(first.rule)) return withProof(first, evidence);
  const other = others.find(({ rule }) => !isCodeRule(rule) && !boilerplate.has(rule));
  const verdict = withProof(other ?? first, evidence);
  return evidence.isMadeUp && other !== undefined ? { ...verdict, suppress: false } : verdict;
}

// The reply alone: what a reporter says around it ("192.0.2.1 does not like recipient") is not the remote side's.
function replyIn(text: string): string {
  const start = findCodes(text).code_at;
  return oneLine(start > 0 ? text.slice(start) : text);
}

// Not decided: codes that only name a subject, or that servers use for everything.
function isDecided(rule: string): boolean {
  return !/^(?:\d{3}|x\.\d\.0|x\.7\.1|x\.3\.5|x\.4\.[12])$/.test(rule);
}

function isCodeRule(rule: string): boolean {
  return /^(?:\d{3}|x\.\d{1,3}\.\d{1,3})$/.test(rule);
}

// What every report says ("could not be delivered", "try again later"): no reason when it stands beside the reply.
const boilerplate = new Set(["vague-recipient", "busy", "expired", "policy", "content", "not-for-us", "login-needed"]);

// "Host not found, try again" is a name server that did not answer.
const maybeLater = /try again|temporar|transient|timed? ?out|servfail/i;

type Answer = Classification & { text: string };

function withProof(found: Answer, evidence: Evidence): Found {
  const isPassing = (found.class === "bad_domain" || found.class === "routing") && maybeLater.test(found.text);
  if (isPassing) return { class: "dns", suppress: false };
  const isSure = isProven(found, evidence);
  // An answer to DATA is about the message: "user unknown" is what filters say there.
  const isAfterData = evidence.stage === "final" || evidence.stage === "data";
  // "Could not be delivered" gives no reason; and words that no server's code stands behind are hearsay.
  const isVague = evidence.stage === null && (found.rule === "vague-recipient" || !hasRemoteCode(evidence.codes));
  if (!isSure && (isAfterData || isVague) && isAboutAddress(found.class)) return { class: "content", suppress: false };
  return { class: found.class, suppress: found.suppress && isSure };
}

function isAboutAddress(mailClass: ReplyClass): boolean {
  return mailClass === "invalid_recipient" || mailClass === "inactive_mailbox";
}

function isProven(found: Answer, { codes, stage, email }: Evidence): boolean {
  if (found.class === "bad_domain" || found.class === "routing") return true;
  // RFC 3463 §3.2, §3.3: x.1 is about the address, whatever its detail; of x.2 only a disabled mailbox is for good.
  if (found.class === "inactive_mailbox") return codes.status === "5.2.1" && (stage === "rcpt" || stage === null);
  if (codes.status?.startsWith("5.1.")) return true;
  // x.3, x.4 and x.5 are about their system, the network and the protocol.
  if (stage === "rcpt") return found.rule !== "vague-recipient" || !/^5\.[345]\./.test(codes.status ?? "");
  return stage === null && found.rule.startsWith("no-such-user") && email !== null && saysItOf(email, found.text);
}

// A reply quoted by itself, without an enhanced code, that names the address: "550 <user@example.com>: User unknown".
// It may stand below a heading ("Transcript of session follows") or among those about others: then its own words count.
function saysItOf(email: string, text: string): boolean {
  const isAbout = (said: string) => /^5\d\d[ :-]+(?![\d#(]*5\.)/.test(said) && said.includes(email.toLowerCase());
  const own = text
    .split(/\n(?=[ \t]*[45]\d\d[ :-])/)
    .map((reply) => oneLine(reply).toLowerCase())
    .filter(isAbout);
  if (own.length === 0) return isAbout(oneLine(text).toLowerCase());
  const asked = { stage: "final", code: 550, enhanced: null } as const;
  return own.some((reply) => classifyReply({ ...asked, text: reply }).rule.startsWith("no-such-user"));
}

/** Whether an enhanced code says that the address does not work. */
export function isAddressCode(status: string | null): boolean {
  return status !== null && addressCodes.has(status);
}

function oneLine(text: string): string {
  return text
    .slice(0, 4 * textCharsMax)
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, textCharsMax);
}
