// Bounce mails of three collections, mailed to the return path of mail that was really sent to the recipients they name:
// the recipient must be right, hard and soft must agree, nobody may be suppressed who is not at fault. Sisimai's verdict is
// a second opinion; where the contract or the design's table decides otherwise, that is the reason.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RecipientVerdict, ReturnedCase, Verdict } from "./returned-stage.ts";
import { returnedStage } from "./returned-stage.ts";
import { type Corpus, createTally, type Tally } from "./tally.ts";

type Row = {
  recipient: string;
  hardbounce: number;
  action: string;
  reason: string;
  feedbacktype?: string;
  status?: string;
  replycode?: string;
};
type Judged = ReturnedCase & { rows?: Row[]; judge(tally: Tally, verdict: Verdict): void };

const ADDRESS_CODES = new Set(["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"]);

export const bounceSisimai: Corpus = {
  name: "bounce-sisimai",
  async run(dir) {
    const expected = readJson<Record<string, { bounces: Row[] }>>(join(dir, "expected.json"));
    const cases = Object.entries(expected).map(([file, { bounces }]) =>
      withRows(`eml/${file}`, readMail(join(dir, "eml", file)), bounces ?? []),
    );
    const harmless = ["not-a-bounce", "line-endings-dos", "line-endings-mac"].flatMap((folder) =>
      filesOf(join(dir, folder)).map((file) => withoutRows(folder, file, readFileSync(join(dir, folder, file)))),
    );
    return runCases([...cases, ...harmless]);
  },
};

export const dsnMisc: Corpus = {
  name: "dsn-misc",
  async run(dir) {
    const opinions = readJson<Record<string, Row[]>>(join(dir, "second-opinion.json"));
    const cases = Object.entries(opinions).map(([file, rows]) => {
      const mail = readMail(join(dir, file));
      // Where Sisimai finds nothing it has no opinion, except on read receipts, which are no bounces.
      return rows.length > 0 || /disposition|mdn/i.test(file) ? withRows(file, mail, rows) : withoutOpinion(file, mail);
    });
    return runCases(cases);
  },
};

type Wanted = { permanent: string[]; temporary: string[] } | null;

export const bounceFlufl: Corpus = {
  name: "bounce-flufl",
  async run(dir) {
    const expected = readJson<Record<string, Wanted>>(join(dir, "expected.json"));
    const cases = Object.entries(expected).map(([file, wanted]) => {
      const mail = readMail(join(dir, "mail", file));
      return wanted === null ? withoutOpinion(file, mail) : withWanted(file, mail, wanted);
    });
    return runCases(cases);
  },
};

/** Sends, mails back, judges; at the end nobody may be suppressed whom no case knows. */
async function runCases(cases: readonly Judged[]): Promise<Tally> {
  const tally = createTally();
  const stage = await returnedStage();
  const verdicts = await stage.run(cases);
  for (const one of cases) one.judge(tally, verdicts.get(one.name) as Verdict);
  tally.judge("addresses suppressed that no case sent to", [], await stage.leftSuppressed());
  const all = [...verdicts.values()].flatMap(({ recipients }) => recipients);
  const count = (is: (one: RecipientVerdict) => boolean) => all.filter(is).length;
  tally.notes.push(
    `${all.length} recipients: ${count((one) => one.bounce_type === "hard")} bounced hard, ` +
      `${count((one) => one.bounce_type === "soft")} softly, ${count(({ warned }) => warned)} late, ` +
      `${count(({ status }) => status === "complained")} complained, ` +
      `${count(({ suppression }) => suppression !== null)} suppressed`,
  );
  const codes = cases.flatMap((one) => codesOf(one, verdicts.get(one.name) as Verdict));
  const agreed = codes.filter(({ wanted, got }) => wanted === got).length;
  if (codes.length > 0) tally.notes.push(`${agreed} of ${codes.length} codes are those that Sisimai reads`);
  return tally;
}

/** Codes that a mail carries; those of the form x.0.9xx are Sisimai's own (README). */
function codesOf({ rows = [], mail }: Judged, { recipients }: Verdict): { wanted: string; got: string | null }[] {
  const carried = mail.toString("latin1").replace(/=\r\n/g, "");
  return rows.flatMap(({ recipient, status = "", replycode = "" }) => {
    const one = recipients.find(({ named, status }) => named === recipient && status === "bounced");
    if (!one) return [];
    const wanted = [
      { wanted: status, got: one.diag_code },
      { wanted: replycode, got: one.bounce_code },
    ];
    return wanted.filter(({ wanted }) => wanted !== "" && carried.includes(wanted) && !/\.0\.9\d\d$/.test(wanted));
  });
}

