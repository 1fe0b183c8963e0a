// What happens to mail that was taken when things fail: crashes between accept and processing, stalled processes, messages
// that break the parser or us.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";
import { until } from "../../../test/support/until.ts";
import { NotNow } from "../../platform/not-now.ts";
import { thisHost } from "../../platform/process/this-host.ts";
import { BlobsUnavailable } from "../../platform/storage/blobs.ts";
import { startInboundWork } from "../background.ts";
import { createInbound, type Inbound, type InboundPorts } from "../inbound.ts";
import * as queries from "../queries.ts";
import type { AcceptCheck, Handler, Incoming, Mail, Route } from "../types.ts";
import { newClaimId } from "./claim-ids.ts";
import { createFinisher } from "./finish.ts";
import { KEPT } from "./outcome.ts";

let r: Receiving;
let route: Route;

before(async () => {
  r = await startTestReceiving();
  const alias = await addAlias(r, "desk");
  route = {
    kind: "alias",
    org_id: r.api.org_id,
    domain_id: r.domain.id,
    alias_id: alias.id,
    tag: null,
    domain: "in.example",
    action: "webhook",
    forward_to: [],
    forward_mode: "preserve_from",
    webhook_ids: [],
    domain_webhook_ids: [],
  };
});
after(() => r.close());

/** Nobody judges and no rule is there. */
const NO_STEPS: Pick<InboundPorts, "spam" | "rules"> = {
  spam: async () => ({ report: { score: null, verdict: null, symbols: [] }, quarantine: null }),
  rules: async () => null,
};

const ports = (more: Partial<InboundPorts> = {}): InboundPorts => ({
  findLane: async () => {
    throw new Error("nothing is sent here");
  },
  outbound: () => null,
  notifyOutbound: () => undefined,
  exact: [],
  own: [],
  checks: [],
  handlers: new Map(),
  findHolder: async () => undefined,
  ...NO_STEPS,
  ...more,
});
const incoming = (
  subject: string,
  bytes = Buffer.from(`From: a@b.example\r\nSubject: ${subject}\r\n\r\nx\r\n`),
): Incoming => ({
  origin: { remote_ip: "192.0.2.7", remote_port: 1, helo: "x", protocol: "SMTP", tls: null },
  envelope: { from: "a@b.example", smtputf8: false },
  environment: "live",
  received_at: new Date(r.api.world.clock.now()),
  recipients: [{ recipient: "desk@in.example", route }],
  bytes,
});
const taken = async (engine: Inbound, mail: Incoming) => {
  const offered = await engine.take(mail);
  assert.ok(offered.kind === "taken");
  return offered;
};
const queued = () =>
  r.api.world.db.query<{
    id: string;
    attempts: number;
    faults: number;
    claim_id: string | null;
    next_attempt_at: Date;
  }>("select * from inbound_queue");
/** The one mail in the queue, once it was tried so often and given back. */
async function attempted(times: number) {
  let [row] = await queued();
  await until(`attempt ${times}`, async () => {
    [row] = await queued();
    return row?.claim_id === null && row.attempts >= times;
  });
  return row as NonNullable<typeof row>;
}

test("mail that a process accepted and did not live to process is processed by another, once", async () => {
  const { db } = r.api.world;
  // A process that accepts and stalls: its handler does not end, its lease is not renewed.
  const gate = Promise.withResolvers<never>();
  const handlers = new Map([["alias", () => gate.promise]]) as never;
  const stalled = createInbound(r.api.world, ports({ handlers }), { claims: false });
  const mail = incoming("orphan");
  const { ids } = await taken(stalled, mail);
  const [held] = await queued();
  assert.deepEqual([held?.id, held?.attempts], [ids[0], 1]);
  assert.ok(held?.claim_id);
  await db.query("update inbound_queue set lease_until = now() - interval '1 second'");
  const [row] = await r.processed("subject=orphan");
  assert.equal(row.id, ids[0]);
  assert.equal((await r.events(row.id)).length, 1);
  assert.deepEqual(await queued(), []);
  gate.reject(new Error("enough"));
  await stalled.stop();
});

