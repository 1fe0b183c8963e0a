// Sending mail again, by hand: what could not be delivered goes back into the queue under the rules that new mail is under.
// Suppressions (422) and what is left of the quota and of warming (429) are looked at as if it were sent now; a forward of
// received mail is under none of them, as it was not the first time. The engine's own retries: outbound/.

import { requireLiveSending } from "../../accounts/accounts.ts";
import { findDomain } from "../../domains/domains.ts";
import { isSentByCustomer } from "../../events/events.ts";
import type { Account } from "../../http/http.ts";
import { domainOf } from "../../mail/address.ts";
import { isSimulated } from "../../mail/simulated.ts";
import { KEEP_TRYING_MS, type Lane, lanesInPlace } from "../../outbound/outbound.ts";
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { refoldMessage } from "../late/late-queries.ts";
import { forMessage, isOverAllowance, monthlyQuota, overAllowance, usedOf } from "../prepare/allowances.ts";
import { readFrom } from "../prepare/content.ts";
import { readySender } from "../prepare/sender.ts";
import { allSuppressed, suppressedAmong } from "../prepare/suppressed.ts";
import * as queries from "../queries.ts";
import type { Allowance, Sender, SendingDeps, Suppressed } from "../types.ts";
import { recordChange } from "./change-events.ts";
import { type EmailView, lockRow, requireRow, reread } from "./emails.ts";
import * as retrying from "./retry-queries.ts";

type RetryWorld = Pick<World, "db" | "clock" | "random" | "config">;

export type RetryDeps = Pick<
  SendingDeps,
  "findLane" | "chooseExit" | "notify" | "findSender" | "findSuppressed" | "warmingAllowances"
>;

/** Everything that is looked up before the transaction. */
type Plan = {
  row: queries.EmailRow;
  placement: retrying.Placement;
  sender: Pick<Sender, "id" | "return_path_host">;
  suppressed: Suppressed[];
  /** The lane of each recipient that is not suppressed, by address. */
  lanes: Map<string, Lane>;
  allowances: Allowance[];
};

/** Each turn is lost only to somebody who took the rest of a window meanwhile. */
const TURNS_MAX = 5;

/**
 * Sends again to recipients that failed, expired or bounced softly, live keys only; those who are suppressed by now become
 * `suppressed`. 409 when there is nobody to send to again, 422 when all of them are suppressed, 429 when a window is full.
 */
export async function retryEmail(world: RetryWorld, deps: RetryDeps, account: Account, id: string): Promise<EmailView> {
  if (account.environment === "test") {
    throw new Refusal("test_key_not_allowed", "a test key cannot retry live mail");
  }
  requireLiveSending(account);
  for (let turn = 0; turn < TURNS_MAX; turn += 1) {
    const plan = await planRetry(world, deps, account, id);
    const view = await withPartitions(world, () => requeueUnlessOver(world, account.org_id, plan));
    if (!view) continue;
    deps.notify();
    return view;
  }
  throw new Refusal("unavailable", "a sending limit was reached at this moment; try again shortly");
}

async function planRetry(world: RetryWorld, deps: RetryDeps, account: Account, id: string): Promise<Plan> {
  const { org_id } = account;
  const found = await world.db.asOrg(org_id, async (tx) => {
    const row = await requireRow(tx, org_id, id);
    const [placement] = await retrying.findPlacement(tx, org_id, row.id);
    return { row, placement: placement as retrying.Placement, again: await listRetryable(tx, org_id, row) };
  });
  const { row, placement, again } = found;
  const isOwn = isSentByCustomer(placement);
  const sender = isOwn
    ? await readySender(deps, org_id, readFrom(row.from).address.domain)
    : await forwarder(world, deps, org_id, found);
  const suppressed = isOwn ? await suppressedOf(deps, account, found, sender.id) : [];
  const blocked = new Set(suppressed.map(({ email }) => email));
  const open = again.filter(({ email }) => !blocked.has(email));
  const lanes = await findLanes(deps, account, { ...found, again: open, domain_id: sender.id });
  const now = world.clock.now();
  const allowances = isOwn
    ? [...(await deps.warmingAllowances(org_id, sender.id, now)), monthlyQuota(account, now)]
    : [];
  return { row, placement, sender, suppressed, lanes, allowances };
}

type Found = { row: queries.EmailRow; placement: retrying.Placement; again: queries.RecipientRow[] };

/** The recipients to send to again, or 409. */
async function listRetryable(tx: Tx, orgId: string, row: queries.EmailRow): Promise<queries.RecipientRow[]> {
  const recipients = row.environment === "live" ? await queries.listRecipients(tx, orgId, [row.id]) : [];
  const again = recipients.filter(isRetryable);
  if (again.length > 0) return again;
  const only = "only failed, expired or softly bounced mail can be retried";
  throw new Refusal("invalid_state", `this e-mail is ${row.status}; ${only}`);
}

function isRetryable({ status, bounce_type }: queries.RecipientRow): boolean {
  return status === "failed" || status === "expired" || (status === "bounced" && bounce_type === "soft");
}

