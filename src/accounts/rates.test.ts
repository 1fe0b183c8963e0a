import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { otherProcess, type TestApi, testApi } from "../../test/support/api.ts";
import { until } from "../../test/support/until.ts";
import type { Account } from "../http/http.ts";
import { requestRates } from "./accounts.ts";
import { drawRequests } from "./queries.ts";

let api: TestApi;

before(async () => {
  api = await testApi();
});
after(() => api.close());

type Take = ReturnType<typeof requestRates>;

function accountWith(requests_per_second: number): Account {
  const account = { org_id: api.world.random.uuid(), plan: "enterprise", requests_per_second };
  return account as unknown as Account;
}

/** Asks without a pause, some at once, until `enough` were allowed; how many were by then. */
async function hammer(takes: Take[], account: Account, enough: number): Promise<number> {
  let allowed = 0;
  async function loop(take: Take): Promise<void> {
    while (allowed < enough) {
      if ((await take(account)).allowed) allowed += 1;
      // Refusals of an empty share are answered without waiting for anything: let the others in.
      else await new Promise((resolve) => setImmediate(resolve));
    }
  }
  await Promise.all(Array.from({ length: 16 }, (_, n) => loop(takes[n % takes.length] as Take)));
  return allowed;
}

/** What a full bucket and what has flowed in since allow. The database goes by the wall clock, which is set right at times. */
function mostSince(startedAt: number, rate: number): number {
  return rate + (rate * (performance.now() - startedAt + 50)) / 1000;
}

for (const rate of [10, 100, 1_000]) {
  test(`two processes together allow ${rate} a second, and one second's worth at once`, async (t) => {
    const account = accountWith(rate);
    const startedAt = performance.now();
    const allowed = await hammer([requestRates(api.world), requestRates(api.world)], account, rate * 2.5);
    const most = mostSince(startedAt, rate);
    assert.ok(allowed <= most, `${allowed} of at most ${most}`);
    t.diagnostic(`${Math.round((allowed / most) * 100)} % of the rate was given out`);
  });
}

test("one of two processes gets the whole rate while the other is idle", async () => {
  const account = accountWith(50);
  const [busy, idle] = [requestRates(api.world), requestRates(api.world)];
  const startedAt = performance.now();
  await idle(account);
  const answers = await Promise.all(Array.from({ length: 60 }, () => busy(account)));
  const allowed = answers.filter((answer) => answer.allowed).length;
  assert.ok(allowed >= 47 && allowed <= mostSince(startedAt, 50), String(allowed));
});

test("exactly one second's worth is allowed at once", async () => {
  for (const rate of [1, 10, 19, 21, 100]) {
    const account = accountWith(rate);
    const take = requestRates(api.world);
    const startedAt = performance.now();
    const answers = await Promise.all(Array.from({ length: rate * 2 }, () => take(account)));
    const most = mostSince(startedAt, rate);
    const allowed = answers.filter((answer) => answer.allowed).length;
    assert.ok(allowed >= rate && allowed <= most, `${allowed} at ${rate} a second, of at most ${most}`);
  }
  const take = requestRates(api.world);
  assert.deepEqual(await take(accountWith(0)), { allowed: false, limit: 0, remaining: 0 });
});

test("what is left is counted without errors of rounding", async () => {
  for (const wanted of [1, 3, 7, 9]) {
    const asked = [{ org_id: api.world.random.uuid(), limit: 10, wanted }];
    const [drawn] = await drawRequests(api.world.db, asked);
    assert.deepEqual([drawn?.granted, drawn?.left], [wanted, 10 - wanted]);
  }
});

test("what remains is reported, also what another process took", async () => {
  const answers = await until("three requests before the next flows in", async () => {
    const account = accountWith(2);
    const [here, there] = [requestRates(api.world), requestRates(api.world)];
    const startedAt = performance.now();
    const three = [await here(account), await there(account), await here(account)];
    return performance.now() - startedAt < 450 && three;
  });
  assert.deepEqual(answers, [
    { allowed: true, limit: 2, remaining: 1 },
    { allowed: true, limit: 2, remaining: 0 },
    { allowed: false, limit: 2, remaining: 0 },
  ]);
});

test("a share that was not used is not kept for later", async () => {
  const account = accountWith(1_000);
  let monotonic = 0;
  const clock = { ...api.world.clock, monotonic: () => monotonic };
  const take = requestRates({ ...api.world, clock });
  await take(account);
  const drawnOf = async () => {
    const rows = await api.world.db.query<{ full_at: Date }>("select full_at from request_rate where org_id = $1", [
      account.org_id,
    ]);
    return rows[0]?.full_at.getTime();
  };
  const first = await drawnOf();
  await take(account);
  assert.equal(await drawnOf(), first, "the second is of the first draw");
  monotonic = 1_001;
  await take(account);
  assert.notEqual(await drawnOf(), first, "later ones are drawn again");
});

test("an organization's requests to two servers are counted together", async () => {
  const other = await otherProcess(api.world);
  try {
    const { live_key } = await api.organization("starter");
    const headers = { authorization: `Bearer ${live_key}` };
    const startedAt = performance.now();
    const [here, there] = await Promise.all([
      Promise.all(Array.from({ length: 12 }, () => api.app.inject({ url: "/v1/emails", headers }))),
      Promise.all(Array.from({ length: 12 }, () => other.app.inject({ url: "/v1/emails", headers }))),
    ]);
    const statuses = [...here, ...there].map(({ statusCode }) => statusCode);
    const allowed = statuses.filter((status) => status === 200).length;
    assert.ok(allowed >= 10 && allowed <= mostSince(startedAt, 10), statuses.join(" "));
    assert.equal(statuses.filter((status) => status === 429).length, 24 - allowed);
  } finally {
    await other.stop();
  }
});
