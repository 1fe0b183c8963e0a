// What people can still do to mail that was accepted: cancel it before its first attempt, or send it again.
import { requireLiveSending } from "../accounts/accounts.ts";
import { type MailEvent, recordEvents } from "../events/events.ts";
import { type ChooseExit, type FindLane, KEEP_TRYING_MS } from "../outbound/outbound.ts";
import type { Tx } from "../platform/db.ts";
import type { Account } from "../platform/http.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { readFrom } from "./content.ts";
import { type EmailView, getEmail, lockRow, reread } from "./emails.ts";
import * as queries from "./queries.ts";
import { readySender } from "./sender.ts";
import type { FindSender } from "./types.ts";

type ChangeWorld = Pick<World, "db" | "clock" | "random" | "seal">;

/** Cancels what was not attempted yet; 409 once an attempt was made or is under way. */
export async function cancelEmail(world: ChangeWorld, account: Account, id: string): Promise<EmailView> {
  const orgId = account.org_id;
  return world.db.asOrg(orgId, async (tx) => {
    const row = await lockRow(tx, orgId, id);
    const recipients = await queries.listRecipients(tx, orgId, [row.id]);
    const open = recipients.filter(({ status }) => status === "queued" || status === "scheduled");
    const removed = await queries.removeUnattempted(tx, orgId, row.id);
    if (open.length === 0 || removed.length < open.length || recipients.some(({ attempts }) => attempts > 0)) {
      const only = "only mail that was not attempted can be canceled";
      throw new Refusal("invalid_state", `this e-mail is ${row.status}; ${only}`);
    }
    const positions = removed.map(({ position }) => position);
    const at = new Date(world.clock.now());
    await queries.setRecipients(tx, orgId, row.id, { positions, status: "canceled" });
    await queries.setStatus(tx, orgId, row.id, { status: "canceled", completed_at: at });
    await record(tx, world, { orgId, row, recipients: open, type: "canceled" });
    return reread(tx, orgId, row.id);
  });
}

export type RetryDeps = {
  findLane: FindLane;
  chooseExit: ChooseExit;
  notify: () => void;
  findSender: FindSender;
};

/** Sends again to recipients that failed, expired or bounced softly; live keys only, 409 when there are none. */
export async function retryEmail(
  world: ChangeWorld,
  deps: RetryDeps,
  account: Account,
  id: string,
): Promise<EmailView> {
  if (account.environment === "test") {
    throw new Refusal("test_key_not_allowed", "a test key cannot retry live mail");
  }
  requireLiveSending(account);
  const orgId = account.org_id;
  const before = await getEmail(world, orgId, id);
  const sender = await readySender(deps, orgId, readFrom(before.from).address.domain);
  const lanes = await findLanes(world, deps, account, { email: before, domain_id: sender.id });
  const view = await world.db.asOrg(orgId, (tx) =>
    requeue(tx, world, { orgId, id: before.id, lanes, host: sender.return_path_host }),
  );
  deps.notify();
  return view;
}

/** The lane of each recipient, by address; lanes are found and made outside the transaction. */
async function findLanes(
  world: ChangeWorld,
  deps: RetryDeps,
  account: Account,
  { email, domain_id }: { email: EmailView; domain_id: string },
) {
  const { org_id } = account;
  const [message] = await world.db.asOrg(org_id, (tx) => queries.findPlacement(tx, org_id, email.id));
  const left = { domain_id, message_id: email.id, pool: null, domain_pool: message?.ip_pool ?? null };
  const { source_id, relay_domain_id } = await deps.chooseExit(account, left);
  const lanes = new Map<string, number>();
  for (const { email: address } of email.recipients) {
    const domain = address.slice(address.lastIndexOf("@") + 1);
    const name = { org_id, source_id, relay_domain_id, domain, class: message?.class ?? 0 };
    lanes.set(address, (await deps.findLane(name)).id);
  }
  return lanes;
}

type Requeue = { orgId: string; id: string; lanes: Map<string, number>; host: string };

async function requeue(tx: Tx, world: ChangeWorld, { orgId, id, lanes, host }: Requeue): Promise<EmailView> {
  const row = await lockRow(tx, orgId, id);
  const recipients = await queries.listRecipients(tx, orgId, [id]);
  const again = row.environment === "live" ? recipients.filter(isRetryable) : [];
  if (again.length === 0) {
    const only = "only failed, expired or softly bounced mail can be retried";
    throw new Refusal("invalid_state", `this e-mail is ${row.status}; ${only}`);
  }
  const [body] = await queries.findBody(tx, orgId, id);
  if (!body) throw new Refusal("invalid_state", "the content of this e-mail is no longer stored");
  const now = new Date(world.clock.now());
  const rows = again.map(({ position, email }) => ({
    position,
    email,
    lane_id: lanes.get(email) as number,
    due_at: now,
    expires_at: new Date(now.getTime() + KEEP_TRYING_MS),
    return_path_host: host,
  }));
  const positions = again.map(({ position }) => position);
  const isAll = recipients.every((recipient) => again.includes(recipient) || recipient.status === "queued");
  await queries.insertDeliveries(tx, orgId, id, { rows, now });
  await queries.setRecipients(tx, orgId, id, { positions, status: "queued" });
  await queries.setStatus(tx, orgId, id, { status: isAll ? "queued" : "sending", completed_at: null });
  await record(tx, world, { orgId, row, recipients: again, type: "retried" });
  return reread(tx, orgId, id);
}

function isRetryable({ status, bounce_type }: queries.RecipientRow): boolean {
  return status === "failed" || status === "expired" || (status === "bounced" && bounce_type === "soft");
}

type Change = {
  orgId: string;
  row: queries.EmailRow;
  recipients: queries.RecipientRow[];
  type: "canceled" | "retried";
};

function record(tx: Tx, world: ChangeWorld, change: Change): Promise<void> {
  const events = change.recipients.map((recipient) => toEvent(world, change, recipient));
  return recordEvents(tx, world, events);
}

function toEvent(world: ChangeWorld, { orgId, row, type }: Change, recipient: queries.RecipientRow): MailEvent {
  return {
    org_id: orgId,
    id: world.random.uuid(),
    event_type: type,
    message_id: row.id,
    recipient: recipient.email,
    at: new Date(world.clock.now()),
    attempt: null,
    smtp_code: null,
    enhanced_code: null,
    message: null,
    mx_host: null,
    mx_ip: null,
    source_ip: null,
    tls: null,
    duration_ms: null,
    class: null,
    isp: null,
    bounce_type: null,
    suppress: false,
    next_attempt_at: null,
    announces: false,
    about: {
      domain_id: row.domain_id,
      rfc_message_id: row.message_id,
      from_address: row.from,
      subject: row.subject,
      tags: row.tags,
      metadata: row.metadata,
      environment: row.environment,
    },
  };
}
