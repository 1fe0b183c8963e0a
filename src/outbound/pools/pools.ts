// Pools of dedicated addresses as customers make and see them. Not here: which address a message gets (exits.ts), what the
// engine does with them (sources.ts).

import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { requirePlan } from "../../accounts/accounts.ts";
import { countDomainsOfPool, leavePool } from "../../domains/domains.ts";
import type { Account } from "../../http/http.ts";
import { normalizeDomain } from "../../mail/address.ts";
import { isDuplicate, type Query, type Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { isLoopbackAddress } from "../../platform/net/addresses.ts";
import { invalid, notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { unknownPool } from "./exits.ts";
import * as queries from "./pool-queries.ts";
import { dailyLimit, dayOf, warmupDay } from "./warmup.ts";

export const POOL_NAME = "^[a-z0-9][a-z0-9_-]{0,62}$";
export const ADDRESSES_MAX = 64;
const POOLS_MAX = 50;
const DAY_MS = 86_400_000;
const WEEK_DAYS = 7;

type Core = Pick<World, "db" | "clock" | "random" | "config">;

export type PoolAddress = { ip: string; ehlo?: string | null; weight?: number; warmup?: boolean };

type Figures = Pick<queries.UsageRow, "delivered" | "deferred" | "bounced" | "blocked">;

export type AddressRecord = {
  ip: string;
  ehlo: string;
  weight: number;
  state: "ready" | "warming" | "unavailable";
  warmup: { started_at: Date; day: number; daily_limit: number; used_today: number } | null;
  today: Figures;
  last_7_days: Figures;
};

export type PoolRecord = {
  id: string;
  name: string;
  ips: AddressRecord[];
  created_at: Date;
  updated_at: Date;
};

/** Makes a pool; 409 for a name or an address that is in use, 403 where the plan has no dedicated addresses. */
export async function createPool(
  world: Core,
  account: Account,
  request: { name: string; ips: PoolAddress[] },
): Promise<PoolRecord> {
  requirePlan(account, "dedicated_ips");
  const orgId = account.org_id;
  const addresses = readAddresses(world, request.ips);
  const at = new Date(world.clock.now());
  return refusingAddressesInUse(() =>
    world.db.asOrg(orgId, async (tx) => {
      const count = await queries.countPools(tx, orgId);
      if (count.total >= POOLS_MAX) {
        throw new Refusal("plan_limit_reached", `an organization may have at most ${POOLS_MAX} IP pools`);
      }
      const row = { org_id: orgId, id: world.random.uuid(), name: request.name, created_at: at, updated_at: at };
      const [pool] = await queries.insertPool(tx, orgId, row);
      if (!pool) {
        throw new Refusal("already_exists", `there is an IP pool ${request.name} already`, { field: "name" });
      }
      await changeAddresses(world, tx, pool, { addresses, at });
      return (await toRecords(world, tx, orgId, [pool]))[0] as PoolRecord;
    }),
  );
}

/** One page of the organization's pools, newest first. */
export async function listPools(world: Core, orgId: string, page: Page) {
  return world.db.asOrg(orgId, async (tx) => {
    const rows = await queries.listPools(tx, orgId, page);
    const total = await queries.countPools(tx, orgId);
    return { ip_pools: await toRecords(world, tx, orgId, rows), ...total, ...page };
  });
}

/** One pool by id or name, or 404. */
export async function getPool(world: Core, orgId: string, idOrName: string): Promise<PoolRecord> {
  return world.db.asOrg(orgId, async (tx) => {
    const row = await requirePool(tx, orgId, idOrName);
    return (await toRecords(world, tx, orgId, [row]))[0] as PoolRecord;
  });
}

/** Gives the pool these addresses and no others; what waits at one that goes leaves from the rest. */
export async function updatePool(
  world: Core,
  account: Account,
  idOrName: string,
  ips: PoolAddress[],
): Promise<PoolRecord> {
  requirePlan(account, "dedicated_ips");
  const orgId = account.org_id;
  const addresses = readAddresses(world, ips);
  const at = new Date(world.clock.now());
  return refusingAddressesInUse(() =>
    world.db.asOrg(orgId, async (tx) => {
      const { id } = await requirePool(tx, orgId, idOrName);
      const [locked] = await queries.lockPool(tx, orgId, id);
      if (!locked) throw notFound("IP pool");
      await changeAddresses(world, tx, locked, { addresses, at });
      const [touched] = await queries.touchPool(tx, orgId, id, at);
      return (await toRecords(world, tx, orgId, [touched as queries.PoolRow]))[0] as PoolRecord;
    }),
  );
}

/** Removes a pool, or 404; 409 while domains are set to it or mail waits in it, unless forced. Returns its id. */
export async function deletePool(world: Core, orgId: string, idOrName: string, force: boolean): Promise<string> {
  return world.db.asOrg(orgId, async (tx) => {
    const { id, name } = await requirePool(tx, orgId, idOrName);
    if (!force) await refuseInUse(tx, orgId, name);
    await leavePool(tx, orgId, name);
    const sources = await queries.listSources(tx, orgId, [name]);
    const ids = sources.map((source) => source.id);
    await queries.removeSources(tx, orgId, ids, new Date(world.clock.now()));
    await queries.deletePool(tx, orgId, id);
    return id;
  });
}

async function refuseInUse(tx: Tx, orgId: string, name: string): Promise<void> {
  const refuse = (what: string) =>
    new Refusal("invalid_state", `the IP pool ${name} has ${what}; add ?force=true to remove it all the same`);
  if ((await countDomainsOfPool(tx, orgId, name)) > 0) throw refuse("domains that are set to it");
  if ((await queries.hasQueuedMail(tx, orgId, name))[0]?.found) throw refuse("mail waiting to be delivered");
}

async function requirePool(tx: Tx, orgId: string, idOrName: string): Promise<queries.PoolRow> {
  const [row] = idOrName.includes("\0") ? [] : await queries.findPool(tx, orgId, idOrName);
  if (!row) throw notFound("IP pool");
  return row;
}

/** What domains ask about pools. */
export const poolPorts = { refuseUnknownPool, addressesOfPool };

/** For a domain's setting: 400 for a pool the organization does not have. */
async function refuseUnknownPool(tx: Tx, orgId: string, name: string): Promise<void> {
  const rows = await queries.findPool(tx, orgId, name);
  if (!rows.some((row) => row.name === name)) throw unknownPool(name);
}

/** The addresses of one pool of the organization; none where there is no such pool. */
async function addressesOfPool(tx: Tx, orgId: string, name: string): Promise<string[]> {
  return (await queries.listSources(tx, orgId, [name])).map(({ ip }) => ip);
}

// --- addresses ----------------------------------------------------------------------------------------------------------

type Wanted = { ip: string; ehlo: string | null; weight: number; warmup: boolean };

function readAddresses(world: Pick<World, "config">, given: PoolAddress[]): Wanted[] {
  const wanted = given.map((address, index) => ({
    ip: readAddress(world, address.ip, `ips[${index}].ip`),
    ehlo: readEhlo(address.ehlo ?? null, `ips[${index}].ehlo`),
    weight: address.weight ?? 1,
    warmup: address.warmup ?? true,
  }));
  const twice = wanted.findIndex(({ ip }, index) => wanted.findIndex((other) => other.ip === ip) < index);
  if (twice >= 0) throw invalid(`ips[${twice}].ip`, `the 'ips[${twice}].ip' field is there twice`);
  return wanted;
}

/**
 * An address that a machine may have for its own. Deliberate: private ones too, since behind a translating router the
 * machine knows no other.
 */
function readAddress(world: Pick<World, "config">, text: string, field: string): string {
  if (isIP(text) === 0 || text.includes("%")) throw invalid(field, `the '${field}' field must be an IP address`);
  const address = ipaddr.parse(text);
  const canonical = address.toString();
  const isUsual = ["unicast", "private", "uniqueLocal", "carrierGradeNat"].includes(address.range());
  if (isUsual || (world.config.testing.allow_loopback && isLoopbackAddress(canonical))) return canonical;
  throw invalid(field, `the '${field}' field must be an address that mail can be sent from`);
}

function readEhlo(text: string | null, field: string): string | null {
  if (text === null) return null;
  const name = normalizeDomain(text);
  if (name?.includes(".")) return name;
  throw invalid(field, `the '${field}' field must be a full host name, the one that the address resolves to`);
}

type Change = { addresses: Wanted[]; at: Date };

async function changeAddresses(
  world: Pick<World, "random">,
  tx: Tx,
  { org_id: orgId, name }: queries.PoolRow,
  { addresses, at }: Change,
): Promise<void> {
  const before = new Map((await queries.listSources(tx, orgId, [name])).map((row) => [row.ip, row]));
  const gone = [...before.values()].filter(({ ip }) => !addresses.some((one) => one.ip === ip));
  await queries.removeSources(
    tx,
    orgId,
    gone.map(({ id }) => id),
    at,
  );
  for (const { ip, ehlo, weight, warmup } of addresses) {
    const known = before.get(ip);
    const warmup_started_at = warmup ? (known?.warmup_started_at ?? (known ? null : at)) : null;
    const row = { org_id: orgId, pool: name, ip, ehlo, weight, warmup_started_at, removed_at: null };
    if (known) await queries.updateSource(tx, orgId, { ...row, id: known.id });
    else await queries.insertSource(tx, orgId, { ...row, id: world.random.uuid() });
  }
}

async function refusingAddressesInUse<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isDuplicate(error, "source_address")) throw error;
    throw new Refusal("already_exists", "one of the addresses is in use in another pool", { field: "ips" });
  }
}

