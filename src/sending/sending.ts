// POST /v1/send from shape to 202: sender domain → template → recipients → suppressions → quota and warming → message →
// one durable statement. Face of the feature; the API, batches and SMTP submission all come through `prepare` and
// `accept`, so the same rules hold everywhere.
import { createHash } from "node:crypto";
import { requireLiveSending } from "../accounts/accounts.ts";
import type { Account } from "../http/http.ts";
import { createLru } from "../platform/fair/lru.ts";
import { spentHere } from "../platform/fair/processor-shares.ts";
import { createTurns } from "../platform/fair/turns.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { type Accepted, type Acceptor, createAcceptor, type IdempotencyRow } from "./accept/accept.ts";
import { type Fit, fit } from "./accept/fit.ts";
import { usedReader } from "./prepare/allowances.ts";
import { prepare } from "./prepare/prepare.ts";
import { prepareSubmitted } from "./prepare/prepare-submitted.ts";
import { readySender } from "./prepare/sender.ts";
import type { HoldBytes, Prepared, Preparing, SendAnswer, SendingDeps, SendRequest, Submitted } from "./types.ts";

export { settleAccept } from "./accept/accept-queries.ts";
export { countSentFrom } from "./address/address-queries.ts";
export {
  countSentTo,
  type ErasePorts,
  eraseForwards,
  eraseSentTo,
  listSentTo,
  type OfAddress,
} from "./address/sent-to.ts";
export { EmailEvent, RecipientView } from "./emails/shape.ts";
export { type EndedMessage, findDeferred, findEnded, findLeaving, forgetMessages } from "./forget-queries.ts";
export { type HandOver, handOver, type Laned, type Queued } from "./hand-over.ts";
export {
  type DeliveryKey,
  findSentDelivery,
  findSentId,
  isInFlight,
  type LateBounce,
  type LateReport,
  recordLateReport,
  recordOptOut,
  type SentDelivery,
} from "./late/late-reports.ts";
export { complainSimulated } from "./late/simulated-complaint.ts";
export { windowsOfLeaving } from "./leaving.ts";
export { findBody } from "./queries.ts";
export {
  enqueueRaw,
  findBlobOwner,
  findHead,
  findLarge,
  findMessageOwner,
  findSentByMessageId,
  withLane,
} from "./raw.ts";
export { EXPIRY_MS_MAX } from "./shape.ts";

export type Sending = {
  /** Validates a send request and builds its e-mail, once `isNew` lets it; throws the Refusal to answer with. */
  prepare(account: Account, request: SendRequest, hold: HoldBytes, isNew?: Promise<void>): Promise<Prepared>;
  /** The same for a message that comes ready-made over SMTP. */
  prepareSubmitted(account: Account, submitted: Submitted): Promise<Prepared>;
  /** Throws the Refusal to answer with where the organization may not send from this domain. */
  checkSender(account: Account, domain: string): Promise<void>;
  /** Which of the items of one call still fit into their windows, in order. */
  fit(items: readonly Prepared[]): Promise<Fit>;
  /** Commits the items of one call together; `over_allowance` means that others took the rest of a window. */
  commit(items: Prepared[], idempotency: IdempotencyRow | null): Promise<Accepted>;
  /** Commits the items of one call together; a refusal means that nothing was written. */
  accept(items: Prepared[], idempotency: IdempotencyRow | null): Promise<"accepted" | "duplicate_key">;
  answerOf(prepared: Prepared): SendAnswer;
};

type Context = Preparing & { acceptor: Acceptor };

/** How many domain names are remembered with the id that they were found under last. */
const DOMAINS_MAX = 20_000;

/** The sending pipeline of this process. */
export function createSending(world: World, deps: SendingDeps): Sending {
  const context: Context = {
    world,
    deps,
    acceptor: createAcceptor(world, deps),
    used: usedReader(world),
    domains: createLru(DOMAINS_MAX),
    inTurn: createTurns(world.clock, spentHere(world)),
  };
  return {
    prepare: (account, request, hold, isNew) => prepare(context, { account, request, hold, isNew }),
    prepareSubmitted: (account, submitted) => prepareSubmitted(context, account, submitted),
    checkSender: (account, domain) => checkSender(deps, account, domain),
    fit: (items) => fit(context.used, items),
    commit: (items, idempotency) => commit(context, items, idempotency),
    accept: (items, idempotency) => accept(context, items, idempotency),
    answerOf,
  };
}

async function checkSender(deps: SendingDeps, account: Account, domain: string): Promise<void> {
  requireLiveSending(account);
  await readySender(deps, account.org_id, domain);
}

async function commit(context: Context, items: Prepared[], idempotency: IdempotencyRow | null): Promise<Accepted> {
  if (context.acceptor.isFull()) {
    throw new Refusal("unavailable", "too many requests are waiting to be stored; try again shortly");
  }
  const accepted = await context.acceptor.accept({ items, idempotency });
  if (accepted === "accepted") traceAccepted(context.world, items);
  return accepted;
}

/** Traces each mail from the moment at which its request was read to the commit. */
function traceAccepted({ traces, clock }: Pick<World, "traces" | "clock">, items: Prepared[]): void {
  if (!traces) return;
  const ended_ms = clock.now();
  for (const { id, org_id, created_at, status, environment, recipients, mime } of items) {
    traces.add(id, {
      ...{ name: "accept", place: "first", kind: "server", ended_ms, error: null },
      duration_ms: Math.max(0, ended_ms - created_at.getTime()),
      attributes: {
        ...{ "postern.email.id": id, "postern.organization.id": org_id, "postern.email.status": status },
        ...{ "postern.environment": environment, "postern.email.recipients": recipients.length },
        "postern.email.bytes": mime.length,
      },
    });
  }
}

async function accept(context: Context, items: Prepared[], idempotency: IdempotencyRow | null) {
  const result = await commit(context, items, idempotency);
  if (result !== "over_allowance") return result;
  // Another process or a neighbour in the batch took the rest: say which window it was.
  const { refusals } = await fit(context.used, items);
  const exceeded = refusals.find((refusal) => refusal !== null);
  throw exceeded ?? new Refusal("unavailable", "a sending limit was reached at this moment; try again shortly");
}

function answerOf(prepared: Prepared): SendAnswer {
  const quota = prepared.allowances.find(({ kind }) => kind === "monthly_quota");
  return {
    id: prepared.id,
    message_id: prepared.about.rfc_message_id,
    status: prepared.status,
    environment: prepared.environment,
    suppressed: prepared.suppressed,
    quota_limit: quota?.ceiling ?? 0,
    quota_used: quota ? prepared.quota_used : 0,
    quota_remaining: quota ? Math.max(0, quota.ceiling - prepared.quota_used) : 0,
  };
}

/** What an Idempotency-Key remembers of the request: a single send and a batch of the same bytes are two requests. */
export function requestHash(call: "send" | "batch", body: Buffer | null): Buffer {
  const hash = createHash("sha256");
  if (call === "batch") hash.update("batch\n");
  return hash.update(body ?? "").digest();
}
