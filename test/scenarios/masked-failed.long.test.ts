// Mail of a masked address that fails for good, over real SMTP with a server that refuses it and then takes it: its owner
// downloads it and sends it again, by the API and by the link in the notice. The contact learns nothing of it.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { generateKey } from "openpgp";
import PostalMime from "postal-mime";
import { sealPgpKey } from "../../src/masked/addresses/pgp-keys.ts";
import { forgetFailed } from "../../src/masked/held/failed.ts";
import { takeBounce } from "../../src/masked/settle/bounces.ts";
import type { TraceRow } from "../../src/masked/settle/trace-queries.ts";
import { settlingPorts } from "../../src/ports.ts";
import { C, D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";
import { until } from "../support/until.ts";

let s: MaskedStage;
before(async () => {
  s = await startMaskedStage();
  await s.alias();
});
after(() => s.close());
beforeEach(async () => {
  s.sink.onRcpt(() => null);
  await s.settle();
  await s.api.world.db.execute("delete from masked_held");
  s.sink.messages.length = 0;
});

const FORM = { key: null, headers: { "content-type": "application/x-www-form-urlencoded" } };
const noPorts = { forgetBlobs: async () => {} };
const POLICY = { code: 554, text: "5.7.1 message rejected as unwanted" };

const content = (from: string, to: string, text: string) =>
  `From: ${from}\r\nTo: ${to}\r\nSubject: order 7\r\nMessage-ID: <m${text.length}@x.example>\r\n\r\n${text}\r\n`;
const contactOf = async (aliasId: string): Promise<string> =>
  (await s.api.ask("POST", `/v1/masked/aliases/${aliasId}/contacts`, { email: C })).body.contact.reply_address;
const listed = async (query = "") => (await s.api.ask("GET", `/v1/masked/failed${query}`)).body.failed;
const pathIn = (text: string) => /https:\/\/api\.postern\.test(\/masked\/failed\/[\w-]+)/.exec(text)?.[1] ?? "";

/** A reply that the contact's server refuses; the text of the notice. */
async function failedReply(r: string, text: string): Promise<string> {
  s.sink.onRcpt((address) => (address === C ? POLICY : null));
  assert.equal((await s.send({ from: D, to: r, content: content(D, r, text) })).code, 250);
  await s.settle();
  const [notice] = await s.arrived(D);
  s.sink.messages.length = 0;
  s.sink.onRcpt(() => null);
  return (await PostalMime.parse(notice?.bytes ?? "")).text ?? "";
}

/** A forward that the mailbox's server refuses at first; the notice comes through. */
async function failedForward(full: string, text: string, refusal = POLICY): Promise<void> {
  let refused = 0;
  s.sink.onRcpt((address) => {
    refused += address === D ? 1 : 0;
    return address === D && refused === 1 ? refusal : null;
  });
  assert.equal((await s.send({ from: C, to: full, content: content(C, full, text) })).code, 250);
  await s.settle();
  s.sink.onRcpt(() => null);
}

test("a reply that its contact's server refuses is downloaded and sent again by the link in the notice, once", async () => {
  const a = await s.alias();
  const text = await failedReply(await contactOf(a.id), "the answer");
  assert.match(text, /refused it by its own rules/);
  const path = pathIn(text);
  const rows = await s.api.world.db.query<{ sealed: Buffer; message_id: string }>("select * from masked_held");
  assert.ok(rows.length === 1 && !rows[0]?.sealed.includes("the answer"), "kept sealed");

  const seen = await s.api.ask("GET", path, undefined, { key: null });
  assert.equal(seen.status, 200);
  assert.doesNotMatch(String(seen.body), /contact\.example|home\.example|order 7/);
  assert.equal((await s.api.ask("POST", path, "", FORM)).status, 400);
  const download = await s.api.ask("POST", path, "act=download", FORM);
  assert.equal(download.headers["content-type"], "message/rfc822");
  assert.match(String(download.headers["content-disposition"]), /^attachment/);
  const mail = await PostalMime.parse(download.body);
  assert.deepEqual([mail.from?.address, mail.to?.[0]?.address], [a.full, C]);
  await s.settle();
  assert.deepEqual(s.sink.messages, [], "nothing was sent by looking");

  const both = await Promise.all([1, 2].map(() => s.api.ask("POST", path, "act=send", FORM)));
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 404], "once, also for two clicks at a time");
  const [sent] = await s.arrived(C);
  const again = await PostalMime.parse(sent?.bytes ?? "");
  assert.deepEqual([again.from?.address, again.subject, again.text?.trim()], [a.full, "order 7", "the answer"]);
  assert.equal(again.messageId, mail.messageId, "the same mail");
  assert.match(sent?.bytes.toString("latin1") ?? "", /^DKIM-Signature: .*d=masked\.postern\.test/ms);
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "reply sent sent_again");
  assert.equal((await s.api.ask("POST", path, "act=download", FORM)).status, 404);
  assert.equal((await s.api.world.db.query("select 1 from masked_held")).length, 0, "nothing is kept of it");
  assert.deepEqual(
    s.sink.messages.map(({ to }) => to[0]),
    [C],
    "nobody else was informed of anything",
  );
});

