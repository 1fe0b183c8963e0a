// A person asks what is stored of an address, and wants it erased: in mail to it alone and to several, in mail on its way, in mail
// received and carried on, in what webhooks posted, in packed texts, and with masked addresses. Nothing of others is touched.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { settleTraces } from "../../src/masked/settle/settling.ts";
import { firstOpenDay } from "../../src/platform/packed/packed-days.ts";
import { uuidFloor } from "../../src/platform/random.ts";
import { settlingPorts } from "../../src/ports.ts";
import { packPastDays } from "../../src/sending/search/pack.ts";
import type { Answer } from "../support/api.ts";
import { addAlias, type Receiving, startTestReceiving } from "../support/receiving.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { until } from "../support/until.ts";

const DAY_MS = 86_400_000;
const ANNA = "anna@recipient.example";
const JOANNA = "joanna@recipient.example";
let r: Receiving;
let sink: SmtpSink;
let other: { live_key: string; org_id: string };

before(async () => {
  sink = await startSmtpSink();
  sink.onRcpt((address) => {
    if (address.startsWith("gone@")) return { code: 550, text: `5.1.1 not ${ANNA}` };
    return address.startsWith("slow@") ? { code: 451, text: "4.2.0 later" } : null;
  });
  r = await startTestReceiving({
    POSTERN_TESTING_OUTBOUND_PORT: String(sink.port),
    POSTERN_MASKED_DOMAIN: "mask.example",
  });
  receiveAt(r.dns, "recipient.example");
  other = await r.api.organization();
});
after(async () => {
  await r.close();
  await sink.stop();
});

const ask = async (method: string, path: string, body?: unknown, key?: string): Promise<Answer["body"]> => {
  const answer = await r.api.ask(method, path, body, key === undefined ? {} : { key });
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
};
const exported = (email: string, more = "", key?: string) =>
  ask("GET", `/v1/address-data?email=${encodeURIComponent(email)}${more}`, undefined, key);
const erase = (email: string, more = "", key?: string) =>
  ask("DELETE", `/v1/address-data?email=${encodeURIComponent(email)}${more}`, undefined, key);

async function send(to: string[], more: object = {}): Promise<string> {
  const mail = { from: "shop@in.example", to, subject: "An order", text_body: `Hello ${to.join(" and ")}`, ...more };
  return (await ask("POST", "/v1/send", mail)).id;
}

/** Columns of all tables that hold what the pattern finds, also within bytes. */
async function placesOf(pattern: string): Promise<string[]> {
  const { db } = r.api.world;
  const columns = await db.query<{ table: string; column: string; type: string }>(
    `select table_name as table, column_name as column, data_type as type from information_schema.columns
      join information_schema.tables using (table_schema, table_name)
      where table_schema = current_schema() and table_type = 'BASE TABLE' and table_name !~ '_[0-9]{8}$'
        and data_type in ('text', 'jsonb', 'json', 'bytea', 'ARRAY') order by 1, 2`,
  );
  const found: string[] = [];
  for (const { table, column, type } of columns) {
    const text = type === "bytea" ? `encode(${column}, 'escape')` : `${column}::text`;
    const holds = `${text} ~* $1`;
    const [row] = await db.query<{ n: number }>(`select count(*) as n from ${table} where ${holds}`, [pattern]);
    if (row && row.n > 0) found.push(`${table}.${column}`);
  }
  return found;
}

/** Mail of yesterday, which is packed: one of 250 to Anna. */
async function fillYesterday(): Promise<string> {
  const { db, clock } = r.api.world;
  const startMs = Date.parse(firstOpenDay(clock.now()).day) - DAY_MS;
  const day = new Date(startMs).toISOString().slice(0, 10);
  await db.execute(`call make_day_partitions('${day}', '${day}')`);
  const ids = Array.from({ length: 250 }, (_, n) => uuidFloor(startMs + n * 60_000));
  const rows = (row: (id: string, n: number) => string) =>
    ids.map((id, n) => `('${r.api.org_id}', ${row(id, n)})`).join(", ");
  await db.execute(
    `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, status, size,
       recipient_count, origin, created_at, completed_at)
     values ${rows((id, n) => `'${id}', 'live', '${id}', '${n}@old.example', 'a@in.example', 'a@in.example', 'Old ${n}', 'delivered', 1, 1, 'api', now(), now()`)}`,
  );
  await db.execute(
    `insert into recipient (org_id, message_id, position, email, kind, status)
     values ${rows((id, n) => `'${id}', 0, '${n === 7 ? "Anna@recipient.example" : `c${n}@recipient.example`}', 'to', 'delivered'`)}`,
  );
  await packPastDays(r.api.world);
  return ids[7] ?? "";
}

