// One attempt: body → signature → conversation → outcome. Remote behaviour is a value; nothing here touches the queue.
import { isAscii, isUtf8 } from "node:buffer";
import { isSentByCustomer } from "../../events/events.ts";
import { makeToken } from "../../mail/bounce-token.ts";
import { type SigningKey, signMessage } from "../../mail/dkim/sign.ts";
import { type Classification, classifyReply } from "../../mail/smtp/classify.ts";
import type { Reply } from "../../mail/smtp/reply.ts";
import type { ConnectFailure } from "../../mail/smtp/session.ts";
import type { Envelope, SendOutcome, Smtputf8 } from "../../mail/smtp/transaction.ts";
import { makeUnsubscribeToken, UNSUBSCRIBE_CONTEXT, UNSUBSCRIBE_PATH } from "../../mail/unsubscribe-token.ts";
import type { SevenBitOutcome } from "../../parsing/parse-pool.ts";
import type { World } from "../../platform/world.ts";
import type { Hop } from "../route/route.ts";
import type { Job, Outcome } from "../types.ts";
import type { Link } from "./link.ts";
import type { SevenBitWriter } from "./seven-bit.ts";

export type AttemptWorld = Pick<World, "clock" | "seal" | "config">;

export type Attempt = {
  loadBody(job: Job): Promise<Buffer | null>;
  signingKeys(orgId: string, domainId: string): Promise<SigningKey[]>;
  toSevenBit: SevenBitWriter["write"];
  /** True if the message may be sent now (the lease is still safe). */
  mayStart(): boolean;
  /** The same right before the final dot, and the journal notes that it may arrive from here on. */
  mayEnd(job: Job): boolean;
};

export type AttemptResult = {
  outcome: Outcome | null;
  /** What the reply asks of the path. */
  path_action: Classification["path_action"];
  /** The session ended, or was full, before anything was said of this message: it may go on a fresh one. */
  lost: string | null;
  /** We ended the session ourselves, before the message was: it may not be sent from here any more. */
  withheld?: boolean;
};

/** Purpose of the keyed hash in return paths and in our header. */
export const TOKEN_CONTEXT = "bounce-token";

/**
 * Sends `job` over `link`. `outcome` is null only when the connection had died unused (`lost`) or we may not send. Throws
 * when body or keys cannot be had now; nothing was said on the session then. `onSent` is called when the message is sent to its
 * end and not in memory any more.
 */
export async function attempt(
  world: AttemptWorld,
  parts: Attempt,
  link: Link,
  { job, onSent }: { job: Job; onSent?: () => void },
): Promise<AttemptResult> {
  const startedAt = world.clock.monotonic();
  const ready = await makeReady(world, parts, link, job);
  if ("kind" in ready) return ended(ready);
  const { envelope, message } = ready;
  let withheld = false;
  const ask = (may: boolean): boolean => {
    withheld ||= !may;
    return may;
  };
  const sent = await link.session.send(envelope, message, {
    beforeData: () => ask(parts.mayStart()),
    beforeEnd: () => ask(parts.mayEnd(job)),
    afterEnd: () => {
      message.length = 0;
      onSent?.();
    },
  });
  const result = toResult(sent, link, world.clock.monotonic() - startedAt);
  return withheld ? { ...result, withheld } : result;
}

/** `message`: its bytes in order. Nothing else holds them, so that they are gone when it is emptied. */
type Ready = { envelope: Envelope; message: Buffer[] };

async function makeReady(world: AttemptWorld, parts: Attempt, link: Link, job: Job): Promise<Ready | Outcome> {
  const given = job.mime ?? (await parts.loadBody(job));
  if (!given) return notSendable("the message's body is no longer stored", "5.3.0");
  // RFC 6152 §3: who has taken 8-bit mail converts it for a server that does not, or sends it back. Forwards are never sent back.
  const written = await inBitsOf(link, parts, given);
  if (written.kind === "failed") return notWritten(written.reason);
  const mime = written.bytes;
  if (job.about.require_tls && !link.session.tls) return needsTls(link);
  const token = makeToken(job.message_id, job.position, (text) => world.seal.hash(text, TOKEN_CONTEXT));
  const own = ownHead(world, job, mime, token);
  const signature = await sign(world, parts, job, { own, mime });
  if (!signature) return deferredLocally("no active DKIM key for the sender's domain", "4.7.0", "auth");
  const head = Buffer.concat([signature, Buffer.from(`X-Postern-Id: ${token}\r\n`), own]);
  const envelope: Envelope = {
    from: job.about.envelope_from ?? `b+${token}@${job.return_path_host}`,
    to: job.email,
    smtputf8: needsSmtputf8(job, mime),
    size: head.length + mime.length,
    require8bit: !isAscii(mime),
  };
  return { envelope, message: [head, mime] };
}

/** The message in as many bits as the server takes. */
async function inBitsOf({ session }: Link, { toSevenBit }: Attempt, mime: Buffer): Promise<SevenBitOutcome> {
  if (session.capabilities.eightbitmime || isAscii(mime)) return { kind: "written", bytes: mime };
  return await toSevenBit(mime);
}

