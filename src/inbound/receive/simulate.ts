// A mail that nobody sent: through the whole pipeline, from the decision at RCPT to the webhook, as `environment` "test".
// It reaches only the asking organization, also on a domain whose DNS is not there yet, and nothing of it leaves by SMTP.
import { isIP } from "node:net";
import type { Account } from "../../http/http.ts";
import { parseMailbox } from "../../mail/address.ts";
import { decodeBase64 } from "../../mail/base64.ts";
import { normalizeContentId, normalizeContentType } from "../../mail/mime/part-headers.ts";
import { buildMessage } from "../../mail/mime/write/build-message.ts";
import { validateHeaders, validateHeaderText } from "../../mail/mime/write/validate-headers.ts";
import { type Path, parsePathCommand } from "../../mail/smtp-server/command.ts";
import { invalid } from "../../platform/refusal.ts";
import { readHeld } from "../../platform/storage/blobs.ts";
import type { World } from "../../platform/world.ts";
import { findLeaving } from "../../sending/sending.ts";
import type { Inbound } from "../inbound.ts";
import { MESSAGE_BYTES_MAX } from "../limits.ts";
import { findForwardIds } from "../read/list-queries.ts";
import { CUSTOMER_KINDS, type Incoming, type Origin, type RcptDecision, type Refused, type Route } from "../types.ts";
import { UNKNOWN } from "./own-addresses.ts";

export type SimulateRequest = {
  to: string | string[];
  envelope_from?: string;
  raw?: string;
  raw_base64?: string;
  from?: string;
  cc?: string[];
  reply_to?: string;
  subject?: string;
  text?: string;
  html?: string;
  headers?: Record<string, string>;
  attachments?: { filename: string; content: string; content_type?: string; content_id?: string }[];
  remote_ip?: string;
  helo?: string;
};

/** What SMTP would have said to one recipient. */
export type SimulatedReply = {
  recipient: string;
  accepted: boolean;
  smtp_code: number;
  enhanced_code: string;
  message: string;
  email_id: string | null;
};

/** The documentation range (RFC 5737): no domain lets it send. */
const REMOTE_IP = "192.0.2.1";

/** A message that carries the mail on, as it would have left but for the signature. */
export type SimulatedMessage = { id: string; recipient: string; from: string; raw: string; raw_base64: string };

export type Simulation = { results: SimulatedReply[]; messages: SimulatedMessage[] };

/** Runs the mail through; the results stand in the order of `to`. Resolves when it is processed. */
export async function simulate(
  world: World,
  inbound: Inbound,
  account: Account,
  request: SimulateRequest,
): Promise<Simulation> {
  const to = [request.to].flat().map((text, index) => readPath("to", text, index));
  const bytes = readMessage(world, request);
  const from = readSender(request);
  const origin = readOrigin(request);
  const client = { ip: origin.remote_ip ?? "", port: 0, helo: origin.helo, protocol: origin.protocol, tls: null };
  const decide = inbound.deciderOf(account.org_id);
  // As in a session: an address that is named again is the same recipient.
  const distinct = [...new Map(to.map((path) => [path.text, path])).values()];
  const decided = await Promise.all(distinct.map((path) => decide({ client, from, to: path })));
  const decisions = new Map(distinct.map(({ text }, index) => [text, decided[index] as RcptDecision]));
  const accepted = distinct.flatMap((path, index) => taken(decided[index] as RcptDecision, account, path));
  const envelope = { from: from.text, smtputf8: [from, ...to].some(({ smtputf8 }) => smtputf8) };
  const received_at = new Date(world.clock.now());
  const recipients = accepted.map(({ path, route }) => ({ recipient: path.text, route }));
  const incoming: Incoming = { origin, envelope, environment: "test", received_at, recipients, bytes };
  const delivered = recipients.length > 0 ? await deliver(inbound, incoming) : null;
  const results = to.map((path) => {
    const decision = decisions.get(path.text) as RcptDecision;
    const place = accepted.findIndex((one) => one.path.text === path.text);
    if (place === -1) return refusal(path, decision.kind === "refuse" ? decision : UNKNOWN);
    if (delivered?.refused) return refusal(path, delivered.refused);
    // Mail to masked addresses is nobody's received mail: it is not listed and cannot be asked for.
    const isListed = CUSTOMER_KINDS.some((kind) => kind === accepted[place]?.route.kind);
    const email_id = isListed ? (delivered?.ids[place] ?? null) : null;
    return { ...said(path, 250, "2.0.0", "taken"), accepted: true, email_id };
  });
  return { results, messages: await findMessages(world, account.org_id, delivered?.ids ?? []) };
}

