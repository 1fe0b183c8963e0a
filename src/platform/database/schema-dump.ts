// The schema as text, read from PostgreSQL's catalogs: what all migrations together have made, for migrations/schema.sql,
// which is committed so that a review sees a migration's effect as a diff. Deterministic: sorted by name, columns in
// their order, no owners, no sizes. Not here: rows, day partitions (made at run time), and loading: migrations do that.
import pg from "pg";

const HEADER = `-- The schema that all migrations together make, read back from the catalogs: for reviews and for reading, not for
-- loading (it has no rows, and day partitions are made at run time). A test compares it with a migrated database.
-- Rewrite it after a change of migrations/: node test/support/write-schema.ts
`;

/** Reads the public schema of the database at `url`; the text ends with one newline. */
export async function dumpSchema(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    // One snapshot, so that partitions made meanwhile cannot tear it.
    await client.query("begin isolation level repeatable read read only");
    const parts = [...(await dumpRoutines(client)), ...(await dumpTables(client))];
    return `${HEADER}\n${parts.join("\n\n")}\n`;
  } finally {
    await client.end();
  }
}

async function dumpRoutines(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ definition: string }>(
    `select case when p.prokind <> 'a' then pg_get_functiondef(p.oid) else (
              select format('CREATE AGGREGATE public.%I(%s) (sfunc = %s, stype = %s, initcond = %L)', p.proname,
                       pg_get_function_identity_arguments(p.oid), a.aggtransfn, format_type(a.aggtranstype, null), a.agginitval)
                from pg_aggregate a where a.aggfnoid = p.oid) end as definition
       from pg_proc p
      where p.pronamespace = 'public'::regnamespace
        and not exists (select 1 from pg_depend d where d.objid = p.oid and d.deptype = 'e')
      order by p.proname, pg_get_function_identity_arguments(p.oid)`,
  );
  return rows.map(({ definition }) => `${trimLines(definition)};`);
}

type Table = {
  oid: number;
  name: string;
  partition_key: string | null;
  options: string[] | null;
  guarded: boolean;
  forced: boolean;
};

async function dumpTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<Table>(
    `select c.oid, c.relname as name, pg_get_partkeydef(c.oid) as partition_key, c.reloptions as options,
            c.relrowsecurity as guarded, c.relforcerowsecurity as forced
       from pg_class c
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and c.relname <> 'schema_migration'
      order by c.relname`,
  );
  const tables: string[] = [];
  for (const table of rows) tables.push(await dumpTable(client, table));
  return tables;
}

async function dumpTable(client: pg.Client, table: Table): Promise<string> {
  const columns = await dumpColumns(client, table.oid);
  const constraints = await lines(
    client,
    // NOT NULL stands with its column (PostgreSQL 18 has it here too).
    `select format('constraint %I %s', conname, pg_get_constraintdef(oid)) as line from pg_constraint
      where conrelid = $1 and contype <> 'n' order by contype <> 'p', conname`,
    table.oid,
  );
  const indexes = await lines(
    client,
    `select pg_get_indexdef(i.indexrelid) || ';' as line from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indrelid = $1 and not exists (select 1 from pg_constraint k where k.conindid = i.indexrelid)
      order by c.relname`,
    table.oid,
  );
  const policies = await lines(
    client,
    `select format('create policy %I on %I as %s for %s using (%s)%s;', policyname, tablename, lower(permissive),
                   lower(cmd), qual, ' with check (' || with_check || ')') as line
       from pg_policies where schemaname = 'public' and tablename = (select relname from pg_class where oid = $1)
      order by policyname`,
    table.oid,
  );
  const triggers = await lines(
    client,
    "select pg_get_triggerdef(oid) || ';' as line from pg_trigger where tgrelid = $1 and not tgisinternal order by tgname",
    table.oid,
  );
  const head = `create table ${table.name} (\n${[...columns, ...constraints].map((line) => `  ${line}`).join(",\n")}\n)`;
  return [`${head}${storageOf(table)};`, ...indexes, ...guardOf(table), ...policies, ...triggers].join("\n");
}

async function dumpColumns(client: pg.Client, oid: number): Promise<string[]> {
  // attstorage differs from its type's own only where a migration has set it.
  return lines(
    client,
    `select concat_ws(' ', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
              case a.attstorage when t.typstorage then null when 'e' then 'storage external' when 'x' then 'storage extended'
                when 'm' then 'storage main' else 'storage plain' end,
              case when a.attcollation <> t.typcollation then 'collate ' || a.attcollation::regcollation::text end,
              case a.attidentity when 'a' then 'generated always as identity' when 'd' then 'generated by default as identity' end,
              case when a.attgenerated = 's' then 'generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored'
                   when d.adbin is not null then 'default ' || pg_get_expr(d.adbin, d.adrelid) end,
              case when a.attnotnull then 'not null' end) as line
       from pg_attribute a join pg_type t on t.oid = a.atttypid
       left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`,
    oid,
  );
}

function storageOf({ partition_key, options }: Table): string {
  const key = partition_key ? ` partition by ${partition_key.toLowerCase()}` : "";
  return options ? `${key} with (${[...options].sort().join(", ")})` : key;
}

function guardOf({ name, guarded, forced }: Table): string[] {
  return [
    ...(guarded ? [`alter table ${name} enable row level security;`] : []),
    ...(forced ? [`alter table ${name} force row level security;`] : []),
  ];
}

async function lines(client: pg.Client, text: string, oid: number): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(text, [oid]);
  return rows.map(({ line }) => line.replace(/\bON public\./g, "ON "));
}

function trimLines(text: string): string {
  return text
    .trim()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}
