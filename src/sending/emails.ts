// Sent e-mails as they are shown and changed afterwards: list, one with its recipients, timeline, content, retry, cancel.
import { requireLiveSending } from "../accounts/accounts.ts";
import { type EventView, type MailEvent, recordEvents, timeline } from "../events/events.ts";
import { DEFAULT_SOURCE_ID, type FindLane, KEEP_TRYING_MS } from "../outbound/outbound.ts";
import { isUuid, type Tx } from "../platform/db.ts";
import type { Account } from "../platform/http.ts";
import { uuidFloor } from "../platform/random.ts";
import { invalid, notFound, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { readFrom } from "./content.ts";
import * as queries from "./queries.ts";
import { type FindSender, readySender } from "./sending.ts";

export type EmailQuery = {
  limit: number;
  offset: number;
  status?: string;
  from?: string;
  to?: string;
  subject?: string;
  tag?: string;
  domain_id?: string;
  environment?: string;
  message_id?: string;
  from_date?: string;
  to_date?: string;
};

const DAY_MS = 86_400_000;

/** One page of e-mails with their recipients, newest first, and the exact total. */
export async function listEmails(world: Pick<World, "db">, orgId: string, query: EmailQuery) {
  const { limit, offset } = query;
  const filter = toFilter(query);
  return world.db.asOrg(orgId, async (tx) => {
    const rows = await queries.listEmails(tx, orgId, filter, { limit, offset });
    const [count] = await queries.countEmails(tx, orgId, filter);
    return { emails: await withRecipients(tx, orgId, rows), total: count?.total ?? 0, limit, offset };
  });
}

function toFilter(query: EmailQuery): queries.EmailFilter {
  const { limit: _limit, offset: _offset, from_date, to_date, message_id, ...rest } = query;
  return {
    ...rest,
    ...(message_id === undefined ? {} : { message_id: bare(message_id) }),
    ...(from_date === undefined ? {} : { id_from: uuidFloor(readDate("from_date", from_date).ms) }),
    ...(to_date === undefined ? {} : { id_to: uuidFloor(endOf(readDate("to_date", to_date))) }),
  };
}

/** A day (the whole of it) or a moment. */
function readDate(field: string, text: string): { ms: number; isDay: boolean } {
  const ms = Date.parse(text);
  if (Number.isNaN(ms) || !/^\d{4}-\d\d-\d\d/.test(text)) {
    throw invalid(field, `the '${field}' query parameter is not a date (2026-11-20) or a time (RFC 3339)`);
  }
  return { ms, isDay: text.length === 10 };
}

function endOf({ ms, isDay }: { ms: number; isDay: boolean }): number {
  return isDay ? ms + DAY_MS : ms + 1;
}

function bare(messageId: string): string {
  return messageId.replace(/^<(.*)>$/, "$1");
}

async function withRecipients(tx: Tx, orgId: string, rows: queries.EmailRow[]) {
  const all = await queries.listRecipients(
    tx,
    orgId,
    rows.map(({ id }) => id),
  );
  const byMessage = Map.groupBy(all, ({ message_id }) => message_id);
  return rows.map((row) => toEmail(row, byMessage.get(row.id) ?? []));
}

/** The record of the contract: an e-mail with what became of each recipient. */
export function toEmail(row: queries.EmailRow, recipients: queries.RecipientRow[]) {
  const addressed = (kind: string) => recipients.filter((r) => r.kind === kind).map(({ email }) => email);
  return {
    ...row,
    to: addressed("to"),
    cc: addressed("cc"),
    bcc: addressed("bcc"),
    recipients: recipients.map(({ message_id: _id, position: _position, ...shown }) => shown),
  };
}

export type EmailView = ReturnType<typeof toEmail>;

/** One e-mail by id or Message-ID (with or without angle brackets), or 404. */
export async function getEmail(world: Pick<World, "db">, orgId: string, idOrMessageId: string): Promise<EmailView> {
  return world.db.asOrg(orgId, async (tx) => {
    const row = await findRow(tx, orgId, idOrMessageId);
    return (await withRecipients(tx, orgId, [row]))[0] as EmailView;
  });
}

async function findRow(tx: Tx, orgId: string, idOrMessageId: string): Promise<queries.EmailRow> {
  const rows = isUuid(idOrMessageId)
    ? await queries.findEmail(tx, orgId, idOrMessageId)
    : idOrMessageId.includes("\0")
      ? []
      : await queries.findEmailByMessageId(tx, orgId, bare(idOrMessageId));
  if (!rows[0]) throw notFound("e-mail");
  return rows[0];
}

/** The timeline, oldest first; it begins with the accept. */
export async function listEvents(world: Pick<World, "db">, orgId: string, id: string): Promise<EventView[]> {
  return world.db.asOrg(orgId, async (tx) => {
    const row = await findRow(tx, orgId, id);
    const recipients = await queries.listRecipients(tx, orgId, [row.id]);
    const accepted = recipients.map((recipient) => acceptedEvent(row, recipient));
    return [...accepted, ...(await timeline(tx, orgId, row.id))];
  });
}

/** The accept writes no event rows of its own: message and recipients say all of it. */
function acceptedEvent(row: queries.EmailRow, recipient: queries.RecipientRow): EventView {
  const type = row.environment === "test" ? "simulated" : row.scheduled_at ? "scheduled" : "queued";
  return {
    id: row.id,
    event_type: recipient.status === "suppressed" ? "suppressed" : type,
    recipient: recipient.email,
    timestamp: row.created_at,
    attempt: null,
    smtp_code: null,
    enhanced_code: null,
    message: null,
    mx_host: null,
    mx_ip: null,
    source_ip: null,
    tls: null,
    duration_ms: null,
  };
}

/** The stored message as bytes (canonical, before signing); 404 once retention has removed it. */
export async function loadContent(world: Pick<World, "db" | "blobs">, orgId: string, id: string) {
  const { row, body } = await world.db.asOrg(orgId, async (tx) => {
    const found = await findRow(tx, orgId, id);
    return { row: found, body: (await queries.findBody(tx, orgId, found.id))[0] };
  });
  const mime = body?.mime ?? (body?.blob_key ? await world.blobs.get(body.blob_key) : null);
  if (!mime) throw notFound("stored content of this e-mail");
  return { row, mime };
}

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
      throw new Refusal(
        "invalid_state",
        `this e-mail is ${row.status}; only mail that was not attempted can be canceled`,
      );
    }
    const positions = removed.map(({ position }) => position);
    await queries.setRecipients(tx, orgId, row.id, positions, "canceled");
    await queries.setStatus(tx, orgId, row.id, "canceled", new Date(world.clock.now()));
    await recordEvents(
      tx,
      world,
      open.map((recipient) => changeEvent(world, orgId, row, recipient, "canceled")),
    );
    return toEmail(...(await reread(tx, orgId, row.id)));
  });
}

