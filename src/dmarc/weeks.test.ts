// The sums of sources by week, beside those by day: the same figures whatever days are asked for, and few rows read.
// `POSTERN_TEST_LIST_ROWS=200000` plays the reading with that many rows of days and prints how long it took.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { reportXml } from "../mail/dmarc-report/report.fixture.ts";
import { fixedClock } from "../platform/clock.ts";
import type { Tx } from "../platform/database/db.ts";
import * as dayQueries from "./day-queries.ts";

/** A Friday. */
const NOW = Date.parse("2026-11-20T10:00:00.000Z");
const DAY_MS = 86_400_000;
const ROWS = Number(process.env.POSTERN_TEST_LIST_ROWS ?? 8_000);
const PRINTS = process.env.POSTERN_TEST_LIST_ROWS !== undefined;
const DAYS = 400;

type Node = {
  "Relation Name"?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  Plans?: Node[];
};
type Sums = { total: number; aligned: number; first: string; last: string; reporters: Set<string> };

let dns: DnsServer;
let api: TestApi;

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, (world) => ({ ...world, clock: fixedClock(NOW) }));
});
after(async () => {
  await api.close();
  await dns.stop();
});

const dayBefore = (days: number) => new Date(NOW - days * DAY_MS).toISOString().slice(0, 10);

async function addDomain(domain: string): Promise<string> {
  const { body, status } = await api.ask("POST", "/v1/domains", { domain, type: "outbound" });
  assert.equal(status, 201, JSON.stringify(body));
  return body.id;
}

describe("the sources of any number of days", () => {
  const LONGEST = 40;
  /** Of each day so many before today; -1 is tomorrow, by a reporter whose clock is wrong. */
  const given = Array.from({ length: LONGEST + 1 }, (_, at) => at - 1).map((ago) => ({
    ago,
    org: `r${ago % 3}.example`,
    records: [0, 1, 2].map((n) => ({ ip: `192.0.2.${(ago + 1 + n * n) % 5}`, count: ago + 2 + n, isAligned: n !== 1 })),
  }));

  function expected(days: number): Map<string, Sums> {
    const sums = new Map<string, Sums>();
    for (const { ago, org, records } of given.toReversed()) {
      if (ago < 0 || ago >= days) continue;
      for (const { ip, count, isAligned } of records) {
        const sum = sums.get(ip) ?? { total: 0, aligned: 0, first: dayBefore(ago), last: "", reporters: new Set() };
        sums.set(ip, sum);
        sum.total += count;
        sum.aligned += isAligned ? count : 0;
        sum.last = dayBefore(ago);
        sum.reporters.add(org);
      }
    }
    return sums;
  }

  it("add up to what was reported of those days", async () => {
    const id = await addDomain("spans.example");
    for (const { ago, org, records } of given) {
      const xml = reportXml({
        ...{ domain: "spans.example", org, id: `report ${ago}`, begin_s: Date.parse(dayBefore(ago)) / 1_000 },
        records: records.map(({ ip, count, isAligned }) => ({
          ...{ ip, count },
          ...(isAligned ? {} : { dkim: "fail" as const, spf: "fail" as const }),
        })),
      });
      const headers = { "content-type": "application/octet-stream" };
      const { status, body } = await api.ask("POST", "/v1/dmarc/reports", Buffer.from(xml), { headers });
      assert.equal(status, 201, JSON.stringify(body));
    }
    for (let days = 1; days <= LONGEST; days += 1) {
      const { body } = await api.ask("GET", `/v1/domains/${id}/dmarc/sources?days=${days}`);
      const sums = expected(days);
      assert.equal(body.total, sums.size);
      for (const source of body.sources) {
        const { total, aligned, first, last, reporters } = sums.get(source.source_ip)!;
        const shown = [source.total, source.aligned, source.first_seen, source.last_seen, source.reporters];
        assert.deepEqual(shown, [total, aligned, first, last, [...reporters].sort()], `${days} days`);
      }
    }
  });

  it("are the same after an upgrade from a version that knew days alone", async () => {
    const read = () => api.world.db.query("select * from dmarc_week_source order by domain_id, week, source_ip");
    const kept = await read();
    assert.ok(kept.length > 20);
    await api.world.db.execute("delete from dmarc_week_source");
    const migration = readFileSync(new URL("../../migrations/0160_dmarc_weeks.sql", import.meta.url), "utf8");
    await api.world.db.execute(migration.slice(migration.lastIndexOf("\ninsert into dmarc_week_source")));
    assert.deepEqual(await read(), kept);
  });
});

