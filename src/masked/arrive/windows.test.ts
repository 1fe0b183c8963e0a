import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { isFree, takeFree, takeReply, windowCounter, windowCounterIn } from "./windows.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

async function newAlias(): Promise<{ org_id: string; id: string }> {
  const answer = await api.ask("POST", "/v1/masked/aliases", { forward_to: ["anna@real.example"] });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return { org_id: api.org_id, id: answer.body.alias.id };
}

/** A clock that stands in the middle of a day, so that no window ends while a test counts. */
function still() {
  const now = Math.floor(api.world.clock.now() / 86_400_000) * 86_400_000 + 43_230_000;
  return { db: api.world.db, clock: { ...api.world.clock, now: () => now } };
}

test("of many mails at once, in two processes, exactly as many pass as a minute allows", async () => {
  const [one, other] = [await newAlias(), await newAlias()];
  const counters = [windowCounter(still()), windowCounter(still())] as const;
  const alone = Array.from({ length: 5 }, () => counters[0](other, "forward_minute"));
  const crowd = Array.from({ length: 80 }, (_, n) => (n % 2 ? counters[0] : counters[1])(one, "forward_minute"));
  assert.equal((await Promise.all(crowd)).filter(Boolean).length, 30);
  assert.ok((await Promise.all(alone)).every(Boolean), "another alias has a window of its own");
  assert.equal(await counters[1](one, "forward_minute"), false);
});

const LIMITS = {
  ...{ replies_person_hour: 30, replies_person_day: 50, replies_hour: 70, replies_day: 100 },
  ...{ aliases_hour: 3, pattern_aliases: 1, aliases_day: 4 },
};

test("replies are counted by the hour, apart from what is forwarded", async () => {
  const alias = await newAlias();
  const isWithin = windowCounter(still());
  const leaving = { org_id: alias.org_id, alias, destination_id: null, isLive: true };
  for (let n = 0; n < 20; n += 1) assert.equal(await takeReply(isWithin, LIMITS, leaving), null, `reply ${n + 1}`);
  const over = { whose: "alias", type: "hourly", most: 20, span_ms: 3_600_000 };
  assert.deepEqual(await takeReply(isWithin, LIMITS, leaving), over);
  assert.equal(await isWithin(alias, "forward_minute"), true);
});

test("the limit that is met is named with whose it is, whichever it is", async () => {
  const alias = await newAlias();
  const leaving = { org_id: alias.org_id, alias, destination_id: (await newAlias()).id, isLive: true };
  const met = async (change: object) => {
    const over = await takeReply(windowCounter(still()), { ...LIMITS, ...change }, leaving);
    return [over?.whose, over?.type, over?.most];
  };
  assert.deepEqual(await met({ replies_person_hour: 0 }), ["mailbox", "hourly", 0]);
  assert.deepEqual(await met({ replies_person_day: 0 }), ["mailbox", "daily", 0]);
  assert.deepEqual(await met({ replies_hour: 0 }), ["organization", "hourly", 0]);
  assert.deepEqual(await met({ replies_day: 0 }), ["organization", "daily", 0]);
});

test("what is counted in a transaction that is rolled back was not counted, and of two the last place has one", async () => {
  const alias = await newAlias();
  const { db, clock } = still();
  const once = { org_id: alias.org_id, id: alias.id };
  const rolledBack = db.asOrg(alias.org_id, async (tx) => {
    assert.equal(await windowCounterIn(tx, { clock })(once, "key_notice_day"), true);
    throw new Error("no");
  });
  await assert.rejects(rolledBack, /no/);
  assert.equal(await isFree({ db, clock }, once, "key_notice_day"), true);
  const take = () => db.asOrg(alias.org_id, (tx) => takeFree({ clock }, tx, once, "key_notice_day"));
  const both = await Promise.allSettled([take(), take()]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  const failed = both.find(({ status }) => status === "rejected") as PromiseRejectedResult;
  assert.equal(failed.reason.name, "NotNow", "it is decided once more");
  assert.equal(await isFree({ db, clock }, once, "key_notice_day"), false);
});