test("a start takes over what a killed process of this machine held, and nothing that may be alive", async () => {
  const { db, random } = r.api.world;
  const gate = Promise.withResolvers<never>();
  const handlers = new Map([["alias", () => gate.promise]]) as never;
  const stalled = createInbound(r.api.world, ports({ handlers }), { claims: false });
  const here = thisHost();
  const holders = { killed: 5_000_000, alive: process.ppid, elsewhere: 5_000_000, own: here.pid };
  const ids = new Map<string, string>();
  for (const [name, pid] of Object.entries(holders)) {
    const [id = ""] = (await taken(stalled, incoming(`held-${name}`))).ids;
    ids.set(id, name);
    const claim = newClaimId({ random }, { ...here, pid, ...(name === "elsewhere" && { machine: "another" }) });
    await db.query("update inbound_queue set claim_id = $2, lease_until = 'infinity' where id = $1", [id, claim]);
  }
  const started = createInbound(r.api.world, ports(), { claims: true });
  const [row] = await r.processed("subject=held-killed");
  assert.equal((await r.events(row.id)).length, 1);
  const left = (await queued()).map(({ id, claim_id }) => [ids.get(id), claim_id !== null]);
  assert.deepEqual(Object.fromEntries(left), { alive: true, elsewhere: true, own: true });
  gate.reject(new Error("enough"));
  await Promise.all([started.stop(), stalled.stop()]);
  await db.query("update inbound_queue set claim_id = null");
  for (const name of ["alive", "elsewhere", "own"]) await r.processed(`subject=held-${name}`);
});

test("the outcome of a process whose claim lapsed touches nothing", async () => {
  const gate = Promise.withResolvers<void>();
  let inner: Handler | null = null;
  const handlers = new Map([
    [
      "alias",
      async (mail: Mail) => {
        await gate.promise;
        return (inner as Handler)(mail);
      },
    ],
  ]) as never;
  const late = createInbound(r.api.world, ports({ handlers }), { claims: false });
  const { customerHandler } = await import("./customer.ts");
  inner = customerHandler(r.api.world, {
    ...NO_STEPS,
    findThread: async () => ({ id: r.api.world.random.uuid(), matched_email_id: null }),
    showsAuth: async () => true,
    findSender: async () => undefined,
  });
  const mail = incoming("late");
  const { ids, processed } = await taken(late, mail);
  await r.api.world.db.query("update inbound_queue set lease_until = now() - interval '1 second'");
  await r.processed("subject=late");
  gate.resolve();
  await processed;
  assert.equal((await r.events(ids[0] as string)).length, 1, "one event, although two processes made one");
  const { body } = await r.api.ask("GET", `/v1/inbound-emails/${ids[0]}`);
  assert.equal(body.email.deliveries.length, 1);
  await late.stop();
});

test("a mail that one process holds under two claims is finished by the one that stands, once", async () => {
  const { world } = r.api;
  const gate = Promise.withResolvers<never>();
  const seen = Promise.withResolvers<Mail>();
  const hold: Handler = (mail) => {
    seen.resolve(mail);
    return gate.promise;
  };
  const stalled = createInbound(world, ports({ handlers: new Map([["alias", hold]]) }), { claims: false });
  await taken(stalled, incoming("twice"));
  const [mail, [held]] = await Promise.all([seen.promise, queued()]);
  let finished = 0;
  const outcome = {
    ...KEPT,
    async also() {
      finished += 1;
    },
  };
  const finisher = createFinisher(world, ports());
  const jobOf = (claim_id: string) => ({ mail, claim_id, attempts: 1, faults: 0 });
  await Promise.all(
    [world.random.uuid(), held?.claim_id as string].map((claim) => finisher.finish(jobOf(claim), outcome)),
  );
  assert.deepEqual([finished, await queued()], [1, []]);
  gate.reject(new Error("enough"));
  await stalled.stop();
});

test("a lease is renewed while the work goes on", async () => {
  const gate = Promise.withResolvers<void>();
  const handlers = new Map([
    [
      "alias",
      async () => {
        await gate.promise;
        throw new Error("enough");
      },
    ],
  ]) as never;
  const slow = createInbound(r.api.world, ports({ handlers }), { claims: false });
  const mail = incoming("renewed");
  await taken(slow, mail);
  const claims = await r.api.world.db.query<queries.Claim>("select org_id, id, claim_id from inbound_queue");
  await queries.renewClaims(r.api.world.db, claims, 3_600_000);
  const [row] = await r.api.world.db.query<{ later: boolean }>(
    "select lease_until > now() + interval '50 minutes' as later from inbound_queue",
  );
  assert.equal(row?.later, true);
  await queries.renewClaims(
    r.api.world.db,
    claims.map((claim) => ({ ...claim, claim_id: claim.id })),
    0,
  );
  const [same] = await r.api.world.db.query<{ later: boolean }>(
    "select lease_until > now() + interval '50 minutes' as later from inbound_queue",
  );
  assert.equal(same?.later, true, "another claim's renewal touches nothing");
  gate.resolve();
  await slow.stop();
  const [given] = await queued();
  assert.ok(given && given.claim_id === null && given.next_attempt_at.getTime() > r.api.world.clock.now() + 5_000);
  await r.api.world.db.query("update inbound_queue set next_attempt_at = $1", [new Date(0)]);
  await r.processed("subject=renewed");
});

