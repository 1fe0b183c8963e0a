// Routing rules over real SMTP: what is dropped was accepted, is still seen, and says by which rule; the rest goes on.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { addAlias, type Receiving, startTestReceiving } from "../../test/support/receiving.ts";

let r: Receiving;
let alias: { id: string };

before(async () => {
  r = await startTestReceiving();
  alias = await addAlias(r, "desk");
});
after(() => r.close());

test("an alias's rule acts before its domain's, a dropped mail tells no webhook, and all of it is seen", async () => {
  const rule = async (more: object) => {
    const body = { name: "r", domain_id: r.domain.id, ...more };
    const answer = await r.api.ask("POST", "/v1/inbound-rules", body);
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer.body.rule.id as string;
  };
  const from = { field: "sender_domain", comparator: "equals", value: "contact.example" };
  const drop = await rule({ priority: 1, conditions: [from], action: "drop" });
  const keep = await rule({
    priority: 900,
    alias_id: alias.id,
    match: { all: [from, { field: "header", header_name: "X-Kind", comparator: "matches", value: "^order-\\d+$" }] },
    action: "webhook",
  });
  const mail = { from: "anna@contact.example", to: "desk@in.example", text: "x" };
  await r.send({ ...mail, subject: "dropped" });
  await r.send({ ...mail, subject: "kept", headers: { "X-Kind": "order-7" } });
  await r.send({ ...mail, from: "bob@other.example", subject: "untouched" });
  const rows = await r.processed("", 3);
  const seen = [];
  for (const { id } of rows) {
    const { email } = (await r.api.ask("GET", `/v1/inbound-emails/${id}`)).body;
    seen.push([email.subject, email.status, email.rule_ids, (await r.events(id)).length]);
  }
  assert.deepEqual(seen, [
    ["dropped", "dropped", [drop], 0],
    ["kept", "delivered", [keep], 1],
    ["untouched", "delivered", [], 1],
  ]);
  const hits = (await r.api.ask("GET", `/v1/domains/${r.domain.id}/rules`)).body.rules.map(
    ({ id, hits: count }: { id: string; hits: number }) => [id, count],
  );
  assert.deepEqual(hits, [
    [keep, 1],
    [drop, 1],
  ]);
});
