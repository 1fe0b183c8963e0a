// /v1/domains/{id}/spam: what everybody starts with, what may be changed, and what is refused by name.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";

let api: TestApi;
let id: string;
before(async () => {
  api = await testApi();
  id = (await api.ask("POST", "/v1/domains", { domain: "in.example" })).body.id;
});
after(() => api.close());

const get = (name = id) => api.ask("GET", `/v1/domains/${name}/spam`);
const put = (body: unknown, name = id) => api.ask("PUT", `/v1/domains/${name}/spam`, body);

const DEFAULTS = {
  enabled: true,
  engine: "builtin",
  thresholds: { tag: 5, quarantine: 8, reject: 15 },
  on_error: "accept",
  dmarc_action: { reject: "tag", quarantine: "tag" },
  allow: [],
  block: [],
};
const UNCHOSEN = { ...DEFAULTS, engine_chosen: false };

test("a domain starts with the defaults, by its id or its name", async () => {
  for (const name of [id, "in.example", "IN.example"]) {
    const { status, body } = await get(name);
    assert.equal(status, 200);
    assert.deepEqual(body, { domain_id: id, domain: "in.example", ...UNCHOSEN, updated_at: null });
  }
});

test("every setting can be given, and what is left out stays", async () => {
  const all = {
    enabled: false,
    engine: "rspamd",
    thresholds: { tag: 3.5, quarantine: 6, reject: null },
    on_error: "defer",
    dmarc_action: { reject: "reject", quarantine: "none" },
    allow: ["Boss@Corp.example", "partner.example", "partner.example", "*@lists.example"],
    block: ["@spam.example", "Bücher.example"],
  };
  const { status, body } = await put(all);
  assert.equal(status, 200);
  const kept = {
    ...all,
    allow: ["boss@corp.example", "partner.example", "*@lists.example"],
    block: ["spam.example", "xn--bcher-kva.example"],
  };
  const { domain_id, domain, updated_at, ...settings } = body;
  assert.deepEqual([domain_id, domain, settings], [id, "in.example", { ...kept, engine_chosen: true }]);
  assert.match(updated_at, /^\d{4}-.*Z$/);
  assert.deepEqual((await get()).body, body);

  const changed = (await put({ thresholds: { reject: 9 }, block: [] }, "in.example")).body;
  assert.deepEqual(changed.thresholds, { tag: 3.5, quarantine: 6, reject: 9 });
  assert.deepEqual([changed.block, changed.allow, changed.enabled], [[], kept.allow, false]);
  const back = (await put({ ...DEFAULTS })).body;
  const { updated_at: at } = back;
  assert.deepEqual(back, { domain_id: id, domain: "in.example", ...DEFAULTS, engine_chosen: true, updated_at: at });
  const unchosen = (await put({ engine: null })).body;
  assert.deepEqual([unchosen.engine, unchosen.engine_chosen], ["builtin", false], "the server has no rspamd");
  assert.equal((await put({})).status, 200, "nothing to change is no error");
});

test("what is wrong is named by its path", async () => {
  const cases: [unknown, string, RegExp][] = [
    [{ colour: 1 }, "colour", /colour/],
    [{ enabled: "yes" }, "enabled", /enabled/],
    [{ engine: "other" }, "engine", /engine/],
    [{ on_error: "reject" }, "on_error", /on_error/],
    [{ thresholds: 5 }, "thresholds", /thresholds/],
    [{ thresholds: { tag: "5" } }, "thresholds.tag", /thresholds.tag/],
    [{ thresholds: { tag: -1 } }, "thresholds.tag", /thresholds.tag/],
    [{ thresholds: { reject: 1001 } }, "thresholds.reject", /thresholds.reject/],
    [{ thresholds: { spam: 5 } }, "thresholds.spam", /thresholds.spam/],
    [{ thresholds: { quarantine: 4 } }, "thresholds.quarantine", /must not be less than thresholds.tag, which is 5/],
    [{ thresholds: { tag: 9 } }, "thresholds.tag", /must not be more than thresholds.quarantine, which is 8/],
    [{ thresholds: { tag: 5, quarantine: null, reject: 3 } }, "thresholds.reject", /less than thresholds.tag/],
    [{ dmarc_action: "reject" }, "dmarc_action", /dmarc_action/],
    [{ dmarc_action: { reject: "drop" } }, "dmarc_action.reject", /dmarc_action.reject/],
    [{ dmarc_action: { none: "tag" } }, "dmarc_action.none", /dmarc_action.none/],
    [{ allow: "a@b.example" }, "allow", /allow/],
    [{ allow: ["a@b.example", ""] }, "allow[1]", /allow\[1\]/],
    [{ allow: ["a@b.example", "not a sender"] }, "allow[1]", /'allow\[1\]' field must be an address, a domain/],
    [{ block: ["*"] }, "block[0]", /every sender/],
    [{ block: Array.from({ length: 1001 }, (_, at) => `a${at}.example`) }, "block", /block/],
    [{ allow: Array.from({ length: 101 }, (_, at) => `*.a${at}.example`) }, "allow[100]", /at most 100 patterns/],
  ];
  for (const [body, field, error] of cases) {
    const answer = await put(body);
    assert.deepEqual([answer.status, answer.body.code, answer.body.field], [400, "validation_error", field]);
    assert.match(answer.body.error, error);
  }
  assert.deepEqual((await get()).body.thresholds, DEFAULTS.thresholds, "nothing of it was kept");
});

test("a thousand senders fit", async () => {
  const block = Array.from({ length: 1_000 }, (_, at) => `sender${at}@spam.example`);
  assert.equal((await put({ block })).body.block.length, 1_000);
  await put({ block: [] });
});

test("a domain that is not there, or another organization's, is 404; a test key may change its own", async () => {
  const other = await api.organization();
  for (const name of [id, "in.example", "0198c0de-0000-7000-8000-000000000000", "none.example"]) {
    const key = name === id || name === "in.example" ? other.live_key : api.live_key;
    for (const [method, body] of [["GET"], ["PUT", { enabled: false }]] as [string, object?][]) {
      const { status, body: error } = await api.ask(method, `/v1/domains/${name}/spam`, body, { key });
      assert.deepEqual([status, error.code], [404, "not_found"], `${method} ${name}`);
    }
  }
  assert.equal((await get()).body.enabled, true);
  const as = { key: api.test_key };
  const made = await api.ask("POST", "/v1/domains", { domain: "of-a-test-key.example" }, as);
  const own = await api.ask("PUT", `/v1/domains/${made.body.id}/spam`, { enabled: true }, as);
  assert.equal(own.status, 200);
});

test("the settings go with their domain", async () => {
  const created = await api.ask("POST", "/v1/domains", { domain: "short.example" });
  await put({ enabled: false }, created.body.id);
  assert.equal((await api.ask("DELETE", `/v1/domains/${created.body.id}`)).status, 200);
  assert.equal((await get(created.body.id)).status, 404);
  const again = await api.ask("POST", "/v1/domains", { domain: "short.example" });
  assert.equal((await get(again.body.id)).body.enabled, true);
});
