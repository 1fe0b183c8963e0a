import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { FUTURE_TIMES } from "./future-times.ts";
import { healFutureTimes } from "./heal-times.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

/** Of these nothing waits, or people chose them. */
const LEFT = new Set([
  "delivery.expires_at", // goes with the e-mail's own time
  "masked_contact.last_seen_at", // shown only
  "message.expires_at",
  "message.scheduled_at", // the sender chose it
  "node.started_at",
  "recipient.next_attempt_at", // shown only: delivery.due_at is what counts
  "request_rate.full_at", // bounded where it is read
  "suppression.expires_at", // the customer chose it
]);

test("every stored time of the future has a bound, or a reason why it needs none", async () => {
  const rows = await api.world.db.query<{ name: string }>(
    `select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and data_type like 'timestamp%'
        and column_name ~ '(until|next_|due_at|expires|refresh_at|retires|full_at|seen_at|lease_)'
        and table_name not in (select inhrelid::regclass::text from pg_inherits)`,
  );
  const known = new Set(FUTURE_TIMES.map(({ table, column }) => `${table}.${column}`));
  const unknown = rows.map(({ name }) => name).filter((name) => !known.has(name) && !LEFT.has(name));
  assert.deepEqual(unknown, []);
  assert.ok(rows.length > 10);
});

test("what was stored before the clock was set back by a year is brought within its bound, all else stays", async () => {
  const { world } = api;
  const { org_id } = await api.organization("starter");
  const nowMs = world.clock.now();
  const at = (seconds: number) => new Date(nowMs + seconds * 1000);
  const id = () => world.random.uuid();
  const insert = (seconds: number) =>
    world.db.query<{ id: string }>(
      `insert into inbound_queue (org_id, id, raw_id, next_attempt_at) values ($1, $2, $3, $4) returning id`,
      [org_id, id(), id(), at(seconds)],
    );
  await insert(3_000);
  await insert(400 * 86_400);
  await world.db.query(
    "insert into idempotency (org_id, environment, key, request_hash, status, answer, created_at) values ($1, 'live', 'k', '', 202, '', $2)",
    [org_id, at(31 * 86_400)],
  );
  await world.db.query("insert into sign_in_try (name, full_at) values ('x', $1)", [at(365 * 86_400)]);
  assert.equal(await healFutureTimes(world, FUTURE_TIMES), 3);
  const [tries] = await world.db.query<{ s: number }>(
    "select extract(epoch from full_at - $1)::float8 as s from sign_in_try where name = 'x'",
    [at(0)],
  );
  assert.ok((tries?.s as number) < 1_060, "nobody is kept from signing in for a year");
  const left = await world.db.query<{ s: number }>(
    "select extract(epoch from next_attempt_at - $2)::float8 as s from inbound_queue where org_id = $1 order by 1",
    [org_id, at(0)],
  );
  assert.ok((left[0]?.s as number) < 60, "due now");
  assert.equal(Math.round(left[1]?.s as number), 3_000, "within its bound already");
  assert.equal(await healFutureTimes(world, FUTURE_TIMES), 0, "nothing is left to do");
});
