// Behind PgBouncer in transaction mode: each transaction may get another session, so nothing may be left in one, and nothing may be
// expected of it. All pools of a process share one connection to the server: a transaction that waited for another would wait for ever.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { checkPooler } from "../../src/doctor/check-pooler.ts";
import { openDb } from "../../src/platform/database/db.ts";
import type { World } from "../../src/platform/world.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { hasPgBouncer, type PgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const SERVER_CONNECTIONS = 1;
const MAILS = 30;

const skip = hasPgBouncer() ? false : "pgbouncer is not installed (apt-get install pgbouncer)";

describe("behind PgBouncer in transaction mode", { skip }, () => {
  let api: TestApi;
  let pooler: PgBouncer;
  let dns: DnsServer;
  let sink: SmtpSink;

  before(async () => {
    dns = await startDnsServer();
    sink = await startSmtpSink();
    const env = { POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) };
    api = await testApi(env, throughPooler);
    await api.startMta();
  });

  after(async () => {
    await api?.close();
    await pooler?.stop();
    await sink?.stop();
    await dns?.stop();
  });

  async function throughPooler(world: World): Promise<World> {
    await world.db.close();
    pooler = await startPgBouncer(world.database_url, SERVER_CONNECTIONS);
    const pooler_url = pooler.through(world.database_url);
    const { distributed = false } = world;
    return { ...world, db: openDb(world.database_url, { onError: () => undefined, pooler_url, distributed }) };
  }

  it("mail is accepted and delivered, once each", async () => {
    await addVerifiedDomain(api, dns, "sender.example");
    receiveAt(dns, "inbox.example");
    const sent = await Promise.all(
      Array.from({ length: MAILS }, (_none, n) =>
        api.ask("POST", "/v1/send", {
          ...{ from: "hello@sender.example", to: [`anna${n}@inbox.example`], subject: "Hello", text_body: "Hello" },
        }),
      ),
    );
    for (const { status, body } of sent) assert.equal(status, 202, JSON.stringify(body));
    for (const { body } of sent) await emailWithStatus(api, body.id, ["delivered"]);
    assert.equal(new Set(sink.messages.map(({ to }) => to[0])).size, MAILS);
    assert.equal(sink.messages.length, MAILS);
  });

  it("an organization sees its own rows alone, whoever used the session before", async () => {
    const { db } = api.world;
    const other = await api.organization();
    const count = "select count(*)::int as n, count(distinct org_id)::int as organizations from api_key";
    const looks = Array.from({ length: 40 }, async (_none, n) => {
      if (n % 2 === 0) return (await db.query<{ organizations: number }>(count))[0]?.organizations;
      return db.asOrg(other.org_id, async (tx) => (await tx.query<{ organizations: number }>(count))[0]?.organizations);
    });
    const seen = await Promise.all(looks);
    assert.deepEqual(
      seen,
      seen.map((_none, n) => (n % 2 === 0 ? 2 : 1)),
    );
  });

  it("no session keeps a setting, and no more of them are open than the pooler allows", async () => {
    const { db } = api.world;
    const left = await db.asOrg(api.org_id, async (tx) => {
      const [row] = await tx.query<{ scope: string; timeout: string }>(
        "select coalesce(current_setting('postern.scope', true), '') as scope, current_setting('statement_timeout') as timeout",
      );
      return row;
    });
    assert.deepEqual(left, { scope: "", timeout: "10s" });
    const [open] = await db.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and query not like 'listen %'
          and usename = current_user and application_name not like 'citus%'`,
    );
    assert.ok(open && open.n <= SERVER_CONNECTIONS, `${open?.n} sessions`);
  });

  it("the doctor says whether the pooler answers and leads to the same database", async () => {
    const { database_url } = api.world;
    const statusOf = async (database_pooler_url: string | null): Promise<string[]> =>
      (await checkPooler({ database_url, database_pooler_url })).map(({ status, says }) => `${status}: ${says}`);
    assert.deepEqual(await statusOf(null), []);
    assert.deepEqual(await statusOf(pooler.through(database_url)), ["ok: The pooler leads to it."]);
    const [other] = await statusOf(pooler.through(new URL("/postgres", database_url).href));
    assert.match(other ?? "", /^problem: POSTERN_DATABASE_POOLER leads to another database/);
    const [closed] = await statusOf("postgresql://any@127.0.0.1:1/postern");
    assert.match(closed ?? "", /^problem: The pooler of POSTERN_DATABASE_POOLER does not answer: .*ECONNREFUSED/);
  });

  it("notifications come over a connection of their own", async () => {
    const came = Promise.withResolvers<string>();
    const listener = await api.world.db.listen(["pooler_test"], came.resolve);
    await api.world.db.query("select pg_notify('pooler_test', '')");
    assert.equal(await came.promise, "pooler_test");
    await listener.close();
  });
});
