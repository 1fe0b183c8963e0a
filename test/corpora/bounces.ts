// Bounce mails of three collections: the recipient must be right, hard and soft must agree, nobody may be suppressed who
// is not at fault. Sisimai's verdict is a second opinion; where the design's table decides otherwise, that is the reason.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseBounce } from "../../src/mail/dsn/dsn.ts";
import type { BounceRecipient, BounceResult } from "../../src/mail/dsn/types.ts";
import { type Corpus, createTally, type Tally } from "./tally.ts";

type Row = { recipient: string; hardbounce: number; action: string; reason: string; status: string };

const ADDRESS_CODES = new Set(["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"]);

export const bounceSisimai: Corpus = {
  name: "bounce-sisimai",
  async run(dir) {
    const tally = createTally();
    const expected = readJson<Record<string, { bounces: Row[] }>>(join(dir, "expected.json"));
    for (const [file, { bounces }] of Object.entries(expected)) {
      judgeRows(tally, `eml/${file}`, bounces ?? [], read(join(dir, "eml", file)));
    }
    for (const folder of ["not-a-bounce", "line-endings-dos", "line-endings-mac"]) {
      for (const file of filesOf(join(dir, folder))) judgeHarmless(tally, folder, file, join(dir, folder, file));
    }
    return tally;
  },
};

export const dsnMisc: Corpus = {
  name: "dsn-misc",
  async run(dir) {
    const tally = createTally();
    const opinions = readJson<Record<string, Row[]>>(join(dir, "second-opinion.json"));
    for (const [file, rows] of Object.entries(opinions)) {
      const result = read(join(dir, file));
      // Where Sisimai finds nothing it has no opinion, except on read receipts, which are no bounces.
      if (rows.length > 0 || /disposition|mdn/i.test(file)) judgeRows(tally, file, rows, result);
      else tally.judge(file, "no crash", "no crash");
    }
    return tally;
  },
};

export const bounceFlufl: Corpus = {
  name: "bounce-flufl",
  async run(dir) {
    const tally = createTally();
    type Wanted = { permanent: string[]; temporary: string[] } | null;
    for (const [file, wanted] of Object.entries(readJson<Record<string, Wanted>>(join(dir, "expected.json")))) {
      const result = read(join(dir, "mail", file));
      tally.judge(
        file,
        wanted === null ? "no crash" : wordsOf(wanted),
        wanted === null ? "no crash" : flufl(result, wanted),
      );
    }
    return tally;
  },
};

function wordsOf({ permanent, temporary }: { permanent: string[]; temporary: string[] }): string[] {
  const words = [
    ...permanent.map((email) => `${email.toLowerCase()} permanent`),
    ...temporary.map((email) => `${email.toLowerCase()} temporary`),
  ];
  return [...new Set(words)].sort();
}

/** Ours by either address of a recipient, as Mailman names it. */
function flufl(result: BounceResult, wanted: { permanent: string[]; temporary: string[] }): string[] {
  const known = new Set([...wanted.permanent, ...wanted.temporary].map((email) => email.toLowerCase()));
  const words = recipientsOf(result).flatMap((one) => {
    const names = [one.email, one.original].flatMap((email) => (email === null ? [] : [email.toLowerCase()]));
    const shown = names.some((name) => known.has(name)) ? names.filter((name) => known.has(name)) : names.slice(0, 1);
    return shown.map((name) => `${name} ${one.action === "failed" ? "permanent" : "temporary"}`);
  });
  return [...new Set(words)].sort();
}

function judgeRows(tally: Tally, file: string, rows: Row[], result: BounceResult): void {
  const expected = wantedOf(rows);
  const got = result.kind === "complaint" ? ["complaint"] : recipientsOf(result).filter(isNamed).map(wordOf);
  const words = [...new Set(got)].sort();
  tally.judge(file, expected, words, explain(expected, words, result) ?? listed(file));
  const wrong = recipientsOf(result).filter((one) => one.suppress && !isAtFault(one));
  if (wrong.length > 0) tally.judge(`${file}: suppression`, [], wrong.map(wordOf));
}

function wantedOf(rows: Row[]): string[] {
  if (rows.some((row) => row.reason === "feedback")) return ["complaint"];
  const word = (row: Row): string =>
    row.action === "delivered" ? "delivered" : row.hardbounce === 1 ? "hard" : "soft";
  return [...new Set(rows.map((row) => `${row.recipient.toLowerCase()} ${word(row)}`))].sort();
}

/** The same recipients, but hard where Sisimai says soft or conversely: the contract's codes and the design's table decide. */
function explain(expected: string[], got: string[], result: BounceResult): string | null {
  const names = (words: string[]): string => [...new Set(words.map((word) => word.split(" ")[0]))].sort().join(" ");
  if (expected.length === 0 || names(expected) !== names(got)) return null;
  const differing = recipientsOf(result).filter((one) => !expected.includes(wordOf(one)));
  const byCode = differing.every(({ status }) => status !== null && ADDRESS_CODES.has(status));
  if (byCode)
    return "the enhanced code is one of the contract's that mean the address (completions §6); Sisimai reads the text";
  const isPolicy = differing.every((one) => one.bounce_type === "soft" && !one.suppress);
  return isPolicy
    ? "no code or words about the address: soft by the design's table (Classify), Sisimai guesses hard"
    : null;
}

/** Differences that a person looked at one by one. */
const LOOKED_AT = readJson<Record<string, { reason: string }>>(
  join(import.meta.dirname, "../../src/mail/dsn/differences.json"),
);

function listed(file: string): string | null {
  return Object.entries(LOOKED_AT).find(([path]) => path.endsWith(`/${file}`))?.[1].reason ?? null;
}

function judgeHarmless(tally: Tally, folder: string, file: string, path: string): void {
  const result = read(path);
  const suppressed = recipientsOf(result).filter((one) => one.suppress && !isAtFault(one)).length;
  const isBounce = folder === "not-a-bounce" && recipientsOf(result).some(({ action }) => action === "failed");
  tally.judge(`${folder}/${file}`, { bounce: false, suppressed: 0 }, { bounce: isBounce, suppressed });
}

function isAtFault({ status, smtp_code, bounce_type, action }: BounceRecipient): boolean {
  const isPlain = status === null && /^55[013]$/.test(smtp_code ?? "");
  return action === "failed" && bounce_type === "hard" && (isPlain || ADDRESS_CODES.has(status ?? ""));
}

function wordOf(one: BounceRecipient): string {
  return `${one.email?.toLowerCase() ?? "unnamed"} ${one.bounce_type ?? one.action}`;
}

function isNamed({ email }: BounceRecipient): boolean {
  return email !== null;
}

function recipientsOf(result: BounceResult): BounceRecipient[] {
  return result.kind === "bounce" ? result.recipients : [];
}

function read(path: string): BounceResult {
  return parseBounce(readFileSync(path));
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, "utf8")) as T;
}

function filesOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
