import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Secret, TOTP } from "otpauth";
import { type Answer, type TestApi, testApi } from "../../test/support/api.ts";
import { lockWaits } from "../../test/support/lock-waits.ts";
import { type Browser, browserOf, PASSWORD, setUp } from "../../test/support/people.ts";
import { until } from "../../test/support/until.ts";
import { makeMailedReset } from "./links/links.ts";
import { makeResetLink, makeSetUpLink } from "./people.ts";
import { findPersonByEmail } from "./queries.ts";
import { tokenDigest } from "./sign-in/sessions.ts";
import { PERSON_ROLES } from "./types.ts";

let api: TestApi;
let owner: Browser;

before(async () => {
  api = await testApi();
  owner = await setUp(api, "ann@example.net");
});
after(() => api.close());

const tokenOf = (link: string): string => link.split("#")[1] ?? "";

/** Somebody with that role in the first organization, signed in. */
async function member(role: string): Promise<Browser> {
  const email = `${role}-${api.world.random.token(6).toLowerCase()}@example.net`;
  const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
  const { body } = await owner.ask("POST", path, { email, role });
  const browser = browserOf(api);
  const used = await browser.ask("POST", "/dashboard/api/links/use", {
    token: tokenOf(body.link),
    name: role,
    password: PASSWORD,
  });
  assert.equal(used.status, 200, JSON.stringify(used.body));
  return browser;
}

const codeOf = (answer: Answer) => [answer.status, answer.body.code];

describe("the set-up link", () => {
  it("makes its user owner and operator, once", async () => {
    const link = await makeSetUpLink(api.world, api.org_id);
    const browser = browserOf(api);
    const token = tokenOf(link);
    const looked = await browser.ask("POST", "/dashboard/api/links/look-up", { token });
    assert.deepEqual(looked.body.link, {
      kind: "set_up",
      organization_id: api.org_id,
      organization_name: "My organization",
      email: null,
      role: "owner",
    });
    const use = { token, email: "Second@Example.net", name: "Second", password: PASSWORD };
    const used = await browser.ask("POST", "/dashboard/api/links/use", use);
    assert.equal(used.status, 200);
    assert.deepEqual([used.body.person.email, used.body.person.is_operator], ["second@example.net", true]);
    assert.deepEqual(used.body.organizations[0].role, "owner");
    assert.equal((await browser.ask("GET", "/dashboard/api/session")).status, 200);
    const again = await browserOf(api).ask("POST", "/dashboard/api/links/use", { ...use, email: "third@example.net" });
    assert.deepEqual(codeOf(again), [404, "not_found"]);
  });

  it("makes who belongs to the organization already its owner, and operator", async () => {
    const viewer = await member("viewer");
    const token = tokenOf(await makeSetUpLink(api.world, api.org_id));
    const used = await viewer.ask("POST", "/dashboard/api/links/use", { token });
    assert.equal(used.status, 200, JSON.stringify(used.body));
    assert.deepEqual([used.body.person.is_operator, used.body.organizations[0].role], [true, "owner"]);
  });

  it("is over after 24 hours, and when a later one was made", async () => {
    const early = tokenOf(await makeSetUpLink(api.world, api.org_id));
    const later = tokenOf(await makeSetUpLink(api.world, api.org_id));
    const look = (token: string) => owner.ask("POST", "/dashboard/api/links/look-up", { token });
    assert.equal((await look(early)).status, 404);
    assert.equal((await look(later)).status, 200);
    await api.world.db.execute("update person_link set expires_at = $1", [new Date(api.world.clock.now())]);
    assert.equal((await look(later)).status, 404);
  });

  it("opens no account that is there already", async () => {
    const token = tokenOf(await makeSetUpLink(api.world, api.org_id));
    const stolen = await browserOf(api).ask("POST", "/dashboard/api/links/use", {
      ...{ token, email: "ann@example.net", name: "x", password: "another password" },
    });
    assert.deepEqual(codeOf(stolen), [409, "invalid_state"]);
    assert.equal((await signIn("ann@example.net", PASSWORD)).status, 200);
  });
});

function signIn(email: string, password: string, code?: string, browser = browserOf(api)): Promise<Answer> {
  return browser.ask("POST", "/dashboard/api/sign-in", { email, password, ...(code === undefined ? {} : { code }) });
}

