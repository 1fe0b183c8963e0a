// Signing in at an OpenID Connect provider (the npm package oidc-provider, on loopback): who comes in, who does not, and what an answer
// must be to count.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { type Answer, type TestApi, testApi } from "../../../test/support/api.ts";
import { startOidcProvider, type TestProvider } from "../../../test/support/oidc-provider.ts";
import { type Browser, browserOf, PASSWORD, setUp } from "../../../test/support/people.ts";
import { createOrganization } from "../../accounts/accounts.ts";

const CALLBACK = "https://api.postern.test/dashboard/api/oidc/callback";
let provider: TestProvider;
let api: TestApi;
let owner: Browser;

before(async () => {
  provider = await startOidcProvider(CALLBACK);
  api = await testApi({
    ...{ POSTERN_OIDC_ISSUER: provider.issuer, POSTERN_OIDC_CLIENT_ID: provider.client_id },
    ...{ POSTERN_OIDC_CLIENT_SECRET: provider.client_secret, POSTERN_OIDC_NAME: "Nordkiosk" },
    ...{ POSTERN_OIDC_DOMAINS: "staff.example", POSTERN_OIDC_ROLE: "developer" },
  });
  owner = await setUp(api, "ann@example.net");
});
after(async () => {
  await api.close();
  await provider.stop();
});

let people = 0;
/** Somebody new at the provider. */
function become(email: string, is: { email_verified?: boolean; sub?: string } = {}): void {
  people += 1;
  provider.become({ sub: `person-${people}`, email, email_verified: true, name: "Somebody", ...is });
}

/** To the provider and back; `change` may alter what comes back. */
async function goThere(browser: Browser, query = "?to=/emails", change = (url: string) => url): Promise<Answer> {
  const started = await browser.ask("GET", `/dashboard/api/oidc/start${query}`);
  assert.equal(started.status, 303, JSON.stringify(started.body));
  const back = change(await provider.visit(String(started.headers.location)));
  return browser.ask("GET", back.slice(back.indexOf("/dashboard/")));
}

const placeOf = (answer: Answer) => [answer.status, answer.headers.location];
const whoIs = async (browser: Browser) => (await browser.ask("GET", "/dashboard/api/session")).body;

it("somebody whose address is verified and known comes in, and is known by the provider's name for them afterwards", async () => {
  assert.deepEqual((await owner.ask("GET", "/dashboard/api/ways-in")).body, {
    mails: false,
    sign_up: "off",
    oidc: { name: "Nordkiosk" },
  });
  become("ann@example.net", { sub: "ann" });
  const browser = browserOf(api);
  assert.deepEqual(placeOf(await goThere(browser)), [303, "/emails"]);
  assert.equal((await whoIs(browser)).person.email, "ann@example.net");
  become("ann.new@example.net", { sub: "ann", email_verified: false });
  const later = browserOf(api);
  assert.deepEqual(placeOf(await goThere(later)), [303, "/emails"]);
  assert.equal((await whoIs(later)).person.email, "ann@example.net");
  become("ann@example.net", { sub: "another" });
  assert.deepEqual(placeOf(await goThere(browserOf(api))), [303, "/sign-in?problem=oidc_failed"]);
});

it("an address that is not verified opens nothing, nor one that nobody invited", async () => {
  become("ann@example.net", { email_verified: false });
  assert.deepEqual(placeOf(await goThere(browserOf(api))), [303, "/sign-in?problem=oidc_unverified"]);
  become("stranger@elsewhere.example");
  const stranger = browserOf(api);
  assert.deepEqual(placeOf(await goThere(stranger)), [303, "/sign-in?problem=oidc_uninvited"]);
  assert.equal((await whoIs(stranger)).code, "not_signed_in");
});

it("a name of 255 characters at the provider comes in, and a longer one does not", async () => {
  const problemOf = async (length: number) => {
    become("stranger@elsewhere.example", { sub: "s".repeat(length) });
    return placeOf(await goThere(browserOf(api)));
  };
  assert.deepEqual(await problemOf(255), [303, "/sign-in?problem=oidc_uninvited"]);
  assert.deepEqual(await problemOf(256), [303, "/sign-in?problem=oidc_failed"]);
});

