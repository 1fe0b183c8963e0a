// What is read of report mails for one domain: enough is enough, also where nothing of it is new.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type GivenReport, reportXml } from "../mail/dmarc-report/report.fixture.ts";
import { fixedClock } from "../platform/clock.ts";
import { takeReportMail } from "./intake.ts";
import { countRead } from "./read-budget.ts";
import type { DomainOfReport } from "./types.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");
const DAY_MS = 86_400_000;
const MIB = 1024 * 1024;
const REFUSED = { kind: "ignored", reason: "too many reports on this domain came within 24 hours" };

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

async function addDomain(domain: string, key = api.live_key): Promise<DomainOfReport> {
  const { body } = await api.ask("POST", "/v1/domains", { domain, type: "outbound" }, { key });
  return { org_id: api.org_id, id: body.id, domain };
}

const arrival = { via: "mail", authenticated: true, sender_domain: "reporter.example", origin_id: "m1" } as const;
const mailed = (given: GivenReport) => ({
  attachments: [],
  text: reportXml({ begin_s: NOW / 1_000 - 86_400, end_s: NOW / 1_000, ...given }),
});

test("a domain for which 2 GiB of reports were read takes no more by mail until time has passed; others do", async () => {
  const [flooded, other] = [await addDomain("flooded.example"), await addDomain("other.example")];
  const take = (domain: DomainOfReport, id: string, atMs: number) =>
    takeReportMail({ ...api.world, clock: fixedClock(atMs) }, domain, mailed({ domain: domain.domain, id }), arrival);
  assert.deepEqual(await take(flooded, "a", NOW), { kind: "kept" });
  for (let at = 0; at < 20; at += 1) countRead(flooded.id, 100 * MIB, NOW);
  assert.deepEqual(await take(flooded, "a", NOW), { kind: "kept" }, "there already, and read once more");
  countRead(flooded.id, 48 * MIB, NOW);
  assert.deepEqual(await take(flooded, "b", NOW), REFUSED);
  assert.deepEqual(await take(other, "b", NOW), { kind: "kept" });
  assert.deepEqual(await take(flooded, "b", NOW + DAY_MS / 24), { kind: "kept" });
});

test("each mail counts as a MiB at least", async () => {
  const domain = await addDomain("many.example");
  const world = { ...api.world, clock: fixedClock(NOW) };
  countRead(domain.id, 2_047 * MIB, NOW);
  assert.deepEqual(await takeReportMail(world, domain, mailed({ domain: domain.domain }), arrival), { kind: "kept" });
  assert.deepEqual(await takeReportMail(world, domain, mailed({ domain: domain.domain }), arrival), REFUSED);
});

test("an upload with a test key counts for what a test key added, and for no domain of a live key", async () => {
  const live = await addDomain("counted.example");
  await addDomain("tried.example", api.test_key);
  const upload = (domain: string) => {
    const file = Buffer.from(mailed({ domain, id: domain }).text);
    const headers = { "content-type": "application/octet-stream" };
    return api.ask("POST", "/v1/dmarc/reports", file, { key: api.test_key, headers });
  };
  const { status, body } = await upload("counted.example");
  assert.deepEqual([status, body.code], [403, "test_key_not_allowed"]);
  assert.equal((await api.ask("GET", `/v1/domains/${live.id}/dmarc/summary`)).body.total_messages, 0);
  assert.equal((await upload("tried.example")).status, 201);
});
