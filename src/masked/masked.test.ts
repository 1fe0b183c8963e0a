// /v1/masked as its users see it: aliases, destinations with their consent, contacts, activity.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { addressDigest } from "./addresses/addresses.ts";
import { confirmationToken } from "./addresses/confirmation.ts";
import { forgetUnconfirmed } from "./background.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

const DOMAIN = "masked.postern.test";
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NOBODY = "00000000-0000-7000-8000-00000000abcd";

const create = async (more: object = {}, key?: string) => {
  const body = { forward_to: ["anna@real.example"], ...more };
  const answer = await api.ask("POST", "/v1/masked/aliases", body, key ? { key } : {});
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.alias;
};
const refused = async (body: object, status: number, field: string | undefined) => {
  const answer = await api.ask("POST", "/v1/masked/aliases", body);
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.equal(answer.body.field, field, JSON.stringify(answer.body));
  return answer.body;
};
/** The confirmation mails that wait for an address: their text. */
const mailsTo = (email: string) =>
  api.world.db.query<{ mime: Buffer; message_id: string; environment: string; queued: boolean }>(
    `select b.mime, r.message_id, m.environment,
            exists (select 1 from delivery d where d.message_id = m.id) as queued
       from recipient r join message m on m.id = r.message_id join message_body b on b.id = m.id
      where r.email = $1 order by m.id`,
    [email],
  );

test("a new alias has every field and the defaults", async () => {
  const { id, email, address, created_at, updated_at, ...rest } = await create();
  assert.equal(email, `${address}@${DOMAIN}`);
  assert.match(id, ID);
  assert.match(address, /^[a-z2-9]{10}$/);
  assert.equal(created_at, updated_at);
  assert.deepEqual(rest, {
    org_id: api.org_id,
    environment: "live",
    domain_id: null,
    domain: DOMAIN,
    forward_to: ["anna@real.example"],
    action: "forward",
    is_masked: true,
    masked_description: null,
    display_name: null,
    metadata: {},
    active: true,
    disabled_reason: null,
    on_disabled: "drop",
    reply_enabled: true,
    redact: "all",
    unopened_files: "hold",
    own_name: "leave",
    reply_report: "hidden",
    tracking_pixels: "leave",
    list_unsubscribe: "original",
    pattern: null,
    emails_received: 0,
    emails_forwarded: 0,
    emails_replied: 0,
    emails_blocked: 0,
    last_activity_at: null,
  });
});

test("every setting can be given, and destinations are named once", async () => {
  const settings = {
    display_name: "Anna",
    metadata: { user: 1 },
    active: false,
    on_disabled: "reject",
    reply_enabled: false,
    redact: "quoted",
  };
  const alias = await create({
    ...settings,
    description: "the shop",
    forward_to: ["Bob@Real.Example", "Bob@real.example", "anna@real.example"],
  });
  assert.deepEqual(alias.forward_to, ["Bob@real.example", "anna@real.example"]);
  assert.equal(alias.masked_description, "the shop");
  assert.equal(alias.disabled_reason, "owner");
  for (const [name, value] of Object.entries(settings)) assert.deepEqual(alias[name], value, name);
});

test("local parts are random, words, a UUID, or chosen", async () => {
  assert.match((await create({ format: "random" })).address, /^[a-z2-9]{10}$/);
  assert.match((await create({ format: "words" })).address, /^[a-z]+-[a-z]+-\d{6}$/);
  // Version 4: it tells neither when it was made nor which others were made then.
  assert.match(
    (await create({ format: "uuid" })).address,
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f-]{16}$/,
  );
  assert.equal((await create({ local_part: "Shop.One" })).address, "shop.one");
});