test("mail that breaks its handler is tried three times, then kept aside; its neighbours are not held up", async () => {
  let tries = 0;
  const handlers = new Map([
    [
      "alias",
      async (mail: Mail) => {
        tries += 1;
        throw new Error(`broken ${mail.id}`);
      },
    ],
  ]) as never;
  const broken = createInbound(r.api.world, ports({ handlers }), { claims: false });
  const mail = incoming("poison");
  const { ids, processed } = await taken(broken, mail);
  await processed;
  // Three attempts by processes with the same fault.
  const { world } = r.api;
  for (let attempt = 2; attempt <= 3; attempt += 1) {
    await r.api.world.db.query("update inbound_queue set claim_id = $1, attempts = $2", [world.random.uuid(), attempt]);
    const [row] = await queries.loadMail(world.db, [{ org_id: r.api.org_id, id: ids[0] as string }]);
    const [claim] = await queued();
    const { claim_id, faults } = claim as { claim_id: string; faults: number };
    assert.equal(faults, attempt - 1);
    const job = { mail: broken.toMail(row as queries.MailRow), claim_id, attempts: attempt, faults };
    assert.ok(broken.processor.reserve([job]));
    await broken.processor.offer([job]);
  }
  assert.equal(tries, 3);
  const { body } = await r.api.ask("GET", `/v1/inbound-emails/${ids[0]}`);
  assert.deepEqual([body.email.status, body.email.subject, body.email.spf], ["failed", null, "none"]);
  assert.match(body.email.reason, /could not be processed/);
  assert.equal(body.email.text, "x\n", "what can be read of it is shown");
  assert.equal((await r.api.ask("GET", `/v1/inbound-emails/${ids[0]}/raw`)).status, 200);
  assert.deepEqual(await queued(), []);
  const replayed = await r.api.ask("POST", `/v1/inbound-emails/${ids[0]}/replay`);
  assert.equal(replayed.body.email.status, "delivered", "a later version may do better");
  const key = { org_id: r.api.org_id, id: ids[0] as string };
  const [row] = await queries.loadMail(world.db, [key]);
  const claim_id = world.random.uuid();
  const again = { ...key, raw_id: row?.raw_id, claim_id, next_attempt_at: new Date(0) };
  await world.db.transaction((tx) => queries.requeue(tx, again, 60_000));
  const job = { mail: broken.toMail(row as queries.MailRow), claim_id, attempts: 1, faults: 2 };
  assert.ok(broken.processor.reserve([job]));
  await broken.processor.offer([job]);
  const kept = (await r.api.ask("GET", `/v1/inbound-emails/${ids[0]}`)).body.email;
  assert.deepEqual([kept.status, kept.subject], ["failed", "poison"], "what was known of it stays");
  await broken.stop();
});

test("mail whose handler asks for another time is given back, however often, and never put aside", async () => {
  const handlers = new Map([["alias", () => Promise.reject(new NotNow("the resolver does not answer"))]]) as never;
  const waiting = createInbound(r.api.world, ports({ handlers }), { claims: false });
  const { ids, processed } = await taken(waiting, incoming("another time"));
  await processed;
  const { world } = r.api;
  for (let attempt = 2; attempt <= 5; attempt += 1) {
    const claim_id = world.random.uuid();
    await world.db.query("update inbound_queue set claim_id = $1, attempts = $2", [claim_id, attempt]);
    const [row] = await queries.loadMail(world.db, [{ org_id: r.api.org_id, id: ids[0] as string }]);
    const job = { mail: waiting.toMail(row as queries.MailRow), claim_id, attempts: attempt, faults: 0 };
    assert.ok(waiting.processor.reserve([job]));
    await waiting.processor.offer([job]);
    const [given] = await queued();
    assert.deepEqual([given?.claim_id, given?.faults], [null, 0], `attempt ${attempt}`);
  }
  await waiting.stop();
  await world.db.query("update inbound_queue set next_attempt_at = $1", [new Date(0)]);
  const [row] = await r.processed("subject=another%20time");
  assert.equal(row.status, "delivered");
});

