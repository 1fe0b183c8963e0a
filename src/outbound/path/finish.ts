// From an attempt's outcome to durable state: queue row, recipient, e-mail, event log, webhooks, suppression, all in one
// transaction for many results at once. Results gather for some milliseconds: nobody waits for them, and a transaction
// of six statements for each would cost more than the sending.
import { findReported, type MailEvent, recordEvents } from "../../events/events.ts";
import { SIMULATOR, simulatedKind } from "../../mail/simulated.ts";
import { sleep } from "../../platform/clock.ts";
import { type Tx, whileUnavailable } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { createGroupCommit } from "../../platform/fair/group-commit.ts";
import type { Traces } from "../../platform/process/traces.ts";
import type { World } from "../../platform/world.ts";
import { addSuppressed } from "../../stats/stats.ts";
import { type Job, type Outcome, type Owned, ownedName } from "../types.ts";
import * as queries from "./finish-queries.ts";
import { KEEP_TRYING_MS, retryDelayMs } from "./retry.ts";

const MINUTE_MS = 60_000;
const BATCH_MAX = 250;
const GATHER_MS = 15;
const RETRY_COMMIT_MS = 500;
/** So often is a result tried that the database itself refuses (a bug): its delivery then stays owned, for people to see. */
const REFUSALS_MAX = 5;
const DEFERRED_EVENT_EVERY_MS = 4 * 3_600_000;
/** An absent domain is final when it is still absent this long after it was first missed. */
const ABSENT_FOR_MS = 3_600_000;
/** Beyond this it was not time that passed: a machine was suspended, a clock leapt. The hour begins again. */
const ABSENT_KNOWN_MS = 24 * 3_600_000;
const ASK_AGAIN_MS = ABSENT_FOR_MS + 60_000;
/** Enough for a conversation, and no haste towards a server that has just deferred the mail. */
const LAST_BEFORE_END_MS = 15_000;
const LAST_AFTER_MS = 60_000;

export type FinishWorld = Pick<World, "db" | "clock" | "random" | "log" | "metrics" | "seal" | "traces">;

export type Finisher = {
  push(job: Job, outcome: Outcome): void;
  pending(): number;
  /** True if the delivery has an outcome that is not recorded yet. */
  holds(key: Owned): boolean;
  /** Resolves once everything pushed so far is committed. */
  drain(): Promise<void>;
};

/** `arrived`: the server has the message, or may have it. */
export type Result = {
  row: queries.FinishRow;
  event: MailEvent;
  several: boolean;
  arrived: boolean;
  refusals: number;
};

export type FinisherHooks = {
  /** An outcome is known, and not recorded yet. */
  concluded?(job: Job, outcome: Outcome): void;
  /** A job left this process. */
  done(job: Job): void;
  /** Mail arrived whose simulated recipient complains of it. */
  complain?: Complain;
  committed(rows: queries.FinishRow[]): void;
};

export type Complain = (tx: Tx, of: Pick<Job, "org_id" | "message_id" | "position">) => Promise<unknown>;

export function createFinisher(world: FinishWorld, on: FinisherHooks): Finisher {
  const unrecorded = new Set<string>();
  const group = createGroupCommit<Result>({
    max: { items: BATCH_MAX, bytes: Number.POSITIVE_INFINITY },
    gather: (waiting) => (waiting < BATCH_MAX ? sleep(GATHER_MS) : Promise.resolve()),
    commit: commitUntilDone,
  });
  const counter = world.metrics.counter("postern_deliveries_total", "Delivery attempts by outcome", ["outcome"]);

  const troubles = world.metrics.counter("postern_delivery_troubles_total", "Attempts that did not deliver, by why", [
    "class",
  ]);

  function push(job: Job, outcome: Outcome): void {
    on.concluded?.(job, outcome);
    const decided = decide(world, job, outcome);
    counter.inc({ outcome: decided.event.event_type });
    if (outcome.kind !== "delivered") troubles.inc({ class: outcome.class ?? "other" });
    if (world.traces && !outcome.unattempted) traceAttempt(world.traces, world.clock.now(), { job, outcome, decided });
    unrecorded.add(ownedName(job));
    group.add(decided);
    on.done(job);
  }

  /** A result must not be dropped because the database is away: the mail was sent. It waits in memory and tries again. */
  async function commitUntilDone(batch: Result[]): Promise<void> {
    const report = (err: unknown) => {
      world.log.error({ err, results: batch.length }, "outcomes could not be recorded; trying again");
      return true;
    };
    try {
      await whileUnavailable(() => withPartitions(world, () => commit(world, batch, on)), RETRY_COMMIT_MS, report);
      for (const { row } of batch) unrecorded.delete(ownedName(row));
      on.committed(batch.map(({ row }) => row));
    } catch (err) {
      report(err);
      await setAside(batch, err);
    }
  }

  /** One result that the database refuses must not hold up its neighbours: each is tried alone, the bad one last. */
  async function setAside(batch: Result[], err: unknown): Promise<void> {
    if (batch.length > 1) {
      for (const result of batch) await commitUntilDone([result]);
      return;
    }
    const [result] = batch as [Result];
    result.refusals += 1;
    if (result.refusals < REFUSALS_MAX) group.add(result);
    else
      world.log.fatal(
        { err, message_id: result.row.message_id },
        "an outcome cannot be recorded; see its delivery row",
      );
  }

  return {
    push,
    pending: () => group.waiting().items,
    holds: (key) => unrecorded.has(ownedName(key)),
    drain: group.drained,
  };
}

