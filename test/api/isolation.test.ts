// Tenancy and keys, over every operation of the description: another organization's ids are 404 with the very body of an
// id that never was, a missing or revoked key is 401, nothing of another organization changes or shows. A route that is
// not in the tables of resources.ts fails here. Row-level security itself: row-level-security.test.ts.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { changeSetting } from "../../src/accounts/accounts.ts";
import { type Answer, type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { operationsOf, type Placed, readDescription } from "./operations.ts";
import {
  BODIES,
  makeNamed,
  type Names,
  type Owner,
  ownerOf,
  paramsOf,
  QUERIES,
  REFERENCES,
  RESOURCES,
} from "./resources.ts";

const RANDOM_ID = "0190a000-0000-7000-8000-00000000dead";
/** The only operations that a suspended organization is refused; it may look at and put away what it has. */
const SENDS = [
  "POST /v1/send",
  "POST /v1/send/batch",
  "POST /v1/emails/{id}/retry",
  "POST /v1/masked/aliases",
  "POST /v1/masked/destinations",
];
/** What test keys are refused whatever it is about. */
const LIVE_ONLY = [
  "POST /v1/emails/{id}/retry",
  "PUT /v1/domains/{id}/relay",
  "DELETE /v1/domains/{id}/relay",
  "POST /v1/ip-pools",
  "PUT /v1/ip-pools/{id}",
  "DELETE /v1/ip-pools/{id}",
  "POST /v1/webhooks/{id}/rotate",
  "PUT /v1/masked/settings",
];
/** What test keys may do to what test keys made, and not to what is live. */
const NOT_TO_LIVE = [
  "PUT /v1/api-keys/{id}",
  "DELETE /v1/api-keys/{id}",
  "GET /v1/emails/{id}/content",
  "POST /v1/emails/{id}/cancel",
  "GET /v1/inbound-emails/{id}",
  "GET /v1/inbound-emails/{id}/raw",
  "GET /v1/inbound-emails/{id}/attachments/{attachment_id}/download",
  "POST /v1/inbound-emails/{id}/replay",
  "POST /v1/inbound-emails/{id}/release",
  "DELETE /v1/inbound-emails/{id}",
  "PUT /v1/webhooks/{id}",
  "DELETE /v1/webhooks/{id}",
  "POST /v1/webhooks/{id}/replay",
  "POST /v1/webhook-deliveries/{id}/replay",
  "PUT /v1/domains/{id}",
  "DELETE /v1/domains/{id}",
  "PUT /v1/domains/{id}/spam",
  "POST /v1/domains/{id}/dkim",
  "POST /v1/domains/{id}/dkim/rotate",
  "DELETE /v1/domains/{id}/dkim/{selector}",
  "POST /v1/domains/{id}/warming/start",
  "POST /v1/domains/{id}/warming/pause",
  "POST /v1/domains/{id}/warming/resume",
  "PATCH /v1/aliases/{id}",
  "DELETE /v1/aliases/{id}",
  "PATCH /v1/inbound-rules/{id}",
  "DELETE /v1/inbound-rules/{id}",
  "POST /v1/inbound-rules/reorder",
  "POST /v1/dmarc/reports",
];
/** Done a moment ago already, when the thing was made: too soon to do again. */
const TOO_SOON = ["POST /v1/masked/destinations/{id}/resend"];
/** Answers in which nothing is their owner's: limits, the service's own domain. */
const NOBODYS = ["GET /v1/usage", "GET /v1/masked/settings", "GET /v1/masked/domain"];
/** Of the queries in QUERIES. */
const ASKED_ABOUT = "x@recipient.example";
/** What belongs to an environment: a test key sees what test keys made. */
const BY_ENVIRONMENT = ["/v1/masked/"];

let dns: DnsServer;
let api: TestApi;
let operations: Placed[];
let ours: Owner;
let strangers: Owner;
let tester: Owner;
let keys: { org_id: string; live_key: string; test_key: string };

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  operations = operationsOf(await readDescription(api));
  keys = await api.organization();
  ours = ownerOf(api, dns, keys.live_key, "ourscanary");
  strangers = ownerOf(api, dns, api.live_key, "strangers");
  tester = ownerOf(api, dns, keys.test_key, "testcanary", keys.live_key);
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

/** The path with its parameters filled in, and the query the operation needs. */
function urlOf({ name, path }: Placed, names: Names, query: Record<string, string> = {}): string {
  const filled = paramsOf(path).reduce(
    (url, param) => url.replace(`{${param}}`, encodeURIComponent(names[param] ?? "")),
    path,
  );
  const parts = [QUERIES[name], new URLSearchParams(query).toString()].filter(Boolean);
  return parts.length > 0 ? `${filled}?${parts.join("&")}` : filled;
}

async function bodyOf(operation: Placed, owner: Owner): Promise<unknown> {
  const known = BODIES[operation.name];
  if (known) return known(owner);
  if (operation.requestBody?.required) {
    throw new Error(`${operation.name} needs a body: add a line to BODIES in test/api/resources.ts`);
  }
  return undefined;
}

type Asking = { key: string | null; body?: unknown; query?: Record<string, string> };

function ask(operation: Placed, names: Names, { key, body, query }: Asking): Promise<Answer> {
  return api.ask(operation.method, urlOf(operation, names, query), body, { key });
}

function randomNames(path: string, like: Names): Names {
  return Object.fromEntries(
    paramsOf(path).map((param) => [param, like[param]?.includes("@") ? "x@nowhere.example" : RANDOM_ID]),
  );
}

/** What may be compared of two answers: not the request's own id, and not the id that was asked for. */
function comparable({ status, body }: Answer): { status: number; body: unknown } {
  const text = typeof body === "string" ? body : JSON.stringify({ ...body, request_id: undefined });
  return { status, body: text };
}

/** Of an organization, what changes only when somebody asks for it: mail goes on meanwhile. */
const CHANGED_BY_HAND = [
  "alias",
  "api_key",
  "dkim_key",
  "domain",
  "domain_spam",
  "inbound_email",
  "inbound_rule",
  "warming",
  "webhook",
];

/**
 * Everything of an organization in every table, or in these, as one digest; when a key was last used is not its data.
 */
async function digestOf(orgId: string, among: readonly string[] | null = null): Promise<string> {
  const tables = await api.world.db.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id'
      where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace order by 1`,
  );
  const hash = createHash("sha256");
  const looked = tables.filter(({ name }) => among?.includes(name) ?? true);
  assert.ok(
    among === null || looked.length === among.length,
    `of ${among} there are ${looked.map(({ name }) => name)}`,
  );
  for (const { name } of looked) {
    const [row] = await api.world.db.query<{ digest: string | null }>(
      `select md5(string_agg(x, ',' order by x)) as digest
         from (select (to_jsonb(t) - 'last_used_at')::text as x from "${name}" t where t.org_id = $1) as rows`,
      [orgId],
    );
    hash.update(`${name}=${row?.digest ?? "nothing"};`);
  }
  return hash.digest("hex");
}

describe("every operation", () => {
  it("without a key, with a malformed, an unknown and a revoked key is 401", async () => {
    const { body: revoked } = await api.ask(
      "POST",
      "/v1/api-keys",
      { name: "r", environment: "live" },
      { key: keys.live_key },
    );
    await api.ask("DELETE", `/v1/api-keys/${revoked.key.id}`, undefined, { key: keys.live_key });
    const unknown = `${keys.live_key.slice(0, -2)}00`;
    for (const operation of operations) {
      const names = Object.fromEntries(paramsOf(operation.path).map((param) => [param, RANDOM_ID]));
      const none = await ask(operation, names, { key: null });
      assert.deepEqual([none.status, none.body.code], [401, "missing_api_key"], operation.name);
      assert.equal(none.headers["www-authenticate"], 'Bearer realm="postern"');
      for (const key of [revoked.secret, unknown, "nonsense", ""]) {
        // From an address for each, as a hundred wrong keys of one would be answered slowly.
        const ip = `192.0.2.${operations.indexOf(operation) % 250}`;
        const { status, body } = await api.ask(operation.method, urlOf(operation, names), undefined, { key, ip });
        const code = key === "" ? /^(missing|invalid)_api_key$/ : /^invalid_api_key$/;
        assert.equal(status, 401, `${operation.name} with ${key}`);
        assert.match(body.code, code, operation.name);
      }
    }
  });

  it("that names something is tried below, with its owner first", () => {
    const named = operations.filter(({ path }) => path.includes("{"));
    assert.ok(named.length >= 30, `only ${named.length} operations name something`);
  });
});

describe("another organization's", () => {
  it("ids are 404, in nothing different from an id that never was, and nothing changes", async (t) => {
    for (const operation of operations.filter(({ path }) => path.includes("{"))) {
      await t.test(operation.name, () => tryForeign(operation));
    }
  });

  it("ids in queries and bodies are in nothing different from an id that never was", async (t) => {
    for (const operation of operations) {
      for (const field of referencesOf(operation)) {
        await t.test(`${operation.name}, ${field}`, () => tryReference(operation, field));
      }
    }
  });

  it("things are in no list, export or search, though they are in their owner's", async () => {
    for (const path of Object.keys(RESOURCES)) await makeNamed(ours, path);
    for (const path of ["/v1/suppressions", "/v1/masked/destinations"]) {
      assert.equal((await api.ask("POST", path, { email: ASKED_ABOUT }, { key: keys.live_key })).status, 201);
    }
    const nobodys: string[] = [];
    for (const operation of operations.filter(({ method, path }) => method === "GET" && !path.includes("{"))) {
      const { status, body } = await ask(operation, {}, { key: api.live_key });
      assert.ok(status < 400, `${operation.name} answers ${status}`);
      assert.ok(!JSON.stringify(body).includes(ours.mark), `${operation.name} shows another organization's`);
      const own = await ask(operation, {}, { key: keys.live_key });
      assert.ok(own.status < 400, `${operation.name} answers its owner ${own.status}`);
      const ids = idsIn(own);
      assert.deepEqual(
        [...idsIn({ body })].filter((id) => ids.has(id)),
        [],
        `${operation.name} shows another's ids`,
      );
      if (ids.size === 0 && !JSON.stringify(own.body).includes(ours.mark)) nobodys.push(operation.name);
    }
    // An answer that is empty for its owner as well would hide a leak.
    assert.deepEqual(nobodys, NOBODYS);
  });
});

