// A deep queue, made in the database: copies of one e-mail that was sent, each with its record, body, recipient and due
// delivery, spread over many lanes. Connect as the superuser: row-level security would hide what is copied.
import type { Client } from "pg";

export type DeepQueue = {
  /** An e-mail with one recipient; the copies are due now, whatever it is. */
  message_id: string;
  rows: number;
  lanes: number;
  /** Lane n is for `d<n>.<domain>`. */
  domain: string;
};

const ROWS_AT_ONCE = 100_000;

/** Makes it; resolves with the seconds it took. */
export async function makeDeepQueue(client: Client, queue: DeepQueue): Promise<number> {
  const startedAt = performance.now();
  await client.query(
    `insert into lane (org_id, source_id, slot, domain, class, next_at, touched_at)
     select l.org_id, l.source_id, n % 16, 'd' || n || '.' || $2, l.class, now() - interval '1 minute', now()
       from delivery d join lane l on l.id = d.lane_id, generate_series(1, $3) as n
      where d.message_id = $1`,
    [queue.message_id, queue.domain, queue.lanes],
  );
  await client.query(
    `create temporary table deep_lane as select row_number() over (order by id) as n, id, domain from lane where domain like 'd%.' || $1`,
    [queue.domain],
  );
  await client.query("create temporary table deep (id uuid, lane_id bigint, domain text)");
  for (let done = 0; done < queue.rows; done += ROWS_AT_ONCE) {
    await copyRows(client, queue, done, Math.min(done + ROWS_AT_ONCE, queue.rows));
  }
  await client.query("drop table deep, deep_lane");
  for (const table of ["delivery", "lane", "message", "message_body", "recipient"])
    await client.query(`analyze ${table}`);
  return (performance.now() - startedAt) / 1000;
}

/** Ids keep the day of the original, and so its partitions. */
async function copyRows(client: Client, { message_id, lanes }: DeepQueue, from: number, to: number): Promise<void> {
  await client.query("truncate deep");
  await client.query(
    `insert into deep select overlay($1::text placing substr(gen_random_uuid()::text, 15) from 15)::uuid, l.id, l.domain
       from generate_series($2::int, $3::int - 1) as row (place) join deep_lane l on l.n = place % $4 + 1`,
    [message_id, from, to, lanes],
  );
  const email = "'someone@' || deep.domain";
  const due = "now() - interval '1 minute'";
  await copyTable(client, "message", "id", message_id, { id: "deep.id", message_id: "deep.id || '@deep.example'" });
  await copyTable(client, "message_body", "id", message_id, { id: "deep.id" });
  await copyTable(client, "recipient", "message_id", message_id, { message_id: "deep.id", email });
  await copyTable(client, "delivery", "message_id", message_id, {
    message_id: "deep.id",
    lane_id: "deep.lane_id",
    email,
    owner: "null",
    due_at: due,
    created_at: due,
    expires_at: "now() + interval '3 days'",
  });
}

async function copyTable(
  client: Client,
  table: string,
  key: string,
  id: string,
  changes: Record<string, string>,
): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "select quote_ident(column_name) as name from information_schema.columns where table_name = $1 order by ordinal_position",
    [table],
  );
  const names = rows.map(({ name }) => name);
  const values = names.map((name) => changes[name] ?? `one.${name}`);
  await client.query(
    `insert into ${table} (${names.join(", ")})
     select ${values.join(", ")} from deep, (select * from ${table} where ${key} = $1) as one`,
    [id],
  );
}
