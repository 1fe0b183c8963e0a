// Idempotency-Key: the answer is committed with the message, so a repeated request is answered again and
// nothing is sent twice, whatever happens between.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Tx } from "../../src/platform/database/db.ts";
import { type Answer, otherProcess } from "../support/api.ts";
import { until } from "../support/until.ts";
import { GOOD, type SendingApi, sendingApi } from "./sender.ts";

const HOUR_MS = 3_600_000;

let api: SendingApi;

before(async () => {
  api = await sendingApi();
});

after(async () => {
  await api?.close();
});

const sendOnce = (key: string, change: Record<string, unknown> = {}, as?: string): Promise<Answer> =>
  api.send(change, { headers: { "idempotency-key": key }, ...(as === undefined ? {} : { key: as }) });

async function total(): Promise<number> {
  return (await api.ask("GET", "/v1/emails?limit=1")).body.total;
}

async function templates(): Promise<number> {
  return (await api.ask("GET", "/v1/templates?limit=1")).body.total;
}

/** How many statements wait for a lock on the keys' table. */
async function waiting(tx: Tx): Promise<number> {
  const rows = await tx.query("select 1 from pg_locks where relation = 'idempotency'::regclass and not granted");
  return rows.length;
}

function replayed({ headers }: Answer): boolean {
  return headers["idempotent-replayed"] === "true";
}