async function sign(
  world: AttemptWorld,
  parts: Attempt,
  job: Job,
  { own, mime }: { own: Buffer; mime: Buffer },
): Promise<Buffer | null> {
  const keys = await parts.signingKeys(job.org_id, job.about.domain_id);
  // A forward carries its author's signature; a domain that only receives has no key to add one with.
  if (keys.length === 0) return job.about.origin === "forward" ? Buffer.alloc(0) : null;
  return signMessage(mime, keys, { now_s: Math.floor(world.clock.now() / 1000), above: own });
}

/** What is different in each recipient's copy, and the same in each attempt: part of the signed bytes. */
function ownHead(world: AttemptWorld, job: Job, mime: Buffer, token: string): Buffer {
  return Buffer.from(feedbackHead(job, mime, token) + unsubscribeHead(world, job));
}

/**
 * Where a mailbox provider reports what its user calls spam (RFC 9477 §3), unless the sender names another place.
 * Forwards are their authors' mail, not ours.
 */
function feedbackHead({ about, return_path_host }: Job, mime: Buffer, token: string): string {
  const head = mime.toString("latin1", 0, Math.max(0, mime.indexOf("\r\n\r\n")));
  if (!isSentByCustomer(about) || /^cfbl-address[ \t]*:/im.test(head)) return "";
  return `CFBL-Address: f+${token}@${return_path_host};\r\n report=arf\r\nCFBL-Feedback-ID: ${token}\r\n`;
}

/** The recipient's own link (RFC 8058 §3.1). */
function unsubscribeHead(world: AttemptWorld, { org_id, message_id, email, about }: Job): string {
  const list = about.unsubscribe_list ?? null;
  if (list === null) return "";
  const leave = { org_id, message_id, domain_id: about.domain_id, email, list: list === "" ? null : list };
  const token = makeUnsubscribeToken(leave, (text) => world.seal.hash(text, UNSUBSCRIBE_CONTEXT));
  return `List-Unsubscribe:\r\n <${world.config.base_url}${UNSUBSCRIBE_PATH}${token}>\r\n`;
}

/**
 * For addresses beyond ASCII, and for a header that is written in UTF-8 (RFC 6531 §3.4), as only submitted and forwarded
 * mail has: what we write is encoded. A header in some other charset is no internationalized one (RFC 6532) and goes as it is.
 */
function needsSmtputf8({ email, about }: Job, mime: Buffer): Smtputf8 {
  if (/[^\x20-\x7e]/.test(email + (about.envelope_from ?? ""))) return true;
  const end = mime.indexOf("\r\n\r\n");
  const head = end === -1 ? mime : mime.subarray(0, end);
  if (isAscii(head) || !isUtf8(head)) return false;
  // Deliberate: a stranger's mail that got this far in clear UTF-8 goes on as it came to a server without the extension, as
  // all mail servers pass it on; its author cannot mend it. A customer is informed (5.6.7).
  return isSentByCustomer(about) ? true : "offered";
}

function toResult(sent: SendOutcome, link: Link, durationMs: number): AttemptResult {
  const seen = shown(link, durationMs);
  switch (sent.kind) {
    case "delivered":
      return ended({ ...seen, ...replyFields(sent.reply), kind: "delivered", class: null, bounce_type: null });
    case "ambiguous": {
      const message = `the final answer was lost: ${sent.detail}; the server may have accepted the message`;
      return ended({ ...seen, kind: "deferred", ambiguous: true, class: "ambiguous", message, enhanced_code: "4.4.2" });
    }
    case "broken":
      return { outcome: null, path_action: null, lost: sent.detail };
    default: {
      const result = fromReply(sent.reply, sent.stage, link, seen);
      // A server that closes says so to whatever comes next (RFC 5321 §3.8), and one that takes so many messages a session does so
      // with any code: before RCPT, of this message it said nothing.
      const isAtMail = sent.kind === "refused" && sent.stage === "mail";
      const isOfSession = isAtMail && (sent.reply.code === 421 || link.has_taken);
      return isOfSession ? { ...result, lost: sent.reply.text } : result;
    }
  }
}

function fromReply(reply: Reply, stage: "mail" | "rcpt" | "data" | "final", link: Link, seen: Outcome): AttemptResult {
  const verdict = classifyReply({
    stage,
    code: reply.code,
    enhanced: reply.enhanced,
    text: reply.text,
    site: link.isp,
  });
  const outcome: Outcome = {
    ...seen,
    ...replyFields(reply),
    kind: mayRetry(verdict, reply) ? "deferred" : "bounced",
    class: verdict.class,
    bounce_type: verdict.bounce_type,
    suppress: verdict.suppress,
    retry_after_min: verdict.retry_after_min,
  };
  const asked = demandOf(verdict, reply, link);
  if (asked === null) return { outcome, path_action: verdict.path_action, lost: null };
  const waiting: Outcome = { ...outcome, kind: "deferred", class: "auth", bounce_type: "soft", suppress: false };
  return { outcome: waiting, path_action: asked === "login" ? "suspend" : null, lost: null };
}

