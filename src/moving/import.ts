// `postern organizations import`: puts an organization into another cell, all of it in one transaction, so that it is there whole or not
// at all. It goes on at once. What it had sealed is sealed with this cell's keys; links and addresses in mail that is out in the world stay
// good, as both cells have one root key.
import type pg from "pg";
import { organizationNames } from "../accounts/accounts.ts";
import { type Keys, open } from "../backup/envelope.ts";
import type { TableHead } from "../backup/frames.ts";
import { takeFrames } from "../backup/read.ts";
import type { Target } from "../backup/store.ts";
import { asQuery, connect, daysOf } from "../backup/tables.ts";
import { giveLanes, notifier } from "../outbound/outbound.ts";
import { schemaOf } from "../platform/database/citus/cells.ts";
import { readMigrations } from "../platform/database/migrate.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { openRing, readRings } from "../platform/storage/key-ring.ts";
import { adoptKeyRing } from "../platform/storage/master-key.ts";
import type { World } from "../platform/world.ts";
import { packDaysAgain } from "../sending/search/pack.ts";
import { isFresh } from "../setup/sealed-columns.ts";
import { FILE_FORMAT, type FileEnd, type FileHead } from "./file.ts";
import { hasSealed, type JsonRow, sealRow } from "./sealed-rows.ts";
import { type SharedRows, sharedRows } from "./shared-rows.ts";
import { BEGIN_WRITING, insertRows, type MovedTable, movedTables } from "./tables.ts";

export type ImportOptions = {
  target: Target;
  keys: Keys;
  progress(text: string): void;
};
export type ImportResult = {
  organization: FileHead["organization"];
  tables: number;
  rows: number;
  bodies: number;
  bodies_missing: number;
  addresses_left: string[];
  seconds: number;
};

const CHUNK_CHARS = 1024 * 1024;
const LINE_FEED = 0x0a;
const UNIQUE_VIOLATION = "23505";

/** Throws before anything is changed where it can. Where it cannot, no row is left: of a first import the key ring is, and days without rows. */
export async function importOrganization(world: World, options: ImportOptions): Promise<ImportResult> {
  const startedAtMs = world.clock.monotonic();
  const client = await connect(world.database_url, await schemaOf(world.database_url));
  try {
    const done = { rows: 0, bodies: 0, deliveries: 0 };
    // Where it fails, the end of the connection takes back what it wrote.
    const taken = await takeIn(world, client, options, done).catch((error) => {
      throw explained(error);
    });
    if (done.bodies > 0) await keepBodies(world, options);
    await packDaysAgain(world.db, taken.head.days);
    await lanesFor(world, done.deliveries);
    notifier(world)();
    return {
      organization: taken.head.organization,
      ...{
        tables: taken.tables.length,
        rows: done.rows,
        bodies: done.bodies,
        bodies_missing: taken.end.bodies_missing.length,
      },
      addresses_left: taken.head.addresses,
      seconds: Math.round((world.clock.monotonic() - startedAtMs) / 100) / 10,
    };
  } finally {
    await client.end();
  }
}

async function takeIn(
  world: World,
  client: pg.Client,
  { target, keys, progress }: ImportOptions,
  done: { rows: number; bodies: number; deliveries: number },
) {
  let shared: SharedRows;
  const own = new Map((await movedTables(client)).map((table) => [table.name, table]));
  const taken = await takeFrames<FileHead, TableHead, FileEnd>(open(target.read(), keys), FILE_FORMAT, {
    async head(head) {
      await refuseUnfit(world, head);
      await shareRoot(world, head);
      await makeDays(client, head.days);
      const masked = { domain: world.config.masked_domain, is_used: head.masked_domain !== null };
      shared = sharedRows(asQuery(client), masked);
      await client.query(BEGIN_WRITING);
    },
    async table({ table: name, columns }, rows) {
      progress(`reading ${name}`);
      const table = asHere(own, name, columns);
      const insert = insertRows(table);
      for await (const lines of inChunks(rows)) {
        const json = await prepared(world, shared, name, lines);
        const count = (await client.query(insert, [json])).rowCount ?? 0;
        done.rows += count;
        if (name === "delivery") done.deliveries += count;
      }
    },
    async body(_key, bytes) {
      progress("reading large bodies");
      await world.blobs.put(bytes);
      done.bodies += 1;
    },
  });
  await client.query("commit");
  return taken;
}