test("while the store of bodies is in trouble mail that was taken waits for it, however often it is tried", async () => {
  const { config, db, clock } = r.api.world;
  const content = "kept for later";
  const key = createHash("sha256").update(content).digest("hex");
  // Where the folder of the attachment's blob is to be made.
  const place = join(config.data_dir, "blobs", key.slice(0, 2));
  rmSync(place, { recursive: true, force: true });
  mkdirSync(join(config.data_dir, "blobs"), { recursive: true });
  writeFileSync(place, "a file where the folder was");
  const attachments = [{ filename: "a.txt", content }];
  await r.send({ from: "a@b.example", to: "desk@in.example", subject: "patience", text: "x", attachments });
  for (const attempts of [1, 8]) {
    const tried = await attempted(attempts);
    assert.deepEqual([tried.attempts, tried.faults], [attempts, 0]);
    const waits = tried.next_attempt_at.getTime() - clock.now();
    assert.ok(waits > 0 && waits <= attempts * 10_000, "it backs off");
    assert.equal((await r.api.ask("GET", `/v1/inbound-emails/${tried.id}`)).body.email.status, "received");
    if (attempts === 8) rmSync(place);
    // As if it had been tried six times more.
    await db.query("update inbound_queue set next_attempt_at = $1, attempts = 7", [new Date(0)]);
  }
  const [row] = await r.processed("subject=patience");
  assert.deepEqual([row.status, row.has_attachments], ["delivered", true]);
  assert.equal((await r.events(row.id)).length, 1);
});

test("a stored message whose blob is missing waits until it is there again", async () => {
  const { db, blobs } = r.api.world;
  const realGet = blobs.get;
  blobs.get = async () => null;
  const gate = Promise.withResolvers<never>();
  const handlers = new Map([["alias", () => gate.promise]]) as never;
  const stalled = createInbound(r.api.world, ports({ handlers }), { claims: false });
  const mail = incoming("unmounted", Buffer.from(`Subject: unmounted\r\n\r\n${`${"x".repeat(76)}\r\n`.repeat(5_000)}`));
  await taken(stalled, mail);
  await db.query("update inbound_queue set lease_until = now() - interval '1 second'");
  assert.equal((await attempted(2)).faults, 0);
  await db.query("update inbound_queue set next_attempt_at = $1, attempts = 7", [new Date(0)]);
  assert.equal((await attempted(8)).faults, 0);
  blobs.get = realGet;
  await db.query("update inbound_queue set next_attempt_at = $1", [new Date(0)]);
  const [row] = await r.processed("subject=unmounted");
  assert.equal(row.status, "delivered");
  gate.reject(new Error("enough"));
  await stalled.stop();
});

test("how long mail has waited counts from its receipt, however often an attempt deferred it", async () => {
  const { world } = r.api;
  const away: Handler = () => Promise.reject(new BlobsUnavailable("the store is away"));
  const stuck = createInbound(world, ports({ handlers: new Map([["alias", away]]) }), { claims: false });
  const received_at = new Date(world.clock.now() - 3_600_000);
  const { processed } = await taken(stuck, { ...incoming("waits"), received_at });
  await processed;
  const [row] = await queued();
  assert.ok(row && row.claim_id === null && row.next_attempt_at > new Date(world.clock.now()), "it was deferred");
  const age = async () => {
    const work = startInboundWork(world);
    const reported = await until("the age is shown", async () => {
      const text = await world.metrics.text();
      return /^postern_oldest_due_seconds\{queue="inbound"\} (\S+)$/m.exec(text)?.[1];
    });
    await work.stop();
    return Number(reported);
  };
  const seconds = await age();
  assert.ok(seconds >= 3_600 && seconds < 4_200, `${seconds}`);
  await stuck.stop();
  await world.db.query("update inbound_queue set next_attempt_at = $1", [new Date(0)]);
  await r.processed("subject=waits");
});

test("mail that the parser gives up on is listed, served raw and announced with what its head says", async () => {
  const gaveUp: AcceptCheck = async (_incoming, examination) => {
    examination.parsed = async () => ({ kind: "failed", reason: "the parser took too long" });
    return null;
  };
  const unparsed = createInbound(r.api.world, ports({ checks: [gaveUp] }), { claims: false });
  const content =
    "From: Anna <a@b.example>\r\nSubject: =?utf-8?q?unparsed_=C3=BC?=\r\nMessage-ID: <u@b>\r\nIn-Reply-To: <v@b>\r\n\r\nx\r\n";
  const mail = incoming("", Buffer.from(content));
  const { ids, processed } = await taken(unparsed, mail);
  await processed;
  const { body } = await r.api.ask("GET", `/v1/inbound-emails/${ids[0]}`);
  assert.deepEqual(
    [body.email.status, body.email.subject, body.email.from, body.email.message_id, body.email.thread.in_reply_to],
    ["delivered", "unparsed ü", "Anna <a@b.example>", "<u@b>", "<v@b>"],
  );
  assert.deepEqual(body.email.defects, ["not_parsed: the parser took too long"]);
  const [event] = await r.events(ids[0] as string);
  assert.deepEqual([event?.body.text, event?.body.html, event?.body.attachments], [null, null, []]);
  assert.equal(event?.body.headers.length, 4);
  await unparsed.stop();
});