async function tryForeign(operation: Placed): Promise<void> {
  const [first, ...others] = await makeNamed(ours, operation.path);
  const before = await digestOf(keys.org_id);
  const body = await bodyOf(operation, strangers);
  for (const names of [first as Names, ...others]) {
    const absent = await ask(operation, randomNames(operation.path, names), { key: api.live_key, body });
    assert.equal(absent.status, 404, `${operation.name} with an id that never was: ${JSON.stringify(absent.body)}`);
    for (const key of [api.live_key, api.test_key]) {
      const foreign = await ask(operation, names, { key, body });
      // A key that may not do this at all learns so before anything is looked up.
      if (key === api.test_key && LIVE_ONLY.includes(operation.name)) assert.equal(foreign.status, 403);
      else assert.deepEqual(comparable(foreign), comparable(absent), `${operation.name} with ${JSON.stringify(names)}`);
    }
  }
  assert.equal(await digestOf(keys.org_id), before, `${operation.name} changed another organization's data`);
  // The owner's own request proves that the names were right: what answers 404 to all would pass above.
  const own = await ask(operation, first as Names, { key: keys.live_key, body: await bodyOf(operation, ours) });
  forgetDomain(ours, operation, own);
  assert.ok(
    own.status !== 404 && own.status < 500 && own.status !== 401,
    `${operation.name}: its owner gets ${own.status}`,
  );
}

