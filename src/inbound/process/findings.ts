// From verdicts and parts to what is kept and shown of a mail. A mail that could not be parsed still has its head.
import { isForgedField } from "../../mail/auth/strip-forged.ts";
import type { ParsedMail } from "../../mail/mime/parsed-mail.ts";
import { readHead } from "../../mail/mime/read-head.ts";
import { derivedUuid } from "../../platform/random.ts";
import type { World } from "../../platform/world.ts";
import { keepBlobs } from "../blobs/blob-references.ts";
import type { Findings, Found, Mail, Parsed, SenderVerdicts, SpamReport, StoredAttachment } from "../types.ts";
import { type Content, showFrom, showMailboxes, summarizeAuth, wellFormed } from "./payload.ts";
import type { FindThread } from "./threads.ts";

const SUBJECT_CHARS_MAX = 10_000;
const FROM_CHARS_MAX = 10_000;
const ID_CHARS_MAX = 998;

export type FindingsWorld = Pick<World, "db" | "blobs">;

export type Gathered = { found: Found; findings: Findings; content: Content };

/** Finds everything out about a mail that does not depend on what is to be done with it; keeps its attachments. */
export async function gather(
  world: FindingsWorld,
  findThread: FindThread,
  mail: Mail,
  spam: SpamReport,
): Promise<Gathered> {
  const [verdicts, parsed] = await Promise.all([mail.examination.verdicts(), mail.examination.parsed()]);
  const read = await readMail(mail, parsed);
  const thread = await findThread(mail.org_id, read, mail.raw_id);
  const attachments = await keepAttachments(world, mail, read.attachments);
  return {
    found: {
      message_id: read.message_id,
      from_address: showFrom(read.from)?.slice(0, FROM_CHARS_MAX) ?? null,
      subject: read.subject,
      has_attachments: attachments.length > 0,
      thread_id: thread.id,
      matched_email_id: thread.matched_email_id,
      spam_score: spam.score,
      authentication_results: verdicts.header,
      findings: null,
    },
    findings: {
      cc: showMailboxes(read.cc),
      reply_to: showFrom(read.reply_to),
      date: read.date,
      in_reply_to: read.in_reply_to,
      references: read.references,
      auto_submitted: read.auto_submitted,
      spam,
      auth: summarizeAuth(verdicts),
      dmarc_policy: { policy: verdicts.dmarc.policy, applied: verdicts.dmarc.applied },
      attachments,
      defects: read.defects,
    },
    content: { text: read.text, html: read.html, headers: read.headers },
  };
}

type Kept = { findings: Pick<Findings, "auth" | "dmarc_policy"> | null; authentication_results: string | null };

/**
 * The verdicts that were found when the mail was processed first. Null where it was not, or where DNS did not answer then:
 * who sent a mail is reported as of its receipt, since signatures lapse and keys and records change (RFC 6376 §3.5, x=).
 */
export function keptVerdicts({ findings, authentication_results: header }: Kept): SenderVerdicts | null {
  if (!findings?.dmarc_policy || header === null) return null;
  const { dkim, spf, dmarc } = findings.auth;
  if ([dkim, spf, dmarc].some(({ result }) => result === "temperror")) return null;
  return { dkim, spf, dmarc: { ...dmarc, ...findings.dmarc_policy }, header };
}

/** What the list and the record show of a mail that another feature's handler keeps in quarantine. */
export async function describeHeld(world: FindingsWorld, findThread: FindThread, mail: Mail, spam: SpamReport) {
  const { found, findings } = await gather(world, findThread, mail, spam);
  return { ...found, findings };
}

/**
 * The parts of a mail, or what its head tells when it could not be parsed. Without the fields that pretend to be ours: what
 * rules, events and people read from here may be taken for our word (RFC 8601 §5).
 */
export async function readMail({ examination }: Pick<Mail, "examination">, parsed: Parsed): Promise<ParsedMail> {
  const read = parsed.kind === "parsed" ? parsed.mail : readHead(await examination.bytes(), parsed.reason);
  return {
    ...read,
    message_id: storable(read.message_id, ID_CHARS_MAX),
    in_reply_to: storable(read.in_reply_to, ID_CHARS_MAX),
    answered: read.answered.map(wellFormed),
    references: read.references.map(wellFormed),
    subject: storable(read.subject, SUBJECT_CHARS_MAX),
    text: read.text === null ? null : wellFormed(read.text),
    html: read.html === null ? null : wellFormed(read.html),
    headers: read.headers
      .filter(({ name, value }) => !isForgedField(name, value, examination.host))
      .map(({ name, value }) => ({ name: wellFormed(name), value: wellFormed(value) })),
  };
}

function storable(text: string | null, charsMax: number): string | null {
  return text === null ? null : wellFormed(text.slice(0, charsMax));
}

async function keepAttachments(
  world: FindingsWorld,
  mail: Mail,
  attachments: ParsedMail["attachments"],
): Promise<StoredAttachment[]> {
  const owner = { org_id: mail.org_id, owner_id: mail.id };
  const contents = attachments.map(({ content }) => Buffer.from(content));
  const keys = await keepBlobs(world, owner, contents);
  return attachments.map(({ filename, content_type, content_id, disposition }, index) => ({
    // The same at each processing: addresses of attachments that went out with an event are good after a replay.
    id: derivedUuid(mail.id, index, keys[index] ?? ""),
    filename: wellFormed(filename),
    content_type: wellFormed(content_type),
    size: contents[index]?.length ?? 0,
    content_id: content_id === null ? null : wellFormed(content_id),
    disposition,
    blob_key: keys[index] ?? "",
  }));
}
