// What every table of a database holds, as one line each, to be compared with another database: count and digest of its rows,
// whatever their order.
import pg from "pg";

/** A connection that sees every organization's rows, and writes times as every other does. */
export async function connectToRows(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: "-c postern.scope=system -c timezone=UTC" });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** By table, without what a restore itself writes. */
export async function digestTables(client: pg.Client): Promise<Record<string, string>> {
  const tables = await client.query<{ name: string }>(
    `select relname as name from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace
        and not relispartition and relname not in ('sending_guard', 'schema_migration')`,
  );
  const found: Record<string, string> = {};
  for (const { name } of tables.rows) {
    const { rows } = await client.query<{ said: string }>(
      `select count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as said from ${name} t`,
    );
    found[name] = rows[0]?.said ?? "";
  }
  return found;
}