function idsIn({ body }: Pick<Answer, "body">): Set<string> {
  return new Set(JSON.stringify(body).match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g));
}

/** Whose domain was deleted makes another one when it needs it. */
function forgetDomain(owner: Owner, { name }: Placed, { status }: Answer): void {
  if (name === "DELETE /v1/domains/{id}" && status === 200) owner.forget();
}

/** What deletes comes last, and the domain that all else belongs to behind that. */
function deletionsLast(all: Placed[]): Placed[] {
  const rank = ({ name }: Placed): number => {
    if (!name.startsWith("DELETE")) return 0;
    return name === "DELETE /v1/domains/{id}" ? 2 : 1;
  };
  return [...all].sort((a, b) => rank(a) - rank(b));
}

/** Names of ids that an operation takes in its query or body. */
function referencesOf({ name, parameters, requestBody }: Placed): string[] {
  const query = (parameters ?? []).filter((parameter) => parameter.in === "query").map((parameter) => parameter.name);
  const body = Object.keys(requestBody?.content["application/json"]?.schema.properties ?? {});
  const isReference = (field: string): boolean => /_ids?$/.test(field) && field !== "message_id";
  const found = [...query, ...body].filter(isReference);
  for (const field of found) {
    assert.ok(REFERENCES[field], `${name} takes ${field}: say in REFERENCES of test/api/resources.ts what it names`);
  }
  return found;
}

