// Builds the World that everything is given: over a database that is reached or started, and brought up to date.
import { join } from "node:path";
import type { Config } from "./config.ts";
import { createClock } from "./platform/clock.ts";
import { isDistributed } from "./platform/database/citus/cells.ts";
import { openDb } from "./platform/database/db.ts";
import { migrateNoting } from "./platform/database/migrate.ts";
import { makePartitions } from "./platform/database/partitions.ts";
import { createResolver } from "./platform/dns/resolver.ts";
import { createMoves } from "./platform/moves.ts";
import { insideOf } from "./platform/net/addresses.ts";
import { type HeldPlaces, NONE_HELD } from "./platform/net/held-places.ts";
import { createSafeFetch } from "./platform/net/safe-fetch.ts";
import { openOwnDatabase } from "./platform/postgres/own-database.ts";
import { processEnder } from "./platform/process/end-process.ts";
import { createLog, type Log } from "./platform/process/log.ts";
import { createMetrics } from "./platform/process/metrics.ts";
import { createTraces } from "./platform/process/traces.ts";
import { createRandom } from "./platform/random.ts";
import { createFolderBlobs, createS3Blobs } from "./platform/storage/blobs.ts";
import { useKeyRing } from "./platform/storage/master-key.ts";
import { createSeal } from "./platform/storage/seal.ts";
import type { World } from "./platform/world.ts";

const SKEW_EVERY_MS = 10_000;

export type Opened = { world: World; database_url: string; close(): Promise<void> };

/** Starts or reaches the database, brings it up to date and builds the World. `close` undoes all of it. */
export async function openWorld(
  config: Config,
  log: Log = createLog({ level: config.log_level, role: "postern" }),
  held: HeldPlaces = NONE_HELD,
): Promise<Opened> {
  const embedded = config.database_url ? null : await openOwnDatabase(config.data_dir, log);
  const database_url = config.database_url ?? (embedded?.url as string);
  const migrated = await openMigrated(config, log, database_url).catch(async (error) => {
    await embedded?.stop();
    throw error;
  });
  const world = { ...migrated, held };
  const timer = setInterval(() => followDatabaseClock(world).catch(() => undefined), SKEW_EVERY_MS);
  return {
    world,
    database_url,
    async close() {
      clearInterval(timer);
      await world.traces?.stop();
      await world.db.close();
      await embedded?.stop();
    },
  };
}

async function openMigrated(config: Config, log: Log, databaseUrl: string): Promise<World> {
  const { applied, newer } = await migrateNoting(databaseUrl);
  if (newer !== null) log.warn({ why: newer }, "this version may run beside a newer one, during an upgrade only");
  if (applied.length > 0) log.info({ migrations: applied }, "database brought up to date");
  const world = buildWorld(config, log, databaseUrl, await isDistributed(databaseUrl));
  try {
    await followDatabaseClock(world);
    await useKeyRing(world);
    await makePartitions(world.db, world.clock.now());
    return world;
  } catch (error) {
    await world.db.close();
    throw error;
  }
}

/** A World over a database that is up already; tests use it with parts of their own. `distributed`: by Citus. */
export function buildWorld(config: Config, log: Log, databaseUrl: string, distributed = false): World {
  const clock = createClock({ offsetFile: config.testing.clock_file });
  const resolver = createResolver({
    servers: config.dns_servers,
    timeout_ms: config.testing.dns_timeout_ms ?? 5_000,
    attempts: 2,
    cache_max: 10_000,
    validating: config.dns_validating,
    now: () => clock.now(),
  });
  const random = createRandom(clock);
  return {
    config,
    database_url: databaseUrl,
    distributed,
    clock,
    resolver,
    log,
    db: openDb(databaseUrl, {
      onError: (err) => log.warn({ err }, "a database connection was lost"),
      pooler_url: config.database_pooler_url,
      connections_max: config.database_connections,
      distributed,
    }),
    random,
    fetch: createSafeFetch({ resolver, inside: insideOf(config) }),
    blobs: config.s3 ? createS3Blobs(config.s3) : createFolderBlobs(join(config.data_dir, "blobs"), processEnder(log)),
    seal: createSeal(config.master_key),
    metrics: createMetrics(),
    ...(config.traces ? { traces: createTraces(config.traces, random) } : {}),
    held: NONE_HELD,
    moves: createMoves(),
  };
}

async function followDatabaseClock(world: World): Promise<void> {
  world.clock.setSkew(await world.db.clockSkewMs());
}
