// The DMARC endpoints as their users see them, over uploaded reports.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { type DnsServer, startDnsServer } from "../../test/support/dns-server.ts";
import { type GivenReport, reportXml } from "../mail/dmarc-report/report.fixture.ts";
import { makeZip } from "../mail/dmarc-report/zip.fixture.ts";
import { fixedClock } from "../platform/clock.ts";
import { sweepReports } from "./background.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");
const NOBODY = "00000000-0000-7000-8000-00000000abcd";
const REPORTS = resolve(fileURLToPath(new URL(".", import.meta.url)), "../../../shared/data/dmarc-aggregate-reports");
const day = (date: string) => Date.parse(`${date}T00:00:00Z`) / 1_000;

let dns: DnsServer;
let api: TestApi;
const clock = fixedClock(NOW);

before(async () => {
  dns = await startDnsServer();
  api = await testApi({ POSTERN_DNS: dns.address }, (world) => ({ ...world, clock }));
});
after(async () => {
  await api.close();
  await dns.stop();
});

async function addDomain(domain: string, type = "outbound", key?: string): Promise<string> {
  const created = await api.ask("POST", "/v1/domains", { domain, type }, key ? { key } : {});
  assert.equal(created.status, 201, JSON.stringify(created.body));
  return created.body.id;
}

const BINARY = { headers: { "content-type": "application/octet-stream" } };
const upload = (file: Buffer | string, options: object = {}) =>
  api.ask("POST", "/v1/dmarc/reports", Buffer.from(file as string), { ...BINARY, ...options });

async function uploaded(given: GivenReport) {
  const answer = await upload(reportXml(given));
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.report;
}
const get = (id: string, what: string) => api.ask("GET", `/v1/domains/${id}/dmarc/${what}`);