it("who is invited takes the invitation with it, and a person with an address of the domain joins without one", async () => {
  const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
  await owner.ask("POST", path, { email: "guest@elsewhere.example", role: "viewer" });
  become("guest@elsewhere.example");
  const guest = browserOf(api);
  await goThere(guest);
  const { person, organizations } = await whoIs(guest);
  assert.deepEqual([organizations[0].role, person.has_password, person.has_provider], ["viewer", false, true]);
  assert.deepEqual((await owner.ask("GET", path)).body.invitations, []);
  become("Kim@staff.example");
  const kim = browserOf(api);
  await goThere(kim);
  const joined = await whoIs(kim);
  assert.deepEqual([joined.person.email, joined.organizations[0].role], ["kim@staff.example", "developer"]);
  const { entries } = (await api.ask("GET", "/v1/audit-log?operation=joinOrganization")).body;
  assert.equal(entries[0].name, "kim@staff.example");
});

/** One client may try so often only. */
const elsewhere = () => browserOf(api, { ip: "203.0.113.7" });

it("what is called verified is the address beside it, not one that stands elsewhere in what the provider says", async () => {
  const sub = "mallory";
  const seen = async (email: string, verified: boolean | undefined, inToken: object) => {
    provider.become(
      { sub, email, name: "M", ...(verified === undefined ? {} : { email_verified: verified }) } as never,
      inToken,
    );
    return placeOf(await goThere(elsewhere()));
  };
  const own = { email: "mallory@elsewhere.example", email_verified: true };
  assert.deepEqual(await seen("ann@example.net", undefined, own), [303, "/sign-in?problem=oidc_uninvited"]);
  const unsure = { email: "ann@example.net" };
  assert.deepEqual(await seen("mallory@elsewhere.example", true, unsure), [303, "/sign-in?problem=oidc_uninvited"]);
  assert.deepEqual(await seen("ann@example.net", undefined, {}), [303, "/sign-in?problem=oidc_unverified"]);
});

it("an address that only looks like one of the domains lets nobody in", async () => {
  for (const email of ['"a@staff.example@b"@evil.example', "a@staff.example@evil.example", "a b@staff.example"]) {
    become(email);
    assert.deepEqual(placeOf(await goThere(elsewhere())), [303, "/sign-in?problem=oidc_failed"], email);
  }
});

it("who signs in there for the first time ends what somebody made in their name behind a shown link", async () => {
  const email = "eve@elsewhere.example";
  const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
  const { link } = (await owner.ask("POST", path, { email, role: "viewer" })).body;
  const mallory = elsewhere();
  const use = { token: link.split("#")[1], name: "Eve", password: PASSWORD };
  assert.equal((await mallory.ask("POST", "/dashboard/api/links/use", use)).status, 200);
  become(email, { sub: "eve" });
  const eve = elsewhere();
  assert.deepEqual(placeOf(await goThere(eve)), [303, "/emails"]);
  const { person } = await whoIs(eve);
  assert.deepEqual([person.email, person.has_password, person.has_provider], [email, false, true]);
  assert.equal((await whoIs(mallory)).code, "not_signed_in");
  const guess = await elsewhere().ask("POST", "/dashboard/api/sign-in", { email, password: PASSWORD });
  assert.deepEqual([guess.status, guess.body.code], [401, "sign_in_failed"]);
  // What the person makes from then on stays.
  await eve.ask("PUT", "/dashboard/api/person/password", { password: PASSWORD });
  await goThere(elsewhere());
  assert.equal((await whoIs(eve)).person.has_password, true);
});

it("a person with an address of the domain joins the first organization, also where another one invited them", async () => {
  const { organization } = await createOrganization(api.world, { name: "Elsewhere" });
  const mallory = await setUp(api, "mallory@example.org", organization.id);
  const invite = (browser: Browser, org_id: string, email: string) =>
    browser.ask("POST", `/dashboard/api/organizations/${org_id}/invitations`, { email, role: "owner" });
  await invite(mallory, organization.id, "max@staff.example");
  await invite(owner, api.org_id, "mia@staff.example");
  await invite(mallory, organization.id, "mia@staff.example");
  for (const [email, role] of [
    ["max@staff.example", "developer"],
    ["mia@staff.example", "owner"],
  ] as const) {
    become(email);
    const browser = elsewhere();
    await goThere(browser);
    const { organizations } = await whoIs(browser);
    assert.deepEqual(
      organizations.map((one: { id: string; role: string }) => [one.id, one.role]),
      [[api.org_id, role]],
    );
  }
});

