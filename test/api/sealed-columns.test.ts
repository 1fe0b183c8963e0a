// Every column of bytes holds a sealed value, which a new data key must reach (src/setup/sealed-columns.ts), or is named
// here with what it is; and what the API writes into a sealed column opens with what is said of it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SEALED_COLUMNS } from "../../src/setup/sealed-columns.ts";
import { type TestApi, testApi } from "../support/api.ts";

/** Bytes that are not sealed: digests, mail, texts. */
const NOT_SEALED = {
  digests: [
    ...["api_key.digest", "dmarc_report.fingerprint", "greylist.digest", "idempotency.request_hash"],
    ...["idempotent_create.request_hash", "masked_address.digest", "masked_confirmation_day.digest"],
    ...["masked_contact.digest", "masked_contact.person", "masked_destination.digest", "masked_message_id.digest"],
    ...[
      "masked_sent.digest",
      "master_key.digest",
      "passkey_challenge.digest",
      "person_link.digest",
      "person_session.digest",
    ],
    ...["recovery_code.digest", "sign_in_try.name", "tls_policy_text.policy_hash", "tls_report.fingerprint"],
    ...["tls_result.policy_hash", "key_ring.master_key", "key_ring_use.master_key"],
  ],
  passkeys: ["passkey.credential_id", "passkey.public_key"],
  contents: ["inbound_raw.bytes", "message_body.mime", "webhook_event.body"],
  /** Under the master key itself. */
  rings: ["key_ring.sealed"],
};

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

test("every column of bytes is known, sealed or not, and every sealed one is named with its primary key", async () => {
  const found = await api.world.db.query<{ name: string }>(
    `select a.attrelid::regclass || '.' || a.attname as name
       from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and a.atttypid = 'bytea'::regtype and not a.attisdropped`,
  );
  const sealed = SEALED_COLUMNS.map(({ table, column }) => `${table}.${column}`);
  const known = [...sealed, ...Object.values(NOT_SEALED).flat()];
  assert.deepEqual(found.map(({ name }) => name).sort(), known.sort());
  for (const { table, key } of SEALED_COLUMNS) {
    const columns = await api.world.db.query<{ name: string }>(
      `select a.attname as name from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
        where i.indrelid = $1::text::regclass and i.indisprimary`,
      [table],
    );
    assert.deepEqual([...key].sort(), columns.map(({ name }) => name).sort(), table);
  }
});

test("what is written into a sealed column opens for what its description says", async () => {
  const made = async (method: string, path: string, body: object, headers = {}) => {
    const answer = await api.ask(method, path, body, { headers });
    assert.ok(answer.status < 300, `${path} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  await made("POST", "/v1/domains", { domain: "sealed.example", type: "both" });
  const relay = { host: "relay.example", port: 587, username: "u", password: "p", tls: "starttls", mode: "always" };
  const { domains } = (await api.ask("GET", "/v1/domains")).body;
  await made("PUT", `/v1/domains/${domains[0].id}/relay`, relay);
  const hook = { url: "https://hooks.example/a", events: ["email.delivered"] };
  const { webhook } = await made("POST", "/v1/webhooks", hook, { "idempotency-key": "sealed-columns" });
  await made("POST", `/v1/webhooks/${webhook.id}/rotate`, {});
  const { alias } = await made("POST", "/v1/masked/aliases", { forward_to: ["a@real.example"] });
  await made("POST", `/v1/masked/aliases/${alias.id}/contacts`, { email: "b@shop.example" });

  const opened = new Set<string>();
  for (const place of SEALED_COLUMNS) {
    const { table, column, key, context } = place;
    const rows = await api.world.db.query<Record<string, string> & { sealed: Buffer }>(
      `select ${key.join(", ")}, ${column} as sealed from ${table} where ${column} is not null`,
    );
    for (const row of rows) api.world.seal.open(row.sealed, context(row));
    if (rows.length > 0) opened.add(`${table}.${column}`);
  }
  const expected = [
    ...[
      "dkim_key.private_key",
      "webhook.secret",
      "webhook.previous_secret",
      "relay.password",
      "masked_key.private_key",
    ],
    ...["masked_contact.sealed", "masked_destination.sealed", "idempotent_create.answer"],
  ];
  assert.deepEqual(
    expected.filter((name) => !opened.has(name)),
    [],
  );
});