describe("an Idempotency-Key", () => {
  it("gives the stored answer, byte for byte, and says so", async () => {
    const before = await total();
    const first = await sendOnce("k1");
    const second = await sendOnce("k1");
    assert.deepEqual([first.status, second.status], [202, 202]);
    assert.deepEqual([replayed(first), replayed(second)], [false, true]);
    assert.deepEqual(second.body, first.body);
    assert.equal(await total(), before + 1);
  });

  it("with another body is 409 idempotency_conflict", async () => {
    await sendOnce("k2");
    const { status, body } = await sendOnce("k2", { subject: "Other" });
    assert.deepEqual([status, body.code, body.field], [409, "idempotency_conflict", "Idempotency-Key"]);
  });

  it("with the same body at another endpoint is 409 too, whichever came first", async () => {
    const headers = { "idempotency-key": "k2-batch" };
    assert.equal((await sendOnce("k2-send")).status, 202);
    assert.equal((await api.ask("POST", "/v1/send/batch", [GOOD], { headers })).status, 202);
    const asBatch = await api.ask("POST", "/v1/send/batch", GOOD, { headers: { "idempotency-key": "k2-send" } });
    assert.deepEqual([asBatch.status, asBatch.body.code, replayed(asBatch)], [409, "idempotency_conflict", false]);
    const asSend = await sendOnce("k2-batch");
    assert.deepEqual([asSend.status, asSend.body.code], [409, "idempotency_conflict"]);
  });

  it("with an operation that creates something else is 409 too, whichever came first, until it is forgotten", async () => {
    const template = { name: "Welcome", slug: "welcome", subject: "s", text_body: "t" };
    const create = (key: string) => api.ask("POST", "/v1/templates", template, { headers: { "idempotency-key": key } });
    const batch = (key: string) => api.ask("POST", "/v1/send/batch", [GOOD], { headers: { "idempotency-key": key } });
    assert.equal((await sendOnce("k2-sent")).status, 202);
    assert.equal((await batch("k2-batched")).status, 202);
    for (const key of ["k2-sent", "k2-batched"]) {
      const late = await create(key);
      assert.deepEqual(
        [late.status, late.body.code, late.body.field],
        [409, "idempotency_conflict", "Idempotency-Key"],
      );
    }
    assert.equal((await create("k2-made")).status, 201);
    const before = await total();
    for (const late of [await sendOnce("k2-made"), await batch("k2-made")]) {
      assert.deepEqual(
        [late.status, late.body.code, late.body.field],
        [409, "idempotency_conflict", "Idempotency-Key"],
      );
    }
    assert.equal(await total(), before, "nothing is sent");
    const forgotten = new Date(api.world.clock.now() - 72 * HOUR_MS);
    for (const table of ["idempotency", "idempotent_create"]) {
      await api.world.db.execute(`update ${table} set created_at = $1 where key like 'k2-%'`, [forgotten]);
    }
    assert.equal((await sendOnce("k2-made")).status, 202);
    assert.deepEqual((await create("k2-sent")).body.code, "already_exists", "the slug, not the key");
  });

  it("is had by one of mail and something else that come at the same time", async () => {
    const ask = (path: string, body: unknown, key: string) =>
      api.ask("POST", path, body, { headers: { "idempotency-key": key } });
    const mails = { "/v1/send": GOOD, "/v1/send/batch": [GOOD] };
    for (const [path, body] of Object.entries(mails)) {
      const before = [await total(), await templates()];
      let both: Promise<Answer[]> | undefined;
      // Both have looked the key up, and neither has written anything yet.
      await api.world.db.transaction(async (tx) => {
        await tx.execute("lock table idempotency in share mode");
        const create = { name: "n", slug: `at-once${path.length}`, subject: "s", text_body: "t" };
        const requests = [ask(path, body, `both ${path}`), ask("/v1/templates", create, `both ${path}`)];
        both = Promise.all(requests);
        const all = until("both wait", async () => (await waiting(tx)) === 2).catch(() => undefined);
        await Promise.race([requests[1], all]);
        await until("the mail waits", async () => (await waiting(tx)) > 0);
      });
      const answers = await (both as Promise<Answer[]>);
      const refused = answers.filter(({ status }) => status === 409);
      assert.deepEqual(
        refused.map((answer) => [answer.body.code, answer.body.field]),
        [["idempotency_conflict", "Idempotency-Key"]],
        JSON.stringify(answers.map((answer) => answer.body)),
      );
      const made = (await total()) - before[0]! + (await templates()) - before[1]!;
      assert.equal(made, 1, path);
    }
  });

  it("that something else had and gave back, being refused, is free for mail", async () => {
    const headers = { "idempotency-key": "given back" };
    const template = { name: "n", slug: "n-n", subject: "{{", text_body: "t" };
    assert.equal((await api.ask("POST", "/v1/templates", template, { headers })).status, 400);
    assert.equal((await sendOnce("given back")).status, 202);
  });

  it("makes one e-mail of fifty requests at a time", async () => {
    const before = await total();
    const answers = await Promise.all(Array.from({ length: 50 }, () => sendOnce("k3")));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202]);
    assert.equal(new Set(answers.map(({ body }) => body.message_id)).size, 1);
    assert.equal(answers.filter(replayed).length, 49);
    assert.equal(await total(), before + 1);
  });

  it("makes one e-mail of fifty requests of two processes", async () => {
    // Two servers over one database: what one process remembers cannot decide.
    const other = await otherProcess(api.world);
    try {
      const askOther = () =>
        other.app.inject({
          method: "POST",
          url: "/v1/send",
          headers: {
            authorization: `Bearer ${api.live_key}`,
            "content-type": "application/json",
            "idempotency-key": "k4",
          },
          payload: JSON.stringify(GOOD),
        });
      const before = await total();
      const turns = Array.from({ length: 25 }, () => [
        sendOnce("k4"),
        askOther().then((r) => ({ status: r.statusCode, body: r.json() })),
      ]);
      const answers = await Promise.all(turns.flat());
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202]);
      assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
      assert.equal(await total(), before + 1);
    } finally {
      await other.stop();
    }
  });

  it("belongs to its organization", async () => {
    const stranger = await api.organization();
    const mine = await sendOnce("k5");
    const { status, body } = await sendOnce("k5", {}, stranger.live_key);
    assert.deepEqual([status, body.code], [403, "domain_not_owned"]);
    assert.equal(mine.status, 202);
  });

  it("belongs to its environment", async () => {
    const live = await sendOnce("k6");
    const test = await sendOnce("k6", {}, api.test_key);
    assert.deepEqual([live.body.status, test.body.status, replayed(test)], ["queued", "simulated", false]);
    assert.equal(replayed(await sendOnce("k6", {}, api.test_key)), true);
  });

  it("of a refused request is free again", async () => {
    assert.equal((await sendOnce("k7", { to: ["nobody"] })).status, 400);
    assert.equal((await sendOnce("k7", { from: "a@stranger.example" })).status, 403);
    const { status } = await sendOnce("k7");
    assert.equal(status, 202);
  });

  it("gives the stored answer also where the request would be refused now, and counts nothing", async () => {
    const to = ["left@recipients.example"];
    const first = await sendOnce("k9", { to });
    const batch = () =>
      api.ask("POST", "/v1/send/batch", [{ ...GOOD, to }], { headers: { "idempotency-key": "k9-b" } });
    const firstBatch = await batch();
    assert.deepEqual([first.status, firstBatch.status], [202, 202]);
    await api.ask("POST", "/v1/suppressions", { email: to[0] });
    const [domain] = (await api.ask("GET", "/v1/domains")).body.domains;
    const suppressed = async (): Promise<number> =>
      (await api.ask("GET", `/v1/domains/${domain.id}/stats`)).body.metrics.total_suppressed;
    const before = await suppressed();
    assert.deepEqual((await sendOnce("k9", { to })).body, first.body);
    assert.deepEqual((await batch()).body, firstBatch.body);
    assert.equal((await sendOnce("k9", { to, subject: "Other" })).status, 409);
    assert.equal(await suppressed(), before);
    assert.equal((await sendOnce("k10", { to })).status, 422);
    assert.equal(await suppressed(), before + 1);
  });

  it("may have 1 to 256 printable characters", async () => {
    assert.equal((await sendOnce("x".repeat(256))).status, 202);
    assert.equal((await sendOnce("~ !")).status, 202);
    for (const key of ["", "x".repeat(257), "ä", "a\tb"]) {
      const { status, body } = await sendOnce(key);
      assert.deepEqual(
        [status, body.code, body.field],
        [400, "validation_error", "Idempotency-Key"],
        JSON.stringify(key),
      );
    }
  });

  it("is remembered for 72 hours, no shorter and no longer", async () => {
    const first = await sendOnce("k8");
    api.advance(72 * HOUR_MS - 60_000);
    assert.equal((await sendOnce("k8")).body.id, first.body.id);
    api.advance(61_000);
    const later = await sendOnce("k8", { subject: "Other" });
    assert.equal(later.status, 202);
    assert.notEqual(later.body.id, first.body.id);
  });
});