// Sisimai's rows ---------------------------------------------------------------------------------------------------

function withRows(name: string, mail: Buffer, rows: Row[]): Judged {
  return {
    ...{ name, mail, to: "return_path", rows },
    recipients: rows.map(({ recipient }) => recipient),
    judge(tally, verdict) {
      const expected = wantedOf(rows);
      const got = wordsOf(verdict);
      tally.judge(name, expected, got, listed(name) ?? explain(expected, got, verdict));
      judgeSuppressions(tally, name, verdict, expected);
      judgeEvents(tally, name, verdict);
    },
  };
}

function wantedOf(rows: Row[]): string[] {
  const words = rows.map((row) => `${row.recipient.toLowerCase()} ${wantedWord(row)}`);
  // A receipt or an automatic reply leaves the recipient as it was.
  return [...new Set(words.length === 0 ? ["unnamed delivered"] : words)].sort();
}

function wantedWord({ reason, feedbacktype = "", action, hardbounce }: Row): string {
  if (reason === "feedback") return wantedOfFeedback(feedbacktype);
  return action === "delivered" ? "delivered" : hardbounce === 1 ? "hard" : "soft";
}

/** What a feedback report of this type makes of a recipient (README of arf-feedback). */
export function wantedOfFeedback(type: string): string {
  if (type === "auth-failure" || type === "dmarc" || type === "not-spam") return "delivered";
  return type.startsWith("opt-out") ? "unsubscribed" : "complained";
}

export function wordsOf({ recipients }: Verdict): string[] {
  return [...new Set(recipients.map((one) => `${one.named?.toLowerCase() ?? "unnamed"} ${wordOf(one)}`))].sort();
}

/** A warning about mail that is still tried is soft to Sisimai too. */
function wordOf({ status, bounce_type, warned, suppression }: RecipientVerdict): string {
  if (status === "bounced") return bounce_type ?? "bounced";
  if (suppression?.reason === "unsubscribe") return "unsubscribed";
  return status === "delivered" && warned ? "soft" : status;
}

/** The same recipients, but hard where Sisimai says soft or conversely: the contract's codes and the design's table decide. */
function explain(expected: string[], got: string[], { recipients }: Verdict): string | null {
  const names = (words: string[]): string => words.map((word) => word.split(" ")[0]).join(" ");
  if (names(expected) !== names(got)) return null;
  const complained = recipients.filter(({ status }) => status === "complained");
  if (complained.length === 1 && complained[0] === recipients[0] && expected.every((word) => / complained$/.test(word)))
    return ONE_COPY;
  const differing = recipients.filter((one) => !expected.includes(`${one.named?.toLowerCase()} ${wordOf(one)}`));
  if (differing.some(({ status }) => status !== "bounced")) return null;
  if (differing.every(({ diag_code }) => ADDRESS_CODES.has(diag_code ?? "")))
    return "the enhanced code is one of the contract's that mean the address (weigh.ts); Sisimai reads the text";
  if (differing.some(({ suppression }) => suppression !== null)) return null;
  if (differing.every(({ bounce_type }) => bounce_type === "soft"))
    return "no code or words about the address: soft by classify.ts, Sisimai guesses hard";
  return differing.every(({ bounce_type }) => bounce_type === "hard")
    ? "words about the address or the way to it: hard by the design's table; without a code nobody is suppressed"
    : null;
}

const UNNAMED =
  "the report names no whole address, so that Mailman finds nobody; the return path tells whose copy came back";
const ONE_COPY =
  "a complaint is believed of the recipient whose copy is reported; the others named in it have copies of their own";

/** Differences that a person looked at one by one. */
const LOOKED_AT = readJson<Record<string, { reason: string }>>(
  join(import.meta.dirname, "../../src/mail/dsn/differences.json"),
);

function listed(file: string): string | null {
  return Object.entries(LOOKED_AT).find(([path]) => path.endsWith(`/${file}`))?.[1].reason ?? null;
}

/** Suppressed are only those the case calls hard, or whose code says by the contract that the address does not work. */
function judgeSuppressions(tally: Tally, name: string, { recipients }: Verdict, expected: string[]): void {
  const wrong = recipients.filter((one) => {
    if (one.suppression?.reason !== "hard_bounce") return false;
    return !expected.includes(`${one.named?.toLowerCase()} hard`) && !isAtFault(one);
  });
  if (wrong.length > 0) tally.judge(`${name}: suppression`, [], wrong.map(wordOf));
}

