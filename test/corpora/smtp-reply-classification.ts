// What a refusal means: IANA's enhanced codes, and KumoMTA's rules (regular expressions over "code enhanced text" per
// class). Every 4.x.x is temporary and every 5.x.x permanent; a rule's class must not contradict ours.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { classifyReply } from "../../src/mail/smtp/classify.ts";
import { type Corpus, createTally, type Tally } from "./tally.ts";

export const smtpReplyClassification: Corpus = {
  name: "smtp-reply-classification",
  async run(dir) {
    const tally = createTally();
    for (const file of readdirSync(dir)) {
      const text = file === "README.md" ? "" : readFileSync(join(dir, file), "utf8");
      if (file.endsWith(".csv")) judgeRegistry(tally, text);
      if (file.endsWith(".toml")) judgeRules(tally, file, text);
    }
    return tally;
  },
};

function judgeRegistry(tally: Tally, csv: string): void {
  const codes = new Set(csv.match(/\b[245X]\.\d{1,3}\.\d{1,3}\b/g) ?? []);
  for (const code of codes) {
    for (const family of code.startsWith("X") ? ["4", "5"] : code.startsWith("2") ? [] : [code.slice(0, 1)]) {
      const enhanced = family + code.slice(1);
      const basic = family === "4" ? 450 : 550;
      const { retry } = classifyReply({ stage: "rcpt", code: basic, enhanced, text: "refused" });
      const isAboutUs =
        retry && family === "5" ? "a permanent refusal of our address may be tried from another one" : null;
      tally.judge(`${enhanced}`, family === "4", retry, isAboutUs);
    }
  }
}

/** KumoMTA's classes and which of ours say the same; what a rule is about may be narrower than ours. */
const CLASSES: Record<string, string[]> = {
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
};

function judgeRules(tally: Tally, file: string, toml: string): void {
  let group = "";
  for (const line of toml.split("\n")) {
    const [, name] = /^\s*(?:\[\s*rules\s*\]|"?([A-Za-z]+)"?\s*=\s*\[)/.exec(line) ?? [];
    if (name) group = name;
    for (const [, pattern] of line.matchAll(/["']{1,3}((?:\\.|[^"'\\]){6,})["']{1,3}/g)) {
      if (group !== "" && pattern) judgeRule(tally, `${file} ${group}`, group, pattern);
    }
  }
}

/** One reply that the rule means: its pattern with the alternatives and repeats taken in their plainest form. */
function judgeRule(tally: Tally, where: string, group: string, pattern: string): void {
  const sample = plainest(pattern.replaceAll("\\\\", "\\"));
  const [, code, enhanced, text = ""] = /^(?:([245]\d\d))?[ -]*([245]\.\d{1,3}\.\d{1,3})?\s*(.*)$/.exec(sample) ?? [];
  if (!sample || !new RegExp(pattern.replaceAll("\\\\", "\\"), "i").test(sample)) return;
  const basic = Number(code ?? (enhanced?.startsWith("4") ? 450 : 550));
  if (basic < 400) return;
  const got = classifyReply({ stage: "rcpt", code: basic, enhanced: enhanced ?? null, text }).class;
  const allowed = CLASSES[group];
  const agrees = !allowed || allowed.includes(got);
  tally.judge(`${where}: ${sample}`, "agrees", agrees ? "agrees" : `${group} ≠ ${got}`);
}

function plainest(pattern: string): string {
  let text = pattern.replace(/^\^|\$$/g, "");
  for (let round = 0; round < 10 && /\([^()]*\)/.test(text); round += 1) {
    text = text.replace(/\((?:\?[:i]+)?([^()|]*)(?:\|[^()]*)*\)[?*+]?/g, "$1");
  }
  return text
    .replace(/\\d(?:\{\d+(?:,\d*)?\}|[+*])?/g, "0")
    .replace(/\[([^\]^])[^\]]*\](?:\{[^}]*\}|[+*?])?/g, "$1")
    .replace(/\.[*+]\??/g, " ")
    .replace(/\\s[*+]?/g, " ")
    .replace(/\\b/g, "")
    .replace(/(\w)\?/g, "$1")
    .replace(/\\(.)/g, "$1");
}
