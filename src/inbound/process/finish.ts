// From outcomes to durable state: the mail's row, its place in the queue, its alias's counters, its forwards and its
// webhooks, in one transaction for many mails. While one batch commits, the next gathers.
import { countReceived } from "../../aliases/aliases.ts";
import type { FindLane, Outbound } from "../../outbound/outbound.ts";
import { type Tx, whileUnavailable } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { commitOrSingly, createGroupCommit } from "../../platform/fair/group-commit.ts";
import type { World } from "../../platform/world.ts";
import { enqueueRaw, type HandOver, handOver, type Laned, type Queued, withLane } from "../../sending/sending.ts";
import { enqueueWebhooks, wakeHooks } from "../../webhooks/webhooks.ts";
import * as queries from "../queries.ts";
import { countHits } from "../rules/rules-step.ts";
import type { Found, Job, Outcome } from "../types.ts";

const BATCH_MAX = 100;
const RETRY_COMMIT_MS = 500;
const RETRY_COMMIT_FOR_MS = 20_000;

export type FinishWorld = Pick<World, "db" | "clock" | "random" | "log">;

export type Finisher = {
  /** Resolves with null once the outcome is committed (or its claim had lapsed), with the error when it cannot be. */
  finish(job: Job, outcome: Outcome): Promise<unknown>;
};

export type FinishPorts = {
  findLane: FindLane;
  /** The engine of this process that sends, if it has one. */
  outbound(): Outbound | null;
  /** Forwards were queued that this process does not send itself. */
  notifyOutbound(): void;
};

const NOTHING_FOUND: Found = {
  message_id: null,
  from_address: null,
  subject: null,
  has_attachments: false,
  thread_id: null,
  matched_email_id: null,
  spam_score: null,
  authentication_results: null,
  findings: null,
};

type Waiting = { job: Job; outcome: Outcome; forwards: Laned[]; done: (failure: unknown) => void };

/** Collects outcomes and commits them in batches. */
export function createFinisher(world: FinishWorld, ports: FinishPorts): Finisher {
  const group = createGroupCommit<Waiting>({
    max: { items: BATCH_MAX, bytes: Number.POSITIVE_INFINITY },
    commit: (batch) => commitOrSingly(batch, (outcomes) => commit(world, ports, outcomes), { settle }),
  });

  return {
    async finish(job, outcome) {
      const forwards: Laned[] = [];
      for (const message of outcome.forwards) forwards.push(await withLane(ports.findLane, message));
      return new Promise((done) => group.add({ job, outcome, forwards, done }));
    },
  };
}

function settle(batch: readonly Waiting[], failure: unknown): void {
  for (const { done } of batch) done(failure);
}

/** The database being away is waited for, as long as the claims can be renewed when it is back. */
async function commit(world: FinishWorld, ports: FinishPorts, batch: readonly Waiting[]): Promise<unknown> {
  const until = world.clock.monotonic() + RETRY_COMMIT_FOR_MS;
  try {
    const work = () => writeAndSend(world, ports, batch);
    const left = await whileUnavailable(work, RETRY_COMMIT_MS, () => world.clock.monotonic() < until);
    wakeHooks(world);
    if (left) ports.notifyOutbound();
    return null;
  } catch (error) {
    return error;
  }
}

/**
 * True when forwards were queued that others must look for. A commit whose answer was lost is done again and finds its mails
 * finished: forwards that it wrote in this node's name are found again as forgotten (outbound/queue/orphans.ts).
 */
async function writeAndSend(world: FinishWorld, ports: FinishPorts, batch: readonly Waiting[]): Promise<boolean> {
  const messages = batch.flatMap(({ forwards }) => forwards);
  const going = handOver(ports.outbound(), messages);
  const write = (tx: Tx) => writeBatch(tx, world, batch, going);
  const queued = await withPartitions(world, () => world.db.transaction(write)).catch((error) => {
    going.settle([]);
    throw error;
  });
  return going.settle(queued);
}

/** The forwards that were queued. */
async function writeBatch(tx: Tx, world: FinishWorld, batch: readonly Waiting[], going: HandOver): Promise<Queued[]> {
  const at = new Date(world.clock.now());
  const kept = batch.filter(({ outcome }) => !outcome.forgets);
  const rows = kept.map(({ job, outcome }) => toRow(job, outcome, at));
  const finished = rows.length === 0 ? [] : await queries.finishMail(tx, rows);
  const claims = batch.flatMap(({ job, outcome }) => (outcome.forgets ? claimOf(job) : []));
  const forgotten = claims.length === 0 ? [] : await queries.forgetMail(tx, claims);
  // By the claim: after an outage one process may hold a mail twice, under the claim that lapsed and under a new one.
  const ours = new Set([...finished, ...forgotten].map(({ id, claim_id }) => `${id} ${claim_id}`));
  const mine = batch.filter(({ job }) => ours.has(`${job.mail.id} ${job.claim_id}`));
  await countReceived(
    tx,
    mine.flatMap(({ job: { mail } }) =>
      mail.route.alias_id === null || mail.replayed
        ? []
        : [{ org_id: mail.org_id, alias_id: mail.route.alias_id, at: mail.received_at }],
    ),
  );
  await countHits(
    tx,
    mine.flatMap(({ job: { mail }, outcome }) =>
      // What came out of quarantine is a first hit, a replay that ends as before is none.
      outcome.rule_ids
        .filter((rule_id) => !mail.rule_ids.includes(rule_id))
        .map((rule_id) => ({ org_id: mail.org_id, rule_id, at: mail.received_at })),
    ),
  );
  for (const { outcome } of mine) await outcome.also?.(tx);
  const shared = Map.groupBy(
    mine.flatMap(({ outcome }) => outcome.shared ?? []),
    ({ write }) => write,
  );
  for (const [write, all] of shared) {
    await write(
      tx,
      all.map(({ fact }) => fact),
    );
  }
  const queued = await enqueueRaw(
    tx,
    mine.flatMap(({ forwards }) => forwards),
    going,
  );
  await enqueueWebhooks(
    tx,
    world,
    mine.flatMap(({ outcome }) => outcome.events),
  );
  return queued;
}

function claimOf({ mail: { org_id, id }, claim_id }: Job): queries.Claim {
  return { org_id, id, claim_id };
}

function toRow({ mail, claim_id }: Job, outcome: Outcome, processed_at: Date): queries.FinishRow {
  const { status, reason, found, events, forwards, rule_ids } = outcome;
  return {
    ...(found ?? NOTHING_FOUND),
    keeps: found === undefined,
    org_id: mail.org_id,
    id: mail.id,
    claim_id,
    status,
    reason,
    processed_at,
    rule_ids,
    event_ids: events.map(({ event_id }) => event_id),
    forward_ids: forwards.map(({ id }) => id),
  };
}