describe("an upload", () => {
  it("answers with the report, every field of it", async () => {
    await addDomain("fields.example");
    const { id, ...report } = await uploaded({
      ...{ domain: "fields.example", begin_s: day("2026-11-18"), id: "abc", p: "quarantine" },
      records: [{ count: 3 }, { ip: "2001:db8::1", count: 2, spf: "fail", dkim: "fail", disposition: "quarantine" }],
    });
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.deepEqual(report, {
      ...{ status: "counted", reason: null, via: "upload", sender_domain: null },
      received_at: "2026-11-20T10:00:00.000Z",
      ...{ org_name: "reporter.example", email: "dmarc@reporter.example", extra_contact_info: null, report_id: "abc" },
      ...{ generator: null, schema: "rfc7489", policy_domain: "fields.example" },
      published_policy: {
        ...{ domain: "fields.example", p: "quarantine", sp: null, np: null, adkim: "r", aspf: "r", pct: 100, fo: null },
        ...{ testing: null, discovery_method: null },
      },
      ...{ begin_at: "2026-11-18T00:00:00.000Z", end_at: "2026-11-18T23:59:59.000Z" },
      ...{ total_messages: 5, pass_dkim: 3, pass_spf: 3, aligned: 3, both_aligned: 3 },
      disposition: { none: 3, pass: 0, quarantine: 2, reject: 0 },
      ...{ record_count: 2, rejected_records: 0, defects: [], errors: [] },
    });
  });

  it("takes XML, gzip, ZIP and a multipart file, and counts the same report once", async () => {
    const id = await addDomain("packed.example");
    const xml = Buffer.from(
      reportXml({ domain: "packed.example", begin_s: day("2026-11-18"), records: [{ count: 7 }] }),
    );
    const form = (name: string, more = "") =>
      Buffer.concat([
        Buffer.from(`--x\r\nContent-Disposition: form-data; name="${name}"; filename="a.xml"${more}\r\n\r\n`),
        xml,
        Buffer.from("\r\n--x--\r\n"),
      ]);
    const multipart = { headers: { "content-type": "multipart/form-data; boundary=x" } };
    assert.equal((await upload(gzipSync(xml), { headers: { "content-type": "application/gzip" } })).status, 201);
    assert.equal((await upload(xml, { headers: { "content-type": "text/xml" } })).status, 200);
    assert.equal((await upload(makeZip([{ name: "a.xml", content: xml }]))).status, 200);
    assert.equal((await upload(form("file"), multipart)).status, 200);
    const summary = (await get(id, "summary")).body;
    assert.deepEqual([summary.total_messages, summary.report_count], [7, 1]);
    const unknown = await upload(form("report"), multipart);
    assert.deepEqual([unknown.status, unknown.body.field], [400, "report"]);
    const broken = await upload("nothing of the kind", multipart);
    assert.deepEqual([broken.status, broken.body.field], [400, "file"]);
  });

  it("counts one report once when four uploads race", async () => {
    const id = await addDomain("race.example");
    const xml = reportXml({ domain: "race.example", begin_s: day("2026-11-18"), records: [{ count: 7 }] });
    const answers = await Promise.all([1, 2, 3, 4].map(() => upload(xml)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 201]);
    assert.equal((await get(id, "summary")).body.total_messages, 7);
  });

  it("refuses what is no report, with the reason", async () => {
    await addDomain("refused.example");
    const cases: [Buffer | string, RegExp][] = [
      ["", /required/],
      ["hello", /neither an XML nor a JSON/],
      ["<!DOCTYPE x><feedback/>", /document type/],
      ['<?xml version="1.0" encoding="windows-1259"?><feedback></feedback>', /domain of the policy/],
      [JSON.stringify({ policies: [] }), /no SMTP TLS report/],
      [reportXml({ domain: "refused.example", begin_s: day("2026-11-24") }), /days to come/],
      [gzipSync(Buffer.concat([Buffer.from("<feedback>"), Buffer.alloc(30e6, " ")])), /too long/],
    ];
    for (const [file, words] of cases) {
      const answer = await upload(file);
      assert.deepEqual([answer.status, answer.body.code, answer.body.field], [400, "validation_error", "file"]);
      assert.match(answer.body.error, words);
    }
    const large = await upload(Buffer.alloc(25 * 1024 * 1024 + 1, "<"));
    assert.deepEqual([large.status, large.body.code, large.body.field], [400, "payload_too_large", "file"]);
  });

  it("is about a domain of the organization, or one below it", async () => {
    const id = await addDomain("below.example");
    const report = await uploaded({ domain: "news.below.example", begin_s: day("2026-11-18") });
    assert.equal((await get(id, `reports/${report.id}`)).body.report.policy_domain, "news.below.example");
    const foreign = await upload(reportXml({ domain: "google.com" }));
    assert.deepEqual([foreign.status, foreign.body.code], [403, "domain_not_owned"]);
    const { live_key } = await api.organization();
    assert.equal((await upload(reportXml({ domain: "below.example" }), { key: live_key, ...BINARY })).status, 403);
    assert.equal((await upload(reportXml({ domain: "below.example" }), { key: null, ...BINARY })).status, 401);
  });

  it("keeps hostile texts as text", async () => {
    const id = await addDomain("xss.example");
    await uploaded({
      domain: "xss.example",
      begin_s: day("2026-11-18"),
      org: "&lt;img onerror=x&gt; '; drop table x; --",
    });
    const [report] = (await get(id, "reports")).body.reports;
    assert.equal(report.org_name, "<img onerror=x> '; drop table x; --");
  });
});

