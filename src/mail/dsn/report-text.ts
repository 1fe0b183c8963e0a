// The readable text of a report: where the returned message begins, whether it says that mail failed or waits, and
// which recipients it names with what words. The texts of the many mailers are in intros.json, separators.json and
// sentences.json, each with a reason; this file only knows how lines are arranged. It decides nothing (verdict.ts).

import { anyOf } from "../any-of.ts";
import { addressIn, addressSource, cleanAddress, foreignEnd, foreignOpening } from "./address-text.ts";
import { withoutFooters } from "./footers.ts";
import introTable from "./intros.json" with { type: "json" };
import sentenceTable from "./sentences.json" with { type: "json" };
import separatorTable from "./separators.json" with { type: "json" };
import { type Refused, readTranscript } from "./transcript.ts";
import type { DsnAction } from "./types.ts";

/** `text` keeps its empty lines: the first paragraph says most. */
export type Mention = { email: string; text: string };

type Found = Mention & { line: number };

export type ReportText = {
  /** What stands before the returned message. */
  report: string;
  /** What stands before the first recipient: said of all of them. */
  opening: string;
  returned: string;
  /** null when nothing in the text sounds like a report. */
  intro: string | null;
  action: DsnAction | null;
  mentions: Mention[];
  refused: Refused[];
};

// The longest report in the corpora has 5 KB before its returned message; each recipient adds some 300 characters.
const reportCharsMax = 64 * 1_024;
const linesMax = 2_000;
const mentionsMax = 200;
const lineCharsMax = 1_000;
const mentionCharsMax = 2_000;

type Pattern = { id: string; regexp: RegExp; action: DsnAction | null };

type Entry = {
  id: string;
  match: string | readonly string[];
  /** What stands for a word in capitals that `match` holds. */
  words?: Readonly<Record<string, readonly string[]>>;
  action?: string;
};

function compile(entry: Entry): Pattern {
  const words = Object.entries(entry.words ?? {});
  const source = [
    ["ADDRESS", addressSource] as const,
    ...words.map(([word, of]) => [word, `(?:${anyOf(of)})`] as const),
  ].reduce((text, [word, meaning]) => text.replaceAll(word, meaning), anyOf(entry.match));
  return { id: entry.id, regexp: new RegExp(source, "iu"), action: (entry.action as DsnAction | undefined) ?? null };
}

const separators = separatorTable.map(compile);
const intros = introTable.map(compile);
const sentences = sentenceTable.map(compile);

/**
 * Reads a report's text. `own` are the addresses that the report was sent to and from, lower-case: they are recipients
 * only when no other is named. Bounded: 64 KiB and 2,000 lines of report, 200 recipients.
 */
export function readReportText(text: string, own: ReadonlySet<string>): ReportText {
  const lines = text.split("\n");
  const cut = separatorLine(lines);
  const reportLines = lines.slice(0, Math.min(cut, linesMax)).map((line) => line.slice(0, lineCharsMax));
  const report = withoutFooters(reportLines).join("\n").slice(0, reportCharsMax);
  const bounded = report.split("\n");
  const { intro, introLine, action } = findIntro(bounded);
  const listed = findListed(bounded, introLine);
  const mentions = listed.some(isForeign(own)) ? listed : [...findInSentences(bounded), ...listed];
  const first = mentions.reduce((line, mention) => Math.min(line, mention.line), bounded.length);
  return {
    report,
    opening: bounded.slice(0, first).join("\n"),
    returned: lines.slice(cut).join("\n"),
    intro,
    action,
    mentions: preferForeign(mergeMentions(mentions), own),
    refused: readTranscript(bounded),
  };
}

// The line at which the returned message begins; the number of lines when it does not.
function separatorLine(lines: readonly string[]): number {
  const limit = Math.min(lines.length, linesMax);
  for (let at = 0; at < limit; at++) {
    const line = lines[at]!.trim();
    if (line.length < 5 || line.length > 300) continue;
    if (separators.some((separator) => separator.regexp.test(line))) return at;
  }
  return lines.length;
}

type Intro = { intro: string | null; introLine: number; action: DsnAction | null };

// Phrases are wrapped anywhere: each line is read together with the two that follow.
function findIntro(lines: readonly string[]): Intro {
  let found: Intro = { intro: null, introLine: lines.length, action: null };
  for (let at = 0; at < lines.length; at++) {
    if (!/\p{L}{3}/u.test(lines[at]!)) continue;
    const window = joinLines(lines.slice(at, at + 3));
    const match = intros.find((pattern) => pattern.regexp.test(window));
    if (match === undefined) continue;
    if (found.intro === null) found = { intro: match.id, introLine: at, action: match.action };
    // A warning says that mail "has not been delivered"; a report of success may still name one failure.
    else if (match.action === "delayed" || (found.action === "delivered" && match.action === null)) {
      found = { ...found, intro: match.id, action: match.action };
    }
    if (found.action === "delayed") break;
  }
  return found;
}

