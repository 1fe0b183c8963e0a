// MIME suites over real SMTP: every mail is taken, stored byte for byte and reported in an event that is valid UTF-8, within
// a second; what event and attachments say is held against the suite. Line ends are brought to CRLF, as a client must.
// Why a difference may be one, mime-reasons.ts says.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { showFrom } from "../../src/inbound/process/payload.ts";
import {
  type Found,
  mime4jDifferences,
  type PythonMail,
  pythonDifferences,
  stalwartDifferences,
} from "../../src/mail/mime/parse-corpora.fixture.ts";
import { parseMessage } from "../../src/mail/mime/parse-message.ts";
import type { ParsedAttachment, ParsedMail } from "../../src/mail/mime/parsed-mail.ts";
import { caseFiles, noteAbsent, readSide } from "./case-files.ts";
import { type OtherReader, reasonOf } from "./mime-reasons.ts";
import { type Arrival, type MxStage, mxStage, NOT_CARRIED } from "./mx-stage.ts";
import type { Corpus, Tally } from "./tally.ts";

const EVENT_MS_MAX = 1_000;
/** A machine that is busy makes one mail slow once; a mail that is slow is so each time. */
const TRIES_MAX = 4;
const AT_ONCE = 4;
/** That all of them together may add to the process. */
const MEMORY_BYTES_MAX = 256 * 2 ** 20;

/** What a suite expects of a file, held against the mail as its receiver has it, and against its stored bytes. */
type Compare = (mail: ParsedMail, bytes: Buffer) => Found[];
type Case = { file: string; compare: Compare; other?: OtherReader };

/** Of a file that nobody says anything about. */
const NOTHING: Compare = () => [];

/** The whole parse beside each mail. */
export const mimeStalwart: Corpus = {
  name: "mime-stalwart",
  slow: true,
  run(dir, tally) {
    const toCase = (file: string): Case => {
      const path = join(dir, file);
      const isKnown = existsSync(path.replace(/\.eml$/, ".json"));
      return { file, compare: isKnown ? (mail) => stalwartDifferences(path, mail) : NOTHING };
    };
    return play(tally, dir, caseFiles(dir, "**/*.eml").map(toCase));
  },
};

/** The leaves of the tree, of the stored bytes. */
export const mimeMime4j: Corpus = {
  name: "mime-mime4j",
  run(dir, tally) {
    const toCase = (file: string): Case => {
      const path = join(dir, file);
      return { file, compare: hasLeaves(path) ? (_mail, bytes) => mime4jDifferences(path, bytes) : NOTHING };
    };
    return play(tally, dir, caseFiles(dir, "**/*.msg").map(toCase));
  },
};

/** The decoded tree and every file that it names. */
function hasLeaves(path: string): boolean {
  const tree = path.replace(/\.msg$/, "_decoded.xml");
  if (!existsSync(tree)) return false;
  const names = readFileSync(tree, "utf8").matchAll(/<(?:text|binary)-body name="([^"]*)"/g);
  return [...names].every(([, name = ""]) => existsSync(join(dirname(path), name)));
}

/** Mails of many libraries, beside what CPython reads in them. */
export const mimeMisc: Corpus = {
  name: "mime-misc",
  slow: true,
  run(dir, tally) {
    const wanted =
      readSide<Record<string, PythonMail & { defects?: string[] }>>(tally, join(dir, "baseline-python-email.json")) ??
      {};
    const files = caseFiles(dir);
    noteAbsent(tally, files, Object.keys(wanted));
    const toCase = (file: string): Case => {
      const want = wanted[file];
      if (!want) return { file, compare: NOTHING };
      const compare: Compare = (mail, bytes) => pythonDifferences(bytes, want, mail);
      return { file, compare, other: { is_python: true, defects: want.defects?.length ?? 0 } };
    };
    return play(tally, dir, files.map(toCase));
  },
};

async function play(tally: Tally, dir: string, cases: readonly Case[]): Promise<void> {
  if (cases.length === 0) return;
  const stage = await mxStage();
  stage.dns.clear();
  stage.forgetPeak();
  const before = stage.peakBytes();
  const slowest = { ms: 0, file: "" };
  for (let from = 0; from < cases.length; from += AT_ONCE) {
    const some = cases.slice(from, from + AT_ONCE).map((one) =>
      tally.attempt(one.file, async () => {
        const ms = await playOne(stage, tally, { dir, one });
        if (ms > slowest.ms) Object.assign(slowest, { ms, file: one.file });
      }),
    );
    await Promise.all(some);
  }
  tally.notes.push(`slowest: ${slowest.file}, ${Math.round(slowest.ms)} ms from the final dot to the event`);
  const after = stage.peakBytes();
  tally.notes.push(`memory of the process: ${inMib(before)} before, ${inMib(after)} at most`);
  const grown = before === null || after === null ? 0 : after - before;
  tally.check("memory, MiB", true, grown < MEMORY_BYTES_MAX || inMib(grown));
  // The next mail is taken, whatever came before it.
  const last = await stage.deliver({ bytes: Buffer.from("From: a@example.com\r\nSubject: after\r\n\r\nx\r\n") });
  tally.check("the mail after all of them", "after", last.kind === "arrived" ? last.event.subject : last.answer);
}

function inMib(bytes: number | null): string {
  return bytes === null ? "unknown" : `${Math.round(bytes / 2 ** 20)} MiB`;
}

async function playOne(stage: MxStage, tally: Tally, { dir, one }: { dir: string; one: Case }): Promise<number> {
  const file = readFileSync(join(dir, one.file));
  const bytes = withCrlf(file);
  const arrived = await quickest(stage, bytes);
  if (arrived.kind === "refused") {
    tally.judge(one.file, "taken", arrived.answer, arrived.is_due ? NOT_CARRIED : null);
    return 0;
  }
  const taken = arrived.refused === null ? bytes : withCrlf(file, true);
  const got = await look(stage, arrived, { taken, file, compare: one.compare });
  const reason = reasonOf(got.found, { defects: got.defects, bytes, other: one.other });
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
