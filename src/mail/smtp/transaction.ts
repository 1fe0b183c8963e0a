// One mail transaction on an open connection (RFC 5321 §3.3, pipelined by RFC 2920): MAIL, RCPT, DATA, message, dot.
// Says exactly how far it came: refused at which command, broken before the dot, or lost after it (ambiguous).
// Does not open or keep connections (session.ts), judge replies (classify.ts) or retry.
import { type FramedMessage, frameMessage } from "./framing.ts";
import { type RawReply, type Reply, toReply } from "./reply.ts";
import { nextPoll, type Wire } from "./wire.ts";

export type TransactionStage = "mail" | "rcpt" | "data" | "final";

/** Whether SMTPUTF8 (RFC 6531) is asked for: `offered` only where the server has it, true else refuses the message. */
export type Smtputf8 = boolean | "offered";

/** `to` is one recipient. `size` is the message's bytes; `require8bit` says that it holds bytes above 127. */
export type Envelope = { from: string; to: string; smtputf8: Smtputf8; size: number; require8bit: boolean };

/**
 * `beforeData` is asked once, after 354 and before the first byte of the message; `beforeEnd` once, right before the
 * bytes that hold the final dot are written. False drops the connection. `afterEnd` is called once, when those are written and
 * nothing here holds the message any more: the answer may take minutes.
 */
export type SendHooks = { beforeData?: () => boolean; beforeEnd?: () => boolean; afterEnd?: () => void };

/**
 * delivered: accepted after our final dot. refused: by a reply. ambiguous: the connection was lost after the dot, the
 * server may have the message. broken: lost before the dot, the server cannot have it. unsendable: nothing was sent,
 * the reply is the one we would have got.
 */
export type SendOutcome =
  | { kind: "delivered"; reply: Reply }
  | { kind: "refused"; stage: TransactionStage; reply: Reply }
  | { kind: "ambiguous"; detail: string }
  | { kind: "broken"; stage: TransactionStage; detail: string }
  | { kind: "unsendable"; stage: "mail" | "rcpt" | "data"; reply: Reply };

/** What the server announced in its EHLO reply. `size` is its limit in bytes, 0 for none, null when SIZE is not offered. */
export type Capabilities = {
  pipelining: boolean;
  eightbitmime: boolean;
  smtputf8: boolean;
  starttls: boolean;
  enhancedstatuscodes: boolean;
  requiretls: boolean;
  size: number | null;
  auth: string[];
};

/** `data_block_ms` is for each piece of the message, `data_ms` for all of them. */
export type TransactionTimeouts = { mail_rcpt_ms: number; data_block_ms: number; data_ms: number; final_ms: number };

export type Transaction = {
  envelope: Envelope;
  parts: readonly Buffer[];
  hooks: SendHooks;
  capabilities: Capabilities;
  timeouts: TransactionTimeouts;
  /** True when an earlier transaction was refused half-way: RSET goes first (RFC 5321 §4.1.1.5). */
  needs_reset: boolean;
};

const PATH_LENGTH_MAX = 320;
const WRITE_BYTES = 64 * 1024;
const END_OF_NOTHING = ".\r\n";

type Step = { stage: TransactionStage; line: string; isReset?: boolean };

/** Runs the transaction to its end. Every failure is a value; after broken or ambiguous the wire has failed too. */
export async function runTransaction(wire: Wire, job: Transaction): Promise<SendOutcome> {
  const unsendable = findUnsendable(job);
  if (unsendable) return unsendable;
  const framed = await frameMessage(job.parts);
  if ("defect" in framed) return { kind: "unsendable", stage: "data", reply: local(554, "5.6.0", framed.defect) };
  const ended = job.capabilities.pipelining
    ? await sendEnvelopeAtOnce(wire, job)
    : await sendEnvelopeInSteps(wire, job);
  if (ended) return ended;
  // A server that answers before the dot has not read the message: give such an answer the time to show itself.
  await nextPoll();
  if (wire.failure) return endedEarly(wire, "data");
  if (job.hooks.beforeData && !job.hooks.beforeData()) {
    wire.fail("aborted", "withheld by the caller before the message was sent");
    return endedEarly(wire, "data");
  }
  return sendMessage(wire, framed, job);
}

