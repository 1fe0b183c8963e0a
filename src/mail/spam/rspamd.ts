// What rspamd gets to know of a mail and what it answers (POST /checkv2, https://docs.rspamd.com/developers/protocol/).
// Bytes in, values out; the request is made elsewhere. Its score counts, its own thresholds do not: the domain has its
// own. Only an action that it forces (GTUBE, a rule of its operator) is taken over.
import type { Symptom } from "./suspect.ts";

export type Reported = {
  ip: string | null;
  helo: string;
  /** Empty for the null sender. */
  from: string;
  recipients: readonly string[];
  /** Our name. */
  host: string;
};

export type RspamdReply =
  | { kind: "judged"; symptoms: Symptom[]; forced: boolean }
  /** rspamd wants the mail to be sent again later. */
  | { kind: "later" }
  | { kind: "failed"; reason: string };

export const REPLY_BYTES_MAX = 1024 * 1024;
const RECIPIENTS_MAX = 100;
const SYMBOLS_MAX = 100;
const NAME_CHARS_MAX = 100;
const DESCRIPTION_CHARS_MAX = 200;
/** Beyond it is no score of rspamd's, and none that could be kept: sums and hundredths are exact below. */
const SCORE_MAX = 1_000_000;

/** The header fields of the request. */
export function rspamdHeaders({ ip, helo, from, recipients, host }: Reported): Record<string, string | string[]> {
  return {
    ...(ip === null ? {} : { ip }),
    ...(helo === "" ? {} : { helo: fieldText(helo) }),
    from: fieldText(from === "" ? "<>" : from),
    rcpt: recipients.slice(0, RECIPIENTS_MAX).map(fieldText),
    "mta-name": host,
    "content-type": "message/rfc822",
  };
}

/** As UTF-8, one character an octet, without what would end the line. */
function fieldText(text: string): string {
  return Buffer.from(text.replace(/[\0-\x1f\x7f]/g, "")).toString("latin1");
}

/** Reads the answer's body; symbols without weight are left out. */
export function readRspamdReply(body: Buffer): RspamdReply {
  const reply = parseObject(body);
  if (reply === null) return { kind: "failed", reason: "rspamd's answer is not JSON" };
  if (typeof reply.error === "string")
    return { kind: "failed", reason: `rspamd: ${storable(reply.error, DESCRIPTION_CHARS_MAX)}` };
  const { score, action } = reply;
  if (!isScore(score)) {
    return { kind: "failed", reason: "rspamd's answer has no score" };
  }
  if (action === "soft reject") return { kind: "later" };
  const symptoms = readSymbols(reply.symbols);
  const required = Number(reply.required_score);
  // A result that a rule set beforehand skips the others, or stands beside a score that would not lead to it.
  const isForced = reply.is_skipped === true || (Number.isFinite(required) && score < required);
  return { kind: "judged", symptoms: balanced(symptoms, score), forced: action === "reject" && isForced };
}

function parseObject(body: Buffer): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readSymbols(symbols: unknown): Symptom[] {
  if (!isObject(symbols)) return [];
  return Object.entries(symbols)
    .flatMap(([name, symbol]) => {
      const score = isObject(symbol) ? hundredths(symbol.score) : 0;
      if (score === 0 || !isObject(symbol)) return [];
      const description = typeof symbol.description === "string" ? symbol.description : "";
      const symptom = { score, description: storable(description, DESCRIPTION_CHARS_MAX) };
      return [{ name: storable(name, NAME_CHARS_MAX), ...symptom }];
    })
    .sort((a, b) => Math.abs(b.score) - Math.abs(a.score))
    .slice(0, SYMBOLS_MAX);
}

function hundredths(score: unknown): number {
  return isScore(score) ? Math.round(score * 100) / 100 : 0;
}

function isScore(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= SCORE_MAX;
}

/** What is said of a mail is kept with it: half a character or a NUL, which no database takes, would hold it up for good. */
function storable(text: string, charsMax: number): string {
  return text
    .slice(0, charsMax)
    .toWellFormed()
    .replace(/\p{Cc}/gu, "\ufffd");
}

/** rspamd caps what a group of symbols may add: the difference is reported, so that the symbols add up to its score. */
function balanced(symptoms: Symptom[], score: number): Symptom[] {
  const sum = symptoms.reduce((total, symptom) => total + Math.round(symptom.score * 100), 0);
  const rest = Math.round(score * 100) - sum;
  if (rest === 0) return symptoms;
  const description = "What rspamd's limits on groups of symbols take away or add";
  return [...symptoms, { name: "RSPAMD_GROUP_LIMITS", score: rest / 100, description }];
}