type Concluded = { job: Job; outcome: Outcome; decided: Result };

/** To the answer behind the final dot, or to where it failed before. */
function traceAttempt(traces: Traces, ended_ms: number, { job, outcome, decided }: Concluded): void {
  traces.add(job.message_id, {
    ...{ name: "deliver", place: "below", kind: "client", ended_ms, duration_ms: outcome.duration_ms ?? 0 },
    error: outcome.kind === "delivered" ? null : (outcome.class ?? "other"),
    attributes: {
      ...{ "postern.recipient.position": job.position, "postern.attempt": decided.row.attempts },
      ...{ "postern.outcome": decided.event.event_type, "server.address": outcome.mx_host ?? "" },
      "smtp.response.status_code": outcome.smtp_code ?? 0,
    },
  });
}

async function commit(world: FinishWorld, batch: Result[], on: FinisherHooks): Promise<void> {
  await world.db.transaction(async (tx) => {
    const dropped = await record(tx, world, batch);
    for (const result of batch) {
      if (complains(result) && !dropped.includes(result)) await on.complain?.(tx, result.row);
    }
    if (dropped.length === 0) return;
    const late = await tellLate(tx, world, dropped);
    world.log.warn({ dropped: dropped.length, late }, "results dropped: their deliveries belong to others by now");
  });
}

function complains({ event }: Result): boolean {
  if (event.isp !== SIMULATOR || event.event_type !== "delivered") return false;
  return simulatedKind(event.recipient ?? "") === "complained";
}

/** Writes what still belongs to who took it, with all consequences; returns the other results. */
export async function record(tx: Tx, world: FinishWorld, batch: Result[]): Promise<Result[]> {
  const several = batch.filter((result) => result.several).map(({ row }) => row);
  if (several.length > 0) await queries.lockMessages(tx, several);
  const now = new Date(world.clock.now());
  const results = batch.map(({ row }) => row);
  const rows = await queries.finishDeliveries(tx, results, now);
  const mine = new Map(rows.map((row) => [`${row.message_id}/${row.position}`, row]));
  const finishedOf = ({ row }: Result) => mine.get(`${row.message_id}/${row.position}`);
  const isKept = (result: Result) => finishedOf(result) !== undefined;
  const kept = batch.filter(isKept);
  if (kept.length > 0) {
    const folded = kept.filter((result) => result.several).map(({ row }) => row);
    if (folded.length > 0) await queries.foldMessages(tx, folded, now);
    await recordEvents(
      tx,
      world,
      kept.flatMap((result) => [...mayHaveArrived(world, result), withLastWord(result, finishedOf(result))]),
    );
  }
  const suppressed = kept.filter(({ row }) => row.status === "suppressed").map(({ event }) => toSuppressed(event));
  if (suppressed.length > 0) await addSuppressed(tx, suppressed);
  return batch.filter((result) => !isKept(result));
}

/** Mail that ends between two attempts ends with what was said at the last one, as its record does. */
function withLastWord({ row, event }: Result, said: queries.Finished | undefined): MailEvent {
  const isBetween = row.status === "expired" && row.attempts === row.had_attempts;
  if (!isBetween || !said || said.diag_message === row.diag_message) return event;
  const { bounce_code: smtp_code, diag_code: enhanced_code, diag_message } = said;
  return { ...event, smtp_code, enhanced_code, message: `${event.message}: ${diag_message}` };
}