describe("passwords", () => {
  it("that are short, common, repeated or the address are refused", async () => {
    const token = tokenOf(await makeSetUpLink(api.world, api.org_id));
    for (const password of ["short", "1234567890", "Password123", "aaaaaaaaaaaaaa", "x-long@example.net"]) {
      const use = { token, email: "x-long@example.net", password };
      const refused = await browserOf(api).ask("POST", "/dashboard/api/links/use", use);
      assert.deepEqual([...codeOf(refused), refused.body.field], [400, "validation_error", "password"], password);
    }
  });

  it("are kept as argon2id, and sessions, links and codes as digests", async () => {
    const rows = await api.world.db.query<{ password: string }>(
      "select password from person where password is not null",
    );
    assert.ok(rows.length > 0);
    for (const { password } of rows) assert.match(password, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    const sessions = await api.world.db.query<{ row: string }>("select s::text as row from person_session s");
    const token = Buffer.from(owner.token() ?? "");
    const kept = sessions.map(({ row }) => row).join();
    assert.ok(kept.includes(tokenDigest(String(token)).toString("hex")));
    assert.ok(!kept.includes(token.toString("hex")) && !kept.includes(String(token)));
  });

  it("are changed after the old one was shown, and other sessions end", async () => {
    const one = await member("viewer");
    const { email } = (await one.ask("GET", "/dashboard/api/session")).body.person;
    const other = browserOf(api);
    await signIn(email, PASSWORD, undefined, other);
    await one.forgetProof();
    assert.deepEqual(codeOf(await one.ask("PUT", "/dashboard/api/person/password", { password: "brand new words" })), [
      403,
      "proof_needed",
    ]);
    assert.equal((await one.ask("POST", "/dashboard/api/proof", { password: "wrong password" })).status, 401);
    assert.equal((await one.ask("POST", "/dashboard/api/proof", { password: PASSWORD })).status, 200);
    assert.equal((await one.ask("PUT", "/dashboard/api/person/password", { password: "brand new words" })).status, 200);
    assert.equal((await one.ask("GET", "/dashboard/api/session")).status, 200);
    assert.equal((await other.ask("GET", "/dashboard/api/session")).status, 401);
    assert.equal((await signIn(email, "brand new words")).status, 200);
  });
});

describe("signing in", () => {
  it("answers the same for a wrong password and for an address that nobody has", async () => {
    const [known, unknown] = await Promise.all([
      signIn("ann@example.net", "wrong password"),
      signIn("nobody@example.net", "wrong password"),
    ]);
    const { request_id: _one, ...wrong } = known.body;
    const { request_id: _other, ...nobody } = unknown.body;
    assert.deepEqual([known.status, wrong], [unknown.status, nobody]);
    assert.deepEqual(codeOf(known), [401, "sign_in_failed"]);
  });

  it("does the same work for an address that nobody has", async () => {
    const took = async (email: string) => {
      const begun = performance.now();
      await signIn(email, "wrong password");
      return performance.now() - begun;
    };
    const unknown = [
      await took("nobody1@example.net"),
      await took("nobody2@example.net"),
      await took("nobody3@example.net"),
    ];
    const known = [await took("ann@example.net"), await took("ann@example.net")];
    // Argon2id takes some 50 ms; without it the answer would come in one or two.
    assert.ok(Math.min(...unknown) > Math.min(...known) / 3, `${unknown} against ${known}`);
  });

  it("is slowed after some tries and never locked: another client still gets in, and time gives tries back", async () => {
    const someone = await member("viewer");
    const { email } = (await someone.ask("GET", "/dashboard/api/session")).body.person;
    const attacker = browserOf(api, { ip: "192.0.2.66" });
    const answers: Answer[] = [];
    for (let n = 0; n < 8; n += 1) answers.push(await signIn(email, "wrong password", undefined, attacker));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [401, 429]);
    assert.equal(answers.at(-1)?.body.limit_type, "sign_ins");
    assert.ok(Number(answers.at(-1)?.headers["retry-after"]) > 0);
    assert.equal((await signIn(email, PASSWORD, undefined, attacker)).status, 429, "the right one as well");
    assert.equal((await signIn(email, PASSWORD)).status, 200, "from elsewhere");
    await api.world.db.execute("update sign_in_try set full_at = full_at - interval '10 minutes'");
    assert.equal((await signIn(email, PASSWORD, undefined, attacker)).status, 200);
  });

  it("gives a new token each time, and the old one ends (fixation)", async () => {
    const browser = browserOf(api);
    browser.plant("A".repeat(43));
    await signIn("ann@example.net", PASSWORD, undefined, browser);
    const first = browser.token();
    assert.notEqual(first, "A".repeat(43));
    await signIn("ann@example.net", PASSWORD, undefined, browser);
    const second = browser.token();
    assert.notEqual(second, first);
    browser.plant(first as string);
    assert.equal((await browser.ask("GET", "/dashboard/api/session")).status, 401);
  });

  it("sets a cookie that scripts and other sites do not get", async () => {
    const answer = await signIn("ann@example.net", PASSWORD);
    assert.match(
      String(answer.headers["set-cookie"]),
      /^__Host-postern=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax$/,
    );
    const local = browserOf(api, { host: "127.0.0.1:8080", origin: "http://127.0.0.1:8080" });
    const plain = await signIn("ann@example.net", PASSWORD, undefined, local);
    assert.match(
      String(plain.headers["set-cookie"]),
      /^postern=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/,
    );
    assert.equal((await local.ask("GET", "/dashboard/api/session")).status, 200);
  });
});