async function findMessages(world: World, orgId: string, ids: readonly string[]): Promise<SimulatedMessage[]> {
  const messages: SimulatedMessage[] = [];
  for (const id of await findForwardIds(world.db, orgId, ids)) {
    const found = await findLeaving(world.db, orgId, id);
    const mime = found ? await readHeld(world.blobs, { bytes: found.mime, blob_key: found.blob_key }) : null;
    if (!found || !mime) continue;
    const { recipient, from_address: from } = found;
    messages.push({ id, recipient, from, raw: mime.toString(), raw_base64: mime.toString("base64") });
  }
  return messages;
}

function taken(decision: RcptDecision, account: Account, path: Path): { path: Path; route: Route }[] {
  const isOwn = decision.kind === "accept" && decision.route.org_id === account.org_id;
  return isOwn ? [{ path, route: decision.route }] : [];
}

function refusal(
  path: Path,
  { code, enhanced, text }: { code: number; enhanced: string; text: string },
): SimulatedReply {
  return { ...said(path, code, enhanced, text), accepted: false, email_id: null };
}

function said(path: Path, smtp_code: number, enhanced_code: string, message: string) {
  return { recipient: path.text, smtp_code, enhanced_code, message };
}

async function deliver(inbound: Inbound, incoming: Incoming): Promise<{ refused: Refused | null; ids: string[] }> {
  const offered = await inbound.take(incoming);
  if (offered.kind === "refused") return { refused: offered.refused, ids: [] };
  await offered.processed;
  return { refused: null, ids: offered.ids };
}

function readPath(field: string, text: string, index: number): Path {
  const parsed = parsePathCommand(`TO:<${text}>`, "TO");
  if (parsed && parsed.params.size === 0 && parsed.path.text !== "") return parsed.path;
  const name = index > 0 ? `${field}[${index}]` : field;
  throw invalid(name, `the '${name}' field is not an address`);
}

/** The envelope sender: as given, else the author's address, else null. */
function readSender({ envelope_from, from }: SimulateRequest): Path {
  const text = envelope_from ?? (from === undefined ? "" : readMailbox("from", from).email);
  const parsed = parsePathCommand(`FROM:<${text}>`, "FROM");
  if (parsed && parsed.params.size === 0 && (text === "" || text.includes("@"))) return parsed.path;
  throw invalid("envelope_from", "the 'envelope_from' field is not an address");
}

function readOrigin({ remote_ip, helo }: SimulateRequest): Origin {
  if (remote_ip !== undefined && isIP(remote_ip) === 0) {
    throw invalid("remote_ip", "the 'remote_ip' field is not an IP address");
  }
  if (helo !== undefined && !/^[\x21-\x7e]{1,255}$/.test(helo)) {
    throw invalid("helo", "the 'helo' field is not a host name");
  }
  return {
    remote_ip: remote_ip ?? REMOTE_IP,
    remote_port: null,
    helo: helo ?? "simulated.invalid",
    protocol: "ESMTP",
    tls: null,
  };
}

// --- the message -----------------------------------------------------------------------------------------------------------

const COMPOSED = ["from", "cc", "reply_to", "subject", "text", "html", "headers", "attachments"] as const;

