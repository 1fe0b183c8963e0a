// Waiting until nothing is left to do, and the verdict: what was acknowledged against what arrived, what the timeline
// says of copies, and which webhooks came.
import { sleep } from "./load.ts";
import type { Stage } from "./stage.ts";

const LOOK_MS = 100;
const IDLE_MS = 1_500;
/** Nothing moved for this long although something is due: the scenario failed. */
const STANDSTILL_MS = 60_000;
const FAILURES_SHOWN = 5;

type Left = { queued: number; hooks: number; wait_s: number | null; leased: number };

/**
 * Waits until the queue and the webhooks are empty. When all that is left waits for a later time, the clock is moved
 * there; the leases of killed hooks processes are by the database's own clock, which nobody can move, so they are aged.
 * Throws when nothing moves.
 */
export async function drain(stage: Stage): Promise<void> {
  let last = "";
  let movedAt = performance.now();
  for (;;) {
    const left = await whatIsLeft(stage);
    if (left.queued === 0 && left.hooks === 0) return;
    const now = JSON.stringify([left.queued, left.hooks, stage.sink.received()]);
    if (now !== last) movedAt = performance.now();
    last = now;
    if (performance.now() - movedAt > STANDSTILL_MS) {
      throw new Error(`nothing moves: ${JSON.stringify(left)}\n${await describeStandstill(stage)}`);
    }
    if (performance.now() - movedAt > IDLE_MS) await hurry(stage, left);
    await sleep(LOOK_MS);
  }
}

async function hurry(stage: Stage, { queued, wait_s, leased }: Left): Promise<void> {
  if (wait_s !== null && wait_s > 0) stage.advance(Math.ceil(wait_s) + 1);
  else if (queued === 0 && leased > 0) await ageLeases(stage, "webhook_queue");
}

/** Rows that a process writes just now are left alone: to wait for several of them, in another order than it, is a deadlock. */
export async function ageLeases(stage: Pick<Stage, "rows">, table: "webhook_queue" | "inbound_queue"): Promise<void> {
  await stage.rows(
    `with aged as (select org_id, id, lease_until - interval '1 minute' as lease_until from ${table}
                    where claim_id is not null for update skip locked)
     update ${table} q set lease_until = aged.lease_until from aged where q.org_id = aged.org_id and q.id = aged.id`,
  );
}

/** Due times are of the processes' clock, which `advance` moves; `wait_s` is what is missing to the last of them. */
async function whatIsLeft(stage: Stage): Promise<Left> {
  const [row] = await stage.rows<{ queued: number; hooks: number; leased: number; last_ms: number | null }>(
    `select (select count(*) from delivery)::int as queued, (select count(*) from webhook_queue)::int as hooks,
            (select count(*) from webhook_queue where claim_id is not null)::int as leased,
            extract(epoch from greatest((select max(due_at) from delivery), (select max(next_attempt_at) from webhook_queue)))
              ::float8 * 1000 as last_ms`,
  );
  const { queued = 0, hooks = 0, leased = 0, last_ms = null } = row ?? {};
  return { queued, hooks, leased, wait_s: last_ms === null ? null : (last_ms - stage.now()) / 1000 };
}

/** For the person who has to find out why. */
export async function describeStandstill(stage: Stage): Promise<string> {
  const shown = await Promise.all(
    [
      "select id, machine, pid, roles, seen_at, clock_timestamp() as now from node",
      "select node_id, count(*)::int as slots from lease group by 1",
      "select l.id, l.slot, l.domain, l.next_at, l.paused_until, l.reason from lane l",
      "select owner, attempts, count(*)::int as rows, min(due_at) as first_due from delivery group by 1, 2",
      "select pid, state, wait_event_type, wait_event, left(query, 120) as query from pg_stat_activity where state <> 'idle'",
    ].map(async (text) => `${text}\n  ${(await stage.rows(text)).map((row) => JSON.stringify(row)).join("\n  ")}`),
  );
  const outputs = [...stage.processes].map(([name, { output }]) => `${name}: ${output().slice(-3_000)}`);
  return [...shown, ...outputs, ...stage.died].join("\n");
}

