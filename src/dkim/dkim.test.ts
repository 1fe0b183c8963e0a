// /v1/domains/{id}/dkim as its users see it, rotation with a moved clock, and the keys that the signer gets.
import assert from "node:assert/strict";
import { createPublicKey, sign, verify as verifySignature } from "node:crypto";
import { after, before, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { addVerifiedDomain, publish } from "../../test/support/verified-domain.ts";
import { runDueChecks } from "../domains/background.ts";
import { findSender } from "../domains/domains.ts";
import { createClock, fixedClock } from "../platform/clock.ts";
import type { Db } from "../platform/database/db.ts";
import { SealBroken } from "../platform/storage/seal.ts";
import { domainPorts } from "../ports.ts";
import { signingKeys } from "./dkim.ts";

let dns: DnsServer;
let api: TestApi;
const clock = fixedClock(Date.parse("2026-11-05T10:00:00.000Z"));
const NOW = "2026-11-05T10:00:00.000Z";

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, (world) => ({ ...world, clock }));
});
after(async () => {
  await api.close();
  await dns.stop();
});

const DAY = 86_400_000;
const add = async (domain: string, type = "outbound") => (await api.ask("POST", "/v1/domains", { domain, type })).body;
const dkim = (domain: string, method = "GET", path = "", body?: unknown) =>
  api.ask(method, `/v1/domains/${domain}/dkim${path}`, body);
const statuses = async (domain: string): Promise<Record<string, string>> => {
  const { keys } = (await dkim(domain)).body;
  return Object.fromEntries(keys.map((key: { selector: string; status: string }) => [key.selector, key.status]));
};
const signers = async (domain: string, id: string) =>
  (await signingKeys(api.world)(api.org_id, id)).map((key) => {
    assert.equal(key.domain, domain);
    return `${key.algorithm} ${key.selector}`;
  });

test("a domain that sends has a first key, pending, with its record", async () => {
  const domain = "first.example.com";
  await add(domain);
  const { status, body } = await dkim(domain);
  assert.equal(status, 200);
  const { public_key, ...key } = body.keys[0];
  assert.deepEqual(key, {
    selector: "postern1",
    domain,
    algorithm: "rsa",
    status: "pending",
    active: false,
    verified: false,
    created_at: NOW,
    activated_at: null,
    retires_at: null,
    deactivated_at: null,
  });
  const value = `v=DKIM1; k=rsa; p=${public_key}`;
  const record = { type: "TXT", name: `postern1._domainkey.${domain}`, value, selector: "postern1" };
  assert.deepEqual(body, { domain, keys: [{ ...key, public_key }], dns_records: [record] });
  const der = createPublicKey({ key: Buffer.from(public_key, "base64"), format: "der", type: "spki" });
  assert.equal(der.asymmetricKeyDetails?.modulusLength, 2048);
});

test("a created key has every field, its record, and a sentence on what to do", async () => {
  const domain = "create.example.com";
  await add(domain);
  const { status, body } = await dkim(domain, "POST", "", { selector: "Mail2026", algorithm: "ed25519" });
  assert.equal(status, 201);
  const { public_key, ...key } = body.key;
  assert.equal(Buffer.from(public_key, "base64").length, 32);
  assert.deepEqual(
    [key.selector, key.domain, key.algorithm, key.status, key.active, key.verified, key.created_at],
    ["mail2026", domain, "ed25519", "pending", false, false, NOW],
  );
  const value = `v=DKIM1; k=ed25519; p=${public_key}`;
  assert.deepEqual(body.dns_record, { type: "TXT", name: `mail2026._domainkey.${domain}`, value });
  assert.equal(body.message, `Publish the TXT record mail2026._domainkey.${domain}; it signs as soon as DNS shows it.`);
});

test("selectors are counted on: postern2, postern3; a body may be left out; an inbound domain begins at postern1", async () => {
  await add("count.example.com");
  assert.equal((await dkim("count.example.com", "POST")).body.key.selector, "postern1");
  assert.equal((await dkim("count.example.com", "POST")).body.key.selector, "postern2");
  const both = await Promise.all([1, 2].map(() => dkim("count.example.com", "POST", "", {})));
  assert.deepEqual(both.map((answer) => answer.body.key.selector).sort(), ["postern3", "postern4"]);
  await add("count.in.example.com", "inbound");
  const { body } = await dkim("count.in.example.com", "POST", "", {});
  assert.deepEqual([body.key.selector, body.key.algorithm], ["postern1", "rsa"]);
});

