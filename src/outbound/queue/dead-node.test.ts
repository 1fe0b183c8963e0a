// What becomes of a dead node's mail: nodes are made by hand in the database, as a killed process leaves them, and a real
// engine buries them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { type SmtpSink, startSmtpSink } from "../../../test/support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../../../test/support/stories.ts";
import { until } from "../../../test/support/until.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { thisHost } from "../../platform/process/this-host.ts";
import { deferredLocally } from "../path/attempt.ts";
import { folderJournals, journalFolders } from "./journal.ts";

/** Above any process id that Linux gives (2^22), so that nobody lives under it. */
const DEAD_PID = 5_000_000;

let api: TestApi;
let dns: DnsServer;
let sink: SmtpSink;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  await addVerifiedDomain(api, dns, "sender.example");
  receiveAt(dns, "recipient.example");
});

after(async () => {
  await api?.close();
  await sink?.stop();
  await dns?.stop();
});

type Sent = { id: string; message_id: string };

/** The Message-IDs of all that was sent so far. */
const sent: string[] = [];

async function send(to: string[] = ["anna@recipient.example"], more: object = {}): Promise<Sent> {
  const { status, body } = await api.ask("POST", "/v1/send", {
    from: "a@sender.example",
    to,
    subject: "x",
    text_body: "x",
    ...more,
  });
  assert.equal(status, 202);
  sent.push(body.message_id);
  return body;
}

/** A node that a killed process left behind, holding these e-mails. */
async function deadNode(machine: string, mails: Sent[]): Promise<number> {
  // Without the role, so that no slots are kept for it until it is declared dead.
  const [node] = await api.world.db.query<{ id: number }>(
    "insert into node (machine, pid, roles) values ($1, $2, $3) returning id",
    [machine, DEAD_PID, machine === thisHost().machine ? ["mta"] : []],
  );
  const id = node?.id ?? 0;
  const ids = mails.map((mail) => mail.id);
  await api.world.db.query("update delivery set owner = $1 where message_id = any($2)", [id, ids]);
  return id;
}

async function typesOf({ id }: Sent): Promise<string[]> {
  const { body } = await api.ask("GET", `/v1/emails/${id}/events`);
  return body.events.map(({ event_type }: { event_type: string }) => event_type);
}

