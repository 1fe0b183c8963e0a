// The durable accept: requests of the same moment are written by one statement (at most two at a time; batches grow with
// load, an idle request waits for one commit). When a batch is refused its groups are tried singly, so that one
// bad item never fails its neighbours. The answer leaves after the commit.
import type { FindLane, Job, Lane, Outbound } from "../../outbound/outbound.ts";
import { isLaneGone, KEEP_TRYING_MS } from "../../outbound/outbound.ts";
import { isDuplicate, isShortage, isUnavailable, isUnreached, whileUnavailable } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { commitOrSingly, createGroupCommit, type Weight } from "../../platform/fair/group-commit.ts";
import type { World } from "../../platform/world.ts";
import { isOverAllowance } from "../prepare/allowances.ts";
import type { Prepared, PreparedRecipient } from "../types.ts";
import * as accepting from "./accept-queries.ts";

/** The limits of one statement; a group is never divided, so a batch of large messages may exceed the second. */
const ITEMS_MAX = 200;
const BYTES_MAX = 16 * 1024 * 1024;
const WRITERS = 2;
/** Fewer waiting messages than this join the next statement instead of starting one of their own beside it. */
const SECOND_WRITER_FROM = 50;
const ASK_AGAIN_MS = 200;
/** Beyond this many waiting messages or bytes of them the process sheds load instead of growing. */
const WAITING_MAX = 20_000;
const WAITING_BYTES_MAX = 256 * 1024 * 1024;

export type IdempotencyRow = {
  org_id: string;
  environment: string;
  key: string;
  request_hash: Buffer;
  status: number;
  answer: string;
  created_at: Date;
};

/** What must be committed together: the items of one call. */
export type Group = { items: Prepared[]; idempotency: IdempotencyRow | null };

export type Accepted = "accepted" | "over_allowance" | "duplicate_key";

export type Acceptor = {
  /** Resolves after the commit. `over_allowance`, `duplicate_key`: nothing was written. */
  accept(group: Group): Promise<Accepted>;
  /** Nothing more should be brought now. */
  isFull(): boolean;
};

type Waiting = Group & { weight: Weight; done: PromiseWithResolvers<Accepted> };
type Held = { prepared: Prepared; recipient: PreparedRecipient; owner: number | null };

/** `outbound` is this process's engine, if it has one; `notify` tells the others. */
export type AcceptorDeps = { outbound(): Outbound | null; notify(): void; findLane: FindLane };

type Writing = { outbound: Outbound | null; notify(): void; findLane: FindLane };

/** Nothing waits yet. */
export function createAcceptor(world: World, deps: AcceptorDeps): Acceptor {
  const batches = world.metrics.histogram(
    "postern_accept_batch_items",
    "Messages per accepting statement",
    [],
    [1, 2, 5, 10, 20, 50, 100, 200],
  );

  const groups = createGroupCommit<Waiting>({
    max: { items: ITEMS_MAX, bytes: BYTES_MAX },
    weigh: ({ weight }) => weight,
    ...{ writers: WRITERS, second_writer_from: SECOND_WRITER_FROM },
    commit(batch) {
      batches.observe(batch.reduce((sum, { items }) => sum + items.length, 0));
      const writing = { ...deps, outbound: deps.outbound() };
      return commitOrSingly(batch, (some) => writeInLanes(world, writing, some), { settle, isFinal: isOver });
    },
  });

  return {
    accept(group) {
      const done = Promise.withResolvers<Accepted>();
      const bytes = group.items.reduce((all, { mime }) => all + mime.length, 0);
      groups.add({ ...group, weight: { items: group.items.length, bytes }, done });
      return done.promise;
    },
    isFull() {
      const { items, bytes } = groups.waiting();
      return items >= WAITING_MAX || bytes >= WAITING_BYTES_MAX;
    },
  };
}

/**
 * Null when the batch is stored, else why not. Once more when a lane was dropped since it was looked up: nothing was written, and
 * its name makes it again.
 */
