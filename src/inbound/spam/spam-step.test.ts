// What is done about spam over SMTP: refused in session, deferred, kept until it is released, marked, let through; by the
// settings of each recipient's domain, with the built-in engine, lists in the DNS, and a stand-in for rspamd.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";
import { GTUBE, SPAMMY } from "../../../test/support/spam-texts.ts";
import { until } from "../../../test/support/until.ts";
import { addVerifiedDomain } from "../../../test/support/verified-domain.ts";
import { createSpamFilter } from "./spam-step.ts";

type Asked = { headers: NodeJS.Dict<string | string[]>; body: string };
let rspamd: Server;
let asked: Asked[] = [];
let answer: () => { status?: number; body?: unknown } | "nothing";
let r: Receiving;

before(async () => {
  rspamd = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", () => {
      asked.push({ headers: request.headers, body: Buffer.concat(pieces).toString("latin1") });
      const given = answer();
      if (given === "nothing") return;
      response.writeHead(given.status ?? 200, { "content-type": "application/json" });
      response.end(typeof given.body === "string" ? given.body : JSON.stringify(given.body));
    });
  });
  await new Promise<void>((resolve) => rspamd.listen(0, "127.0.0.1", resolve));
  r = await startTestReceiving({
    POSTERN_RSPAMD_URL: `http://127.0.0.1:${(rspamd.address() as AddressInfo).port}`,
    POSTERN_DNS_BLOCK_LISTS: "zen.lists.example=6, domain:dbl.lists.example=9",
    POSTERN_PROXY_PROTOCOL_FROM: "127.0.0.9",
  });
  await addAlias(r, "desk");
});
after(async () => {
  await r.close();
  rspamd.closeAllConnections();
  rspamd.close();
});
beforeEach(async () => {
  asked = [];
  answer = () => ({ body: { score: 0, required_score: 15, action: "no action", symbols: {} } });
  await settings({
    ...{ enabled: true, engine: "builtin", thresholds: { tag: 5, quarantine: 8, reject: 15 }, on_error: "accept" },
    ...{ dmarc_action: { reject: "tag", quarantine: "tag" }, allow: [], block: [] },
  });
});

async function settings(body: object, domain = "in.example"): Promise<void> {
  const { status, body: error } = await r.api.ask("PUT", `/v1/domains/${domain}/spam`, body);
  assert.equal(status, 200, JSON.stringify(error));
}

let sent = 0;

type Given = { text?: string; from?: string; envelope?: string; to?: string[]; head?: string; ip?: string };

/** Sends a mail of its own subject; the answer to the dot. */
async function send(given: Given = {}) {
  sent += 1;
  const { text = "Hello", from = "anna@sender.example", to = ["desk@in.example"], head = "", ip } = given;
  const subject = `mail number ${sent}.`;
  const smtp = await rawSmtp(r.port, ip ? { localAddress: "127.0.0.9" } : {});
  if (ip) smtp.write(`PROXY TCP4 ${ip} 127.0.0.1 4711 25\r\n`);
  await smtp.reply();
  const content = `${head}From: ${from}\r\nTo: ${to[0]}\r\nSubject: ${subject}\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\nMessage-ID: <${sent}@sender.example>\r\n\r\n${text}\r\n`;
  const reply = await smtp.deliver({ from: given.envelope ?? "anna@sender.example", to, content });
  smtp.destroy();
  return { reply, subject };
}

async function one(subject: string, count = 1) {
  const rows = await r.processed(`subject=${encodeURIComponent(subject)}`, count);
  const all = await Promise.all(
    rows.map(async ({ id }) => (await r.api.ask("GET", `/v1/inbound-emails/${id}`)).body.email),
  );
  return all.sort((a, b) => a.to.localeCompare(b.to));
}
const names = (email: { spam: { symbols: { name: string }[] } }) => email.spam.symbols.map(({ name }) => name);

