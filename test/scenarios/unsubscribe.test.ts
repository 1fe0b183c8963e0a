// From a mail with `unsubscribe` to the click that ends it (RFC 8058), over a real SMTP server and the public endpoint.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { dkimVerify } from "mailauth/lib/dkim/verify.js";
import { type TestApi, testApi } from "../support/api.ts";
import { type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { nodeStyleResolver } from "../support/node-resolver.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { emailWithStatus, receiveAt } from "../support/stories.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const BASE_URL = "https://api.postern.test";
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const ONE_CLICK = "List-Unsubscribe=One-Click";

let api: TestApi;
let dns: DnsServer;
let sink: SmtpSink;
let domainId: string;

before(async () => {
  dns = await startDnsServer();
  sink = await startSmtpSink();
  api = await testApi({ POSTERN_DNS: dns.address, POSTERN_TESTING_OUTBOUND_PORT: String(sink.port) });
  await api.startMta();
  domainId = (await addVerifiedDomain(api, dns, "sender.example")).id;
  receiveAt(dns, "recipient.example");
});

after(async () => {
  await api?.close();
  await sink?.stop();
  await dns?.stop();
});

type Change = Record<string, unknown>;

function send(to: string[], change: Change = {}) {
  const request = { from: "a@sender.example", to, subject: "News", text_body: "x", ...change };
  return api.ask("POST", "/v1/send", request);
}

/** The copies that arrived, by recipient. */
async function deliver(to: string[], change: Change): Promise<Map<string, Buffer>> {
  const { status, body } = await send(to, change);
  assert.equal(status, 202, JSON.stringify(body));
  await emailWithStatus(api, body.id, ["delivered"]);
  const copies = sink.messages.filter(({ message_id }) => message_id === body.message_id);
  return new Map(copies.map(({ to: [address], bytes }) => [address as string, bytes]));
}

function fieldOf(bytes: Buffer, name: string): string | undefined {
  const head =
    bytes
      .toString("latin1")
      .split("\r\n\r\n")[0]
      ?.replace(/\r\n(?=[ \t])/g, "") ?? "";
  return head
    .split("\r\n")
    .find((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
    ?.slice(name.length + 1)
    .trim();
}

/** The path of the link in a copy. */
function linkOf(bytes: Buffer): string {
  const link = /^<(https:[^<>\s]+)>$/.exec(fieldOf(bytes, "List-Unsubscribe") ?? "")?.[1] ?? "";
  assert.ok(link.startsWith(`${BASE_URL}/unsubscribe/`), link);
  return link.slice(BASE_URL.length);
}

async function linkFor(address: string, unsubscribe: Change = {}): Promise<string> {
  return linkOf((await deliver([address], { unsubscribe })).get(address) as Buffer);
}

function click(path: string, body: string | Buffer = ONE_CLICK, headers: Record<string, string> = FORM) {
  return api.ask("POST", path, body, { key: null, headers });
}

describe("mail with unsubscribe", () => {
  it("gives each recipient a link of their own, inside the signature", async () => {
    const copies = await deliver(["one@recipient.example", "two@recipient.example"], {
      unsubscribe: { list: "news" },
      bcc: ["three@recipient.example"],
    });
    assert.equal(copies.size, 3);
    const links = new Set<string>();
    for (const bytes of copies.values()) {
      links.add(linkOf(bytes));
      assert.equal(fieldOf(bytes, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
      const verdict = await dkimVerify(bytes, { resolver: nodeStyleResolver(api.world.resolver) as never });
      assert.equal(verdict.results[0]?.status.result, "pass");
      const signed = /h=([^;]*);/
        .exec(fieldOf(bytes, "DKIM-Signature") ?? "")?.[1]
        ?.toLowerCase()
        .replace(/\s/g, "");
      for (const name of ["list-unsubscribe", "list-unsubscribe-post"]) {
        // Twice: so that nobody can add another one (RFC 6376 §8.15).
        assert.equal(signed?.split(":").filter((word) => word === name).length, 2, name);
      }
      const forged = Buffer.from(bytes.toString("latin1").replace("/unsubscribe/", "/unsubscribe/x"), "latin1");
      const broken = await dkimVerify(forged, { resolver: nodeStyleResolver(api.world.resolver) as never });
      assert.notEqual(broken.results[0]?.status.result, "pass");
    }
    assert.equal(links.size, 3);
  });

  it("keeps its link when it is tried again", async () => {
    const seen: string[] = [];
    sink.onMessage(({ bytes }) => {
      seen.push(linkOf(bytes));
      return seen.length === 1 ? { code: 554, text: "5.6.0 not like this" } : null;
    });
    const { body } = await send(["again@recipient.example"], { unsubscribe: { list: "news" } });
    await emailWithStatus(api, body.id, ["bounced"]);
    assert.equal((await api.ask("POST", `/v1/emails/${body.id}/retry`)).status, 200);
    await emailWithStatus(api, body.id, ["delivered"]);
    sink.onMessage(() => null);
    assert.equal(seen.length, 2);
    assert.equal(seen[0], seen[1]);
  });

  it("has no one-click header when the sender does not want it, and mail without unsubscribe has neither", async () => {
    const [plain] = [...(await deliver(["plain@recipient.example"], { unsubscribe: { one_click: false } })).values()];
    assert.equal(fieldOf(plain as Buffer, "List-Unsubscribe-Post"), undefined);
    linkOf(plain as Buffer);
    const [none] = [...(await deliver(["none@recipient.example"], {})).values()];
    assert.equal(fieldOf(none as Buffer, "List-Unsubscribe"), undefined);
    assert.equal(fieldOf(none as Buffer, "List-Unsubscribe-Post"), undefined);
  });

  it("is refused when it is not well formed", async () => {
    const cases: [unsubscribe: unknown, headers: Change | undefined, field: string][] = [
      [true, undefined, "unsubscribe"],
      [{ list: "" }, undefined, "unsubscribe.list"],
      [{ list: "x".repeat(65) }, undefined, "unsubscribe.list"],
      [{ list: "a\nb" }, undefined, "unsubscribe.list"],
      [{ list: "a\0b" }, undefined, "unsubscribe.list"],
      [{ one_click: "yes" }, undefined, "unsubscribe.one_click"],
      [{ topic: "x" }, undefined, "unsubscribe.topic"],
      [{}, { "list-unsubscribe": "<https://x.example/>" }, "headers.list-unsubscribe"],
      [{}, { "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" }, "headers.List-Unsubscribe-Post"],
    ];
    for (const [unsubscribe, headers, field] of cases) {
      const { status, body } = await send(["x@recipient.example"], { unsubscribe, ...(headers ? { headers } : {}) });
      assert.deepEqual([status, body.field], [400, field], JSON.stringify(unsubscribe));
    }
    const own = { headers: { "List-Unsubscribe": "<https://x.example/u>" } };
    assert.equal((await send(["x@recipient.example"], own)).status, 202);
  });
});

describe("the link", () => {
  it("shows people a page that changes nothing and loads nothing", async () => {
    const path = await linkFor("asked@recipient.example", { list: "<b>news</b>" });
    const { status, body, headers } = await api.ask("GET", path, undefined, { key: null });
    assert.equal(status, 200);
    assert.match(String(headers["content-type"]), /^text\/html/);
    assert.match(body, /<form method="post">.*<button>Unsubscribe<\/button>/);
    assert.ok(body.includes("asked@recipient.example") && !body.includes("<b>"), body);
    assert.doesNotMatch(body, /<script|<img|<link|src=|href=/);
    const policy = String(headers["content-security-policy"]);
    for (const rule of ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"]) {
      assert.ok(policy.includes(rule), policy);
    }
    assert.deepEqual(
      [headers["referrer-policy"], headers["cache-control"], headers["x-content-type-options"], headers["set-cookie"]],
      ["no-referrer", "no-store", "nosniff", undefined],
    );
    const check = await api.ask("GET", "/v1/suppressions/check?email=asked@recipient.example&list=<b>news</b>");
    assert.equal(check.body.suppressed, false);
  });

  it("unsubscribes from the list it names, and from nothing else", async () => {
    const address = "leaves@recipient.example";
    const path = await linkFor(address, { list: "news" });
    const { status, body, headers } = await click(path);
    assert.equal(status, 200);
    assert.match(body, /You are unsubscribed/);
    assert.equal(headers.location, undefined);
    const { suppressions } = (await api.ask("GET", `/v1/suppressions?query=${address}`)).body;
    assert.equal(suppressions.length, 1);
    const { reason, scope_type, scope_id, source, source_message_id } = suppressions[0];
    assert.deepEqual([reason, scope_type, scope_id, source], ["unsubscribe", "list", "news", "unsubscribe"]);
    assert.equal((await api.ask("GET", `/v1/emails/${source_message_id}`)).body.email.to[0], address);
    const refused = await send([address], { unsubscribe: { list: "news" } });
    assert.deepEqual([refused.status, refused.body.suppressed], [422, [{ email: address, reason: "unsubscribe" }]]);
    for (const change of [{ unsubscribe: { list: "deals" } }, { unsubscribe: {} }, {}]) {
      assert.equal((await send([address], change)).status, 202, JSON.stringify(change));
    }
    assert.equal((await click(path)).status, 200);
    assert.equal((await api.ask("GET", `/v1/suppressions?query=${address}`)).body.total, 1);
  });

  it("without a list unsubscribes from what the sender domain sends with such links", async () => {
    const address = "domain@recipient.example";
    assert.equal((await click(await linkFor(address))).status, 200);
    const { suppressions } = (await api.ask("GET", `/v1/suppressions?query=${address}`)).body;
    assert.deepEqual([suppressions[0].scope_type, suppressions[0].scope_id], ["domain", domainId]);
    assert.equal((await send([address], { unsubscribe: {} })).status, 422);
    assert.equal((await send([address], { unsubscribe: { list: "news" } })).status, 422);
    assert.equal((await send([address])).status, 202, "a password's mail has no such link and goes on");
    const byHand = { email: address, scope_type: "domain", scope_id: domainId };
    await api.ask("DELETE", `/v1/suppressions/${suppressions[0].id}`);
    assert.equal((await api.ask("POST", "/v1/suppressions", byHand)).status, 201);
    assert.equal((await send([address])).status, 422, "what the customer suppresses is suppressed");
  });

  it("acts on the forms of RFC 8058, and on nothing else", async () => {
    const address = "forms@recipient.example";
    const path = await linkFor(address, { list: "news" });
    const isSuppressed = async () =>
      (await api.ask("GET", `/v1/suppressions/check?email=${address}&list=news`)).body.suppressed;
    const multipart = (value: string) =>
      `--b\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\n${value}\r\n--b--\r\n`;
    const form = { "content-type": "multipart/form-data; boundary=b" };
    const nothing: [string, Record<string, string>][] = [
      ["", FORM],
      ["List-Unsubscribe=No", FORM],
      ["other=One-Click", FORM],
      [multipart("No"), form],
      ['--b\r\nContent-Disposition: form-data; name="x"\r\n\r\nOne-Click\r\n--b--\r\n', form],
      [JSON.stringify({ "List-Unsubscribe": "One-Click" }), { "content-type": "application/json" }],
      [ONE_CLICK, { "content-type": "text/plain" }],
      [`${ONE_CLICK}&x=${"x".repeat(10_000)}`, FORM],
    ];
    for (const [body, headers] of nothing) {
      assert.equal((await click(path, body, headers)).status, 400, body.slice(0, 60));
    }
    for (const method of ["PUT", "DELETE", "PATCH"]) {
      assert.equal((await api.ask(method, path, undefined, { key: null })).status, 404, method);
    }
    assert.equal(await isSuppressed(), false);
    assert.equal((await click(path, multipart("One-Click"), form)).status, 200);
    assert.equal(await isSuppressed(), true);
  });

  it("is nothing when it was changed, for both methods", async () => {
    const path = await linkFor("forged@recipient.example", { list: "news" });
    const token = path.slice("/unsubscribe/".length);
    const first = token.startsWith("A") ? "B" : "A";
    for (const forged of [
      "x",
      "AAAA",
      `${token}A`,
      token.slice(0, -4),
      first + token.slice(1),
      "..%2f..%2fv1%2fdomains",
    ]) {
      for (const method of ["GET", "POST"]) {
        const body = method === "POST" ? ONE_CLICK : undefined;
        const answer = await api.ask(method, `/unsubscribe/${forged}`, body, { key: null, headers: body ? FORM : {} });
        assert.equal(answer.status, 404, forged);
      }
    }
  });

  it("reaches only the organization that sent the mail", async () => {
    const other = await api.organization();
    await addVerifiedDomain(api, dns, "other.example", { key: other.live_key });
    const address = "both@recipient.example";
    assert.equal((await click(await linkFor(address, { list: "news" }))).status, 200);
    const request = {
      from: "a@other.example",
      to: [address],
      subject: "s",
      text_body: "x",
      unsubscribe: { list: "news" },
    };
    assert.equal((await api.ask("POST", "/v1/send", request, { key: other.live_key })).status, 202);
  });

  it("is not for hammering", async () => {
    const path = await linkFor("hammered@recipient.example", { list: "news" });
    const answers = await Promise.all(
      Array.from({ length: 700 }, () => api.ask("GET", path, undefined, { key: null })),
    );
    const refused = answers.filter(({ status }) => status === 429);
    assert.ok(refused.length > 0 && answers.every(({ status }) => status === 200 || status === 429));
    assert.ok(Number(refused[0]?.headers["retry-after"]) >= 1);
  });
});