async function tryReference(operation: Placed, field: string): Promise<void> {
  const [foreign] = await makeNamed(ours, REFERENCES[field] as string);
  const own = operation.path.includes("{") ? (await makeNamed(strangers, operation.path))[0] : {};
  const isQuery = operation.parameters?.some((parameter) => parameter.in === "query" && parameter.name === field);
  const answers: Answer[] = [];
  for (const id of [Object.values(foreign ?? {})[0] as string, api.world.random.uuid()]) {
    const body = (await bodyOf(operation, strangers)) as Record<string, unknown> | undefined;
    const change = { [field]: field.endsWith("_ids") ? [id] : id, ...besides(field) };
    const asking = isQuery ? { query: { [field]: id }, body } : { body: { ...without(body, field), ...change } };
    answers.push(await ask(operation, own as Names, { key: api.live_key, ...asking }));
  }
  const [reported, unreported] = answers as [Answer, Answer];
  assert.ok(!JSON.stringify(reported.body).includes(ours.mark), `${operation.name} shows another organization's`);
  assert.equal(
    reported.status,
    unreported.status,
    `${JSON.stringify(reported.body)}\n${JSON.stringify(unreported.body)}`,
  );
  if (reported.status >= 400) assert.deepEqual(comparable(reported), comparable(unreported));
  else if (isQuery) assert.deepEqual(reported.body, unreported.body);
}

/** A template excludes inline content; a scope needs its type. */
function without(body: Record<string, unknown> | undefined, field: string): Record<string, unknown> {
  const { subject, text_body, html_body, ...rest } = body ?? {};
  return field === "template_id" ? rest : { ...body };
}

function besides(field: string): Record<string, unknown> {
  return field === "scope_id" ? { reason: "unsubscribe", scope_type: "template" } : {};
}

/** What a path names, as live as the organization's own mail and keys are. */
async function makeLive(path: string): Promise<Names[]> {
  if (path.startsWith("/v1/api-keys/")) {
    const request = { name: "l", environment: "live" };
    const { body } = await api.ask("POST", "/v1/api-keys", request, { key: keys.live_key });
    return [{ id: body.key.id }];
  }
  const named = await makeNamed(ours, path);
  // Nothing but SMTP brings live mail; it is the same row.
  if (path.startsWith("/v1/inbound-emails/")) {
    await api.world.db.query("update inbound_email set environment = 'live' where id = $1", [named[0]?.id]);
  }
  return named;
}

async function tryLive(operation: Placed): Promise<void> {
  const [names] = operation.path.includes("{") ? await makeLive(operation.path) : [{}];
  const body = await bodyOf(operation, ours);
  const before = await digestOf(keys.org_id, CHANGED_BY_HAND);
  const refused = await ask(operation, names as Names, { key: keys.test_key, body });
  assert.deepEqual([refused.status, refused.body.code], [403, "test_key_not_allowed"]);
  assert.equal(await digestOf(keys.org_id, CHANGED_BY_HAND), before, `${operation.name} changed what is live`);
  const own = await ask(operation, names as Names, { key: keys.live_key, body });
  forgetDomain(ours, operation, own);
  assert.ok(own.status < 300 || own.status === 409, `${own.status} ${JSON.stringify(own.body)}`);
}

