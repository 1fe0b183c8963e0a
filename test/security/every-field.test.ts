// Hostile values through every field, path and query parameter of every operation that the description has: always an
// answer of the documented form, never a 500, nothing of a value in a header of the answer, no prototype reached, and
// fields that are not ours to set are refused. A new route is covered as soon as it is described.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { parseYaml } from "@redocly/openapi-core";
import { operationsOf, type Placed, readDescription } from "../api/operations.ts";
import { BODIES, makeNamed, type Names, type Owner, ownerOf, paramsOf, QUERIES } from "../api/resources.ts";
import { type Answer, type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { type Nested, type Place, placesOf, withValue } from "./places.ts";

const INJECTED = "x-injected";
const TEXTS = [
  `a\r\n${INJECTED}: 1\r\nBcc: evil@attacker.example`,
  `a\n${INJECTED}: 1`,
  "a\u0085b\u2028c\u202ed\u200be\ufeff",
  "__proto__",
  "constructor.prototype",
  "' or 1=1; drop table message; --",
  "{{constructor.constructor}}{{#each this}}{{/each}}",
  "../../../../etc/passwd%00",
  `<script>alert("x")</script>`,
  `"evil@attacker.example" <a@b.example>, c@d.example`,
  "x".repeat(70_000),
];
const OTHERS = [-1, 1e308, 0.5, true, null, [], {}, [[]], [null], { __proto__: 1, a: { b: { c: [] } } }];
const PRIVILEGED = ["id", "org_id", "organization_id", "environment_id", "verified", "plan", "state", "created_at"];
const IN_PATHS = [
  "%0d%0ax-injected:%201",
  "__proto__",
  "constructor",
  "..%2f..%2fetc",
  "%F0%9F%98%80",
  "a".repeat(300),
];
/** Asked far more often than a client may; the limits have tests of their own. */
const ALLOWED = new Set([200, 201, 202, 204, 303, 400, 403, 404, 409, 422, 429]);

let dns: DnsServer;
let api: TestApi;
let owner: Owner;
let operations: Placed[];
let schemas: Record<string, Nested>;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address });
  const text = await readDescription(api);
  operations = operationsOf(text);
  schemas = (parseYaml(text) as { components?: { schemas?: Record<string, Nested> } }).components?.schemas ?? {};
  const { live_key } = await api.organization();
  owner = ownerOf(api, dns, live_key, "fieldcanary");
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

function holds(what: string, answer: Answer): void {
  assert.ok(
    ALLOWED.has(answer.status),
    `${what} answers ${answer.status}: ${JSON.stringify(answer.body).slice(0, 300)}`,
  );
  assert.equal(answer.headers[INJECTED], undefined, `${what}: a header of the answer was injected`);
  for (const [name, value] of Object.entries(answer.headers)) {
    assert.doesNotMatch(`${name}: ${value}`, /[\r\n\0]/, `${what}: a broken header`);
  }
  if (answer.status >= 400) {
    const { error, code, request_id } = answer.body;
    assert.ok(typeof error === "string" && typeof code === "string" && typeof request_id === "string", what);
    assert.ok(
      error.length < 2_000 && !/\bat \/|node:internal|select .* from/.test(error),
      `${what}: ${error.slice(0, 200)}`,
    );
  }
  assert.equal(({} as Record<string, unknown>).a, undefined, `${what}: Object.prototype was written to`);
}

/** A value at each limit of a schema, and one beyond it. */
function edgesOf({ maxLength, maxItems, minimum, maximum }: Nested): [at: unknown, beyond: unknown][] {
  const edges: [unknown, unknown][] = [];
  if (maxLength !== undefined && maxLength <= 100_000) edges.push(["a".repeat(maxLength), "a".repeat(maxLength + 1)]);
  if (maxItems !== undefined && maxItems <= 1_000) edges.push([listOf(maxItems), listOf(maxItems + 1)]);
  if (minimum !== undefined) edges.push([minimum, minimum - 1]);
  if (maximum !== undefined) edges.push([maximum, maximum + 1]);
  return edges;
}

function listOf(length: number): string[] {
  return Array.from({ length }, (_, index) => `a${index}@recipient.example`);
}

function urlOf({ name, path }: Placed, names: Names, query = QUERIES[name]): string {
  const filled = paramsOf(path).reduce(
    (url, param) => url.replace(`{${param}}`, encodeURIComponent(names[param] ?? "")),
    path,
  );
  return query ? `${filled}?${query}` : filled;
}

