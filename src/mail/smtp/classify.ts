// What a refusal means for the address, the message and the path: class, hard or soft, retry, suppress, path action.
// Order: provider patterns, texts that overrule a code, enhanced code (RFC 3463), other texts, reply code; words that say
// "no such user" are believed only where no others say that it is the sender or a trouble of theirs, and words of rates and
// lists only where none say that it is not our address that is meant. The five data files beside this one give a reason for
// every entry. Knows no queue, no history, no clock; parses nothing (reply.ts).
import { anyOf } from "../any-of.ts";
import { bounceType, type ReplyClass } from "./bounce-types.ts";
import codeTable from "./enhanced-codes.json" with { type: "json" };
import otherTable from "./not-our-address.json" with { type: "json" };
import doubtTable from "./not-the-recipient.json" with { type: "json" };
import providerTable from "./provider-patterns.json" with { type: "json" };
import textTable from "./reply-texts.json" with { type: "json" };

export type { ReplyClass };

export type ReplyStage = "connect" | "banner" | "ehlo" | "starttls" | "auth" | "mail" | "rcpt" | "data" | "final";

export type Refusal = {
  stage: ReplyStage;
  code: number;
  enhanced: string | null;
  text: string;
  /** The provider that answered, as the stats name it; its own patterns are tried first. */
  site?: string;
};

/**
 * `path_action`: slow the path down; slow_sender: only for mail of this sender's domain; suspend it and keep the message;
 * other_source means suspend it and try the message once from another source. `retry_after_min` is the least wait in minutes. `rule` names the entry that decided.
 */
export type Classification = {
  class: ReplyClass;
  bounce_type: "hard" | "soft";
  retry: boolean;
  suppress: boolean;
  path_action: null | "slow" | "slow_sender" | "suspend" | "other_source";
  retry_after_min?: number;
  rule: string;
};

const ABOUT_RECIPIENT = new Set<ReplyClass>(["invalid_recipient", "bad_domain", "inactive_mailbox", "mailbox_full"]);
// The only codes that ever suppress. 4.x, 5.3.x, 5.4.x and 5.7.x are about us, the network or the content.
const SUPPRESSING = new Set(["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"]);
const PLAIN_SUPPRESSING = new Set([550, 551, 553]);
const GREYLIST_MIN = 5;
const WAIT_MAX_MIN = 240;

/** Classifies a refusing reply. Total: any code, text or stage gives an answer; what is unknown never suppresses. */
export function classifyReply(refusal: Refusal): Classification {
  const found = ofWhom(findRule(refusal), refusal);
  const mailClass = atStage(found.class, refusal.stage);
  const isPermanent = refusal.code >= 500 && refusal.code <= 599;
  const isEarly = isBeforeMail(refusal.stage);
  const result: Classification = {
    class: mailClass,
    bounce_type: bounceType(mailClass, isPermanent),
    retry: isEarly || !isPermanent || mayRetryPermanent(mailClass, found),
    suppress: isPermanent && mustSuppress(refusal, mailClass, found),
    path_action: found.spares_path ? spared(found) : pathAction(mailClass, refusal, isPermanent),
    rule: found.id,
  };
  const waitMin = result.retry ? waitMinutes(mailClass, found, refusal.text) : undefined;
  return waitMin === undefined ? result : { ...result, retry_after_min: waitMin };
}

/** Said before MAIL: about us or the server, never about one message (RFC 5321 §3.1). */
function isBeforeMail(stage: ReplyStage): boolean {
  return stage === "connect" || stage === "banner" || stage === "ehlo" || stage === "starttls" || stage === "auth";
}

/** Only RCPT (and an answer to the whole message) can be about the recipient: at MAIL it is the sender that is unknown. */
function atStage(mailClass: ReplyClass, stage: ReplyStage): ReplyClass {
  if (stage === "auth" && mailClass !== "busy" && mailClass !== "rate_limited") return "auth";
  // Nothing of the message has been seen yet: a rule that fires here is about our address.
  if (isBeforeMail(stage) && mailClass === "content") return "blocked";
  if (isBeforeMail(stage) && mailClass === "routing") return "connection";
  if (!ABOUT_RECIPIENT.has(mailClass)) return mailClass;
  if (isBeforeMail(stage)) return "connection";
  return stage === "mail" && mailClass !== "mailbox_full" ? "auth" : mailClass;
}

/** A 5xx is final (RFC 5321 §4.2.1), except where its own words say that time or another address mends it. */
function mayRetryPermanent(mailClass: ReplyClass, found: Rule): boolean {
  return mailClass === "blocked" || (found.by_text && (mailClass === "greylisted" || mailClass === "rate_limited"));
}