it("an answer counts once, in the browser that asked, with its state, and leads to a page of this site only", async () => {
  become("ann@example.net", { sub: "ann" });
  const victim = browserOf(api);
  const attacker = browserOf(api);
  const started = await attacker.ask("GET", "/dashboard/api/oidc/start");
  const back = await provider.visit(String(started.headers.location));
  const path = back.slice(back.indexOf("/dashboard/"));
  assert.deepEqual(placeOf(await victim.ask("GET", path)), [303, "/sign-in?problem=oidc_failed"], "login CSRF");
  assert.equal((await whoIs(victim)).code, "not_signed_in");
  const other = await goThere(browserOf(api), "", (url) => url.replace(/state=[^&]+/, "state=other"));
  assert.deepEqual(placeOf(other), [303, "/sign-in?problem=oidc_failed"]);
  const denied = await goThere(browserOf(api), "", (url) => `${url.split("?")[0]}?error=access_denied`);
  assert.deepEqual(placeOf(denied), [303, "/sign-in?problem=oidc_failed"]);
  for (const to of ["//evil.example", "https://evil.example", "/\\evil.example"]) {
    const led = await goThere(browserOf(api), `?to=${encodeURIComponent(to)}`);
    assert.deepEqual(placeOf(led), [303, "/"], to);
  }
  const { url } = { url: String((await browserOf(api).ask("GET", "/dashboard/api/oidc/start")).headers.location) };
  const asked = new URL(url).searchParams;
  assert.deepEqual([asked.get("code_challenge_method"), asked.get("response_type")], ["S256", "code"]);
});

it("who signs in there shows again who they are there, and nobody else does it for them", async () => {
  become("kim2@staff.example", { sub: "kim2" });
  const kim = browserOf(api);
  await goThere(kim);
  await kim.forgetProof();
  const dangerous = () => kim.ask("PUT", "/dashboard/api/person/password", { password: PASSWORD });
  assert.equal((await dangerous()).body.code, "proof_needed");
  become("lea@staff.example", { sub: "lea" });
  assert.deepEqual(placeOf(await goThere(kim, "?proves=1")), [303, "/sign-in?problem=oidc_failed"]);
  assert.equal((await dangerous()).body.code, "proof_needed");
  become("kim2@staff.example", { sub: "kim2" });
  assert.deepEqual(placeOf(await goThere(kim, "?proves=1&to=/settings/security")), [303, "/settings/security"]);
  assert.equal((await dangerous()).status, 200);
});

it("a provider that is away leads back to the sign-in page, and the log says why, as it does of a wrong client secret", async () => {
  const lines: string[] = [];
  const away = await startOidcProvider(CALLBACK);
  await away.stop();
  for (const [issuer, POSTERN_OIDC_CLIENT_SECRET, problem] of [
    [away.issuer, away.client_secret, "oidc_unavailable"],
    [provider.issuer, "another secret", "oidc_failed"],
  ] as const) {
    const settings = { POSTERN_OIDC_ISSUER: issuer, POSTERN_OIDC_CLIENT_ID: provider.client_id };
    const wrong = await testApi({ ...settings, POSTERN_OIDC_CLIENT_SECRET }, (world) => {
      const note = (given: object) => lines.push(String((given as { why?: string }).why));
      return { ...world, log: Object.assign(Object.create(world.log), { info: note, error: note }) };
    });
    const browser = browserOf(wrong);
    const started = await browser.ask("GET", "/dashboard/api/oidc/start");
    const [, back = null] = String(started.headers.location).startsWith("/")
      ? []
      : (await provider.visit(String(started.headers.location))).split("api.postern.test");
    assert.deepEqual(placeOf(back === null ? started : await browser.ask("GET", back)), [
      303,
      `/sign-in?problem=${problem}`,
    ]);
    await wrong.close();
  }
  const why = lines.join("\n");
  assert.match(why, /the provider http:\S+ does not say how to sign in: connect ECONNREFUSED/);
  assert.match(why, /the provider's answer does not let in: .*\(invalid_client\)/);
});
