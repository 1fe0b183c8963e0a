// How much a mail looks like spam: named symbols whose scores add up. Pure: verdicts on the sender are passed in, nobody
// is asked, no link is followed. The words are data (content-rules.json). Not here: what is done about a score
// (verdict.ts), and lists in the DNS (block-lists.ts). GTUBE (https://spamassassin.apache.org/gtube/) always scores 1,000.

import { domainOf } from "../address.ts";
import { anyOf } from "../any-of.ts";
import contentRules from "./content-rules.json" with { type: "json" };
import { findForgeries } from "./forgeries.ts";
import { findHtmlSigns } from "./html-signs.ts";
import type { Suspect, Symptom } from "./suspect.ts";

const GTUBE = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";
const GTUBE_NAME = "GTUBE";
const GTUBE_SCORE = 1_000;
/** Spammers say what they want at the start. */
const TEXT_CHARS_MAX = 65_536;
const SUBJECT_CHARS_MAX = 1_000;
type Rule = {
  name: string;
  score: number;
  in: string;
  description: string;
  /** In the text it is found at the start of a word, in the subject anywhere. */
  pattern?: string | readonly string[];
  /** Each of these must be found somewhere: the first at the start of a word, the others anywhere. */
  all?: readonly (readonly string[])[];
};

const RULES = (contentRules as readonly Rule[]).map(({ pattern, all = [], ...rule }) => {
  const [first = "", ...others] = (pattern === undefined ? all : [pattern]).map(anyOf);
  const sources = [rule.in === "text" ? atWord(first) : first, ...others];
  return { ...rule, first, expressions: sources.map((source) => new RegExp(source, "i")) };
});
const SUBJECT_RULES = RULES.filter((rule) => rule.in === "subject");
const TEXT_RULES = RULES.filter((rule) => rule.in === "text");
/** Most texts match none of the rules, and one expression says so in a seventh of the time: 8 µs for 3 KB, not 58. */
const ANY_TEXT_RULE = new RegExp(atWord(anyOf(TEXT_RULES.map(({ first }) => first))), "i");

function atWord(source: string): string {
  return `\\b(?:${source})`;
}

/** The sum of the scores, to hundredths. */
export function addUp(symptoms: readonly Symptom[]): number {
  return symptoms.reduce((total, { score }) => total + Math.round(score * 100), 0) / 100;
}

/** True for the text that always counts as spam. */
export function isTestText(symptoms: readonly Symptom[]): boolean {
  return symptoms.some(({ name }) => name === GTUBE_NAME);
}

/** Everything about a mail that looks like spam, or speaks against it. */
export function findSymptoms(suspect: Suspect): Symptom[] {
  const html = suspect.html?.slice(0, TEXT_CHARS_MAX) ?? "";
  const text = `${suspect.text?.slice(0, TEXT_CHARS_MAX) ?? ""}\n${withoutTags(html)}`;
  const subject = suspect.subject?.slice(0, SUBJECT_CHARS_MAX) ?? "";
  return [
    ...gtube([suspect.subject, suspect.text, suspect.html]),
    ...ofSender(suspect),
    ...ofHeaders(suspect, subject),
    ...findForgeries(suspect),
    ...ofContent(subject, text),
    ...ofHtml(html),
    ...findHtmlSigns(suspect, html, text),
    ...ofLinks(`${text}\n${html}`),
    ...ofAttachments(suspect),
  ];
}

function when(isSo: boolean, name: string, score: number, description: string): Symptom[] {
  return isSo ? [{ name, score, description }] : [];
}

/** Wherever it stands: it is there to be found. */
function gtube(texts: readonly (string | null)[]): Symptom[] {
  const isThere = texts.some((text) => text?.includes(GTUBE));
  return when(isThere, GTUBE_NAME, GTUBE_SCORE, "The test text that always counts as spam");
}

function ofSender({ auth }: Suspect): Symptom[] {
  if (auth === null) return [];
  const { spf, dkim, dmarc } = auth;
  return [
    ...when(spf === "fail", "SPF_FAIL", 2, "The sender's domain does not permit this host"),
    ...when(spf === "softfail", "SPF_SOFTFAIL", 1, "The sender's domain doubts this host"),
    ...when(dkim === "fail", "DKIM_FAIL", 0.5, "A signature does not fit"),
    ...when(dmarc === "fail", "DMARC_FAIL", 2.5, "Not from the domain that From names"),
    ...when(dmarc === "pass", "DMARC_PASS", -1, "From the domain that From names"),
  ];
}