test("all that is stored of an address is exported, and erased without a trace but for what is named", async () => {
  const old = await fillYesterday();
  const { webhook } = await ask("POST", "/v1/webhooks", {
    url: "https://hooks.example/out",
    events: ["email.delivered", "email.bounced"],
  });
  const alone = await send([ANNA]);
  const several = await send([ANNA, JOANNA], { metadata: { who: ANNA }, tags: [ANNA], subject: `For ${ANNA}` });
  const later = await send([ANNA], { scheduled_at: new Date(r.api.world.clock.now() + DAY_MS).toISOString() });
  const joanna = await send([JOANNA]);
  const elsewhere = await send(["gone@recipient.example", JOANNA, ANNA]);
  for (const id of [alone, several, joanna]) await emailWithStatus(r.api, id, ["delivered"]);
  await emailWithStatus(r.api, elsewhere, ["partially_delivered", "bounced", "delivered"]);
  const desk = await addAlias(r, "desk", { action: "forward", forward_to: ["boss@recipient.example"] });
  await addAlias(r, "anna", { action: "forward", forward_to: [ANNA] });
  await r.send({ from: `Anna <${ANNA}>`, to: "desk@in.example", subject: "mine", text: "x" });
  await r.send({ from: JOANNA, to: "desk@in.example", subject: "hers", text: "x" });
  await r.processed("subject=mine");
  await r.processed("subject=hers");
  const forwards = async () => (await ask("GET", "/v1/emails?to=boss%40")).emails;
  await until("both forwards are delivered", async () => {
    const all = await forwards();
    return all.length === 2 && all.every(({ status }: { status: string }) => status === "delivered");
  });
  await ask("POST", "/v1/masked/destinations", { email: ANNA });
  // The mail that asks for her consent is forgotten by itself, once it is over.
  const settling = settlingPorts(r.api.world, r.api.engine);
  const asking =
    "select from recipient r join message m on m.id = r.message_id where m.origin = 'masked' and r.email = $1";
  await until("the confirmation mail is forgotten", async () => {
    await settleTraces(r.api.world, settling);
    return (await r.api.world.db.query(asking, [ANNA])).length === 0;
  });
  await ask("POST", "/v1/suppressions", { email: ANNA });
  await ask("POST", "/v1/suppressions", { email: ANNA }, other.live_key);
  assert.ok(webhook.id && desk.id);
  const hook = { url: "https://hooks.example/anna", events: ["email.bounced"] };
  for (const match_pattern of [ANNA, `re:^${ANNA.replace(".", "\\.")}$`, JOANNA])
    await ask("POST", "/v1/webhooks", { ...hook, match_pattern });
  await ask("PUT", `/v1/domains/${r.domain.id}/spam`, { allow: [ANNA], block: [JOANNA] });

  const found = await exported("ANNA@recipient.example");
  const ids = found.sent.map(({ id }: { id: string }) => id);
  for (const id of [old, alone, several, later, elsewhere]) assert.ok(ids.includes(id), id);
  assert.ok(!ids.includes(joanna));
  const elsewhereToo = { suppressions: 1, sent_from: 0, aliases: 1, rules: 3, audit_entries: 0 };
  assert.deepEqual(found.total, { sent: 6, received: 1, ...elsewhereToo });
  const one = found.sent.find(({ id }: { id: string }) => id === several);
  assert.deepEqual(
    one.recipients.map(({ email, status }: Record<string, string>) => [email, status]),
    [[ANNA, "delivered"]],
  );
  assert.ok(one.events.length > 0 && one.events.every(({ recipient }: { recipient: string }) => recipient === ANNA));
  assert.equal(found.received[0].subject, "mine");
  assert.equal(found.suppressions.length, 1);
  assert.equal(found.masked.destination.email, ANNA);

  const pages: string[] = [];
  for (let after = ""; ; ) {
    const page = await exported(ANNA, `&limit=2${after && `&after=${after}`}`);
    pages.push(...[...page.sent, ...page.received].map(({ id }: { id: string }) => id));
    if (page.next_after === null) break;
    after = page.next_after;
  }
  assert.deepEqual(pages.sort(), [...ids, found.received[0].id].sort());

  const { email: erasedAddress, left, ...erased } = await erase(ANNA);
  assert.equal(erasedAddress, ANNA);
  assert.deepEqual(left, { sent: 0, received: 0, ...elsewhereToo });
  const masked = { contacts: 0, destinations: 1, aliases: 0 };
  assert.deepEqual(erased, { canceled: 1, deleted: 3, blanked: 2, received: 1, suppressions: 0, masked });
  const places = (await placesOf("(^|[^o])anna@recipient\\.example")).filter(
    (place) => !place.startsWith("suppression."),
  );
  assert.deepEqual(places, ["alias.forward_to", "domain_spam.allow", "webhook.match_pattern"]);

  for (const id of [alone, later, old]) assert.equal((await r.api.ask("GET", `/v1/emails/${id}`)).status, 404);
  const { email } = await ask("GET", `/v1/emails/${several}`);
  assert.deepEqual([email.to, email.subject, email.tags], [["erased@erased.invalid", JOANNA], "", []]);
  assert.equal((await r.api.ask("GET", `/v1/emails/${several}/content`)).status, 404);
  assert.equal((await ask("GET", "/v1/emails?to=anna%40")).emails.length, 3, "Joanna's are found");
  assert.equal((await ask("GET", "/v1/emails?subject=old")).total, 249);
  assert.equal((await ask("GET", `/v1/emails/${joanna}/content`)).content.id, joanna);
  assert.equal((await forwards()).length, 1);
  assert.equal((await ask("GET", "/v1/inbound-emails?subject=hers")).total, 1);
  assert.equal((await exported(JOANNA)).total.sent, 4, "with the forward of her mail");
  assert.equal((await exported(ANNA, "", other.live_key)).suppressions.length, 1, "another organization's stays");
});

