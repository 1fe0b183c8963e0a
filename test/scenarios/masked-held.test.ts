// Mail to an alias that cannot go on yet is not lost, over real SMTP: what looks like spam waits for its owner's word, what
// nobody has confirmed is deferred, and the activity tells of all of it.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { C, D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";
import { GTUBE, SPAMMY } from "../support/spam-texts.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

let s: MaskedStage;
let domain_id: string;
before(async () => {
  s = await startMaskedStage();
  domain_id = (await addVerifiedDomain(s.api, s.dns, "own.example", { type: "both" })).id;
  await s.api.ask("PUT", "/v1/domains/own.example/spam", { thresholds: { tag: 5, quarantine: 8, reject: null } });
  await s.alias();
});
after(() => s.close());
beforeEach(async () => {
  await s.settle();
  s.sink.messages.length = 0;
});

const mail = (to: string, text: string, more = "") =>
  `From: "Shop Keeper" <${C}>\r\nTo: ${to}\r\nSubject: a prize\r\nMessage-ID: <h1@contact.example>\r\n${more}\r\n${text}\r\n`;
const counts = async (id: string) => {
  const { alias } = (await s.api.ask("GET", `/v1/masked/aliases/${id}`)).body;
  return [alias.emails_received, alias.emails_forwarded, alias.emails_blocked];
};
/** The mail that waits, once it does. */
const held = async (to: string, status = "quarantined") => {
  await s.settle();
  const { body } = await s.api.ask("GET", `/v1/inbound-emails?status=${status}&to=${to}`);
  assert.equal(body.total, 1, JSON.stringify(body));
  return body.emails[0];
};
const rows = async () => {
  const [row] = await s.api.world.db.query<{ kept: number }>(
    "select (select count(*) from inbound_email) + (select count(*) from inbound_raw) + (select count(*) from blob_reference) as kept",
  );
  return row?.kept;
};

test("what looks like spam is kept for the owner to see, released to the mailbox, and then forgotten", async () => {
  const a = await s.alias({ domain_id });
  const attached = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n";
  const text = `--b\r\n\r\n${SPAMMY}\r\n--b\r\nContent-Type: text/csv; name=prizes.csv\r\n\r\n1;2\r\n--b--`;
  assert.equal((await s.send({ from: C, to: a.full, content: mail(a.full, text, attached) })).code, 250);
  const listed = await held(a.full);
  assert.deepEqual([listed.from_address, listed.subject], [`Shop Keeper <${C}>`, "a prize"]);
  assert.equal(listed.has_attachments, true);
  const path = `/v1/inbound-emails/${listed.id}`;
  const { email } = (await s.api.ask("GET", path)).body;
  assert.match(email.text, /Claim your prize/);
  assert.ok(email.spam.score >= 8 && email.reason.length > 0, JSON.stringify(email));
  assert.equal(email.attachments[0].filename, "prizes.csv");
  const download = `${path}/attachments/${email.attachments[0].id}/download`;
  assert.equal((await s.api.ask("GET", download)).status, 200);
  assert.equal((await s.api.ask("GET", `${path}/raw`)).status, 200);
  const other = { key: (await s.api.organization()).live_key };
  assert.equal((await s.api.ask("GET", path, undefined, other)).status, 404);
  assert.equal((await s.api.ask("POST", `${path}/release`, undefined, other)).status, 404);
  assert.equal((await s.api.ask("DELETE", path, undefined, other)).status, 404);
  assert.equal((await s.api.ask("POST", `${path}/replay`)).status, 409);
  assert.deepEqual(await s.activity(a.id), ["quarantine held spam", "config sent created"]);
  assert.deepEqual(await counts(a.id), [1, 0, 1]);
  assert.deepEqual(s.sink.messages, []);

  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { active: false });
  await s.api.ask("POST", `${path}/release`);
  assert.equal((await held(a.full)).id, listed.id, "nothing goes through an alias that is off, and nothing is lost");
  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { active: true });
  const released = await s.api.ask("POST", `${path}/release`);
  assert.equal(released.status, 200, JSON.stringify(released.body));
  assert.match((await s.arrived(D))[0]?.bytes.toString("latin1") ?? "", /Claim your prize/);
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "forward sent -");
  assert.deepEqual(await counts(a.id), [1, 1, 1], "it was received once");
  assert.equal((await s.api.ask("GET", path)).status, 404);
  assert.equal((await s.api.ask("GET", "/v1/inbound-emails")).body.total, 0);
  assert.equal(await rows(), 0, "neither the mail nor its attachment is left");
});

