// Received mail as people ask for it afterwards: list, one with its parts and deliveries, raw, attachments, and what can
// be done to it by hand: replay, release, delete.
import type { Readable } from "node:stream";
import { showsAuthResults } from "../../accounts/accounts.ts";
import { currentAlias } from "../../aliases/aliases.ts";
import { findDomain } from "../../domains/domains.ts";
import { endOf, readDayOrTime } from "../../http/date-range.ts";
import type { Account } from "../../http/http.ts";
import { isUuid, type Tx } from "../../platform/database/db.ts";
import { uuidFloor } from "../../platform/random.ts";
import { notFound, Refusal } from "../../platform/refusal.ts";
import { openWhole } from "../../platform/storage/blobs.ts";
import type { World } from "../../platform/world.ts";
import type { DeliveryRecord } from "../../webhooks/types.ts";
import { listEventDeliveries } from "../../webhooks/webhooks.ts";
import { deleteReceived } from "../blobs/forget.ts";
import type { Inbound } from "../inbound.ts";
import { newClaimId } from "../process/claim-ids.ts";
import { readMail } from "../process/findings.ts";
import { type Content, describeMail } from "../process/payload.ts";
import { CLAIM_LEASE_MS } from "../process/processor.ts";
import { findBytes } from "../process/raw.ts";
import { storedCopy } from "../process/stored-copy.ts";
import * as queries from "../queries.ts";
import { unpack } from "../search/pack.ts";
import { searchReceived } from "../search/search.ts";
import {
  CUSTOMER_KINDS,
  type Findings,
  type Kind,
  type Mail,
  type Route,
  type Status,
  type StoredAttachment,
} from "../types.ts";
import * as list from "./list-queries.ts";

const DAY_MS = 86_400_000;

export type EmailQuery = Omit<list.EmailFilter, "id_from" | "id_to" | "received_from" | "received_to"> & {
  limit: number;
  offset: number;
  below: string;
  from_date?: string;
  to_date?: string;
  sort?: list.Sort;
  direction?: "asc" | "desc";
};

type Reader = Pick<World, "db">;

/** What is shown of a mail that is not processed yet, or could not be. */
export const NO_FINDINGS: Findings = {
  cc: [],
  reply_to: null,
  date: null,
  in_reply_to: null,
  references: [],
  auto_submitted: false,
  spam: { score: null, verdict: null, symbols: [] },
  auth: {
    dkim: { result: "none", domain: null, selector: null, passed_domains: [], from_aligned: false },
    spf: { result: "none", domain: null, from_aligned: false },
    dmarc: { result: "none", from_domain: null, dkim_aligned: false, spf_aligned: false },
  },
  attachments: [],
  defects: [],
};

/** One page of received mail, newest first unless sorted otherwise, with the total. */
export async function listEmails(world: Pick<World, "db" | "clock">, orgId: string, query: EmailQuery) {
  const { limit, offset, below, sort = "received_at", direction = "desc", from_date, to_date, ...rest } = query;
  const filter: list.EmailFilter = {
    ...rest,
    ...(from_date === undefined ? {} : from(readDayOrTime("from_date", from_date).ms)),
    ...(to_date === undefined ? {} : until(endOf(readDayOrTime("to_date", to_date)))),
  };
  return world.db.asOrg(orgId, async (tx) => {
    const { rows: emails, total } = await searchReceived(tx, orgId, filter, {
      ...{ sort, direction, limit, offset, below },
      now_ms: world.clock.now(),
    });
    return { emails, ...total, limit, offset };
  });
}

function from(ms: number) {
  return { received_from: new Date(ms), id_from: uuidFloor(ms) };
}

function until(ms: number) {
  return { received_to: new Date(ms), id_to: uuidFloor(ms + DAY_MS) };
}

