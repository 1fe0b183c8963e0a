// `postern organizations export`: waits until nothing is under way for an organization that is held, and writes all that there is of it as
// of one moment into an encrypted file. It stays held: it goes on elsewhere (import.ts), or here (hold.ts, `keep`).
import { createHash } from "node:crypto";
import type pg from "pg";
import { organizationNames } from "../accounts/accounts.ts";
import { findMove, noteExported } from "../accounts/move-queries.ts";
import { type Locks, seal as sealStream } from "../backup/envelope.ts";
import { bodyFrames, dataFrames, frame, type TableEnd, type TableHead } from "../backup/frames.ts";
import { createRowChecksum } from "../backup/row-checksum.ts";
import type { Target } from "../backup/store.ts";
import { asQuery, connect, daysOf } from "../backup/tables.ts";
import { hasAliasesAt } from "../masked/masked.ts";
import { addressesOf } from "../outbound/outbound.ts";
import { sleep } from "../platform/clock.ts";
import { schemaOf } from "../platform/database/citus/cells.ts";
import { isUnavailable } from "../platform/database/db.ts";
import { beginWith, passedOn } from "../platform/database/session-settings.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import { openRing, readRings } from "../platform/storage/key-ring.ts";
import type { World } from "../platform/world.ts";
import { FILE_FORMAT, type FileEnd, type FileHead } from "./file.ts";
import { findUnderWay } from "./hold.ts";
import { hasSealed, type JsonRow, openRow } from "./sealed-rows.ts";
import { MAILS, type MovedTable, movedTables, ownBodyKeys, rowsOf } from "./tables.ts";

type ExportWorld = Pick<World, "db" | "database_url" | "blobs" | "seal" | "clock" | "config">;
export type ExportOptions = {
  organization: string;
  target: Target;
  locks: Locks;
  version: string;
  /** Says what is waited for, or written. */
  progress(text: string): void;
  /** How long work that is under way may take. */
  wait_ms?: number;
};
export type ExportResult = Omit<FileEnd, "bodies_missing"> & {
  organization: { id: string; name: string; state: string };
  bodies_missing: number;
  addresses_left: string[];
  sha256: string;
  stored_bytes: number;
  held_seconds: number;
};

/** What the writing says of itself at its end. */
type Said = Partial<Pick<ExportResult, "organization" | "addresses_left"> & FileEnd & { mails: number }>;

/** A request may take two minutes, an attempt at a mail server ten. */
const WAIT_MS = 15 * 60_000;
const LOOK_EVERY_MS = 250;
const ROWS_AT_ONCE = 100;
const BEGIN = beginWith(passedOn([["postern.scope", "system"]]), "begin isolation level repeatable read, read only");

/** Writes the file whole, or nothing under its name. The organization is held already (hold.ts), and stays so where this fails. */
export async function exportOrganization(world: ExportWorld, options: ExportOptions): Promise<ExportResult> {
  const startedAtMs = world.clock.monotonic();
  const { organization, target, locks } = options;
  await waitUntilStill(world, options);
  const client = await connect(world.database_url, await schemaOf(world.database_url));
  try {
    const sha256 = createHash("sha256");
    const said: Said = {};
    const frames = writeFrames(world, client, options, said);
    const stored_bytes = await target.store(await sealStream(frames, locks), sha256);
    const { bodies_missing = [], mails = 0, ...counted } = said as ExportResult & FileEnd & { mails: number };
    await noteExported(world.db, organization, { at: new Date(world.clock.now()), mails });
    const held_seconds = Math.round((world.clock.monotonic() - startedAtMs) / 100) / 10;
    return {
      ...counted,
      bodies_missing: (bodies_missing as string[]).length,
      ...{ sha256: sha256.digest("hex"), stored_bytes, held_seconds },
    };
  } finally {
    await client.end();
  }
}