/** Mail that is given up with a last answer that was lost: the timeline says, before its end, that it may be there. */
function mayHaveArrived({ random }: FinishWorld, { row, event, arrived }: Result): MailEvent[] {
  if (!arrived || row.status !== "expired") return [];
  const message = "the answer to its last attempt was lost; the message may have arrived";
  const flag = {
    event_type: "ambiguous",
    class: "ambiguous",
    attempt: null,
    announces: false,
    suppress: false,
  } as const;
  return [{ ...event, ...flag, id: random.uuid(), at: new Date(event.at.getTime() - 1), bounce_type: null, message }];
}

function toSuppressed({ org_id, at, about }: MailEvent) {
  return { org_id, domain_id: about.domain_id, at, recipients: 1 };
}

/**
 * A message that arrived although its delivery had been given to another node is sent twice: the timeline says so, once.
 * A result that was committed, and only the answer to the commit was lost, has recorded its event already.
 */
async function tellLate(tx: Tx, world: FinishWorld, dropped: Result[]): Promise<number> {
  const arrived = dropped.filter((result) => result.arrived).map(({ event }) => event);
  const reported = await findReported(tx, arrived);
  const late = arrived.filter(({ id }) => !reported.has(id));
  await recordEvents(tx, world, late.map(toLate));
  return late.length;
}

function toLate(event: MailEvent): MailEvent {
  const message = "sent by a process that had been declared dead meanwhile; the message may have arrived twice";
  const quiet = { announces: false, suppress: false, bounce_type: null, next_attempt_at: null };
  // Without a number: statistics count the attempts of those who owned it.
  return { ...event, ...quiet, event_type: "ambiguous", class: "ambiguous", attempt: null, message };
}

/** What an outcome means for the queue row, the recipient and the world outside. */
export function decide(world: FinishWorld, job: Job, seen: Outcome): Result {
  const nowMs = world.clock.now();
  const attempts = job.attempts + (seen.unattempted ? 0 : 1);
  const verdict = finalOf(job, seen, nowMs);
  const next = verdict.final ? null : nextAttempt(world, job, seen, attempts);
  // The next try would come too late: it is over now, not then.
  const over = next !== null && next.getTime() >= job.expires_at.getTime();
  const outcome = over || !verdict.final ? unproven(seen) : seen;
  const status = over ? "expired" : verdict.status;
  const isFinal = verdict.final || over;
  const announces = isFinal || isDeferralDue(job, nowMs);
  const bounce = bounceFields(status, outcome);
  const message = status === "expired" ? gaveUp(job, outcome, { attempts, nowMs }) : outcome.message;
  return {
    several: job.about.recipient_count > 1,
    arrived: outcome.kind === "delivered" || outcome.ambiguous,
    refusals: 0,
    row: {
      owner: job.owner,
      had_attempts: job.attempts,
      org_id: job.org_id,
      message_id: job.message_id,
      position: job.position,
      final: isFinal,
      status,
      attempts,
      next_attempt_at: isFinal ? null : next,
      delivered_at: status === "delivered" ? new Date(nowMs) : null,
      ...bounce,
      diag_message: outcome.unattempted && status === "expired" ? message : bounce.diag_message,
      isp: outcome.isp,
      deferred_event_at: announces ? new Date(nowMs) : job.deferred_event_at,
      absent_since: seen.absent && !over ? new Date(absentSince(job, nowMs) ?? nowMs) : null,
    },
    event: {
      ...toEvent(world, job, outcome, { status, attempts, next: isFinal ? null : next, announces, nowMs }),
      message,
      // What the record says of its end, the event says too.
      class: isFinal ? bounce.bounce_class : outcome.class,
      bounce_type: bounce.bounce_type,
    },
  };
}

function finalOf(job: Job, outcome: Outcome, nowMs: number): { final: boolean; status: string } {
  if (outcome.absent) {
    const since = absentSince(job, nowMs);
    const again = since !== null && nowMs - since >= ABSENT_FOR_MS;
    return again ? { final: true, status: "bounced" } : { final: false, status: "deferred" };
  }
  return { final: outcome.kind !== "deferred", status: outcome.kind };
}

function absentSince({ absent_since }: Job, nowMs: number): number | null {
  const since = absent_since?.getTime() ?? null;
  return since !== null && since <= nowMs && nowMs - since < ABSENT_KNOWN_MS ? since : null;
}

/**
 * That a domain was missed once is no proof: until it is missed again, or where there is no time to look again, it is a trouble
 * as any other, and no server has said 550 of it.
 */