test("a forward that its mailbox's server refuses is listed, downloaded and sent again by the API", async () => {
  const a = await s.alias();
  await failedForward(a.full, "your parcel");
  const [notice] = await s.arrived(D);
  const text = (await PostalMime.parse(notice?.bytes ?? "")).text ?? "";
  assert.match(text.replace(/\s+/g, " "), /from shop\.keeper at contact\.example to .* could not be delivered/);
  assert.equal(s.sink.messages.length, 1, "the contact learns nothing");
  s.sink.messages.length = 0;

  const [one, ...others] = await listed(`?alias_id=${a.id}&kind=forward`);
  assert.deepEqual(others, []);
  assert.deepEqual([one.alias, one.kind, one.contact, one.destination], [a.full, "forward", C, D]);
  assert.match(one.reason, /^(?:hard|soft) 5\.7\.1/);
  assert.deepEqual(await listed("?kind=reply"), []);
  const stored = JSON.stringify(await s.api.world.db.query("select message_id, reason from masked_held"));
  assert.doesNotMatch(stored, /x\.example|contact\.example/, "what names the contact's server is sealed, too");

  const raw = await s.api.ask("GET", `/v1/masked/failed/${one.id}/raw`);
  assert.match(String(raw.body), /your parcel/);
  assert.deepEqual((await s.api.ask("POST", `/v1/masked/failed/${one.id}/send`)).body, { sent: true, id: one.id });
  const [sent] = await s.arrived(D);
  const mail = await PostalMime.parse(sent?.bytes ?? "");
  assert.match(mail.from?.address ?? "", /^r\./);
  assert.deepEqual([mail.to?.[0]?.address, mail.text?.trim()], [a.full, "your parcel"]);
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "forward sent sent_again");
  const { alias } = (await s.api.ask("GET", `/v1/masked/aliases/${a.id}`)).body;
  assert.deepEqual([alias.emails_received, alias.emails_forwarded], [1, 1], "it was counted when it came");
  for (const [method, path] of [
    ["POST", "/send"],
    ["GET", "/raw"],
    ["DELETE", ""],
  ] as const) {
    assert.equal((await s.api.ask(method, `/v1/masked/failed/${one.id}${path}`)).status, 404, path);
  }
});