/** The domain that forwarded, which is not its author's; 409 for what else the service made. */
async function forwarder(world: RetryWorld, deps: RetryDeps, orgId: string, { row, placement }: Found) {
  if (placement.origin !== "forward") {
    throw new Refusal("invalid_state", "the service wrote this e-mail itself; it cannot be retried");
  }
  const domain = await world.db.asOrg(orgId, (tx) => findDomain(tx, orgId, row.domain_id));
  const sender = domain && (await deps.findSender(orgId, domain.domain));
  if (!sender) throw new Refusal("invalid_state", "the domain that forwarded this e-mail is not here any more");
  return sender;
}

/** Those who must not get it now, of those it would go to again; 422 when that is everybody. */
async function suppressedOf(deps: RetryDeps, { org_id }: Account, found: Found, domainId: string) {
  const { row, placement, again } = found;
  const emails = again.map(({ email }) => email);
  const suppressed = await suppressedAmong(deps, org_id, emails, { ...row, ...placement, domain_id: domainId });
  if (suppressed.length === again.length) throw allSuppressed(suppressed);
  return suppressed;
}

/** The lane of each recipient, by address; lanes are found and made outside the transaction. */
async function findLanes(
  deps: RetryDeps,
  account: Account,
  { row, placement, again, domain_id }: Found & { domain_id: string },
): Promise<Map<string, Lane>> {
  const { org_id } = account;
  const left = { domain_id, message_id: row.id, pool: null, domain_pool: placement.ip_pool };
  const { source_id, relay_domain_id } = await deps.chooseExit(account, left);
  const lanes = new Map<string, Lane>();
  for (const { email } of again) {
    const domain = domainOf(email);
    const name = { org_id, source_id, relay_domain_id, domain, class: placement.class };
    lanes.set(email, await deps.findLane(name));
  }
  return lanes;
}

/** Null: others took the rest of a window between our look at it and now. */
async function requeueUnlessOver(world: RetryWorld, orgId: string, plan: Plan): Promise<EmailView | null> {
  try {
    return await world.db.asOrg(orgId, (tx) => requeue(tx, world, orgId, plan));
  } catch (error) {
    if (isOverAllowance(error)) return null;
    throw error;
  }
}

async function requeue(tx: Tx, world: RetryWorld, orgId: string, plan: Plan): Promise<EmailView> {
  const { id } = plan.row;
  const row = await lockRow(tx, orgId, id);
  const recipients = await listRetryable(tx, orgId, row);
  const [body] = await queries.findBody(tx, orgId, id);
  if (!body) throw new Refusal("invalid_state", "the content of this e-mail is no longer stored");
  const now = new Date(world.clock.now());
  const again = recipients.filter(({ email }) => plan.lanes.has(email));
  const blocked = recipients.filter(({ email }) => plan.suppressed.some((one) => one.email === email));
  const counted = again.filter(({ email }) => !isSimulated(world.config, email)).length;
  if (counted > 0) await raise(tx, orgId, plan.allowances, counted);
  const lanes = await lanesInPlace(tx, [...plan.lanes.values()], now);
  const laneOf = (email: string): number => lanes.get(plan.lanes.get(email)?.id as number)?.id as number;
  const rows = again.map(({ position, email }) => ({
    position,
    email,
    lane_id: laneOf(email),
    due_at: now,
    expires_at: new Date(now.getTime() + KEEP_TRYING_MS),
    return_path_host: plan.sender.return_path_host,
  }));
  await retrying.insertDeliveries(tx, orgId, id, { rows, now });
  await queries.setRecipients(tx, orgId, id, { positions: placesOf(again), status: "queued", next_attempt_at: now });
  await suppressAll(tx, world, { org_id: orgId, row, recipients: blocked });
  await refoldMessage(tx, orgId, id, now);
  const { origin } = plan.placement;
  await recordChange(tx, world, { org_id: orgId, row, recipients: again, type: "retried", origin });
  return reread(tx, orgId, id);
}

function placesOf(recipients: queries.RecipientRow[]): number[] {
  return recipients.map(({ position }) => position);
}

/** Counts the recipients in each window, before the lanes are touched: the accepting statement has the same order. */
async function raise(tx: Tx, orgId: string, windows: Allowance[], count: number): Promise<void> {
  const allowances = windows.map((window) => forMessage(window, count));
  const used = await usedOf(tx, orgId, allowances);
  for (const [index, window] of allowances.entries()) {
    const already = used[index] as number;
    if (already + count > window.ceiling) throw overAllowance(window, already, count);
  }
  if (allowances.length > 0) await retrying.raiseAllowances(tx, orgId, { windows: allowances, count });
}

type Blocked = { org_id: string; row: queries.EmailRow; recipients: queries.RecipientRow[] };

async function suppressAll(tx: Tx, world: RetryWorld, { org_id, row, recipients }: Blocked): Promise<void> {
  if (recipients.length === 0) return;
  const to = { positions: placesOf(recipients), status: "suppressed", next_attempt_at: null };
  await queries.setRecipients(tx, org_id, row.id, to);
  const at = new Date(world.clock.now());
  await retrying.countSuppressed(tx, { org_id, domain_id: row.domain_id, at, recipients: recipients.length });
  await recordChange(tx, world, { org_id, row, recipients, type: "suppressed" });
}
