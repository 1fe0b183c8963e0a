// The durable accept of received mail: messages of the same moment are written by one statement, and 250 leaves after its
// commit. Batches grow with load; an idle message waits for one commit. When a batch fails its messages are tried singly.
import { isShortage, isUnavailable, isUnreached, whileUnavailable } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { commitOrSingly, createGroupCommit } from "../../platform/fair/group-commit.ts";
import type { Traces } from "../../platform/process/traces.ts";
import type { World } from "../../platform/world.ts";
import { keepIfLarge } from "../blobs/blob-references.ts";
import { newClaimId } from "../process/claim-ids.ts";
import type { Examined } from "../process/examination.ts";
import { CLAIM_LEASE_MS, type Processor } from "../process/processor.ts";
import type { LoadBytes } from "../process/raw.ts";
import * as queries from "../queries.ts";
import type { Incoming, Job } from "../types.ts";

const MAILS_MAX = 100;
const WRITERS = 2;
/** Fewer waiting mails than this join the next statement instead of starting one of their own beside it. */
const SECOND_WRITER_FROM = 20;
const ASK_AGAIN_MS = 200;
const ASK_AGAIN_FOR_MS = 20_000;

export type AcceptWorld = Pick<World, "db" | "clock" | "random" | "config" | "blobs" | "metrics" | "traces">;

export type Accepted = {
  /** One for each recipient, in their order. */
  ids: string[];
  /** Resolves when this process has processed all of them; null: another time, by whoever claims them. */
  processed: Promise<void> | null;
};

export type Acceptor = {
  /** Resolves after the commit. Rejects when nothing was stored, and the client must learn it. */
  accept(incoming: Incoming, examination: Examined): Promise<Accepted>;
};

/** What one message puts into the database. */
type Prepared = {
  raws: queries.RawRow[];
  emails: (queries.EmailInsert & { org_id: string; id: string; raw_id: string })[];
  queue: queries.QueueRow[];
  jobs: Job[] | null;
  isLarge: boolean;
};

type Waiting = Prepared & { done: PromiseWithResolvers<void> };

/** `processor` takes what it has room for at once. */
export function createAcceptor(world: AcceptWorld, processor: Processor, loadBytes: LoadBytes): Acceptor {
  const batches = world.metrics.histogram(
    "postern_inbound_accept_batch_mails",
    "Received messages per accepting statement",
    [],
    [1, 2, 5, 10, 20, 50, 100],
  );

  const group = createGroupCommit<Waiting>({
    max: { items: MAILS_MAX, bytes: Number.POSITIVE_INFINITY },
    ...{ writers: WRITERS, second_writer_from: SECOND_WRITER_FROM },
    commit(batch) {
      batches.observe(batch.length);
      return commitOrSingly(batch, (mails) => write(world, mails), { settle, isFinal: isOver });
    },
  });

  return {
    async accept(incoming, examination) {
      const prepared = await prepare(world, processor, incoming, examination);
      const done = Promise.withResolvers<void>();
      group.add({ ...prepared, done });
      try {
        await done.promise;
      } catch (error) {
        if (prepared.jobs) processor.release(prepared.jobs);
        throw error;
      }
      const [first] = prepared.emails;
      // From here on a large message is in memory only while somebody works on it.
      if (prepared.isLarge && first) examination.forget(() => loadBytes(first.org_id, first.raw_id));
      const processed = prepared.jobs ? processor.offer(prepared.jobs) : null;
      if (world.traces) traceReceived(world.traces, world.clock.now(), incoming, prepared.emails);
      return { ids: prepared.emails.map(({ id }) => id), processed };
    },
  };
}

/** From the end of the message to its commit; each recipient's mail is one of its own. */
function traceReceived(traces: Traces, ended_ms: number, incoming: Incoming, emails: { id: string; org_id: string }[]) {
  for (const { id, org_id } of emails) {
    traces.add(id, {
      ...{ name: "receive", place: "first", kind: "server", ended_ms, error: null },
      duration_ms: Math.max(0, ended_ms - incoming.received_at.getTime()),
      attributes: {
        ...{ "postern.email.id": id, "postern.organization.id": org_id, "postern.email.bytes": incoming.bytes.length },
        "postern.environment": incoming.environment,
      },
    });
  }
}