function unproven(outcome: Outcome): Outcome {
  if (!outcome.absent) return outcome;
  const doubtful = { smtp_code: null, enhanced_code: "4.1.2", bounce_type: "soft", suppress: false } as const;
  return { ...outcome, ...doubtful, kind: "deferred", absent: false };
}

/** When its time began: that of mail that was scheduled began later than its acceptance. */
export function dueSince(job: Job): number {
  const planned = job.about.has_expiry ? 0 : job.expires_at.getTime() - KEEP_TRYING_MS;
  return Math.max(job.created_at.getTime(), planned);
}

/** What the last entry of the timeline says of mail that is given up: how often and for how long it was tried, and what was said last. */
function gaveUp(job: Job, outcome: Outcome, { attempts, nowMs }: { attempts: number; nowMs: number }): string {
  const minutes = Math.round((nowMs - dueSince(job)) / MINUTE_MS);
  const time = minutes < 120 ? `${Math.max(0, minutes)} min` : `${Math.round(minutes / 60)} h`;
  const tries = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
  const reported = outcome.class === "expired" ? "" : `: ${outcome.message}`;
  return `gave up after ${tries} over ${time}${reported}`;
}

/**
 * By the table; where the table's would come behind the end of the mail's time, one more right before that end. Mail that its
 * sender wants delivered within minutes (a one-time code) passes greylisting by it.
 */
function nextAttempt(world: FinishWorld, job: Job, outcome: Outcome, attempts: number): Date {
  const next = attemptByTable(world, job, outcome, attempts);
  const isInTime = next.getTime() < job.expires_at.getTime();
  if (isInTime || outcome.absent) return next;
  const last = job.expires_at.getTime() - LAST_BEFORE_END_MS;
  return last - world.clock.now() >= LAST_AFTER_MS ? new Date(last) : next;
}

function attemptByTable(world: FinishWorld, job: Job, outcome: Outcome, attempts: number): Date {
  const delay = retryDelayMs(attempts, world.random.float(), outcome.retry_after_min ?? 0);
  const nowMs = world.clock.now();
  if (outcome.retry_at_once) return new Date(nowMs);
  if (outcome.retry_at) return outcome.retry_at;
  if (!outcome.absent || absentSince(job, nowMs) !== null) return new Date(nowMs + delay);
  // An absent domain is asked about again after an hour, neither much sooner nor much later, where there is time for it.
  const leftMs = job.expires_at.getTime() - nowMs;
  const waits = [Math.max(delay, ASK_AGAIN_MS), ASK_AGAIN_MS, delay];
  return new Date(nowMs + (waits.find((waitMs) => waitMs < leftMs) ?? delay));
}

function isDeferralDue(job: Job, nowMs: number): boolean {
  return job.deferred_event_at === null || nowMs - job.deferred_event_at.getTime() >= DEFERRED_EVENT_EVERY_MS;
}

function bounceFields(status: string, outcome: Outcome) {
  if (status === "delivered" || status === "suppressed") {
    return { bounce_type: null, bounce_code: null, diag_code: null, diag_message: null, bounce_class: null };
  }
  const closed = status !== "deferred";
  return {
    bounce_type: closed ? (outcome.bounce_type ?? "soft") : null,
    bounce_code: outcome.smtp_code,
    diag_code: outcome.enhanced_code,
    diag_message: outcome.message,
    bounce_class: status === "expired" ? "expired" : outcome.class,
  };
}

type Decided = { status: string; attempts: number; next: Date | null; announces: boolean; nowMs: number };

function toEvent(world: FinishWorld, job: Job, outcome: Outcome, decided: Decided): MailEvent {
  const type = outcome.ambiguous && decided.status === "deferred" ? "ambiguous" : decided.status;
  return {
    org_id: job.org_id,
    id: world.random.uuid(),
    event_type: type as MailEvent["event_type"],
    message_id: job.message_id,
    recipient: job.email,
    at: new Date(decided.nowMs),
    attempt: outcome.unattempted ? null : decided.attempts,
    smtp_code: outcome.smtp_code,
    enhanced_code: outcome.enhanced_code,
    message: outcome.message,
    mx_host: outcome.mx_host,
    mx_ip: outcome.mx_ip,
    source_ip: outcome.source_ip,
    tls: outcome.tls,
    duration_ms: outcome.duration_ms,
    class: outcome.class,
    isp: outcome.isp,
    bounce_type: null,
    suppress: outcome.suppress && decided.status === "bounced",
    next_attempt_at: decided.next,
    announces: decided.announces,
    about: job.about,
  };
}
