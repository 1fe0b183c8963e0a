// Commits whose answers are lost, in process: `npm run faults -- lost-commit` does it to whole processes under load.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { type Db, openDb } from "../../src/platform/database/db.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";
import { type CommitProxy, type Cut, startCommitProxy } from "./commit-proxy.ts";

let api: TestApi;
let dns: DnsServer;
let proxy: CommitProxy;
/** Past the proxy, and through it. */
let direct: Db;
let through: Db | undefined;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, (world) => {
    direct = world.db;
    // What is asked of the World's database goes through the proxy from the first request on.
    return { ...world, db: new Proxy(world.db, { get: (db, name: keyof Db) => (through ?? db)[name] }) };
  });
  await addVerifiedDomain(api, dns, "sender.example");
  const { searchParams, port } = new URL(api.database_url);
  proxy = await startCommitProxy({ url: api.database_url, socket_dir: searchParams.get("host"), port: Number(port) });
  through = openDb(proxy.url, { onError: () => undefined });
});

after(async () => {
  await through?.close();
  through = undefined;
  await proxy?.stop();
  await api?.close();
  await dns?.stop();
});

beforeEach(() => proxy.decide(() => null));

const ACCEPT = /insert into message\b/;

/** Cuts the next commit of such a statement, and none behind it. */
function cutNext(fate: Cut, of: RegExp): void {
  let isDone = false;
  proxy.decide((statement) => {
    if (isDone || !of.test(statement)) return null;
    isDone = true;
    return fate;
  });
}

async function send(key: string) {
  const body = { from: "a@sender.example", to: ["anna@recipient.example"], subject: key, text_body: "x" };
  return api.ask("POST", "/v1/send", body, { headers: { "idempotency-key": key } });
}

/** As careful clients do. */
async function sendUntilTaken(key: string) {
  for (let turn = 1; ; turn += 1) {
    const answer = await send(key);
    if (answer.status === 202) return { id: answer.body.id as string, turns: turn };
    assert.ok(answer.status === 503 && turn < 5, JSON.stringify(answer.body));
  }
}

/** As a client without Idempotency-Key, which cannot ask again without harm. */
function keyless(subject: string) {
  const body = { from: "a@sender.example", to: ["anna@recipient.example"], subject, text_body: "x" };
  return api.ask("POST", "/v1/send", body);
}

/** Keeps accepting statements from beginning, though not from being asked about; `free` lets them. */
async function holdUp(): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>();
  const freed = Promise.withResolvers<void>();
  const done = direct.transaction(async (tx) => {
    await tx.query("lock table allowance in share row exclusive mode");
    held.resolve();
    await freed.promise;
  });
  await Promise.race([held.promise, done]);
  return async () => {
    freed.resolve();
    await done;
  };
}

/** Accepting statements that the server has in hand. */
async function waiting(): Promise<number> {
  const rows = await direct.query(
    "select 1 from pg_stat_activity where datname = current_database() and state = 'active' and query ~ 'insert into message[ ]'",
  );
  return rows.length;
}

/** Ids that were taken because nobody had answered for them. */
async function settled(): Promise<number> {
  const sql = "select 1 from message_body b where not exists (select 1 from message m where m.id = b.id)";
  return (await direct.query(sql)).length;
}

async function rowsOf(subject: string): Promise<string[]> {
  const rows = await direct.query<{ id: string }>("select id from message where subject = $1", [subject]);
  return rows.map(({ id }) => id);
}

describe("a commit whose answer is lost", () => {
  it("does not double an e-mail: the ids that were chosen before tell that it is there", async () => {
    await sendUntilTaken("warm-up");
    const used = await quota();
    cutNext("answered", ACCEPT);
    const { id } = await sendUntilTaken("answered");
    assert.equal(proxy.cuts.answered, 1);
    assert.deepEqual(await rowsOf("answered"), [id]);
    assert.equal(await quota(), used + 1);
    assert.equal((await send("answered")).body.id, id);
  });

  it("does not lose one either, wherever the connection breaks", async () => {
    for (const fate of ["before", "sent", "answered"] as const) {
      for (let n = 0; n < 5; n += 1) {
        cutNext(fate, ACCEPT);
        const { id } = await sendUntilTaken(`${fate}-${n}`);
        assert.deepEqual(await rowsOf(`${fate}-${n}`), [id]);
      }
    }
    assert.ok(proxy.cuts.before >= 5 && proxy.cuts.sent >= 5, JSON.stringify(proxy.cuts));
  });

  it("tells the truth also while the server is still at it: what was answered 503 is never there", async () => {
    const free = await holdUp();
    cutNext("sent", ACCEPT);
    const asked = keyless("held up");
    await until("the statement waits for the lock", async () => (await waiting()) > 0);
    // Time enough to hear of the broken connection and to ask: the lock is in the way of the statement only.
    const answer = await Promise.race([asked, until("an answer", async () => (await settled()) > 0).then(() => null)]);
    await free();
    await until("the server is done with it", async () => (await waiting()) === 0);
    const { status } = answer ?? (await asked);
    assert.ok(status === 202 || status === 503, String(status));
    assert.equal((await rowsOf("held up")).length, status === 202 ? 1 : 0);
  });

  it("tells the truth to every request of the statement, in a batch too", async () => {
    for (const fate of ["before", "sent", "answered"] as const) {
      cutNext(fate, ACCEPT);
      const subjects = Array.from({ length: 6 }, (_, n) => `${fate} together ${n}`);
      const answers = await Promise.all(subjects.map((subject) => keyless(subject)));
      for (const [n, { status, body }] of answers.entries()) {
        assert.ok(status === 202 || status === 503, JSON.stringify(body));
        assert.deepEqual(await rowsOf(subjects[n] as string), status === 202 ? [body.id] : []);
      }
      assert.ok(fate !== "answered" || answers.every(({ status }) => status === 202));
    }
  });

  it("is really lost: without a key the client cannot know, and the proxy cut what it says", async () => {
    const before = proxy.cuts.before;
    cutNext("before", /update organization/);
    await assert.rejects(api.world.db.execute("update organization set name = 'cut' where id = $1", [api.org_id]));
    assert.equal(proxy.cuts.before, before + 1);
    const [kept] = await direct.query<{ name: string }>("select name from organization where id = $1", [api.org_id]);
    assert.notEqual(kept?.name, "cut");
    cutNext("answered", /update organization/);
    await assert.rejects(api.world.db.execute("update organization set name = 'done' where id = $1", [api.org_id]));
    const [done] = await direct.query<{ name: string }>("select name from organization where id = $1", [api.org_id]);
    assert.equal(done?.name, "done");
  });
});

async function quota(): Promise<number> {
  const [row] = await direct.query<{ used: number }>(
    "select sum(used)::int as used from allowance where kind = 'monthly_quota'",
  );
  return row?.used ?? 0;
}