function isAtFault({ status, bounce_type, bounce_code, diag_code }: RecipientVerdict): boolean {
  const isPlain = diag_code === "5.0.0" && /^55[013]$/.test(bounce_code ?? "");
  return status === "bounced" && bounce_type === "hard" && (isPlain || ADDRESS_CODES.has(diag_code ?? ""));
}

/** One webhook for each recipient whose state changed, and none for others. */
function judgeEvents(tally: Tally, name: string, { recipients, events }: Verdict): void {
  const wanted = recipients.flatMap((one) => [
    ...(one.warned ? [`${one.email} email.deferred`] : []),
    ...(one.status === "bounced" ? [`${one.email} email.bounced`] : []),
    ...(one.status === "complained" ? [`${one.email} email.complained`] : []),
  ]);
  const got = events.map((event) => `${event.recipient} ${event.event}`);
  if (wanted.sort().join() !== got.sort().join()) tally.judge(`${name}: webhooks`, wanted, got);
}

// The others -------------------------------------------------------------------------------------------------------

function withoutRows(folder: string, file: string, mail: Buffer): Judged {
  const name = `${folder}/${file}`;
  // RFC 5321 §2.3.8: a bare CR is refused at the door; what is read of such mail elsewhere is tested in mail/dsn.
  const isBareCr = /\r(?!\n)/.test(mail.toString("latin1"));
  return {
    ...{ name, to: "return_path", recipients: [] },
    mail: isBareCr ? mail : withCrlf(mail),
    judge(tally, verdict) {
      const { answer, recipients } = verdict;
      const bounced = recipients.filter(({ status }) => status === "bounced").length;
      const got = { code: answer.slice(0, 3), bounced: folder === "not-a-bounce" || isBareCr ? bounced : 0 };
      tally.judge(name, { code: isBareCr ? "554" : "250", bounced: 0 }, got);
      judgeSuppressions(tally, name, verdict, []);
      judgeEvents(tally, name, verdict);
    },
  };
}

function withoutOpinion(name: string, mail: Buffer): Judged {
  return {
    ...{ name, mail, to: "return_path", recipients: [] },
    judge(tally, verdict) {
      tally.judge(name, "taken", /^250/.test(verdict.answer) ? "taken" : verdict.answer);
      judgeSuppressions(tally, name, verdict, []);
      judgeEvents(tally, name, verdict);
    },
  };
}

/** Mailman knows permanent and temporary; a temporary failure suppresses nobody. */
function withWanted(name: string, mail: Buffer, { permanent, temporary }: NonNullable<Wanted>): Judged {
  const words = [
    ...permanent.map((email) => `${email.toLowerCase()} permanent`),
    ...temporary.map((email) => `${email.toLowerCase()} temporary`),
  ];
  const expected = [...new Set(words.length === 0 ? ["unnamed delivered"] : words)].sort();
  return {
    ...{ name, mail, to: "return_path", recipients: [...permanent, ...temporary] },
    judge(tally, verdict) {
      const got = verdict.recipients.map((one) => {
        const word = one.status === "bounced" ? "permanent" : one.warned ? "temporary" : one.status;
        return `${one.named?.toLowerCase() ?? "unnamed"} ${word}`;
      });
      const isUnnamed = words.length === 0 && got[0] === "unnamed permanent";
      tally.judge(name, expected, [...new Set(got)].sort(), (isUnnamed ? UNNAMED : null) ?? listed(name));
      judgeSuppressions(tally, name, verdict, []);
      const softened = verdict.recipients.filter((one) => one.suppression !== null && one.status !== "bounced");
      if (softened.length > 0) tally.judge(`${name}: suppression`, [], softened.map(wordOf));
      judgeEvents(tally, name, verdict);
    },
  };
}

/** Mail as SMTP carries it: LF and bare CR become CRLF. */
function readMail(path: string): Buffer {
  return withCrlf(readFileSync(path));
}

/** LF and bare CR become CRLF, as SMTP has it. */
export function withCrlf(mail: Buffer): Buffer {
  return Buffer.from(mail.toString("latin1").replace(/\r\n|\r|\n/g, "\r\n"), "latin1");
}

function readJson<T>(path: string): T {
  return JSON.parse(readFileSync(path, "utf8")) as T;
}

function filesOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
