// The first page of a list of very many rows is read off an index, whichever list it is. `POSTERN_TEST_LIST_ROWS=200000` plays
// it with that many rows and prints how long each list took.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Tx } from "../../src/platform/database/db.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { fillLists, firstPages, sortedPages } from "../support/long-lists.ts";

const ROWS = Number(process.env.POSTERN_TEST_LIST_ROWS ?? 3_000);
const PRINTS = process.env.POSTERN_TEST_LIST_ROWS !== undefined;

/** A page has 50 rows at most, and each some rows of other tables. */
const READ_MAX = 200;
/** What counts the rows of a list reads them, up to a number that is documented (platform/database/totals.ts). */
const COUNT = /select count\(\*\) as counted/;

type Node = { "Node Type": string; "Actual Rows": number; "Actual Loops": number; Plans?: Node[] } & {
  "Relation Name"?: string;
  "Rows Removed by Filter"?: number;
};
type Statement = { text: string; values: readonly unknown[]; ms: number };

describe("long lists", { timeout: 900_000 }, () => {
  let api: TestApi;
  let one: string;
  let asked: Statement[] = [];

  before(async () => {
    api = await testApi({ POSTERN_LOG_LEVEL: "error" }, (world) => ({
      ...world,
      db: { ...world.db, asOrg: (org, work) => listened(world, org, work) },
    }));
    ({ one } = await fillLists(api, api.org_id, ROWS));
  });
  after(() => api.close());

  type World = TestApi["world"];
  function listened<T>({ db }: World, orgId: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    return db.asOrg(orgId, (tx) =>
      work({
        ...tx,
        async query<Row>(text: string, values: readonly unknown[] = []) {
          const started = performance.now();
          const rows = await tx.query<Row>(text, values);
          asked.push({ text, values, ms: performance.now() - started });
          return rows;
        },
      } as Tx),
    );
  }

  async function plansOf(statements: Statement[]): Promise<{ text: string; plan: Node }[]> {
    return api.world.db.asOrg(api.org_id, async (tx) => {
      const plans = [];
      for (const { text, values } of statements) {
        const [row] = await tx.query<{ "QUERY PLAN": [{ Plan: Node }] }>(
          `explain (analyze, buffers, format json) ${text}`,
          values,
        );
        plans.push({ text, plan: row!["QUERY PLAN"][0].Plan });
      }
      return plans;
    });
  }

  for (const path of [...firstPages("{id}"), ...sortedPages()]) {
    it(`${path} reads its page and no more`, async () => {
      const asked = await statementsOf(path.replace("{id}", one));
      for (const { text, plan } of await plansOf(asked.filter(({ text }) => !COUNT.test(text)))) {
        const rows = most(plan);
        assert.ok(rows <= READ_MAX, `${rows} rows are read by ${text}`);
      }
    });
  }

  it("go on behind the row that a reader had last, whichever list it is", async () => {
    const lists = firstPages(one).filter((path) => path !== "/v1/inbound-rules");
    for (const path of [...lists, ...sortedPages(), "/v1/suppressions?query=u", "/v1/suppressions?reason=manual"]) {
      const read = async (query: string): Promise<string[]> => {
        const { body, status } = await api.ask("GET", `${path}${path.includes("?") ? "&" : "?"}${query}`);
        assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
        const rows = Object.values(body).find(Array.isArray) as { id: string }[];
        return rows.map(({ id }) => id);
      };
      const whole = await read("limit=6");
      const walked = await read("limit=2");
      while (walked.length < 6) walked.push(...(await read(`limit=2&after=${walked.at(-1)}`)));
      assert.deepEqual(walked, whole, path);
      assert.equal(new Set(walked).size, 6, path);
    }
  });

  it("counts exactly up to 100,000 rows, and says so where there are more", async () => {
    const other = await api.organization();
    const more = (from: number, to: number) =>
      api.world.db.execute(
        `insert into audit_entry (org_id, id, at, actor, name, operation)
         select $1, gen_random_uuid(), now(), 'key', 'k', case when n > 1 then 'createDomain' else 'getDomain' end
           from generate_series($2::int, $3::int) n`,
        [other.org_id, from, to],
      );
    const first = (query = "") => api.ask("GET", `/v1/audit-log?limit=1${query}`, undefined, { key: other.live_key });
    await more(1, 100_000);
    const { body: exact } = await first();
    assert.deepEqual([exact.total, exact.total_is_at_least], [100_000, undefined]);
    await more(100_001, 100_001);
    const { body: over } = await first();
    assert.deepEqual([over.total, over.total_is_at_least], [100_000, true]);
    const { body: last } = await first("&offset=100000");
    assert.equal(last.entries.length, 1, "a page behind the number is served");
    const { body: few } = await first("&operation=getDomain");
    assert.deepEqual([few.total, few.total_is_at_least], [1, undefined]);
  });

  async function statementsOf(path: string): Promise<Statement[]> {
    asked = [];
    const answer = await api.ask("GET", path);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const first = asked;
    asked = [];
    const started = performance.now();
    await api.ask("GET", path);
    const took = performance.now() - started;
    if (PRINTS) {
      const each = asked.map(({ ms }) => ms.toFixed(1)).join(" + ");
      console.log(`${path.replace(one, "{id}")} | ${answer.body.total} | ${took.toFixed(1)} ms | ${each}`);
    }
    return first;
  }
});

/** The most rows that a step of the plan read, whether it passed them on or not. */
function most(node: Node): number {
  const own = (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"];
  return Math.max(own, ...(node.Plans ?? []).map(most));
}
