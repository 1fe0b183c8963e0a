// What is remembered of a contact is bounded, and the newest of it counts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { findAlias } from "../queries.ts";
import { purgeSent } from "../settle/trace-queries.ts";
import type { AliasRow } from "../types.ts";
import { concludeMails } from "./conclude-queries.ts";
import { sentBy } from "./sent.ts";

const DAY_MS = 86_400_000;

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

async function contactOfAlias(): Promise<{ alias_id: string; contact_id: string }> {
  const key = { key: api.test_key };
  const made = await api.ask("POST", "/v1/masked/aliases", { forward_to: ["anna@home.example"] }, key);
  const path = `/v1/masked/aliases/${made.body.alias.id}/contacts`;
  const { body } = await api.ask("POST", path, { email: "shop@contact.example" }, key);
  return { alias_id: made.body.alias.id, contact_id: body.contact.id };
}

test("of a contact that sent lines without end the newest are known, and they push nothing else out", async () => {
  const { alias_id, contact_id } = await contactOfAlias();
  const { db } = api.world;
  const insert = (octets: number, rows: number, daysAgo: number) =>
    db.execute(
      `insert into masked_sent (org_id, contact_id, digest, created_at)
       select $1, $2, decode(lpad(to_hex(n), 2 * $3::int, '0'), 'hex'), now() - make_interval(days => $4, secs => n)
         from generate_series(1, $5::int) n`,
      [api.org_id, contact_id, octets, daysAgo, rows],
    );
  await insert(16, 10, 300);
  await insert(500, 2_500, 100);
  const [alias] = (await findAlias(db, api.org_id, alias_id)) as [AliasRow];
  const { digests } = await sentBy(api.world, alias, contact_id, []);
  const lines = digests.map((digest) => Buffer.from(digest, "base64url")).filter(({ length }) => length === 500);
  assert.equal(digests.length - lines.length, 10);
  assert.equal(lines.length, 2_000);
  assert.equal(Math.max(...lines.map((line) => line.readUInt32BE(496))), 2_000);
});

test("what a contact sends again is kept as if it were new", async () => {
  const { alias_id, contact_id } = await contactOfAlias();
  const { db } = api.world;
  const first = Date.UTC(2026, 0, 1);
  const send = (day: number, ...words: string[]) =>
    db.transaction((tx) =>
      concludeMails(tx, [
        {
          ...{ org_id: api.org_id, alias_id, traces: [], ids: [], contact: null, entries: [] },
          at: new Date(first + day * DAY_MS),
          sent: words.map((word) => ({ contact_id, digest: Buffer.from(word.padEnd(16)) })),
          counts: { received: 1, forwarded: 1, replied: 0, blocked: 0 },
        },
      ]),
    );
  await send(0, "every time", "once");
  await send(0.5, "every time", "every time");
  await send(399, "every time", "late");
  await purgeSent(db, new Date(first + DAY_MS), 100);
  const [alias] = (await findAlias(db, api.org_id, alias_id)) as [AliasRow];
  const { digests } = await sentBy(api.world, alias, contact_id, []);
  const words = digests.map((digest) => Buffer.from(digest, "base64url").toString().trim());
  assert.deepEqual(words.sort(), ["every time", "late"]);
});
