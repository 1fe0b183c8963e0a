import assert from "node:assert/strict";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { type TestDatabase, testDatabase } from "../../../test/support/database.ts";
import { until } from "../../../test/support/until.ts";
import {
  type Db,
  isDuplicate,
  isMissingValue,
  isRefusedBy,
  isUnavailable,
  isUnreached,
  openDb,
  whileUnavailable,
} from "./db.ts";

let database: TestDatabase;
let admin: pg.Client;
let db: Db;

before(async () => {
  database = await testDatabase();
  // In another database: the one under test refuses connections for a while.
  const url = new URL(database.admin_url);
  url.pathname = "/postgres";
  admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
  db = openDb(database.url, { onError: () => undefined });
});

after(async () => {
  await db?.close();
  await admin?.end();
  await database?.drop();
});

const nameOf = (url: string) => new URL(url).pathname.slice(1);

async function listeners(): Promise<number> {
  const { rows } = await admin.query(
    "select count(*)::int as n from pg_stat_activity where datname = $1 and query like 'listen %'",
    [nameOf(database.url)],
  );
  return rows[0].n;
}

describe("a row that a constraint refuses", () => {
  const failure = (code: string, message: string, constraint?: string) =>
    Object.assign(new Error(message), { code, ...(constraint ? { constraint } : {}) });

  it("is known by the constraint's name, which Citus says in words alone, with a shard's number where it is unique", () => {
    const unique = 'duplicate key value violates unique constraint "source_address';
    assert.equal(isDuplicate(failure("23505", `${unique}"`, "source_address"), "source_address"), true);
    assert.equal(isDuplicate(failure("23505", `${unique}_103671"`), "source_address"), true);
    assert.equal(isDuplicate(failure("23505", `${unique}_103671"`), "source"), false);
    assert.equal(isDuplicate(failure("23505", `${unique}"`, "source_address"), "source_pkey"), false);
    const check = 'new row for relation "allowance_105300" violates check constraint "allowance_not_exceeded"';
    assert.equal(isRefusedBy(failure("23514", check), "allowance_not_exceeded"), true);
    assert.equal(isRefusedBy(failure("23514", check), "allowance"), false);
    assert.equal(isRefusedBy(undefined, "allowance"), false);
    const missing = (table: string) =>
      `null value in column "lane_id" of relation "${table}" violates not-null constraint`;
    const fields = { table: "delivery", column: "lane_id" };
    assert.equal(
      isMissingValue(Object.assign(failure("23502", missing("delivery")), fields), "delivery", "lane_id"),
      true,
    );
    assert.equal(isMissingValue(failure("23502", missing("delivery_111225")), "delivery", "lane_id"), true);
    assert.equal(isMissingValue(failure("23502", missing("delivery_111225")), "delivery", "email"), false);
    assert.equal(isMissingValue(failure("23502", missing("delivery_message_111225")), "delivery", "lane_id"), false);
  });
});

describe("closing", () => {
  it("is over when the server has no session left, so that stopping it next cuts none", async () => {
    const url = new URL(database.url);
    url.searchParams.set("application_name", "closing");
    const lost: Error[] = [];
    const other = openDb(url.href, { onError: (error) => lost.push(error) });
    await Promise.all(Array.from({ length: 10 }, () => other.transaction((tx) => tx.query("select pg_sleep(0.05)"))));
    await other.close();
    const { rows } = await admin.query("select count(*)::int as n from pg_stat_activity where application_name = $1", [
      "closing",
    ]);
    assert.deepEqual([rows, lost], [[{ n: 0 }], []]);
  });
});

describe("a transaction", () => {
  it("whose connection is lost between two statements fails, and the process lives", async () => {
    const work = db.transaction(async (tx) => {
      const [row] = await tx.query<{ pid: number }>("select pg_backend_pid() as pid");
      await admin.query("select pg_terminate_backend($1)", [row?.pid]);
      // The server's last word arrives while no statement is under way.
      await new Promise((resolve) => setTimeout(resolve, 100));
      await tx.query("select 1");
    });
    await assert.rejects(work, (error) => isUnavailable(error));
    assert.deepEqual(await db.query("select 1 as one"), [{ one: 1 }]);
  });
});

