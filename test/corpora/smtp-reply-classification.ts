// What a refusal means: IANA's enhanced codes, and KumoMTA's rules (regular expressions over "code enhanced text" per
// class). Every 4.x.x is temporary and every 5.x.x permanent; a rule's class must not contradict ours.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { classifyReply } from "../../src/mail/smtp/classify.ts";
import { caseFiles } from "./case-files.ts";
import { plainest, type Rule, readRules } from "./kumomta-rules.ts";
import type { Corpus, Tally } from "./tally.ts";

export const smtpReplyClassification: Corpus = {
  name: "smtp-reply-classification",
  run(dir, tally) {
    for (const file of caseFiles(dir)) {
      const text = readFileSync(join(dir, file), "utf8");
      if (file.endsWith(".csv")) judgeRegistry(tally, text);
      if (file.endsWith(".toml")) judgeRules(tally, file, text);
    }
  },
};

function judgeRegistry(tally: Tally, csv: string): void {
  const codes = new Set(csv.match(/\b[245X]\.\d{1,3}\.\d{1,3}\b/g) ?? []);
  for (const code of codes) {
    for (const family of code.startsWith("X") ? ["4", "5"] : code.startsWith("2") ? [] : [code.slice(0, 1)]) {
      const enhanced = family + code.slice(1);
      const basic = family === "4" ? 450 : 550;
      const got = classifyReply({ stage: "rcpt", code: basic, enhanced, text: "refused" });
      const isAboutUs = enhanced.startsWith("5.7.") && got.path_action === "other_source";
      const type = ADDRESS_CODES.has(enhanced) ? "hard" : family === "4" ? "soft" : got.bounce_type;
      const reason = isAboutUs ? "a permanent refusal of our address may be tried from another one" : null;
      tally.judge(enhanced, [family === "4", type], [got.retry, got.bounce_type], reason);
    }
  }
}

/** What the contract calls hard: the address does not work. */
const ADDRESS_CODES = new Set(["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"]);

/** KumoMTA's classes and which of our classes say the same; a rule may be narrower than our class. */
const CLASSES = new Map<string, readonly string[]>(
  Object.entries({
    InvalidRecipient: ["invalid_recipient", "inactive_mailbox", "bad_domain"],
    BadDomain: ["bad_domain", "invalid_recipient", "dns", "routing", "auth", "content"],
    InactiveMailbox: ["inactive_mailbox", "invalid_recipient", "mailbox_full"],
    InvalidSender: ["auth", "content", "routing", "blocked", "invalid_recipient"],
    // "Mail system full" (x.3.1) is the disk of their server, not a mailbox (RFC 3463 §3.4).
    QuotaIssues: ["mailbox_full", "too_large", "rate_limited", "busy"],
    NoAnswerFromHost: ["connection", "dns", "busy"],
    RelayDenied: ["routing", "auth", "blocked", "content"],
    SpamBlock: ["blocked", "content", "rate_limited", "auth", "greylisted"],
    SpamContent: ["content", "blocked", "auth"],
    ProhibitedAttachment: ["content"],
    PolicyRelated: [
      "content",
      "auth",
      "blocked",
      "rate_limited",
      "greylisted",
      "routing",
      "invalid_recipient",
      "too_large",
      "busy",
    ],
    MessageExpired: ["expired", "connection", "busy"],
    AuthenticationFailed: ["auth", "content", "blocked"],
    RoutingErrors: ["routing", "dns", "connection", "bad_domain", "busy", "invalid_recipient", "expired"],
    ProtocolErrors: ["content", "busy", "connection", "routing", "rate_limited", "auth", "too_large"],
    BadConfiguration: ["routing", "busy", "dns", "content", "mailbox_full", "connection", "auth"],
    BadConnection: ["connection", "busy", "rate_limited", "dns"],
    DNSFailure: ["dns", "bad_domain", "connection", "routing", "auth", "blocked"],
    TransientFailure: [
      "busy",
      "connection",
      "rate_limited",
      "greylisted",
      "mailbox_full",
      "dns",
      "routing",
      "content",
      "blocked",
      "auth",
      "too_large",
    ],
    TooManyRecipients: ["rate_limited", "content", "busy"],
    Greylisting: ["greylisted", "rate_limited", "busy"],
    RateLimited: ["rate_limited", "greylisted", "busy", "connection"],
    Challenge: ["content", "greylisted", "blocked"],
  }),
);

function judgeRules(tally: Tally, file: string, toml: string): void {
  const unplayed = readRules(toml).filter(({ group, pattern }) => !judgeRule(tally, file, { group, pattern }));
  if (unplayed.length === 0) return;
  const some = unplayed.slice(0, 3).map(({ pattern }) => pattern);
  tally.notes.push(
    `${file}: for ${unplayed.length} rules no refusal could be made that they match: ${some.join(" and ")}`,
  );
}

/** One reply that the rule means; false when none could be made of its pattern. */
function judgeRule(tally: Tally, file: string, { group, pattern }: Rule): boolean {
  const sample = plainest(pattern);
  const [, code, enhanced, text = ""] =
    /^(?:([245]\d\d))?[ -]*([245]\.\d{1,3}\.\d{1,3})?\s*(.*)$/.exec(sample ?? "") ?? [];
  const basic = Number(code ?? (enhanced?.startsWith("4") ? 450 : 550));
  if (sample === null || basic < 400) return false;
  const got = classifyReply({ stage: "rcpt", code: basic, enhanced: enhanced ?? null, text });
  // Of a class that we do not know only this: a permanent code is final, a temporary one is not.
  const agrees = CLASSES.get(group)?.includes(got.class) ?? got.retry === basic < 500;
  tally.judge(`${file} ${group}: ${sample}`, "agrees", agrees ? "agrees" : `${group} ≠ ${got.class}`);
  return true;
}