function ofHeaders(suspect: Suspect, subject: string): Symptom[] {
  const [from] = suspect.from;
  const [replyTo] = suspect.reply_to;
  const named = new Set(suspect.headers.map(({ name }) => name.toLowerCase()));
  const nameInFrom = /[^\s<>"()'@]+@[^\s<>"()'@]+/.exec(from?.name ?? "")?.[0] ?? null;
  // Lists that write under their own address (RFC 7960 §4.1.3.1) name the author beside it, and send the answers there.
  const isByList = named.has("list-id") && / via /i.test(from?.name ?? "");
  return [
    ...when(!from?.email, "FROM_MISSING", 2, "From names nobody"),
    ...when(!named.has("date"), "DATE_MISSING", 1, "There is no Date"),
    ...when(named.has("date") && suspect.date === null, "DATE_INVALID", 1, "Date makes no sense"),
    ...when(suspect.message_id === null, "MESSAGE_ID_MISSING", 1, "There is no Message-ID"),
    ...when(!named.has("to") && !named.has("cc"), "TO_MISSING", 0.5, "It names no recipient"),
    ...when(subject.trim() === "", "SUBJECT_EMPTY", 0.5, "There is no Subject"),
    ...when(isShouted(subject), "SUBJECT_SHOUTS", 1.5, "The subject is in capitals"),
    ...when(
      !isByList && nameInFrom !== null && hostOf(nameInFrom) !== hostOf(from?.email),
      "FROM_NAME_IS_OTHER_ADDRESS",
      2.5,
      "The name in From is an address of another domain",
    ),
    ...when(
      !isByList && isFreemail(replyTo?.email) && hostOf(replyTo?.email) !== hostOf(from?.email),
      "REPLY_TO_FREEMAIL",
      1.5,
      "Answers go to a free mailbox elsewhere",
    ),
  ];
}

function isShouted(subject: string): boolean {
  const letters = subject.replace(/[^A-Za-z]/g, "");
  return letters.length >= 10 && letters === letters.toUpperCase();
}

function hostOf(email: string | null | undefined): string {
  return domainOf(email ?? "").toLowerCase();
}

const FREEMAIL =
  /^((gmail|googlemail|hotmail|outlook|live|aol|gmx|mail|rediffmail|yandex|protonmail)\.[a-z.]{2,6}|yahoo\.[a-z.]{2,6})$/;

function isFreemail(email: string | null | undefined): boolean {
  return FREEMAIL.test(hostOf(email));
}

function ofContent(subject: string, text: string): Symptom[] {
  const whole = `${subject}\n${text}`;
  const inText = ANY_TEXT_RULE.test(whole) ? TEXT_RULES.filter((rule) => isFound(rule, whole)) : [];
  return [...inText, ...SUBJECT_RULES.filter((rule) => isFound(rule, subject))].map(({ name, score, description }) => ({
    name,
    score,
    description,
  }));
}

function isFound({ expressions }: (typeof RULES)[number], text: string): boolean {
  return expressions.every((one) => one.test(text));
}

function ofHtml(html: string): Symptom[] {
  const comments = html.match(/[a-z]<!--[^>]{0,40}-->(?=[a-z])/gi)?.length ?? 0;
  return [
    ...when(/<script[\s>]/i.test(html), "HTML_SCRIPT", 1.5, "It holds a script"),
    ...when(/<form[\s>]/i.test(html), "HTML_FORM", 1, "It holds a form"),
    ...when(comments >= 3, "HTML_BROKEN_WORDS", 3, "Comments break its words apart"),
    ...when(/font-size:\s{0,4}[01](px|pt)?\s{0,4}[;"']/i.test(html), "HTML_TINY_TEXT", 0.5, "Text too small to read"),
  ];
}

// Not those of one's own network (RFC 1918, RFC 6890), where build servers and printers are.
const BARE_ADDRESS =
  /https?:\/\/(?!(?:10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.)\d{1,3}(\.\d{1,3}){3}([:/?"'\s]|$)/i;

function ofLinks(text: string): Symptom[] {
  return [
    ...when(BARE_ADDRESS.test(text), "LINK_TO_ADDRESS", 2, "Links to a bare address"),
    ...when(
      /https?:\/\/[^\s/"'<>]{0,200}(%[0-9a-f]{2}|@)/i.test(text),
      "LINK_DISGUISED",
      2.5,
      "Hides where a link goes",
    ),
    ...when(/%68ttp|https?:\/\/\d{8,10}([/:?"'\s]|$)/i.test(text), "LINK_ENCODED", 2.5, "Encodes where a link goes"),
  ];
}

function ofAttachments({ attachments }: Suspect): Symptom[] {
  const named = (ending: RegExp) => attachments.some(({ filename }) => ending.test(filename));
  const isProgram = named(/\.(?:exe|scr|pif|com|bat|cmd|cpl|msi|vb[es]|jse?|ws[fh]|hta|lnk|ps1|jar|xll|iso|vhdx?)$/i);
  return [
    ...when(isProgram, "ATTACHED_PROGRAM", 4, "A program is attached"),
    ...when(named(/\.(?:x?html?|shtml?|svg)$/i), "ATTACHED_PAGE", 0.5, "A page is attached"),
  ];
}

/** Enough for looking for words; not for showing. */
function withoutTags(html: string): string {
  return html.replace(/<[^<>]{0,2000}>/g, " ").replace(/&nbsp;/gi, " ");
}