async function prepare(
  world: AcceptWorld,
  processor: Processor,
  incoming: Incoming,
  examination: Examined,
): Promise<Prepared> {
  const rawId = world.random.uuid();
  const orgIds = [...new Set(incoming.recipients.map(({ route }) => route.org_id))];
  const blobKeys = new Map<string, string | null>();
  for (const org_id of orgIds) {
    blobKeys.set(org_id, await keepIfLarge(world, { org_id, owner_id: rawId }, incoming.bytes));
  }
  const emails = incoming.recipients.map((recipient) => emailColumns(world, incoming, recipient, rawId));
  const claim_id = newClaimId(world);
  const alone = emails.length === 1 && [...blobKeys.values()].every((key) => key === null);
  const jobs = emails.map((email, index) => toJob(incoming, { ...email, claim_id, index, alone }, examination));
  const isOurs = processor.reserve(jobs);
  return {
    raws: orgIds.map((org_id) => rawColumns(incoming, { org_id, id: rawId, blob_key: blobKeys.get(org_id) ?? null })),
    emails,
    queue: emails.map(({ org_id, id }) => ({
      org_id,
      id,
      raw_id: rawId,
      next_attempt_at: incoming.received_at,
      claim_id: isOurs ? claim_id : null,
    })),
    jobs: isOurs ? jobs : null,
    isLarge: [...blobKeys.values()].some((key) => key !== null),
  };
}

function rawColumns(
  incoming: Incoming,
  { org_id, id, blob_key }: { org_id: string; id: string; blob_key: string | null },
): queries.RawRow {
  const { bytes, origin, envelope, received_at } = incoming;
  return {
    org_id,
    id,
    bytes: blob_key === null ? bytes : null,
    blob_key,
    size: bytes.length,
    envelope_from: envelope.from,
    smtputf8: envelope.smtputf8,
    remote_ip: origin.remote_ip,
    remote_port: origin.remote_port,
    helo: origin.helo,
    protocol: origin.protocol,
    tls: origin.tls,
    received_at,
  };
}

function emailColumns(
  world: AcceptWorld,
  incoming: Incoming,
  { recipient, route }: Incoming["recipients"][number],
  raw_id: string,
) {
  return {
    org_id: route.org_id,
    id: world.random.uuid(),
    raw_id,
    environment: incoming.environment,
    kind: route.kind,
    route: JSON.stringify(route),
    recipient,
    recipient_tag: route.tag,
    envelope_from: incoming.envelope.from,
    domain_id: route.domain_id,
    alias_id: route.alias_id,
    received_at: incoming.received_at,
    size: incoming.bytes.length,
  };
}

function toJob(
  incoming: Incoming,
  email: { id: string; raw_id: string; claim_id: string; index: number; alone: boolean },
  examination: Examined,
): Job {
  const { recipient, route } = incoming.recipients[email.index] as Incoming["recipients"][number];
  return {
    claim_id: email.claim_id,
    attempts: 1,
    faults: 0,
    mail: {
      org_id: route.org_id,
      id: email.id,
      raw_id: email.raw_id,
      environment: incoming.environment,
      route,
      recipient,
      origin: incoming.origin,
      envelope: incoming.envelope,
      received_at: incoming.received_at,
      size: incoming.bytes.length,
      released: false,
      replayed: false,
      alone: email.alone,
      rule_ids: [],
      examination,
    },
  };
}

/** Nothing can be tried again under ids that were taken to settle what happened, or without a database. */
function isOver(error: unknown): boolean {
  return isUnavailable(error) && !isShortage(error);
}

function settle(batch: readonly Waiting[], failure: unknown): void {
  for (const { done } of batch) {
    if (failure === null) done.resolve();
    else done.reject(failure);
  }
}

/** Null when the batch is stored. */
async function write(world: AcceptWorld, batch: readonly Prepared[]): Promise<unknown> {
  const rows = {
    raws: batch.flatMap(({ raws }) => raws),
    emails: batch.flatMap(({ emails }) => emails),
    queue: batch.flatMap(({ queue }) => queue),
  };
  try {
    await withPartitions(world, () => queries.acceptMail(world.db, rows, CLAIM_LEASE_MS));
    return null;
  } catch (error) {
    const isInDoubt = isOver(error) && !isUnreached(error);
    if (isInDoubt && (await isStored(world, rows.emails[0]))) return null;
    return error;
  }
}

/**
 * The connection was lost and with it the answer to our commit. One statement wrote the batch, so what is settled for one of
 * its ids holds for all of it (docs/decisions/0020-a-lost-answer-to-an-accept.md). Tried for 20 s: then the client is asked to
 * come again, which at worst makes a second copy.
 */
async function isStored(world: AcceptWorld, email: Prepared["emails"][number] | undefined): Promise<boolean> {
  if (!email) return false;
  const ask = () => withPartitions(world, () => queries.settleMail(world.db, email));
  const until = world.clock.monotonic() + ASK_AGAIN_FOR_MS;
  return whileUnavailable(ask, ASK_AGAIN_MS, () => world.clock.monotonic() < until).catch((error) => {
    if (isUnavailable(error)) return false;
    throw error;
  });
}