const WANTS_LOGIN = new Set([530, 534, 535, 538]);

/**
 * What a 5xx asks of the session, not of the message, which waits for a better one: TLS where it had failed and we went on in
 * clear, or a login that its domain's relay was not given (RFC 4954 §6). The relay refuses all other mail for that as well.
 */
function demandOf(verdict: Classification, reply: Reply, link: Link): "tls" | "login" | null {
  if (reply.code < 500) return null;
  const wantsTls = verdict.rule === "starttls-needed" && !link.session.tls;
  if (wantsTls) return "tls";
  return link.is_relay && WANTS_LOGIN.has(reply.code) ? "login" : null;
}

/** A permanent refusal of our address is worth another try only from another one, which is the pool's to choose. */
function mayRetry(verdict: Classification, reply: Reply): boolean {
  return verdict.retry && !(reply.code >= 500 && verdict.path_action === "other_source");
}

function replyFields(reply: Reply) {
  const family = Math.floor(reply.code / 100);
  return { smtp_code: String(reply.code), enhanced_code: reply.enhanced ?? `${family}.0.0`, message: reply.text };
}

function shown(link: Link, durationMs: number): Outcome {
  return {
    ...blank(),
    mx_host: link.hop.host,
    mx_ip: link.hop.address,
    source_ip: link.source_ip,
    tls: link.tls,
    isp: link.isp,
    duration_ms: Math.round(durationMs),
  };
}

function ended(outcome: Outcome): AttemptResult {
  return { outcome, path_action: null, lost: null };
}

function needsTls(link: Link): Outcome {
  const outcome = deferredLocally("the server offers no TLS and this message requires it", "4.7.10", "tls_required");
  return { ...outcome, mx_host: link.hop.host, mx_ip: link.hop.address, isp: link.isp };
}

/** An outcome that no server had a part in: nothing answered, nothing is at fault yet. */
export function deferredLocally(message: string, enhanced: string, mailClass: string): Outcome {
  return { ...blank(), kind: "deferred", class: mailClass, bounce_type: "soft", enhanced_code: enhanced, message };
}

/** A session that could not be opened to this hop. What a server said before MAIL asks something of the path as well. */
export function unreachable(
  failure: ConnectFailure,
  hop: Hop,
  isp: string,
  durationMs: number,
): Pick<AttemptResult, "path_action"> & { outcome: Outcome } {
  const where = { mx_host: hop.host, mx_ip: hop.address, isp, duration_ms: Math.round(durationMs) };
  if (!failure.reply) {
    const mailClass = failure.tls_failed ? "tls_required" : "connection";
    const enhanced = failure.tls_failed ? "4.7.5" : "4.4.1";
    const outcome = { ...deferredLocally(`${hop.host}: ${failure.detail}`, enhanced, mailClass), ...where };
    return { outcome, path_action: null };
  }
  const { reply, stage } = failure;
  const verdict = classifyReply({ stage, code: reply.code, enhanced: reply.enhanced, text: reply.text, site: isp });
  // Deliberate: what a server says before MAIL is about us, not about this message; it waits its turn (RFC 5321 §3.1).
  const outcome: Outcome = {
    ...blank(),
    ...replyFields(reply),
    ...where,
    kind: "deferred",
    class: verdict.class,
    bounce_type: "soft",
    retry_after_min: verdict.retry_after_min,
  };
  return { outcome, path_action: verdict.path_action };
}

/** Permanent without any server: the domain takes no mail. */
export function refusedByDns(detail: string, reason: "null_mx" | "absent"): Outcome {
  return {
    ...blank(),
    kind: "bounced",
    absent: reason === "absent",
    class: "bad_domain",
    bounce_type: "hard",
    suppress: true,
    smtp_code: reason === "null_mx" ? "556" : "550",
    enhanced_code: reason === "null_mx" ? "5.1.10" : "5.1.2",
    message: detail,
  };
}

/** Its time is over before another attempt could be made. */
export function tooLate(job: Job): Outcome {
  const message = `out of time after ${job.attempts} attempts`;
  const over = { kind: "expired", class: "expired", unattempted: true } as const;
  return { ...blank(), ...over, bounce_type: "soft", enhanced_code: "4.4.7", message };
}

function notWritten(reason: string): Outcome {
  const message = `the server takes no 8-bit mail, and this message could not be written in 7 bits: ${reason}`;
  return deferredLocally(message, "4.6.5", "local");
}

function notSendable(message: string, enhanced: string): Outcome {
  return { ...blank(), kind: "failed", class: "local", bounce_type: "soft", enhanced_code: enhanced, message };
}

function blank(): Outcome {
  return {
    kind: "deferred",
    ambiguous: false,
    class: null,
    bounce_type: null,
    suppress: false,
    smtp_code: null,
    enhanced_code: null,
    message: "",
    mx_host: null,
    mx_ip: null,
    source_ip: null,
    tls: null,
    isp: null,
    duration_ms: 0,
  };
}
