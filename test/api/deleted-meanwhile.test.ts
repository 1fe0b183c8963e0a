// What a request refers to may be deleted while it runs: the answer is then that it does not exist, never a failure.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Answer, type TestApi, testApi } from "../support/api.ts";
import { until } from "../support/until.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

async function domain(name: string): Promise<string> {
  const { status, body } = await api.ask("POST", "/v1/domains", { domain: name, type: "both" });
  assert.equal(status, 201, JSON.stringify(body));
  return body.id;
}

/** Deletes in a transaction that ends once the request waits for it; the answer to the request. */
async function whileDeleting(statement: string, id: string, request: () => Promise<Answer>): Promise<Answer> {
  let answer: Promise<Answer> | undefined;
  await api.world.db.transaction(async (tx) => {
    await tx.execute(statement, [api.org_id, id]);
    answer = request();
    await until("the request waits", async () => {
      const [row] = await api.world.db.query<{ waits: boolean }>(
        `select exists (select 1 from pg_stat_activity
                         where datname = current_database() and wait_event_type = 'Lock') as waits`,
      );
      return row?.waits;
    });
  });
  return answer as Promise<Answer>;
}

const DELETE_DOMAIN = "delete from domain where org_id = $1 and id = $2";
const RULE = { name: "r", action: "store", conditions: [{ field: "subject", comparator: "contains", value: "x" }] };

test("a domain that is deleted while a rule, an alias or a key of it is made is not found", async () => {
  const made: [string, (id: string) => Promise<Answer>][] = [
    ["rule", (id) => api.ask("POST", "/v1/inbound-rules", { ...RULE, domain_id: id })],
    ["domain-rule", (id) => api.ask("POST", `/v1/domains/${id}/rules`, RULE)],
    ["alias", (id) => api.ask("POST", "/v1/aliases", { domain_id: id, local_part: "a" })],
    ["key", (id) => api.ask("POST", `/v1/domains/${id}/dkim`, { algorithm: "ed25519" })],
  ];
  for (const [name, request] of made) {
    const id = await domain(`${name}.example`);
    const { status, body } = await whileDeleting(DELETE_DOMAIN, id, () => request(id));
    assert.deepEqual([status, body.code], [404, "not_found"], name);
  }
});

test("an alias that is deleted while a rule of it is made is not found", async () => {
  const domain_id = await domain("aliases.example");
  const { body } = await api.ask("POST", "/v1/aliases", { domain_id, local_part: "a" });
  const alias_id = body.alias.id;
  const answer = await whileDeleting("delete from alias where org_id = $1 and id = $2", alias_id, () =>
    api.ask("POST", "/v1/inbound-rules", { ...RULE, alias_id }),
  );
  assert.deepEqual([answer.status, answer.body.code], [404, "not_found"], JSON.stringify(answer.body));
});