test("a selector that was ever used is 409, a deactivated one too", async () => {
  await add("used.example.com");
  await dkim("used.example.com", "POST");
  const again = await dkim("used.example.com", "POST", "", { selector: "POSTERN1" });
  assert.deepEqual([again.status, again.body.code, again.body.field], [409, "already_exists", "selector"]);
  await dkim("used.example.com", "DELETE", "/postern1");
  assert.equal((await dkim("used.example.com", "POST", "", { selector: "postern1" })).status, 409);
  assert.equal((await dkim("used.example.com", "POST", "", {})).body.key.selector, "postern2");
});

const bad: [object, string][] = [
  [{ selector: "" }, "selector"],
  [{ selector: "-a" }, "selector"],
  [{ selector: "a b" }, "selector"],
  [{ selector: "a_b" }, "selector"],
  [{ selector: "a..b" }, "selector"],
  [{ selector: "x".repeat(64) }, "selector"],
  [{ selector: 1 }, "selector"],
  [{ algorithm: "dsa" }, "algorithm"],
  [{ bits: 4096 }, "bits"],
];
for (const [body, field] of bad) {
  test(`creating a key with ${JSON.stringify(body).slice(0, 40)} is 400 and names ${field}`, async () => {
    const answer = await dkim("first.example.com", "POST", "", body);
    assert.deepEqual([answer.status, answer.body.code, answer.body.field], [400, "validation_error", field]);
  });
}

test("a selector that makes the record's name too long for the DNS is 400", async () => {
  const label = "a".repeat(50);
  const domain = `${label}.${label}.${label}.${label}.example.com`;
  assert.equal((await add(domain)).domain, domain);
  const answer = await dkim(domain, "POST", "", { selector: "s".repeat(40) });
  assert.deepEqual([answer.status, answer.body.field], [400, "selector"]);
});

test("a domain has at most 10 keys in use", async () => {
  await add("many.example.com");
  await dkim("many.example.com", "POST");
  for (let index = 2; index <= 10; index += 1) {
    assert.equal((await dkim("many.example.com", "POST", "", { algorithm: "ed25519" })).status, 201);
  }
  const over = await dkim("many.example.com", "POST", "", { algorithm: "ed25519" });
  assert.deepEqual([over.status, over.body.code], [409, "invalid_state"]);
  await dkim("many.example.com", "DELETE", "/postern4");
  assert.equal((await dkim("many.example.com", "POST", "", { algorithm: "ed25519" })).body.key.selector, "postern11");
});

test("verify answers 200 for a record that is not there, wrong, or could not be asked for, and says which", async () => {
  const domain = "verify.example.com";
  await add(domain);
  const name = `postern1._domainkey.${domain}`;
  const one = async () => {
    const { status, body } = await dkim(domain, "POST", "/verify");
    assert.deepEqual([status, body.domain, body.keys.length], [200, domain, 1]);
    return body.keys[0];
  };
  const missing = await one();
  assert.deepEqual(
    [missing.selector, missing.verified, missing.status, missing.found],
    ["postern1", false, "missing", []],
  );
  assert.match(missing.hint, /no TXT record/);
  dns.set(name, "TXT", ["v=DKIM1; k=rsa; p="]);
  const revoked = await one();
  assert.deepEqual([revoked.verified, revoked.status, revoked.found], [false, "mismatch", ["v=DKIM1; k=rsa; p="]]);
  assert.match(revoked.hint, /revoked/);
  dns.fail(name, "servfail");
  assert.deepEqual([(await one()).status, (await statuses(domain)).postern1], ["error", "pending"]);
  dns.heal(name);
  publish(dns, [{ purpose: "dkim", priority: null, ...(await dkim(domain)).body.dns_records[0] }]);
  const good = await one();
  assert.deepEqual([good.verified, good.status, good.hint], [true, "ok", null]);
  const { keys } = (await dkim(domain)).body;
  assert.deepEqual([keys[0].status, keys[0].active, keys[0].activated_at], ["active", true, NOW]);
  const record = (await api.ask("GET", `/v1/domains/${domain}`)).body;
  assert.deepEqual([record.dkim_verified, record.status], [true, "pending"], "the other records are not there yet");
});

