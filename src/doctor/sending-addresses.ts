// The addresses that mail leaves from, and what else only the database knows of our names: addresses of pools with what
// they say in EHLO, and the key of the masked domain. Reads only; a database that is away is a finding of its own.
import { networkInterfaces } from "node:os";
import type { FoundConfig } from "../config.ts";
import { findMaskedKey } from "../masked/queries.ts";
import { allSources } from "../outbound/pools/pool-queries.ts";
import { isDistributed } from "../platform/database/citus/cells.ts";
import { openDb, type Query } from "../platform/database/db.ts";
import type { Resolver } from "../platform/dns/resolver.ts";
import { isSeenByOthers, publicAddresses } from "../platform/net/public-addresses.ts";
import { findDatabase } from "../platform/postgres/database-folder.ts";
import { runningEmbeddedPostgres } from "../platform/postgres/embedded-postgres.ts";

/** An address and the name that it says in EHLO. */
export type PoolAddress = { ip: string; ehlo: string };
export type MaskedKey = { selector: string; public_key: string };
export type KnownToDatabase = { pools: PoolAddress[]; masked_key: MaskedKey | null };

/** What the database of these settings knows; nothing where it does not answer. */
export async function knownToDatabase(
  config: Pick<FoundConfig, "database_url" | "data_dir" | "hostname" | "masked_domain">,
): Promise<KnownToDatabase> {
  const known = await askDatabase(config, (db) => readKnown(db, config));
  return known ?? { pools: [], masked_key: null };
}

/** Null where the database of these settings does not answer: the checks of the database say why. */
export async function askDatabase<T>(
  config: Pick<FoundConfig, "database_url" | "data_dir">,
  ask: (db: Query) => Promise<T>,
): Promise<T | null> {
  try {
    const url = config.database_url ?? (await embeddedUrl(config.data_dir));
    if (url === null) return null;
    const db = openDb(url, { onError: () => undefined, distributed: await isDistributed(url) });
    try {
      return await ask(db);
    } finally {
      await db.close();
    }
  } catch {
    return null;
  }
}

async function embeddedUrl(dataDir: string): Promise<string | null> {
  const place = await findDatabase(dataDir);
  return place === null ? null : ((await runningEmbeddedPostgres(place.folder))?.url ?? null);
}

/** The same of an open database. */
export async function readKnown(
  db: Query,
  { hostname, masked_domain }: Pick<FoundConfig, "hostname" | "masked_domain">,
): Promise<KnownToDatabase> {
  const [sources, [key]] = await Promise.all([allSources(db), findMaskedKey(db, masked_domain)]);
  const pools = sources.flatMap(({ ip, ehlo, removed_at }) =>
    ip === null || removed_at !== null || !isSeenByOthers(ip) ? [] : [{ ip, ehlo: ehlo ?? hostname }],
  );
  return { pools, masked_key: key ? { selector: key.selector, public_key: key.public_key } : null };
}

/** Each with the name that it says in EHLO: those of the host name or of POSTERN_PUBLIC_ADDRESSES, then those of pools. */
export async function sendingAddresses(
  config: Pick<FoundConfig, "public_addresses" | "hostname">,
  resolver: Pick<Resolver, "a" | "aaaa">,
  pools: PoolAddress[],
): Promise<PoolAddress[]> {
  const shared = (await publicAddresses(config, resolver)).filter((ip) => !pools.some((one) => one.ip === ip));
  return [...shared.map((ip) => ({ ip, ehlo: config.hostname })), ...pools];
}

/** The addresses of this machine's own interfaces that others can reach. */
export function machineAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.flatMap(({ internal, address }) => (!internal && isSeenByOthers(address) ? [address] : []));
}