test("a forward that failed before its mailbox had a key is sent again encrypted, or not at all", async () => {
  const a = await s.alias();
  await failedForward(a.full, "words in the clear");
  const [notice] = await s.arrived(D);
  const path = pathIn((await PostalMime.parse(notice?.bytes ?? "")).text ?? "");
  s.sink.messages.length = 0;
  const [one] = await listed();
  const { destinations } = (await s.api.ask("GET", `/v1/masked/destinations?email=${D}`)).body;
  const key = `/v1/masked/destinations/${destinations[0].id}/pgp-key`;
  const { publicKey } = await generateKey({ type: "curve25519", userIDs: [{ name: "Anna", email: D }] });
  assert.equal((await s.api.ask("PUT", key, { public_key: publicKey })).status, 200);
  const kept = { armored: "no key", fingerprint: "X", expires_at: null };
  const set = (sealed: Buffer) => s.api.world.db.execute("update masked_destination set pgp_sealed = $1", [sealed]);
  const [row] = await s.api.world.db.query<{ pgp_sealed: Buffer }>(
    "select pgp_sealed from masked_destination where pgp_sealed is not null",
  );
  await set(sealPgpKey(s.api.world, s.api.org_id, kept));
  assert.equal((await s.api.ask("POST", `/v1/masked/failed/${one.id}/send`)).status, 409);
  assert.equal((await s.api.ask("POST", path, "act=send", FORM)).status, 403);
  await set(row?.pgp_sealed as Buffer);
  assert.equal((await s.api.ask("POST", `/v1/masked/failed/${one.id}/send`)).status, 200);
  const [sent] = await s.arrived(D);
  assert.match(String(sent?.bytes), /^Content-Type: multipart\/encrypted;/m);
  assert.equal(s.sink.messages.filter(({ bytes }) => /words in the clear|order 7/.test(String(bytes))).length, 0);
  assert.equal((await s.api.ask("DELETE", key)).status, 200);
});

test("a mailbox that the alias got before its mail failed, and after that was searched, is not shown", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  s.sink.onRcpt((address) => (address === C ? POLICY : null));
  const text = "I also read ben.second@home.example";
  assert.equal((await s.send({ from: D, to: r, content: content(D, r, text) })).code, 250);
  const ended = () =>
    s.api.world.db.query("select 1 from message where origin = 'masked' and status in ('bounced', 'failed')");
  await until("its server refused it", async () => (await ended()).length > 0);
  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { forward_to: [D, "ben.second@home.example"] });
  await s.settle();
  s.sink.onRcpt(() => null);
  s.sink.messages.length = 0;
  const [one] = await listed(`?alias_id=${a.id}`);
  const refused = await s.api.ask("POST", `/v1/masked/failed/${one.id}/send`);
  assert.equal(refused.status, 409, JSON.stringify(refused.body));
  assert.match(refused.body.error, /only since it was written/);
  await s.settle();
  assert.deepEqual(s.sink.messages, []);
});

test("of a deleted alias nothing is downloaded, deleted or sent; it is there again with its alias", async () => {
  const a = await s.alias();
  const path = pathIn(await failedReply(await contactOf(a.id), "to be forgotten"));
  const [one] = await listed(`?alias_id=${a.id}`);
  assert.equal((await s.api.ask("DELETE", `/v1/masked/aliases/${a.id}`)).status, 200);
  for (const [method, end] of [
    ["GET", "/raw"],
    ["POST", "/send"],
    ["DELETE", ""],
  ] as const)
    assert.equal((await s.api.ask(method, `/v1/masked/failed/${one.id}${end}`)).status, 404, end);
  assert.equal((await s.api.ask("GET", path, undefined, { key: null })).status, 404);
  assert.equal((await s.api.ask("POST", path, "act=download", FORM)).status, 404);
  await s.api.world.db.execute("update masked_alias set deleted_at = null where id = $1", [a.id]);
  assert.equal((await s.api.ask("GET", `/v1/masked/failed/${one.id}/raw`)).status, 200);
});