describe("sessions", () => {
  it("end at sign-out: the cookie is worth nothing any more", async () => {
    const browser = browserOf(api);
    await signIn("ann@example.net", PASSWORD, undefined, browser);
    const token = browser.token() as string;
    assert.equal((await browser.ask("POST", "/dashboard/api/sign-out")).status, 200);
    assert.equal(browser.token(), null);
    browser.plant(token);
    assert.deepEqual(codeOf(await browser.ask("GET", "/dashboard/api/session")), [401, "not_signed_in"]);
    assert.equal((await browser.v1("GET", "/v1/domains", api.org_id)).status, 401);
  });

  it("end after 12 idle hours, and after 30 days however much they are used", async () => {
    for (const column of ["seen_at", "created_at"]) {
      const browser = browserOf(api);
      await signIn("ann@example.net", PASSWORD, undefined, browser);
      const hours = column === "seen_at" ? 12 : 30 * 24;
      await browser.age(column, `${hours} hours - 1 minute`);
      assert.equal((await browser.ask("GET", "/dashboard/api/session")).status, 200, column);
      await browser.age(column, `${hours} hours`);
      assert.equal((await browser.ask("GET", "/dashboard/api/session")).status, 401, column);
    }
  });

  it("are listed, ended one by one and all at once", async () => {
    const someone = await member("viewer");
    const { email } = (await someone.ask("GET", "/dashboard/api/session")).body.person;
    const other = browserOf(api);
    await signIn(email, PASSWORD, undefined, other);
    const { sessions } = (await someone.ask("GET", "/dashboard/api/sessions")).body;
    assert.deepEqual(sessions.map((one: { is_current: boolean }) => one.is_current).sort(), [false, true]);
    const elsewhere = sessions.find((one: { is_current: boolean }) => !one.is_current);
    assert.equal((await owner.ask("DELETE", `/dashboard/api/sessions/${elsewhere.id}`)).status, 404, "of others");
    assert.equal((await someone.ask("DELETE", `/dashboard/api/sessions/${elsewhere.id}`)).status, 200);
    assert.equal((await other.ask("GET", "/dashboard/api/session")).status, 401);
    await signIn(email, PASSWORD, undefined, other);
    assert.equal((await someone.ask("POST", "/dashboard/api/sign-out-everywhere")).status, 200);
    assert.equal((await other.ask("GET", "/dashboard/api/session")).status, 401);
  });
});

describe("another site", () => {
  it("changes nothing with a person's cookie (CSRF)", async () => {
    const cases: Record<string, string>[] = [
      { origin: "https://evil.example" },
      { origin: "null" },
      { origin: "" },
      { "x-postern-dashboard": "" },
      { "content-type": "text/plain", "x-postern-dashboard": "" },
    ];
    for (const headers of cases) {
      const refused = await owner.ask("POST", "/dashboard/api/sign-out-everywhere", undefined, { headers });
      assert.deepEqual(codeOf(refused), [403, "request_not_allowed"], JSON.stringify(headers));
      const v1 = await owner.v1("POST", "/v1/templates", api.org_id, { body: { name: "x" }, headers });
      assert.deepEqual(codeOf(v1), [403, "request_not_allowed"], JSON.stringify(headers));
    }
    const signInThere = await browserOf(api, { origin: "https://evil.example" }).ask("POST", "/dashboard/api/sign-in", {
      ...{ email: "ann@example.net", password: PASSWORD },
    });
    assert.equal(signInThere.status, 403, "not even a sign-in (login CSRF)");
    assert.equal((await owner.ask("GET", "/dashboard/api/session")).status, 200);
  });
});

