// When sending may begin and go on: never for want of an answer, nor from a database that went back under it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { until } from "../../../test/support/until.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { startRoles } from "../../app.ts";
import * as queries from "../queries.ts";
import type { Mark } from "../types.ts";
import { guardSending, resumeSending } from "./guard.ts";

const KEY = "0123456789abcdef".repeat(4);
const ID = "11111111-1111-4111-8111-111111111111";
const dir = mkdtempSync(join(tmpdir(), "postern-guard-"));
after(() => rmSync(dir, { recursive: true, force: true }));

/** A world whose database refuses to say which cluster it is, for the reason with this code. */
function worldOf(code: string, data_dir = dir) {
  const refuse = Object.assign(new Error("no answer"), { code });
  const query = async (text: string) => {
    if (text.includes("pg_control_system")) throw refuse;
    return [
      {
        id: ID,
        identity: "unknown",
        database_identity: null,
        beats: 1,
        paused_at: null,
        reason: null,
        base_urls: [],
        ignored_urls: [],
      },
    ];
  };
  const quiet = () => undefined;
  return {
    db: { query, execute: async () => 1 },
    clock: { monotonic: () => 0 },
    config: { database_url: "postgres://elsewhere", data_dir, base_url: "http://127.0.0.1:9" },
    seal: { hash: () => Buffer.alloc(32) },
    random: { uuid: () => ID },
    log: { error: quiet, info: quiet, warn: quiet },
    metrics: { gauge: () => ({ set: quiet }) },
  } as unknown as Parameters<typeof guardSending>[0];
}

async function startUnder(world: Parameters<typeof guardSending>[0]): Promise<boolean> {
  let started = false;
  const { stop } = await guardSending(world, async () => {
    started = true;
    return async () => undefined;
  });
  await stop();
  return started;
}

it("begins where the provider lets nobody ask which cluster it is", async () => {
  for (const code of ["42501", "42883"]) assert.equal(await startUnder(worldOf(code)), true, code);
});

it("does not begin because the connection was lost while it asked", async () => {
  for (const code of ["57P01", "ECONNRESET", "08006"]) {
    await assert.rejects(startUnder(worldOf(code)), /no answer/, code);
  }
});

it("does not begin because its own mark cannot be read", async () => {
  const broken = join(dir, "broken");
  mkdirSync(join(broken, `sending-${ID}.mark`), { recursive: true });
  await assert.rejects(startUnder(worldOf("42501", broken)), /EISDIR/);
});