/** One mail: the event's fields (text and html whole), what became of it, and its webhook deliveries; or 404. */
export async function getEmail(
  world: World,
  inbound: Pick<Inbound, "toMail">,
  account: Pick<Account, "org_id" | "plan">,
  id: string,
) {
  const { row, deliveries } = await world.db.asOrg(account.org_id, async (tx) => {
    const found = await requireRow(tx, account.org_id, id);
    return { row: found, deliveries: await listEventDeliveries(tx, account.org_id, found.event_ids) };
  });
  const mail = toMail(inbound, row);
  const content = await contentOf(world, mail);
  const findings = row.findings ?? NO_FINDINGS;
  const shows_auth = showsAuthResults(account.plan) && row.findings !== null;
  const found = { ...row, authentication_results: null, findings: null };
  return {
    id: row.id,
    ...describeMail(world, mail, { found, findings, content, shows_auth }),
    status: row.status,
    reason: row.reason,
    from_address: row.from_address,
    to_address: row.to_address,
    spam_score: row.spam_score,
    has_attachments: row.has_attachments,
    defects: findings.defects,
    rule_ids: row.rule_ids,
    forwards: row.forward_ids,
    deliveries: deliveries.map(showDelivery),
    received_at: row.received_at,
    processed_at: row.processed_at,
    released_at: row.released_at,
  };
}

function showDelivery(delivery: DeliveryRecord) {
  const { id, endpoint_id, event_id, attempt, status, status_code, error, created_at, next_attempt_at } = delivery;
  return { id, endpoint_id, event_id, attempt, status, status_code, error, created_at, next_attempt_at };
}

/** Live or test (simulated); null when there is no such mail. */
export async function environmentOf(world: Reader, orgId: string, id: string) {
  const rows = isUuid(id) ? await world.db.asOrg(orgId, (tx) => list.findEmail(tx, orgId, id)) : [];
  return rows[0]?.environment ?? null;
}

async function requireRow(tx: Parameters<typeof list.findEmail>[0], orgId: string, id: string): Promise<list.EmailRow> {
  const [row] = isUuid(id) ? await list.findEmail(tx, orgId, id) : [];
  if (!row) throw notFound("inbound e-mail");
  return row;
}

/** A row as the functions that process mail have it. */
export function toMail(inbound: Pick<Inbound, "toMail">, row: list.EmailRow): Mail {
  return inbound.toMail({ ...row, kind: row.route.kind, recipient: row.to_address });
}

/** Text, HTML and headers are not kept twice: they are read from the message again. */
export async function contentOf(world: Pick<World, "db" | "blobs">, mail: Mail): Promise<Content> {
  if (!(await findBytes(world, mail.org_id, mail.raw_id))) return { text: null, html: null, headers: [] };
  const { text, html, headers } = await readMail(mail, await mail.examination.parsed());
  return { text, html, headers };
}

/** The stored copy: the message with our trace fields and verdicts in front; or 404. */
export async function getRaw(
  world: World,
  inbound: Pick<Inbound, "toMail">,
  orgId: string,
  id: string,
): Promise<Buffer> {
  const row = await world.db.asOrg(orgId, (tx) => requireRow(tx, orgId, id));
  const bytes = await findBytes(world, orgId, row.raw_id);
  if (!bytes) throw notFound("inbound e-mail");
  const { authentication_results } = row;
  return storedCopy(world, toMail(inbound, row), { bytes, authentication_results, spam: row.findings?.spam ?? null });
}

export type Download = { attachment: StoredAttachment; content: Readable };

/** An attachment of this very mail, or 404. Whole: one that is missing or damaged in the store is trouble of the store. */
export async function openAttachment(
  world: Pick<World, "db" | "blobs">,
  orgId: string,
  id: string,
  attachmentId: string,
): Promise<Download> {
  const row = await world.db.asOrg(orgId, (tx) => requireRow(tx, orgId, id));
  const attachment = row.findings?.attachments.find((one) => one.id === attachmentId);
  if (!attachment) throw notFound("attachment");
  return { attachment, content: await openWhole(world.blobs, attachment.blob_key) };
}

// --- by hand ---------------------------------------------------------------------------------------------------------------

const REPLAYABLE: readonly Status[] = ["delivered", "failed", "dropped"];

/** Processes a mail again as it is wanted now: rules, alias, endpoints, a new event. 409 while it is under way or in quarantine. */
export async function replayEmail(world: World, inbound: Inbound, account: Account, id: string): Promise<void> {
  const problem = (status: Status, kind: Kind) => {
    if (!CUSTOMER_KINDS.some((one) => one === kind)) return "mail of masked addresses goes on once and is forgotten";
    if (REPLAYABLE.includes(status)) return null;
    return status === "quarantined" ? "it is in quarantine; release it instead" : "it is being processed";
  };
  await processAgain(world, inbound, account, { id, problem });
}