function readMessage(world: Pick<World, "clock" | "random" | "config">, request: SimulateRequest): Buffer {
  const { raw, raw_base64 } = request;
  if (raw !== undefined && raw_base64 !== undefined) {
    throw invalid("raw_base64", "give either 'raw' or 'raw_base64', not both");
  }
  const isRaw = raw !== undefined || raw_base64 !== undefined;
  const beside = COMPOSED.find((field) => request[field] !== undefined);
  if (isRaw && beside) throw invalid(beside, `the '${beside}' field cannot stand beside a raw message`);
  const bytes = isRaw ? readRaw(request) : compose(world, request);
  if (bytes.length <= MESSAGE_BYTES_MAX) return bytes;
  throw invalid(isRaw ? "raw" : "attachments", `the message is larger than ${MESSAGE_BYTES_MAX} bytes`);
}

/** Line ends are brought to CRLF, as a client of SMTP must. */
function readRaw({ raw, raw_base64 }: SimulateRequest): Buffer {
  const field = raw === undefined ? "raw_base64" : "raw";
  const bytes = raw === undefined ? decodeBase64(raw_base64 ?? "") : Buffer.from(raw);
  if (!bytes) throw invalid(field, `the '${field}' field is not base64`);
  if (bytes.length === 0) throw invalid(field, `the '${field}' field holds no message`);
  if (bytes.includes(0)) throw invalid(field, `the '${field}' field holds NUL, which SMTP does not carry`);
  const text = bytes.toString("latin1").replace(/\r\n|\r|\n/g, "\r\n");
  return Buffer.from(text.endsWith("\r\n") ? text : `${text}\r\n`, "latin1");
}

function compose(world: Pick<World, "clock" | "random" | "config">, request: SimulateRequest): Buffer {
  if (request.from === undefined) throw invalid("from", "the 'from' field is required (or 'raw')");
  const subject = request.subject ?? "";
  const checked = validateHeaderText(subject, 2_000);
  if (!checked.ok) throw invalid("subject", `the 'subject' field is refused: ${checked.reason}`);
  const { bytes } = buildMessage({
    from: readMailbox("from", request.from),
    to: [request.to].flat().map((text, index) => readMailbox(index > 0 ? `to[${index}]` : "to", text)),
    cc: (request.cc ?? []).map((text, index) => readMailbox(`cc[${index}]`, text)),
    reply_to: request.reply_to === undefined ? [] : [readMailbox("reply_to", request.reply_to)],
    subject,
    date: world.clock.now(),
    message_id: `${world.random.uuid()}@simulated.invalid`,
    headers: readHeaders(request),
    html: request.html ?? null,
    text: request.text ?? (request.html === undefined ? "" : null),
    attachments: (request.attachments ?? []).map(readAttachment),
    boundary_seed: world.random.token(24),
  });
  return bytes;
}

function readMailbox(field: string, text: string): { name: string | null; email: string } {
  const parsed = parseMailbox(text);
  if (parsed.ok) return { name: parsed.name, email: parsed.address.email };
  throw invalid(field, `the '${field}' field is not an address: ${parsed.reason}`);
}

function readHeaders({ headers, reply_to }: SimulateRequest): { name: string; value: string }[] {
  const checked = validateHeaders(Object.entries(headers ?? {}), reply_to === undefined ? [] : ["reply-to"]);
  if (checked.ok) return checked.headers;
  throw invalid(`headers.${checked.name}`, `the header '${checked.name}' is refused: ${checked.reason}`);
}

function readAttachment(given: NonNullable<SimulateRequest["attachments"]>[number], index: number) {
  const { filename, content, content_type, content_id } = given;
  const field = `attachments[${index}]`;
  const bytes = decodeBase64(content);
  if (!bytes) throw invalid(`${field}.content`, `the '${field}.content' field is not base64`);
  const name = validateHeaderText(filename, 1_000);
  if (!name.ok) throw invalid(`${field}.filename`, `the '${field}.filename' field is refused: ${name.reason}`);
  return {
    filename,
    content: bytes,
    content_type: orRefuse(`${field}.content_type`, content_type, normalizeContentType),
    content_id: orRefuse(`${field}.content_id`, content_id, normalizeContentId),
    disposition: null,
  };
}

function orRefuse(field: string, text: string | undefined, normalize: (text: string) => string | null): string | null {
  if (text === undefined) return null;
  const value = normalize(text);
  if (value === null) throw invalid(field, `the '${field}' field cannot stand in a message`);
  return value;
}
