// MIME suites over real SMTP: every mail is taken, stored byte for byte and told of in an event that is valid UTF-8, within
// a second; what event and attachments say is held against the suite. Line ends are brought to CRLF, as a client must.
// Differences that a person looked at stand in src/mail/mime/parse.differences.json with their reasons.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { showFrom } from "../../src/inbound/payload.ts";
import {
  corpusFiles,
  type Found,
  mime4jDifferences,
  type PythonMail,
  pythonDifferences,
  stalwartDifferences,
} from "../../src/mail/mime/parse-corpora.fixture.ts";
import { parseMessage } from "../../src/mail/mime/parse-message.ts";
import type { ParsedAttachment, ParsedMail } from "../../src/mail/mime/parsed-mail.ts";
import { type Arrival, type MxStage, mxStage } from "./mx-stage.ts";
import { type Corpus, createTally, type Tally } from "./tally.ts";

type Difference = { corpus: string; file: string; field: string; reason: string };

const EVENT_MS_MAX = 1_000;
/** A machine that is busy makes one mail slow once; a mail that is slow is so each time. */
const TRIES_MAX = 4;
const AT_ONCE = 4;
/** That all of them together may add to the process. */
const MEMORY_BYTES_MAX = 256 * 2 ** 20;
const LOOKED_AT = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../src/mail/mime/parse.differences.json"), "utf8"),
) as Difference[];

/** What a suite expects of a file, held against the mail as its receiver has it, and against its stored bytes. */
type Compare = (mail: ParsedMail, bytes: Buffer) => Found[];
type Case = { file: string; compare: Compare; general?: string };

/** The whole parse beside each mail. */
export const mimeStalwart: Corpus = {
  name: "mime-stalwart",
  run: (dir) =>
    play(
      "mime-stalwart",
      dir,
      filesOf(dir, "**/*.eml", (path) => (mail) => stalwartDifferences(path, mail)),
    ),
};

/** The leaves of the tree, of the stored bytes. */
export const mimeMime4j: Corpus = {
  name: "mime-mime4j",
  run: (dir) =>
    play(
      "mime-mime4j",
      dir,
      filesOf(dir, "*.msg", (path) => (_mail, bytes) => mime4jDifferences(path, bytes)),
    ),
};

const PYTHON = "a second opinion (CPython's email), not a standard: it keeps raw bytes and rejects what readers repair";

/** Mails of many libraries, beside what CPython reads in them. */
export const mimeMisc: Corpus = {
  name: "mime-misc",
  run(dir) {
    const baseline = join(dir, "baseline-python-email.json");
    const wanted = existsSync(baseline)
      ? (JSON.parse(readFileSync(baseline, "utf8")) as Record<string, PythonMail>)
      : {};
    const cases = Object.entries(wanted).map(
      ([file, want]): Case => ({
        file,
        compare: (mail, bytes) => pythonDifferences(bytes, want, mail),
        general: PYTHON,
      }),
    );
    return play("mime-misc", dir, cases);
  },
};

function filesOf(dir: string, pattern: string, compare: (path: string) => Compare): Case[] {
  return corpusFiles(pattern, `${dir}/`).map((file) => ({ file, compare: compare(join(dir, file)) }));
}

