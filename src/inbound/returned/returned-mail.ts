// Mail that comes back because of mail that left: bounces and warnings to return paths, complaints to feedback addresses,
// return paths and the operator's mailboxes. What is read becomes, in one transaction, the recipient's state, the
// timeline, the counters, webhooks and, where the rules say so, a suppression (sending/late/late-reports.ts). Automatic
// replies, read receipts and reports on authentication are kept and change nothing. Which delivery a complaint is about
// is found in find-complained.ts, what a bounce says of the recipient whose copy came back in mail/dsn/apportion.ts.
import type { ComplaintReport } from "../../mail/arf/types.ts";
import { apportion, type Portion } from "../../mail/dsn/apportion.ts";
import type { BounceReport } from "../../mail/dsn/types.ts";
import { parseMailDate } from "../../mail/mime/parse-date.ts";
import type { ReturnedMail } from "../../mail/returned-mail.ts";
import { sleep } from "../../platform/clock.ts";
import type { Tx } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import {
  type DeliveryKey,
  findSentDelivery,
  isInFlight,
  type LateBounce,
  type LateReport,
  recordLateReport,
  recordOptOut,
} from "../../sending/sending.ts";
import { KEPT } from "../process/outcome.ts";
import { wellFormed } from "../process/payload.ts";
import type { Handler, Mail, Outcome } from "../types.ts";
import { type ComplaintPorts, findComplained } from "./find-complained.ts";

export type ReturnedWorld = Pick<World, "db" | "clock" | "random" | "seal" | "log" | "metrics">;

/** A server may bounce before the outcome of handing it the message is recorded here: so often, so long that is awaited. */
const IN_FLIGHT_LOOKS = 40;
const IN_FLIGHT_LOOK_MS = 50;
const TEXT_CHARS_MAX = 1_000;
const NAME_CHARS_MAX = 255;

type Context = ReturnedWorld & { ports: ComplaintPorts; count(kind: string): void };

/** The handler of return paths, feedback addresses and the operator's mailboxes. */
export function returnedMailHandler(world: ReturnedWorld, ports: ComplaintPorts): Handler {
  const counter = world.metrics.counter("postern_returned_mail_total", "Bounces, complaints and what else came back", [
    "kind",
  ]);
  const context: Context = { ...world, ports, count: (kind) => counter.inc({ kind }) };
  return async (mail) => {
    const read = await mail.examination.returned();
    if (read.kind === "failed") {
      context.count("unreadable");
      return { ...KEPT, status: "failed", reason: read.reason };
    }
    if (mail.environment === "test") return dropped("simulated mail reports nothing");
    const { returned } = read;
    if (returned.kind === "complaint") return takeComplaint(context, mail, returned.complaint);
    if (mail.route.kind === "operator") return keepForOperator(context, mail, mail.route.mailbox);
    return takeBounce(context, mail, returned);
  };
}

function dropped(reason: string): Outcome {
  return { ...KEPT, status: "dropped", reason };
}

async function keepForOperator(context: Context, mail: Mail, mailbox: string): Promise<Outcome> {
  context.count("for_operator");
  context.log.info({ inbound_id: mail.id, mailbox, size: mail.size }, "mail for the operator is kept");
  return KEPT;
}

// Bounces ----------------------------------------------------------------------------------------------------------

async function takeBounce(
  context: Context,
  mail: Mail,
  returned: Exclude<ReturnedMail, { kind: "complaint" }>,
): Promise<Outcome> {
  if (returned.kind !== "bounce") {
    context.count(returned.kind);
    return dropped(`${returned.kind}: ${returned.reason}`);
  }
  const key = keyOf(mail);
  const sent = await findSentDelivery(context.db, key);
  if (!sent) return dropped("the message is past its retention");
  const { bounce } = returned;
  const portion = apportion(bounce.recipients, sent.email);
  if (portion === null || !["failed", "delayed"].includes(portion.finding.action)) {
    context.count("no_trouble");
    return dropped("the report does not say that the message failed for the recipient whose copy came back");
  }
  return recordReport(context, { key, report: toLateBounce(portion, bounce) });
}

function keyOf({ org_id, route }: Mail): DeliveryKey {
  if (route.kind !== "return_path" && route.kind !== "feedback") throw new Error("this mail names no delivery");
  return { org_id, message_id: route.message_id, position: route.position };
}

function toLateBounce({ finding, is_sure }: Portion, bounce: BounceReport): LateBounce {
  return {
    kind: finding.action === "failed" ? "bounced" : "deferred",
    bounce_type: finding.bounce_type ?? "soft",
    smtp_code: finding.smtp_code,
    enhanced_code: finding.status,
    message: text(finding.diagnostic, TEXT_CHARS_MAX) ?? "the report gives no reason",
    class: finding.class,
    suppress: finding.suppress && is_sure,
    reporter: text(bounce.reporting_mta, NAME_CHARS_MAX),
  };
}

function text(value: string | null, charsMax: number): string | null {
  return value === null || value.trim() === "" ? null : wellFormed(value.slice(0, charsMax));
}

// Complaints -------------------------------------------------------------------------------------------------------

async function takeComplaint(context: Context, mail: Mail, complaint: ComplaintReport): Promise<Outcome> {
  const { meaning, feedback_type } = complaint;
  if (meaning === "auth_failure" || meaning === "not_spam") {
    // RFC 6591: about DNS or a forger, no reader's word. A complaint taken back leaves the suppression to the customer.
    context.count(meaning);
    return dropped(`a report of the type ${text(feedback_type, NAME_CHARS_MAX)} changes nothing`);
  }
  const sent = await findComplained(context, context.ports, mail, complaint);
  if (!sent) {
    context.count("unmatched_complaint");
    // Without anything of the report itself: a stranger wrote it.
    context.log.warn(
      { inbound_id: mail.id, format: complaint.format },
      "a complaint is about none of our messages that could be found; it is kept",
    );
    return { ...KEPT, reason: "none of our messages was found for this complaint" };
  }
  if (meaning === "unsubscribe") {
    context.count("unsubscribed");
    return { ...KEPT, also: (tx) => recordOptOut(tx, context, sent) };
  }
  const { org_id, message_id, position } = sent;
  const report: LateReport = {
    kind: "complained",
    feedback_type: text(feedback_type, NAME_CHARS_MAX) ?? "abuse",
    source_ip: complaint.source_ip,
    arrival_date: complaint.arrival_date === null ? null : parseMailDate(complaint.arrival_date),
    reporter: text(complaint.user_agent, NAME_CHARS_MAX),
  };
  return recordReport(context, { key: { org_id, message_id, position }, report });
}

// Both -------------------------------------------------------------------------------------------------------------

type Report = { key: DeliveryKey; report: LateReport };

async function recordReport(context: Context, report: Report): Promise<Outcome> {
  await outOfFlight(context, report.key);
  return { ...KEPT, also: (tx) => record(context, tx, report) };
}

async function record(context: Context, tx: Tx, { key, report }: Report): Promise<void> {
  const result = await recordLateReport(tx, context, key, report);
  // The whole mail is tried again later: what it reports is not lost.
  if (result === "in_flight") throw new Error("an attempt at the delivery that this report is about is under way");
  context.count(result === "recorded" ? report.kind : result);
}

async function outOfFlight({ db }: Context, key: DeliveryKey): Promise<void> {
  for (let look = 0; look < IN_FLIGHT_LOOKS && (await isInFlight(db, key)); look += 1) await sleep(IN_FLIGHT_LOOK_MS);
}
