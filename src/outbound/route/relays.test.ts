// /v1/domains/{id}/relay, field by field. What becomes of the mail is in test/scenarios/relay.long.test.ts.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";

const GOOD = { host: "smtp.relay.example", username: "postern", password: "s3cret" };
const PATH = "/v1/domains/sender.example/relay";
const FIELDS = "host port username has_password tls mode in_use created_at updated_at".split(" ");

let api: TestApi;
let other: Awaited<ReturnType<TestApi["organization"]>>;

before(async () => {
  api = await testApi();
  other = await api.organization();
  await api.ask("POST", "/v1/domains", { domain: "sender.example", type: "outbound" });
});
after(() => api.close());
beforeEach(() => api.ask("DELETE", PATH));

const put = (change: Record<string, unknown>) => api.ask("PUT", PATH, { ...GOOD, ...change });

describe("a domain's relay", () => {
  it("is set with defaults, shown without its password, and taken away", async () => {
    const set = await put({});
    assert.equal(set.status, 200, JSON.stringify(set.body));
    const { created_at, updated_at, ...rest } = set.body.relay;
    assert.deepEqual(Object.keys(set.body.relay), FIELDS);
    assert.deepEqual(rest, {
      host: "smtp.relay.example",
      port: 587,
      username: "postern",
      has_password: true,
      tls: "starttls",
      mode: "always",
      in_use: true,
    });
    assert.equal(created_at, updated_at);
    assert.deepEqual((await api.ask("GET", PATH)).body, set.body);
    const removed = await api.ask("DELETE", PATH);
    assert.equal(removed.body.deleted, true);
    for (const method of ["GET", "DELETE"]) assert.equal((await api.ask(method, PATH)).status, 404);
  });

  it("takes every field, and the domain's id as well as its name", async () => {
    const domain = await api.ask("GET", "/v1/domains/sender.example");
    const path = `/v1/domains/${domain.body.id}/relay`;
    const settings = { host: "SMTP.Relay.Example.", port: 2525, tls: "implicit", mode: "fallback" };
    const { status, body } = await api.ask("PUT", path, settings);
    assert.equal(status, 200, JSON.stringify(body));
    const { created_at: _created, updated_at: _updated, ...shown } = body.relay;
    assert.deepEqual(shown, {
      host: "smtp.relay.example",
      port: 2525,
      username: null,
      has_password: false,
      tls: "implicit",
      mode: "fallback",
      in_use: false,
    });
    assert.equal((await api.ask("PUT", path, { host: "smtp.relay.example", tls: "implicit" })).body.relay.port, 465);
  });

  it("keeps its password sealed", async () => {
    await put({});
    const [row] = await api.world.db.query<{ password: Buffer }>("select password from relay");
    assert.ok(row && !row.password.includes("s3cret"));
  });

  it("keeps its password only while it would go to the same place as the same user", async () => {
    await put({});
    const again = await put({ password: undefined, mode: "fallback" });
    assert.deepEqual([again.status, again.body.relay.has_password], [200, true]);
    for (const change of [{ host: "evil.example" }, { port: 2525 }, { username: "root" }]) {
      const { status, body } = await put({ password: undefined, ...change });
      assert.deepEqual([status, body.field], [400, "password"], JSON.stringify(change));
    }
  });

  const bad: [string, Record<string, unknown>, string][] = [
    ["no host", { host: undefined }, "host"],
    ["a bare word for a host", { host: "relay" }, "host"],
    ["a host with spaces", { host: "smtp relay.example" }, "host"],
    ["a private address", { host: "10.0.0.1" }, "host"],
    ["a link-local address", { host: "169.254.169.254" }, "host"],
    ["a mapped private address", { host: "::ffff:10.0.0.1" }, "host"],
    ["an address in another spelling", { host: "0xa000001" }, "host"],
    ["port 22", { port: 22 }, "port"],
    ["port 0", { port: 0 }, "port"],
    ["port 65536", { port: 65_536 }, "port"],
    ["an unknown tls", { tls: "ssl" }, "tls"],
    ["a login in clear", { tls: "none" }, "tls"],
    ["an unknown mode", { mode: "sometimes" }, "mode"],
    ["a user name without password", { password: undefined }, "password"],
    ["a password without user name", { username: undefined }, "username"],
    ["a line break in the user name", { username: "a\r\nMAIL" }, "username"],
    ["NUL in the password", { password: "a\0b" }, "password"],
    ["a password too long", { password: "x".repeat(1_025) }, "password"],
    ["an unknown field", { colour: "blue" }, "colour"],
  ];
  for (const [what, change, field] of bad) {
    it(`is refused with ${what}`, async () => {
      const { status, body } = await put(change);
      assert.deepEqual([status, body.field], [400, field], JSON.stringify(body));
      assert.match(body.error, new RegExp(`'${field}'`));
      assert.ok(!JSON.stringify(body).includes("s3cret"));
    });
  }

  it("may be on this machine, or in clear, in tests alone", async () => {
    assert.equal((await put({ host: "127.0.0.1" })).status, 200);
    const clear = { host: "127.0.0.1", tls: "none", port: 25 };
    assert.equal((await api.ask("PUT", PATH, clear)).status, 200);
    const strict = await testApi({ POSTERN_TESTING_ALLOW_LOOPBACK: "0" });
    await strict.ask("POST", "/v1/domains", { domain: "sender.example", type: "outbound" });
    for (const [change, field] of [
      [{ ...GOOD, host: "127.0.0.1" }, "host"],
      [{ ...GOOD, host: "localhost" }, "host"],
      [{ host: "smtp.relay.example", tls: "none" }, "tls"],
    ] as const) {
      const { status, body } = await strict.ask("PUT", PATH, change);
      assert.deepEqual([status, body.field], [400, field]);
    }
    await strict.close();
  });

  it("is its organization's alone", async () => {
    await put({});
    for (const method of ["GET", "PUT", "DELETE"]) {
      const body = method === "PUT" ? GOOD : undefined;
      const { status } = await api.ask(method, PATH, body, { key: other.live_key });
      assert.equal(status, 404, method);
    }
    assert.equal((await api.ask("GET", PATH)).status, 200);
    assert.equal((await api.ask("GET", PATH, undefined, { key: api.test_key })).status, 200);
    assert.equal((await api.ask("GET", PATH, undefined, { key: null })).status, 401);
    assert.equal((await api.ask("PUT", "/v1/domains/nowhere.example/relay", GOOD)).status, 404);
  });

  it("goes with its domain", async () => {
    await api.ask("POST", "/v1/domains", { domain: "short.example", type: "outbound" });
    await api.ask("PUT", "/v1/domains/short.example/relay", GOOD);
    assert.equal((await api.ask("DELETE", "/v1/domains/short.example")).status, 200);
    assert.deepEqual(await api.world.db.query("select 1 from relay"), []);
  });
});
