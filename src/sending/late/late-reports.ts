// What becomes known of a message after a server took it: a bounce, a warning that it is late, a complaint: the late
// moves from delivered to bounced and to complained. Each report counts once: the recipient's state is the memory (the
// timeline, of a complaint about what came back), so the same report again, or a second one, changes nothing. Who may
// report is decided by the caller (mail/bounce-token.ts).
import { lastEventAt, type MailEvent, recordEvents, suppressOnly } from "../../events/events.ts";
import type { Query, Tx } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import { unsubscribe } from "../../suppressions/suppressions.ts";
import { ERASED } from "../address/address-queries.ts";
import * as queries from "./late-queries.ts";

export type { DeliveryKey } from "./late-queries.ts";

/** `suppress`: the report is about this very address, and says that it does not work. */
export type LateBounce = {
  kind: "bounced" | "deferred";
  bounce_type: "hard" | "soft";
  smtp_code: string | null;
  enhanced_code: string | null;
  message: string;
  class: string | null;
  suppress: boolean;
  /** The host that reports. */
  reporter: string | null;
};

export type LateComplaint = {
  kind: "complained";
  feedback_type: string;
  source_ip: string | null;
  arrival_date: string | null;
  /** The program that reports. */
  reporter: string | null;
};

export type LateReport = LateBounce | LateComplaint;

/**
 * `recorded`; `known`: the recipient has bounced or complained already, or was reported late already; `not_sent`: no server has
 * this message of us (test mail, canceled, not yet tried), so the report cannot be true; `in_flight`: an attempt is under
 * way, ask again when it is over; `gone`: the message is past its retention, or its recipient was erased.
 */
export type ReportResult = "recorded" | "known" | "not_sent" | "in_flight" | "gone";

type LateWorld = Pick<World, "clock" | "random">;

/** Warnings about one recipient are reported this often at most, as our own deferrals are. */
const WARNING_EVERY_MS = 4 * 3_600_000;

export type SentDelivery = queries.DeliveryKey & {
  email: string;
  message: queries.SentMessage;
  recipients: { position: number; email: string }[];
};

/** The delivery that a token names, with its message and all its recipients; null when it is past its retention. */
export async function findSentDelivery(db: Query, key: queries.DeliveryKey): Promise<SentDelivery | null> {
  const [message] = await queries.findSentMessage(db, key.org_id, key.message_id);
  if (!message) return null;
  const recipients = await queries.listSentRecipients(db, key.org_id, key.message_id);
  const own = recipients.find(({ position }) => position === key.position);
  return own && own.email !== ERASED ? { ...key, email: own.email, message, recipients } : null;
}

/** True if an attempt at this delivery is under way, so that its state is about to change. */
export async function isInFlight(db: Query, key: queries.DeliveryKey): Promise<boolean> {
  return (await queries.findQueued(db, key))[0]?.owned ?? false;
}

/** The e-mail of an organization that carries this Message-ID (without angle brackets). */
export async function findSentId(db: Query, orgId: string, messageId: string): Promise<string | null> {
  return (await queries.findByMessageId(db, orgId, messageId))[0]?.id ?? null;
}

/** Records a report on one delivery with all its consequences. Run the transaction in `withPartitions`. */
export async function recordLateReport(
  tx: Tx,
  world: LateWorld,
  key: queries.DeliveryKey,
  report: LateReport,
): Promise<ReportResult> {
  const [message] = await queries.findSentMessage(tx, key.org_id, key.message_id);
  if (!message) return "gone";
  if (message.environment === "test") return "not_sent";
  if (message.recipient_count > 1) await queries.lockMessage(tx, key.org_id, key.message_id);
  const [recipient] = await queries.lockRecipient(tx, key);
  if (!recipient || recipient.email === ERASED) return "gone";
  const about = { key, message, recipient };
  if (report.kind === "deferred") return recordWarning(tx, world, about, report);
  const may = await mayMove(tx, about);
  // The first report may have been the less certain one: about another's copy, or only soft.
  if (may === "known" && report.kind === "bounced") await suppressOnly(tx, world, toEvent(world, about, report));
  if (may === "known" && report.kind === "complained") return recordComplaint(tx, world, about, report);
  if (may !== "recorded") return may;
  await queries.moveRecipient(tx, key, stateOf(report));
  await queries.refoldMessage(tx, key.org_id, key.message_id, new Date(world.clock.now()));
  await recordEvents(tx, world, [toEvent(world, about, report)]);
  return "recorded";
}

type About = {
  key: queries.DeliveryKey;
  message: queries.SentMessage;
  recipient: { email: string; status: string; isp: string | null; delivered_at: Date | null };
};