test("ham is delivered with its score, and the copy says so", async () => {
  const { reply, subject } = await send({ head: "X-Spam-Flag: YES\r\nX-Spam-Score: 99\r\n" });
  assert.equal(reply.code, 250);
  const [email] = await one(subject);
  assert.deepEqual(
    [email.status, email.spam, email.spam_score],
    ["delivered", { score: 0, verdict: "ham", symbols: [] }, 0],
  );
  const raw = String((await r.api.ask("GET", `/v1/inbound-emails/${email.id}/raw`)).body);
  assert.match(raw, /^X-Spam-Score: 0\r\nX-Spam-Status: No, score=0 tests=none\r\n/m);
  assert.doesNotMatch(raw, /^X-Spam-Flag|^X-Spam-Score: 99/m, "what the sender wrote there is not ours");
  const [event] = await r.events(email.id);
  assert.deepEqual(event?.body.spam, email.spam);
});

test("GTUBE is refused in session and leaves nothing behind", async () => {
  const { reply, subject } = await send({ text: GTUBE });
  assert.match(reply.text, /^550 5\.7\.1 .*spam/);
  await settings({ thresholds: { tag: null, quarantine: null, reject: 1_000 } });
  assert.equal((await send({ text: GTUBE })).reply.code, 550, "however high the threshold");
  const { body } = await r.api.ask("GET", `/v1/inbound-emails?subject=${encodeURIComponent(subject)}`);
  assert.equal(body.total, 0);
});

test("GTUBE goes as far as a domain's thresholds let it: null is off", async () => {
  await settings({ thresholds: { tag: 5, quarantine: 8, reject: null } });
  const [kept] = await one((await send({ text: GTUBE })).subject);
  assert.deepEqual(
    [kept.status, kept.spam.verdict, kept.reason],
    ["quarantined", "quarantine", "it is spam beyond doubt"],
  );
  const released = await r.api.ask("POST", `/v1/inbound-emails/${kept.id}/release`);
  assert.deepEqual([released.status, released.body.email.status], [200, "delivered"]);
  await settings({ thresholds: { tag: null, quarantine: null } });
  const [ham] = await one((await send({ text: GTUBE })).subject);
  assert.deepEqual([ham.status, ham.spam.verdict, ham.spam.score], ["delivered", "ham", 1_000]);
});

test("symbols add up, and the thresholds decide: refused, kept, marked, let through", async () => {
  assert.match((await send({ text: SPAMMY })).reply.text, /^550 5\.7\.1 .*its spam score is 1\d/);
  await settings({ thresholds: { tag: 5, quarantine: 8, reject: null } });
  const kept = await send({ text: SPAMMY });
  assert.equal(kept.reply.code, 250);
  const [email] = await one(kept.subject);
  const sum = email.spam.symbols.reduce((total: number, symbol: { score: number }) => total + symbol.score, 0);
  assert.ok(email.spam.symbols.length >= 3 && Math.abs(sum - email.spam.score) < 0.001);
  assert.equal(email.spam_score, email.spam.score);
  assert.deepEqual([email.status, email.spam.verdict, email.deliveries], ["quarantined", "quarantine", []]);
  assert.match(email.reason, /spam score/);
  assert.deepEqual(await r.events(email.id), []);

  await settings({ thresholds: { quarantine: null } });
  const [marked] = await one((await send({ text: SPAMMY })).subject);
  assert.deepEqual([marked.status, marked.spam.verdict], ["delivered", "tag"]);
  const raw = String((await r.api.ask("GET", `/v1/inbound-emails/${marked.id}/raw`)).body);
  assert.match(raw, /^X-Spam-Flag: YES\r\nX-Spam-Score: [\d.]+\r\nX-Spam-Status: Yes, score=/m);
  assert.equal((await r.events(marked.id))[0]?.body.spam.verdict, "tag");

  await settings({ thresholds: { tag: null } });
  const [passed] = await one((await send({ text: SPAMMY })).subject);
  assert.deepEqual([passed.status, passed.spam.verdict], ["delivered", "ham"]);
  await settings({ enabled: false });
  const [unjudged] = await one((await send({ text: GTUBE })).subject);
  assert.deepEqual([unjudged.status, unjudged.spam], ["delivered", { score: null, verdict: null, symbols: [] }]);
  const unmarked = String((await r.api.ask("GET", `/v1/inbound-emails/${unjudged.id}/raw`)).body);
  assert.ok(!unmarked.includes("X-Spam"));
});