describe("the summary", () => {
  it("has zeroes and says so when there is no report", async () => {
    const { body, status } = await get(await addDomain("empty.example"), "summary");
    assert.equal(status, 200);
    assert.deepEqual(body, {
      ...{ domain: "empty.example", days: 30, from: "2026-10-22", to: "2026-11-20" },
      ...{ total_messages: 0, pass_dkim: 0, pass_spf: 0, aligned: 0, both_aligned: 0 },
      ...{ dkim_rate: 0, spf_rate: 0, alignment_rate: 0, report_count: 0, reporters: [] },
      disposition: { none: 0, pass: 0, quarantine: 0, reject: 0 },
      published_policy: null,
      recommendation: {
        ...{ next_policy: null, blocking_sources: [] },
        reason: "No counted report yet: nothing is known about the mail of this domain.",
      },
    });
  });

  it("adds the reports of the days asked for", async () => {
    const id = await addDomain("sum.example");
    const records = [
      { count: 80 },
      { ip: "192.0.2.2", count: 10, spf: "fail" },
      { ip: "192.0.2.3", count: 10, spf: "fail", dkim: "fail", disposition: "reject", spf_result: "fail" },
    ];
    await uploaded({ domain: "sum.example", begin_s: day("2026-11-18"), records, org: "a.example", id: "1" });
    await uploaded({
      domain: "sum.example",
      begin_s: day("2026-11-02"),
      records,
      org: "b.example",
      id: "2",
      p: "reject",
    });
    await uploaded({ domain: "sum.example", begin_s: day("2026-01-02"), records, org: "b.example", id: "3" });
    const { body } = await get(id, "summary");
    assert.deepEqual(
      [body.total_messages, body.pass_dkim, body.pass_spf, body.aligned, body.both_aligned],
      [200, 180, 160, 180, 160],
    );
    assert.deepEqual([body.dkim_rate, body.spf_rate, body.alignment_rate, body.report_count], [0.9, 0.8, 0.9, 2]);
    assert.deepEqual(body.reporters, [
      { org_name: "a.example", reports: 1, messages: 100 },
      { org_name: "b.example", reports: 1, messages: 100 },
    ]);
    assert.deepEqual(body.disposition, { none: 180, pass: 0, quarantine: 0, reject: 20 });
    assert.equal(body.published_policy.p, "none");
    assert.deepEqual(body.recommendation.blocking_sources, ["192.0.2.3"]);
    assert.equal(body.recommendation.next_policy, "none");
    assert.equal((await get(id, "summary?days=400")).body.total_messages, 300);
    assert.equal((await get(id, "summary?days=2")).body.total_messages, 0);
    assert.equal((await get("sum.example", "summary?days=3")).body.total_messages, 100);
  });

  it("recommends the next policy when nothing stands in the way", async () => {
    const id = await addDomain("ready.example");
    for (let at = 1; at <= 15; at += 1) {
      const begin_s = day(`2026-11-${String(at).padStart(2, "0")}`);
      await uploaded({ domain: "ready.example", begin_s, id: `r${at}`, records: [{ count: 20 }] });
    }
    const { recommendation } = (await get(id, "summary")).body;
    assert.equal(recommendation.next_policy, "quarantine");
    assert.match(recommendation.reason, /100\.0 % of 300 messages in 15 days pass/);
    // Two weeks of mail are needed, however few days the figures are asked for.
    const week = (await get(id, "summary?days=7")).body;
    assert.deepEqual([week.total_messages, week.recommendation], [40, recommendation]);
  });

  it("refuses days below 1 and above 400, and unknown parameters", async () => {
    const id = await addDomain("days.example");
    for (const what of ["summary", "sources", "daily"]) {
      for (const query of ["days=0", "days=401", "days=x", "from=2026-01-01"]) {
        assert.equal((await get(id, `${what}?${query}`)).status, 400, `${what}?${query}`);
      }
      assert.equal((await get(id, `${what}?days=400`)).status, 200);
    }
  });
});