describe("a database that lets nobody in", () => {
  const asks = [(other: Db) => other.query("select 1"), (other: Db) => other.transaction((tx) => tx.query("select 1"))];
  const refuseEach = async (url: string, code: string) => {
    const other = openDb(url, { onError: () => undefined });
    try {
      for (const ask of asks) {
        const error = await ask(other).then(
          () => null,
          (failure) => failure,
        );
        assert.equal(error?.code, code);
        // Else what is tried again, such as mail that was taken, would be given up for what is no fault of its own.
        assert.deepEqual([isUnavailable(error), isUnreached(error)], [true, true]);
      }
    } finally {
      await other.close();
    }
  };

  it("is away, and has done nothing: the password was changed", async () => {
    const url = new URL(database.url);
    url.password = "other";
    await refuseEach(url.href, "28P01");
  });

  it("is away: it is gone, or takes no connections", async () => {
    const gone = new URL(database.url);
    gone.pathname = "/not_there";
    await refuseEach(gone.href, "3D000");
    await admin.query(`alter database ${nameOf(database.url)} allow_connections false`);
    try {
      await refuseEach(database.url, "55000");
    } finally {
      await admin.query(`alter database ${nameOf(database.url)} allow_connections true`);
    }
  });

  it("is away: no name server tells where it is", async () => {
    // Refused before a server is asked: a label has 63 characters at most.
    await refuseEach(`postgresql://nobody@${"x".repeat(64)}.invalid/nothing`, "ENOTFOUND");
  });
});

describe("an organization's transactions", () => {
  it("leave connections to others, however many they are and however long they take", async () => {
    const [busy, other] = ["01900000-0000-7000-8000-00000000000a", "01900000-0000-7000-8000-00000000000b"];
    const end = Promise.withResolvers<void>();
    let running = 0;
    const slow = Array.from({ length: 21 }, () =>
      db.asOrg(busy, async () => {
        running += 1;
        await end.promise;
      }),
    );
    await until("some of them to run", () => running >= 10);
    for (let n = 0; n < 20; n += 1) await db.asOrg(other, (tx) => tx.query("select 1"));
    assert.equal(running, 10);
    end.resolve();
    await Promise.all(slow);
    assert.equal(running, 21);
  });
});

// A firewall that forgot its connections, a machine that is gone: what is written goes nowhere, and nobody says so.
describe("a connection that answers no more", () => {
  const ORG = "01900000-0000-7000-8000-00000000000c";
  let line: { url: string; forget(): void; close(): void };
  let far: Db;

  before(async () => {
    line = await forgetfulLine(database.url);
    far = openDb(line.url, { onError: () => undefined, statement_ms: 400, answer_ms: 200 });
  });
  after(async () => {
    await far?.close();
    line?.close();
  });

  const one = (runner: Pick<Db, "query">) => runner.query<{ one: number }>("select 1 as one");
  const ways: Record<string, () => Promise<{ one: number }[]>> = {
    "a statement": () => one(far),
    "a transaction": () => far.transaction(one),
    "a transaction that may take its time": () => far.transaction(one, 500),
    "an organization's transaction": () => far.asOrg(ORG, one),
    "the question for the clock": async () => [{ one: (await far.clockSkewMs()) < 1e9 ? 1 : 0 }],
  };
  for (const [name, ask] of Object.entries(ways)) {
    it(`is given up by ${name}, as an outage, and the next goes over another`, async () => {
      assert.deepEqual(await whileUnavailable(ask, 1), [{ one: 1 }]);
      line.forget();
      await assert.rejects(ask(), (error) => isUnavailable(error));
      assert.deepEqual(await whileUnavailable(ask, 1), [{ one: 1 }]);
    });
  }

  it("is not taken for what only takes its time, which is ended by the server", async () => {
    await assert.rejects(far.query("select pg_sleep(5)"), { code: "57014" });
    await far.transaction((tx) => tx.query("select pg_sleep(1)"), 10_000);
  });

  it("is given up by a transaction that must be quick before others would give it up", async () => {
    const patient = openDb(line.url, { onError: () => undefined, statement_ms: 60_000, answer_ms: 200 });
    try {
      assert.deepEqual(await whileUnavailable(() => patient.transaction(one, 100), 1), [{ one: 1 }]);
      line.forget();
      const stillWaiting = new Promise((done) => setTimeout(done, 20_000).unref());
      await assert.rejects(Promise.race([patient.transaction(one, 100), stillWaiting]), (error) =>
        isUnavailable(error),
      );
    } finally {
      await patient.close();
    }
  });
});