/** The table with those of its columns that were written, as this database has them: nothing of the file becomes SQL. */
function asHere(own: ReadonlyMap<string, MovedTable>, name: string, columns: string[]): MovedTable {
  const table = own.get(name);
  const unknown = columns.find((column) => !table?.columns.some((one) => one.name === column));
  if (!table || unknown !== undefined)
    throw new UsageError(
      `the file has what this Postern does not know: ${name}${unknown === undefined ? "" : `.${unknown}`}`,
    );
  return { name, columns: table.columns.filter((column) => columns.includes(column.name)) };
}

/** What waits is without a lane; what is left over here is found by the `clock` role within a minute. */
async function lanesFor(world: World, deliveries: number): Promise<void> {
  for (let left = deliveries; left > 0; ) {
    const given = await giveLanes(world);
    if (given === 0) return;
    left -= given;
  }
}

/** What this cell let go of in the meantime, because nothing here named it yet, is written once more. */
async function keepBodies({ blobs }: Pick<World, "blobs">, { target, keys }: ImportOptions): Promise<void> {
  await takeFrames<FileHead, TableHead, FileEnd>(open(target.read(), keys), FILE_FORMAT, {
    head: async () => undefined,
    async table(_table, rows) {
      for await (const _bytes of rows);
    },
    async body(key, bytes) {
      if (!(await blobs.exists(key))) await blobs.put(bytes);
    },
  });
}

/** Some megabyte of lines at a time. */
async function* inChunks(rows: AsyncIterable<Buffer>): AsyncGenerator<string[]> {
  let held: Buffer[] = [];
  let lines: string[] = [];
  let chars = 0;
  for await (const bytes of rows) {
    let from = 0;
    for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, from)) {
      const line = Buffer.concat([...held, bytes.subarray(from, at)]).toString("utf8");
      [held, from] = [[], at + 1];
      lines.push(line);
      chars += line.length;
      if (chars < CHUNK_CHARS) continue;
      yield lines;
      [lines, chars] = [[], 0];
    }
    if (from < bytes.length) held.push(bytes.subarray(from));
  }
  if (lines.length > 0) yield lines;
}

/** One JSON array. Rows with secrets, and those that organizations share, are read for it, all others are passed on as they are. */
async function prepared(world: World, shared: SharedRows, table: string, lines: string[]): Promise<string> {
  if (!hasSealed(table) && !shared.changes(table)) return `[${lines.join(",")}]`;
  const rows = await shared.change(
    table,
    lines.map((line) => JSON.parse(line) as JsonRow),
  );
  return JSON.stringify(rows.map((row) => sealRow(world.seal, table, row)));
}

// Before anything is changed -----------------------------------------------------------------------------------------

async function refuseUnfit(world: World, head: FileHead): Promise<void> {
  const { config } = world;
  const known = readMigrations().map(({ number }) => number);
  if (head.migrations.join() !== known.join())
    throw new UsageError(
      `the file is of another version of Postern (${head.postern}): let both cells run the same one.`,
    );
  if (head.masked_domain !== null && head.masked_domain !== config.masked_domain)
    throw new UsageError(
      `it has masked addresses at ${head.masked_domain}, and this cell's are at ${config.masked_domain}: set POSTERN_MASKED_DOMAIN to the same in both.`,
    );
  const { id } = head.organization;
  if ((await organizationNames(world, [id])).has(id)) throw new UsageError(`the organization ${id} is here already.`);
}

/** A cell gets the first one's root with its first organization. One that has made links with another cannot read these. */
async function shareRoot(world: World, { key_ring }: FileHead): Promise<void> {
  const root = Buffer.from(key_ring.root, "hex");
  const rings = await readRings(world.db);
  if (rings.length > 0) {
    if (openRing(world.config.master_key, rings)?.root.equals(root)) return;
    throw new UsageError(
      "this cell has a root key of its own, and would not know the links and masked addresses that are out in the world: import into a cell that was never started, or had its first organization from the same cells.",
    );
  }
  const data = new Map(key_ring.data.map(([number, key]) => [number, Buffer.from(key, "hex")]));
  await adoptKeyRing(world, { root, data }, () => isFresh(world));
}

async function makeDays(client: pg.Client, days: string[]): Promise<void> {
  const there = new Set(await daysOf(client));
  for (const day of days.filter((one) => !there.has(one)))
    await client.query("call make_day_partitions($1, $1)", [day]);
}

/** What is held by another organization here is named. */
function explained(error: unknown): unknown {
  const { code, detail, constraint } = error as { code?: string; detail?: string; constraint?: string };
  if (code !== UNIQUE_VIOLATION) return error;
  return new UsageError(`another organization of this cell has that already: ${detail ?? constraint}`, {
    cause: error,
  });
}
