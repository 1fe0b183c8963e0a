// Every table of the schema is known: it moves with its organization, stays for a reason, or holds nothing of organizations.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type pg from "pg";
import { type TestDatabase, testDatabase } from "../../test/support/database.ts";
import { connect, tablesOf } from "../backup/tables.ts";
import { schemaOf } from "../platform/database/citus/cells.ts";
import { movedTables, rowsOf, STAYING } from "./tables.ts";

/** Of the cell, of its machines, or of what it learned about others. */
const OF_THE_CELL = [
  ...["acme_account", "acme_certificate", "acme_challenge", "day_partitioned", "destination_order", "greylist"],
  ...["health_look", "key_ring", "key_ring_use", "lease", "masked_confirmation_day", "master_key"],
  ...[
    "message_texts_day",
    "node",
    "passkey_challenge",
    "person_session",
    "port_closed",
    "sending_guard",
    "sign_in_try",
  ],
  ...["source_day", "sts_policy", "tls_policy_text", "tls_report_due", "tls_result"],
];

let database: TestDatabase;
let client: pg.Client;

before(async () => {
  database = await testDatabase();
  client = await connect(database.url, await schemaOf(database.url));
});
after(async () => {
  await client?.end();
  await database?.drop();
});

test("a table is moved, stays, or is the cell's own", async () => {
  const all = (await tablesOf(client)).map(({ name }) => name);
  const moved = (await movedTables(client)).map(({ name }) => name);
  const known = [...moved, ...Object.keys(STAYING), ...OF_THE_CELL];
  assert.deepEqual(known.sort(), all.sort());
});

test("the rows of each can be asked for, those first that others refer to", async () => {
  const tables = await movedTables(client);
  const names = tables.map(({ name }) => name);
  for (const [one, other] of [
    ["organization", "domain"],
    ["person", "membership"],
    ["domain", "alias"],
    ["masked_alias", "masked_contact"],
  ] as const)
    assert.ok(names.indexOf(one) < names.indexOf(other), `${one} before ${other}`);
  for (const table of tables) await client.query(rowsOf(table), ["01a00000-0000-7000-8000-000000000001"]);
});
