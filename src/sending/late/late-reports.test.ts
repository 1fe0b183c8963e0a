// What a late report does to a recipient in each of its states.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { type LateReport, type ReportResult, recordLateReport } from "./late-reports.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

const BOUNCE: LateReport = {
  kind: "bounced",
  bounce_type: "hard",
  smtp_code: "550",
  enhanced_code: "5.1.1",
  message: "no such user",
  class: "invalid_recipient",
  suppress: true,
  reporter: "mx.there.example",
};
const WARNING: LateReport = { ...BOUNCE, kind: "deferred", bounce_type: "soft", smtp_code: null, enhanced_code: null };
const COMPLAINT: LateReport = {
  kind: "complained",
  feedback_type: "abuse",
  source_ip: null,
  arrival_date: null,
  reporter: null,
};

type Given = {
  status: string;
  environment?: "live" | "test";
  origin?: string;
  owner?: number | null;
  ambiguous?: boolean;
};

/** A message to one recipient in that state; `owner`: it is in the queue, and whose it is there. */
async function make({ status, environment = "live", origin = "api", owner, ambiguous = false }: Given) {
  const { world, org_id } = api;
  const message_id = world.random.uuid();
  const email = `r-${message_id}@there.example`;
  await withPartitions(world, async () => {
    await world.db.query(
      `insert into message (org_id, id, environment, domain_id, message_id, from_address, from_header, subject, status, size,
         recipient_count, origin, created_at) values ($1, $2, $3, $2, 'm@x', 'a@x', 'a@x', '', $4, 1, 1, $5, now())`,
      [org_id, message_id, environment, status, origin],
    );
    await world.db.query(
      "insert into recipient (org_id, message_id, position, email, kind, status) values ($1, $2, 0, $3, 'to', $4)",
      [org_id, message_id, email, status],
    );
  });
  if (owner !== undefined) {
    await world.db.query(
      `insert into delivery (org_id, message_id, position, lane_id, email, due_at, created_at, expires_at, owner, return_path_host)
       values ($1, $2, 0, 0, $3, now(), now(), now() + interval '1 day', $4, 'x')`,
      [org_id, message_id, email, owner],
    );
  }
  if (ambiguous) {
    await world.db.query(
      "insert into event (org_id, id, message_id, event_type, recipient, at) values ($1, $2, $3, 'ambiguous', $4, now())",
      [org_id, world.random.uuid(), message_id, email],
    );
  }
  return { org_id, message_id, position: 0, email };
}

async function hear(given: Given, report: LateReport): Promise<[ReportResult, string, boolean]> {
  const { world } = api;
  const { email, ...key } = await make(given);
  const noted = await world.db.transaction((tx) => recordLateReport(tx, world, key, report));
  const { body } = await api.ask("GET", `/v1/emails/${key.message_id}`);
  const suppressed = await api.ask("GET", `/v1/suppressions/check?email=${email}`);
  return [noted, body.email.recipients[0].status, suppressed.body.suppressed];
}

test("what was delivered bounces or is complained about; what has ended otherwise stays as it is", async () => {
  assert.deepEqual(await hear({ status: "delivered" }, BOUNCE), ["recorded", "bounced", true]);
  assert.deepEqual(await hear({ status: "delivered" }, COMPLAINT), ["recorded", "complained", true]);
  for (const status of ["failed", "expired", "canceled", "suppressed", "scheduled"]) {
    const shown = status === "scheduled" ? "queued" : status;
    assert.deepEqual(await hear({ status }, BOUNCE), ["not_sent", shown, false], status);
    assert.deepEqual(await hear({ status }, COMPLAINT), ["not_sent", shown, false], status);
  }
  assert.deepEqual(await hear({ status: "complained" }, BOUNCE), ["known", "complained", true]);
  assert.deepEqual(await hear({ status: "bounced" }, COMPLAINT), ["known", "bounced", false]);
});

test("a complaint about what was taken and came back later counts once: the address is suppressed, the state stays", async () => {
  const { world } = api;
  const { email, ...key } = await make({ status: "delivered" });
  await world.db.query("update recipient set delivered_at = now() where message_id = $1", [key.message_id]);
  const tell = (report: LateReport) => world.db.transaction((tx) => recordLateReport(tx, world, key, report));
  const full = {
    ...BOUNCE,
    bounce_type: "soft",
    enhanced_code: "5.2.2",
    class: "mailbox_full",
    suppress: false,
  } as const;
  assert.deepEqual([await tell(full), await tell(COMPLAINT), await tell(COMPLAINT)], ["recorded", "recorded", "known"]);
  const { status, recipients } = (await api.ask("GET", `/v1/emails/${key.message_id}`)).body.email;
  assert.deepEqual([status, recipients[0].status, recipients[0].diag_code], ["bounced", "bounced", "5.2.2"]);
  const { events } = (await api.ask("GET", `/v1/emails/${key.message_id}/events`)).body;
  assert.deepEqual(
    events.map(({ event_type }: { event_type: string }) => event_type),
    ["queued", "bounced", "complained"],
  );
  const { entry } = (await api.ask("GET", `/v1/suppressions/check?email=${email}`)).body;
  assert.equal(entry?.reason, "complaint");
});

test("mail that waits is moved only when a server may have it, and never out of a node's hands", async () => {
  for (const status of ["queued", "deferred"]) {
    assert.deepEqual(await hear({ status, owner: null }, BOUNCE), ["not_sent", status, false]);
    assert.deepEqual(await hear({ status, owner: 7 }, BOUNCE), ["in_flight", status, false]);
    assert.deepEqual(await hear({ status, owner: 7, ambiguous: true }, COMPLAINT), ["in_flight", status, false]);
    assert.deepEqual(await hear({ status, owner: null, ambiguous: true }, BOUNCE), ["recorded", "bounced", true]);
    assert.deepEqual(await hear({ status, owner: null, ambiguous: true }, COMPLAINT), ["recorded", "complained", true]);
  }
  const left = await api.world.db.query<{ owner: number }>("select owner from delivery where org_id = $1", [
    api.org_id,
  ]);
  assert.ok(left.every(({ owner }) => owner === null || owner === 7) && left.length === 6, JSON.stringify(left));
});

test("a warning changes no state, and nothing is recorded for test mail or for what is gone", async () => {
  assert.deepEqual(await hear({ status: "delivered" }, WARNING), ["recorded", "delivered", false]);
  assert.deepEqual(await hear({ status: "bounced" }, WARNING), ["known", "bounced", false]);
  assert.deepEqual(await hear({ status: "queued", owner: 7 }, WARNING), ["not_sent", "queued", false]);
  assert.deepEqual(await hear({ status: "delivered", environment: "test" }, BOUNCE), ["not_sent", "delivered", false]);
  const gone = { org_id: api.org_id, message_id: api.world.random.uuid(), position: 0 };
  assert.equal(await api.world.db.transaction((tx) => recordLateReport(tx, api.world, gone, BOUNCE)), "gone");
});

test("people behind masked addresses and notices of our own are in no customer's list of suppressions", async () => {
  for (const origin of ["masked", "system"]) {
    assert.deepEqual(await hear({ status: "delivered", origin }, BOUNCE), ["recorded", "bounced", false], origin);
    assert.deepEqual(await hear({ status: "delivered", origin }, COMPLAINT), ["recorded", "complained", false], origin);
  }
});
