// Sent e-mails as they are shown: list, one with its recipients, timeline, content. Changing them: cancel.ts, retry.ts.
import { type EventView, timeline } from "../../events/events.ts";
import { endOf, readDayOrTime } from "../../http/date-range.ts";
import { isUuid, type Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { uuidFloor } from "../../platform/random.ts";
import { notFound } from "../../platform/refusal.ts";
import { readHeld } from "../../platform/storage/blobs.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { EmailFilter } from "../search/list-queries.ts";
import { searchEmails } from "../search/search.ts";

export type EmailQuery = Page & Omit<EmailFilter, "id_from" | "id_to"> & { from_date?: string; to_date?: string };

/** One page of e-mails with their recipients, newest first, and the total. */
export async function listEmails(world: Pick<World, "db" | "clock">, orgId: string, query: EmailQuery) {
  const { limit, offset, below } = query;
  const filter = toFilter(query);
  return world.db.asOrg(orgId, async (tx) => {
    const page = { limit, offset, below, now_ms: world.clock.now() };
    const { rows, total } = await searchEmails(tx, orgId, filter, page);
    return { emails: await withRecipients(tx, orgId, rows), ...total, limit, offset };
  });
}

function toFilter(query: EmailQuery): EmailFilter {
  const { limit: _limit, offset: _offset, below: _below, from_date, to_date, message_id, ...rest } = query;
  return {
    ...rest,
    ...(message_id === undefined ? {} : { message_id: bare(message_id) }),
    ...(from_date === undefined ? {} : { id_from: uuidFloor(readDayOrTime("from_date", from_date).ms) }),
    ...(to_date === undefined ? {} : { id_to: uuidFloor(endOf(readDayOrTime("to_date", to_date))) }),
  };
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
function toEmail(row: queries.EmailRow, recipients: queries.RecipientRow[]) {
  const addressed = (kind: string) => recipients.filter((r) => r.kind === kind).map(({ email }) => email);
  return {
    ...row,
    to: addressed("to"),
    cc: addressed("cc"),
    bcc: addressed("bcc"),
    recipients: recipients.map(shownRecipient),
  };
}

/** That mail is scheduled is said of the e-mail; its recipients are queued, with the time in `next_attempt_at`. */
export function shownRecipient({ message_id: _id, position: _position, status, ...shown }: queries.RecipientRow) {
  const { email, kind, ...rest } = shown;
  return { email, kind, status: status === "scheduled" ? "queued" : status, ...rest };
}

export type EmailView = ReturnType<typeof toEmail>;

/** One e-mail by id or Message-ID (with or without angle brackets), or 404. */
export async function getEmail(world: Pick<World, "db">, orgId: string, idOrMessageId: string): Promise<EmailView> {
  return world.db.asOrg(orgId, async (tx) => {
    const row = await requireRow(tx, orgId, idOrMessageId);
    return (await withRecipients(tx, orgId, [row]))[0] as EmailView;
  });
}

/** One e-mail by id or Message-ID, or 404. */
export async function requireRow(tx: Tx, orgId: string, idOrMessageId: string): Promise<queries.EmailRow> {
  const [row] = await findRows(tx, orgId, idOrMessageId);
  if (!row) throw notFound("e-mail");
  return row;
}

async function findRows(tx: Tx, orgId: string, idOrMessageId: string): Promise<queries.EmailRow[]> {
  if (isUuid(idOrMessageId)) return queries.findEmail(tx, orgId, idOrMessageId);
  return idOrMessageId.includes("\0") ? [] : queries.findEmailByMessageId(tx, orgId, bare(idOrMessageId));
}

/** The timeline, oldest first; it begins with the accept. */
export async function listEvents(world: Pick<World, "db">, orgId: string, id: string): Promise<EventView[]> {
  return world.db.asOrg(orgId, async (tx) => {
    const row = await requireRow(tx, orgId, id);
    const recipients = await queries.listRecipients(tx, orgId, [row.id]);
    const reported = await timeline(tx, orgId, row.id);
    const later = new Set(reported.map(({ recipient }) => recipient));
    const accepted = recipients.map((recipient, place) => acceptedEvent(row, recipient, { place, later }));
    return [...accepted, ...reported];
  });
}

/**
 * The accept writes no event rows of its own: message and recipients say all of it. Who is suppressed and had no event
 * since was so from the start.
 */
function acceptedEvent(
  row: queries.EmailRow,
  recipient: queries.RecipientRow,
  { place, later }: { place: number; later: Set<string | null> },
): EventView {
  const type = row.environment === "test" ? "simulated" : row.scheduled_at ? "scheduled" : "queued";
  return {
    id: idOfPlace(row.id, place),
    event_type: recipient.status === "suppressed" && !later.has(recipient.email) ? "suppressed" : type,
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

/** An id for each recipient, the same at every look: the e-mail's own, its random end moved on by the place. */
function idOfPlace(id: string, place: number): string {
  const end = (Number.parseInt(id.slice(-6), 16) + 1 + place) & 0xffffff;
  return id.slice(0, -6) + end.toString(16).padStart(6, "0");
}

/** Live or test, by id or Message-ID; null when there is no such e-mail. */
export async function environmentOf(world: Pick<World, "db">, orgId: string, id: string) {
  const rows = await world.db.asOrg(orgId, (tx) => findRows(tx, orgId, id));
  return rows[0]?.environment ?? null;
}

/** The stored message as bytes (canonical, before signing); 404 once retention has removed it, 503 while its blob is missing. */
export async function loadContent(world: Pick<World, "db" | "blobs">, orgId: string, id: string) {
  const { row, body } = await world.db.asOrg(orgId, async (tx) => {
    const found = await requireRow(tx, orgId, id);
    return { row: found, body: (await queries.findBody(tx, orgId, found.id))[0] };
  });
  const mime = body ? await readHeld(world.blobs, { bytes: body.mime, blob_key: body.blob_key }) : null;
  if (!mime) throw notFound("stored content of this e-mail");
  return { row, mime };
}

/** One e-mail, locked so that retry, cancel and outcomes take turns; or 404. */
export async function lockRow(tx: Tx, orgId: string, id: string): Promise<queries.LockedRow> {
  const found = await requireRow(tx, orgId, id);
  const [locked] = await queries.lockEmail(tx, orgId, found.id);
  if (!locked) throw notFound("e-mail");
  return locked;
}

/** An e-mail as it stands now in this transaction. */
export async function reread(tx: Tx, orgId: string, id: string): Promise<EmailView> {
  const [row] = await queries.findEmail(tx, orgId, id);
  return toEmail(row as queries.EmailRow, await queries.listRecipients(tx, orgId, [id]));
}