test("mail that is on its way to others is erased when it is over, and said to be left until then", async () => {
  const [berta, slow] = ["berta+news@recipient.example", "slow@recipient.example"];
  const id = await send([berta, slow]);
  const waiting = await send([slow]);
  for (const one of [id, waiting]) await emailWithStatus(r.api, one, ["deferred", "partially_delivered", "sending"]);
  await until("both were tried", async () => {
    const { email } = await ask("GET", `/v1/emails/${id}`);
    return email.recipients[0].status === "delivered" && email.recipients[1].status === "deferred";
  });
  const first = await erase(berta);
  assert.deepEqual([first.left.sent, first.blanked], [1, 0]);
  const { email } = await ask("GET", `/v1/emails/${id}`);
  assert.deepEqual(email.to, [berta, slow]);
  const own = await erase(slow);
  assert.deepEqual([own.canceled, own.deleted, own.blanked, own.left.sent], [2, 1, 1, 0]);
  assert.equal((await r.api.ask("GET", `/v1/emails/${waiting}`)).status, 404);
  const second = await erase(berta);
  assert.deepEqual([second.deleted, second.blanked, second.left.sent], [1, 0, 0]);
  const third = await erase(berta);
  assert.deepEqual([third.deleted, third.left.sent], [0, 0]);
});

test("a test key exports and erases what test keys made; suppressions go when that is asked for", async () => {
  const dora = "dora@recipient.example";
  const test_key = r.api.test_key;
  const live = await send([dora]);
  await emailWithStatus(r.api, live, ["delivered"]);
  const mail = { from: "shop@in.example", to: [dora], subject: "Try", text_body: "x" };
  const { id } = await ask("POST", "/v1/send", mail, test_key);
  const shown = await exported(dora, "", test_key);
  assert.deepEqual(
    shown.sent.map((one: { id: string }) => one.id),
    [id],
  );
  assert.equal((await erase(dora, "", test_key)).deleted, 1);
  assert.equal((await exported(dora)).total.sent, 1, "live mail stays");
  await ask("POST", "/v1/suppressions", { email: dora });
  const erased = await erase(dora, "&suppressions=true");
  assert.deepEqual([erased.deleted, erased.suppressions, erased.left.suppressions], [1, 1, 0]);
});