test("what cannot be an alias is refused by the field at fault", async () => {
  const to = { forward_to: ["anna@real.example"] };
  await refused({}, 400, "forward_to");
  await refused({ forward_to: [] }, 400, "forward_to");
  await refused({ forward_to: Array.from({ length: 11 }, (_, n) => `a${n}@real.example`) }, 400, "forward_to");
  await refused({ forward_to: ["anna"] }, 400, "forward_to[0]");
  await refused({ ...to, local_part: "a@b" }, 400, "local_part");
  await refused({ ...to, local_part: "a b" }, 400, "local_part");
  await refused({ ...to, local_part: "a*" }, 400, "local_part");
  await refused({ ...to, local_part: "a+b" }, 400, "local_part");
  await refused({ ...to, local_part: `r.${"a".repeat(26)}` }, 400, "local_part");
  await refused({ ...to, local_part: "postmaster" }, 400, "local_part");
  await refused({ ...to, local_part: "x", format: "words" }, 400, "format");
  await refused({ ...to, format: "poem" }, 400, "format");
  await refused({ ...to, redact: "some" }, 400, "redact");
  await refused({ ...to, metadata: { big: "x".repeat(3_000) } }, 400, "metadata");
  await refused({ ...to, display_name: "Anna <ANNA@real.example>" }, 400, "display_name");
  await refused({ ...to, display_name: "two\nlines" }, 400, "display_name");
  await refused({ ...to, domain_id: NOBODY }, 404, "domain_id");
  await refused({ ...to, colour: "red" }, 400, "colour");
});

test("an alias whose destination is an alias is refused", async () => {
  const { address } = await create();
  await refused({ forward_to: [`${address}@${DOMAIN}`] }, 400, "forward_to[0]");
  await refused({ forward_to: ["anna@real.example", `nobody@${DOMAIN}`] }, 400, "forward_to[1]");
  const added = await api.ask("POST", "/v1/masked/destinations", { email: `${address}@${DOMAIN}` });
  assert.equal(added.status, 400);
});

test("a domain that is not verified carries no aliases", async () => {
  const { body } = await api.ask("POST", "/v1/domains", { domain: "own.example", type: "both" });
  const { code } = await refused({ forward_to: ["anna@real.example"], domain_id: body.id }, 403, "domain_id");
  assert.equal(code, "domain_not_ready");
});

test("a deleted address is never given out again, to anybody, but can be restored for 30 days", async () => {
  const { id } = await create({ local_part: "once" });
  const taken = { forward_to: ["anna@real.example"], local_part: "once" };
  assert.equal((await api.ask("POST", "/v1/masked/aliases", taken)).status, 409);
  const restoreTooEarly = await api.ask("POST", `/v1/masked/aliases/${id}/restore`);
  assert.equal(restoreTooEarly.status, 409);
  assert.deepEqual((await api.ask("DELETE", `/v1/masked/aliases/${id}`)).body, { deleted: true, id });
  assert.equal((await api.ask("GET", `/v1/masked/aliases/${id}`)).status, 404);
  assert.equal((await api.ask("DELETE", `/v1/masked/aliases/${id}`)).status, 404);
  assert.equal((await api.ask("POST", "/v1/masked/aliases", taken)).status, 409);
  const other = await api.organization();
  assert.equal((await api.ask("POST", "/v1/masked/aliases", taken, { key: other.live_key })).status, 409);
  const listed = await api.ask("GET", "/v1/masked/aliases?deleted=true");
  assert.deepEqual(
    listed.body.aliases.map((alias: { id: string }) => alias.id),
    [id],
  );
  const restored = await api.ask("POST", `/v1/masked/aliases/${id}/restore`);
  assert.equal(restored.status, 200);
  assert.equal(restored.body.alias.address, "once");
  await api.ask("DELETE", `/v1/masked/aliases/${id}`);
  await api.world.db.execute("update masked_alias set deleted_at = deleted_at - interval '31 days' where id = $1", [
    id,
  ]);
  assert.equal((await api.ask("POST", `/v1/masked/aliases/${id}/restore`)).status, 409);
});

test("PUT changes what is given and leaves the rest", async () => {
  const alias = await create({ display_name: "Anna", description: "before" });
  const path = `/v1/masked/aliases/${alias.id}`;
  const off = await api.ask("PUT", path, { active: false });
  assert.equal(off.status, 200, JSON.stringify(off.body));
  assert.equal(off.body.alias.disabled_reason, "owner");
  assert.deepEqual({ ...off.body.alias, active: true, disabled_reason: null, updated_at: alias.updated_at }, alias);
  const on = await api.ask("PUT", path, { active: true, description: null, forward_to: ["carl@real.example"] });
  assert.equal(on.body.alias.disabled_reason, null);
  assert.equal(on.body.alias.masked_description, null);
  assert.equal(on.body.alias.display_name, "Anna");
  assert.deepEqual(on.body.alias.forward_to, ["carl@real.example"]);
  assert.equal((await api.ask("PUT", path, { forward_to: [] })).status, 400);
  assert.equal((await api.ask("PUT", path, { local_part: "new" })).status, 400);
  const { activity } = (await api.ask("GET", `${path}/activity`)).body;
  assert.deepEqual(
    activity.map((entry: { type: string; reason: string }) => `${entry.type} ${entry.reason}`),
    ["config changed: active, description, forward_to", "config changed: active", "config created"],
  );
});