function envelopeSteps(job: Transaction): Step[] {
  const { envelope, capabilities } = job;
  const size = capabilities.size === null ? "" : ` SIZE=${envelope.size}`;
  const body = envelope.require8bit ? " BODY=8BITMIME" : "";
  const utf8 = envelope.smtputf8 && capabilities.smtputf8 ? " SMTPUTF8" : "";
  const steps: Step[] = [
    { stage: "mail", line: `MAIL FROM:<${envelope.from}>${size}${body}${utf8}\r\n` },
    { stage: "rcpt", line: `RCPT TO:<${envelope.to}>\r\n` },
    { stage: "data", line: "DATA\r\n" },
  ];
  return job.needs_reset ? [{ stage: "mail", line: "RSET\r\n", isReset: true }, ...steps] : steps;
}

/** All commands in one packet. Null when the server waits for the message. */
async function sendEnvelopeAtOnce(wire: Wire, job: Transaction): Promise<SendOutcome | null> {
  const steps = envelopeSteps(job);
  const commands = steps.map((step) => step.line).join("");
  const replies = await wire.ask(commands, steps.length, job.timeouts.mail_rcpt_ms);
  for (const [index, step] of steps.entries()) {
    const ended = judgeStep(wire, step, replies[index]);
    if (!ended) continue;
    const isOpen = ended.kind === "refused" && replies[steps.length - 1]?.code === 354 && step.stage !== "data";
    if (isOpen) await endEmptyData(wire, step, job.timeouts);
    return ended;
  }
  return null;
}

/** DATA was taken although no recipient was: a single dot ends it (RFC 2920 §3.1); without a sender we hang up. */
async function endEmptyData(wire: Wire, step: Step, timeouts: TransactionTimeouts): Promise<void> {
  if (step.stage === "rcpt") await wire.ask(END_OF_NOTHING, 1, timeouts.mail_rcpt_ms);
  else wire.fail("protocol", "DATA accepted after MAIL was refused");
}

async function sendEnvelopeInSteps(wire: Wire, job: Transaction): Promise<SendOutcome | null> {
  let said: TransactionStage = "mail";
  for (const step of envelopeSteps(job)) {
    // What came behind the last reply is no answer to a command that it has not seen.
    if (wire.failure) return endedEarly(wire, said);
    said = step.stage;
    const [reply] = await wire.ask(step.line, 1, job.timeouts.mail_rcpt_ms);
    const ended = judgeStep(wire, step, reply);
    if (ended) return ended;
  }
  return null;
}

/** Null when the reply lets the transaction go on: 2xx, and exactly 354 for DATA (a 2xx there is no invitation). */
function judgeStep(wire: Wire, step: Step, reply: RawReply | undefined): SendOutcome | null {
  if (!reply) return endedEarly(wire, step.stage);
  const accepted = step.stage === "data" ? reply.code === 354 : reply.code < 300;
  if (accepted) return null;
  const command = step.line.slice(0, 4);
  if (reply.code < 400 || step.isReset) {
    wire.fail("protocol", `${reply.code} in answer to ${command}`);
    return { kind: "broken", stage: step.stage, detail: `${reply.code} in answer to ${command}` };
  }
  return { kind: "refused", stage: step.stage, reply: toReply(reply) };
}

/** The connection is gone and the dot was not sent. A 4xx or 5xx the server threw in before hanging up is its answer. */
function endedEarly(wire: Wire, stage: TransactionStage): SendOutcome {
  const stray = wire.failure?.stray;
  if (stray && stray.code >= 400) return { kind: "refused", stage, reply: toReply(stray) };
  return { kind: "broken", stage, detail: wire.failure?.detail ?? "the connection was lost" };
}

