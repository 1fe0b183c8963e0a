// Organizations and their API keys: who may ask for what. Face of the feature.

import type { Account } from "../http/http.ts";
import { readName } from "../http/one-line.ts";
import { isUuid, type Query } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { coalesce } from "../platform/fair/coalesce.ts";
import { notFound, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { createWithKeys, keyRecord, maskKeyRecord } from "./first-keys.ts";
import { type Environment, isMaskSecret, newSecret, secretDigest, secretEnvironment } from "./keys.ts";
import { PLANS } from "./plans.ts";
import * as queries from "./queries.ts";
import type { KeyRow } from "./types.ts";

export {
  changeOrganization,
  createOrganization,
  listOrganizations,
  type OrganizationOptions,
  openOrganization,
  organizationNamed,
  organizationTable,
  pageOrganizations,
  showOrganization,
} from "./operator.ts";
export { requestRates } from "./rates.ts";
export { changeSetting, organizationSetting, organizationsWith, type SettingName } from "./settings.ts";
export { showFirstKeys } from "./show-first-keys.ts";

const TOUCH_EVERY_MS = 60_000;
const NAME_MAX = 191;

type AccountWithRate = Account & { requests_per_second: number };

/**
 * Resolves a bearer secret to its account, or null when it is malformed, unknown or revoked. Asks the database each
 * time, many secrets per round trip.
 */
export function authenticate(world: AuthWorld): (secret: string) => Promise<Account | null> {
  const lookUp = accountFinder(world);
  return async (secret) => (secretEnvironment(secret) ? lookUp(secret) : null);
}

/**
 * The same for mask keys, which nothing else lets in. Null also when the mailbox of the key was removed.
 */
export function authenticateMask(world: AuthWorld): (secret: string) => Promise<Account | null> {
  const lookUp = accountFinder(world);
  return async (secret) => {
    const account = isMaskSecret(secret) ? await lookUp(secret) : null;
    return account?.destination_id ? account : null;
  };
}

/** The organization whose key has this SHA-256, a revoked key included. Null: no such key was ever made here. */
export async function organizationOfKey(db: World["db"], digest: Buffer): Promise<string | null> {
  return (await queries.findDigest(db, digest))[0]?.org_id ?? null;
}

type AuthWorld = Pick<World, "db" | "clock" | "log">;

function accountFinder(world: AuthWorld): (secret: string) => Promise<AccountWithRate | null> {
  const lookUp = coalesce<string, AccountWithRate>({
    keys_max: 500,
    lanes: 1,
    load: async (digests) => {
      const rows = await queries.findAccountsByDigest(
        world.db,
        digests.map((digest) => Buffer.from(digest, "hex")),
      );
      return new Map(rows.map((row) => [row.digest.toString("hex"), toAccount(world, row)]));
    },
  });
  return async (secret) => (await lookUp(secretDigest(secret).toString("hex"))) ?? null;
}

type FoundAccount = Awaited<ReturnType<typeof queries.findAccountsByDigest>>[number];

function toAccount(world: AuthWorld, row: FoundAccount): AccountWithRate {
  const now = world.clock.now();
  if (!row.last_used_at || now - row.last_used_at.getTime() > TOUCH_EVERY_MS) {
    // Only a hint for people; a failure to note it must not fail the request.
    queries
      .touchKey(world.db, row.org_id, row.key_id, new Date(now))
      .catch((err) => world.log.warn({ err }, "last_used_at could not be noted"));
  }
  return {
    org_id: row.org_id,
    key_id: row.key_id,
    key_name: row.key_name,
    environment: row.environment,
    plan: row.plan,
    state: row.state,
    monthly_quota: row.monthly_quota ?? PLANS[row.plan].monthly_quota,
    requests_per_second: row.requests_per_second ?? PLANS[row.plan].requests_per_second,
    acts_on_live: row.environment === "live" || row.test_keys === "full",
    destination_id: row.destination_id,
  };
}

export type OrganizationAccount = Pick<Account, "plan" | "state" | "monthly_quota"> & {
  id: string;
  name: string;
  requests_per_second: number;
  /** Its test keys may do to live mail what live keys may. */
  test_keys_full: boolean;
};

/** What holds for these organizations now, by their ids: for people, who have no key. */
export async function organizationAccounts(
  { db }: Pick<World, "db">,
  orgIds: string[],
): Promise<Map<string, OrganizationAccount>> {
  const rows = orgIds.length === 0 ? [] : await queries.findTerms(db, orgIds);
  const accounts = rows.map(({ test_keys, monthly_quota, requests_per_second, ...row }) => ({
    ...row,
    monthly_quota: monthly_quota ?? PLANS[row.plan].monthly_quota,
    requests_per_second: requests_per_second ?? PLANS[row.plan].requests_per_second,
    test_keys_full: test_keys === "full",
  }));
  return new Map(accounts.map((account) => [account.id, account]));
}

/** 403 `plan_limit_reached` unless the plan includes `feature`. */
export function requirePlan(account: Pick<Account, "plan">, feature: "statistics" | "dedicated_ips"): void {
  if (PLANS[account.plan][feature]) return;
  const what = feature === "statistics" ? "statistics need a paid plan" : "dedicated IPs need Scale or Enterprise";
  throw new Refusal("plan_limit_reached", `${what}; this organization is on the ${account.plan} plan`);
}

/**
 * True if the plan includes dedicated IPs. Pools that were set up under an earlier plan stay stored, and are not used.
 */
export function includesDedicatedIps(plan: Account["plan"]): boolean {
  return PLANS[plan].dedicated_ips;
}

/** True if the plan shows `auth_results` of inbound mail (contract: paid plans only). */
export function showsAuthResults(plan: Account["plan"]): boolean {
  return PLANS[plan].auth_results;
}

/** How many mails on a day may ask mailboxes for their consent, as the plan has it. */
export function consentMailsPerDay({ plan }: Pick<Account, "plan">): number {
  return PLANS[plan].consent_mails_a_day;
}

const MOVING_RETRY_S = 15;

/** 503 while an organization is being moved to another cell: nothing of it may change, and what is asked again finds it there. */
export function refuseMoving({ state }: Pick<Account, "state">): void {
  if (state === "moving") throw moving();
}

/** The same for a page without a key, as far as this process knows. */
export function refuseIfMoving({ moves }: Pick<World, "moves">, orgId: string | null): void {
  if (orgId !== null && moves.moving.has(orgId)) throw moving();
}

function moving(): Refusal {
  const text = "this organization is being moved to another server; try again shortly";
  return new Refusal("unavailable", text, { retry_after_seconds: MOVING_RETRY_S });
}

/** 403 for live work while an organization is in review or suspended; test keys stay usable in review. */
export function requireLiveSending(account: Pick<Account, "state" | "environment">): void {
  refuseMoving(account);
  if (account.state === "suspended") {
    throw new Refusal("organization_suspended", "this organization is suspended; ask your operator");
  }
  if (account.state === "pending_review" && account.environment === "live") {
    throw new Refusal("organization_in_review", "live sending is under review; test keys work meanwhile");
  }
}

/**
 * 403 `test_key_not_allowed` when a test key asks for something that is live. `find` says whose environment it is of;
 * null when it is not there, which the operation answers by itself. `what` ends the sentence "a test key cannot …".
 */
export async function protectLive(
  account: Pick<Account, "acts_on_live">,
  what: string,
  find: () => Promise<Environment | null>,
): Promise<void> {
  if (!account.acts_on_live && (await find()) === "live") {
    throw new Refusal("test_key_not_allowed", `a test key cannot ${what}`);
  }
}

export type CreateKey = { name: string; environment: Environment };

/** Creates a key; the secret is in the answer and nowhere else. A test key cannot create a live one (403). */
export async function createKey(
  world: Pick<World, "db" | "clock" | "random">,
  account: Pick<Account, "org_id" | "acts_on_live">,
  request: CreateKey,
): Promise<{ key: KeyRow; secret: string }> {
  refuseLiveOf(account, request);
  const name = readName("name", request.name, NAME_MAX);
  const secret = newSecret(world.random, request.environment);
  return insert(world, account, keyRecord(world, name, secret), secret);
}

/** The destination of an address, made and asked for its consent where it is new. */
export type FindDestination = (account: Account, email: string) => Promise<{ id: string }>;

/** The same for a key that manages the masked addresses of one mailbox, and nothing else. */
export async function createMaskKey(
  world: Pick<World, "db" | "clock" | "random">,
  findDestination: FindDestination,
  account: Account,
  { destination, ...request }: CreateKey & { destination: string },
): Promise<{ key: KeyRow; secret: string }> {
  refuseLiveOf(account, request);
  const { environment } = request;
  const name = readName("name", request.name, NAME_MAX);
  const { id } = await findDestination({ ...account, environment }, destination);
  const secret = newSecret(world.random, "mask");
  return insert(world, account, maskKeyRecord(world, name, secret, { environment, destination_id: id }), secret);
}

function refuseLiveOf({ acts_on_live }: Pick<Account, "acts_on_live">, { environment }: CreateKey): void {
  if (acts_on_live || environment === "test") return;
  throw new Refusal("test_key_not_allowed", "a test key cannot create a live key", { field: "environment" });
}

async function insert(
  { db }: Pick<World, "db">,
  { org_id }: Pick<Account, "org_id">,
  record: queries.NewKey,
  secret: string,
): Promise<{ key: KeyRow; secret: string }> {
  const rows = await db.asOrg(org_id, (tx) => queries.insertKey(tx, org_id, record));
  return { key: rows[0] as KeyRow, secret };
}

/** One page of the organization's keys, newest first, with the total. */
export async function listKeys(world: Pick<World, "db">, orgId: string, page: Page) {
  return world.db.asOrg(orgId, async (tx) => {
    const keys = await queries.listKeys(tx, orgId, page);
    const total = await queries.countKeys(tx, orgId);
    return { keys, ...total, ...page };
  });
}

/** One key, or 404. */
export async function getKey(world: Pick<World, "db">, orgId: string, id: string): Promise<KeyRow> {
  return found(isUuid(id) ? await world.db.asOrg(orgId, (tx) => queries.findKey(tx, orgId, id)) : []);
}

/** Renames a key, or 404; 403 when a test key would rename a live one. */
export async function renameKey(
  world: Pick<World, "db">,
  account: Pick<Account, "org_id" | "acts_on_live">,
  id: string,
  name: string,
): Promise<KeyRow> {
  const orgId = account.org_id;
  const trimmed = readName("name", name, NAME_MAX);
  await protectLive(account, "rename a live key", () => environmentOf(world, orgId, id));
  return found(isUuid(id) ? await world.db.asOrg(orgId, (tx) => queries.renameKey(tx, orgId, id, trimmed)) : []);
}

/** Revokes a key from the next request on; a key may revoke itself, a test key no live one. Revoking twice is no error. */
export async function revokeKey(
  world: Pick<World, "db" | "clock">,
  account: Pick<Account, "org_id" | "acts_on_live">,
  id: string,
): Promise<void> {
  const orgId = account.org_id;
  await protectLive(account, "revoke a live key", () => environmentOf(world, orgId, id));
  const at = new Date(world.clock.now());
  const touched = isUuid(id) ? await world.db.asOrg(orgId, (tx) => queries.revokeKey(tx, orgId, id, at)) : 0;
  if (touched === 0) throw notFound("API key");
}

async function environmentOf(world: Pick<World, "db">, orgId: string, id: string): Promise<Environment | null> {
  const rows = isUuid(id) ? await world.db.asOrg(orgId, (tx) => queries.findKey(tx, orgId, id)) : [];
  return rows[0]?.environment ?? null;
}

function found(rows: KeyRow[]): KeyRow {
  const row = rows[0];
  if (!row) throw notFound("API key");
  return row;
}

/**
 * First start on an empty database: creates the organization and one live and one test key (given ones are taken as
 * they are). Returns the secrets, or null when there was an organization already.
 */
export async function bootstrap(
  world: Pick<World, "db" | "clock" | "random">,
  given: { live_key: string | null; test_key: string | null },
): Promise<{ org_id: string; live_key: string; test_key: string } | null> {
  return world.db.transaction(async (tx) => {
    await queries.lockBootstrap(tx);
    const [count] = await queries.countOrganizations(tx);
    if (count && count.total > 0) return null;
    return createWithKeys(world, tx, { name: "My organization", plan: "enterprise", state: "active", given });
  });
}

/** A look-up of organizations' plans for background work: many per round trip, nothing remembered. */
export function planFinder(world: Pick<World, "db">): (orgId: string) => Promise<Account["plan"] | undefined> {
  return coalesce<string, Account["plan"]>({
    keys_max: 500,
    lanes: 2,
    load: async (ids) => new Map((await queries.findPlans(world.db, ids)).map(({ id, plan }) => [id, plan])),
  });
}

/** The organizations whose mail waits: they are suspended, or not approved yet. */
export async function waitingOrganizations(world: Pick<World, "db">): Promise<string[]> {
  return (await queries.findNotActive(world.db)).map(({ id }) => id);
}

/** What organizations are called and their state, by id: for operators. */
export async function organizationNames(world: { db: Query }, ids: string[]) {
  const rows = ids.length === 0 ? [] : await queries.findNames(world.db, [...new Set(ids)]);
  return new Map(rows.map(({ id, ...row }) => [id, row]));
}