describe("a page of sources", () => {
  it(`reads a sixth of the rows of its ${DAYS} days at most`, async () => {
    const id = await addDomain("many.example");
    const sources = Math.round(ROWS / DAYS);
    await api.world.db.transaction(async (tx) => {
      // As from a process of an older version: triggers add to the weeks.
      await tx.execute("set local postern.sums = ''");
      for (let ago = 0; ago < DAYS; ago += 1) await addDay(tx, ago);
    }, 600_000);
    await api.world.db.execute("analyze dmarc_day_source, dmarc_week_source");
    async function addDay(tx: Tx, ago: number): Promise<void> {
      await tx.execute(
        `insert into dmarc_day_source (org_id, domain_id, day, source_ip, total, pass_dkim, pass_spf, aligned, forwarded,
           dkim_domains, dkim_passed, spf_domains, spf_passed, reporters)
         select $1, $2, $3::date, '10.0.0.0'::inet + n, n, 0, n, n, 0, '{}', '{}', array['many.example'],
           array['many.example'], array['r' || n % 20 || '.example'] from generate_series(1, $4::int) n`,
        [api.org_id, id, dayBefore(ago), sources],
      );
    }
    const asked: { text: string; values: readonly unknown[] }[] = [];
    await api.world.db.asOrg(api.org_id, async (tx) => {
      const listened = { ...tx, query: note } as typeof tx;
      const days = { domain_id: id, from: dayBefore(DAYS - 1), to: dayBefore(0) };
      const span = { ...days, week: "2025-10-20", after: "2026-11-23" };
      const page = { by: "total" as const, limit: 50, offset: 0 };
      await dayQueries.listSources(listened, api.org_id, span, page);
      await dayQueries.countSources(listened, api.org_id, span);
      // As it was before: every day by itself.
      const daily = { ...days, week: dayBefore(-1), after: dayBefore(-1) };
      if (PRINTS) await dayQueries.listSources(listened, api.org_id, daily, page);
      function note<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
        asked.push({ text, values });
        return Promise.resolve([]);
      }
      for (const [at, { text, values }] of asked.entries()) {
        const [row] = await tx.query<{ "QUERY PLAN": [{ Plan: Node; "Execution Time": number }] }>(
          `explain (analyze, format json) ${text}`,
          values,
        );
        const { Plan: plan, "Execution Time": ms } = row!["QUERY PLAN"][0];
        const rows = rowsRead(plan);
        if (PRINTS) console.log(`${["sums", "count", "sums by days alone"][at]}: ${rows} rows, ${Math.round(ms)} ms`);
        if (at < 2) assert.ok(rows <= (sources * DAYS) / 6, `${rows} of ${sources * DAYS} rows are read: ${text}`);
      }
    });
    const started = performance.now();
    const { body } = await api.ask("GET", `/v1/domains/${id}/dmarc/sources?days=${DAYS}`);
    if (PRINTS) console.log(`the page: ${Math.round(performance.now() - started)} ms`);
    assert.deepEqual([body.total, body.sources[0].total], [sources, sources * DAYS]);
  });
});

/** Rows that were read of tables. */
function rowsRead(node: Node): number {
  const below = (node.Plans ?? []).reduce((sum, plan) => sum + rowsRead(plan), 0);
  if (node["Relation Name"] === undefined) return below;
  return below + (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"];
}