test("what is released goes on as any other mail, with its score, forwards and rules included", async () => {
  await settings({ thresholds: { reject: null } });
  await addAlias(r, "onward", { action: "forward", forward_to: ["elsewhere@far.example"] });
  const rule = { name: "high", conditions: [{ field: "spam_score", comparator: "gte", value: 8 }], action: "store" };
  const created = await r.api.ask("POST", "/v1/domains/in.example/rules", rule);
  const { subject } = await send({ text: SPAMMY, to: ["desk@in.example", "onward@in.example"] });
  const before = await one(subject, 2);
  assert.deepEqual(
    before.map(({ status, rule_ids, forwards }) => [status, rule_ids, forwards]),
    [
      ["quarantined", [], []],
      ["quarantined", [], []],
    ],
  );
  const [desk, onward] = before;
  const released = (await r.api.ask("POST", `/v1/inbound-emails/${desk.id}/release`)).body.email;
  assert.deepEqual(
    [released.status, released.rule_ids, released.spam.verdict],
    ["delivered", [created.body.rule.id], "quarantine"],
  );
  await r.api.ask("DELETE", `/v1/inbound-rules/${created.body.rule.id}`);
  const forwarded = (await r.api.ask("POST", `/v1/inbound-emails/${onward.id}/release`)).body.email;
  assert.equal(forwarded.forwards.length, 1);
  const [body] = await r.api.world.db.query<{ mime: Buffer }>("select mime from message_body where id = $1", [
    forwarded.forwards[0],
  ]);
  assert.match(String(body?.mime), /^X-Spam-Flag: YES\r\n/m);
});

test("recipients whose domains disagree are each treated as they wish", async () => {
  await addVerifiedDomain(r.api, r.dns, "calm.example", { type: "both" });
  const calm = (await r.api.ask("GET", "/v1/domains/calm.example")).body.id;
  await r.api.ask("POST", "/v1/aliases", { domain_id: calm, local_part: "desk", action: "store" });
  await settings({ enabled: false, engine: "builtin" }, "calm.example");
  const { reply, subject } = await send({ text: GTUBE, to: ["desk@in.example", "desk@calm.example"] });
  assert.equal(reply.code, 250, "nobody's mail is refused for another's wish");
  const [off, on] = await one(subject, 2);
  assert.deepEqual([off.to, off.status], ["desk@calm.example", "delivered"]);
  assert.deepEqual([on.to, on.status, on.spam.verdict], ["desk@in.example", "quarantined", "reject"]);
  await settings({ enabled: true }, "calm.example");
  const both = await send({ text: GTUBE, to: ["desk@in.example", "desk@calm.example"] });
  assert.equal(both.reply.code, 550, "all of them want it refused");
});

test("lists let senders through and keep them out, the more exact entry first", async () => {
  await settings({ allow: ["sender.example"], block: ["bad@sender.example", "*.pest.example"] });
  const allowed = await send({ text: SPAMMY });
  const [email] = await one(allowed.subject);
  assert.deepEqual([email.status, email.spam.verdict, names(email).at(-1)], ["delivered", "ham", "ALLOW_LISTED"]);
  assert.match((await send({ from: "bad@sender.example" })).reply.text, /^550 5\.7\.1 .*the sender is blocked/);
  assert.equal((await send({ from: "x@mail.pest.example" })).reply.code, 550);
  assert.equal(
    (await send({ from: "a@other.example", envelope: "x@mail.pest.example" })).reply.code,
    550,
    "by the envelope as well",
  );
  assert.equal((await send({ text: GTUBE })).reply.code, 550, "the test text is refused from anybody");
  await settings({ allow: ["good@sender.example"], block: ["sender.example"] });
  assert.equal((await send({ from: "good@sender.example", envelope: "good@sender.example" })).reply.code, 250);
  assert.equal((await send({ from: "other@sender.example" })).reply.code, 550);
});