async function play(corpus: string, dir: string, cases: Case[]): Promise<Tally> {
  const tally = createTally();
  const stage = await mxStage();
  stage.dns.clear();
  stage.forgetPeak();
  const before = stage.peakBytes();
  const slowest = { ms: 0, file: "" };
  for (let from = 0; from < cases.length; from += AT_ONCE) {
    await Promise.all(
      cases.slice(from, from + AT_ONCE).map(async (one) => {
        const ms = await playOne(stage, tally, { corpus, dir, one });
        if (ms > slowest.ms) Object.assign(slowest, { ms, file: one.file });
      }),
    );
  }
  tally.notes.push(`slowest: ${slowest.file}, ${Math.round(slowest.ms)} ms from the final dot to the event`);
  const after = stage.peakBytes();
  tally.notes.push(`memory of the process: ${inMib(before)} before, ${inMib(after)} at most`);
  const grown = before === null || after === null ? 0 : after - before;
  tally.judge("memory, MiB", true, grown < MEMORY_BYTES_MAX || inMib(grown));
  // The next mail is taken, whatever came before it.
  const last = await stage.deliver({ bytes: Buffer.from("From: a@example.com\r\nSubject: after\r\n\r\nx\r\n") });
  tally.judge("the mail after all of them", "after", last.kind === "arrived" ? last.event.subject : last.answer);
  return tally;
}

function inMib(bytes: number | null): string {
  return bytes === null ? "unknown" : `${Math.round(bytes / 2 ** 20)} MiB`;
}

const NOT_CARRIED =
  "refused at the door: SMTP carries no NUL and no bare CR (RFC 5321 §2.3.8, §4.1.2), and servers that read them differently can be tricked";

async function playOne(
  stage: MxStage,
  tally: Tally,
  { corpus, dir, one }: { corpus: string; dir: string; one: Case },
): Promise<number> {
  const file = readFileSync(join(dir, one.file));
  const bytes = withCrlf(file);
  const arrived = await quickest(stage, bytes);
  if (arrived.kind === "refused") {
    const isRule = /^55[04] 5\.[56]\.\d .*(bare|NUL|CR|LF)/i.test(arrived.answer);
    tally.judge(one.file, "taken", arrived.answer, isRule ? NOT_CARRIED : null);
    return 0;
  }
  const taken = arrived.refused === null ? bytes : withCrlf(file, true);
  const got = await look(stage, arrived, { taken, file, compare: one.compare });
  const reasons = got.found.map(
    (found) => reasonOf(corpus, one.file, found.field) ?? ruleFor(found, got.defects, bytes) ?? one.general ?? null,
  );
  const reason = reasons.length > 0 && reasons.every((each) => each !== null) ? (reasons[0] as string) : null;
  const { found: _found, defects: _defects, ...hard } = FINE;
  // A reason speaks of what was read differently, never of what must hold for every mail.
  const isFine = Object.entries(hard).every(([name, value]) => got[name as keyof typeof hard] === value);
  tally.judge(one.file, { ...FINE, defects: got.defects }, got, isFine ? reason : null);
  return arrived.ms;
}

async function quickest(stage: MxStage, bytes: Buffer): ReturnType<MxStage["deliver"]> {
  let arrived = await stage.deliver({ bytes });
  for (let tries = 1; tries < TRIES_MAX && arrived.kind === "arrived" && arrived.ms > EVENT_MS_MAX; tries += 1) {
    arrived = await stage.deliver({ bytes });
  }
  return arrived;
}

const FINE = {
  ...{ quick: true, utf8: true, stored: true, parsed: true, same_from: true, sizes: true },
  found: [] as Found[],
  defects: [] as string[],
};

type Looked = { taken: Buffer; file: Buffer; compare: Compare };

async function look(stage: MxStage, arrived: Arrival, { taken, file, compare }: Looked): Promise<typeof FINE> {
  const path = `/v1/inbound-emails/${arrived.id}`;
  const raw = await stage.download(`${path}/raw`);
  const { email } = JSON.parse((await stage.download(path)).toString());
  const parsed = parseMessage(taken);
  const contents = await Promise.all(
    email.attachments.map(({ id }: { id: string }) => stage.download(`${path}/attachments/${id}/download`)),
  );
  const mail = asReceived(email, parsed, { contents, original: parseMessage(file).attachments });
  return {
    quick: arrived.ms < EVENT_MS_MAX,
    utf8: arrived.is_utf8,
    stored: raw.subarray(raw.length - taken.length).equals(taken),
    parsed: email.status === "delivered" && !email.defects.some((defect: string) => defect.startsWith("not_parsed")),
    same_from: arrived.event.from === showFrom(parsed.from) && email.text === (arrived.event.text ?? email.text),
    sizes: email.attachments.every(({ size }: { size: number }, at: number) => size === contents[at]?.length),
    found: compare(mail, taken),
    defects: email.defects,
  };
}

