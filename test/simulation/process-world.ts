// The World of one simulated process: the universe's clock with this process's error, chance from the seed, no disk, and a
// log that is kept for whoever looks into a failing seed.
import type { Config } from "../../src/config.ts";
import type { Db } from "../../src/platform/database/db.ts";
import type { Resolver } from "../../src/platform/dns/resolver.ts";
import { createMoves } from "../../src/platform/moves.ts";
import type { SafeFetch } from "../../src/platform/net/safe-fetch.ts";
import type { Random } from "../../src/platform/random.ts";
import type { World } from "../../src/platform/world.ts";
import type { Chance } from "../faults/seeded.ts";
import type { Life, Universe } from "./universe.ts";

export type Line = { at_s: number; process: string; level: string; text: string };

export type WorldParts = {
  universe: Universe;
  life: Life;
  db: Db;
  lines: Line[];
  resolver?: Resolver;
  fetch?: SafeFetch;
};

/** How far a process's idea of the database's time is off, in milliseconds. */
const CLOCK_ERROR_MS = 100;

export function createProcessWorld({ universe, life, db, lines, resolver, fetch }: WorldParts): World {
  const errorMs = universe.chance.between(-CLOCK_ERROR_MS, CLOCK_ERROR_MS);
  const clock = { now: () => Math.round(universe.wall() + errorMs), monotonic: universe.monotonic, setSkew: () => {} };
  const log = createLog(universe, life, lines);
  return {
    config: CONFIG,
    database_url: "",
    db,
    clock,
    random: createRandom(universe.chance, clock.now),
    resolver: resolver ?? (undefined as never),
    fetch: fetch ?? (undefined as never),
    blobs: undefined as never,
    seal: {
      seal: (plain) => plain,
      open: (sealed) => sealed,
      openOften: (sealed) => sealed,
      hash: () => HASH,
      hashOften: () => HASH,
      use: () => undefined,
    },
    log: log as never,
    metrics: METRICS,
    held: () => null,
    moves: createMoves(),
  };
}

const CONFIG = {
  hostname: "postern.example",
  base_url: "http://postern.example",
  dns_validating: false,
  testing: { outbound_port: 25, allow_loopback: true, clock_file: null, dns_timeout_ms: null },
} as unknown as Config;

const HASH = Buffer.alloc(32, 7);

const NOTHING = { inc() {}, set() {}, observe() {}, labels: () => NOTHING };
const METRICS = {
  counter: () => NOTHING,
  gauge: () => NOTHING,
  histogram: () => NOTHING,
  text: async () => "",
  content_type: "",
} as unknown as World["metrics"];

function createLog(universe: Universe, life: Life, lines: Line[]) {
  const at = (level: string) => (fields: { err?: Error }, text: string) => {
    const why = fields.err ? `: ${fields.err.message}` : "";
    lines.push({ at_s: Math.round(universe.monotonic() / 1000), process: life.name, level, text: text + why });
  };
  return { debug() {}, info: at("info"), warn: at("warn"), error: at("error"), fatal: at("fatal") };
}

/** Ids in the order they are made, as UUIDv7 are; cheap. */
function createRandom({ float }: Chance, now: () => number): Random {
  let made = 0;
  const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");
  return {
    uuid() {
      made += 1;
      const time = hex(now(), 12);
      const tail = hex(made % 0x10000, 4) + hex(Math.floor(float() * 2 ** 32), 8);
      return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${tail}`;
    },
    bytes: (n) => Buffer.alloc(n, Math.floor(float() * 256)),
    token: (n) => "x".repeat(n),
    float,
  };
}