function mustSuppress(refusal: Refusal, mailClass: ReplyClass, found: Rule): boolean {
  if (refusal.stage !== "rcpt" || !ABOUT_RECIPIENT.has(mailClass) || mailClass === "mailbox_full") return false;
  if (refusal.enhanced !== null) return SUPPRESSING.has(refusal.enhanced);
  return found.no_such_user && PLAIN_SUPPRESSING.has(refusal.code);
}

function pathAction(mailClass: ReplyClass, refusal: Refusal, isPermanent: boolean): Classification["path_action"] {
  if (mailClass === "rate_limited") return "slow";
  if (mailClass === "blocked") {
    // At the door, or with the end of the session, it is about us; else it may be one recipient's list at a provider of many.
    const isForAll = refusal.code === 421 || isBeforeMail(refusal.stage);
    return isForAll && !isPermanent ? "suspend" : "other_source";
  }
  // A login that fails will fail for every message.
  return refusal.stage === "auth" && isPermanent ? "suspend" : null;
}

function spared({ slows_sender }: Rule): Classification["path_action"] {
  return slows_sender ? "slow_sender" : null;
}

function waitMinutes(mailClass: ReplyClass, found: Rule, text: string): number | undefined {
  if (mailClass !== "greylisted") return found.retry_after_min;
  const said = /(\d{1,5}) ?(s\b|sec|m\b|min|h\b|hour)/i.exec(text);
  const unit = said?.[2]?.[0]?.toLowerCase();
  const minutes = said ? Number(said[1]) / (unit === "s" ? 60 : unit === "h" ? 1 / 60 : 1) : 0;
  return Math.min(WAIT_MAX_MIN, Math.max(GREYLIST_MIN, found.retry_after_min ?? 0, Math.ceil(minutes)));
}

type Rule = {
  id: string;
  class: ReplyClass;
  by_text: boolean;
  no_such_user: boolean;
  retry_after_min?: number;
  /** It is not our address that is meant: mail of others on the same path is not to wait for it. */
  spares_path?: boolean;
  slows_sender?: boolean;
};

type Pattern = Rule & {
  regexp: RegExp;
  unless: RegExp | null;
  codes: string;
  site?: string;
  site_only: boolean;
  weak: boolean;
};

type PatternEntry = {
  id: string;
  class: string;
  match: string | readonly string[];
  unless?: string | readonly string[];
  codes?: string;
  site?: string;
  site_only?: boolean;
  weak?: boolean;
  no_such_user?: boolean;
  retry_after_min?: number;
  spares_path?: boolean;
  slows_sender?: boolean;
};

const PROVIDERS = (providerTable as PatternEntry[]).map(compile);
const TEXTS = (textTable as PatternEntry[]).map(compile);
const DOUBTS = (doubtTable as PatternEntry[]).map(compile);
const OTHERS = (otherTable as PatternEntry[]).map(compile);
const OTHER_RATES = OTHERS.filter((pattern) => pattern.class === "rate_limited");
const OTHER_LISTS = OTHERS.filter((pattern) => pattern.class !== "rate_limited");
const STRONG = TEXTS.filter((pattern) => !pattern.weak);
const WEAK = TEXTS.filter((pattern) => pattern.weak);
const NO_SUCH_USER = WEAK.filter((pattern) => pattern.no_such_user);
// "Our domain does not accept mail from …" under a code of policy (x.7) is no word about a domain that is not there.
const WEAK_OF_POLICY = WEAK.filter((pattern) => pattern.class !== "bad_domain");

function compile(entry: PatternEntry): Pattern {
  return {
    id: entry.id,
    class: entry.class as ReplyClass,
    regexp: new RegExp(withoutAccents(anyOf(entry.match)), "u"),
    unless: entry.unless === undefined ? null : new RegExp(withoutAccents(anyOf(entry.unless)), "u"),
    codes: entry.codes ?? "",
    by_text: true,
    site: entry.site,
    site_only: entry.site_only ?? false,
    weak: entry.weak ?? false,
    no_such_user: entry.no_such_user ?? false,
    retry_after_min: entry.retry_after_min,
    spares_path: entry.spares_path ?? false,
    slows_sender: entry.slows_sender ?? false,
  };
}