test("mail of a longer address, in any alphabet, stays; words beside the address in a subject do not keep it", async () => {
  const [emma, longer] = ["emma@recipient.example", "üemma@recipient.example"];
  await r.send({ from: longer, to: "desk@in.example", subject: "longer", text: "x" });
  await r.send({ from: emma, to: "desk@in.example", subject: "hers alone", text: "x" });
  await r.processed("subject=longer");
  await r.processed("subject=hers%20alone");
  const { id } = await ask("POST", "/v1/send", {
    from: "shop@in.example",
    to: [emma, JOANNA],
    subject: `通知${emma}`,
    text_body: "x",
  });
  await emailWithStatus(r.api, id, ["delivered"]);
  assert.equal((await exported(emma)).total.received, 1);
  const erased = await erase(emma);
  assert.deepEqual([erased.received, erased.blanked], [1, 1]);
  assert.equal((await ask("GET", "/v1/inbound-emails?subject=longer")).total, 1);
  assert.equal((await ask("GET", `/v1/emails/${id}`)).email.subject, "");
});

test("an address with letters outside ASCII is found in either case", async () => {
  const [asked, written, longer] = ["jörg@recipient.example", "JÖRG@recipient.example", "MJÖRG@recipient.example"];
  await addAlias(r, "shelf", { action: "store" });
  for (const from of [written, longer]) {
    await r.send({ from, to: "shelf@in.example", subject: `of ${from[0]}`, text: "x" });
    await r.processed(`subject=of%20${from[0]}`);
  }
  const over = ["delivered", "partially_delivered", "bounced", "failed"];
  const alone = await send([written]);
  const several = await send([written, JOANNA], { subject: `Für ${written}`, metadata: { who: written } });
  const others = await send([longer]);
  for (const id of [alone, several, others]) await emailWithStatus(r.api, id, over);
  const { total, sent } = await exported(asked);
  assert.deepEqual([total.sent, total.received], [2, 1]);
  assert.ok(sent.every(({ recipients }: { recipients: unknown[] }) => recipients.length === 1));
  const erased = await erase(asked);
  assert.deepEqual([erased.deleted, erased.blanked, erased.received, erased.left.sent], [1, 1, 1, 0]);
  const { email } = await ask("GET", `/v1/emails/${several}`);
  assert.deepEqual([email.to, email.subject, email.metadata], [["erased@erased.invalid", JOANNA], "", {}]);
  assert.equal((await exported(longer.toLowerCase())).total.received, 1);
  assert.equal((await ask("GET", `/v1/emails/${others}`)).email.to[0], longer);
});

test("imports of suppressions show an erased address no more", async () => {
  const fred = "fred@recipient.example";
  const csv = `email,reason\n${fred},bounce\nnone,${fred}\n${fred} ${fred},bounce\nother@recipient.example,bounce\n`;
  const { job } = await ask("POST", "/v1/imports/suppressions/preview", { csv });
  assert.equal(job.errors.length, 2);
  await erase("Fred@recipient.example");
  const now = (await ask("GET", `/v1/imports/suppressions/jobs/${job.id}`)).job;
  assert.ok(!JSON.stringify(now).includes(fred), JSON.stringify(now));
  assert.deepEqual([now.valid_rows, now.sample.length, now.errors.length], [2, 1, 1]);
});

test("what is no address is refused, and the audit log names none", async () => {
  for (const method of ["GET", "DELETE"]) {
    const { status, body } = await r.api.ask(method, "/v1/address-data?email=nobody");
    assert.deepEqual([status, body.field], [400, "email"]);
  }
  const { entries } = await ask("GET", "/v1/audit-log?operation=eraseAddressData");
  assert.ok(entries.length > 0);
  assert.ok(!JSON.stringify(entries).includes("@"), JSON.stringify(entries));
});
