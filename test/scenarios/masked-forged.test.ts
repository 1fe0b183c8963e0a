// Mail to an alias whose author is not proven, over real SMTP: what its domain asks for is done, and the owner has the last word.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, test } from "node:test";
import { sealMessage } from "mailauth/lib/arc/index.js";
import PostalMime from "postal-mime";
import { dkimRecord, generateDkimKey } from "../../src/mail/dkim/key.ts";
import { readRelease } from "../../src/masked/held/release.ts";
import { C, D, IP_C, IP_D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";
import { until } from "../support/until.ts";

/** Its domain asks for quarantine, and lets nobody send from here. */
const FORGED = "bank@asks.example";
/** Its domain asks to refuse. */
const STRICT = "bank@strict.example";
const IP = "127.0.0.9";

let s: MaskedStage;
before(async () => {
  s = await startMaskedStage();
  for (const [domain, policy] of [
    ["asks.example", "quarantine"],
    ["strict.example", "reject"],
  ] as const) {
    s.dns.set(domain, "TXT", ["v=spf1 -all"]);
    s.dns.set(domain, "MX", [{ exchange: "mx.contact.example", preference: 10 }]);
    s.dns.set(`_dmarc.${domain}`, "TXT", [`v=DMARC1; p=${policy}`]);
  }
  await s.alias();
});
after(() => s.close());
beforeEach(async () => {
  await s.settle();
  s.sink.messages.length = 0;
});

const letter = (from: string, to: string, head = "") =>
  `From: "The Bank" <${from}>\r\nTo: ${to}\r\nSubject: your account\r\n${head}\r\nPay now.\r\n`;
const send = (from: string, to: string, content = letter(from, to)) =>
  s.send({ from: "bounces@elsewhere.example", to, content, ip: IP });
const set = (body: object) => s.api.ask("PUT", "/v1/masked/settings", body);
const read = async (at = 0) => PostalMime.parse((await s.arrived(D, at + 1))[at]?.bytes ?? "");

test("mail that a domain asks to put into quarantine waits there, its owner gets a notice, and has it when they release it", async () => {
  const a = await s.alias();
  assert.equal((await send(FORGED, a.full)).code, 250);
  const notice = await read();
  assert.match(notice.subject ?? "", /not forwarded: its sender is not proven/);
  assert.match(notice.text ?? "", /bank at asks\.example/);
  assert.doesNotMatch(notice.text ?? "", /Pay now/);
  await s.settle();
  assert.deepEqual((await s.activity(a.id))[0], "quarantine held dmarc");
  assert.equal(s.sink.messages.length, 1, "the notice and nothing else");
  const { body } = await s.api.ask("GET", `/v1/inbound-emails?status=quarantined&to=${a.full}`);
  assert.deepEqual([body.total, body.emails[0].subject], [1, "your account"]);
  assert.equal((await s.api.ask("POST", `/v1/inbound-emails/${body.emails[0].id}/release`)).status, 200);
  const released = await read(1);
  assert.equal(released.from?.name, "[sender not proven] The Bank (bank at asks.example)");
  assert.match(released.text ?? "", /Pay now/);
});

test("a signature that DNS does not answer for is no way around what a domain asks for: the mail is to come again", async () => {
  const a = await s.alias();
  const bodyHash = createHash("sha256").update("Pay now.\r\n").digest("base64");
  for (const from of [FORGED, STRICT]) {
    const domain = from.slice(from.indexOf("@") + 1);
    s.dns.fail(`lame._domainkey.${domain}`, "servfail");
    const signature = `DKIM-Signature: v=1; a=rsa-sha256; d=${domain}; s=lame; h=from; bh=${bodyHash}; b=AAAA\r\n`;
    assert.match((await send(from, a.full, signature + letter(from, a.full))).text, /^451 4\.4\.3 /);
  }
  await s.settle();
  assert.equal(s.sink.messages.length, 0);
  assert.deepEqual((await s.activity(a.id))[0], "forward deferred dmarc");
});

test("the notice has a link that lets the mail through, once and for a day, by its button alone", async () => {
  const a = await s.alias();
  const ask = (method: string, path: string) => s.api.ask(method, path, undefined, { key: null });
  const linked = async (at: number) => {
    await send(FORGED, a.full);
    return new URL(/https?:\S+\/masked\/release\/\S+/.exec((await read(at)).text ?? "")?.[0] ?? "").pathname;
  };
  const path = await linked(0);
  const opened = await ask("GET", path);
  assert.equal(opened.status, 200);
  assert.ok(!JSON.stringify(opened.body).includes("bank"), "the page says nothing of the mail");
  assert.equal((await ask("GET", path)).status, 200, "opening it does nothing");
  assert.equal((await ask("POST", path)).status, 200);
  const released = await read(1);
  assert.equal(released.from?.name, "[sender not proven] The Bank (bank at asks.example)");
  for (const method of ["GET", "POST"]) assert.equal((await ask(method, path)).status, 404, method);
  await s.settle();
  assert.equal(s.sink.messages.length, 2, "it was forwarded once");
  // What was deleted meanwhile, and what is older than a day.
  const deleted = await linked(2);
  const { body } = await s.api.ask("GET", `/v1/inbound-emails?status=quarantined&to=${a.full}`);
  assert.equal((await s.api.ask("DELETE", `/v1/inbound-emails/${body.emails[0].id}`)).status < 300, true);
  assert.equal((await ask("POST", deleted)).status, 404);
  const old = await linked(3);
  const late = { ...s.api.world, clock: { ...s.api.world.clock, now: () => s.api.world.clock.now() + 86_400_001 } };
  const token = old.slice("/masked/release/".length);
  assert.ok(readRelease(s.api.world, token));
  assert.equal(readRelease(late, token), null);
});

test("mail whose alias was deleted stays in quarantine when it is released, and is forwarded once the alias is back", async () => {
  const a = await s.alias();
  await send(FORGED, a.full);
  const path = new URL(/https?:\S+\/masked\/release\/\S+/.exec((await read()).text ?? "")?.[0] ?? "").pathname;
  const { body } = await s.api.ask("GET", `/v1/inbound-emails?status=quarantined&to=${a.full}`);
  const mail = `/v1/inbound-emails/${body.emails[0].id}`;
  assert.equal((await s.api.ask("DELETE", `/v1/masked/aliases/${a.id}`)).status, 200);
  const kept = async () => (await s.api.ask("GET", mail)).body.email;
  const { subject, from_address } = await kept();
  for (const release of [`${mail}/release`, path]) {
    assert.equal((await s.api.ask("POST", release)).status, 200);
    await s.settle();
    const is = await until("it is looked at", async () => ((await kept())?.status === "processing" ? null : kept()));
    assert.deepEqual([is?.status, is?.subject, is?.from_address], ["quarantined", subject, from_address]);
  }
  assert.equal(s.sink.messages.length, 1, "the notice");
  assert.equal((await s.api.ask("POST", `/v1/masked/aliases/${a.id}/restore`)).status, 200);
  assert.equal((await s.api.ask("POST", path, undefined, { key: null })).status, 200);
  assert.match((await read(1)).text ?? "", /Pay now/);
});

test("there are five such notices a day for an alias, and who is blocked brings none", async () => {
  const a = await s.alias();
  for (let n = 0; n < 7; n += 1) await send(FORGED, a.full);
  await s.settle();
  assert.equal(s.sink.messages.length, 5);
  const { body } = await s.api.ask("GET", `/v1/inbound-emails?status=quarantined&to=${a.full}`);
  assert.equal(body.total, 7, "nothing is lost");
  const b = await s.alias();
  const { contact } = (await s.api.ask("POST", `/v1/masked/aliases/${b.id}/contacts`, { email: FORGED })).body;
  await s.api.ask("PATCH", `/v1/masked/aliases/${b.id}/contacts/${contact.id}`, { blocked: true });
  await send(FORGED, b.full);
  await s.settle();
  assert.equal((await s.activity(b.id))[0], "block dropped contact_blocked");
  assert.equal(s.sink.messages.length, 5);
});

test("with mark_unproven: always a sender that nothing proves is marked in its name, and an answer says nothing of that", async () => {
  s.dns.set("lax.example", "TXT", ["v=spf1 -all"]);
  s.dns.set("_dmarc.lax.example", "TXT", ["v=DMARC1; p=none"]);
  s.dns.set("bare.example", "TXT", ["v=spf1 -all"]);
  for (const domain of ["lax.example", "bare.example"]) {
    s.dns.set(domain, "MX", [{ exchange: "mx.contact.example", preference: 10 }]);
  }
  const a = await s.alias();
  const names: (string | undefined)[] = [];
  for (const mark_unproven of ["asked", "always"]) {
    assert.equal((await set({ mark_unproven })).body.mark_unproven, mark_unproven);
    for (const from of ["me@lax.example", "me@bare.example", C]) {
      const ip = from === C ? IP_C : IP;
      const envelope = from === C ? C : "bounces@elsewhere.example";
      assert.equal((await s.send({ from: envelope, to: a.full, content: letter(from, a.full), ip })).code, 250);
      names.push((await read(names.length)).from?.name.replace(/ \(.*/, ""));
    }
  }
  const marked = "[sender not proven] The Bank";
  assert.deepEqual(names, ["The Bank", "The Bank", "The Bank", marked, marked, "The Bank"]);
  const from = (await read(3)).from;
  const text = `Who are you?\r\n\r\nOn Monday, ${from?.name} <${from?.address}> wrote:\r\n> Pay now.`;
  const content = `From: ${D}\r\nTo: "${from?.name}" <${from?.address}>\r\nSubject: Re: your account\r\n\r\n${text}\r\n`;
  assert.equal((await s.send({ from: D, to: from?.address ?? "", content })).code, 250);
  const answer = (await s.arrived("me@lax.example"))[0]?.bytes.toString("latin1") ?? "";
  assert.match(answer, /^On Monday, The Bank <me@lax\.example> wrote:/m);
  assert.doesNotMatch(answer, /not proven/);
  await set({ mark_unproven: "asked" });
});

test("with forged_mail: warn it is forwarded and says so, and an answer says nothing of that", async () => {
  assert.equal((await set({ forged_mail: "warn" })).body.forged_mail, "warn");
  const a = await s.alias();
  assert.equal((await send(FORGED, a.full)).code, 250);
  const { from } = await read();
  const name = "[sender not proven] The Bank (bank at asks.example)";
  assert.equal(from?.name, name);
  const r = from?.address as string;
  const quote = `No.\r\n\r\nOn Monday, ${name} <${r}> wrote:\r\n> Pay now.\r\n`;
  const reply = `From: ${D}\r\nTo: "${name}" <${r}>\r\nSubject: Re: your account\r\n\r\n${quote}`;
  assert.equal((await s.send({ from: D, to: r, content: reply, ip: IP_D })).code, 250);
  const sent = (await s.arrived(FORGED))[0]?.bytes.toString("latin1") ?? "";
  assert.doesNotMatch(sent, /not proven/);
  assert.match(sent, /On Monday, The Bank <bank@asks\.example> wrote:/);
  assert.match(sent, /^To: "?The Bank"? <bank@asks\.example>\r$/m);
  await set({ forged_mail: "quarantine" });
});

test("a list that is believed may hand on what a strict domain's people wrote, and vouches for nobody else", async () => {
  const { private_key_pem, public_key } = await generateDkimKey("rsa");
  for (const domain of ["lists.example", "evil.example"]) {
    s.dns.set(`k._domainkey.${domain}`, "TXT", [dkimRecord(public_key, "rsa")]);
  }
  const a = await s.alias();
  const sealedBy = async (signingDomain: string, results: string) => {
    const content = letter(
      STRICT,
      a.full,
      "Date: Tue, 24 Nov 2026 10:00:00 +0000\r\nMessage-ID: <1@strict.example>\r\n",
    );
    const authResults = `mx.${signingDomain};\r\n spf=pass smtp.mailfrom=x.example;\r\n ${results}`;
    const seal = { i: 1, cv: "none" as const, selector: "k", signingDomain, privateKey: private_key_pem, authResults };
    return (await sealMessage(Buffer.from(content), seal)).toString("latin1") + content;
  };
  const passed = 'dmarc=pass (p=REJECT "x") header.from=strict.example';
  assert.equal((await send(STRICT, a.full, await sealedBy("lists.example", passed))).text.slice(0, 9), "550 5.7.1");
  const { body } = await set({ arc_sealers: ["lists.example"] });
  assert.deepEqual(body.arc_sealers, ["lists.example"]);
  assert.equal((await send(STRICT, a.full, await sealedBy("lists.example", passed))).code, 250);
  assert.equal((await read()).from?.name, "The Bank (bank at strict.example)");
  const refused: [string, string, string][] = [
    ["somebody else's seal", "evil.example", passed],
    ["it was not proven there either", "lists.example", "dmarc=fail header.from=strict.example"],
    ["another author was", "lists.example", "dmarc=pass header.from=contact.example"],
    [
      "words that only look like a result",
      "lists.example",
      'dkim=fail reason="; dmarc=pass header.from=strict.example"',
    ],
    ["two results", "lists.example", "dmarc=fail header.from=strict.example; dmarc=pass header.from=strict.example"],
  ];
  for (const [why, sealer, results] of refused) {
    assert.equal((await send(STRICT, a.full, await sealedBy(sealer, results))).text.slice(0, 9), "550 5.7.1", why);
  }
  const changed = (await sealedBy("lists.example", passed)).replace("Pay now", "Pay me");
  assert.equal((await send(STRICT, a.full, changed)).text.slice(0, 9), "550 5.7.1");
  assert.equal((await set({ arc_sealers: ["no domain"] })).status, 400);
});

test("a forward has our results on top, and nobody else's", async () => {
  const a = await s.alias();
  const host = s.api.config.mx_host;
  const lies = `Authentication-Results: ${host}; dmarc=pass header.from=contact.example\r\nAuthentication-Results: mx.example; spf=fail\r\n`;
  await s.send({ from: C, to: a.full, content: `${lies}${letter(C, a.full)}` });
  const text = (await s.arrived(D))[0]?.bytes.toString("latin1").replace(/\r\n[ \t]+/g, " ") ?? "";
  const found = text.match(/^Authentication-Results:.*$/gm) ?? [];
  assert.equal(found.length, 1, text);
  assert.ok(found[0]?.startsWith(`Authentication-Results: ${host}; `), found[0]);
  assert.match(found[0] ?? "", /spf=pass smtp\.mailfrom=contact\.example/);
});