test("mail that may have arrived is ambiguous in the timeline and sent again; the rest is sent without a word", async () => {
  const [ended, waiting, several] = [
    await send(),
    await send(),
    await send(["a@recipient.example", "b@recipient.example"]),
  ];
  const { machine } = thisHost();
  const mine = await deadNode(machine, [ended, waiting, several]);
  const journal = folderJournals(journalFolders(api.world)).open(mine);
  journal.note({ message_id: ended.id, position: 0, attempts: 0 });
  journal.note({ message_id: several.id, position: 1, attempts: 0 });
  // An attempt before this one, long recorded: its bytes may still be there, its number is not the row's.
  journal.note({ message_id: waiting.id, position: 0, attempts: 7 });

  const unknown = await send();
  await deadNode("another machine", [unknown]);
  await api.world.db.query("update node set seen_at = clock_timestamp() - interval '1 hour' where machine = $1", [
    "another machine",
  ]);
  await api.world.db.query("update node set seen_at = clock_timestamp() where id = $1", [mine]);

  await api.startMta();
  for (const mail of [ended, waiting, several]) await emailWithStatus(api, mail.id, ["delivered"]);
  assert.deepEqual(await typesOf(ended), ["queued", "ambiguous", "delivered"]);
  assert.deepEqual(await typesOf(waiting), ["queued", "delivered"]);
  assert.deepEqual((await typesOf(several)).sort(), ["ambiguous", "delivered", "delivered", "queued", "queued"]);
  const { body } = await api.ask("GET", `/v1/emails/${ended.id}/events`);
  const { attempt, message, recipient } = body.events[1];
  assert.deepEqual([attempt, recipient], [1, "anna@recipient.example"]);
  assert.match(message, /ended before the server's answer was recorded; the server may have accepted it/);
  assert.equal(body.events[2].attempt, 2);
  const copies = sink.messages.filter(({ message_id }) => message_id === ended.message_id);
  assert.equal(copies.length, 1);
});

test("everything that a node of another machine held is in doubt, once the database was up long enough to know", async () => {
  const [{ up }] = (await api.world.db.query(
    "select extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float8 as up",
  )) as [{ up: number }];
  const [row] = await api.world.db.query<{ id: string }>(
    "select message_id as id from delivery d join node n on n.id = d.owner where n.machine = 'another machine'",
  );
  if (up < 30) {
    assert.ok(row, "a node is not declared dead for silence while the database has not been up for 30 s");
    return;
  }
  const [flagged] = await api.world.db.query<{ message_id: string }>(
    "select message_id from event where event_type = 'ambiguous' and class = 'ambiguous' order by id desc limit 1",
  );
  assert.ok(!row && flagged);
});

test("mail whose server had answered is recorded as it answered, and not sent again", async () => {
  // Scheduled, or the engine that runs would take them first.
  const later = { scheduled_at: new Date(Date.now() + 3_600_000).toISOString() };
  const one = () => send(undefined, later);
  const [taken, refused, unanswered] = [await one(), await one(), await one()];
  const node = await deadNode("no machine", [taken, refused, unanswered]);
  const journal = folderJournals(journalFolders(api.world)).open(node);
  const inFlight = ({ id }: Sent) => ({ message_id: id, position: 0, attempts: 0 });
  for (const mail of [taken, refused, unanswered]) journal.note(inFlight(mail));
  const answer = { ...deferredLocally("queued as 1", "2.0.0", ""), kind: "delivered", class: null, smtp_code: "250" };
  journal.conclude(inFlight(taken), {
    ...answer,
    kind: "delivered",
    bounce_type: null,
    mx_host: "mx.recipient.example",
  });
  const no = { ...answer, kind: "bounced", smtp_code: "550", enhanced_code: "5.1.1", message: "no such user" } as const;
  journal.conclude(inFlight(refused), { ...no, class: "invalid_recipient", bounce_type: "hard" });
  // Only now: the engine that runs buries a dead node of this machine when it next looks.
  const { machine } = thisHost();
  await api.world.db.query("update node set machine = $1, roles = '{mta}' where id = $2", [machine, node]);
  await until("they are recorded", async () => (await typesOf(refused)).includes("bounced"), 40_000);
  const [first = ""] = await typesOf(taken);
  assert.deepEqual(await typesOf(taken), [first, "delivered"]);
  assert.deepEqual(await typesOf(refused), [first, "bounced"]);
  await emailWithStatus(api, unanswered.id, ["delivered"]);
  assert.deepEqual(await typesOf(unanswered), [first, "ambiguous", "delivered"]);
  const { body } = await api.ask("GET", `/v1/emails/${taken.id}/events`);
  const { attempt, smtp_code, message, mx_host } = body.events[1];
  assert.deepEqual([attempt, smtp_code, message, mx_host], [1, "250", "queued as 1", "mx.recipient.example"]);
  const copies = (mail: Sent) => sink.messages.filter(({ message_id }) => message_id === mail.message_id).length;
  assert.deepEqual([taken, refused, unanswered].map(copies), [0, 0, 1]);
});

test("a result whose delivery was taken away meanwhile is shown in the timeline, once", async () => {
  const hold = Promise.withResolvers<null>();
  // What another machine's node held may be under way as well.
  const earlier = new Set(sent);
  sink.onMessage(({ message_id }) => (earlier.has(message_id) ? null : hold.promise));
  const mail = await send();
  const [before] = await api.world.db.query<{ owner: number }>("select owner from delivery where message_id = $1", [
    mail.id,
  ]);
  assert.ok(before?.owner, "the engine holds it");
  const inFlight = (): boolean =>
    folderJournals(journalFolders(api.world))
      .read(before.owner)
      ?.some(({ message_id }) => message_id === mail.id) ?? false;
  await until("the journal has it, before the answer is there", inFlight);
  await api.world.db.query(
    "update delivery set owner = null, due_at = now() + interval '1 day' where message_id = $1",
    [mail.id],
  );
  hold.resolve(null);
  await until("it is reported", async () => (await typesOf(mail)).includes("ambiguous"));
  assert.deepEqual(await typesOf(mail), ["queued", "ambiguous"]);
  sink.onMessage(() => null);
});