/** Lets a mail out of quarantine: it is processed without the judgement on spam. 409 when it is not there. */
export async function releaseEmail(world: World, inbound: Inbound, account: Account, id: string): Promise<void> {
  const problem = (status: Status) => (status === "quarantined" ? null : `it is not in quarantine but ${status}`);
  await processAgain(world, inbound, account, { id, problem });
}

type Received = { org_id: string; id: string };

/**
 * Mail in quarantine as links of other features let it out: by whichever process has the mail next, and once, unless it comes back
 * there, because what is in its way still is.
 */
export function quarantineOf(world: World) {
  const isWaiting = ({ org_id, id }: Received): Promise<boolean> =>
    world.db.asOrg(org_id, async (tx) => {
      const [row] = await list.findEmail(tx, org_id, id);
      return row?.status === "quarantined";
    });
  const release = async (mail: Received): Promise<boolean> => {
    if (!(await isWaiting(mail))) return false;
    const problem = (status: Status) => (status === "quarantined" ? null : "it was released already");
    try {
      await processAgain(world, null, mail, { id: mail.id, problem });
      return true;
    } catch (error) {
      // Somebody released or deleted it meanwhile.
      if (error instanceof Refusal) return false;
      throw error;
    }
  };
  return { isWaiting, release };
}

/** `problem` says why a mail of this status cannot be. Without an engine of its own it waits for whoever has one. */
async function processAgain(
  world: World,
  inbound: Inbound | null,
  account: Pick<Account, "org_id">,
  { id, problem }: { id: string; problem: (status: Status, kind: Kind) => string | null },
): Promise<void> {
  const at = new Date(world.clock.now());
  const claim_id = newClaimId(world);
  const { org_id } = account;
  const row = await world.db.asOrg(org_id, async (tx) => {
    const before = await requireRow(tx, org_id, id);
    const [locked] = await list.lockEmail(tx, org_id, id);
    if (!locked) throw notFound("inbound e-mail");
    const why = problem(locked.status, before.route.kind);
    if (why) throw new Refusal("invalid_state", `the mail cannot be processed again: ${why}`);
    const route = await currentRoute(tx, before.route);
    await unpack(tx, [{ org_id, id }]);
    await list.reopenEmail(tx, org_id, id, { route, released_at: locked.status === "quarantined" ? at : null });
    await queries.requeue(tx, { org_id, id, raw_id: before.raw_id, next_attempt_at: at, claim_id }, CLAIM_LEASE_MS);
    const released_at = locked.status === "quarantined" ? at : before.released_at;
    return { ...before, route, released_at, processed_at: before.processed_at ?? at };
  });
  const job = inbound && { mail: toMail(inbound, row), claim_id, attempts: 1, faults: 0 };
  if (job && inbound.processor.reserve([job])) await inbound.processor.offer([job]);
  else await queries.returnClaims(world.db, [{ org_id, id, claim_id }], at);
}

/** What its alias and its domain want done with it now; what they wanted when it came, where they are gone. */
async function currentRoute(tx: Tx, route: Route): Promise<Route> {
  if (route.kind !== "alias" && route.kind !== "catch_all") return route;
  const domain = route.domain_id === null ? undefined : await findDomain(tx, route.org_id, route.domain_id);
  const domain_webhook_ids = domain?.catch_all_webhook_ids ?? route.domain_webhook_ids;
  if (route.kind === "catch_all" || route.alias_id === null) return { ...route, domain_webhook_ids };
  const alias = await currentAlias(tx, route.org_id, route.alias_id);
  if (!alias) return { ...route, domain_webhook_ids };
  const { action, forward_to, forward_mode, webhook_ids } = alias;
  return { ...route, action, forward_to, forward_mode, webhook_ids, domain_webhook_ids };
}

/** Deletes a mail, its attachments, what its events say and, with its last recipient's, the message itself; or 404. */
export async function deleteEmail(
  world: Pick<World, "db" | "blobs" | "clock">,
  orgId: string,
  id: string,
): Promise<void> {
  await deleteReceived(world, { org_id: orgId, id }, (tx) => requireRow(tx, orgId, id));
}