describe("the sources", () => {
  it("are distinguished by our addresses, keys, the SPF record and what reporters say", async () => {
    const id = await addDomain("sources.example");
    dns.set("_spf.postern.test", "TXT", ["v=spf1 ip4:192.0.2.1 -all"]);
    dns.set("sources.example", "TXT", ["v=spf1 include:_spf.postern.test ip4:192.0.2.16/28 -all"]);
    const signed = [{ domain: "sources.example", selector: "postern1", result: "pass" }];
    await uploaded({
      ...{ domain: "sources.example", begin_s: day("2026-11-18") },
      records: [
        { ip: "192.0.2.1", count: 60, dkim_results: signed },
        { ip: "192.0.2.17", count: 50, dkim: "fail", spf: "fail", spf_result: "fail" },
        { ip: "198.51.100.1", count: 40, spf: "fail", dkim_results: signed, spf_domain: "forwarder.example" },
        {
          ip: "198.51.100.2",
          count: 30,
          spf: "fail",
          dkim: "fail",
          reason: "mailing_list",
          spf_domain: "list.example",
        },
        { ip: "198.51.100.3", count: 20, dkim: "fail", spf: "fail", spf_result: "fail" },
        { ip: "2001:db8::25", count: 10, spf: "fail", spf_result: "fail", dkim_results: signed },
      ],
    });
    const { body } = await get(id, "sources");
    assert.deepEqual([body.total, body.limit, body.offset, body.days], [6, 20, 0, 30]);
    assert.deepEqual(
      body.sources.map((source: Record<string, unknown>) => [source.source_ip, source.total, source.classification]),
      [
        ["192.0.2.1", 60, "ours"],
        ["192.0.2.17", 50, "authorised"],
        ["198.51.100.1", 40, "forwarder"],
        ["198.51.100.2", 30, "forwarder"],
        ["198.51.100.3", 20, "unknown"],
        ["2001:db8::25", 10, "ours"],
      ],
    );
    assert.deepEqual(body.sources[2], {
      ...{ source_ip: "198.51.100.1", total: 40, pass_dkim: 40, pass_spf: 0, aligned: 40, dkim_rate: 1, spf_rate: 0 },
      ...{ classification: "forwarder", dkim_domains: ["sources.example"], spf_domains: ["forwarder.example"] },
      ...{ reporters: ["reporter.example"], first_seen: "2026-11-18", last_seen: "2026-11-18" },
    });
    const page = (await get(id, "sources?limit=2&offset=1")).body;
    assert.deepEqual(
      page.sources.map((source: Record<string, unknown>) => source.total),
      [50, 40],
    );
    assert.equal((await get(id, "sources?limit=101")).status, 400);
    const { recommendation } = (await get(id, "summary")).body;
    assert.deepEqual(recommendation.blocking_sources, ["192.0.2.17", "198.51.100.3"]);
  });

  it("are classified by what is seen when no name server answers", async () => {
    const id = await addDomain("silent.example");
    dns.fail("silent.example", "servfail");
    const records = [
      { ip: "192.0.2.17", count: 1 },
      { ip: "192.0.2.18", dkim: "fail", spf: "fail" },
    ];
    await uploaded({ domain: "silent.example", begin_s: day("2026-11-18"), records });
    const { sources } = (await get(id, "sources")).body;
    assert.deepEqual(
      sources.map((source: Record<string, unknown>) => source.classification),
      ["authorised", "unknown"],
    );
  });

  it("collect names over days and reporters", async () => {
    const id = await addDomain("names.example");
    const of = (domain: string, org: string, date: string) =>
      uploaded({
        ...{ domain: "names.example", org, begin_s: day(date), id: org },
        records: [{ spf_domain: domain, dkim_results: [{ domain, result: "pass" }] }],
      });
    await of("a.example", "one.example", "2026-11-17");
    await of("b.example", "two.example", "2026-11-17");
    await of("b.example", "three.example", "2026-11-19");
    const [source] = (await get(id, "sources")).body.sources;
    assert.deepEqual(source.dkim_domains, ["a.example", "b.example"]);
    assert.deepEqual(source.reporters, ["one.example", "three.example", "two.example"]);
    assert.deepEqual([source.first_seen, source.last_seen, source.total], ["2026-11-17", "2026-11-19", 3]);
  });
});

describe("the days", () => {
  it("are all there, the oldest first, and longer reports are split over theirs", async () => {
    const id = await addDomain("daily.example");
    const end_s = day("2026-11-20");
    await uploaded({
      domain: "daily.example",
      begin_s: day("2026-11-18"),
      end_s,
      records: [{ count: 11, spf: "fail" }],
    });
    const { daily, days } = (await get(id, "daily?days=4")).body;
    assert.equal(days, 4);
    assert.deepEqual(
      daily.map((one: Record<string, unknown>) => [one.date, one.total, one.reports]),
      [
        ["2026-11-17", 0, 0],
        ["2026-11-18", 6, 1],
        ["2026-11-19", 5, 1],
        ["2026-11-20", 0, 0],
      ],
    );
    assert.deepEqual(daily[1], {
      ...{ date: "2026-11-18", total: 6, pass_dkim: 6, pass_spf: 0, aligned: 6, alignment_rate: 1, reports: 1 },
      disposition: { none: 6, pass: 0, quarantine: 0, reject: 0 },
    });
    assert.deepEqual(daily[0], {
      ...{ date: "2026-11-17", total: 0, pass_dkim: 0, pass_spf: 0, aligned: 0, alignment_rate: 0, reports: 0 },
      disposition: { none: 0, pass: 0, quarantine: 0, reject: 0 },
    });
    assert.equal((await get(id, "daily")).body.daily.length, 30);
    assert.equal((await get(id, "summary")).body.report_count, 1);
  });
});

