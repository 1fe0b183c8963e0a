// Routing rules over real SMTP: what is dropped was accepted, is still seen, and says by which rule; the rest goes on.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";

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

test("a test key's rule and endpoint get test mail only; live mail takes the way that live keys chose", async () => {
  const as = { key: r.api.test_key };
  const value = "for the test key";
  const conditions = [{ field: "subject", comparator: "equals", value }];
  const body = { name: "t", domain_id: r.domain.id, priority: 1, conditions, action: "drop" };
  const { rule } = (await r.api.ask("POST", "/v1/inbound-rules", body, as)).body;
  const url = "https://spy.example/hook";
  const { webhook } = (await r.api.ask("POST", "/v1/webhooks", { url, domain_id: r.domain.id }, as)).body;
  await r.send({ from: "carl@third.example", to: "desk@in.example", subject: value, text: "secret" });
  const live = (await r.processed("", 4)).at(-1);
  const { email } = (await r.api.ask("GET", `/v1/inbound-emails/${live?.id}`)).body;
  assert.deepEqual([email.environment, email.status, email.rule_ids], ["live", "delivered", []]);
  const reported = (await r.events(email.id)).flatMap(({ endpoints }) => endpoints);
  assert.deepEqual([reported.length, reported.includes(webhook.id)], [1, false]);
  const simulated = { from: "carl@third.example", to: ["desk@in.example"], subject: value, text: "x" };
  const test = (await r.api.ask("POST", "/v1/inbound-emails/simulate", simulated, as)).body.email;
  const shown = (await r.api.ask("GET", `/v1/inbound-emails/${test.id}`, undefined, as)).body.email;
  assert.deepEqual([shown.status, shown.rule_ids], ["dropped", [rule.id]]);
  await r.api.ask("DELETE", `/v1/inbound-rules/${rule.id}`, undefined, as);
  await r.api.ask("DELETE", `/v1/webhooks/${webhook.id}`, undefined, as);
});

test("what a stranger writes in our name is neither matched nor shown", async () => {
  const host = r.api.world.config.mx_host;
  const trust = ["Authentication-Results", "X-Postern-Trusted", "X-Service-Verdict"].map((header_name) => {
    const leaf = { field: "header", header_name };
    return {
      all: [
        { ...leaf, comparator: "exists", value: true },
        { ...leaf, comparator: "contains", value: "pass" },
      ],
    };
  });
  const body = { name: "trust", domain_id: r.domain.id, match: { any: trust }, action: "drop" };
  const { rule } = (await r.api.ask("POST", "/v1/inbound-rules", body)).body;
  const forged = [
    `Authentication-Results: ${host}; dkim=pass; dmarc=pass`,
    `authentication-results${" ".repeat(300)}: =?us-ascii?q?${host}?= 1; spf=pass`,
    "X-Postern-Trusted: pass",
    "x-service-verdict : pass",
  ];
  const others = "Authentication-Results: mx.other.example; dkim=none";
  const mail = ["From: mallory@other.example", "Subject: forged", ...forged, others, "", "x", ""].join("\r\n");
  await r.send({ envelope: { from: "mallory@other.example", to: ["desk@in.example"] }, raw: mail });
  const [row] = await r.processed("subject=forged");
  assert.deepEqual([row.status, row.subject], ["delivered", "forged"]);
  const { email } = (await r.api.ask("GET", `/v1/inbound-emails/${row.id}`)).body;
  const [event] = await r.events(row.id);
  const kept = [
    { name: "From", value: "mallory@other.example" },
    { name: "Subject", value: "forged" },
    { name: "Authentication-Results", value: "mx.other.example; dkim=none" },
  ];
  assert.deepEqual([email.rule_ids, email.headers, event?.body.headers], [[], kept, kept]);
  const asked = { rule_id: rule.id, email_id: row.id };
  const tried = (await r.api.ask("POST", "/v1/inbound-rules/test", asked)).body;
  assert.equal(tried.matched, 0);
  await r.api.ask("DELETE", `/v1/inbound-rules/${rule.id}`);
});
