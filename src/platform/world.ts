// Everything outside the program, handed in as one value: time, randomness, DNS, HTTP, disk, database. Functions take
// the part they need (`Pick<World, "db" | "clock">`), so that tests and simulations can drive it.
import type { Config } from "../config.ts";
import type { Clock } from "./clock.ts";
import type { Db } from "./database/db.ts";
import type { Resolver } from "./dns/resolver.ts";
import type { Moves } from "./moves.ts";
import type { HeldPlaces } from "./net/held-places.ts";
import type { SafeFetch } from "./net/safe-fetch.ts";
import type { Log } from "./process/log.ts";
import type { Metrics } from "./process/metrics.ts";
import type { Traces } from "./process/traces.ts";
import type { Random } from "./random.ts";
import type { Blobs } from "./storage/blobs.ts";
import type { Seal } from "./storage/seal.ts";

export type World = {
  config: Config;
  /** Where `db` is: for threads, which open it for themselves. */
  database_url: string;
  /** Citus keeps its tables. */
  distributed?: boolean;
  db: Db;
  clock: Clock;
  random: Random;
  resolver: Resolver;
  fetch: SafeFetch;
  blobs: Blobs;
  seal: Seal;
  log: Log;
  metrics: Metrics;
  /** Only where somebody takes them. */
  traces?: Traces;
  /** Sockets that were opened as root. */
  held: HeldPlaces;
  /** Which organizations are being moved to another cell, and what was begun before that was known. */
  moves: Moves;
};
