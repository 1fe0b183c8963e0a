// Policies of MTA-STS between DNS, HTTPS and the database: what is asked when, and what nobody can make us forget.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { type TestApi, testApi } from "../../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../../test/support/dns-server.ts";
import { byClock, type MovedClock, runningClock } from "../../../test/support/moved-clock.ts";
import { FUTURE_TIMES } from "../../platform/database/future-times.ts";
import { healFutureTimes } from "../../platform/database/heal-times.ts";
import type { FetchRequest, FetchResult } from "../../platform/net/safe-fetch.ts";
import { refreshPolicies, type StsFinder, type StsWorld, stsFinder } from "./sts.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const URL_OF_POLICY = "https://mta-sts.a.example/.well-known/mta-sts.txt";

let dns: DnsServer;
let api: TestApi;
let clock: MovedClock;
let world: StsWorld;
let asked: FetchRequest[];
let answer: FetchResult;
let find: StsFinder;

before(async () => {
  dns = await startDnsServer();
  clock = runningClock(new Date().toISOString());
  api = await testApi({ POSTERN_DNS: dns.address }, byClock(clock));
  const fetch = async (request: FetchRequest) => {
    asked.push(request);
    return answer;
  };
  world = { ...api.world, fetch: Object.assign(fetch, { close: async () => undefined }) };
});

after(async () => {
  await api.close();
  await dns.stop();
});

beforeEach(async () => {
  asked = [];
  answer = policy("enforce", 7 * 86_400);
  dns.clear();
  announce("1");
  find = stsFinder(world);
  await api.world.db.query("delete from sts_policy");
});

function announce(id: string): void {
  dns.set("_mta-sts.a.example", "TXT", [`v=STSv1; id=${id};`]);
}

function answered(status: number, body: string, type = "text/plain"): FetchResult {
  const headers = new Map([["content-type", type]]);
  return { kind: "answered", status, headers, body: Buffer.from(body), duration_ms: 1 };
}

function policy(mode: string, max_age_s: number): FetchResult {
  const text = `version: STSv1\nmode: ${mode}\nmx: *.a.example\nmax_age: ${max_age_s}\n`;
  return answered(200, text, "text/plain; charset=utf-8");
}

const modeOf = async (finder = find) => (await finder("a.example")).policy?.mode ?? null;

describe("a policy that DNS announces", () => {
  it("is fetched once, within limits, and remembered by every process", async () => {
    assert.deepEqual(await find("a.example"), {
      policy: {
        id: "1",
        mode: "enforce",
        mx: ["*.a.example"],
        max_age_s: 604_800,
        expires_at: (await find("a.example")).policy?.expires_at,
      },
      trouble: null,
    });
    assert.equal(await modeOf(stsFinder(world)), "enforce");
    assert.equal(asked.length, 1);
    const { url, method, timeout_ms, response_bytes_max, when_cut_short } = asked[0] as FetchRequest;
    assert.deepEqual([url, method], [URL_OF_POLICY, "GET"]);
    assert.deepEqual([timeout_ms, response_bytes_max, when_cut_short], [60_000, 65_536, undefined]);
  });

  it("is fetched again when its id changes, and the older one holds if that fails", async () => {
    assert.equal(await modeOf(), "enforce");
    announce("2");
    answer = policy("testing", 86_400);
    assert.equal(await modeOf(), "testing");
    announce("3");
    answer = answered(503, "");
    const { policy: kept, trouble } = await find("a.example");
    assert.deepEqual([kept?.mode, kept?.id, trouble?.result], ["testing", "2", "sts-policy-fetch-error"]);
  });

  it("holds until it expires, although its record, or DNS altogether, is gone", async () => {
    assert.equal(await modeOf(), "enforce");
    dns.clear();
    assert.equal(await modeOf(), "enforce", "the record is gone");
    dns.fail("_mta-sts.a.example", "servfail");
    assert.equal(await modeOf(), "enforce", "DNS fails");
    dns.heal("_mta-sts.a.example");
    clock.move(7 * DAY_MS - HOUR_MS);
    assert.equal(await modeOf(), "enforce", "an hour before its end");
    clock.move(2 * HOUR_MS);
    assert.equal(await modeOf(), null, "an hour after its end");
    assert.equal(asked.length, 1);
  });

  it("is replaced by a newer one also where the clock was a year ahead when it came", async () => {
    clock.move(365 * DAY_MS);
    assert.equal(await modeOf(), "enforce");
    clock.move(-365 * DAY_MS);
    await healFutureTimes({ ...api.world, ...world }, FUTURE_TIMES);
    announce("2");
    answer = policy("testing", 86_400);
    assert.equal(await modeOf(), "testing");
    answer = answered(503, "");
    assert.equal(await modeOf(stsFinder(world)), "testing", "it is kept");
  });

  it("is none for a domain that announces none or announces badly", async () => {
    dns.clear();
    assert.deepEqual(await find("a.example"), { policy: null, trouble: null });
    dns.set("_mta-sts.a.example", "TXT", ["v=STSv1; id=1;", "v=STSv1; id=2;"]);
    assert.deepEqual(await find("a.example"), { policy: null, trouble: null });
    assert.equal(asked.length, 0);
  });
});