test("the last record that was missing, seen by the DKIM check, verifies the domain", async () => {
  const domain = "last.example.com";
  const { id } = await add(domain);
  publish(dns, (await api.ask("GET", `/v1/domains/${id}/dns`)).body.records);
  dns.remove(`postern1._domainkey.${domain}`);
  assert.equal((await api.ask("POST", `/v1/domains/${id}/verify`)).body.status, "pending");
  publish(dns, [{ purpose: "dkim", priority: null, ...(await dkim(domain)).body.dns_records[0] }]);
  await dkim(domain, "POST", "/verify");
  assert.equal((await api.ask("GET", `/v1/domains/${id}`)).body.status, "verified");
});

test("rotation: the old key signs until DNS shows the new one, retires for 7 days, then ends", async () => {
  const domain = "rotate.example.com";
  const { id } = await addVerifiedDomain(api, dns, domain);
  assert.deepEqual(await signers(domain, id), ["rsa postern1"]);

  const rotated = await dkim(domain, "POST", "/rotate", { old_selector: "postern1", new_selector: "Fresh" });
  assert.equal(rotated.status, 200);
  assert.deepEqual(
    [rotated.body.key.selector, rotated.body.key.status, rotated.body.key.algorithm],
    ["fresh", "pending", "rsa"],
  );
  assert.match(rotated.body.message, /^Publish the TXT record fresh\._domainkey.*postern1 goes on signing until/);
  assert.deepEqual(await signers(domain, id), ["rsa postern1"]);
  clock.advance(6 * 60_000);
  await dkim(domain, "POST", "/verify");
  assert.deepEqual(await statuses(domain), { fresh: "pending", postern1: "active" });
  assert.equal((await findSender(api.world)(api.org_id, domain))?.ready, true);

  publish(dns, [{ purpose: "dkim", priority: null, ...rotated.body.dns_record }]);
  clock.advance(6 * 60_000);
  await runDueChecks(api.world, domainPorts(api.world));
  assert.deepEqual(await statuses(domain), { fresh: "active", postern1: "retiring" }, "the schedule sees it by itself");
  assert.deepEqual(await signers(domain, id), ["rsa fresh"]);
  const { keys } = (await dkim(domain)).body;
  assert.equal(Date.parse(keys[1].retires_at) - Date.parse(keys[0].activated_at), 7 * DAY);
  const shown = (await api.ask("GET", `/v1/domains/${id}/dns`)).body.records.filter(
    (record: { purpose: string }) => record.purpose === "dkim",
  );
  assert.deepEqual(
    shown.map((record: { required: boolean }) => record.required),
    [false, true],
  );
  assert.match(shown[0].hint, /keep the record until 2026-11-12/);

  clock.advance(7 * DAY - 1);
  await runDueChecks(api.world, domainPorts(api.world));
  assert.deepEqual(await statuses(domain), { fresh: "active", postern1: "retiring" });
  clock.advance(1);
  await runDueChecks(api.world, domainPorts(api.world));
  assert.deepEqual(await statuses(domain), { fresh: "active", postern1: "deactivated" });
  const ended = (await dkim(domain)).body;
  assert.equal(ended.keys[1].deactivated_at, ended.keys[1].retires_at);
  assert.deepEqual(
    ended.dns_records.map((record: { selector: string }) => record.selector),
    ["fresh"],
  );
  const [left] = await api.world.db.query(
    "select private_key from dkim_key where domain = $1 and selector = 'postern1'",
    [domain],
  );
  assert.deepEqual(left, { private_key: null }, "the private half is destroyed");
  assert.equal((await api.ask("POST", `/v1/domains/${id}/verify`)).body.status, "verified");
});

