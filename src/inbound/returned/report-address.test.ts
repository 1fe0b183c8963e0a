// Reports by mail, over real SMTP: which addresses take them, whose count, and what becomes of everything else.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";
import { until } from "../../../test/support/until.ts";
import { type GivenReport, reportXml } from "../../mail/dmarc-report/report.fixture.ts";
import { makeZip } from "../../mail/dmarc-report/zip.fixture.ts";
import { writeReport } from "../../mail/tls-report/write-report.ts";

const DATA = resolve(fileURLToPath(new URL(".", import.meta.url)), "../../../../shared/data");
const DAY_S = 86_400;
const YESTERDAY = (Math.floor(Date.now() / 1_000 / DAY_S) - 1) * DAY_S;

let r: Receiving;
before(async () => {
  r = await startTestReceiving();
  r.dns.set("reporter.example", "TXT", ["v=spf1 ip4:127.0.0.1 -all"]);
  r.dns.set("_dmarc.reporter.example", "TXT", ["v=DMARC1; p=reject"]);
  r.dns.set("stranger.example", "TXT", ["v=spf1 -all"]);
});
after(() => r.close());

type Domain = { id: string; address: string };

async function addDomain(domain: string): Promise<Domain> {
  const created = await r.api.ask("POST", "/v1/domains", { domain, type: "outbound" });
  const { body } = await r.api.ask("GET", `/v1/domains/${created.body.id}/dmarc/address`);
  return { id: created.body.id, address: body.address };
}

function mailOf(to: string, report: GivenReport, sender = "reporter.example") {
  return {
    envelope: { from: `dmarc@${sender}`, to: [to] },
    ...{ from: `dmarc@${sender}`, to, subject: "Report Domain", text: "See the attachment." },
    attachments: [
      {
        filename: "report.xml.gz",
        contentType: "application/gzip",
        content: gzipSync(reportXml({ begin_s: YESTERDAY, ...report })),
      },
    ],
  };
}

/** Whole mails of others, from a sender who may: only what they carry is under test. */
async function sendRaw(to: string, bytes: Buffer): Promise<void> {
  await r.send({ envelope: { from: "dmarc@reporter.example", to: [to] }, raw: bytes });
}

async function reportsOf(id: string, count = 1) {
  return until(`${count} reports`, async () => {
    const { body } = await r.api.ask("GET", `/v1/domains/${id}/dmarc/reports`);
    return body.reports.length >= count && body.reports;
  });
}

async function outcomes(domainId: string, count: number) {
  return until(`${count} mails`, async () => {
    const rows = await r.api.world.db.query<{ status: string; reason: string | null }>(
      "select status, reason from inbound_email where domain_id = $1 and status not in ('received', 'processing') order by id",
      [domainId],
    );
    return rows.length >= count && rows;
  });
}
const totalOf = async (id: string) => (await r.api.ask("GET", `/v1/domains/${id}/dmarc/summary`)).body.total_messages;