async function writeInLanes(world: World, deps: Writing, batch: readonly Group[]): Promise<unknown> {
  const failure = await write(world, deps, batch);
  if (failure === null || !isLaneGone(failure)) return failure;
  try {
    await findLanesAgain(deps.findLane, batch);
  } catch (error) {
    return error;
  }
  return write(world, deps, batch);
}

async function findLanesAgain(findLane: FindLane, batch: readonly Group[]): Promise<void> {
  const recipients = batch.flatMap(({ items }) => items.flatMap((item) => item.recipients));
  for (const { lane } of recipients) if (lane) findLane.forget?.(lane);
  await Promise.all(
    recipients.map(async (recipient) => {
      if (recipient.lane) recipient.lane = await findLane(recipient.lane);
    }),
  );
}

/**
 * Nothing can be tried again under ids that were taken to settle what happened, or without a database. What the server itself
 * said of a lack of room is not meant: a smaller group may find it.
 */
function isOver(error: unknown): boolean {
  return isUnavailable(error) && !isShortage(error);
}

function settle(batch: readonly Waiting[], failure: unknown): void {
  for (const { idempotency, done } of batch) {
    if (failure === null) done.resolve("accepted");
    else if (isOverAllowance(failure)) done.resolve("over_allowance");
    else if (isDuplicate(failure) && idempotency) done.resolve("duplicate_key");
    else done.reject(failure);
  }
}

async function write(world: World, { outbound, notify }: Writing, batch: readonly Group[]): Promise<unknown> {
  const held = reserve(outbound, batch);
  try {
    await withPartitions(world, () => accepting.acceptMessages(world.db, columnsOf(world, batch, held)));
  } catch (error) {
    const isInDoubt = isOver(error) && !isUnreached(error);
    const happened = isInDoubt && (await wasCommitted(world, batch));
    if (!happened) {
      for (const { prepared, recipient, owner } of held) {
        if (owner !== null) outbound?.release(recipient.lane as Lane, prepared.mime.length);
      }
      return error;
    }
  }
  let left = false;
  for (const delivery of held) {
    if (delivery.owner !== null) outbound?.offer(delivery.recipient.lane as Lane, toJob(delivery));
    else left = true;
  }
  if (left) notify();
  return null;
}

/**
 * The connection was lost and with it the answer to our commit; the server may still be at it, or may not even have read
 * it. One statement wrote the batch, so one of its ids, chosen by us, tells whether all of it is there, and is taken if it
 * is not: what is answered 503 must not be sent later on. Asked until the database answers: guessing would lose or double
 * mail. Costs nothing where no connection breaks.
 */
async function wasCommitted(world: World, batch: readonly Group[]): Promise<boolean> {
  const item = batch[0]?.items[0];
  if (!item) return false;
  const settle = () => accepting.settleAccept(world.db, item.org_id, item.id);
  return whileUnavailable(() => withPartitions(world, settle), ASK_AGAIN_MS);
}

/** Who will send what: this node at once where it may, else whoever claims it. */
function reserve(outbound: Outbound | null, batch: readonly Group[]): Held[] {
  const held: Held[] = [];
  for (const { items } of batch) {
    for (const prepared of items) {
      for (const recipient of prepared.recipients) {
        if (!recipient.lane) continue;
        const isNow = prepared.scheduled_at === null;
        const owner = (isNow && outbound?.reserve(recipient.lane, prepared.mime.length)) || null;
        held.push({ prepared, recipient, owner });
      }
    }
  }
  return held;
}

function columnsOf(world: World, batch: readonly Group[], held: Held[]): accepting.AcceptColumns {
  const items = batch.flatMap((group) => group.items);
  return {
    messages: items.map(messageColumns),
    bodies: items.map((item) => bodyColumns(world, item)),
    recipients: items.flatMap((item) => item.recipients.map((recipient) => recipientColumns(item, recipient))),
    deliveries: held.map(deliveryColumns),
    allowances: sumAllowances(items),
    idempotency: batch.flatMap((group) => (group.idempotency ? [group.idempotency] : [])),
    suppressed: items.filter(isPartlySuppressed).map(suppressedColumns),
  };
}