function findRule(refusal: Refusal): Rule {
  const said = foldText(refusal.text.slice(0, 1000));
  const provider = firstProvider(said, refusal);
  if (provider && !provider.no_such_user) return provider;
  const masked = withoutQueries(withoutAddresses(said));
  if (provider) return orDoubt(provider, masked, refusal);
  const code = byEnhancedCode(refusal);
  const strong = firstMatch(STRONG, masked, refusal.code);
  if (strong && !yieldsToSpace(strong, code)) {
    if (!(yieldsToRecipient(strong) && agreeOnRecipient(masked, refusal, code))) return strong;
  }
  if (code && !code.vague) return code;
  const words = withoutPaths(masked);
  const weak = firstMatch(code?.id.startsWith("x.7.") ? WEAK_OF_POLICY : WEAK, words, refusal.code);
  if (weak) return orDoubt(weak, masked, refusal);
  const plain = code ?? byReplyCode(refusal);
  // A bare 550 at RCPT is about the recipient only as long as its words name nobody else.
  return code === null && ABOUT_RECIPIENT.has(plain.class) ? (doubtOf(masked, refusal.code) ?? plain) : plain;
}

/** Names and addresses in the text must not speak: spam@example.com is not a word about spam. */
function withoutAddresses(said: string): string {
  return said.replace(/<?[^\s<>@,;:"]{1,128}@[^\s<>,;"]{1,255}>?/gu, "<address>");
}

/**
 * A rate or a list that is of one recipient or of one sender's domain is no trouble of our address: all mail to the same
 * provider would stand still for it, other senders' too.
 */
function ofWhom(found: Rule, { stage, text, code }: Refusal): Rule {
  const others = found.class === "rate_limited" ? OTHER_RATES : found.class === "blocked" ? OTHER_LISTS : null;
  if (!others || found.spares_path || isBeforeMail(stage)) return found;
  const meant = firstMatch(others, withoutUrls(withoutAddresses(foldText(text.slice(0, 1000)))), code);
  const { id, class: mailClass, slows_sender } = meant ?? found;
  return meant ? { ...found, id, class: mailClass, spares_path: true, slows_sender } : found;
}

/** Words alone say "no such user": then none may say that it is the sender, our host or a passing trouble. */
function orDoubt(found: Pattern, masked: string, { code, enhanced }: Refusal): Pattern {
  if (!found.no_such_user || (enhanced !== null && SUPPRESSING.has(enhanced))) return found;
  return doubtOf(masked, code) ?? found;
}

function doubtOf(masked: string, code: number): Pattern | undefined {
  return firstMatch(DOUBTS, withoutUrls(masked), code);
}

/** `?ip=192.0.2.1` is no word about our address. */
function withoutQueries(said: string): string {
  return said.replace(/(https?:\/\/[^\s?]{1,300})\?\S{1,300}/gu, "$1");
}

