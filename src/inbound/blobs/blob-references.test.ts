// Blobs that mails share: kept while anybody needs them, gone with the last, and past their time; and no race loses one.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { fixedClock } from "../../platform/clock.ts";
import { uuidFloor } from "../../platform/random.ts";
import { sweepBlobs } from "../background.ts";
import { collectBlobs, keepBlobs, releaseBlobs } from "./blob-references.ts";

let api: TestApi;
const DAY_MS = 86_400_000;

before(async () => {
  api = await testApi();
});
after(() => api.close());

const keyOf = (content: Buffer) => createHash("sha256").update(content).digest("hex");
const owner = (org_id = api.org_id) => ({ org_id, owner_id: api.world.random.uuid() });
const release = async ({ org_id, owner_id }: { org_id: string; owner_id: string }) =>
  collectBlobs(api.world, await api.world.db.asOrg(org_id, (tx) => releaseBlobs(tx, org_id, owner_id)));

test("a blob is kept once for all who need it, over organizations, and goes with the last", async () => {
  const other = await api.organization();
  const content = Buffer.from("shared by three");
  const owners = [owner(), owner(), owner(other.org_id)];
  for (const one of owners)
    assert.deepEqual(await keepBlobs(api.world, one, [content, content]), [keyOf(content), keyOf(content)]);
  for (const one of owners) {
    assert.equal(await api.world.blobs.exists(keyOf(content)), true);
    await release(one);
  }
  assert.equal(await api.world.blobs.exists(keyOf(content)), false);
});

test("a blob that a sent message needs too is not deleted", async () => {
  const content = Buffer.from("sent and received");
  const one = owner();
  await keepBlobs(api.world, one, [content]);
  const id = api.world.random.uuid();
  await api.world.db.query("insert into message_body (org_id, id, blob_key) values ($1, $2, $3)", [
    api.org_id,
    id,
    keyOf(content),
  ]);
  await release(one);
  assert.equal(await api.world.blobs.exists(keyOf(content)), true);
});

test("a blob that is kept while another lets go of it is there afterwards, whoever comes first", async () => {
  const content = Buffer.from("contended");
  let holder = owner();
  await keepBlobs(api.world, holder, [content]);
  for (let round = 0; round < 40; round += 1) {
    const next = owner();
    await Promise.all([release(holder), keepBlobs(api.world, next, [content])]);
    assert.equal(await api.world.blobs.exists(keyOf(content)), true, `round ${round}`);
    holder = next;
  }
});

test("what is past the retention of received mail is swept, newer mail keeps its blobs", async () => {
  const now = Date.now();
  const kept = api.config.retention_days.inbound;
  const old = { org_id: api.org_id, owner_id: uuidFloor(now - (kept + 2) * DAY_MS - 1) };
  // Mail that came early in a day can be read until that whole day goes.
  const fresh = { org_id: api.org_id, owner_id: uuidFloor(now - (kept + 2) * DAY_MS + 60_000) };
  const [both, alone] = [Buffer.from("old and new"), Buffer.from("old alone")];
  await keepBlobs(api.world, old, [both, alone]);
  await keepBlobs(api.world, fresh, [both]);
  assert.equal(await sweepBlobs({ ...api.world, clock: fixedClock(now) }), 2);
  assert.deepEqual(
    [await api.world.blobs.exists(keyOf(both)), await api.world.blobs.exists(keyOf(alone))],
    [true, false],
  );
  assert.equal(await sweepBlobs({ ...api.world, clock: fixedClock(now) }), 0);
});
