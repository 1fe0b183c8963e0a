// While the disk or the memory is short, every door defers new work in its own language, keeps answering, and opens again
// by itself: 503 with Retry-After at the API, 452 at the MX and at submission (RFC 5321 §4.2.2).
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createTransport } from "nodemailer";
import { createHttpServer, type HttpServer } from "../../src/api/server.ts";
import { mountFeatures, startReceiving, startSubmitting } from "../../src/app.ts";
import type { Mx } from "../../src/inbound/receive/mx.ts";
import type { Room, Shortage } from "../../src/platform/process/pressure.ts";
import type { Submission } from "../../src/submission/submission.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { type RawSmtp, rawSmtp } from "../support/raw-smtp.ts";
import { until } from "../support/until.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const PLENTY: Room = { bytes: Number.POSITIVE_INFINITY, looks: 0 };
const pressure: { short: Shortage | null; left: Room; shortage(): Shortage | null; room(): Room } = {
  short: null,
  left: PLENTY,
  shortage: () => pressure.short,
  room: () => pressure.left,
};

let dns: DnsServer;
let api: TestApi;
let mx: Mx;
let submission: Submission;
let http: HttpServer;
let base_url: string;

before(async () => {
  dns = await startDnsServer();
  const any = "127.0.0.1:0";
  const doors = { POSTERN_MX: any, POSTERN_SUBMISSION: any, POSTERN_HTTP: any };
  api = await testApi({ POSTERN_DNS: dns.address, ...doors });
  const domain = await addVerifiedDomain(api, dns, "in.example", { type: "both" });
  const alias = await api.ask("POST", "/v1/aliases", { domain_id: domain.id, local_part: "anna" });
  assert.equal(alias.status, 201);
  mx = await startReceiving(api.world, api.engine, pressure);
  submission = await startSubmitting(api.world, api.engine, pressure);
  http = await createHttpServer(api.world, (routes) => mountFeatures(routes, api.world, api.engine), undefined, {
    pressure,
  });
  base_url = await http.listen();
});

after(async () => {
  await http?.stop();
  await submission?.stop();
  await mx?.stop();
  await api?.close();
  await dns?.stop();
});

beforeEach(() => {
  pressure.short = null;
  pressure.left = PLENTY;
});

const MAIL = { from: "shop@in.example", to: "anna@in.example", subject: "x", text: "x" };

/** The code of the refusal, or 250. */
async function mailTo(port: number, auth?: { user: string; pass: string }): Promise<number> {
  const transport = createTransport({ host: "127.0.0.1", port, tls: { rejectUnauthorized: false }, auth } as object);
  try {
    const { response } = (await transport.sendMail(MAIL)) as { response: string };
    return Number(response.slice(0, 3));
  } catch (error) {
    return (error as { responseCode?: number }).responseCode ?? 0;
  } finally {
    transport.close();
  }
}

async function send(): Promise<{ status: number; retry_after: number }> {
  const response = await fetch(`${base_url}/v1/send`, {
    method: "POST",
    headers: { authorization: `Bearer ${api.live_key}`, "content-type": "application/json" },
    body: JSON.stringify({ from: MAIL.from, to: [MAIL.to], subject: "x", text_body: "x" }),
  });
  await response.arrayBuffer();
  return { status: response.status, retry_after: Number(response.headers.get("retry-after")) };
}

async function list(): Promise<number> {
  const response = await fetch(`${base_url}/v1/emails`, { headers: { authorization: `Bearer ${api.live_key}` } });
  await response.arrayBuffer();
  return response.status;
}

for (const short of ["disk", "memory"] as const) {
  test(`while the ${short} is short every door defers new work, and opens again by itself`, async () => {
    const login = { user: "postern", pass: api.live_key };
    pressure.short = short;
    const { status, retry_after } = await send();
    assert.equal(status, 503);
    assert.ok(retry_after >= 1, `Retry-After ${retry_after}`);
    assert.equal(await list(), 200, "reading goes on");
    const counted = await putOff();
    assert.deepEqual([await mailTo(mx.port), await mailTo(submission.port, login)], [452, 452]);
    assert.deepEqual(
      (await putOff()).map((count, at) => count - (counted[at] ?? 0)),
      [1, 1],
      "what is deferred at MAIL counts, so that the alerts see it",
    );
    pressure.short = null;
    assert.equal((await send()).status, 202);
    assert.deepEqual([await mailTo(mx.port), await mailTo(submission.port, login)], [250, 250]);
  });
}

/** What the metrics of both doors say was answered 452. */
async function putOff(): Promise<number[]> {
  const text = await api.world.metrics.text();
  return ["inbound", "submission"].map((door) =>
    Number(new RegExp(`^postern_${door}_messages_total\\{answer="452"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0),
  );
}

/** A client that is past RCPT, and what it gets at DATA. */
async function toData(size: string): Promise<{ smtp: RawSmtp; reported: number }> {
  const smtp = await rawSmtp(mx.port);
  await smtp.reply();
  await smtp.ask("EHLO client.example");
  assert.equal((await smtp.ask(`MAIL FROM:<a@b.example>${size}`)).code, 250);
  assert.equal((await smtp.ask("RCPT TO:<anna@in.example>")).code, 250);
  return { smtp, reported: (await smtp.ask("DATA")).code };
}

test("what fits on the disk once is promised to one: the others hear 452 at DATA, and it is theirs when that one is gone", async () => {
  pressure.left = { bytes: 50_000_000, looks: 1 };
  const first = await toData(" SIZE=34000000");
  const second = await toData(" SIZE=34000000");
  assert.deepEqual([first.reported, second.reported], [354, 452]);
  first.smtp.destroy();
  await until("the room is there again", async () => {
    const { smtp, reported } = await toData(" SIZE=34000000");
    smtp.destroy();
    return reported === 354;
  });
  second.smtp.destroy();
});

test("a client that says nothing of the size gets 452 at the end when the disk would be short", async () => {
  pressure.left = { bytes: 1_000_000, looks: 1 };
  const { smtp, reported } = await toData("");
  assert.equal(reported, 354);
  smtp.write(`Subject: large\r\n\r\n${`${"x".repeat(76)}\r\n`.repeat(20_000)}.\r\n`);
  assert.match((await smtp.reply()).text, /^452 4\.3\.1 /);
  assert.equal(
    (await smtp.deliver({ from: "a@b.example", to: ["anna@in.example"], content: "x: y\r\n\r\nz" })).code,
    250,
  );
  smtp.destroy();
});