/** `/undelivered.php` is the name of a page, whatever it says there. */
function withoutPaths(said: string): string {
  return said.replace(/(https?:\/\/[^\s/?#]{1,300})[/?#]\S{0,600}/gu, "$1");
}

/** Where to read more is no word about this reply. */
function withoutUrls(said: string): string {
  return said.replace(/https?:\/\/\S{1,300}/gu, " ");
}

function firstProvider(said: string, refusal: Refusal): Pattern | undefined {
  const own = refusal.site ? PROVIDERS.filter((pattern) => pattern.site === refusal.site) : [];
  const others = PROVIDERS.filter((pattern) => pattern.site !== refusal.site && !pattern.site_only);
  return firstMatch(own, said, refusal.code) ?? firstMatch(others, said, refusal.code);
}

function firstMatch(patterns: readonly Pattern[], said: string, code: number): Pattern | undefined {
  return patterns.find(
    (pattern) =>
      String(code).startsWith(pattern.codes) && pattern.regexp.test(said) && !(pattern.unless?.test(said) ?? false),
  );
}

/** Words about spam, lists or rates also stand in the footers of honest "user unknown" replies. */
function yieldsToRecipient(strong: Rule): boolean {
  const isAboutUs = ["content", "blocked", "rate_limited", "auth", "routing"].includes(strong.class);
  return isAboutUs && !strong.id.startsWith("sender-");
}

/** "Message quota exceeded" under a code of storage or size (RFC 3463 §3.3, §3.4) is not a limit of our rate. */
function yieldsToSpace(strong: Rule, code: CodeRule | null): boolean {
  return strong.class === "rate_limited" && code !== null && ["x.2.2", "x.2.3", "x.3.4"].includes(code.id);
}

/** The code and the text both say that there is no such recipient. */
function agreeOnRecipient(masked: string, refusal: Refusal, code: CodeRule | null): boolean {
  const isRecipientCode = code !== null && !code.vague && ABOUT_RECIPIENT.has(code.class);
  const saysSo = isRecipientCode && firstMatch(NO_SUCH_USER, masked, refusal.code) !== undefined;
  return saysSo && doubtOf(masked, refusal.code) === undefined;
}

/** Lower case, without accents, so that one pattern fits how servers spell. */
function foldText(text: string): string {
  return withoutAccents(text.toLowerCase());
}

function withoutAccents(text: string): string {
  return text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/[ßøłđıæ]/g, (char) => FOLDED.get(char) ?? char);
}

const FOLDED = new Map([
  ["ß", "ss"],
  ["ø", "o"],
  ["ł", "l"],
  ["đ", "d"],
  ["ı", "i"],
  ["æ", "ae"],
]);

type CodeRule = Rule & { vague: boolean };

const CODES = readCodes();

/** Codes as "subject.detail"; "7.606-649" stands for every one of them. */
function readCodes(): Map<string, CodeRule> {
  const codes = new Map<string, CodeRule>();
  for (const entry of codeTable as { codes: string[]; class: string; vague?: boolean }[]) {
    for (const code of entry.codes) {
      const [subject = "", details = ""] = code.split(".");
      const [from = "", to = from] = details.split("-");
      for (let detail = Number(from); detail <= Number(to); detail++) {
        const id = `x.${subject}.${detail}`;
        const rule = { id, class: entry.class as ReplyClass, by_text: false, no_such_user: false };
        codes.set(`${subject}.${detail}`, { ...rule, vague: entry.vague ?? false });
      }
    }
  }
  return codes;
}

/** An unknown detail counts as detail 0 of its subject (RFC 3463 §2: codes may be added). */
function byEnhancedCode({ enhanced, code, stage }: Refusal): CodeRule | null {
  if (isRefusedContent(enhanced, code, stage)) return { ...CODES.get("7.0")!, id: "x.2.1-of-content" };
  const [, subject = "", detail = ""] = enhanced?.split(".") ?? [];
  const named = CODES.get(`${subject}.${detail}`);
  // X.7.0 is "other or undefined" (RFC 3463 §3.8), and 421 closes the channel (RFC 5321 §4.2.3): nothing is said of the content.
  if (code === 421 && named?.id === "x.7.0") return { ...named, class: "busy" };
  return named ?? CODES.get(`${subject}.0`) ?? null;
}

/**
 * "521 5.2.1 AOL will not accept delivery of this message": RFC 7504 has 521 for hosts that take no mail at all, and who
 * answers so to a recipient refuses the message. After DATA 5.2.1 is about the content too.
 */
function isRefusedContent(enhanced: string | null, code: number, stage: ReplyStage): boolean {
  return enhanced === "5.2.1" && (code === 521 || stage === "data" || stage === "final");
}

const BY_REPLY_CODE = new Map<number, ReplyClass>([
  [421, "busy"],
  [422, "mailbox_full"],
  [431, "busy"],
  [432, "busy"],
  [441, "connection"],
  [442, "connection"],
  [446, "routing"],
  [447, "connection"],
  [450, "busy"],
  [451, "busy"],
  [452, "mailbox_full"],
  [454, "busy"],
  [471, "content"],
  [510, "invalid_recipient"],
  [511, "invalid_recipient"],
  [512, "bad_domain"],
  [521, "bad_domain"],
  [522, "mailbox_full"],
  [523, "auth"],
  [524, "auth"],
  [525, "auth"],
  [530, "auth"],
  [534, "auth"],
  [535, "auth"],
  [538, "auth"],
  [541, "content"],
  [550, "invalid_recipient"],
  [551, "invalid_recipient"],
  [552, "mailbox_full"],
  [553, "invalid_recipient"],
  [554, "content"],
  [556, "bad_domain"],
  [571, "content"],
]);

/** The last resort. At RCPT a 5xx is about the address, later about the message; 552 at MAIL is SIZE (RFC 1870 §6.3). */
function byReplyCode({ code, stage }: Refusal): Rule {
  const rule = { id: String(code), by_text: false, no_such_user: false };
  const known = BY_REPLY_CODE.get(code) ?? (code >= 500 && code < 600 ? "content" : "busy");
  if (code === 501 && stage === "rcpt") return { ...rule, class: "invalid_recipient" };
  if (code === 552 && (stage === "mail" || stage === "data")) return { ...rule, class: "too_large" };
  if (stage === "mail" && (code === 550 || code === 551 || code === 553)) return { ...rule, class: "auth" };
  const isAboutMessage = stage === "data" || stage === "final";
  if (isAboutMessage && (known === "invalid_recipient" || known === "bad_domain")) return { ...rule, class: "content" };
  return { ...rule, class: isBeforeMail(stage) && ABOUT_RECIPIENT.has(known) ? "connection" : known };
}