describe("a report by mail", () => {
  it("counts when its sender passes DMARC, and counts once", async () => {
    const domain = await addDomain("mailed.example");
    const mail = mailOf(domain.address, { domain: "mailed.example", records: [{ count: 12 }] });
    await r.send(mail);
    await r.send({
      ...mail,
      to: domain.address.toUpperCase(),
      envelope: { from: mail.envelope.from, to: [domain.address.toUpperCase()] },
    });
    await outcomes(domain.id, 2);
    const [report, ...more] = await reportsOf(domain.id);
    assert.deepEqual(more, []);
    assert.deepEqual(
      [report.status, report.via, report.sender_domain, report.total_messages],
      ["counted", "mail", "reporter.example", 12],
    );
    assert.equal(await totalOf(domain.id), 12);
    const listed = await r.api.ask("GET", "/v1/inbound-emails");
    assert.equal(listed.body.total, 0, "reports are no customer's mail");
  });

  it("is kept, flagged and left out when anybody could have sent it, until it comes from its sender", async () => {
    const domain = await addDomain("forged.example");
    await r.send(mailOf(domain.address, { domain: "forged.example", records: [{ count: 66 }] }, "stranger.example"));
    const [forged] = await reportsOf(domain.id);
    assert.deepEqual([forged.status, forged.sender_domain], ["unauthenticated", "stranger.example"]);
    assert.match(forged.reason, /not authenticated/);
    assert.equal(await totalOf(domain.id), 0);
    assert.deepEqual((await r.api.ask("GET", `/v1/domains/${domain.id}/dmarc/sources`)).body.sources, []);
    await r.send(mailOf(domain.address, { domain: "forged.example", records: [{ count: 5 }] }));
    await outcomes(domain.id, 2);
    const [true_report, ...more] = await reportsOf(domain.id);
    assert.deepEqual([more.length, true_report.status, true_report.total_messages], [0, "counted", 5]);
    await r.send(mailOf(domain.address, { domain: "forged.example", records: [{ count: 66 }] }, "stranger.example"));
    await outcomes(domain.id, 3);
    assert.equal(await totalOf(domain.id), 5);
  });

  it("is listed as unreadable when it is about another domain or is none", async () => {
    const domain = await addDomain("wrong.example");
    await r.send(mailOf(domain.address, { domain: "elsewhere.example" }));
    await r.send({
      ...mailOf(domain.address, {}),
      attachments: [{ filename: "a.gz", content: Buffer.from("\x1f\x8bnothing", "latin1") }],
    });
    await r.send({ ...mailOf(domain.address, {}), attachments: [] });
    const reports = await reportsOf(domain.id, 3);
    assert.deepEqual(reports.map((report: Record<string, unknown>) => [report.status, report.reason]).sort(), [
      ["unreadable", "the gzip file is damaged or cut off"],
      ["unreadable", "the mail holds no report"],
      ["unreadable", "the report is about elsewhere.example, not about wrong.example"],
    ]);
    assert.deepEqual([reports[0].report_id, reports[0].begin_at, reports[0].published_policy], [null, null, null]);
    assert.equal(await totalOf(domain.id), 0);
    const mails = await outcomes(domain.id, 3);
    assert.deepEqual(new Set(mails.map(({ status }) => status)), new Set(["failed"]));
  });

  it("that is a bomb, or asks for a file of this machine, is refused for what it is, by mail and by upload; the next one counts", async () => {
    const domain = await addDomain("bombed.example");
    const spaces = Buffer.concat([Buffer.from("<feedback>"), Buffer.alloc(30_000_000, " ")]);
    const entities = Array.from({ length: 9 }, (_, at) => `<!ENTITY e${at + 1} "${`&e${at};`.repeat(10)}">`).join("");
    const hostile: [Buffer, RegExp][] = [
      [gzipSync(spaces), /200 times its size|too long/],
      [makeZip([{ name: "a.xml", content: spaces }]), /200 times its size|too long/],
      [makeZip([{ name: "b.zip", content: makeZip([{ name: "a.xml", content: spaces }]) }]), /neither an XML|archive/],
      [Buffer.from(`<!DOCTYPE x [<!ENTITY e0 "ha">${entities}]><feedback>&e9;</feedback>`), /document type/],
      [Buffer.from('<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><feedback>&f;</feedback>'), /document type/],
      [Buffer.from('<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd"><feedback/>'), /document type/],
    ];
    for (const [content] of hostile) {
      await r.send({ ...mailOf(domain.address, {}), attachments: [{ filename: "report.bin", content }] });
    }
    await outcomes(domain.id, hostile.length);
    const reports = await reportsOf(domain.id, hostile.length);
    const reasons = reports.map(({ reason }: { reason: string }) => reason);
    for (const [content, words] of hostile) {
      assert.ok(
        reasons.some((reason: string) => words.test(reason)),
        `${words} in ${reasons}`,
      );
      const headers = { "content-type": "application/octet-stream" };
      const answer = await r.api.ask("POST", "/v1/dmarc/reports", content, { headers });
      assert.deepEqual([answer.status, answer.body.field], [400, "file"]);
      assert.match(answer.body.error, words);
    }
    assert.equal(new Set(reports.map(({ status }: { status: string }) => status)).size, 1);
    await r.send(mailOf(domain.address, { domain: "bombed.example", records: [{ count: 3 }] }));
    await outcomes(domain.id, hostile.length + 1);
    assert.equal(await totalOf(domain.id), 3);
  });

  it("is not taken beyond what reporters send in a day", async () => {
    const domain = await addDomain("flooded.example");
    await r.send(mailOf(domain.address, { domain: "flooded.example" }));
    await outcomes(domain.id, 1);
    await r.api.world.db.query("update dmarc_report set record_count = 500000 where domain_id = $1", [domain.id]);
    await r.send(mailOf(domain.address, { domain: "flooded.example", id: "another" }));
    const [, second] = await outcomes(domain.id, 2);
    assert.deepEqual(
      [second?.status, second?.reason],
      ["dropped", "too many reports on this domain came within 24 hours"],
    );
    assert.equal(await totalOf(domain.id), 1);
  });

  it("is deferred while nobody can tell who sends it", async () => {
    const domain = await addDomain("later.example");
    r.dns.fail("nodns.example", "servfail");
    r.dns.fail("_dmarc.nodns.example", "servfail");
    const mail = mailOf(domain.address, { domain: "later.example" }, "nodns.example");
    await assert.rejects(r.send(mail), /451.*4\.7\.24/s);
    assert.equal((await r.api.ask("GET", `/v1/domains/${domain.id}/dmarc/reports`)).body.total, 0);
  });
});

describe("an address at the report domain", () => {
  it("that nobody has is refused in session", async () => {
    const smtp = await rawSmtp(r.port);
    await smtp.reply();
    for (const command of ["EHLO client.example", "MAIL FROM:<dmarc@reporter.example>"]) await smtp.ask(command);
    for (const local of ["postmaster-not", "0".repeat(32), "x".repeat(32)]) {
      assert.match((await smtp.ask(`RCPT TO:<${local}@reports.postern.test>`)).text, /^550[ -]5\.1\.1/);
    }
    smtp.end();
  });
});