test("what cannot be rotated is refused", async () => {
  const domain = "norotate.example.com";
  await addVerifiedDomain(api, dns, domain);
  const rotate = (body: unknown) => dkim(domain, "POST", "/rotate", body);
  const both = { old_selector: "postern1", new_selector: "next" };
  for (const [body, field] of [
    [{}, "old_selector"],
    [{ old_selector: "postern1" }, "new_selector"],
    [{ ...both, new_selector: "POSTERN1" }, "new_selector"],
    [{ ...both, new_selector: "a b" }, "new_selector"],
    [{ ...both, algorithm: "rsa" }, "algorithm"],
  ] as const) {
    const answer = await rotate(body);
    assert.deepEqual([answer.status, answer.body.field], [400, field]);
  }
  assert.equal((await rotate({ ...both, old_selector: "nothing" })).status, 404);
  await dkim(domain, "POST", "", { selector: "waiting", algorithm: "ed25519" });
  await dkim(domain, "POST", "", { selector: "over" });
  await dkim(domain, "DELETE", "/over");
  const ended = await rotate({ ...both, old_selector: "over" });
  assert.deepEqual([ended.status, ended.body.code], [409, "invalid_state"]);
  const taken = await rotate({ ...both, new_selector: "waiting" });
  assert.deepEqual([taken.status, taken.body.code, taken.body.field], [409, "already_exists", "new_selector"]);
  assert.equal((await rotate(both)).status, 200);
  const twice = await rotate({ ...both, new_selector: "other" });
  assert.deepEqual([twice.status, twice.body.code], [409, "invalid_state"]);
  assert.match(twice.body.error, /next is about to replace postern1/);
  await dkim(domain, "DELETE", "/next");
  assert.equal((await rotate({ ...both, new_selector: "other" })).status, 200, "a given-up successor makes room");
});

test("a pending key can be rotated: it ends when its successor becomes active before it", async () => {
  const domain = "early.example.com";
  await add(domain);
  const made = (await dkim(domain)).body.dns_records[0];
  const rotate = (old_selector: string, new_selector: string) =>
    dkim(domain, "POST", "/rotate", { old_selector, new_selector });
  const second = await rotate("postern1", "second");
  assert.deepEqual([second.status, second.body.key.status], [200, "pending"]);
  assert.match(second.body.message, /^Publish the TXT record second\._domainkey.*postern1 ends then/);
  const third = await rotate("second", "third");
  assert.equal(third.status, 200);
  assert.deepEqual(await statuses(domain), { third: "pending", second: "pending", postern1: "pending" });
  const required = async () =>
    (await api.ask("GET", `/v1/domains/${domain}/dns`)).body.records
      .filter(({ purpose, required }: { purpose: string; required: boolean }) => purpose === "dkim" && required)
      .map(({ name }: { name: string }) => name);
  assert.deepEqual(await required(), [`third._domainkey.${domain}`], "the last successor is what shall sign");

  publish(dns, [{ purpose: "dkim", priority: null, ...third.body.dns_record }]);
  await dkim(domain, "POST", "/verify");
  assert.deepEqual(await statuses(domain), { third: "active", second: "deactivated", postern1: "deactivated" });
  publish(dns, [{ purpose: "dkim", priority: null, ...made }]);
  await dkim(domain, "POST", "/verify");
  assert.equal((await statuses(domain)).postern1, "deactivated", "an ended key is over, whatever DNS shows");
  const sealed = await api.world.db.query("select 1 from dkim_key where domain = $1 and private_key is not null", [
    domain,
  ]);
  assert.equal(sealed.length, 1, "the private halves of the others are destroyed");
});

test("a successor of a pending successor retires the key that signs, also when the one between was given up", async () => {
  for (const given of [false, true]) {
    const domain = `chain-${given}.example.com`;
    const { id } = await addVerifiedDomain(api, dns, domain);
    await dkim(domain, "POST", "/rotate", { old_selector: "postern1", new_selector: "between" });
    const last = await dkim(domain, "POST", "/rotate", { old_selector: "between", new_selector: "last" });
    if (given) await dkim(domain, "DELETE", "/between");
    assert.deepEqual(await signers(domain, id), ["rsa postern1"]);
    publish(dns, [{ purpose: "dkim", priority: null, ...last.body.dns_record }]);
    await dkim(domain, "POST", "/verify");
    assert.deepEqual(await statuses(domain), { last: "active", between: "deactivated", postern1: "retiring" });
    assert.deepEqual(await signers(domain, id), ["rsa last"]);
  }
});