/** A way to the database that forgets its connections when asked: they stay open, and what is written to them is lost. */
async function forgetfulLine(url: string) {
  const to = new URL(url);
  const host = to.searchParams.get("host") ?? to.hostname;
  const port = Number(to.port || 5432);
  let forgotten = new WeakSet<Socket>();
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const [from, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => forgotten.has(from) || other.write(bytes));
      from.on("error", () => undefined).on("close", () => other.destroy());
    }
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  to.searchParams.delete("host");
  to.hostname = "127.0.0.1";
  to.port = String((server.address() as AddressInfo).port);
  return {
    url: to.href,
    forget() {
      forgotten = new WeakSet(sockets);
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

describe("listening", () => {
  it("goes on after an outage with one connection, and says that something may have been missed", async () => {
    let noted = 0;
    const listener = await db.listen(["test_channel"], () => {
      noted += 1;
    });
    try {
      assert.equal(await listeners(), 1);
      await admin.query(`alter database "${nameOf(database.url)}" allow_connections false`);
      await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [
        nameOf(database.url),
      ]);
      await until("the connection is cut", async () => (await listeners()) === 0);
      // Several tries that fail: each must leave one next try behind, not two.
      await new Promise((resolve) => setTimeout(resolve, 2_200));
      await admin.query(`alter database "${nameOf(database.url)}" allow_connections true`);
      await until("the word after the outage", () => noted > 0);
      await new Promise((resolve) => setTimeout(resolve, 1_200));
      assert.equal(await listeners(), 1);
      const before = noted;
      await db.query("select pg_notify('test_channel', '')");
      await until("a notification", () => noted === before + 1);
    } finally {
      await listener.close();
    }
    await until("closing ends it", async () => (await listeners()) === 0);
  });
});

it("lets nobody hold what it has locked for ever: a session that stands still in a transaction is ended", async () => {
  const names = ["idle_in_transaction_session_timeout"];
  const ask = "select name, current_setting(name) as value from unnest($1::text[]) as name";
  const seen = await db.asOrg("00000000-0000-7000-8000-000000000001", (tx) =>
    tx.query<{ name: string; value: string }>(ask, [names]),
  );
  const system = await db.query<{ name: string; value: string }>(ask, [names]);
  assert.deepEqual([seen[0]?.value, system[0]?.value], ["15s", "15s"]);
  assert.equal(isUnavailable({ code: "25P03" }), true);
});

it("takes a server that Citus lost for an outage, though Citus has no code for it", () => {
  const failed = (code: string, message: string) => isUnavailable(Object.assign(new Error(message), { code }));
  const lost = [
    "could not commit transaction for shard 102008 on at least one active node",
    "failure on connection marked as essential: 10.0.0.2:5432",
    "connection to the remote node postern@10.0.0.2:5432 failed",
    "could not establish any connections to the node 10.0.0.2:5432",
    "could not find an available connection",
    "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally",
    "terminating connection due to unexpected postmaster exit",
    "terminating connection because of crash of another server process",
    "the database system is starting up",
  ];
  for (const message of lost) assert.deepEqual([failed("XX000", message), failed("23505", message)], [true, false]);
  assert.ok(failed("CIINF", 'Query could not find the intermediate result file "936_4"'), "the cell moved meanwhile");
  assert.equal(failed("XX000", "cache lookup failed for relation 1"), false);
});

describe("work that is done while the database is unavailable", () => {
  const away = Object.assign(new Error("shutting down"), { code: "57P01" });

  it("is done again until the database answers", async () => {
    let times = 0;
    const work = async () => {
      times += 1;
      if (times < 3) throw away;
      return "done";
    };
    assert.equal(await whileUnavailable(work, 1), "done");
    assert.equal(times, 3);
  });

  it("is given up when its owner says so, and fails with what it last failed with", async () => {
    const noted: [unknown, number][] = [];
    const goOn = (failure: unknown, times: number) => noted.push([failure, times]) < 2;
    await assert.rejects(
      whileUnavailable(() => Promise.reject(away), 1, goOn),
      (error) => error === away,
    );
    assert.deepEqual(noted, [
      [away, 1],
      [away, 2],
    ]);
  });

  it("is not done again after a failure of another kind", async () => {
    const refused = Object.assign(new Error("duplicate key"), { code: "23505" });
    let times = 0;
    const work = () => {
      times += 1;
      return Promise.reject(refused);
    };
    await assert.rejects(whileUnavailable(work, 1), /duplicate key/);
    assert.equal(times, 1);
  });
});
