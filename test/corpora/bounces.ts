// Bounce mails of three collections, mailed to the return path of mail that was really sent to the recipients they name:
// the recipient must be right, hard and soft must agree, nobody may be suppressed who is not at fault. Sisimai's verdict is
// a second opinion; where the contract or the design's table decides otherwise, that is the reason.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { answerTo, caseFiles, noteAbsent, readSide, withCrlf } from "./case-files.ts";
import { playReturned, type RecipientVerdict, type ReturnedCase, type Verdict } from "./returned-stage.ts";
import type { Corpus, Tally } from "./tally.ts";

type Row = {
  recipient: string;
  hardbounce: number;
  action: string;
  reason: string;
  diagnostic?: string;
  feedbacktype?: string;
  status?: string;
  replycode?: string;
};
type Judged = ReturnedCase & { rows?: Row[]; judge(tally: Tally, verdict: Verdict): void };

const ADDRESS_CODES = new Set(["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"]);

export const bounceSisimai: Corpus = {
  name: "bounce-sisimai",
  slow: true,
  async run(dir, tally) {
    const expected = readSide<Record<string, { bounces: Row[] | null }>>(tally, join(dir, "expected.json")) ?? {};
    const files = caseFiles(join(dir, "eml"));
    noteAbsent(tally, files, Object.keys(expected));
    const cases = files.map((file) => {
      const [name, mail, wanted] = [`eml/${file}`, readMail(join(dir, "eml", file)), expected[file]];
      return wanted ? withRows(name, mail, wanted.bounces ?? []) : withoutOpinion(name, mail);
    });
    const harmless = ["not-a-bounce", "line-endings-dos", "line-endings-mac"].flatMap((folder) =>
      caseFiles(join(dir, folder)).map((file) => withoutRows(folder, file, readFileSync(join(dir, folder, file)))),
    );
    await runCases(tally, [...cases, ...harmless]);
  },
};

/** A notification of RFC 8098 anywhere in the mail. */
const RECEIPT = /^content-type:[ \t]*message\/disposition-notification|report-type="?disposition-notification/im;

export const dsnMisc: Corpus = {
  name: "dsn-misc",
  slow: true,
  async run(dir, tally) {
    const opinions = readSide<Record<string, Row[]>>(tally, join(dir, "second-opinion.json")) ?? {};
    const files = caseFiles(dir);
    noteAbsent(tally, files, Object.keys(opinions));
    const cases = files.map((file) => {
      const [mail, rows = []] = [readMail(join(dir, file)), opinions[file]];
      // Where Sisimai finds nothing it has no opinion; a read receipt is no bounce, whoever looks.
      const isJudged = rows.length > 0 || RECEIPT.test(mail.toString("latin1"));
      return isJudged ? withRows(file, mail, rows) : withoutOpinion(file, mail);
    });
    await runCases(tally, cases);
  },
};

type Wanted = { permanent: string[]; temporary: string[] } | null;

export const bounceFlufl: Corpus = {
  name: "bounce-flufl",
  slow: true,
  async run(dir, tally) {
    const expected = readSide<Record<string, Wanted>>(tally, join(dir, "expected.json")) ?? {};
    const files = caseFiles(join(dir, "mail"));
    noteAbsent(tally, files, Object.keys(expected));
    const cases = files.map((file) => {
      const [mail, wanted] = [readMail(join(dir, "mail", file)), expected[file]];
      return wanted ? withWanted(file, mail, wanted) : withoutOpinion(file, mail);
    });
    await runCases(tally, cases);
  },
};

async function runCases(tally: Tally, cases: readonly Judged[]): Promise<void> {
  const came = await playReturned(tally, cases, (one, verdict) => one.judge(tally, verdict));
  const all = came.flatMap(([, { recipients }]) => recipients);
  const count = (is: (one: RecipientVerdict) => boolean) => all.filter(is).length;
  tally.notes.push(
    `${all.length} recipients: ${count((one) => one.bounce_type === "hard")} bounced hard, ` +
      `${count((one) => one.bounce_type === "soft")} softly, ${count(({ warned }) => warned)} late, ` +
      `${count(({ status }) => status === "complained")} complained, ` +
      `${count(({ suppression }) => suppression !== null)} suppressed`,
  );
  for (const [one, verdict] of came) judgeCodes(tally, one, verdict);
}

/** Codes that a mail carries must be read from it; those of the form x.0.9xx are Sisimai's own (README). */
function judgeCodes(tally: Tally, { name, rows = [], mail }: Judged, { recipients }: Verdict): void {
  const carried = mail.toString("latin1").replace(/=\r\n/g, "");
  for (const { recipient, status = "", replycode = "" } of rows) {
    const one = recipients.find(({ named, status }) => named === recipient && status === "bounced");
    if (!one) continue;
    const codes = [
      { what: "enhanced code", wanted: status, got: one.diag_code },
      { what: "SMTP code", wanted: replycode, got: one.bounce_code },
    ];
    for (const { what, wanted, got } of codes) {
      if (wanted === "" || /\.0\.9\d\d$/.test(wanted) || !carried.includes(wanted) || wanted === got) continue;
      const reason = whyOtherCode(wanted, got ?? "", carried);
      if (reason === null) tally.check(`${name}: ${what} of ${recipient}`, wanted, got);
      else tally.notes.push(`${name}: ${what} ${got} where Sisimai has ${wanted}: ${reason}`);
    }
  }
}