function isPartlySuppressed({ environment, suppressed }: Prepared): boolean {
  return environment === "live" && suppressed.length > 0;
}

function suppressedColumns({ org_id, about, created_at, suppressed }: Prepared): Record<string, unknown> {
  return { org_id, domain_id: about.domain_id, at: created_at, recipients: suppressed.length };
}

function messageColumns(item: Prepared): Record<string, unknown> {
  const { about, recipients } = item;
  const isOpen = recipients.some(({ status }) => status !== "simulated" && status !== "suppressed");
  return {
    ...item,
    domain_id: about.domain_id,
    message_id: about.rfc_message_id,
    from_address: about.from_address,
    reply_to: JSON.stringify(item.reply_to),
    subject: about.subject,
    tags: JSON.stringify(about.tags),
    metadata: JSON.stringify(about.metadata),
    class: item.message_class,
    size: about.size,
    recipient_count: recipients.length,
    require_tls: about.require_tls,
    completed_at: isOpen ? null : item.created_at,
  };
}

function bodyColumns(world: World, item: Prepared): accepting.AcceptColumns["bodies"][number] {
  const inline = item.mime.length <= world.config.body_inline_bytes_max;
  return {
    org_id: item.org_id,
    id: item.id,
    mime: inline ? item.mime : null,
    blob_key: inline ? null : item.about.blob_key,
  };
}

function recipientColumns(item: Prepared, recipient: PreparedRecipient): Record<string, unknown> {
  const isOpen = recipient.lane !== null;
  return {
    org_id: item.org_id,
    message_id: item.id,
    position: recipient.position,
    email: recipient.email,
    kind: recipient.kind,
    status: recipient.status,
    next_attempt_at: isOpen ? (item.scheduled_at ?? item.created_at) : null,
  };
}

function deliveryColumns({ prepared, recipient, owner }: Held): Record<string, unknown> {
  return {
    org_id: prepared.org_id,
    message_id: prepared.id,
    position: recipient.position,
    lane_id: recipient.lane?.id,
    email: recipient.email,
    due_at: prepared.scheduled_at ?? prepared.created_at,
    created_at: prepared.created_at,
    expires_at: expiryOf(prepared),
    owner,
    return_path_host: prepared.return_path_host,
    charged_at: chargedAt(prepared, recipient),
  };
}

/** Scheduled mail is counted when it leaves, and mail to the simulator never. */
function chargedAt(prepared: Prepared, { isSimulated }: PreparedRecipient): Date | null {
  if (isSimulated) return expiryOf(prepared);
  return prepared.scheduled_at ? null : prepared.created_at;
}

/** The sender's own time, else 72 h after it is due. */
function expiryOf({ scheduled_at, created_at, expires_at }: Prepared): Date {
  return expires_at ?? new Date((scheduled_at ?? created_at).getTime() + KEEP_TRYING_MS);
}

/** One row per window, in one order for all writers, so that two statements never wait for each other crosswise. */
function sumAllowances(items: Prepared[]): Record<string, unknown>[] {
  const sums = new Map<string, Record<string, unknown> & { used: number }>();
  for (const { org_id, allowances, counted } of items) {
    if (counted === 0) continue;
    for (const { scope_id, kind, starts_at, ceiling } of allowances) {
      const name = `${org_id}/${scope_id}/${kind}/${starts_at.getTime()}`;
      const sum = sums.get(name) ?? { org_id, scope_id, kind, starts_at, ceiling, used: 0 };
      sum.used += counted;
      sums.set(name, sum);
    }
  }
  return [...sums.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
}

function toJob({ prepared, recipient, owner }: Held): Job {
  return {
    owner: owner as number,
    org_id: prepared.org_id,
    message_id: prepared.id,
    position: recipient.position,
    lane_id: (recipient.lane as Lane).id,
    email: recipient.email,
    attempts: 0,
    created_at: prepared.created_at,
    expires_at: expiryOf(prepared),
    deferred_event_at: null,
    absent_since: null,
    return_path_host: prepared.return_path_host,
    charged_at: prepared.created_at,
    mime: prepared.mime,
    about: prepared.about,
  };
}