describe("in a database of its own, sending", () => {
  let api: TestApi;
  let dns: DnsServer;
  let folder: string;
  let stop: (() => Promise<void>) | null = null;
  /** What was asked of the engine, in order. */
  let noted: string[] = [];
  let mark: Mark | null = null;

  before(async () => {
    dns = await startDnsServer();
    const base = {
      POSTERN_BASE_URL: "http://127.0.0.1:9",
      POSTERN_HTTP: "127.0.0.1:0",
      POSTERN_INTERNAL: "127.0.0.1:0",
    };
    api = await testApi({ POSTERN_DNS: dns.address, POSTERN_MASTER_KEY: KEY, ...base });
    api.config.database_url = api.database_url;
    await addVerifiedDomain(api, dns, "sender.example");
  });

  after(async () => {
    await api?.close();
    await dns?.stop();
  });

  beforeEach(async () => {
    await api.world.db.query("delete from sending_guard");
    folder = mkdtempSync(join(dir, "folder-"));
    noted = [];
  });

  afterEach(async () => {
    await stop?.();
    stop = null;
  });

  async function run(config = api.config): Promise<string[]> {
    const world = { ...api.world, config: { ...config, data_dir: folder } };
    const guarded = await guardSending(world, async (seen) => {
      mark = seen;
      noted.push("begins");
      return async () => void noted.push("ends");
    });
    stop = guarded.stop;
    return noted;
  }

  async function runOnce(config = api.config): Promise<string[]> {
    noted = [];
    await run(config);
    await stop?.();
    stop = null;
    return noted;
  }

  const guard = async () => (await api.world.db.query("select id, beats, paused_at, reason from sending_guard"))[0];
  const setBeats = (beats: number) => api.world.db.query("update sending_guard set beats = $1", [beats]);
  const marks = () =>
    Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]));

  it("begins again after a restart, and not when the database is behind the folder's mark of it", async () => {
    assert.deepEqual(await runOnce(), ["begins", "ends"]);
    assert.deepEqual(await runOnce(), ["begins", "ends"]);
    await setBeats(1);
    assert.deepEqual(await runOnce(), []);
    assert.match(String((await guard())?.reason), /behind/);
    assert.match(Object.values(marks())[0] ?? "", /^2 /, "what the folder remembers is not lowered");
  });

  it("begins where an older version noted the same cluster, and notes the rest", async () => {
    await runOnce();
    const noted = async () =>
      (await api.world.db.query("select database_identity from sending_guard"))[0]?.database_identity;
    const own = String(await noted());
    for (const [identity, expected] of [
      [`${own.split(":")[0]}/1/77/1700000000/78`, ["begins", "ends"]],
      ["8/1", []],
    ] as const) {
      await api.world.db.query("update sending_guard set database_identity = null, identity = $1", [identity]);
      assert.deepEqual(await runOnce(), expected, identity);
      assert.equal(await noted(), own);
    }
  });

  it("does not begin in a database of another identity: a dump that was restored", async () => {
    await runOnce();
    await api.world.db.query("update sending_guard set database_identity = database_identity || '1'");
    assert.deepEqual(await runOnce(), []);
    assert.match(String((await guard())?.reason), /another database than the one its queue was written in/);
  });

  it("counts what is sent: nothing while it only runs, and the last of it when it ends", async () => {
    await run();
    const begun = await guard();
    mark?.sending();
    await until("it is counted", async () => Number((await guard())?.beats) > Number(begun?.beats));
    mark?.sending();
    await stop?.();
    stop = null;
    const ended = await guard();
    assert.equal(Object.keys(marks()).length, 1);
    assert.match(Object.keys(marks())[0] ?? "", new RegExp(`-${ended?.beats}\\.mark$`));
    assert.equal(Number(ended?.beats) - Number(begun?.beats), 2);
  });

  describe("that left mail before", () => {
    const sent = "update sending_guard set sent_at = now()";
    const otherFolder = () => {
      folder = mkdtempSync(join(dir, "other-"));
    };
    const setBase = (base: string) => api.world.db.query("update sending_guard set base_urls = array[$1]", [base]);

    beforeEach(async () => {
      await runOnce();
      await api.world.db.query(sent);
    });

    it("goes on from another machine that has never sent from it: one that joins, or follows a failover", async () => {
      otherFolder();
      assert.deepEqual(await runOnce(), ["begins", "ends"]);
    });

    it("does not begin on a machine of another host name that has never sent from it: a staging copy", async () => {
      await api.world.db.query("update sending_guard set host_name = 'mail.original.example'");
      otherFolder();
      assert.deepEqual(await runOnce(), []);
      assert.match(String((await guard())?.reason), /as mail\.original\.example, and this machine/);
      assert.equal(await resumeSending(api.world), true);
      assert.deepEqual(await runOnce(), ["begins", "ends"], "it was confirmed");
    });

    it("goes on under another host name on the machine that has sent from it", async () => {
      await api.world.db.query("update sending_guard set host_name = 'mail.original.example'");
      assert.deepEqual(await runOnce(), ["begins", "ends"]);
    });

    it("does not begin where it was recovered to a point in time, on a machine that has never sent from it", async () => {
      await api.world.db.query("update sending_guard set recovered_to = 'recovery_target_time=2026-11-23'");
      assert.deepEqual(await runOnce(), ["begins", "ends"], "this machine's marks go on");
      await api.world.db.query("update sending_guard set recovered_to = 'recovery_target_time=2026-11-23'");
      otherFolder();
      assert.deepEqual(await runOnce(), []);
    });

    it("does not begin in a copy of an embedded database's folder, and goes on in the folder itself", async () => {
      const embedded = { ...api.config, database_url: null };
      assert.deepEqual(await runOnce(embedded), ["begins", "ends"]);
      const copy = `${folder}-copy`;
      execFileSync("cp", ["-a", folder, copy]);
      folder = copy;
      assert.deepEqual(await runOnce(embedded), []);
      assert.match(String((await guard())?.reason), /files of the embedded database were copied/);
      assert.equal(await resumeSending(api.world), true);
      for (let times = 0; times < 2; times += 1) assert.deepEqual(await runOnce(embedded), ["begins", "ends"]);
    });

    it("goes on where another process of this database answers at its address", async () => {
      const server = await startRoles(api.world, ["api"]);
      await setBase(String(server.address));
      try {
        assert.deepEqual(await runOnce(), ["begins", "ends"]);
      } finally {
        await server.stop();
      }
    });

    it("does not begin where the original answers for another database, however alike this one is", async () => {
      const original = await testApi({
        POSTERN_MASTER_KEY: KEY,
        POSTERN_HTTP: "127.0.0.1:0",
        POSTERN_INTERNAL: "127.0.0.1:0",
      });
      const server = await startRoles(original.world, ["api"]);
      const [row] = await api.world.db.query("select id from sending_guard");
      await original.world.db.query("insert into sending_guard (identity, id) values ('unknown', $1)", [row?.id]);
      await setBase(String(server.address));
      try {
        assert.deepEqual(await runOnce(), []);
        assert.match(String((await guard())?.reason), /another database under this one's identity is in use at http/);
        const blind = await fetch(`${server.address}/sending-witness?nonce=1&proof=2`);
        assert.equal(blind.status, 404, "nobody else learns anything");
        await resumeSending(api.world);
        await api.world.db.query(sent);
        await setBase(String(server.address));
        assert.deepEqual(await runOnce(), ["begins", "ends"], "the operator has the last word");
        await api.world.db.query("update sending_guard set ignored_urls = '{}'");
        await original.world.db.query("update sending_guard set paused_at = now()");
        assert.deepEqual(await runOnce(), ["begins", "ends"], "the other one is the one that sends nothing");
      } finally {
        await server.stop();
        await original.close();
      }
    });
  });

  it("begins in a new database, whatever the folder remembers of the one before it", async () => {
    for (let times = 0; times < 3; times += 1) await runOnce();
    await api.world.db.query("delete from sending_guard");
    assert.deepEqual(await runOnce(), ["begins", "ends"]);
  });

  it("goes on in two databases that share a folder", async () => {
    const ids = ["22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"];
    const beats = [0, 50];
    for (let turn = 0; turn < 4; turn += 1) {
      const n = turn % 2;
      await api.world.db.query("delete from sending_guard");
      const row = [ids[n], "unknown", beats[n]];
      await api.world.db.query("insert into sending_guard (id, identity, beats) values ($1, $2, $3)", row);
      assert.deepEqual(await runOnce(), ["begins", "ends"], `turn ${turn}`);
      beats[n] = Number((await guard())?.beats);
    }
    assert.equal(Object.keys(marks()).length, 2);
  });

  it("ends when the database goes back under it, and begins again once that was confirmed", async () => {
    await run();
    const before = marks();
    await setBeats(0);
    await until("it has ended", () => noted.includes("ends"));
    await until("the database says so", async () => (await guard())?.paused_at !== null);
    assert.deepEqual(marks(), before, "the mark is not lowered");
    assert.match(await api.world.metrics.text(), /^postern_sending_paused 1$/m);
    assert.equal(await resumeSending(api.world), true);
    await until("it has begun again", () => noted.length === 3);
    assert.deepEqual(noted, ["begins", "ends", "begins"]);
    assert.match(await api.world.metrics.text(), /^postern_sending_paused 0$/m);
  });

  it("gives what waited in the pause a day from the moment it was confirmed, but where its sender set the time", async () => {
    const { clock, db } = api.world;
    const hour = 3_600_000;
    const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject: "x", text_body: "x" };
    const own = { ...mail, expires_at: new Date(clock.now() + hour).toISOString() };
    const ids = [];
    for (const one of [mail, mail, own]) ids.push((await api.ask("POST", "/v1/send", one)).body.id);
    await db.query("update delivery set expires_at = $2 where message_id = any($1)", [
      ids,
      new Date(clock.now() - hour),
    ]);
    await db.query("update delivery set owner = 77 where message_id = $1", [ids[1]]);
    await db.query("insert into sending_guard (identity, paused_at) values ('unknown', now())");
    const at = clock.now();
    await resumeSending(api.world);
    const leftHours = async (id: string) => {
      const [row] = await db.query<{ expires_at: Date }>("select expires_at from delivery where message_id = $1", [id]);
      return Math.round((Number(row?.expires_at) - at) / hour);
    };
    assert.deepEqual(await Promise.all(ids.map(leftHours)), [24, 24, -1]);
    await db.query("delete from delivery where message_id = any($1)", [ids]);
  });

  it("begins again where another process saw it first and it was confirmed already", async () => {
    await run();
    await api.world.db.query("update sending_guard set paused_at = now(), reason = 'seen elsewhere'");
    await resumeSending(api.world);
    await until("it has begun again", () => noted.length === 3);
  });

  it("claims nothing in the meantime: each claim looks for itself", async () => {
    await run();
    const mail = { from: "a@sender.example", to: ["b@recipient.example"], subject: "x", text_body: "x" };
    const { body } = await api.ask("POST", "/v1/send", mail);
    const [row] = await api.world.db.query<{ id: number; source_id: string; slot: number }>(
      "select l.id, l.source_id, l.slot from delivery d join lane l on l.id = d.lane_id where d.message_id = $1",
      [body.id],
    );
    const lane = row as NonNullable<typeof row>;
    const soon = new Date(api.world.clock.now() + 60_000);
    const late = { now: new Date(soon.getTime() + 100 * 3_600_000), limit: 10, suspended: [] };
    const claim = () => queries.claimDue(api.world.db, 1, [{ id: lane.id, k: 5 }], { now: soon, mark });
    const expire = () => queries.claimExpired(api.world.db, 1, [lane], { ...late, mark });
    const { beats } = mark as Mark;
    await setBeats(beats - 1);
    assert.deepEqual([await claim(), await expire()], [[], []], "it went back");
    await setBeats(beats);
    await api.world.db.query("update sending_guard set paused_at = now()");
    assert.deepEqual([await claim(), await expire()], [[], []], "it is paused");
    await api.world.db.query("update sending_guard set paused_at = null, id = gen_random_uuid()");
    assert.deepEqual([await claim(), await expire()], [[], []], "it is another one");
    await api.world.db.query("update sending_guard set id = $1", [(mark as Mark).id]);
    const theirs = { ...late, mark, suspended: [api.org_id] };
    assert.deepEqual(await queries.claimExpired(api.world.db, 1, [lane], theirs), [], "it is suspended");
    assert.equal((await claim()).length, 1);
  });
});