describe("a test key", () => {
  it("does what a live key does, except what only live keys may", async (t) => {
    for (const operation of deletionsLast(operations)) {
      await t.test(operation.name, async () => {
        const isApart =
          NOT_TO_LIVE.includes(operation.name) || BY_ENVIRONMENT.some((prefix) => operation.path.startsWith(prefix));
        const maker = isApart ? tester : ours;
        const names = operation.path.includes("{") ? (await makeNamed(maker, operation.path))[0] : {};
        const answer = await ask(operation, names as Names, {
          key: keys.test_key,
          body: await bodyOf(operation, maker),
        });
        const { status, body } = answer;
        forgetDomain(maker, operation, answer);
        if (LIVE_ONLY.includes(operation.name)) assert.deepEqual([status, body.code], [403, "test_key_not_allowed"]);
        else assert.ok(status < 300 || status === 409, `${status} ${JSON.stringify(body)}`);
      });
    }
  });

  it("leaves alone what is live", async (t) => {
    const tried = deletionsLast(operations.filter(({ name }) => NOT_TO_LIVE.includes(name)));
    assert.equal(tried.length, NOT_TO_LIVE.length);
    for (const operation of tried) await t.test(operation.name, () => tryLive(operation));
  });

  it("tries rules on test mail only", async () => {
    const [names] = await makeLive("/v1/inbound-emails/{id}");
    const { domain_id } = (await api.ask("GET", `/v1/inbound-emails/${names?.id}`, undefined, { key: keys.live_key }))
      .body.email;
    const conditions = [{ field: "subject", comparator: "contains", value: ours.mark }];
    const one = { conditions, email_id: names?.id };
    const refused = await api.ask("POST", "/v1/inbound-rules/test", one, { key: keys.test_key });
    assert.deepEqual([refused.status, refused.body.code], [403, "test_key_not_allowed"]);
    const newest = { conditions, domain_id };
    for (const [key, isShown] of [
      [keys.live_key, true],
      [keys.test_key, false],
    ] as const) {
      const { body } = await api.ask("POST", "/v1/inbound-rules/test", newest, { key });
      const ids = body.results.map(({ email_id }: { email_id: string }) => email_id);
      assert.equal(ids.includes(names?.id), isShown);
    }
  });

  it("does all of it where the organization trusts its test keys, but retry", async () => {
    await changeSetting(api.world, keys.org_id, "test_keys", "full");
    try {
      for (const operation of deletionsLast(operations).filter(({ name }) =>
        [...LIVE_ONLY, ...NOT_TO_LIVE].includes(name),
      )) {
        const [names = {}] = operation.path.includes("{") ? await makeLive(operation.path) : [];
        const answer = await ask(operation, names, { key: keys.test_key, body: await bodyOf(operation, ours) });
        forgetDomain(ours, operation, answer);
        const isRefused = answer.status === 403 && answer.body.code === "test_key_not_allowed";
        assert.equal(isRefused, operation.name === "POST /v1/emails/{id}/retry", operation.name);
      }
    } finally {
      await changeSetting(api.world, keys.org_id, "test_keys", "default");
    }
  });

  it("makes no alias that forwards, nor lets one forward", async () => {
    const { id: domain_id } = await tester.domain();
    const to = { action: "forward", forward_to: ["thief@elsewhere.example"] };
    const as = { key: keys.test_key };
    const made = await api.ask("POST", "/v1/aliases", { domain_id, local_part: "taken", ...to }, as);
    assert.deepEqual([made.status, made.body.code], [403, "test_key_not_allowed"]);
    const kept = await api.ask("POST", "/v1/aliases", { domain_id, local_part: "kept", action: "store" }, as);
    assert.equal(kept.status, 201);
    const changed = await api.ask("PATCH", `/v1/aliases/${kept.body.alias.id}`, to, as);
    assert.deepEqual([changed.status, changed.body.code], [403, "test_key_not_allowed"]);
  });

  it("cannot create a live key", async () => {
    const request = { name: "x", environment: "live" };
    const { status, body } = await api.ask("POST", "/v1/api-keys", request, { key: keys.test_key });
    assert.deepEqual([status, body.code], [403, "test_key_not_allowed"]);
  });
});

describe("a suspended organization", () => {
  it("sends nothing, sees what it has, and no more of others than before", async (t) => {
    const suspended = await api.organization();
    const owner = ownerOf(api, dns, suspended.live_key, "suspendedcanary");
    // Something of its own for each: what one operation changes or deletes is not what the next one meets.
    const named = new Map<string, Names[]>();
    for (const { name, path } of operations.filter(({ path: at }) => at.includes("{"))) {
      named.set(name, await makeNamed(owner, path));
    }
    await api.world.db.query("update organization set state = 'suspended' where id = $1", [suspended.org_id]);
    for (const operation of deletionsLast(operations)) {
      await t.test(operation.name, async () => {
        const names = named.get(operation.name)?.[0] ?? {};
        const body = await bodyOf(operation, owner);
        const { status, body: answer } = await ask(operation, names, { key: suspended.live_key, body });
        if (SENDS.includes(operation.name)) assert.deepEqual([status, answer.code], [403, "organization_suspended"]);
        else if (TOO_SOON.includes(operation.name)) assert.equal(status, 429);
        else assert.ok(status < 300 || status === 409, `${operation.name}: ${status} ${JSON.stringify(answer)}`);
        if (!operation.path.includes("{")) return;
        const [foreign] = await makeNamed(ours, operation.path);
        const reported = await ask(operation, foreign as Names, { key: suspended.live_key, body });
        assert.ok(reported.status === 404 || SENDS.includes(operation.name), `${operation.name}: ${reported.status}`);
      });
    }
  });
});