describe("an authenticator app", () => {
  it("is needed once it was confirmed; a code and a recovery code count once each", async () => {
    const someone = await member("developer");
    const { email } = (await someone.ask("GET", "/dashboard/api/session")).body.person;
    const { secret, uri } = (await someone.ask("POST", "/dashboard/api/person/totp")).body;
    assert.match(uri, /^otpauth:\/\/totp\/Postern/);
    assert.equal((await signIn(email, PASSWORD)).status, 200, "not before it is confirmed");
    const app = new TOTP({ secret: Secret.fromBase32(secret) });
    const code = (steps = 0) => app.generate({ timestamp: api.world.clock.now() + steps * 30_000 });
    const wrong = String((Number(code()) + 1) % 1_000_000).padStart(6, "0");
    assert.equal((await someone.ask("POST", "/dashboard/api/person/totp/confirm", { code: wrong })).status, 400);
    const confirmed = await someone.ask("POST", "/dashboard/api/person/totp/confirm", { code: code(-1) });
    assert.equal(confirmed.body.recovery_codes.length, 10);
    assert.deepEqual(codeOf(await signIn(email, PASSWORD)), [401, "second_factor_needed"]);
    assert.deepEqual(codeOf(await signIn(email, "wrong password")), [401, "sign_in_failed"]);
    const now = code();
    assert.equal((await signIn(email, PASSWORD, now)).status, 200);
    assert.deepEqual(codeOf(await signIn(email, PASSWORD, now)), [401, "sign_in_failed"], "again");
    const [recovery] = confirmed.body.recovery_codes;
    const recovered = await signIn(email, PASSWORD, recovery);
    assert.deepEqual([recovered.status, recovered.body.person.recovery_codes_left], [200, 9]);
    assert.equal((await signIn(email, PASSWORD, recovery)).status, 401, "again");
  });

  it("survives a reset of the password, unless the operator drops it", async () => {
    const someone = await member("developer");
    const { email } = (await someone.ask("GET", "/dashboard/api/session")).body.person;
    const { secret } = (await someone.ask("POST", "/dashboard/api/person/totp")).body;
    const app = new TOTP({ secret: Secret.fromBase32(secret) });
    const code = app.generate({ timestamp: api.world.clock.now() });
    await someone.ask("POST", "/dashboard/api/person/totp/confirm", { code });
    const [person] = await findPersonByEmail(api.world.db, email);
    for (const [how, drops, make] of [
      ["by the operator", false, async () => (await makeResetLink(api.world, email, false))?.link],
      ["by mail", false, () => makeMailedReset(api.world, person!)],
      ["without the app", true, async () => (await makeResetLink(api.world, email, true))?.link],
    ] as const) {
      const use = { token: tokenOf((await make()) ?? ""), password: `set again ${how}` };
      const used = await browserOf(api).ask("POST", "/dashboard/api/links/use", use);
      assert.equal(used.status, drops ? 200 : 401, how);
      const next = await signIn(email, `set again ${how}`);
      assert.deepEqual(codeOf(next), drops ? [200, undefined] : [401, "second_factor_needed"]);
      assert.equal((await someone.ask("GET", "/dashboard/api/session")).status, 401, "who was in is out");
    }
  });
});