async function waitUntilStill({ db, clock }: ExportWorld, options: ExportOptions): Promise<void> {
  const { organization, progress, wait_ms = WAIT_MS } = options;
  const until = clock.monotonic() + wait_ms;
  for (let said = ""; ; ) {
    const underWay = await findUnderWay(db, organization).catch((error) => {
      if (isUnavailable(error)) return ["the database does not answer"];
      throw error;
    });
    if (underWay.length === 0) return;
    const text = underWay.join("; ");
    if (clock.monotonic() >= until)
      throw new Error(
        `it did not come to rest: ${text}. It is held still: run this again, or let it go on here with postern organizations keep.`,
      );
    if (text !== said) progress(`waiting: ${text}`);
    said = text;
    await sleep(LOOK_EVERY_MS);
  }
}

async function* writeFrames(
  world: ExportWorld,
  client: pg.Client,
  { organization: orgId, version, progress }: ExportOptions,
  said: Said,
): AsyncGenerator<Buffer> {
  await client.query(BEGIN);
  const underWay = await findUnderWay(asQuery(client), orgId);
  if (underWay.length > 0) throw new Error(`something began again: ${underWay.join("; ")}. Run this again.`);
  const tables = await movedTables(client);
  const head = await headOf(world, client, { orgId, version });
  yield frame("H", head);
  const end: FileEnd = { tables: 0, rows: 0, bodies: 0, bodies_missing: [] };
  let mails = 0;
  for (const table of tables) {
    progress(`writing ${table.name}`);
    const { rows } = yield* writeTable(world, client, { table, orgId });
    end.rows += rows;
    end.tables += 1;
    if (MAILS.includes(table.name)) mails += rows;
  }
  const keys = await ownBodyKeys(client, orgId, tables);
  await client.query("commit");
  for (const key of keys) {
    progress("writing large bodies");
    if (yield* bodyFrames(world.blobs, key)) end.bodies += 1;
    else end.bodies_missing.push(key);
  }
  yield frame("Z", end);
  Object.assign(said, end, { organization: head.organization, addresses_left: head.addresses, mails });
}

async function headOf(
  { config, clock }: ExportWorld,
  client: pg.Client,
  { orgId, version }: { orgId: string; version: string },
): Promise<FileHead> {
  const ring = openRing(config.master_key, await readRings(asQuery(client)));
  if (!ring) throw new UsageError("the database has no key ring yet: start Postern on it once.");
  const db = asQuery(client);
  const [move] = await findMove(db, orgId);
  const name = (await organizationNames({ db }, [orgId])).get(orgId)?.name ?? "";
  const isServed = await hasAliasesAt(db, orgId, config.masked_domain);
  const migrations = await db.query<{ number: number }>("select number from schema_migration order by number");
  return {
    format: FILE_FORMAT,
    postern: version,
    created_at: new Date(clock.now()).toISOString(),
    organization: { id: orgId, name, state: move?.state_before ?? "active" },
    migrations: migrations.map(({ number }) => number),
    days: await daysOf(client),
    key_ring: {
      root: ring.root.toString("hex"),
      data: [...ring.data].map(([number, key]) => [number, key.toString("hex")]),
    },
    masked_domain: isServed ? config.masked_domain : null,
    addresses: await addressesOf(db, orgId),
  };
}

type Writing = { table: MovedTable; orgId: string };

async function* writeTable(
  world: ExportWorld,
  client: pg.Client,
  { table, orgId }: Writing,
): AsyncGenerator<Buffer, TableEnd> {
  const columns = table.columns.map(({ name }) => name);
  yield frame("T", { table: table.name, columns } satisfies TableHead);
  const checksum = createRowChecksum();
  await client.query(`declare own_rows no scroll cursor for ${rowsOf(table)}`, [orgId]);
  for (;;) {
    const { rows } = await client.query<{ line: string }>(`fetch ${ROWS_AT_ONCE} from own_rows`);
    if (rows.length === 0) break;
    const lines = await Promise.all(rows.map(({ line }) => opened(world, table.name, line)));
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    checksum.add(bytes);
    yield* dataFrames(bytes);
  }
  await client.query("close own_rows");
  const end = checksum.end();
  yield frame("E", end);
  return end;
}

async function opened(world: ExportWorld, table: string, line: string): Promise<string> {
  return hasSealed(table) ? JSON.stringify(await openRow(world, table, JSON.parse(line) as JsonRow)) : line;
}