test("the list is filtered and searched", async () => {
  const alias = await create({ display_name: "Zacharias_%", forward_to: ["zach@real.example"], active: false });
  const ids = async (query: string) => {
    const { status, body } = await api.ask("GET", `/v1/masked/aliases?${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body.total, body.aliases.length);
    return body.aliases.map(({ id }: { id: string }) => id);
  };
  assert.deepEqual(await ids("q=zacharias_%25"), [alias.id]);
  assert.deepEqual(await ids(`q=${alias.address}@masked`), [alias.id]);
  await api.ask("PUT", `/v1/masked/aliases/${alias.id}`, { description: "Ärzte" });
  assert.deepEqual(await ids(`q=${encodeURIComponent("ÄRZTE")}`), [alias.id]);
  assert.deepEqual(await ids("forward_to=Zach@real.example"), [alias.id]);
  assert.deepEqual(await ids("forward_to=unknown@real.example"), []);
  const email = encodeURIComponent("zach@höme.example");
  await api.ask("PUT", `/v1/masked/aliases/${alias.id}`, { forward_to: ["zach@höme.example"] });
  await api.ask("POST", `/v1/masked/aliases/${alias.id}/contacts`, { email: "zach@höme.example" });
  assert.deepEqual(await ids(`forward_to=${email}`), [alias.id], "as it was given");
  for (const list of ["destinations", `aliases/${alias.id}/contacts`]) {
    assert.equal((await api.ask("GET", `/v1/masked/${list}?email=${email}`)).body.total, 1, list);
  }
  assert.ok((await ids("active=false")).includes(alias.id));
  assert.ok(!(await ids("active=true")).includes(alias.id));
  assert.deepEqual(await ids(`domain_id=${NOBODY}`), []);
  const page = await api.ask("GET", "/v1/masked/aliases?limit=1&offset=1");
  assert.equal(page.body.aliases.length, 1);
  assert.ok(page.body.total > 1);
});

test("what is not there or not one's own is 404", async () => {
  const { id } = await create();
  const other = await api.organization();
  for (const key of [other.live_key, other.test_key, api.test_key]) {
    for (const [method, path] of [
      ["GET", ""],
      ["DELETE", ""],
      ["GET", "/activity"],
      ["GET", "/contacts"],
    ] as const) {
      const answer = await api.ask(method, `/v1/masked/aliases/${id}${path}`, undefined, { key });
      assert.equal(answer.status, 404, `${method} ${path}`);
    }
    const changed = await api.ask("PUT", `/v1/masked/aliases/${id}`, { active: false }, { key });
    assert.equal(changed.status, 404);
  }
  for (const name of [NOBODY, "no-uuid"]) {
    assert.equal((await api.ask("GET", `/v1/masked/aliases/${name}`)).status, 404);
    assert.equal((await api.ask("GET", `/v1/masked/destinations/${name}`)).status, 404);
    assert.equal((await api.ask("POST", `/v1/masked/destinations/${name}/resend`)).status, 404);
    assert.equal((await api.ask("DELETE", `/v1/masked/destinations/${name}`)).status, 404);
    assert.equal((await api.ask("PATCH", `/v1/masked/aliases/${id}/contacts/${name}`, {})).status, 404);
    assert.equal((await api.ask("DELETE", `/v1/masked/aliases/${id}/contacts/${name}`)).status, 404);
  }
});

test("a destination is asked by mail, and agrees by the button behind the link, not by opening it", async () => {
  const { status, body } = await api.ask("POST", "/v1/masked/destinations", { email: "Consent@Real.Example" });
  assert.equal(status, 201, JSON.stringify(body));
  const { id, created_at, updated_at, confirmation_sent_at, ...rest } = body.destination;
  assert.ok(created_at && updated_at && confirmation_sent_at);
  assert.deepEqual(rest, {
    email: "Consent@real.example",
    environment: "live",
    status: "pending",
    suspended_reason: null,
    aliases: 0,
    confirmed_at: null,
    pgp_key: null,
  });
  assert.equal((await api.ask("POST", "/v1/masked/destinations", { email: "consent@real.example" })).status, 200);
  const mails = await mailsTo("Consent@real.example");
  assert.equal(mails.length, 1);
  assert.equal(mails[0]?.queued, true);
  const text = (mails[0]?.mime.toString() ?? "").replace(/=\r\n/g, "");
  assert.match(text, new RegExp(`^From: Masked addresses <no-reply@${DOMAIN}>\r$`, "m"));
  const path = /https:\/\/api\.postern\.test(\/masked\/confirm\/\S+)/.exec(text)?.[1] ?? "";
  const seen = await api.ask("GET", path, undefined, { key: null });
  assert.equal(seen.status, 200);
  assert.ok(!seen.body.includes("real.example"));
  const state = async () => (await api.ask("GET", `/v1/masked/destinations/${id}`)).body.destination.status;
  assert.equal(await state(), "pending");
  const form = { "content-type": "application/x-www-form-urlencoded" };
  assert.equal((await api.ask("POST", path, "", { key: null, headers: form })).status, 200);
  assert.equal(await state(), "verified");
  assert.equal((await api.ask("POST", `/v1/masked/destinations/${id}/resend`)).status, 409);
});

test("a link that is forged, altered or too old opens nothing", async () => {
  const { body } = await api.ask("POST", "/v1/masked/destinations", { email: "links@real.example" });
  const row = { org_id: api.org_id, id: body.destination.id };
  const good = confirmationToken(api.world, row);
  const clock = { ...api.world.clock, now: () => api.world.clock.now() - 8 * 86_400_000 };
  const flipped = good.slice(0, 30) + (good[30] === "A" ? "B" : "A") + good.slice(31);
  for (const token of [flipped, good.slice(1), "x", confirmationToken({ ...api.world, clock }, row)]) {
    assert.equal((await api.ask("GET", `/masked/confirm/${token}`, undefined, { key: null })).status, 404);
    assert.equal((await api.ask("POST", `/masked/confirm/${token}`, undefined, { key: null })).status, 404);
  }
  assert.equal((await api.ask("POST", `/masked/confirm/${good}`, undefined, { key: null })).status, 200);
});

test("the confirmation mail goes out again once a minute, ten times", async () => {
  const { body } = await api.ask("POST", "/v1/masked/destinations", { email: "again@real.example" });
  const path = `/v1/masked/destinations/${body.destination.id}/resend`;
  const soon = await api.ask("POST", path);
  assert.equal(soon.status, 429);
  assert.equal(soon.body.error, "rate_limit_exceeded");
  const age = "update masked_destination set confirmation_sent_at = confirmation_sent_at - interval '2 minutes'";
  await api.world.db.execute(`${age} where id = $1`, [body.destination.id]);
  assert.equal((await api.ask("POST", path)).status, 200);
  assert.equal((await mailsTo("again@real.example")).length, 2);
  await api.world.db.execute(`${age}, confirmations_sent = 10 where id = $1`, [body.destination.id]);
  assert.equal((await api.ask("POST", path)).status, 409);
});

test("no address of the service itself is asked to confirm", async () => {
  const { bounce_host, report_domain } = api.config;
  for (const domain of [DOMAIN, bounce_host, report_domain]) {
    const { status, body } = await api.ask("POST", "/v1/masked/destinations", { email: `any@${domain}` });
    assert.deepEqual([status, body.field], [400, "email"], domain);
    await refused({ forward_to: [`any@${domain}`] }, 400, "forward_to[0]");
  }
});

test("an owner's switch holds, also on an alias that bounces had switched off before", async () => {
  const alias = await create({ forward_to: ["switch@real.example"] });
  const bounce = "update masked_alias set active = false, disabled_reason = 'destination_bouncing' where id = $1";
  await api.world.db.execute(bounce, [alias.id]);
  const path = `/v1/masked/aliases/${alias.id}`;
  const renamed = (await api.ask("PUT", path, { display_name: "Anna" })).body.alias;
  assert.deepEqual([renamed.active, renamed.disabled_reason], [false, "destination_bouncing"]);
  assert.equal((await api.ask("PUT", path, { active: false })).body.alias.disabled_reason, "owner");
  const [destination] = (await api.ask("GET", "/v1/masked/destinations?email=switch@real.example")).body.destinations;
  const token = confirmationToken(api.world, { org_id: api.org_id, id: destination.id });
  assert.equal((await api.ask("POST", `/masked/confirm/${token}`, undefined, { key: null })).status, 200);
  assert.equal((await api.ask("GET", path)).body.alias.active, false);
});

test("an alias that bounces had switched off is on again with a mailbox that is confirmed already", async () => {
  const alias = await create({ forward_to: ["full@real.example"] });
  const path = `/v1/masked/aliases/${alias.id}`;
  const off = (reason: string) =>
    api.world.db.execute("update masked_alias set active = false, disabled_reason = $2 where id = $1", [
      alias.id,
      reason,
    ]);
  await create({ forward_to: ["empty@real.example"] });
  const [known] = (await api.ask("GET", "/v1/masked/destinations?email=empty@real.example")).body.destinations;
  const token = confirmationToken(api.world, { org_id: api.org_id, id: known.id });
  assert.equal((await api.ask("POST", `/masked/confirm/${token}`, undefined, { key: null })).status, 200);
  const state = async (changes: object) => {
    const { status, body } = await api.ask("PUT", path, changes);
    assert.equal(status, 200, JSON.stringify(body));
    return [body.alias.active, body.alias.disabled_reason];
  };
  await off("destination_bouncing");
  const bouncing = [false, "destination_bouncing"];
  assert.deepEqual(await state({ forward_to: ["full@real.example", "new@real.example"] }), bouncing, "none confirmed");
  assert.deepEqual(await state({ forward_to: ["empty@real.example"], active: false }), [false, "owner"]);
  assert.deepEqual(await state({ forward_to: ["empty@real.example"] }), [false, "owner"], "the owner's switch holds");
  await off("destination_bouncing");
  assert.deepEqual(await state({ forward_to: ["new@real.example", "empty@real.example"] }), [true, null]);
});

test("the only destination of an alias stays", async () => {
  const alias = await create({ forward_to: ["solo@real.example"] });
  const { body } = await api.ask("GET", "/v1/masked/destinations?email=solo@real.example");
  const [destination] = body.destinations;
  assert.equal(destination.aliases, 1);
  assert.equal((await api.ask("DELETE", `/v1/masked/destinations/${destination.id}`)).status, 409);
  await api.ask("PUT", `/v1/masked/aliases/${alias.id}`, { forward_to: ["solo@real.example", "duo@real.example"] });
  const { status } = await api.ask("DELETE", `/v1/masked/destinations/${destination.id}`);
  assert.equal(status, 200);
  const { alias: after } = (await api.ask("GET", `/v1/masked/aliases/${alias.id}`)).body;
  assert.deepEqual(after.forward_to, ["duo@real.example"]);
  assert.equal((await api.ask("GET", "/v1/masked/destinations?status=suspended")).body.total, 0);
});

test("a contact has a reverse address that says nothing, once for each alias", async () => {
  const { id } = await create();
  const path = `/v1/masked/aliases/${id}/contacts`;
  const made = await api.ask("POST", path, { email: "Shop@Example.com", name: "The Shop" });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { id: contactId, reply_address, created_at, updated_at, ...rest } = made.body.contact;
  assert.match(reply_address, new RegExp(`^r\\.[a-z2-7]{26}@${DOMAIN}$`));
  assert.ok(created_at && updated_at);
  assert.deepEqual(rest, {
    alias_id: id,
    email: "Shop@example.com",
    name: "The Shop",
    blocked: false,
    source: "api",
    received: 0,
    sent: 0,
    last_seen_at: null,
  });
  const again = await api.ask("POST", path, { email: "shop@example.com" });
  assert.equal(again.status, 200);
  assert.equal(again.body.contact.reply_address, reply_address);
  const elsewhere = await api.ask("POST", `/v1/masked/aliases/${(await create()).id}/contacts`, {
    email: "shop@example.com",
  });
  assert.notEqual(elsewhere.body.contact.reply_address, reply_address);
  assert.equal((await api.ask("POST", path, { email: "nobody" })).status, 400);
  const { alias: own } = (await api.ask("GET", `/v1/masked/aliases/${id}`)).body;
  const itself = await api.ask("POST", path, { email: `${own.address.toUpperCase()}@${own.domain}` });
  assert.deepEqual([itself.status, itself.body.field], [400, "email"], "it would write to itself");
  const blocked = await api.ask("PATCH", `${path}/${contactId}`, { blocked: true });
  assert.equal(blocked.body.contact.blocked, true);
  assert.equal(blocked.body.contact.name, "The Shop");
  assert.equal((await api.ask("GET", `${path}?blocked=true&email=shop@example.com`)).body.total, 1);
  assert.equal((await api.ask("GET", `${path}?blocked=false`)).body.total, 0);
  assert.equal((await api.ask("DELETE", `${path}/${contactId}`)).status, 200);
  assert.equal((await api.ask("GET", path)).body.total, 0);
});

test("people's addresses are nowhere in the tables of masked addresses", async () => {
  const { id } = await create({ forward_to: ["private@secret.example"] });
  await api.ask("POST", `/v1/masked/aliases/${id}/contacts`, { email: "shop@hidden.example", name: "Hidden Shop" });
  const tables = ["masked_alias", "masked_destination", "masked_alias_destination", "masked_contact", "masked_address"];
  for (const table of [...tables, "masked_activity", "masked_message_id"]) {
    const rows = await api.world.db.query<{ row: string }>(`select t::text as row from ${table} t`);
    for (const { row } of rows) {
      const bytes = row.replace(/\\\\x([0-9a-f]+)/g, (_, hex) => Buffer.from(hex, "hex").toString("latin1"));
      assert.doesNotMatch(bytes, /private@secret|shop@hidden|Hidden Shop/i, table);
    }
  }
});

test("test aliases are a world of their own: no mail, destinations confirmed", async () => {
  const alias = await create({ forward_to: ["tester@real.example"] }, api.test_key);
  assert.equal(alias.environment, "test");
  const { body } = await api.ask("GET", "/v1/masked/destinations", undefined, { key: api.test_key });
  assert.equal(body.destinations[0].status, "verified");
  assert.deepEqual(await mailsTo("tester@real.example"), []);
  const listed = await api.ask("GET", "/v1/masked/aliases?forward_to=tester@real.example");
  assert.equal(listed.body.total, 0);
});

test("the service's masked domain shows what its operator publishes", async () => {
  const { status, body } = await api.ask("GET", "/v1/masked/domain");
  assert.equal(status, 200);
  assert.equal(body.domain, DOMAIN);
  assert.deepEqual(
    body.records.map(({ purpose, name }: { purpose: string; name: string }) => `${purpose} ${name}`),
    [`mx ${DOMAIN}`, `dkim postern1._domainkey.${DOMAIN}`, `spf ${DOMAIN}`, `dmarc _dmarc.${DOMAIN}`],
  );
  assert.match(body.records[1].value, /^v=DKIM1; k=rsa; p=/);
  const again = await api.ask("GET", "/v1/masked/domain");
  assert.deepEqual(again.body, body);
});

test("addresses are compared without regard to case", () => {
  assert.deepEqual(addressDigest(api.world, "Shop@Masked.example"), addressDigest(api.world, "shop@masked.example"));
});

test("who never confirmed in 90 days is forgotten, unless an alias waits for it or it was asked again", async () => {
  const { live_key: key } = await api.organization();
  const add = async (email: string) =>
    (await api.ask("POST", "/v1/masked/destinations", { email }, { key })).body.destination.id as string;
  const [unused, asked, confirmed] = [
    await add("u@old.example"),
    await add("a@old.example"),
    await add("c@old.example"),
  ];
  await create({ forward_to: ["w@old.example"] }, key);
  const aged = (days: number, ids: string[]) =>
    api.world.db.execute(
      `update masked_destination set created_at = created_at - $2 * interval '1 day',
              confirmation_sent_at = confirmation_sent_at - $2 * interval '1 day' where id = any($1)`,
      [ids, days],
    );
  const { body } = await api.ask("GET", "/v1/masked/destinations?email=w@old.example", undefined, { key });
  await aged(89, [unused, asked, confirmed, body.destinations[0].id]);
  await api.world.db.execute("update masked_destination set status = 'verified', confirmed_at = now() where id = $1", [
    confirmed,
  ]);
  assert.equal(await forgetUnconfirmed(api.world), 0, "not yet");
  assert.equal((await api.ask("POST", `/v1/masked/destinations/${asked}/resend`, undefined, { key })).status, 200);
  await aged(2, [unused, asked, confirmed, body.destinations[0].id]);
  assert.equal(await forgetUnconfirmed(api.world), 1);
  const left = await api.ask("GET", "/v1/masked/destinations", undefined, { key });
  assert.deepEqual(left.body.destinations.map(({ email }: { email: string }) => email).sort(), [
    "a@old.example",
    "c@old.example",
    "w@old.example",
  ]);
  assert.equal((await api.ask("GET", `/v1/masked/destinations/${unused}`, undefined, { key })).status, 404);
});
