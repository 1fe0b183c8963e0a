// What is remembered of a contact is bounded, and the newest of it counts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { findAlias } from "../queries.ts";
import type { AliasRow } from "../types.ts";
import { sentBy } from "./sent.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

test("of a contact that sent lines without end the newest are known, and they push nothing else out", async () => {
  const key = { key: api.test_key };
  const made = await api.ask("POST", "/v1/masked/aliases", { forward_to: ["anna@home.example"] }, key);
  const { contact } = (
    await api.ask("POST", `/v1/masked/aliases/${made.body.alias.id}/contacts`, { email: "shop@contact.example" }, key)
  ).body;
  const { db } = api.world;
  const insert = (octets: number, rows: number, daysAgo: number) =>
    db.execute(
      `insert into masked_sent (org_id, contact_id, digest, created_at)
       select $1, $2, decode(lpad(to_hex(n), 2 * $3::int, '0'), 'hex'), now() - make_interval(days => $4, secs => n)
         from generate_series(1, $5::int) n`,
      [api.org_id, contact.id, octets, daysAgo, rows],
    );
  await insert(16, 10, 300);
  await insert(500, 2_500, 100);
  const [alias] = (await findAlias(db, api.org_id, made.body.alias.id)) as [AliasRow];
  const { digests } = await sentBy(api.world, alias, contact.id, []);
  const lines = digests.map((digest) => Buffer.from(digest, "base64url")).filter(({ length }) => length === 500);
  assert.equal(digests.length - lines.length, 10);
  assert.equal(lines.length, 2_000);
  assert.equal(Math.max(...lines.map((line) => line.readUInt32BE(496))), 2_000);
});