test("an allowed name is no use to whom its domain disowns", async () => {
  r.dns.set("forged.example", "TXT", [["v=spf1 -all"]]);
  r.dns.set("_dmarc.forged.example", "TXT", [["v=DMARC1; p=none"]]);
  await settings({ allow: ["forged.example"] });
  const { reply } = await send({ text: SPAMMY, from: "boss@forged.example", envelope: "boss@forged.example" });
  assert.equal(reply.code, 550);
});

test("what the author's domain asks for is done as this domain wishes", async () => {
  for (const policy of ["reject", "quarantine"]) {
    r.dns.set(`_dmarc.${policy}.example`, "TXT", [[`v=DMARC1; p=${policy}`]]);
  }
  const from = (policy: string) => send({ from: `a@${policy}.example` });
  const [byDefault] = await one((await from("reject")).subject);
  assert.deepEqual([byDefault.status, byDefault.spam.verdict, names(byDefault)], ["delivered", "tag", ["DMARC_FAIL"]]);
  await settings({ dmarc_action: { reject: "reject", quarantine: "quarantine" } });
  assert.match((await from("reject")).reply.text, /^550 5\.7\.1 .*DMARC failed and asks for reject/);
  const [kept] = await one((await from("quarantine")).subject);
  assert.deepEqual([kept.status, kept.reason], ["quarantined", "DMARC failed and asks for quarantine"]);
  await settings({ dmarc_action: { reject: "none" } });
  const [ignored] = await one((await from("reject")).subject);
  assert.deepEqual([ignored.status, ignored.spam.verdict], ["delivered", "ham"]);
});

test("a signature that DNS does not answer for is no way around what the author's domain asks for", async () => {
  r.dns.set("_dmarc.lame.example", "TXT", ["v=DMARC1; p=reject"]);
  r.dns.fail("s._domainkey.lame.example", "servfail");
  const bh = createHash("sha256").update("Hello\r\n").digest("base64");
  const head = `DKIM-Signature: v=1; a=rsa-sha256; d=lame.example; s=s; h=from; bh=${bh}; b=AAAA\r\n`;
  const forged = (to?: string[]) => send({ from: "ceo@lame.example", head, ...(to ? { to } : {}) });
  assert.equal((await forged()).reply.code, 250, "by default nothing is done about DMARC that keeps mail out");
  await settings({ dmarc_action: { reject: "reject" } });
  assert.match((await forged()).reply.text, /^451 4\.7\.1 .*cannot be judged/);
  const { reply, subject } = await forged(["desk@in.example", "desk@calm.example"]);
  assert.equal(reply.code, 250, "another domain's mail is not deferred for it");
  const [free, kept] = await one(subject, 2);
  assert.deepEqual([free.status, kept.status], ["delivered", "quarantined"]);
  assert.equal(kept.reason, "DNS did not answer for DMARC, which asks for reject");
  r.dns.heal("s._domainkey.lame.example");
  assert.match((await forged()).reply.text, /^550 5\.7\.1 .*DMARC failed and asks for reject/);
});

test("lists in the DNS count for strangers, not for this machine, and a domain in a link counts for anybody", async () => {
  r.dns.set("34.216.184.93.zen.lists.example", "A", ["127.0.0.2"]);
  r.dns.set("8.8.8.8.zen.lists.example", "A", ["127.255.255.254"]);
  r.dns.set("evil.com.dbl.lists.example", "A", ["127.0.1.2"]);
  const [listed] = await one((await send({ ip: "93.184.216.34" })).subject);
  assert.deepEqual([listed.spam.score, names(listed), listed.spam.verdict], [6, ["DNSBL_ZEN_LISTS_EXAMPLE"], "tag"]);
  const [refused] = await one((await send({ ip: "8.8.8.8" })).subject);
  assert.equal(refused.spam.score, 0, "the list did not want the question");
  const [link] = await one((await send({ text: "see https://www.evil.com/x" })).subject);
  assert.deepEqual([link.status, link.spam.score], ["quarantined", 9]);
});