async function sendMessage(wire: Wire, framed: FramedMessage, { hooks, timeouts }: Transaction): Promise<SendOutcome> {
  const pieces = piecesOf(framed);
  const last = pieces.pop()!;
  if (!(await writeAll(wire, pieces, timeouts))) return endedEarly(wire, "data");
  if (pieces.length > 0) {
    await nextPoll();
    if (wire.failure) return endedEarly(wire, "data");
  }
  if (hooks.beforeEnd && !hooks.beforeEnd()) {
    wire.fail("aborted", "withheld by the caller before the final dot");
    return endedEarly(wire, "data");
  }
  for (const buffers of [pieces, framed.chunks]) buffers.length = 0;
  const asked = wire.askLast(last, timeouts.final_ms);
  hooks.afterEnd?.();
  const { reply, isFlushed } = await asked;
  if (!reply) {
    const detail = wire.failure?.detail ?? "the connection was lost";
    return isFlushed ? { kind: "ambiguous", detail } : { kind: "broken", stage: "data", detail };
  }
  if (reply.code >= 400) return { kind: "refused", stage: "final", reply: toReply(reply) };
  if (reply.code < 300) return { kind: "delivered", reply: toReply(reply) };
  wire.fail("protocol", `${reply.code} in answer to the message`);
  return { kind: "ambiguous", detail: `${reply.code} in answer to the message` };
}

/** True once the server has taken all pieces. */
async function writeAll(
  wire: Wire,
  pieces: Buffer[],
  { data_block_ms, data_ms }: TransactionTimeouts,
): Promise<boolean> {
  if (pieces.length === 0) return true;
  const timer = setTimeout(
    () => wire.fail("timeout", `the server did not read the message within ${data_ms} ms`),
    data_ms,
  );
  try {
    for (const piece of pieces) if (!(await wire.write(piece, data_block_ms))) return false;
    return true;
  } finally {
    clearTimeout(timer);
  }
}

/** Buffers of about 64 KiB, the last one with the final dot: a small message is one write, a large one waits for room. */
function piecesOf({ chunks, end }: FramedMessage): Buffer[] {
  const pieces: Buffer[] = [];
  let gathered: Buffer[] = [];
  let bytes = 0;
  for (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const slice = chunk.subarray(at, at + WRITE_BYTES - bytes);
      gathered.push(slice);
      bytes += slice.length;
      at += slice.length;
      if (bytes < WRITE_BYTES) continue;
      pieces.push(gathered.length === 1 ? slice : Buffer.concat(gathered));
      gathered = [];
      bytes = 0;
    }
  }
  pieces.push(Buffer.concat([...gathered, end]));
  return pieces;
}

/** What cannot be said in SMTP, or not to this server (RFC 1870 §6.2, RFC 6152 §3, RFC 6531 §3.2). */
function findUnsendable({ envelope, capabilities }: Transaction): SendOutcome | null {
  const no = (stage: "mail" | "rcpt", reply: Reply): SendOutcome => ({ kind: "unsendable", stage, reply });
  if (!isPath(envelope.from)) return no("mail", local(553, "5.1.7", "sender address cannot be sent"));
  if (envelope.to === "" || !isPath(envelope.to)) return no("rcpt", local(553, "5.1.3", "recipient cannot be sent"));
  const isAscii = /^[\x00-\x7f]*$/.test(envelope.from + envelope.to);
  if (!isAscii && envelope.smtputf8 !== true)
    return no("mail", local(553, "5.6.7", "non-ASCII address without SMTPUTF8"));
  if (envelope.smtputf8 === true && !capabilities.smtputf8) {
    return no("mail", local(553, "5.6.7", "the server does not offer SMTPUTF8"));
  }
  if (envelope.require8bit && !capabilities.eightbitmime) {
    return no("mail", local(554, "5.6.3", "the server does not offer 8BITMIME"));
  }
  if (capabilities.size && envelope.size > capabilities.size) {
    return no("mail", local(552, "5.3.4", `message larger than the server's limit of ${capabilities.size} bytes`));
  }
  return null;
}

/** Safe between < and >: no control, no angle bracket, a space only in a quoted local part. "" is the null sender. */
function isPath(address: string): boolean {
  if (address.length > PATH_LENGTH_MAX || /[\x00-\x1f\x7f<>]/.test(address)) return false;
  return address.startsWith('"') || !address.includes(" ");
}

function local(code: number, enhanced: string, text: string): Reply {
  return { code, enhanced, text };
}