describe("the published mails", { skip: existsSync(DATA) ? false : `${DATA} is not there` }, () => {
  const reports: [string, string, number][] = [
    ["mail-auth/100.eml", "stalw.art", 1],
    ["mail-auth/104.eml", "stalw.art", 1],
    ["mox/outlook.eml", "ueber.net", 2],
    ["mox/xs4all.eml", "ueber.net", 1],
    ["mox/yahoo.eml", "ueber.net", 1],
    ["parsedmarc/mimecast-weird-gzip.eml", "ab.id.au", 1],
    ["parsedmarc/twilight.eml", "twlnet.com", 1],
  ];
  it("give their reports, and their senders of years ago do not authenticate from here", async () => {
    const domains = new Map<string, Domain>();
    for (const [name, domain, messages] of reports) {
      const known = domains.get(domain) ?? (await addDomain(domain));
      domains.set(domain, known);
      const before = (await r.api.ask("GET", `/v1/domains/${known.id}/dmarc/reports`)).body.total;
      await sendRaw(known.address, readFileSync(join(DATA, "dmarc-aggregate-reports", name)));
      const [report] = await reportsOf(known.id, before + 1);
      assert.deepEqual([report.status, report.total_messages], ["unauthenticated", messages], name);
    }
  });

  it("with TLS reports are kept beside, once", async () => {
    const domain = await addDomain("test.xmox.nl");
    const bytes = readFileSync(join(DATA, "tls-rpt/mox/example.eml"));
    await sendRaw(domain.address, bytes);
    await sendRaw(domain.address, bytes);
    assert.deepEqual(
      (await outcomes(domain.id, 2)).map(({ status }) => status),
      ["delivered", "delivered"],
    );
    const rows = await r.api.world.db.query(
      "select organization_name, authenticated from tls_report where domain_id = $1",
      [domain.id],
    );
    assert.deepEqual(rows, [{ organization_name: "Google Inc.", authenticated: false }]);
    assert.equal((await r.api.ask("GET", `/v1/domains/${domain.id}/dmarc/reports`)).body.total, 0);
  });

  it("with TLS reports on DANE, which name the domain's mail server, are kept", async () => {
    const domain = await addDomain("dane-tls.example");
    const made = { domain: "dane-tls.example", submitter: "reporter.example", organization_name: "Reporter" };
    const about = { ...made, contact: "x@reporter.example", begin_ms: YESTERDAY * 1_000, end_ms: Date.now() };
    const policy = {
      policy_type: "tlsa",
      policy_domain: "mx.provider.example",
      policy_strings: [`3 1 1 ${"0".repeat(64)}`],
    };
    const none = { mx_host: "", mx_ip: "", source_ip: "", detail: null };
    const packed = writeReport(about, [{ ...policy, ...none, result: "success", sessions: 3 }]);
    const mail = mailOf(domain.address, { domain: "dane-tls.example" });
    await r.send({ ...mail, attachments: [{ contentType: "application/tlsrpt+gzip", content: packed }] });
    const [taken] = await outcomes(domain.id, 1);
    assert.deepEqual([taken?.status, taken?.reason], ["delivered", null]);
    const kept = await r.api.world.db.query("select authenticated from tls_report where domain_id = $1", [domain.id]);
    assert.deepEqual(kept, [{ authenticated: true }]);
  });

  it("with TLS reports on another domain are dropped, and are no unreadable DMARC reports", async () => {
    const domain = await addDomain("no-tls.example");
    await sendRaw(domain.address, readFileSync(join(DATA, "tls-rpt/mox/example.eml")));
    const [mail] = await outcomes(domain.id, 1);
    assert.deepEqual([mail?.status, mail?.reason], ["dropped", "the TLS report is not about no-tls.example"]);
    assert.equal((await r.api.ask("GET", `/v1/domains/${domain.id}/dmarc/reports`)).body.total, 0);
    const kept = await r.api.world.db.query("select 1 from tls_report where domain_id = $1", [domain.id]);
    assert.deepEqual(kept, []);
  });

  it("with failure reports are dropped, and suppress nobody", async () => {
    const domain = await addDomain("failure.example");
    const name = "DMARC Failure Report for domain.de (mail-from=sharepoint@domain.de, ip=10.10.10.10).eml";
    await sendRaw(domain.address, readFileSync(join(DATA, "dmarc-failure-reports", name)));
    const [mail] = await outcomes(domain.id, 1);
    assert.equal(mail?.status, "dropped");
    assert.match(mail?.reason ?? "", /failure report/);
    assert.equal((await r.api.ask("GET", `/v1/domains/${domain.id}/dmarc/reports`)).body.total, 0);
    assert.equal((await r.api.ask("GET", "/v1/suppressions")).body.total, 0);
  });
});