test("what is in quarantine can be deleted, and nothing of it stays", async () => {
  const a = await s.alias({ domain_id });
  await s.send({ from: C, to: a.full, content: mail(a.full, SPAMMY) });
  const { id } = await held(a.full);
  assert.equal((await s.api.ask("DELETE", `/v1/inbound-emails/${id}`)).status, 200);
  await s.settle();
  assert.equal(await rows(), 0);
  assert.deepEqual(s.sink.messages, []);
});

test("mail before the mailbox has confirmed is deferred, and arrives afterwards", async () => {
  const a = await s.alias();
  const set = (status: string) => s.api.world.db.execute("update masked_destination set status = $1", [status]);
  const send = () => s.send({ from: C, to: a.full, content: mail(a.full, "hi") });
  await set("pending");
  assert.match((await send()).text, /^450 4\.2\.1 .*not confirmed/);
  await set("suspended");
  assert.match((await send()).text, /^450 4\.2\.1 .*cannot be reached/);
  await s.api.world.db.execute(
    "update masked_alias set active = false, disabled_reason = 'destination_bouncing', on_disabled = 'reject' where id = $1",
    [a.id],
  );
  assert.match((await send()).text, /^450 4\.2\.1/, "bounces are no wish of the owner");
  await s.api.world.db.execute("update masked_alias set active = true, disabled_reason = null where id = $1", [a.id]);
  await set("verified");
  assert.equal((await send()).code, 250);
  await s.arrived(D);
  await s.settle();
  assert.deepEqual(await s.activity(a.id), [
    "forward sent -",
    "forward deferred destination_suspended",
    "forward deferred destination_suspended",
    "forward deferred destination_unconfirmed",
    "config sent created",
  ]);
  assert.deepEqual(await counts(a.id), [1, 1, 0], "what was deferred comes again and counts then");
});

test("what is refused in session is reported and counted like what is blocked later", async () => {
  const a = await s.alias();
  assert.equal((await s.send({ from: C, to: a.full, content: mail(a.full, GTUBE) })).code, 550);
  s.dns.set("_dmarc.strict.example", "TXT", ["v=DMARC1; p=reject"]);
  const forged = mail(a.full, "hi").replace(C, "eve@strict.example");
  assert.equal((await s.send({ from: C, to: a.full, content: forged })).code, 550);
  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { active: false, on_disabled: "reject" });
  assert.equal((await s.send({ from: C, to: a.full, content: mail(a.full, "hi") })).code, 550);
  assert.deepEqual(
    (await s.activity(a.id)).filter((entry) => !entry.startsWith("config")),
    ["block failed alias_disabled", "block failed dmarc", "block failed spam"],
  );
  assert.deepEqual(await counts(a.id), [3, 0, 3]);
});

test("what a flood is deferred with is shown in bounds, and what is refused is counted beyond them", async () => {
  const a = await s.alias();
  const [window] = await s.api.world.db.query<{ starts_at: Date }>("select date_trunc('hour', now()) as starts_at");
  await s.api.world.db.execute(
    "insert into masked_window (org_id, alias_id, kind, starts_at, used) values ($1, $2, 'refusal_hour', $3, 60)",
    [s.api.org_id, a.id, window?.starts_at],
  );
  assert.equal((await s.send({ from: C, to: a.full, content: mail(a.full, GTUBE) })).code, 550);
  assert.deepEqual(await s.activity(a.id), ["config sent created"]);
  assert.deepEqual(await counts(a.id), [1, 0, 1]);
});