test("one organization's mail that takes long keeps no other's waiting, and in the end not its own", async () => {
  const other = await r.api.organization();
  const mailOf = (to: Route): Incoming => ({
    ...incoming("slow"),
    recipients: [{ recipient: "desk@in.example", route: to }],
  });
  for (const quick_ms of [3_600_000, 20]) {
    const gate = Promise.withResolvers<void>();
    let running = 0;
    const keep: Handler = async (mail) => {
      if (mail.org_id !== r.api.org_id) return KEPT;
      running += 1;
      await gate.promise;
      return KEPT;
    };
    const options = { claims: false, quick_ms };
    const engine = createInbound(r.api.world, ports({ handlers: new Map([["alias", keep]]) }), options);
    for (let at = 0; at < 40; at += 1) await taken(engine, mailOf(route));
    const { processed } = await taken(engine, mailOf({ ...route, org_id: other.org_id }));
    await processed;
    if (quick_ms === 20) await until("each has given its place to the next", () => running === 40);
    else assert.equal(running, 32);
    gate.resolve();
    await engine.stop();
    await until("what was given back is processed by the MX", async () => (await queued()).length === 0);
  }
});

test("mail in the queue is claimed of one organization after another", async () => {
  const { world } = r.api;
  const [few, many] = [await r.api.organization(), await r.api.organization()].map(({ org_id }) => org_id).sort();
  // Due in an hour, for the MX of the test to leave it; the claims are of two hours from now.
  const now = world.clock.now();
  const place = async (org_id: string | undefined, count: number, due: number) => {
    await world.db.query(
      "insert into inbound_queue (org_id, id, raw_id, next_attempt_at) select $1, gen_random_uuid(), gen_random_uuid(), $2 from generate_series(1, $3::int)",
      [org_id, new Date(due), count],
    );
  };
  await place(many, 30, now + 3_600_000);
  await place(few, 2, now + 3_600_001);
  const claim = async (more: Partial<queries.Claiming>) => {
    const claiming = { claim_id: world.random.uuid(), now: new Date(now + 7_200_000), lease_ms: 60_000, limit: 10 };
    const after = "00000000-0000-0000-0000-000000000000";
    const rows = await queries.claimDue(world.db, { ...claiming, after, passed_over: [], ...more });
    return rows.map(({ org_id }) => (org_id === few ? "few" : "many")).sort();
  };
  const times = (count: number) => Array.from({ length: count }, () => "many");
  assert.deepEqual(await claim({}), ["few", "few", ...times(8)]);
  await place(few, 2, now + 3_600_001);
  assert.deepEqual(await claim({ after: few as string }), times(10), "whoever comes behind");
  assert.deepEqual(await claim({ passed_over: [many as string] }), ["few", "few"]);
  assert.deepEqual(await claim({ now: new Date(now) }), []);
  assert.deepEqual(await claim({ limit: 100 }), times(12));
  await world.db.query("delete from inbound_queue where org_id = any($1)", [[few, many]]);
});

test("a stop gives back what waits and finishes what runs", async () => {
  const gate = Promise.withResolvers<void>();
  let running = 0;
  const keep: Handler = async () => {
    running += 1;
    await gate.promise;
    return KEPT;
  };
  const options = { claims: false, quick_ms: 3_600_000 };
  const stopping = createInbound(r.api.world, ports({ handlers: new Map([["alias", keep]]) }), options);
  const ids: string[] = [];
  for (let at = 0; at < 40; at += 1) {
    const mail = incoming("stopped");
    ids.push(...(await taken(stopping, mail)).ids);
  }
  assert.equal(running, 32);
  const stopped = stopping.stop();
  gate.resolve();
  await stopped;
  // The MX of the test takes over the eight that were given back, and finds their subject.
  await r.processed("subject=stopped", 8);
  const [count] = await r.api.world.db.query<{ done: number }>(
    "select count(*) as done from inbound_email where id = any($1) and status = 'delivered'",
    [ids],
  );
  assert.equal(count?.done, 40);
  assert.deepEqual(await queued(), []);
});
