// Signing up: nothing is made before the address is confirmed, and nobody learns who has an account.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { type Browser, browserOf, PASSWORD, setUp } from "../../../test/support/people.ts";
import { until } from "../../../test/support/until.ts";
import { publish } from "../../../test/support/verified-domain.ts";

const SIGN_UP = "/dashboard/api/sign-up";
const LINKS = "/dashboard/api/operator/sign-up-links";
const PURPOSE = "Invoices of our shop, to its customers";
let dns: DnsServer;
let api: TestApi;
let operator: Browser;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_SIGNUP: "open", POSTERN_DNS: dns.address });
  publish(dns, (await api.ask("GET", "/v1/masked/domain")).body.records);
  operator = await setUp(api, "operator@example.net");
});
after(async () => {
  await api.close();
  await dns.stop();
});

/** The mails of Postern itself to this address, the oldest first. */
async function mailsTo(address: string): Promise<string[]> {
  const rows = await api.world.db.query<{ mime: Buffer }>(
    `select b.mime from recipient r join message_body b on b.org_id = r.org_id and b.id = r.message_id
      where r.email = $1 order by r.message_id`,
    [address],
  );
  return rows.map(({ mime }) =>
    mime
      .toString()
      .replaceAll(/=\r?\n/g, "")
      .replaceAll("=3D", "="),
  );
}

async function mailTo(address: string, place = 0): Promise<string> {
  await until(`${address} is mailed`, async () => (await mailsTo(address)).length > place);
  return (await mailsTo(address))[place] ?? "";
}

const tokenIn = (mail: string) => /\/join#([\w-]{43})/.exec(mail)?.[1] ?? "";
const use = (browser: Browser, token: string, more: object = {}) =>
  browser.ask("POST", "/dashboard/api/links/use", {
    ...{ token, name: "Ada", password: PASSWORD, organization_name: "Ada's shop", purpose: PURPOSE },
    ...more,
  });

it("makes a person and an organization in review once the address is confirmed: test keys work, live mail waits", async () => {
  const { status } = await browserOf(api).ask("POST", SIGN_UP, { email: " Ada@Shop.example " });
  assert.equal(status, 202);
  const token = tokenIn(await mailTo("ada@shop.example"));
  const before = (await operator.ask("GET", "/dashboard/api/operator/organizations")).body.organizations;
  assert.equal(before.length, 1);
  const looked = await browserOf(api).ask("POST", "/dashboard/api/links/look-up", { token });
  assert.deepEqual([looked.body.link.kind, looked.body.link.email], ["sign_up", "ada@shop.example"]);
  const ada = browserOf(api);
  const used = await use(ada, token);
  assert.equal(used.status, 200, JSON.stringify(used.body));
  const [own] = used.body.organizations;
  assert.deepEqual([own.name, own.plan, own.state, own.role], ["Ada's shop", "free", "pending_review", "owner"]);
  assert.equal(used.body.person.is_operator, false);
  const key = await ada.v1("POST", "/v1/api-keys", own.id, { body: { name: "x", environment: "test" } });
  assert.equal(key.status, 201, JSON.stringify(key.body));
  const mail = { from: "a@shop.example", to: ["b@y.example"], subject: "x", text_body: "x" };
  const live = await ada.v1("POST", "/v1/send", own.id, { body: mail });
  assert.equal(live.body.code, "organization_in_review");
  const { organizations } = (await operator.ask("GET", "/dashboard/api/operator/organizations")).body;
  assert.equal(organizations.find((one: { id: string }) => one.id === own.id).purpose, PURPOSE);
  const { entries } = (await ada.v1("GET", "/v1/audit-log", own.id)).body;
  assert.ok(entries.some((entry: { operation: string; name: string }) => entry.operation === "signUp"));
  assert.equal((await use(browserOf(api), token)).status, 404);
});

it("answers the same for an address that has an account, which is mailed that and gets no link", async () => {
  const known = await browserOf(api).ask("POST", SIGN_UP, { email: "operator@example.net" });
  const unknown = await browserOf(api).ask("POST", SIGN_UP, { email: "stranger@example.net" });
  assert.deepEqual([known.status, known.body], [unknown.status, unknown.body]);
  const mail = await mailTo("operator@example.net");
  assert.match(mail, /You have an account/);
  assert.equal(tokenIn(mail), "");
});

it("a second link stops the first; a field that is missing is named and uses nothing up", async () => {
  for (let time = 0; time < 2; time += 1) {
    await browserOf(api).ask("POST", SIGN_UP, { email: "twice@example.net" });
    await mailTo("twice@example.net", time);
  }
  const [first = "", second = ""] = (await mailsTo("twice@example.net")).map(tokenIn);
  assert.equal((await use(browserOf(api), first)).status, 404);
  for (const [field, value] of [
    ["organization_name", " "],
    ["organization_name", "a\nb"],
    ["purpose", "x"],
    ["password", "short"],
  ] as const) {
    const refused = await use(browserOf(api), second, { [field]: value });
    assert.deepEqual([refused.status, refused.body.field], [400, field]);
  }
  assert.equal((await use(browserOf(api), second)).status, 200);
});

it("limits mails by address and by network, and refuses what is no address", async () => {
  const ask = (email: string, ip: string) => browserOf(api, { ip }).ask("POST", SIGN_UP, { email });
  assert.deepEqual((await ask("nothing", "203.0.113.1")).body.field, "email");
  for (let time = 0; time < 3; time += 1)
    assert.equal((await ask("flooded@example.net", `198.51.${time}.1`)).status, 202);
  assert.equal((await ask("flooded@example.net", "192.0.2.1")).status, 429);
  const answers: number[] = [];
  for (let host = 1; host <= 12; host += 1)
    answers.push((await ask(`f${host}@example.net`, `203.0.113.${host}`)).status);
  assert.deepEqual(answers.slice(0, 10), Array(10).fill(202));
  assert.equal(answers.at(-1), 429);
});

it("an operator's link lets in whom they choose; with signing up off there is none, and links that are out stop", async () => {
  const closed = await testApi({ POSTERN_SIGNUP: "invite" });
  try {
    const theirs = await setUp(closed, "operator@example.net");
    const ways = (await browserOf(closed).ask("GET", "/dashboard/api/ways-in")).body;
    assert.equal(ways.sign_up, "invite");
    const refused = await browserOf(closed).ask("POST", SIGN_UP, { email: "x@example.net" });
    assert.deepEqual([refused.status, refused.body.code], [409, "invalid_state"]);
    const { status, body } = await theirs.ask("POST", LINKS, { email: "guest@example.net" });
    assert.equal(status, 201, JSON.stringify(body));
    const token = body.link.split("#")[1];
    closed.config.sign_up = "off";
    assert.equal((await use(browserOf(closed), token)).status, 409);
    assert.equal((await theirs.ask("POST", LINKS, { email: "guest@example.net" })).status, 409);
    closed.config.sign_up = "invite";
    assert.equal((await use(browserOf(closed), token)).status, 200);
  } finally {
    await closed.close();
  }
});