export type Verdict = {
  acknowledged: number;
  lost: number;
  duplicates: number;
  flagged: number;
  /** Messages in the database beyond those acknowledged: an Idempotency-Key that made two. */
  extra: number;
  /** Acknowledged and arrived, and the record does not say so. */
  not_delivered: number;
  webhooks_missing: number;
  /** Requests that were answered 500: what cannot be done now is a 503. */
  answered_500: number;
  /** The first of what the processes logged of them. */
  failures: string[];
  /** Processes that ended by themselves. */
  died: number;
  ok: boolean;
};

/** Compares what the recorder kept since the last verdict with the sink, the database and the webhooks. */
export async function judge(stage: Stage): Promise<Verdict> {
  const acknowledged = [...stage.recorder.all()];
  const doubts = await doubtsByMessage(stage);
  const statuses = await statusesOf(stage, acknowledged);
  const reported = deliveredWebhooks(stage);
  const found = { lost: 0, duplicates: 0, flagged: 0, not_delivered: 0, webhooks_missing: 0 };
  for (const { id, message_id } of acknowledged) {
    const copies = stage.sink.copies.get(message_id) ?? 0;
    if (copies === 0) found.lost += 1;
    found.duplicates += Math.max(0, copies - 1);
    found.flagged += Math.min(Math.max(0, copies - 1), doubts.get(id) ?? 0);
    if (statuses.get(id) !== "delivered") found.not_delivered += 1;
    if (!reported.has(id)) found.webhooks_missing += 1;
  }
  const [stored] = await stage.rows<{ total: number }>("select count(*)::int as total from message");
  const extra = (stored?.total ?? 0) - stage.recorder.total();
  const died = stage.died.length;
  const answered_500 = stage.recorder.broken();
  const failures = stage.failures().slice(0, FAILURES_SHOWN);
  forgetRound(stage);
  const isWhole = found.lost + found.not_delivered + found.webhooks_missing + answered_500 + died === 0 && extra === 0;
  const ok = isWhole && found.duplicates === found.flagged;
  return { acknowledged: acknowledged.length, ...found, extra, answered_500, failures, died, ok };
}

function forgetRound(stage: Stage): void {
  stage.recorder.forget();
  stage.sink.copies.clear();
  stage.receiver.requests.length = 0;
  stage.died.length = 0;
  stage.forgetFailures();
}

async function statusesOf(stage: Stage, acknowledged: { id: string }[]): Promise<Map<string, string>> {
  const rows = await stage.rows<{ id: string; status: string }>(
    "select id, status from message where id = any($1::uuid[])",
    [acknowledged.map(({ id }) => id)],
  );
  return new Map(rows.map(({ id, status }) => [id, status]));
}

/** The sum of several rounds; `ok` when each was. */
export function sumUp(rounds: Verdict[]): Verdict {
  const sum = (name: Exclude<keyof Verdict, "ok" | "failures">): number =>
    rounds.reduce((total, round) => total + round[name], 0);
  return {
    acknowledged: sum("acknowledged"),
    lost: sum("lost"),
    duplicates: sum("duplicates"),
    flagged: sum("flagged"),
    extra: sum("extra"),
    not_delivered: sum("not_delivered"),
    webhooks_missing: sum("webhooks_missing"),
    answered_500: sum("answered_500"),
    failures: rounds.flatMap((round) => round.failures).slice(0, FAILURES_SHOWN),
    died: sum("died"),
    ok: rounds.length > 0 && rounds.every(({ ok }) => ok),
  };
}

async function doubtsByMessage(stage: Stage): Promise<Map<string, number>> {
  const rows = await stage.rows<{ message_id: string; doubts: number }>(
    "select message_id, count(*)::int as doubts from event where event_type = 'ambiguous' group by message_id",
  );
  return new Map(rows.map(({ message_id, doubts }) => [message_id, doubts]));
}

/** E-mails whose email.delivered came at least once. */
function deliveredWebhooks(stage: Stage): Set<string> {
  const reported = new Set<string>();
  for (const { body } of stage.receiver.requests) {
    const { event, email_id } = JSON.parse(body.toString()) as { event: string; email_id: string };
    if (event === "email.delivered") reported.add(email_id);
  }
  return reported;
}
