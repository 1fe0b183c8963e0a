// Large bodies of sent mail are kept as long as a message needs them, and none is left behind: by days that went, by mail
// that was never accepted, by forwards that outlived what they are of, by crashes.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { byClock, type MovedClock, standingClock } from "../../../test/support/moved-clock.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { dropExpiredPartitions, withPartitions } from "../../platform/database/partitions.ts";
import { BlobsUnavailable } from "../../platform/storage/blobs.ts";
import { sweepBlobs } from "../background.ts";
import { keepBlobs } from "./blob-references.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const BODY_DAYS = 36;
const LARGE = "x".repeat(300_000);

let dns: DnsServer;
let api: TestApi;
let clock: MovedClock;

before(async () => {
  dns = await startDnsServer();
  clock = standingClock("2026-05-04T10:00:00Z");
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_RETENTION_INBOUND_DAYS: "10" }, byClock(clock));
  await addVerifiedDomain(api, dns, "sender.example");
});

after(async () => {
  await api?.close();
  await dns?.stop();
});

/** Each test begins with an empty store. */
afterEach(async () => {
  await pass((BODY_DAYS + 3) * DAY_MS);
  assert.deepEqual(await references(), []);
});

/** Time goes by, with what the clock role does in it. */
async function pass(ms: number): Promise<void> {
  clock.move(ms);
  await dropExpiredPartitions(api.world, api.config.retention_days);
  while ((await sweepBlobs(api.world)) > 0);
}

const references = () =>
  api.world.db.query<{ blob_key: string; sent_state: string | null }>(
    "select blob_key, sent_state from blob_reference",
  );
const exists = (key: string) => api.world.blobs.exists(key);

function send(options: { key?: string } = {}) {
  const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject: "x", text_body: LARGE };
  return api.ask("POST", "/v1/send", mail, options);
}

async function blobOf(id: string): Promise<string> {
  const [row] = await api.world.db.query<{ blob_key: string }>("select blob_key from message_body where id = $1", [id]);
  return String(row?.blob_key);
}

/** A stored message with this body, as accepting one leaves it. */
async function storeMessage(content: Buffer, sent_state?: "accepting") {
  const owner = { org_id: api.org_id, owner_id: api.world.random.uuid() };
  const [key] = await keepBlobs(api.world, sent_state ? { ...owner, sent_state } : owner, [content]);
  await withPartitions(api.world, () =>
    api.world.db.query("insert into message_body (org_id, id, blob_key) values ($1, $2, $3)", [
      api.org_id,
      owner.owner_id,
      key,
    ]),
  );
  return String(key);
}

for (const kind of ["live_key", "test_key"] as const) {
  test(`the body of a mail sent with the ${kind} stays as long as its day, and goes with it`, async () => {
    const { status, body } = await send({ key: api[kind] });
    assert.equal(status, 202);
    const key = await blobOf(body.id);
    await pass(2 * HOUR_MS);
    assert.deepEqual(await references(), [{ blob_key: key, sent_state: "accepted" }]);
    await pass((BODY_DAYS - 1) * DAY_MS);
    assert.equal(await exists(key), true, "the mail is still stored");
    await pass(4 * DAY_MS);
    assert.equal(await exists(key), false);
  });
}

test("a mail that was refused, or whose process died before it was accepted, leaves nothing", async (t) => {
  const full = Object.assign(new Error("the window is full"), { constraint: "allowance_not_exceeded" });
  const { execute } = api.world.db;
  const refusing = t.mock.method(api.world.db, "execute", (text: string, values?: readonly unknown[]) =>
    text.includes("insert into message ") ? Promise.reject(full) : execute(text, values),
  );
  assert.equal((await send()).status, 503);
  refusing.mock.restore();
  const { body } = await send();
  const died = { org_id: api.org_id, owner_id: api.world.random.uuid(), sent_state: "accepting" } as const;
  const [left] = await keepBlobs(api.world, died, [Buffer.from("never accepted")]);
  assert.equal((await references()).length, 3);
  await pass(HOUR_MS / 2);
  assert.equal(await exists(left as string), true, "it may be under way");
  await pass(HOUR_MS);
  assert.equal(await exists(left as string), false);
  const key = await blobOf(body.id);
  assert.deepEqual(await references(), [{ blob_key: key, sent_state: "accepted" }]);
  assert.equal(await exists(key), true);
  const late = [died.org_id, died.owner_id, left];
  const accept = api.world.db.query("insert into message_body (org_id, id, blob_key) values ($1, $2, $3)", late);
  await assert.rejects(accept, /message_body/, "what comes later than that is not accepted");
});

test("a body that two messages have goes with the last of them", async () => {
  const content = Buffer.from("the same twice");
  const key = await storeMessage(content, "accepting");
  await pass(20 * DAY_MS);
  await storeMessage(content, "accepting");
  await pass(20 * DAY_MS);
  assert.equal(await exists(key), true, "the second needs it");
  await pass(20 * DAY_MS);
  assert.equal(await exists(key), false);
});

test("a forward keeps its body when received mail is kept for a shorter time, and then it goes", async () => {
  const key = await storeMessage(Buffer.from("forwarded"));
  await pass(13 * DAY_MS);
  assert.deepEqual(await references(), [{ blob_key: key, sent_state: "accepted" }]);
  assert.equal(await exists(key), true);
  await pass(28 * DAY_MS);
  assert.equal(await exists(key), false);
});

test("what was let go of and not deleted, for a crash or for the store, is deleted later on", async (t) => {
  const owner = { org_id: api.org_id, owner_id: api.world.random.uuid() };
  const keys = await keepBlobs(api.world, owner, [Buffer.from("one"), Buffer.from("two")]);
  const failing = t.mock.method(api.world.blobs, "delete", async () => {
    throw new BlobsUnavailable("the store fails");
  });
  await assert.rejects(pass(13 * DAY_MS), /the store fails/);
  assert.equal(failing.mock.callCount(), 2, "one that fails does not hold up the other");
  assert.equal((await references()).length, 2);
  failing.mock.restore();
  await pass(60_000);
  assert.deepEqual([await exists(keys[0] as string), await exists(keys[1] as string)], [false, false]);
  assert.deepEqual(await references(), []);
});