/** Sends again to recipients that failed, expired or bounced softly; live keys only, 409 when there are none. */
export async function retryEmail(
  world: ChangeWorld,
  deps: { findLane: FindLane; notify: () => void; findSender: FindSender },
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
  const lanes = new Map<string, number>();
  for (const { email } of before.recipients) {
    const domain = email.slice(email.lastIndexOf("@") + 1);
    const lane = await deps.findLane({ org_id: orgId, source_id: DEFAULT_SOURCE_ID, domain, class: 0 });
    lanes.set(email, lane.id);
  }
  const view = await world.db.asOrg(orgId, (tx) =>
    requeue(tx, world, { orgId, id: before.id, lanes, host: sender.return_path_host }),
  );
  deps.notify();
  return view;
}

type Requeue = { orgId: string; id: string; lanes: Map<string, number>; host: string };

async function requeue(tx: Tx, world: ChangeWorld, { orgId, id, lanes, host }: Requeue): Promise<EmailView> {
  const row = await lockRow(tx, orgId, id);
  const recipients = await queries.listRecipients(tx, orgId, [id]);
  const again = row.environment === "live" ? recipients.filter(isRetryable) : [];
  if (again.length === 0) {
    throw new Refusal(
      "invalid_state",
      `this e-mail is ${row.status}; only failed, expired or softly bounced mail can be retried`,
    );
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
  await queries.insertDeliveries(tx, orgId, id, rows, now);
  await queries.setRecipients(
    tx,
    orgId,
    id,
    again.map(({ position }) => position),
    "queued",
  );
  const statuses = recipients.map((recipient) => (again.includes(recipient) ? "queued" : recipient.status));
  await queries.setStatus(tx, orgId, id, statuses.some((status) => status !== "queued") ? "sending" : "queued", null);
  await recordEvents(
    tx,
    world,
    again.map((recipient) => changeEvent(world, orgId, row, recipient, "retried")),
  );
  return toEmail(...(await reread(tx, orgId, id)));
}

function isRetryable({ status, bounce_type }: queries.RecipientRow): boolean {
  return status === "failed" || status === "expired" || (status === "bounced" && bounce_type === "soft");
}

async function lockRow(tx: Tx, orgId: string, id: string): Promise<queries.EmailRow> {
  const found = await findRow(tx, orgId, id);
  return (await queries.lockEmail(tx, orgId, found.id))[0] as queries.EmailRow;
}

async function reread(tx: Tx, orgId: string, id: string): Promise<[queries.EmailRow, queries.RecipientRow[]]> {
  const [row] = await queries.findEmail(tx, orgId, id);
  return [row as queries.EmailRow, await queries.listRecipients(tx, orgId, [id])];
}

function changeEvent(
  world: ChangeWorld,
  orgId: string,
  row: queries.EmailRow,
  recipient: queries.RecipientRow,
  type: "canceled" | "retried",
): MailEvent {
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