test("rspamd gets the message and the envelope, and its score decides by the domain's thresholds", async () => {
  await settings({ engine: "rspamd" });
  const symbols = { FOO: { name: "FOO", score: 6.5, description: "foo" }, BAR: { name: "BAR", score: -0.5 } };
  answer = () => ({ body: { score: 6, required_score: 15, action: "add header", symbols } });
  const { subject } = await send({ text: "words" });
  const [email] = await one(subject);
  assert.deepEqual(
    [email.status, email.spam.verdict, email.spam.score, names(email)],
    ["delivered", "tag", 6, ["FOO", "BAR"]],
  );
  assert.equal(asked.length, 1, "asked once, though session and processing both want to know");
  const { headers, body } = asked[0] as Asked;
  assert.deepEqual(
    [headers.ip, headers.helo, headers.from, headers.rcpt],
    ["127.0.0.1", "client.example", "anna@sender.example", "desk@in.example"],
  );
  assert.ok(body.includes(`Subject: ${subject}\r\n`) && body.endsWith("\r\nwords\r\n"));
  answer = () => ({ body: { score: 16, required_score: 15, action: "reject", symbols } });
  assert.equal((await send()).reply.code, 550);
  answer = () => ({ body: { score: 0, required_score: 15, action: "reject", symbols: {} } });
  assert.equal((await send()).reply.code, 550, "an action that it forces");
});

test("a domain that has chosen no engine uses the server's rspamd, and one that has keeps its own", async () => {
  const judgedBy = async () => {
    asked = [];
    await one((await send()).subject);
    return asked.length === 1 ? "rspamd" : "builtin";
  };
  assert.equal(await judgedBy(), "builtin", "chosen");
  await settings({ engine: null });
  assert.equal(await judgedBy(), "rspamd");
  const { body } = await r.api.ask("GET", "/v1/domains/in.example/spam");
  assert.deepEqual([body.engine, body.engine_chosen], ["rspamd", false]);
  await settings({ thresholds: { tag: 4 } });
  assert.equal(await judgedBy(), "rspamd", "another setting is no choice of an engine");
});

test("without rspamd mail is deferred or judged by the built-in engine, as the domain wishes", async () => {
  await settings({ engine: "rspamd" });
  answer = () => ({ status: 500, body: "broken" });
  const [email] = await one((await send()).subject);
  assert.deepEqual([email.status, email.spam.verdict, names(email)], ["delivered", "ham", ["RSPAMD_UNAVAILABLE"]]);
  assert.equal((await send({ text: GTUBE })).reply.code, 550, "its absence makes no spam ham");
  await settings({ on_error: "defer" });
  assert.match((await send()).reply.text, /^451 4\.7\.1 /);
  answer = () => ({ body: { score: 0, action: "soft reject", symbols: {} } });
  assert.equal((await send()).reply.code, 451, "rspamd itself wants it later");
  const started = performance.now();
  answer = () => "nothing";
  assert.equal((await send()).reply.code, 451);
  assert.ok(performance.now() - started < 9_000, "a silent rspamd is not waited for");
  answer = () => ({ status: 500 });
  const { reply, subject } = await send({ to: ["desk@in.example", "desk@calm.example"] });
  assert.equal(reply.code, 250, "another domain's mail is not deferred for it");
  const [, deferring] = await one(subject, 2);
  assert.deepEqual([deferring.status, deferring.reason], ["quarantined", "rspamd answered 500"]);
});

test("whatever rspamd says of a mail, it is taken and processed", async () => {
  await settings({ engine: "rspamd", thresholds: { tag: 5, quarantine: null, reject: null } });
  const judged = async (body: string) => {
    answer = () => ({ body });
    const [email] = await one((await send()).subject);
    return [email.spam.score, email.spam.symbols.map(({ name }: { name: string }) => name)];
  };
  const odd = String.raw`{"score":5,"symbols":{"A\u0000B":{"score":2,"description":"\u0000"},"C\ud800":{"score":3}}}`;
  assert.deepEqual(await judged(odd), [5, ["C\ufffd", "A\ufffdB"]]);
  const vast = '{"score":5,"symbols":{"A":{"score":1e307},"B":{"score":-1e307},"C":{"score":5}}}';
  assert.deepEqual(await judged(vast), [5, ["C"]]);
  const unjudged = [0, ["RSPAMD_UNAVAILABLE"]];
  for (const score of ["1e307", "-1e39", "1e300"]) assert.deepEqual(await judged(`{"score":${score}}`), unjudged);
  await settings({ on_error: "defer" });
  answer = () => ({ body: String.raw`{"error":"out of \u0000"}` });
  const { reply, subject } = await send({ to: ["desk@in.example", "desk@calm.example"] });
  assert.equal(reply.code, 250);
  const [, held] = await one(subject, 2);
  assert.deepEqual([held.status, held.reason], ["quarantined", "rspamd: out of \ufffd"]);
});