function joinLines(lines: readonly string[]): string {
  return lines.map((line) => line.trim()).join(" ");
}

const label =
  "(?:(?:failed|final|original|intended|undeliverable|bounced|bad|invalid|rejected|problem|error) )?(?:recipients?|rcpt|address(?:es)?|e-?mail|user|mailbox|empf.{1,3}nger|destinataire|destinatario|destinat.rio|получатель|宛先|收件[人者]|收信人|受信者|받는 ?(?:사람|이)|수신자|al[ıi]c[ıi]|c[íi]mzett|παραλήπτης)(?: address(?:es)?)?(?:\\(s\\))?";
// An address at the start of a line, with the ornaments that mailers give it, and what follows it on the line.
const listedLine = new RegExp(
  `^[\\s>*•·|#-]*(?:${label}\\s*[:：=]\\s*)?[<>"'[({${foreignOpening}\\s]*(?:(?:smtp|mailto|rfc822)[:=;]\\s*)?(${addressSource})((?:[>"'\\])}]|<mailto:|[\\s,;:.(\\[]|${foreignEnd}|$).*)$`,
  "iu",
);

const angleBehind = new RegExp(`^[ \\t]+<(${addressSource})>:`, "iu");

function findListed(lines: readonly string[], introLine: number): Found[] {
  const found: { email: string; rest: string; line: number }[] = [];
  let indentMax = -1;
  // Without an introduction any line counts: some reports are nothing but a reason and an address.
  for (let at = introLine < lines.length ? introLine : 0; at < lines.length && found.length < mentionsMax; at++) {
    const line = lines[at]!;
    if (!line.includes("@")) continue;
    const match = listedLine.exec(line);
    // Exim shows an address that it cannot parse before the one it was for: `a@b <user@there.example>: malformed`.
    const meant = match === null ? undefined : (angleBehind.exec(match[2]!)?.[1] ?? match[1]!);
    const email = meant === undefined ? null : cleanAddress(meant);
    if (email === null) continue;
    const indent = line.length - line.trimStart().length;
    // What stands further in than the first recipient is the continuation of what is said about it.
    if (indentMax === -1) indentMax = indent;
    else if (indent > indentMax) continue;
    found.push({ email, rest: match![2]!, line: at });
  }
  return found.map(({ email, rest, line }, index) => {
    const end = found[index + 1]?.line ?? lines.length;
    const text = trimMention([afterAddress(rest), ...lines.slice(line + 1, end)]);
    // `>>> user@example.com <user@example.com>` says nothing about it.
    return { email, line, text: text.replace(/^<|>$/g, "").toLowerCase() === email.toLowerCase() ? "" : text };
  });
}

// `user@example.com<mailto:user@example.com>`, `<user@example.com>: reason`, `user@example.com on Thu, …`
function afterAddress(rest: string): string {
  return rest.replace(/^<mailto:[^<>]{0,400}>/i, "").replace(/^[>"'\])}:;,.\s]+/, "");
}

function trimMention(lines: readonly string[]): string {
  return lines.join("\n").slice(0, mentionCharsMax).trim();
}

function findInSentences(lines: readonly string[]): Found[] {
  const found: Found[] = [];
  for (let at = 0; at < lines.length && found.length < mentionsMax; at++) {
    const line = lines[at]!;
    const window = `${line} ${(lines[at + 1] ?? "").trim()}`;
    if (!window.includes("@")) continue;
    for (const sentence of sentences) {
      const match = sentence.regexp.exec(window);
      if (match === null || match.index >= line.length) continue;
      const email = addressIn(match.slice(1).find((group) => group !== undefined) ?? "");
      if (email !== null) found.push({ email, line: at, text: trimMention(lines.slice(Math.max(0, at - 1))) });
    }
  }
  return found;
}

// One mention for each address. One that is said nothing about shares what is said about the next.
function mergeMentions(mentions: readonly Mention[]): Mention[] {
  const merged = new Map<string, Mention>();
  const following = mentions.map(
    ({ text }, at) => text || (mentions.slice(at + 1).find((next) => next.text)?.text ?? ""),
  );
  mentions.forEach(({ email }, at) => {
    const key = email.toLowerCase();
    const text = following[at]!;
    const before = merged.get(key);
    if (before === undefined) merged.set(key, { email, text });
    else if (!before.text.includes(text)) before.text = `${before.text}\n\n${text}`.slice(0, mentionCharsMax);
  });
  return [...merged.values()];
}

function isForeign(own: ReadonlySet<string>): (mention: Mention) => boolean {
  return ({ email }) => !own.has(email.toLowerCase());
}

function preferForeign(mentions: readonly Mention[], own: ReadonlySet<string>): Mention[] {
  const foreign = mentions.filter(isForeign(own));
  return foreign.length > 0 ? foreign : [...mentions];
}
