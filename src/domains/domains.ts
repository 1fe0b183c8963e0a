// Customers' domains: adding, proving, changing, removing, and who may send or receive with them. Face of the feature.
// DKIM keys belong to the dkim feature, which comes in through `DomainPorts`.

import type { Account } from "../http/http.ts";
import { normalizeDomain } from "../mail/address.ts";
import { isDuplicate, isUuid, type Query, type Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { coalesce, coalesceByOrg } from "../platform/fair/coalesce.ts";
import { remember } from "../platform/fair/remember.ts";
import { invalid, notFound, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import * as checking from "./checking.ts";
import { readDomainName } from "./names.ts";
import * as queries from "./queries.ts";
import * as records from "./records.ts";
import { isVerified, nextCheck, notReadyReason, receives, sends, switchedOffReason, withType } from "./state.ts";
import type {
  DnsRecord,
  DomainPorts,
  DomainRow,
  DomainType,
  ReceivingDomain,
  SendingDomain,
  TlsPolicy,
} from "./types.ts";

export { domainOfReturnPath } from "./records.ts";
export { receives as receivesMail } from "./state.ts";

/** The most domains of one organization. */
const DOMAINS_MAX = 10_000;
const TOKEN_LENGTH = 32;
const DMARC_TOKEN_BYTES = 16;

type Core = Pick<World, "db" | "clock">;

/** A domain as the API shows it. */
export type DomainRecord = DomainRow & { verified: boolean };

export type CreateDomain = {
  domain: string;
  type?: DomainType;
  catch_all_enabled?: boolean;
  inbound_mx_acknowledged?: boolean;
  /** `warmed`: it has sent mail before, and needs no warming. */
  warming?: "auto" | "warmed";
};

/**
 * Adds a domain as `pending`. 400 for what is no domain of a customer, 409 when the organization has it already. A
 * domain that sends gets its first DKIM key with it, so that /dns shows at once all that is to publish.
 */
export async function createDomain(
  world: Core & Pick<World, "random" | "config">,
  ports: DomainPorts,
  { org_id: orgId, acts_on_live }: Pick<Account, "org_id" | "acts_on_live">,
  request: CreateDomain,
): Promise<DomainRecord> {
  const now = world.clock.now();
  const row: queries.NewDomain = {
    id: world.random.uuid(),
    domain: readDomainName(world.config, request.domain),
    type: request.type ?? "inbound",
    ownership_token: world.random.token(TOKEN_LENGTH),
    dmarc_token: world.random.bytes(DMARC_TOKEN_BYTES).toString("hex"),
    catch_all_enabled: request.catch_all_enabled ?? false,
    inbound_mx_acknowledged: request.inbound_mx_acknowledged ?? false,
    environment: acts_on_live ? "live" : "test",
    created_at: new Date(now),
    next_check_at: nextCheck({ watch_since: new Date(now), checks: [] }, now),
  };
  await world.db.asOrg(orgId, (tx) => refuseExisting(tx, orgId, row.domain));
  const storeKey = sends(row.type) ? await ports.dkim.prepareFirstKey(orgId) : null;
  try {
    const created = await world.db.asOrg(orgId, async (tx) => {
      const rows = await queries.insertDomain(tx, orgId, row);
      await storeKey?.(tx, row);
      if (request.warming === "warmed") await ports.beginWarmed(tx, orgId, row.id);
      return rows;
    });
    return toRecord(world, created[0] as DomainRow);
  } catch (error) {
    if (isDuplicate(error, "domain_org_id_domain_key")) throw alreadyThere(row.domain);
    throw error;
  }
}

/** Before a key is made, which costs a tenth of a second of processor time. The unique index decides races. */
async function refuseExisting(tx: Tx, orgId: string, domain: string): Promise<void> {
  const [existing] = await queries.findByName(tx, orgId, domain);
  if (existing) throw alreadyThere(domain);
  const count = await queries.countDomains(tx, orgId);
  if (count.total < DOMAINS_MAX) return;
  throw new Refusal("plan_limit_reached", `an organization may have at most ${DOMAINS_MAX} domains`);
}

function alreadyThere(domain: string): Refusal {
  return new Refusal("already_exists", `the domain ${domain} was added already`, { field: "domain" });
}

/** One page of the organization's domains, newest first, with the total. */
export async function listDomains(world: Core, orgId: string, page: Page) {
  return world.db.asOrg(orgId, async (tx) => {
    const rows = await queries.listDomains(tx, orgId, page);
    const count = await queries.countDomains(tx, orgId);
    return { domains: rows.map((row) => toRecord(world, row)), ...count, ...page };
  });
}

/** One domain by id or name, or 404. */
export async function getDomain(world: Core, orgId: string, idOrName: string): Promise<DomainRecord> {
  return toRecord(world, await world.db.asOrg(orgId, (tx) => requireDomain(tx, orgId, idOrName)));
}

function toRecord(world: Pick<World, "clock">, row: DomainRow): DomainRecord {
  return { ...row, verified: isVerified(row, world.clock.now()) };
}

export type DomainChanges = {
  type?: DomainType;
  catch_all_enabled?: boolean;
  catch_all_webhook_ids?: string[];
  active?: boolean;
  tls_policy?: TlsPolicy;
  ip_pool?: string | null;
};

/**
 * Changes the given fields only, or 404. Another type asks for other records: what was proven stays proven, what is
 * missing is looked for at once. A domain that is switched on again sends what waited for that.
 */
export async function updateDomain(
  world: Core,
  ports: DomainPorts,
  orgId: string,
  change: { id: string; changes: DomainChanges },
): Promise<DomainRecord> {
  const changes = { ...change.changes };
  const webhookIds = changes.catch_all_webhook_ids?.map((id) => id.toLowerCase());
  if (webhookIds) changes.catch_all_webhook_ids = [...new Set(webhookIds)];
  const storeKey = await keyForChange(world, ports, orgId, change);
  const { before, row } = await world.db.asOrg(orgId, async (tx) => {
    const before = await requireLocked(tx, orgId, change.id);
    await refuseUnknownWebhooks(tx, ports, orgId, changes.catch_all_webhook_ids ?? []);
    if (changes.ip_pool) await ports.refuseUnknownPool(tx, orgId, changes.ip_pool);
    await storeKey?.(tx, before);
    const at = new Date(world.clock.now());
    const { type, ...settings } = changes;
    const turned = type && type !== before.type ? withType(before, type, at) : before;
    const rows = await queries.updateDomain(tx, orgId, { ...turned, ...settings, updated_at: at });
    const after = rows[0] as DomainRow;
    if (before.status !== "verified" && after.status === "verified" && sends(after.type)) {
      await ports.onSendingVerified(tx, orgId, after.id);
    }
    return { before, row: after };
  });
  if (row.active && !before.active) await ports.hastenWaiting(orgId, row.id);
  return toRecord(world, row);
}

/** A domain that begins to send needs a first key, which is made outside the transaction. */
async function keyForChange(
  world: Core,
  ports: DomainPorts,
  orgId: string,
  { id, changes }: { id: string; changes: DomainChanges },
) {
  if (!changes.type || !sends(changes.type)) return null;
  const keys = await world.db.asOrg(orgId, async (tx) =>
    ports.dkim.records(tx, orgId, await requireDomain(tx, orgId, id)),
  );
  return keys.length > 0 ? null : ports.dkim.prepareFirstKey(orgId);
}

async function refuseUnknownWebhooks(tx: Tx, ports: DomainPorts, orgId: string, ids: string[]): Promise<void> {
  if (ids.length === 0) return;
  const unknown = await ports.unknownWebhooks(tx, orgId, ids);
  const index = ids.findIndex((id) => unknown.includes(id));
  if (index < 0) return;
  const field = `catch_all_webhook_ids[${index}]`;
  throw invalid(field, `the '${field}' field is not the id of a webhook of this organization`);
}

/**
 * Removes a domain with its keys, or 404; 409 while aliases or queued mail need it, unless forced. Returns its id when no
 * process signs with its keys any more.
 */
export async function deleteDomain(
  world: Core,
  ports: DomainPorts,
  orgId: string,
  { id, force }: { id: string; force: boolean },
): Promise<string> {
  const removed = await world.db.asOrg(orgId, async (tx) => {
    const row = await requireLocked(tx, orgId, id);
    if (!force) await refuseInUse(tx, ports, row);
    await queries.deleteDomain(tx, orgId, row.id);
    return row;
  });
  if (removed.has_active_key) await ports.dkim.untilForgotten();
  return removed.id;
}

async function refuseInUse(tx: Tx, ports: DomainPorts, row: DomainRow): Promise<void> {
  const refuse = (what: string) =>
    new Refusal("invalid_state", `the domain ${row.domain} has ${what}; add ?force=true to remove it all the same`);
  if (await ports.hasAliases(tx, row.org_id, row.id)) throw refuse("aliases");
  if (await ports.hasQueuedMail(tx, row.org_id, row.id)) throw refuse("mail waiting to be delivered");
}

/** The records to publish and what the last check saw of each, or 404. Asks no name server. */
export async function listDnsRecords(
  world: Core & Pick<World, "config">,
  ports: DomainPorts,
  orgId: string,
  idOrName: string,
): Promise<{ domain: string; records: DnsRecord[] }> {
  return world.db.asOrg(orgId, async (tx) => {
    const row = await requireDomain(tx, orgId, idOrName);
    return { domain: row.domain, records: records.withChecks(await checking.loadExpected(world, ports, tx, row), row) };
  });
}

export type Verification = DomainRecord & { summary: string; records: DnsRecord[] };

/**
 * Asks the name servers now. A check, never a reset: what was proven stays so until its loss is confirmed, and an
 * unsuccessful check is an answer too. 409 while another organization holds the domain.
 */
export async function verifyDomain(
  world: checking.CheckWorld,
  ports: DomainPorts,
  orgId: string,
  idOrName: string,
): Promise<Verification> {
  const row = await world.db.asOrg(orgId, (tx) => requireDomain(tx, orgId, idOrName));
  const [holder] = row.claimed ? [] : await queries.findOtherHolder(world.db, orgId, row.domain);
  if (holder) throw heldByOther(row.domain);
  const outcome = await checking.checkDomain(world, ports, { org_id: orgId, id: row.id }, { fresh: true });
  if (!outcome) throw notFound("domain");
  if (outcome.taken) throw heldByOther(row.domain);
  const summary = records.summarize(outcome.row, outcome.records);
  return { ...toRecord(world, outcome.row), summary, records: outcome.records };
}

function heldByOther(domain: string): Refusal {
  const until = "until that one removes it or its ownership record has been gone for 72 hours";
  return new Refusal("already_exists", `the domain ${domain} is verified by another organization, ${until}`);
}

// --- for the features to the right ------------------------------------------------------------------------------------------

/** The organization's domain by id or name. */
export async function findDomain(tx: Query, orgId: string, idOrName: string): Promise<DomainRow | undefined> {
  if (isUuid(idOrName)) return (await queries.findById(tx, orgId, idOrName))[0];
  const name = normalizeDomain(idOrName);
  return name === null ? undefined : (await queries.findByName(tx, orgId, name))[0];
}

/** The organization's domain by id or name, or 404. */
export async function requireDomain(tx: Query, orgId: string, idOrName: string): Promise<DomainRow> {
  const row = await findDomain(tx, orgId, idOrName);
  if (!row) throw notFound("domain");
  return row;
}

/** The environment of the key that made the domain; null when there is no such domain. */
export async function environmentOf(world: Pick<World, "db">, orgId: string, idOrName: string) {
  return world.db.asOrg(orgId, async (tx) => {
    const domain = await findDomain(tx, orgId, idOrName);
    const [row] = domain ? await queries.findEnvironment(tx, orgId, domain.id) : [];
    return row?.environment ?? null;
  });
}

/** As requireDomain, with the row locked until the transaction ends: changes of its keys take turns. */
export async function requireLocked(tx: Tx, orgId: string, idOrName: string): Promise<DomainRow> {
  const { id } = await requireDomain(tx, orgId, idOrName);
  const [row] = await queries.lockById(tx, orgId, id);
  if (!row) throw notFound("domain");
  return row;
}

/** Looks the DKIM records of the domain up now, and keeps what was seen; null when the domain is gone. */
export async function checkDkimRecords(
  world: checking.CheckWorld,
  ports: DomainPorts,
  target: checking.Target,
): Promise<DnsRecord[] | null> {
  const outcome = await checking.checkDomain(world, ports, target, { fresh: true, only: ["dkim"] });
  return outcome?.records.filter((record) => record.purpose === "dkim") ?? null;
}

/** To be called when a domain's keys change: whether one signs now; its records are looked at closely from now on. */
export async function noteKeys(world: Pick<World, "clock">, tx: Tx, row: DomainRow, active: boolean): Promise<void> {
  const now = world.clock.now();
  const at = new Date(now);
  await queries.setKeys(tx, row.org_id, row.id, {
    active,
    at,
    next_check_at: nextCheck({ ...row, watch_since: at }, now),
  });
}

/** The domain that DMARC reports to `<token>@<report domain>` are about, of any organization. */
export async function findByReportToken(world: Pick<World, "db">, token: string): Promise<DomainRow | undefined> {
  return (await queries.findByDmarcToken(world.db, token.toLowerCase()))[0];
}

/** The `rua` entry of the domain: `mailto:<token>@<report domain>`. */
export function reportUri(world: Pick<World, "config">, row: Pick<DomainRow, "dmarc_token">): string {
  return records.reportUri(world.config, row);
}

/** The record of our zone by which we accept reports on `domain`; see records.ts. */
export function reportAuthorization(world: Pick<World, "config">, domain: string) {
  return records.reportAuthorization(world.config, domain);
}

/** How many of the organization's domains are set to an IP pool. */
export async function countDomainsOfPool(tx: Tx, orgId: string, pool: string): Promise<number> {
  return (await queries.countByPool(tx, orgId, pool))[0]?.total ?? 0;
}

/** Sets the domains of an IP pool back to the shared addresses. */
export async function leavePool(tx: Tx, orgId: string, pool: string): Promise<void> {
  await queries.clearPool(tx, orgId, pool);
}

/** The domains' catch-alls no longer name an endpoint that is being deleted. */
export async function forgetWebhook(tx: Tx, orgId: string, webhookId: string): Promise<void> {
  await queries.dropWebhook(tx, orgId, webhookId);
}

/** A look-up of sender domains for the hot path: by organization and ASCII name, many per round trip, nothing cached. */
export function findSender(
  world: Core & Pick<World, "config">,
): (orgId: string, domainName: string) => Promise<SendingDomain | undefined> {
  return coalesceByOrg<SendingDomain>({
    keys_max: 500,
    lanes: 1,
    load: async (keys) => {
      const wanted = { org_ids: keys.map(({ org_id }) => org_id), domains: keys.map(({ key }) => key) };
      const rows = await queries.findSenders(world.db, wanted);
      return rows.map((row) => [row.org_id, row.domain, toSender(world, row)]);
    },
  });
}

function toSender(world: Core & Pick<World, "config">, row: DomainRow): SendingDomain {
  const reason = notReadyReason(row, world.clock.now());
  return {
    id: row.id,
    domain: row.domain,
    type: row.type,
    active: row.active,
    status: row.status,
    ready: reason === null,
    not_ready_reason: reason,
    return_path_host: row.return_path_verified ? records.returnPathName(row.domain) : world.config.bounce_host,
    tls_policy: row.tls_policy,
    ip_pool: row.ip_pool,
  };
}

/** That a domain's owner has ended its sending; `is_gone`: the domain is not there any more. */
export type SendingEnd = { is_gone: boolean; reason: string };

const SENDING_KEPT = { for_ms: 5_000, names_max: 20_000 };

/**
 * For mail that waited: whether its domain's owner has ended the sending since it was accepted, by the domain's id. Null: the
 * owner has not, which is remembered for 5 s. Records that DNS lost meanwhile end nothing: mail is accepted for 72 h without them.
 */
export function findSendingEnd(
  world: Pick<World, "db" | "clock">,
): (orgId: string, id: string) => Promise<SendingEnd | null> {
  const sending = remember<true>(world.clock, SENDING_KEPT);
  const lookUp = coalesceByOrg<DomainRow>({
    keys_max: 500,
    lanes: 1,
    load: async (keys) => {
      const wanted = { org_ids: keys.map(({ org_id }) => org_id), ids: keys.map(({ key }) => key) };
      return (await queries.findByIds(world.db, wanted)).map((row) => [row.org_id, row.id, row]);
    },
  });
  return async (orgId, id) => {
    const name = `${orgId} ${id}`;
    if (sending.get(name)) return null;
    const end = toEnd(await lookUp(orgId, id));
    if (!end) sending.set(name, true);
    return end;
  };
}

function toEnd(row: DomainRow | undefined): SendingEnd | null {
  if (!row) return { is_gone: true, reason: "the sender's domain was removed" };
  const reason = switchedOffReason(row);
  return reason === null ? null : { is_gone: false, reason };
}

/**
 * A look-up of the domain that incoming mail is for, by ASCII name and over all organizations: the one that holds it,
 * if it is active and of a type that receives.
 */
export function findReceiver(world: Pick<World, "db">): (domainName: string) => Promise<ReceivingDomain | undefined> {
  return coalesce<string, ReceivingDomain>({
    keys_max: 500,
    lanes: 1,
    load: async (names) => {
      const rows = await queries.findHolders(world.db, names);
      return new Map(rows.filter((row) => row.active && receives(row.type)).map((row) => [row.domain, row]));
    },
  });
}

/** True if any organization here has a domain. */
export async function hasAnyDomain(db: Query): Promise<boolean> {
  return (await queries.hasDomains(db))[0]?.found ?? false;
}

/** Who holds a domain, whatever its type and state, by ASCII name and over all organizations. */
export async function findHolder(
  world: Pick<World, "db">,
  domainName: string,
): Promise<{ org_id: string; id: string } | undefined> {
  const [holder] = await queries.findHolders(world.db, [domainName]);
  return holder;
}

/** The names that an organization holds, so that nobody else has them. */
export async function domainsHeldBy(world: Pick<World, "db">, orgId: string): Promise<string[]> {
  return (await queries.findHeldBy(world.db, orgId)).map(({ domain }) => domain);
}

type DomainKey = { org_id: string; domain_id: string };

/** The names of domains by their ids, over all organizations. */
export async function domainNames(world: Pick<World, "db">, keys: DomainKey[]): Promise<Map<string, string>> {
  const rows = await queries.findNames(world.db, keys);
  return new Map(rows.map(({ id, domain }) => [id, domain]));
}

const ALIKE_MAX = 1_000;

/** The ids of domains whose name fits a pattern of `like`, over all organizations; at most 1,000. */
export async function domainsLike(world: Pick<World, "db">, pattern: string): Promise<string[]> {
  return (await queries.findAlike(world.db, pattern, ALIKE_MAX)).map(({ id }) => id);
}