describe("the reports", () => {
  it("are listed in pages, newest first, and read by our id and the reporter's", async () => {
    const id = await addDomain("list.example");
    for (const name of ["one", "two", "three"]) {
      await uploaded({ domain: "list.example", begin_s: day("2026-11-18"), id: `${name}@x` });
    }
    const { body } = await get(id, "reports?limit=2");
    assert.deepEqual([body.total, body.limit, body.offset], [3, 2, 0]);
    assert.deepEqual(
      body.reports.map((report: Record<string, unknown>) => report.report_id),
      ["three@x", "two@x"],
    );
    assert.equal("records" in body.reports[0], false);
    const one = await get(id, `reports/${body.reports[0].id}`);
    assert.equal(one.status, 200);
    assert.deepEqual(one.body.report.records, [
      {
        ...{ source_ip: "192.0.2.1", count: 1, disposition: "none", dkim: "pass", spf: "pass", reasons: [] },
        ...{ header_from: "list.example", envelope_from: "list.example", envelope_to: null, dkim_results: [] },
        spf_results: [{ domain: "list.example", scope: "mfrom", result: "pass", human_result: null }],
      },
    ]);
    assert.equal((await get(id, "reports/one@x")).body.report.report_id, "one@x");
  });

  it("give their records in pages", async () => {
    const id = await addDomain("pages.example");
    const records = Array.from({ length: 5 }, (_, at) => ({ count: at }));
    const report = await uploaded({ domain: "pages.example", begin_s: day("2026-11-18"), records });
    const page = await get(id, `reports/${report.id}?records_limit=2&records_offset=3`);
    assert.deepEqual(
      page.body.report.records.map((record: Record<string, unknown>) => record.count),
      [3, 4],
    );
    assert.equal((await get(id, `reports/${report.id}?records_limit=10001`)).status, 400);
  });

  it("go with their domain, and after 410 days", async () => {
    const id = await addDomain("gone.example");
    await uploaded({ domain: "gone.example", begin_s: day("2026-11-18") });
    const count = async (table: string) =>
      (await api.world.db.query<{ n: number }>(`select count(*) as n from ${table}`))[0]?.n ?? 0;
    const before = await count("dmarc_record");
    assert.equal((await api.ask("DELETE", `/v1/domains/${id}`)).status, 200);
    assert.equal(await count("dmarc_record"), before - 1);
    const later = { ...api.world, clock: fixedClock(NOW + 411 * 86_400_000) };
    await sweepReports(later);
    for (const table of ["dmarc_report", "dmarc_record", "dmarc_day", "dmarc_day_source", "dmarc_week_source"]) {
      assert.equal(await count(table), 0, table);
    }
  });
});