describe("people of an organization", () => {
  it("are invited, changed and removed by owners only, after a fresh proof, and the log says so", async () => {
    const people = `/dashboard/api/organizations/${api.org_id}/people`;
    const invitations = `/dashboard/api/organizations/${api.org_id}/invitations`;
    const someone = await member("viewer");
    const { person } = (await someone.ask("GET", "/dashboard/api/session")).body;
    for (const role of PERSON_ROLES.filter((word) => word !== "owner")) {
      const other = await member(role);
      assert.equal((await other.ask("GET", people)).status, 200);
      for (const [method, path, body] of [
        ["PUT", `${people}/${person.id}`, { role: "admin" }],
        ["DELETE", `${people}/${person.id}`, undefined],
        ["POST", invitations, { email: "friend@example.net", role: "viewer" }],
        ["GET", invitations, undefined],
      ] as const) {
        assert.deepEqual(codeOf(await other.ask(method, path, body)), [403, "role_not_allowed"], `${role} ${method}`);
      }
    }
    await owner.forgetProof();
    const late = await owner.ask("PUT", `${people}/${person.id}`, { role: "admin" });
    assert.deepEqual(codeOf(late), [403, "proof_needed"]);
    await owner.ask("POST", "/dashboard/api/proof", { password: PASSWORD });
    const changed = await owner.ask("PUT", `${people}/${person.id}`, { role: "admin" });
    assert.deepEqual([changed.status, changed.body.person.role], [200, "admin"]);
    assert.equal((await owner.ask("DELETE", `${people}/${person.id}`)).status, 200);
    assert.equal((await someone.v1("GET", "/v1/domains", api.org_id)).status, 403, "from the next request on");
    const log = await api.ask("GET", "/v1/audit-log?operation=removeMember");
    assert.equal(log.body.entries[0].actor, "person");
    assert.equal(log.body.entries[0].name, "ann@example.net");
    assert.deepEqual(log.body.entries[0].target, { id: person.id });
    assert.deepEqual(log.body.entries[0].changes, [{ field: "role", before: "admin", after: null }]);
    const { entries } = (await api.ask("GET", "/v1/audit-log?operation=updateMember&limit=1")).body;
    assert.deepEqual(entries[0].changes, [{ field: "role", before: "viewer", after: "admin" }]);
  });

  it("are invited by a link that the owner sees where Postern cannot mail, and the log has who saw it and who used it", async () => {
    const path = `/dashboard/api/organizations/${api.org_id}/invitations`;
    const { body } = await owner.ask("POST", path, { email: "shown@example.net", role: "viewer" });
    assert.notEqual(body.link, null);
    const token = tokenOf(body.link);
    const use = { token, name: "", password: PASSWORD };
    assert.equal((await browserOf(api).ask("POST", "/dashboard/api/links/use", use)).status, 200);
    const { entries } = (await api.ask("GET", "/v1/audit-log?limit=3")).body;
    assert.deepEqual(
      entries.map(({ operation, name }: Record<string, string>) => `${operation} ${name}`),
      ["joinOrganization shown@example.net", "showInvitationLink ann@example.net", "createInvitation ann@example.net"],
    );
    assert.deepEqual(entries[1].target, { id: body.invitation.id });
  });

  it("are as they were just before a change, also in the log of a change that waited for another one", async () => {
    const someone = await member("viewer");
    const { id } = (await someone.ask("GET", "/dashboard/api/session")).body.person;
    const change = await api.world.db.transaction(async (tx) => {
      await tx.execute("update membership set role = 'admin' where person_id = $1", [id]);
      const waits = owner.ask("PUT", `/dashboard/api/organizations/${api.org_id}/people/${id}`, { role: "developer" });
      await until("the change waits", async () => (await lockWaits(api.world)) === 1);
      return { waits };
    });
    assert.equal((await change.waits).status, 200);
    const { entries } = (await api.ask("GET", "/v1/audit-log?operation=updateMember&limit=1")).body;
    assert.deepEqual(entries[0].changes, [{ field: "role", before: "admin", after: "developer" }]);
  });

  it("always have an owner", async () => {
    const { org_id } = await api.organization();
    const only = await setUp(api, "only@example.net", org_id);
    const { person } = (await only.ask("GET", "/dashboard/api/session")).body;
    const path = `/dashboard/api/organizations/${org_id}/people/${person.id}`;
    assert.deepEqual(codeOf(await only.ask("DELETE", path)), [409, "invalid_state"]);
    assert.deepEqual(codeOf(await only.ask("PUT", path, { role: "viewer" })), [409, "invalid_state"]);
  });

  it("are nobody to other organizations: 404, as for ids that there are none of", async () => {
    const { org_id } = await api.organization();
    const stranger = await setUp(api, "stranger@example.net", org_id);
    const { people } = (await owner.ask("GET", `/dashboard/api/organizations/${api.org_id}/people`)).body;
    for (const [method, path, body] of [
      ["GET", `/dashboard/api/organizations/${api.org_id}/people`, undefined],
      ["PUT", `/dashboard/api/organizations/${org_id}/people/${people[0].id}`, { role: "viewer" }],
      ["DELETE", `/dashboard/api/organizations/${org_id}/people/${people[0].id}`, undefined],
      ["GET", `/dashboard/api/organizations/${api.org_id}/invitations`, undefined],
      ["POST", `/dashboard/api/organizations/${api.org_id}/invitations`, { email: "a@example.net", role: "owner" }],
      ["DELETE", `/dashboard/api/organizations/${api.org_id}/invitations/${people[0].id}`, undefined],
    ] as const) {
      assert.deepEqual(codeOf(await stranger.ask(method, path, body)), [404, "not_found"], `${method} ${path}`);
    }
    assert.deepEqual(codeOf(await stranger.v1("GET", "/v1/domains", api.org_id)), [403, "role_not_allowed"]);
    const seen = await api.world.db.asOrg(org_id, (tx) => tx.query<{ email: string }>("select email from person"));
    assert.deepEqual(seen, [{ email: "stranger@example.net" }], "row-level security");
    for (const table of ["person_session", "recovery_code", "sign_in_try"]) {
      const rows = await api.world.db.asOrg(org_id, (tx) => tx.query(`select 1 from ${table}`));
      assert.deepEqual(rows, [], table);
    }
  });
});