async function namesFor({ path }: Placed): Promise<Names> {
  return paramsOf(path).length === 0 ? {} : ((await makeNamed(owner, path))[0] ?? {});
}

/** Operations whose body is JSON, with what works and every place in it. */
async function bodied(operation: Placed): Promise<{ url: string; body: unknown; places: Place[] } | null> {
  const media = operation.requestBody?.content["application/json"];
  if (!media) return null;
  const body = (await BODIES[operation.name]?.(owner)) ?? {};
  if (Buffer.isBuffer(body)) return null;
  return { url: urlOf(operation, await namesFor(operation)), body, places: placesOf(media.schema, body, schemas) };
}

const send = (method: string, url: string, body: unknown) => api.ask(method, url, body, { key: owner.key });

describe("hostile values", () => {
  it("in every field of every body are refused or stored as text, never a 500", async (test) => {
    let asked = 0;
    for (const operation of operations) {
      const found = await bodied(operation);
      for (const [index, { path: place }] of (found?.places ?? []).entries()) {
        // Every place gets a line break and two of the others; over all places each of them is tried many times.
        const texts = [TEXTS[0], TEXTS[1 + (index % (TEXTS.length - 1))]];
        for (const value of [...texts, OTHERS[index % OTHERS.length]]) {
          const answer = await send(operation.method, found!.url, withValue(found!.body, place, value));
          holds(`${operation.name} with ${JSON.stringify(value)?.slice(0, 40)} as ${place.join(".")}`, answer);
          asked += 1;
        }
      }
    }
    test.diagnostic(`${asked} requests`);
    assert.ok(asked > 500, `${asked} requests`);
  });

  it("as names: __proto__ is a 400, and fields that nobody may set are named", async () => {
    for (const operation of operations) {
      const found = await bodied(operation);
      if (!found || Array.isArray(found.body)) continue;
      const text = JSON.stringify(found.body);
      const polluted = text.replace(/^\{/, `{"__proto__":{"a":1}${text === "{}" ? "" : ","}`);
      const answer = await send(operation.method, found.url, polluted);
      assert.equal(answer.status, 400, `${operation.name} takes __proto__`);
      holds(`${operation.name} with __proto__`, answer);
      const named = new Set(found.places.map(({ path: [first] }) => first));
      for (const field of PRIVILEGED.filter((name) => !named.has(name))) {
        const refused = await send(operation.method, found.url, withValue(found.body, [field], "x"));
        assert.equal(refused.status, 400, `${operation.name} takes ${field}`);
        assert.ok(
          refused.body.field?.includes(field),
          `${operation.name} does not name ${field}: ${JSON.stringify(refused.body)}`,
        );
      }
    }
  });

  it("just beyond a limit of the description are a 400 that names the field; at the limit it is not the size", async (test) => {
    let limits = 0;
    for (const operation of operations) {
      const found = await bodied(operation);
      for (const { path, schema } of found?.places ?? []) {
        for (const [at, beyond] of edgesOf(schema)) {
          const field = path.reduce<string>(
            (text, key) => (typeof key === "number" ? `${text}[${key}]` : text ? `${text}.${key}` : key),
            "",
          );
          const what = `${operation.name} with ${JSON.stringify(beyond).slice(0, 40)} as ${field}`;
          const refused = await send(operation.method, found!.url, withValue(found!.body, path, beyond));
          assert.equal(refused.status, 400, `${what} answers ${refused.status}`);
          // What the example lacks beside the field may be named first.
          if (refused.body.field !== field) continue;
          limits += 1;
          const taken = await send(operation.method, found!.url, withValue(found!.body, path, at));
          assert.ok(taken.body.error !== refused.body.error, `${what}: also refused at the limit: ${taken.body.error}`);
        }
      }
    }
    test.diagnostic(`${limits} limits`);
    assert.ok(limits > 30, `${limits} limits`);
  });

  it("of two lines are refused as a name, by a 400 that names the field, or stored as one line", async (test) => {
    const names: string[] = [];
    for (const operation of operations) {
      const found = await bodied(operation);
      for (const { path, schema } of found?.places ?? []) {
        if (path.length > 1 || schema.enum || !/^(?:name|.+_name|reason)$/.test(`${path[0]}`)) continue;
        for (const text of ["one\r\ntwo", "one\ttwo", "one\x7ftwo", "one\u0085two", "one\u2028two"]) {
          const { status, body } = await send(operation.method, found!.url, withValue(found!.body, path, text));
          const what = `${operation.name} with ${JSON.stringify(text)} as ${path[0]}: ${JSON.stringify(body)}`;
          if (status >= 300) assert.deepEqual([status, body.field], [400, path[0]], what);
          else assert.doesNotMatch(what.replaceAll(JSON.stringify(text), ""), /\\[a-z]|[\x7f\u0085\u2028]/, what);
        }
        names.push(`${operation.name} ${path[0]}`);
      }
    }
    test.diagnostic(names.join(", "));
    assert.ok(names.length >= 9, `${names}`);
  });

  it("of two lines that older versions took as a name are shown as they are, and hinder no change", async () => {
    const changes = {
      api_key: ["/v1/api-keys/{id}", "PUT", { name: "new" }],
      template: ["/v1/templates/{id}", "PUT", { subject: "new" }],
      inbound_rule: ["/v1/inbound-rules/{id}", "PATCH", { active: false }],
    } as const;
    for (const [table, [path, method, change]] of Object.entries(changes)) {
      const [names] = await makeNamed(owner, path);
      const url = path.replace("{id}", names?.id ?? "");
      await api.world.db.execute(`update ${table} set name = $2 where id = $1`, [names?.id, "one\ntwo"]);
      const shown = Object.values((await send("GET", url, undefined)).body)[0] as { name: string };
      assert.equal(shown.name, "one\ntwo", table);
      const changed = await send(method, url, change);
      assert.equal(changed.status, 200, `${table}: ${JSON.stringify(changed.body)}`);
    }
  });

  it("in every parameter of a path name nothing", async () => {
    for (const operation of operations.filter(({ path }) => path.includes("{"))) {
      const names = await namesFor(operation);
      for (const param of paramsOf(operation.path)) {
        for (const value of IN_PATHS) {
          const others = Object.fromEntries(Object.entries(names).filter(([name]) => name !== param));
          const path = { ...operation, path: operation.path.replace(`{${param}}`, value) };
          const answer = await send(
            operation.method,
            urlOf(path, others),
            (await BODIES[operation.name]?.(owner)) ?? undefined,
          );
          holds(`${operation.name} with ${value.slice(0, 30)}`, answer);
          assert.ok(
            answer.status >= 400 && answer.status < 500,
            `${operation.name} with ${value} answers ${answer.status}`,
          );
        }
      }
    }
  });

  it("in every query parameter are refused or find nothing", async () => {
    for (const operation of operations.filter(({ method }) => method === "GET")) {
      const url = urlOf(operation, await namesFor(operation));
      const parameters = (operation.parameters ?? []).filter((parameter) => parameter.in === "query");
      for (const { name } of parameters) {
        for (const text of TEXTS.slice(0, 4)) {
          const separator = url.includes("?") ? "&" : "?";
          const answer = await api.ask("GET", `${url}${separator}${name}=${encodeURIComponent(text)}`, undefined, {
            key: owner.key,
          });
          holds(`${operation.name} with ?${name}=${text.slice(0, 30)}`, answer);
        }
        holds(
          `${operation.name} with ?${name} twice`,
          await send("GET", `${url.split("?")[0]}?${name}=1&${name}=2`, undefined),
        );
        holds(
          `${operation.name} with ?${name}[a]=1`,
          await send("GET", `${url.split("?")[0]}?${name}[__proto__][a]=1`, undefined),
        );
      }
    }
  });

  it("made no header and no recipient of any mail that was taken", async () => {
    const { body } = await send("GET", "/v1/emails?limit=100", undefined);
    assert.ok(body.emails.length > 10, `${body.emails.length} mails were taken`);
    for (const { id } of body.emails) {
      const content = await api.ask("GET", `/v1/emails/${id}/content`, undefined, {
        ...{ key: owner.key, headers: { accept: "message/rfc822" } },
      });
      const wire = String(content.body);
      const head = wire.slice(0, wire.indexOf("\r\n\r\n") + 2);
      assert.match(head, /^(?:[\x21-\x39\x3b-\x7e]+:(?:[^\r\n\0]|\r\n[ \t])*\r\n)+$/, id);
      assert.doesNotMatch(head, /^(?:x-injected|bcc):/im, id);
      const recipients = (await send("GET", `/v1/emails/${id}`, undefined)).body.email.recipients;
      assert.ok(
        recipients.every(({ email }: { email: string }) => !email.includes("attacker")),
        id,
      );
    }
  });

  it("left the program as it was", async () => {
    const answer = await send("GET", "/v1/templates", undefined);
    assert.equal(answer.status, 200);
    assert.deepEqual(Object.keys(Object.prototype), []);
  });
});