async function recordWarning(tx: Tx, world: LateWorld, about: About, report: LateBounce): Promise<ReportResult> {
  const { key, recipient } = about;
  if (recipient.status !== "delivered") return recipient.status === "queued" ? "not_sent" : "known";
  const reported = await lastEventAt(tx, { ...key, recipient: recipient.email, event_type: "deferred" });
  const sinceTake = reported !== null && recipient.delivered_at !== null && reported >= recipient.delivered_at;
  if (sinceTake && world.clock.now() - reported.getTime() < WARNING_EVERY_MS) return "known";
  await recordEvents(tx, world, [toEvent(world, about, report)]);
  return "recorded";
}

/**
 * A copy may come back, from a mailbox that it was forwarded to or that is full, and another be marked as spam. It stays
 * bounced; who marked it gets no more, and the sender hears of it.
 */
async function recordComplaint(tx: Tx, world: LateWorld, about: About, report: LateComplaint): Promise<ReportResult> {
  const { key, recipient } = about;
  if (recipient.status !== "bounced" || recipient.delivered_at === null) return "known";
  const asked = { ...key, recipient: recipient.email, event_type: "complained" as const };
  if ((await lastEventAt(tx, asked)) !== null) return "known";
  await recordEvents(tx, world, [toEvent(world, about, report)]);
  return "recorded";
}

/**
 * From delivered; and where the answer to the final dot was lost the report is that answer: the server did take the
 * message, and it is not sent again.
 */
async function mayMove(tx: Tx, { key, recipient }: About): Promise<ReportResult> {
  if (recipient.status === "delivered") return "recorded";
  if (recipient.status === "bounced" || recipient.status === "complained") return "known";
  if (recipient.status !== "queued" && recipient.status !== "deferred") return "not_sent";
  if (await isInFlight(tx, key)) return "in_flight";
  const asked = { ...key, recipient: recipient.email, event_type: "ambiguous" as const };
  if ((await lastEventAt(tx, asked)) === null) return "not_sent";
  return (await queries.removeQueued(tx, key)) === 1 ? "recorded" : "in_flight";
}

function stateOf(report: LateReport): queries.LateState {
  if (report.kind === "complained") {
    const none = { bounce_type: null, bounce_code: null, diag_code: null, diag_message: null, bounce_class: null };
    return { status: "complained", ...none };
  }
  return {
    status: "bounced",
    bounce_type: report.bounce_type,
    bounce_code: report.smtp_code,
    diag_code: enhancedCode(report),
    diag_message: report.message,
    bounce_class: report.class,
  };
}

/** X.0.0 where the report has none, as classify.ts has it for live replies. */
function enhancedCode({ enhanced_code, smtp_code, kind }: LateBounce): string {
  return enhanced_code ?? `${smtp_code?.[0] ?? (kind === "deferred" ? "4" : "5")}.0.0`;
}

function toEvent(world: LateWorld, { key, message, recipient }: About, report: LateReport): MailEvent {
  const { recipient_count: _count, unsubscribe_list: _list, ...about } = message;
  return {
    org_id: key.org_id,
    id: world.random.uuid(),
    event_type: report.kind,
    message_id: key.message_id,
    recipient: recipient.email,
    at: new Date(world.clock.now()),
    // No attempt was made here: statistics count a recipient as sent by its first one.
    attempt: null,
    mx_ip: null,
    source_ip: null,
    tls: null,
    duration_ms: null,
    isp: recipient.isp,
    next_attempt_at: null,
    announces: true,
    about,
    ...(report.kind === "complained" ? complaintFields(report) : bounceFields(report)),
  };
}

function bounceFields(report: LateBounce) {
  return {
    smtp_code: report.smtp_code,
    enhanced_code: enhancedCode(report),
    message: report.message,
    mx_host: report.reporter,
    class: report.class,
    bounce_type: report.kind === "bounced" ? report.bounce_type : null,
    suppress: report.kind === "bounced" && report.suppress,
  };
}

function complaintFields({ reporter, ...complaint }: LateComplaint) {
  const { feedback_type, source_ip, arrival_date } = complaint;
  return {
    smtp_code: null,
    enhanced_code: null,
    message: reporter === null ? `reported as ${feedback_type}` : `reported as ${feedback_type} by ${reporter}`,
    mx_host: null,
    class: null,
    bounce_type: null,
    suppress: false,
    complaint: { feedback_type, source_ip, arrival_date },
  };
}

/** An opt-out that came as a report (ARF `opt-out`): the recipient leaves the list the mail named, or the sender domain. */
export async function recordOptOut(tx: Tx, world: LateWorld, sent: SentDelivery): Promise<void> {
  if (sent.message.environment === "test") return;
  await unsubscribe(world, tx, {
    org_id: sent.org_id,
    email: sent.email,
    list: sent.message.unsubscribe_list || null,
    domain_id: sent.message.domain_id,
    source_message_id: sent.message_id,
  });
}