describe("a policy that cannot be had", () => {
  const failed = (code: "tls" | "dns" | "connect" | "timeout" | "too_large" | "blocked"): FetchResult => ({
    kind: "failed",
    code,
    reason: "why",
    duration_ms: 1,
  });
  const cases: [string, () => FetchResult, string][] = [
    ["a server that does not answer", () => failed("timeout"), "sts-policy-fetch-error"],
    ["a host that is private", () => failed("blocked"), "sts-policy-fetch-error"],
    ["a bad certificate", () => failed("tls"), "sts-webpki-invalid"],
    ["too long a policy", () => failed("too_large"), "sts-policy-fetch-error"],
    ["status 404", () => answered(404, "no"), "sts-policy-fetch-error"],
    ["a redirect", () => answered(301, ""), "sts-policy-fetch-error"],
    ["status 204", () => answered(204, ""), "sts-policy-fetch-error"],
    ["HTML", () => answered(200, "<p>", "text/html"), "sts-policy-invalid"],
    ["no content type", () => answered(200, "version: STSv1", ""), "sts-policy-invalid"],
    ["text that is no policy", () => answered(200, "hello"), "sts-policy-invalid"],
  ];
  for (const [what, make, result] of cases) {
    it(`for ${what} is none, and reported as ${result}`, async () => {
      answer = make();
      const { policy: got, trouble } = await find("a.example");
      assert.equal(got, null);
      assert.equal(trouble?.result, result);
      assert.ok((trouble?.detail.length ?? 0) > 2);
    });
  }

  it("is not asked for again with every message, but at once under another id", async () => {
    answer = answered(500, "");
    for (let n = 0; n < 3; n += 1) assert.equal((await find("a.example")).trouble?.result, "sts-policy-fetch-error");
    assert.equal(asked.length, 1);
    announce("2");
    answer = policy("enforce", 86_400);
    assert.equal(await modeOf(), "enforce");
  });
});

describe("the clock role", () => {
  it("fetches policies again long before they expire", async () => {
    await find("a.example");
    assert.equal(await refreshPolicies(world), 0, "not yet due");
    clock.move(DAY_MS + HOUR_MS);
    announce("9");
    assert.equal(await refreshPolicies(world), 1);
    assert.equal(await refreshPolicies(world), 0, "done for now");
    clock.move(6.5 * DAY_MS);
    const { policy: kept } = await find("a.example");
    assert.deepEqual([kept?.mode, kept?.id], ["enforce", "9"], "the first one would have expired");
    assert.equal(asked.length, 2);
  });

  it("keeps a policy when it cannot be refreshed, and tries again within the hour", async () => {
    await find("a.example");
    clock.move(DAY_MS + HOUR_MS);
    answer = answered(500, "");
    assert.equal(await refreshPolicies(world), 0);
    assert.equal(asked.length, 2);
    assert.equal(await modeOf(), "enforce");
    assert.equal(await refreshPolicies(world), 0);
    assert.equal(asked.length, 2, "not at once");
    clock.move(HOUR_MS);
    answer = policy("enforce", 604_800);
    assert.equal(await refreshPolicies(world), 1);
  });

  it("lets policies go that nobody needed for a month, and drops what has expired", async () => {
    answer = policy("enforce", 40 * 86_400);
    await find("a.example");
    clock.move(31 * DAY_MS);
    assert.equal(await refreshPolicies(world), 0, "unused");
    assert.equal(await modeOf(), "enforce", "but still in force");
    assert.equal(asked.length, 1);
    clock.move(48 * DAY_MS);
    await refreshPolicies(world);
    const left = await api.world.db.query("select domain from sts_policy");
    assert.deepEqual(left, []);
  });
});