/** Of two codes in the same mail. */
function whyOtherCode(wanted: string, got: string, mail: string): string | null {
  if (!mail.includes(got) || got === "") return null;
  const isSurer = /\.0\.0$/.test(wanted) && got[0] === wanted[0];
  if (isSurer) return "the code of the reply says more than a status without a detail";
  const replies = [...mail.matchAll(/\b[45]\d\d[ -]#?\(?([45]\.\d{1,3}\.\d{1,3})\b/g)].map(([, code]) => code);
  // "554 4.4.7 Message expired.<421 4.4.2 Connection dropped>"
  const [first, second] = [got, wanted].map((code) => code.replaceAll(".", "\\."));
  if (new RegExp(`^diagnostic-code:[^\\n<]*${first}[^<]{0,200}<[^>]{0,10}${second}`, "im").test(mail))
    return "the diagnostic begins with the reporter's own reply and quotes another";
  return replies.includes(got) && !replies.includes(wanted) ? "the code that stands in the remote side's reply" : null;
}

// Sisimai's rows ---------------------------------------------------------------------------------------------------

function withRows(name: string, mail: Buffer, rows: Row[]): Judged {
  return {
    ...{ name, mail, to: "return_path", rows },
    recipients: rows.map(({ recipient }) => recipient),
    judge(tally, verdict) {
      const expected = wantedOf(rows);
      const got = wordsOf(verdict);
      const reported = { expected, got, verdict, rows, mail: mail.toString("latin1").replace(/=\r\n/g, "") };
      tally.judge(name, expected, got, explain(reported));
      judgeSuppressions(tally, name, verdict, expected);
      judgeMissing(tally, this, verdict);
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

type Reported = { expected: string[]; got: string[]; verdict: Verdict; rows: readonly Row[]; mail: string };

/** The same recipients, but hard where Sisimai says soft or conversely: for a reason that stands in the mail itself. */
function explain(reported: Reported): string | null {
  const { expected, got, verdict, rows } = reported;
  const { recipients } = verdict;
  const names = (words: string[]): string => words.map((word) => word.split(" ")[0]).join(" ");
  if (names(expected) !== names(got)) return null;
  const [first, ...others] = recipients;
  const isOfOne = first?.status === "complained" && others.every(({ status }) => status === "delivered");
  if (isOfOne && expected.every((word) => / complained$/.test(word))) return ONE_COPY;
  const differing = recipients.filter((one) => !expected.includes(`${one.named?.toLowerCase()} ${wordOf(one)}`));
  const reasons = differing.map((one) => {
    const row = rows.find(({ recipient }) => recipient.toLowerCase() === one.named?.toLowerCase());
    if (one.status !== "bounced" || !row) return null;
    return one.bounce_type === "hard" ? whyHard(one, reported.mail) : whySoft(row, reported.mail);
  });
  return reasons.every((reason) => reason !== null) ? (reasons[0] ?? null) : null;
}

/** RFC 3463 §3.2, §3.5: an address, a mailbox that is disabled, the way to it. */
const HARD_CODE = /^5\.(?:1\.\d+|2\.1|4\.4)$/;
const ABOUT_ADDRESS =
  /unknown (?:user|recipient|address|mailbox)|(?:user|recipient|address|mailbox|account)[^\r\n]{0,40}(?:unknown|not found|does not exist|doesn't exist|not exist|disabled|locked|on hold|invalid|unavailable)|no ?such ?(?:user|recipient|address|mailbox|person)|disabled recipient|not a (?:registered|valid|known)|relay(?:ing)?(?: access)? (?:is )?(?:denied|not (?:permitted|allowed)|prohibited)|not\s+configured\s+to\s+relay/i;

/** Sisimai says soft. */
function whyHard({ diag_code, suppression }: RecipientVerdict, mail: string): string | null {
  const code = diag_code ?? "";
  if (ADDRESS_CODES.has(code) && mail.includes(code))
    return "the enhanced code is one of the contract's that mean the address (weigh.ts); Sisimai reads the text";
  const isSo = (HARD_CODE.test(code) && mail.includes(code)) || ABOUT_ADDRESS.test(mail);
  return suppression === null && isSo
    ? "words about the address or the way to it: hard by the design's table; without a code nobody is suppressed"
    : null;
}

/** What a server says, or a mail for it, when it knows no such address or domain. */
const NO_SUCH_THING =
  /unknown|invalid|no such|not (?:found|listed|exist|valid|known)|does not|doesn't|unroute?able|no (?:valid|smtp)|address is correct|disabled/i;

/** Sisimai says hard. */
function whySoft({ status = "", replycode = "", diagnostic = "" }: Row, mail: string): string | null {
  const carried = [status, replycode].filter((code) => code !== "" && mail.includes(code));
  if (carried.some((code) => code.startsWith("4")))
    return "a temporary code is never hard, whatever its words (weigh.ts)";
  if (carried.some((code) => ADDRESS_CODES.has(code))) return null;
  if (/\b(?:after )?end of data\b|\bdata command\b|\bfinal dot\b/i.test(diagnostic))
    return "refused after DATA, which is never about the recipient (decision 0013)";
  return carried.length === 0 && !NO_SUCH_THING.test(diagnostic) && !ABOUT_ADDRESS.test(mail)
    ? "no code and no words about the address: soft by classify.ts, Sisimai guesses hard"
    : null;
}

const UNNAMED =
  "the report names no whole address, so that Mailman finds nobody; the return path tells whose copy came back";
const ONE_COPY =
  "a complaint is believed of the recipient whose copy is reported; the others named in it have copies of their own";

/** Suppressed are only those the case calls hard, or whose code says by the contract that the address does not work. */
function judgeSuppressions(tally: Tally, name: string, { recipients }: Verdict, expected: string[]): void {
  const wrong = recipients.filter((one) => {
    if (one.suppression?.reason !== "hard_bounce") return false;
    return !expected.includes(`${one.named?.toLowerCase()} hard`) && !isAtFault(one);
  });
  tally.check(`${name}: suppression`, [], wrong.map(wordOf));
}

/** Who must be suppressed: the case calls it hard, and the mail carries a code that means the address (decision 0013). */
function judgeMissing(tally: Tally, { name, rows = [], mail }: Judged, { recipients }: Verdict): void {
  const carried = mail.toString("latin1").replace(/=\r\n/g, "");
  const isExpanded = /\(expanded from|\(?(?:ultimately )?generated from|^x-actual-recipient:/im.test(carried);
  const missing = recipients.filter(({ named, status, diag_code, suppression }) => {
    const row = rows.find(({ recipient }) => recipient.toLowerCase() === named?.toLowerCase());
    const code = row?.status ?? "";
    const isByCode = row?.hardbounce === 1 && ADDRESS_CODES.has(code) && carried.includes(code) && code === diag_code;
    return isByCode && status === "bounced" && suppression === null && !isExpanded && !MADE_UP.test(carried);
  });
  tally.check(`${name}: a suppression that is missing`, [], missing.map(wordOf));
}

/** A reply without an enhanced code, of which the reporter made one; or one that is not about RCPT. */
const MADE_UP = /^diagnostic-code:[^\r\n]*;\s*[45]\d\d[ -](?![\s\S]{0,10}[45]\.\d)|\bend of data\b|\bdata command\b/im;

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
  tally.check(`${name}: webhooks`, wanted.sort(), got.sort());
}

// The others -------------------------------------------------------------------------------------------------------

function withoutRows(folder: string, file: string, given: Buffer): Judged {
  const name = `${folder}/${file}`;
  // Bare CR is refused at the door; what is read of such mail elsewhere is tested in mail/dsn.
  const mail = /\r(?!\n)/.test(given.toString("latin1")) ? given : withCrlf(given);
  const expected = { code: answerTo(mail), bounced: 0 };
  return {
    ...{ name, mail, to: "return_path", recipients: [] },
    judge(tally, verdict) {
      const { answer, recipients } = verdict;
      const bounced = recipients.filter(({ status }) => status === "bounced").length;
      const mayBounce = folder !== "not-a-bounce" && expected.code === "250";
      tally.judge(name, expected, { code: answer.slice(0, 3), bounced: mayBounce ? 0 : bounced });
      judgeSuppressions(tally, name, verdict, []);
      judgeEvents(tally, name, verdict);
    },
  };
}

/** Nobody says what it is: it is taken, and what came of it agrees with itself. */
function withoutOpinion(name: string, mail: Buffer): Judged {
  return {
    ...{ name, mail, to: "return_path", recipients: [] },
    judge(tally, verdict) {
      tally.judge(name, answerTo(mail), verdict.answer.slice(0, 3));
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
      const isReport = /^action:[ \t]*failed/im.test(mail.toString("latin1"));
      const isUnnamed = words.length === 0 && got.join() === "unnamed permanent" && isReport;
      tally.judge(name, expected, [...new Set(got)].sort(), isUnnamed ? UNNAMED : null);
      judgeSuppressions(tally, name, verdict, []);
      const softened = verdict.recipients.filter((one) => one.suppression !== null && one.status !== "bounced");
      tally.check(`${name}: suppression`, [], softened.map(wordOf));
      judgeEvents(tally, name, verdict);
    },
  };
}

/** Mail as SMTP carries it. */
function readMail(path: string): Buffer {
  return withCrlf(readFileSync(path));
}