test("a pending key that DNS shows after all signs until its successor is there, then retires", async () => {
  const domain = "afterall.example.com";
  const { id } = await add(domain);
  const made = (await dkim(domain)).body.dns_records[0];
  const next = await dkim(domain, "POST", "/rotate", { old_selector: "postern1", new_selector: "next" });
  publish(dns, [{ purpose: "dkim", priority: null, ...made }]);
  await dkim(domain, "POST", "/verify");
  assert.deepEqual(await signers(domain, id), ["rsa postern1"]);
  publish(dns, [{ purpose: "dkim", priority: null, ...next.body.dns_record }]);
  await dkim(domain, "POST", "/verify");
  assert.deepEqual(await statuses(domain), { next: "active", postern1: "retiring" });
});

test("the only active key ends only by force; then the domain may not send until a key is active again", async () => {
  const domain = "end.example.com";
  const { id } = await addVerifiedDomain(api, dns, domain);
  const refused = await dkim(domain, "DELETE", "/postern1");
  assert.deepEqual([refused.status, refused.body.code], [409, "invalid_state"]);
  assert.match(refused.body.error, /only active key.*\?force=true/);
  assert.equal((await dkim(domain, "DELETE", "/nothing?force=true")).status, 404);

  const ended = await dkim(domain, "DELETE", "/POSTERN1?force=true");
  assert.equal(ended.status, 200);
  const { key, ...rest } = ended.body;
  assert.deepEqual(rest, { deleted: true, id: "postern1" });
  assert.deepEqual(
    [key.status, key.active, key.deactivated_at],
    ["deactivated", false, new Date(clock.now()).toISOString()],
  );
  assert.deepEqual(await signers(domain, id), []);
  const sender = await findSender(api.world)(api.org_id, domain);
  assert.deepEqual([sender?.ready, sender?.not_ready_reason], [false, `the domain ${domain} has no active DKIM key`]);
  clock.advance(60_000);
  const again = await dkim(domain, "DELETE", "/postern1");
  assert.deepEqual(
    [again.status, again.body.key.deactivated_at],
    [200, key.deactivated_at],
    "ending twice is no error",
  );

  publish(dns, [{ purpose: "dkim", priority: null, ...(await dkim(domain, "POST")).body.dns_record }]);
  await dkim(domain, "POST", "/verify");
  assert.equal((await findSender(api.world)(api.org_id, domain))?.ready, true);
});

test("an Ed25519 key signs beside the RSA key, which comes first; of two of a kind the one that DNS shows, then the newest", async () => {
  const domain = "two.example.com";
  const { id } = await addVerifiedDomain(api, dns, domain);
  const activate = async (body: object) => {
    const made = (await dkim(domain, "POST", "", body)).body;
    publish(dns, [{ purpose: "dkim", priority: null, ...made.dns_record }]);
    clock.advance(1_000);
    await dkim(domain, "POST", "/verify");
  };
  await activate({ selector: "ed", algorithm: "ed25519" });
  assert.deepEqual(await signers(domain, id), ["rsa postern1", "ed25519 ed"]);
  await activate({ selector: "newer" });
  assert.deepEqual(await signers(domain, id), ["rsa newer", "ed25519 ed"]);
  dns.remove(`newer._domainkey.${domain}`);
  await dkim(domain, "POST", "/verify");
  assert.deepEqual(await statuses(domain), { newer: "active", ed: "active", postern1: "active" });
  assert.deepEqual(await signers(domain, id), ["rsa postern1", "ed25519 ed"]);
  assert.equal((await api.ask("GET", `/v1/domains/${id}`)).body.dkim_verified, true);
});