// --- records ------------------------------------------------------------------------------------------------------------

async function toRecords(world: Core, tx: Tx, orgId: string, pools: queries.PoolRow[]): Promise<PoolRecord[]> {
  const names = pools.map(({ name }) => name);
  const sources = await queries.listSources(tx, orgId, names);
  const ids = sources.map(({ id }) => id);
  const since = dayOf(world.clock.now() - (WEEK_DAYS - 1) * DAY_MS);
  const usage = Map.groupBy(await queries.listUsage(tx, orgId, ids, since), ({ source_id }) => source_id);
  const ips = sources.map(({ ip }) => ip);
  const bindable = new Set((await queries.findBindable(tx, ips)).map(({ ip }) => ip));
  return pools.map(({ id, name, created_at, updated_at }) => ({
    id,
    name,
    ips: sources
      .filter((source) => source.pool === name)
      .map((source) => toAddress(world, source, usage.get(source.id) ?? [], bindable)),
    created_at,
    updated_at,
  }));
}

function toAddress(
  world: Core,
  source: queries.SourceRow & { ip: string },
  usage: queries.UsageRow[],
  bindable: Set<string>,
): AddressRecord {
  const nowMs = world.clock.now();
  const today = usage.filter(({ day }) => day === dayOf(nowMs));
  const day = warmupDay(source.warmup_started_at, nowMs);
  return {
    ip: source.ip,
    ehlo: source.ehlo ?? world.config.hostname,
    weight: source.weight,
    state: !bindable.has(source.ip) ? "unavailable" : day === null ? "ready" : "warming",
    warmup:
      day === null
        ? null
        : {
            started_at: source.warmup_started_at as Date,
            day,
            daily_limit: dailyLimit(source.warmup_started_at, nowMs) as number,
            used_today: today[0]?.granted ?? 0,
          },
    today: sumOf(today),
    last_7_days: sumOf(usage),
  };
}

function sumOf(usage: queries.UsageRow[]): Figures {
  const sum: Figures = { delivered: 0, deferred: 0, bounced: 0, blocked: 0 };
  for (const row of usage) {
    for (const name of ["delivered", "deferred", "bounced", "blocked"] as const) sum[name] += row[name];
  }
  return sum;
}

/** The addresses that are an organization's own, as text. */
export async function addressesOf(db: Query, orgId: string): Promise<string[]> {
  return (await queries.findAddressesOf(db, orgId)).map(({ ip }) => ip);
}
