// What of a database belongs to one organization: read from its catalogs, so that a new table moves with the others. Rows are written
// as JSON objects by PostgreSQL itself, a line each, and read back with the types of the columns.
import type pg from "pg";
import { quoted, tablesOf } from "../backup/tables.ts";
import { beginWith, passedOn } from "../platform/database/session-settings.ts";

export type Column = { name: string; type: string };
export type MovedTable = { name: string; columns: Column[] };

/** Rows that name an organization and stay, or are made again where it goes. */
export const STAYING: Record<string, string> = {
  lane: "numbered by each database; deliveries are given new ones",
  source: "addresses of this cell's machines",
  event_listener: "a stream of events that is open here",
  request_rate: "of the last second",
  person_link: "links to this cell's dashboard",
  message_texts: "packed again from the rows",
  inbound_email_texts: "packed again from the rows",
  organization_move: "says that it moves",
  organization_move_seen: "says that it moves",
};

/** A transaction that writes rows of any organization, with its sums among them. */
export const BEGIN_WRITING = beginWith(
  passedOn([
    ["postern.scope", "system"],
    ["postern.sums", "statements"],
  ]),
);

/** A row of these is a mail that somebody was promised. */
export const MAILS = ["message", "inbound_email"];

/** Tables without the organization in them of which it has rows: by these, $1 is its id. */
const BY_PERSON = "select person_id from membership where org_id = $1";
const OWN_ROWS: Record<string, string> = {
  organization: "id = $1",
  person: `id in (${BY_PERSON})`,
  passkey: `person_id in (${BY_PERSON})`,
  recovery_code: `person_id in (${BY_PERSON})`,
  // The cell's own: one that serves the same masked domain signs with the same key, as DNS has one record for both.
  masked_key: "$1::uuid is not null",
};

/** What is written in place of a column: nobody there holds what a process here has claimed. */
const INSTEAD: Record<string, Record<string, string>> = {
  organization: { state: "(select state_before from organization_move where org_id = organization.id)" },
  delivery: { owner: "null::bigint", lane_id: "0::bigint" },
  inbound_queue: { claim_id: "null::uuid", lease_until: "null::timestamptz" },
  webhook_queue: { claim_id: "null::uuid", lease_until: "null::timestamptz" },
  suppression_import: { lease_until: "null::timestamptz" },
  webhook_event: { listened: "null::xid8" },
};

/** A large reply that is held lies in a store, sealed; it moves inside of its row. */
const NOT_HELD = "not exists (select from masked_held h where h.org_id = $1 and h.id = blob_reference.owner_id)";

/** Those with rows of organizations, in an order in which they can be filled. */
export async function movedTables(client: pg.Client): Promise<MovedTable[]> {
  const tables = (await tablesOf(client)).filter(
    ({ name, columns }) => name in OWN_ROWS || (columns.includes("org_id") && !(name in STAYING)),
  );
  const { rows } = await client.query<{ table: string } & Column>(
    `select c.relname::text as table, a.attname::text as name, format_type(a.atttypid, null) as type
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            and a.attgenerated = '' and a.attidentity = ''
      where c.relnamespace = current_schema()::regnamespace and c.relname = any($1)
      order by a.attnum`,
    [tables.map(({ name }) => name)],
  );
  return tables.map(({ name }) => ({
    name,
    columns: rows.filter(({ table }) => table === name).map(({ name: column, type }) => ({ name: column, type })),
  }));
}

/** Each row as one line of JSON. $1 is the organization. */
export function rowsOf({ name, columns }: MovedTable): string {
  const listed = columns.map((column) => {
    const instead = INSTEAD[name]?.[column.name];
    const value = instead ?? (isJson(column) ? `${quoted(column.name)}::text` : quoted(column.name));
    return `${value} as ${quoted(column.name)}`;
  });
  const own = OWN_ROWS[name] ?? (name === "blob_reference" ? `org_id = $1 and ${NOT_HELD}` : "org_id = $1");
  return `select row_to_json(t)::text as line from (select ${listed.join(", ")} from ${quoted(name)} where ${own}) t`;
}

/** Puts the rows of a JSON array ($1) into the table. `columns` as they were written: what the table has beside them has its default. */
export function insertRows({ name, columns }: MovedTable): string {
  const names = columns.map(({ name: column }) => quoted(column));
  const values = columns.map((column) =>
    isJson(column) ? `${quoted(column.name)}::${column.type}` : quoted(column.name),
  );
  const types = columns.map((column) => `${quoted(column.name)} ${isJson(column) ? "text" : column.type}`);
  // In this form Citus hands it to the cell's server as it is; of the plain one it would make a COPY, which row-level security refuses.
  return `with given as (select ${values.join(", ")} from json_to_recordset($1::json) as r (${types.join(", ")}))
    insert into ${quoted(name)} (${names.join(", ")}) select * from given returning 1`;
}

/** Inside of JSON a JSON null would become SQL's. */
function isJson({ type }: Column): boolean {
  return type === "json" || type === "jsonb";
}

/** The keys of its large bodies, each once. */
export async function ownBodyKeys(client: pg.Client, orgId: string, tables: MovedTable[]): Promise<string[]> {
  const naming = tables.filter(
    ({ name, columns }) => name !== "masked_held" && columns.some((one) => one.name === "blob_key"),
  );
  const selects = naming.map(({ name }) =>
    name === "blob_reference"
      ? `select blob_key from blob_reference where org_id = $1 and ${NOT_HELD}`
      : `select blob_key from ${quoted(name)} where org_id = $1 and blob_key is not null`,
  );
  const { rows } = await client.query<{ blob_key: string }>(selects.join(" union "), [orgId]);
  return rows.map(({ blob_key }) => blob_key).sort();
}
