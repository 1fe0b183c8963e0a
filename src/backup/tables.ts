// What of a database goes into a backup, read from its catalogs: tables in an order in which they can be filled again, their
// columns, days that are partitions, sequences, names of large bodies. And the connection that it is read over.
import pg from "pg";
import type { Query } from "../platform/database/db.ts";
import { BackupBroken } from "./frames.ts";

export type Table = { name: string; columns: string[] };

/** Rows are written the same way by every server and for every role. */
const FORMS = [
  ...["timezone=UTC", "datestyle=ISO", "intervalstyle=postgres", "bytea_output=hex", "extra_float_digits=1"],
  ...["client_encoding=UTF8", "statement_timeout=0", "idle_in_transaction_session_timeout=0", "lock_timeout=0"],
  "postern.scope=system",
];
const NAME = /^[a-z_][a-z0-9_]*$/;

/** A connection of its own to this schema, without limits of time, that sees every organization's rows. */
export async function connect(url: string, schema = "public"): Promise<pg.Client> {
  const options = FORMS.map((form) => `-c ${form}`).join(" ");
  const client = new pg.Client({ connectionString: url, options, keepAlive: true });
  client.on("error", () => undefined); // the statement under way fails with the same
  try {
    await client.connect();
    await client.query(`set search_path = ${pg.escapeIdentifier(schema)}`);
    return client;
  } catch (error) {
    // Left open, a login that failed on this side holds up making and dropping databases for a minute.
    await client.end().catch(() => undefined);
    throw error;
  }
}

/** The same connection for functions of the features. */
export function asQuery(client: pg.Client): Query {
  return {
    async query<Row>(text: string, values?: readonly unknown[]) {
      return (await client.query(text, values as unknown[])).rows as Row[];
    },
    async execute(text, values) {
      return (await client.query(text, values as unknown[])).rowCount ?? 0;
    },
  };
}

/** Every table of Postern but the list of migrations, partitions within their parents, those first that others refer to. */
export async function tablesOf(client: pg.Client): Promise<Table[]> {
  const { rows } = await client.query<Table>(
    `select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            and a.attgenerated = ''
      where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
            and c.relname not in ('schema_migration', 'schema_migration_restoring')
            and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'e')
      group by c.oid, c.relname order by c.relname`,
  );
  const references = await client.query<{ name: string; target: string }>(
    `select conrelid::regclass::text as name, confrelid::regclass::text as target from pg_constraint
      where contype = 'f' and connamespace = current_schema()::regnamespace and conrelid <> confrelid and conparentid = 0`,
  );
  return inOrder(rows, references.rows);
}

function inOrder(tables: Table[], references: { name: string; target: string }[]): Table[] {
  const ordered: Table[] = [];
  let left = tables;
  while (left.length > 0) {
    const waits = new Set(left.map(({ name }) => name));
    const ready = left.filter((table) => !references.some((to) => to.name === table.name && waits.has(to.target)));
    if (ready.length === 0) throw new Error(`tables refer to each other in a circle: ${[...waits].join(", ")}`);
    ordered.push(...ready);
    left = left.filter((table) => !ready.includes(table));
  }
  return ordered;
}

/** The rows of a table in the form of COPY; a partitioned one is read through its parent. */
export function copyOut({ name, columns }: Table): string {
  return `copy (select ${listed(columns)} from ${quoted(name)}) to stdout`;
}

export function copyIn({ name, columns }: Table): string {
  return `copy ${quoted(name)} (${listed(columns)}) from stdin`;
}

/** Names in a backup become SQL again: only those that ours can have. */
export function quoted(name: string): string {
  if (!NAME.test(name)) throw new BackupBroken("the backup names a table or column that cannot be one of Postern");
  return pg.escapeIdentifier(name);
}

function listed(columns: string[]): string {
  return columns.map(quoted).join(", ");
}

export async function daysOf(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ day: string }>(
    `select distinct to_char(to_date(right(c.relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') as day
       from pg_class c join pg_inherits i on i.inhrelid = c.oid
      where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname ~ '_[0-9]{8}$' order by 1`,
  );
  return rows.map(({ day }) => day);
}

/** Their values are read after the rows, so that they are not behind any of them. */
export async function sequencesOf(client: pg.Client): Promise<{ name: string; value: string }[]> {
  const { rows } = await client.query<{ name: string; value: string }>(
    `select sequencename::text as name, last_value::text as value from pg_sequences
      where schemaname = current_schema() and last_value is not null order by 1`,
  );
  return rows;
}

/** The keys of all large bodies that rows name, each once. */
export async function bodyKeysOf(client: pg.Client, tables: Table[]): Promise<string[]> {
  const naming = tables.filter(({ columns }) => columns.includes("blob_key"));
  const selects = naming.map(({ name }) => `select blob_key from ${quoted(name)} where blob_key is not null`);
  const { rows } = await client.query<{ blob_key: string }>(selects.join(" union "));
  return rows.map(({ blob_key }) => blob_key).sort();
}
