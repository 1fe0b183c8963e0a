// Passkeys: set up, used, shown again, removed; and what must not be taken for one.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type Answer, type TestApi, testApi } from "../../../test/support/api.ts";
import { type Authenticator, authenticator } from "../../../test/support/authenticator.ts";
import { type Browser, browserOf, PASSWORD, setUp } from "../../../test/support/people.ts";
import { makeMailedReset } from "../links/links.ts";
import { makeResetLink, makeSetUpLink } from "../people.ts";
import { findPersonByEmail } from "../queries.ts";

const ORIGIN = "https://api.postern.test";
const PATH = "/dashboard/api/person/passkeys";
let api: TestApi;
let owner: Browser;

before(async () => {
  api = await testApi();
  owner = await setUp(api, "ann@example.net");
});
after(() => api.close());

const codeOf = (answer: Answer) => [answer.status, answer.body.code];

async function add(who: Browser, device: Authenticator, origin = ORIGIN): Promise<Answer> {
  const { options } = (await who.ask("POST", `${PATH}/options`)).body;
  return who.ask("POST", PATH, { passkey: device.make(options, origin), name: "laptop" });
}

async function question(browser = browserOf(api)): Promise<object> {
  return (await browser.ask("POST", "/dashboard/api/passkeys/options")).body.options;
}

function signIn(passkey: object, browser = browserOf(api)): Promise<Answer> {
  return browser.ask("POST", "/dashboard/api/passkeys/sign-in", { passkey });
}

it("one is added, lets in alone, and goes by no address", async () => {
  const device = authenticator();
  const made = await add(owner, device);
  assert.deepEqual([made.status, made.body.passkey.name, made.body.passkey.used_at], [201, "laptop", null]);
  const asked = await question();
  assert.deepEqual(Object.keys(asked).includes("allowCredentials"), false, "nobody learns which key belongs to whom");
  const browser = browserOf(api);
  const entered = await signIn(device.show(asked, ORIGIN), browser);
  assert.deepEqual([entered.status, entered.body.person.email], [200, "ann@example.net"]);
  assert.equal((await browser.ask("GET", "/dashboard/api/session")).status, 200);
  const [listed] = (await owner.ask("GET", PATH)).body.passkeys;
  assert.notEqual(listed.used_at, null);
});

it("a question is good for one answer, for five minutes", async () => {
  const device = authenticator();
  await add(owner, device);
  const asked = await question();
  assert.equal((await signIn(device.show(asked, ORIGIN))).status, 200);
  assert.deepEqual(codeOf(await signIn(device.show(asked, ORIGIN))), [401, "sign_in_failed"]);
  const late = await question();
  await api.world.db.execute("update passkey_challenge set expires_at = $1", [new Date(api.world.clock.now())]);
  assert.deepEqual(codeOf(await signIn(device.show(late, ORIGIN))), [401, "sign_in_failed"]);
});

it("an answer for another site, without finger or PIN, of another device, or with an old counter lets nobody in", async () => {
  const device = authenticator();
  await add(owner, device);
  const cases: [string, (asked: object) => object][] = [
    ["another site's page", (asked) => device.show(asked, "https://evil.example")],
    ["bound to another name", (asked) => device.show({ ...asked, rpId: "evil.example" }, ORIGIN)],
    ["nobody was asked", (asked) => device.show(asked, ORIGIN, { verified: false })],
    ["not known here", (asked) => authenticator().show(asked, ORIGIN)],
    ["a challenge of one's own", (asked) => device.show({ ...asked, challenge: "AAAA" }, ORIGIN)],
  ];
  for (const [what, answer] of cases) {
    const refused = await signIn(answer(await question()));
    assert.deepEqual(codeOf(refused), [401, "sign_in_failed"], what);
  }
  assert.equal((await signIn(device.show(await question(), ORIGIN, { counter: 50 }))).status, 200);
  const copy = await signIn(device.show(await question(), ORIGIN, { counter: 50 }));
  assert.deepEqual(codeOf(copy), [401, "sign_in_failed"], "a copy of the device");
});

it("one made for another person's question, or on another site, is not kept", async () => {
  const other = await member("viewer");
  const { options } = (await other.ask("POST", `${PATH}/options`)).body;
  const stolen = await owner.ask("POST", PATH, { passkey: authenticator().make(options, ORIGIN), name: "x" });
  assert.deepEqual([...codeOf(stolen), stolen.body.field], [400, "validation_error", "passkey"]);
  assert.deepEqual(codeOf(await add(owner, authenticator(), "https://evil.example")), [400, "validation_error"]);
});

