// What came for postmaster@, abuse@ and the other mailboxes of our own hosts, as the dashboard shows it to operators: pages of it,
// one with its content, its source and files. Nothing here answers, forwards or deletes.
import { isUuid } from "../../platform/database/db.ts";
import { LAST_ID } from "../../platform/database/page.ts";
import { notFound } from "../../platform/refusal.ts";
import { openWhole } from "../../platform/storage/blobs.ts";
import type { World } from "../../platform/world.ts";
import type { Inbound } from "../inbound.ts";
import { findBytes } from "../process/raw.ts";
import { storedCopy } from "../process/stored-copy.ts";
import { OPERATOR_ORG_ID } from "../receive/own-addresses.ts";
import { contentOf, type Download, NO_FINDINGS, toMail } from "./emails.ts";
import type { EmailRow } from "./list-queries.ts";
import * as queries from "./operator-queries.ts";

export type AskedMail = queries.OperatorFilter & { after?: string | undefined; limit: number };

/** One page, newest first, with the total and where the next one begins. */
export async function pageOperatorMail(world: Pick<World, "db">, { after, limit, ...filter }: AskedMail) {
  const asked = { ...filter, below: after ?? LAST_ID, limit: limit + 1 };
  const [found, total] = await Promise.all([
    queries.listOperatorMail(world.db, OPERATOR_ORG_ID, asked),
    queries.countOperatorMail(world.db, OPERATOR_ORG_ID, filter),
  ]);
  const mails = found.slice(0, limit);
  return { mails, ...total, next: found.length > limit ? (mails.at(-1)?.id ?? null) : null };
}

/** One mail with its content; or 404. What was found out when it was processed is null where it was not. */
export async function getOperatorMail(world: World, inbound: Pick<Inbound, "toMail">, id: string) {
  const row = await requireRow(world, id);
  const { cc, reply_to, date, attachments, defects } = row.findings ?? NO_FINDINGS;
  return {
    ...{ id: row.id, mailbox: row.route.kind === "operator" ? row.route.mailbox : "", recipient: row.to_address },
    ...{ status: row.status, reason: row.reason, size: row.size, received_at: row.received_at },
    ...{ message_id: row.message_id, from: row.from_address, subject: row.subject, cc, reply_to, date, defects },
    envelope: { from: row.envelope_from, remote_ip: row.remote_ip, helo: row.helo, tls: row.tls !== null },
    auth_results: row.findings?.auth ?? null,
    attachments: attachments.map(({ id, filename, content_type, size }) => ({ id, filename, content_type, size })),
    ...(await contentOf(world, toMail(inbound, row))),
  };
}

/** The message with our trace fields and verdicts in front, as customers get theirs; or 404. */
export async function getOperatorSource(world: World, inbound: Pick<Inbound, "toMail">, id: string): Promise<Buffer> {
  const row = await requireRow(world, id);
  const bytes = await findBytes(world, OPERATOR_ORG_ID, row.raw_id);
  if (!bytes) throw notFound("mail");
  const { authentication_results } = row;
  return storedCopy(world, toMail(inbound, row), { bytes, authentication_results, spam: null });
}

/** An attachment of this very mail, or 404. */
export async function openOperatorAttachment(
  world: Pick<World, "db" | "blobs">,
  id: string,
  attachmentId: string,
): Promise<Download> {
  const { findings } = await requireRow(world, id);
  const attachment = findings?.attachments.find((one) => one.id === attachmentId);
  if (!attachment) throw notFound("attachment");
  return { attachment, content: await openWhole(world.blobs, attachment.blob_key) };
}

async function requireRow(world: Pick<World, "db">, id: string): Promise<EmailRow> {
  const [row] = isUuid(id) ? await queries.findOperatorMail(world.db, OPERATOR_ORG_ID, id) : [];
  if (!row) throw notFound("mail");
  return row;
}