/** The mail as the API has it; addresses, which it shows as texts, as they are parsed. */
function asReceived(
  email: Arrival["event"],
  parsed: ParsedMail,
  { contents, original }: { contents: Buffer[]; original: ParsedAttachment[] },
): ParsedMail {
  const { subject, text, html, date, message_id, thread } = email;
  const attachments = contents.map((content, at) => {
    const { filename, content_type, content_id, disposition, size } = email.attachments[at];
    const source = original[at]?.content;
    // The suite read the file with its own line ends.
    const shown = source && withCrlf(source).equals(withCrlf(content)) ? source : content;
    return {
      filename,
      content_type,
      content_id,
      disposition,
      size: shown === source ? source.length : size,
      content: shown,
    };
  });
  const { in_reply_to, references } = thread;
  return { ...parsed, subject, text, html, date, message_id, in_reply_to, references, attachments } as ParsedMail;
}

/** `bare_cr` too: as simulate does, and as clients do that read text. */
function withCrlf(bytes: Buffer, bareCr = false): Buffer {
  const text = bytes.toString("latin1").replace(bareCr ? /\r\n|\r|\n/g : /\r?\n/g, "\r\n");
  return Buffer.from(text.endsWith("\r\n") ? text : `${text}\r\n`, "latin1");
}

/** Differences that follow from what is wrong with a mail, which its record tells: by defect, and in which fields. */
const RULES: [defect: RegExp, field: RegExp, reason: string][] = [
  [
    /^boundary_(?:not_found|missing|not_closed)$/,
    /^(?:text|html|attachments?\b|lea(?:f|ves)\b)/,
    "its multiparts lack boundaries that RFC 2046 §5.1.1 requires; where that has no answer, each reader recovers parts its own way",
  ],
  [
    /^(?:no_empty_line|line_without_field)$/,
    /./,
    "lines in its head are no fields (RFC 5322 §2.2): readers differ in whether the body has begun there",
  ],
  [/^bad_date$/, /^date$/, "its date is none by RFC 5322 §3.3 and §4.3: no instant, so null"],
  [
    /^(?:undecodable_text|unknown_charset|unknown_encoding|bad_quoted_printable)$/,
    /^(?:text|html|subject|from|to|attachment .* (?:name|content))$/,
    "its text is not in the charset or encoding that it names: readers repair that each its own way",
  ],
];

function ruleFor({ field, want, got }: Found, defects: string[], bytes: Buffer): string | null {
  const rule = RULES.find(([defect, at]) => at.test(field) && defects.some((one) => defect.test(one)));
  if (rule) return rule[2];
  if (!field.endsWith("content")) return null;
  if (/^content-transfer-encoding:\s*(?:x-)?uu/im.test(bytes.toString("latin1"))) {
    return "uuencoded: we decode it, the reference leaves it";
  }
  return isSameButCr(want, got)
    ? "the reference drops CR from an attachment, whose bytes are data (RFC 2046 §4.5.1)"
    : null;
}

/** Both are hexadecimal and cut at the same length. */
function isSameButCr(want: string, got: string): boolean {
  const [wanted, had] = [want, got].map((hex) =>
    (hex.match(/../g) ?? []).filter((octet) => octet !== "0d").join(""),
  ) as [string, string];
  return had.length > 0 && wanted.startsWith(had);
}

function reasonOf(corpus: string, file: string, field: string): string | null {
  return LOOKED_AT.find((one) => one.corpus === corpus && one.file === file && one.field === field)?.reason ?? null;
}