test("the limit that a mail which is sent again meets is named, and nothing is counted for it", async () => {
  const a = await s.alias();
  await failedReply(await contactOf(a.id), "the last one");
  const [one] = await listed();
  await s.api.world.db.execute(
    `with days as (
       select org_id, id, date_trunc('day', now(), 'UTC') + n * interval '1 day' as day
         from masked_alias, generate_series(0, 1) n where id = $1)
     insert into masked_window (org_id, alias_id, kind, starts_at, used)
     select org_id, id, 'reply_day', day, 100 from days
         on conflict (org_id, alias_id, kind, starts_at) do update set used = 100`,
    [a.id],
  );
  const used = () =>
    s.api.world.db.query("select kind, starts_at, used from masked_window where alias_id = $1 order by 1, 2", [a.id]);
  const before = await used();
  const { status, body } = await s.api.ask("POST", `/v1/masked/failed/${one.id}/send`);
  assert.deepEqual([status, body.limit_type, body.limit], [429, "daily", 100]);
  assert.deepEqual(await used(), before);
  assert.equal((await listed()).length, 1, "and it is still kept");
});

test("a forward that is over the limit of its alias may be sent again within the minute", async () => {
  const a = await s.alias();
  await failedForward(a.full, "too many");
  const [one] = await listed();
  await s.api.world.db.execute(
    `with minutes as (
       select org_id, id, date_trunc('minute', now()) + n * interval '1 minute' as minute
         from masked_alias, generate_series(0, 1) n where id = $1)
     insert into masked_window (org_id, alias_id, kind, starts_at, used)
     select org_id, id, 'forward_minute', minute, 30 from minutes
         on conflict (org_id, alias_id, kind, starts_at) do update set used = 30`,
    [a.id],
  );
  const { status, body } = await s.api.ask("POST", `/v1/masked/failed/${one.id}/send`);
  assert.deepEqual([status, body.limit_type, body.limit], [429, "per_minute", 30]);
  assert.ok(body.retry_after_seconds <= 60);
});

test("a mailbox gets a notice of failed forwards five times a day, for all its aliases", async () => {
  // An earlier one of this file may count, too.
  await s.api.world.db.execute("delete from masked_window where kind = 'failed_notice_day'");
  const aliases = [await s.alias(), await s.alias()];
  for (let n = 0; n < 6; n += 1) {
    await failedForward((aliases[n % 2] as { full: string }).full, `number ${n}`);
    await s.api.world.db.execute("update masked_destination set status = 'verified', hard_bounces = '{}'");
  }
  assert.equal((await listed()).length, 6);
  assert.equal(s.sink.messages.filter(({ to }) => to[0] === D).length, 5);
});

test("what fails again is kept again; a mailbox that is not there is not written to", async () => {
  const a = await s.alias();
  await failedForward(a.full, "once more");
  s.sink.onRcpt((address) => (address === D ? { code: 550, text: "5.1.1 no such user" } : null));
  s.sink.messages.length = 0;
  const [first] = await listed();
  assert.equal((await s.api.ask("POST", `/v1/masked/failed/${first.id}/send`)).status, 200);
  await s.settle();
  const [second, ...others] = await listed();
  assert.notEqual(second.id, first.id);
  assert.deepEqual([others.length, s.sink.messages.length], [0, 0]);
  assert.equal((await s.api.ask("DELETE", `/v1/masked/failed/${second.id}`)).body.deleted, true);
  assert.deepEqual(await listed(), []);
});

test("it is sent again only while what allowed it holds", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  const path = pathIn(await failedReply(r, "I also read ben.second@home.example"));
  const [one] = await listed();
  const send = () => s.api.ask("POST", `/v1/masked/failed/${one.id}/send`);
  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { reply_enabled: false });
  assert.deepEqual([(await send()).status, (await s.api.ask("POST", path, "act=send", FORM)).status], [409, 403]);
  // A mailbox that the alias has only since then would be shown.
  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, {
    reply_enabled: true,
    forward_to: [D, "ben.second@home.example"],
  });
  assert.match((await send()).body.error, /only since it was written/);
  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { forward_to: [D] });
  const other = await s.api.ask("POST", `/v1/masked/failed/${one.id}/send`, undefined, { key: s.api.test_key });
  assert.equal(other.status, 404, "a test key sees no live mail");
  const { contacts } = (await s.api.ask("GET", `/v1/masked/aliases/${a.id}/contacts`)).body;
  await s.api.ask("DELETE", `/v1/masked/aliases/${a.id}/contacts/${contacts[0].id}`);
  assert.equal((await send()).status, 404);
  assert.equal(await forgetFailed(s.api.world, noPorts, 10), 1, "what is kept of a removed contact is removed");
  await s.settle();
  const left = s.sink.messages.filter(({ to }) => to[0] !== "ben.second@home.example");
  assert.deepEqual(left, [], "only the new mailbox was asked for its consent");
});