test("the signer's key is the private half of the published one, sealed in the database", async () => {
  const { id } = await addVerifiedDomain(api, dns, "sealed.example.com");
  const { public_key } = (await dkim("sealed.example.com")).body.keys[0];
  const [key] = await signingKeys(api.world)(api.org_id, id);
  assert.ok(key);
  const signature = sign("sha256", Buffer.from("x"), key.key);
  const published = createPublicKey({ key: Buffer.from(public_key, "base64"), format: "der", type: "spki" });
  assert.ok(verifySignature("sha256", Buffer.from("x"), published, signature));
  const [row] = await api.world.db.query<{ private_key: Buffer }>(
    "select private_key from dkim_key where domain_id = $1",
    [id],
  );
  assert.ok(row);
  assert.doesNotMatch(row.private_key.toString("latin1"), /PRIVATE KEY/);
  assert.throws(() => api.world.seal.open(row.private_key, "dkim-key:somebody-else"), SealBroken);
});

test("signing keys are kept for a second, asked for many at a time, and never another organization's", async () => {
  const other = await api.organization();
  const rows = [
    await addVerifiedDomain(api, dns, "c1.example.com"),
    await addVerifiedDomain(api, dns, "c2.example.com"),
  ];
  let asked = 0;
  const db: Db = {
    ...api.world.db,
    query: (text, values) => {
      asked += 1;
      return api.world.db.query(text, values);
    },
  };
  const find = signingKeys({ ...api.world, db });
  const ask = () =>
    Promise.all([
      ...rows.map((row) => find(api.org_id, row.id)),
      find(other.org_id, rows[0].id),
      find(api.org_id, rows[0].id),
    ]);
  const first = await ask();
  assert.deepEqual(
    first.map((keys) => keys.map((key) => key.domain)),
    [["c1.example.com"], ["c2.example.com"], [], ["c1.example.com"]],
  );
  assert.equal(asked, 1);
  clock.advance(999);
  await ask();
  assert.equal(asked, 1);
  await dkim("c1.example.com", "DELETE", "/postern1?force=true");
  clock.advance(1);
  const later = await ask();
  assert.equal(asked, 2);
  assert.deepEqual(later[0], []);
  assert.equal(later[1]?.[0]?.key, first[1]?.[0]?.key, "a key that stays is not opened again");
});

test("once the end of a key is answered no process begins to sign with it, nor with those of a domain that was removed", async () => {
  const clocks = { ...api.world, clock: createClock({}) };
  for (const [name, path] of [
    ["ended.example.com", "/dkim/postern1?force=true"],
    ["removed.example.com", "?force=true"],
  ] as const) {
    const { id } = await addVerifiedDomain(api, dns, name);
    const processes = [signingKeys(clocks), signingKeys(clocks)];
    const selectors = () =>
      Promise.all(processes.map(async (find) => (await find(api.org_id, id)).map((key) => key.selector)));
    assert.deepEqual(await selectors(), [["postern1"], ["postern1"]]);
    // Each asks as often as it can, so that what it keeps is as young as can be when the key ends.
    let over = false;
    const busy = (async () => {
      while (!over) await Promise.all([selectors(), setImmediate()]);
    })();
    const twice = await Promise.all([0, 1].map(() => api.ask("DELETE", `/v1/domains/${name}${path}`)));
    const after = await selectors();
    over = true;
    await busy;
    const answers = twice.map(({ status }) => status).toSorted();
    assert.deepEqual(answers, path.startsWith("/dkim") ? [200, 200] : [200, 404]);
    assert.deepEqual(after, [[], []], name);
  }
});

test("a key sealed under another master key fails its own domain and no other", async () => {
  const broken = await addVerifiedDomain(api, dns, "broken.example.com");
  const fine = await addVerifiedDomain(api, dns, "fine.example.com");
  await api.world.db.execute(
    "update dkim_key set private_key = set_byte(private_key, 40, get_byte(private_key, 40) # 1) where domain_id = $1",
    [broken.id],
  );
  const find = signingKeys(api.world);
  const [first, second] = await Promise.allSettled([find(api.org_id, broken.id), find(api.org_id, fine.id)]);
  assert.ok(first.status === "rejected" && first.reason instanceof SealBroken);
  assert.equal(second.status === "fulfilled" && second.value.length, 1);
});