it("one is added and removed after a fresh proof only, and may be the proof itself", async () => {
  const who = await member("developer");
  const device = authenticator();
  const { id } = (await add(who, device)).body.passkey;
  await who.forgetProof();
  assert.deepEqual(codeOf(await who.ask("POST", `${PATH}/options`)), [403, "proof_needed"]);
  assert.deepEqual(codeOf(await who.ask("DELETE", `${PATH}/${id}`)), [403, "proof_needed"]);
  const strangers = authenticator();
  await add(owner, strangers);
  const wrong = { passkey: strangers.show(await question(), ORIGIN) };
  assert.deepEqual(codeOf(await who.ask("POST", "/dashboard/api/proof/passkey", wrong)), [401, "sign_in_failed"]);
  const right = { passkey: device.show(await question(), ORIGIN) };
  assert.equal((await who.ask("POST", "/dashboard/api/proof/passkey", right)).status, 200);
  assert.equal((await owner.ask("DELETE", `${PATH}/${id}`)).status, 404, "of others");
  assert.equal((await who.ask("DELETE", `${PATH}/${id}`)).status, 200);
  assert.deepEqual(codeOf(await signIn(device.show(await question(), ORIGIN))), [401, "sign_in_failed"]);
});

it("the set-up link makes somebody with a passkey and no password, who keeps a way in", async () => {
  const token = (await makeSetUpLink(api.world, api.org_id)).split("#")[1];
  const browser = browserOf(api);
  const who = { token, email: "key@example.net", name: "Key" };
  const { options } = (await browser.ask("POST", "/dashboard/api/links/passkey-options", who)).body;
  const device = authenticator();
  const use = { ...who, passkey: device.make(options, ORIGIN) };
  const used = await browser.ask("POST", "/dashboard/api/links/use", use);
  assert.equal(used.status, 200, JSON.stringify(used.body));
  const { has_password, has_passkey, is_operator } = used.body.person;
  assert.deepEqual([has_password, has_passkey, is_operator], [false, true, true]);
  assert.equal((await signIn(device.show(await question(), ORIGIN))).status, 200);
  const password = { email: "key@example.net", password: PASSWORD };
  assert.deepEqual(codeOf(await browserOf(api).ask("POST", "/dashboard/api/sign-in", password)), [
    401,
    "sign_in_failed",
  ]);
  const [{ id }] = (await browser.ask("GET", PATH)).body.passkeys;
  assert.deepEqual(codeOf(await browser.ask("DELETE", `${PATH}/${id}`)), [409, "invalid_state"]);
  const taken = await browserOf(api).ask("POST", "/dashboard/api/links/use", use);
  assert.equal(taken.status, 404, "once");
  const lost = await makeResetLink(api.world, "key@example.net", true);
  const reset = { token: lost?.link.split("#")[1], password: PASSWORD };
  assert.equal((await browserOf(api).ask("POST", "/dashboard/api/links/use", reset)).status, 200);
  assert.deepEqual(codeOf(await signIn(device.show(await question(), ORIGIN))), [401, "sign_in_failed"]);
});

it("of somebody who used a link that was shown to another goes with the first password that is set by mail", async () => {
  const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
  const { link } = (await owner.ask("POST", path, { email: "shown@example.net", role: "viewer" })).body;
  const other = browserOf(api);
  const who = { token: link.split("#")[1], name: "Not Shown" };
  const { options } = (await other.ask("POST", "/dashboard/api/links/passkey-options", who)).body;
  const device = authenticator();
  const used = await other.ask("POST", "/dashboard/api/links/use", { ...who, passkey: device.make(options, ORIGIN) });
  assert.equal(used.status, 200, JSON.stringify(used.body));
  assert.equal((await signIn(device.show(await question(), ORIGIN))).status, 200);

  const resetByMail = async () => {
    const [person] = await findPersonByEmail(api.world.db, "shown@example.net");
    const token = (await makeMailedReset(api.world, person!)).split("#")[1];
    const browser = browserOf(api);
    const answer = await browser.ask("POST", "/dashboard/api/links/use", { token, password: PASSWORD });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return browser;
  };
  const browser = await resetByMail();
  assert.deepEqual(codeOf(await signIn(device.show(await question(), ORIGIN))), [401, "sign_in_failed"]);
  assert.equal((await other.ask("GET", PATH)).status, 401, "its session is over");

  const own = authenticator();
  assert.equal((await add(browser, own)).status, 201);
  await resetByMail();
  assert.equal((await signIn(own.show(await question(), ORIGIN))).status, 200, "what they made themselves stays");
});

async function member(role: string): Promise<Browser> {
  const email = `${role}-${api.world.random.token(6).toLowerCase()}@example.net`;
  const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
  const { body } = await owner.ask("POST", path, { email, role });
  const browser = browserOf(api);
  const token = body.link.split("#")[1];
  assert.equal(
    (await browser.ask("POST", "/dashboard/api/links/use", { token, name: role, password: PASSWORD })).status,
    200,
  );
  return browser;
}