describe("the address", () => {
  it("names the token's address, the record to publish and the one that lets reports come here", async () => {
    const id = await addDomain("address.example");
    const { body, status } = await get(id, "address");
    assert.equal(status, 200);
    assert.match(body.address, /^[0-9a-f]{32}@reports\.postern\.test$/);
    const rua = `mailto:${body.address}`;
    const name = "address.example._report._dmarc.reports.postern.test";
    assert.deepEqual(body, {
      ...{ address: body.address, rua },
      suggested_record: { type: "TXT", name: "_dmarc.address.example", value: `v=DMARC1; p=none; rua=${rua}` },
      external_authorization: { required: true, name, type: "TXT", value: "v=DMARC1", status: "missing" },
    });
  });

  it("sees the authorization in DNS, right and wrong, and needs none for names of its own", async () => {
    const state = async (domain: string) => (await get(domain, "address")).body.external_authorization;
    await addDomain("sees.example");
    await addDomain("wrong.example");
    await addDomain("own.postern.test");
    dns.set("sees.example._report._dmarc.reports.postern.test", "TXT", ["v=DMARC1;"]);
    dns.set("wrong.example._report._dmarc.reports.postern.test", "TXT", ["v=spf1 -all"]);
    assert.equal((await state("sees.example")).status, "ok");
    assert.equal((await state("wrong.example")).status, "mismatch");
    const own = await state("own.postern.test");
    assert.deepEqual([own.required, own.status], [false, "not_required"]);
  });

  it("adds itself to the record that is there", async () => {
    const id = await addDomain("theirs.example");
    const { rua } = (await get(id, "address")).body;
    const suggestion = async (record: string) => {
      dns.set("_dmarc.theirs.example", "TXT", [record]);
      await api.ask("POST", `/v1/domains/${id}/verify`);
      return (await get(id, "address")).body.suggested_record.value;
    };
    assert.equal(await suggestion("v=DMARC1; p=reject"), `v=DMARC1; p=reject; rua=${rua}`);
    assert.equal(
      await suggestion("v=DMARC1; p=reject; rua=mailto:a@b.example; adkim=s"),
      `v=DMARC1; p=reject; rua=mailto:a@b.example,${rua}; adkim=s`,
    );
    assert.equal(await suggestion(`v=DMARC1; p=none; rua=${rua}`), `v=DMARC1; p=none; rua=${rua}`);
    for (const empty of ["rua=", "rua= ,", "rua = , ,"]) {
      const record = await suggestion(`v=DMARC1; p=none; ${empty}; adkim=s`);
      assert.equal(record.replaceAll(" ", ""), `v=DMARC1;p=none;rua=${rua};adkim=s`);
    }
    assert.equal(await suggestion("v=DMARC1; p=none; rua="), `v=DMARC1; p=none; rua=${rua}`);
  });
});

describe("every endpoint", () => {
  const paths = ["summary", "sources", "daily", "reports", `reports/${NOBODY}`, "address"];
  it("answers 404 for a domain that is not there, or another organization's", async () => {
    const id = await addDomain("mine.example");
    const report = await uploaded({ domain: "mine.example", begin_s: day("2026-11-18") });
    const { live_key } = await api.organization();
    for (const path of [...paths, `reports/${report.id}`]) {
      assert.equal((await get(NOBODY, path)).status, 404, path);
      for (const name of [id, "mine.example"]) {
        const answer = await api.ask("GET", `/v1/domains/${name}/dmarc/${path}`, undefined, { key: live_key });
        assert.deepEqual([answer.status, answer.body.code], [404, "not_found"], path);
      }
    }
    assert.equal((await get(id, `reports/${NOBODY}`)).status, 404);
    assert.equal((await get(id, "reports/no-such-report")).status, 404);
  });

  it("keeps the same report of two organizations apart", async () => {
    const other = await api.organization();
    await addDomain("both.example");
    const id = await addDomain("both.example", "outbound", other.live_key);
    const xml = reportXml({ domain: "both.example", begin_s: day("2026-11-18"), records: [{ count: 5 }] });
    assert.equal((await upload(xml)).status, 201);
    const theirs = () => api.ask("GET", `/v1/domains/${id}/dmarc/summary`, undefined, { key: other.live_key });
    assert.equal((await theirs()).body.total_messages, 0);
    assert.equal((await upload(xml, { key: other.live_key, ...BINARY })).status, 201);
    assert.equal((await theirs()).body.total_messages, 5);
  });
});

describe("a published report", { skip: existsSync(REPORTS) ? false : `${REPORTS} is not there` }, () => {
  it("of 2012 with 754 records is kept whole, though too old for any figure", async () => {
    const id = await addDomain("example.com");
    const file = readFileSync(join(REPORTS, "opendmarc/good.com!example.com!1337270400!1337356799.xml"));
    const answer = await upload(gzipSync(file));
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    const { report } = (await get(id, `reports/${answer.body.report.id}`)).body;
    assert.equal(report.records.length, 754);
    assert.deepEqual([report.total_messages, report.pass_dkim, report.pass_spf], [183_934, 182_489, 182_330]);
    assert.deepEqual(report.disposition, { none: 182_489, pass: 0, quarantine: 0, reject: 1_445 });
  });
});