test("a judgement that takes too long holds nobody up: the mail is taken, or deferred where all wish so", async (t) => {
  const never = new Promise<never>(() => undefined);
  const examination = {
    host: "mx.example",
    bytes: () => never,
    verdicts: () => never,
    verdictsNow: () => never,
    parsed: () => never,
    returned: () => never,
    reply: () => never,
    forwards: () => never,
  };
  const filter = createSpamFilter(r.api.world);
  const incoming = (domainIds: (string | null)[]) =>
    ({
      ...{ origin: {}, envelope: {} },
      recipients: domainIds.map((domain_id) => ({
        recipient: "x",
        route: { kind: "alias", org_id: r.api.org_id, domain_id },
      })),
    }) as unknown as Parameters<typeof filter.check>[0];
  const ask = async (domainIds: (string | null)[]) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const answer = filter.check(incoming(domainIds), { ...examination });
    t.mock.timers.tick(6_000);
    t.mock.timers.reset();
    return (await answer)?.code ?? null;
  };
  assert.equal(await ask([null]), null);
  assert.equal(await ask([r.domain.id]), null);
  await settings({ on_error: "defer" });
  assert.equal(await ask([r.domain.id]), 451);
  assert.equal(await ask([r.domain.id, null]), null);
});

test("what is spam is not forwarded through a masked alias, and its owner sees why", async () => {
  const body = { forward_to: ["someone@mailbox.example"], domain_id: r.domain.id, local_part: "mask" };
  const { alias } = (await r.api.ask("POST", "/v1/masked/aliases", body)).body;
  await r.api.world.db.execute("update masked_destination set status = 'verified'");
  assert.equal((await send({ text: GTUBE, to: ["mask@in.example"] })).reply.code, 550);
  await settings({ thresholds: { reject: null } });
  assert.equal((await send({ text: SPAMMY, to: ["mask@in.example"] })).reply.code, 250);
  const activity = await until("the owner sees it", async () => {
    const { body: shown } = await r.api.ask("GET", `/v1/masked/aliases/${alias.id}/activity`);
    return shown.activity.find(({ type }: { type: string }) => type === "quarantine");
  });
  assert.equal(activity.reason, "spam");
  assert.equal(activity.outcome, "held");
  assert.ok(activity.spam_score >= 15);
  const [sent] = await r.api.world.db.query<{ total: number }>(
    "select count(*) as total from recipient where email = 'someone@mailbox.example'",
  );
  assert.ok((sent?.total ?? 0) <= 1, "no more than the question whether they agree");
});

test("an rspamd that fails again and again is left alone for a while", async () => {
  await settings({ engine: "rspamd" });
  answer = () => ({ body: { score: 0, symbols: {} } });
  await send();
  asked = [];
  answer = () => ({ status: 503 });
  for (let number = 1; number <= 7; number += 1) assert.equal((await send()).reply.code, 250);
  assert.equal(asked.length, 5);
});

test("a simulated mail meets the same judgement", async () => {
  const mail = { to: "desk@in.example", from: "anna@sender.example", subject: "x" };
  const refused = await r.api.ask("POST", "/v1/inbound-emails/simulate", { ...mail, text: GTUBE });
  assert.deepEqual([refused.body.accepted, refused.body.results[0].smtp_code], [false, 550]);
  const taken = await r.api.ask("POST", "/v1/inbound-emails/simulate", { ...mail, text: "hello" });
  assert.equal(taken.body.email.spam.verdict, "ham");
});