test("a large one is kept in a blob, and after seven days nothing is left and the link is dead", async () => {
  const a = await s.alias();
  const path = pathIn(await failedReply(await contactOf(a.id), "x".repeat(70).concat("\r\n").repeat(6_000)));
  const [row] = await s.api.world.db.query<{ blob_key: string | null }>("select blob_key from masked_held");
  assert.ok(row?.blob_key);
  assert.match(String((await s.api.ask("POST", path, "act=download", FORM)).body), /xxxxx/);
  const later = s.api.world.clock.now() + 7 * 86_400_000 + 1;
  const late = { ...s.api.world, clock: { ...s.api.world.clock, now: () => later } };
  const released: string[] = [];
  const count = await forgetFailed(late, { forgetBlobs: async (_org, id) => void released.push(id) }, 10);
  assert.deepEqual([count, released.length], [1, 1]);
  assert.equal((await s.api.ask("GET", path, undefined, { key: null })).status, 404);
});

test("of one alias ten are kept at a time, and what fails beyond them is reported without a link", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  for (let n = 0; n < 10; n += 1) assert.notEqual(pathIn(await failedReply(r, `number ${n}`)), "", `${n}`);
  const text = await failedReply(r, "one more");
  assert.match(text, /could not be delivered/);
  assert.equal(pathIn(text), "");
  assert.equal((await listed()).length, 10);
});

test("of two that fail at a time one takes the last place, and a failure that is not recorded counts nothing", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  for (let n = 0; n < 9; n += 1) await failedReply(r, `number ${n}`);
  const { db } = s.api.world;
  s.sink.onRcpt((address) => (address === C ? POLICY : null));
  for (const n of [10, 11]) {
    assert.equal((await s.send({ from: D, to: r, content: content(D, r, "x".repeat(n)) })).code, 250);
  }
  const ended = async () => {
    const traces = await db.query<TraceRow>(
      `select t.* from masked_trace t join message m on m.org_id = t.org_id and m.id = t.id
        where t.kind = 'reply' and t.due_at is not null and m.status in ('bounced', 'failed')`,
    );
    return traces.length === 2 ? traces : null;
  };
  const [one, two] = await until("both were refused", ended);
  assert.ok(one && two);
  const ports = settlingPorts(s.api.world, s.api.engine);
  const fault = { hard: true, code: "5.7.1", class: "policy" };
  const used = () =>
    db.query("select used from masked_window where alias_id = $1 and kind = 'failed_kept_day'", [a.id]);
  const before = await used();
  const asOrg: typeof db.asOrg = (orgId, work) =>
    db.asOrg(orgId, async (tx) => {
      await work(tx);
      throw new Error("the connection was lost");
    });
  await assert.rejects(takeBounce({ ...s.api.world, db: { ...db, asOrg } }, ports, one, fault), /was lost/);
  assert.deepEqual(await used(), before);
  await Promise.all([one, two].map((trace) => takeBounce(s.api.world, ports, trace, fault)));
  assert.equal((await listed()).length, 10);
  const notices = await s.arrived(D, 2);
  assert.deepEqual(
    notices.map(({ bytes }) => /masked\/failed/.test(String(bytes))).sort(),
    [false, true],
    "both are reported, one with a link",
  );
  s.sink.onRcpt(() => null);
});
