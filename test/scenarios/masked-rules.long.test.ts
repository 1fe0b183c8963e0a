// The rules of masked addresses as a test key meets them: POST /v1/inbound-emails/simulate runs forwards and replies
// completely and shows the messages that would have left.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import PostalMime from "postal-mime";
import { dkimRecord, generateDkimKey, loadSigningKey } from "../../src/mail/dkim/key.ts";
import { signMessage } from "../../src/mail/dkim/sign.ts";
import { C, D, DOMAIN, IP_C, startMaskedSimulation } from "../support/masked-simulation.ts";
import { addVerifiedDomain } from "../support/verified-domain.ts";

const { api, dns, ask, alias, reverse, simulate, activity, close } = await startMaskedSimulation();
after(close);

test("a test key sees the forward and the reply that would have left; the list of received mail stays empty", async () => {
  const a = await alias({ display_name: "Anna" });
  const forward = await simulate({ from: C, to: a.full, head: "Message-ID: <s1@contact.example>\r\n" });
  assert.deepEqual(forward.body.results, [
    { recipient: a.full, accepted: true, smtp_code: 250, enhanced_code: "2.0.0", message: "taken", email_id: null },
  ]);
  assert.equal(forward.body.email, null);
  assert.deepEqual(Object.keys(forward.body.messages[0]).sort(), ["from", "id", "raw", "raw_base64", "recipient"]);
  assert.equal(forward.messages[0].recipient, D);
  const r = forward.messages[0].mail.from.address;
  assert.equal(forward.messages[0].from, r);
  const reply = await simulate({ from: D, to: r, head: "In-Reply-To: <s1@contact.example>\r\n" });
  assert.deepEqual(
    reply.messages.map(({ recipient, from }) => [recipient, from]),
    [[C, a.full]],
  );
  assert.equal(reply.messages[0].mail.inReplyTo, "<s1@contact.example>");
  assert.ok(!reply.body.messages[0].raw.includes("home.example"));
  assert.equal((await ask("GET", "/v1/inbound-emails")).body.total, 0);
  assert.equal((await ask("GET", "/v1/emails")).body.total, 0, "nor is it mail that was sent");
  assert.deepEqual(await activity(a.id), ["reply sent -", "forward sent -", "config sent created"]);
});

const QUOTE = (r: string) =>
  `Mine is ${D}, write there.\r\n\r\nOn Friday, "shop at contact.example" <${r}> wrote:\r\n> To: ${D}\r\n> from shop at contact.example`;

test("redact: all hides the mailbox everywhere, quoted in quotes only, off in no body; what is counted is what was replaced", async () => {
  const want: Record<string, [string, string, number]> = {
    all: ["A", "A", 5],
    quoted: ["D", "A", 4],
    off: ["D", "D", 3],
  };
  for (const [redact, [own, quoted, count]] of Object.entries(want)) {
    const a = await alias({ redact });
    const r = await reverse(a.id);
    const { messages } = await simulate({ from: D, to: r, text: QUOTE(r) });
    assert.equal(messages.length, 1, redact);
    assert.equal(messages[0].recipient, C, redact);
    const shown = (letter: string) => (letter === "A" ? a.full : D);
    assert.equal(
      messages[0].mail.text?.trim().replaceAll("\r\n", "\n"),
      `Mine is ${shown(own)}, write there.\n\nOn Friday, "${C}" <${C}> wrote:\n> To: ${shown(quoted)}\n> from ${C}`,
      redact,
    );
    const { body } = await ask("GET", `/v1/masked/aliases/${a.id}/activity?type=reply`);
    assert.equal(body.activity[0].redactions, count, redact);
    const hidden = await simulate({ from: D, to: r, head: `Subject: from ${D}\r\n`, text: "x" });
    assert.ok(!hidden.body.messages[0].raw.includes(D), `${redact}: the header is always clean`);
  }
});

test("redact: quoted holds what shows the mailbox in a place that is neither the author's text nor a quote", async () => {
  const a = await alias({ redact: "quoted" });
  const r = await reverse(a.id);
  const head = "Content-Type: application/pdf; name=a.pdf\r\nContent-Transfer-Encoding: base64\r\n";
  const { messages } = await simulate({ from: D, to: r, head, text: Buffer.from(`%PDF\x00${D}`).toString("base64") });
  assert.deepEqual(
    messages.map(({ recipient }) => recipient),
    [D],
    "only the notice",
  );
  assert.equal((await activity(a.id))[0] ?? "", "reply held leak");
});

test("replies to several contacts are one mail: all of them named, the same Message-ID, the own address left out", async () => {
  const a = await alias();
  const [r1, r2] = [await reverse(a.id), await reverse(a.id, "boss@contact.example")];
  const head = `To: "The Shop (shop at contact.example)" <${r1}>, ${a.full}, ${D}\r\nCc: ${r2}\r\nMessage-ID: <m1@home.example>\r\n`;
  const { messages, body } = await simulate({ from: D, to: [r1, r2], head });
  assert.equal(messages.length, 2, JSON.stringify(body.results));
  assert.deepEqual(messages.map(({ recipient }) => recipient).sort(), ["boss@contact.example", C]);
  for (const { mail } of messages) {
    assert.deepEqual(
      mail.to?.map(({ name, address }: Record<string, string>) => [name, address]),
      [["The Shop", C]],
    );
    assert.deepEqual(
      mail.cc?.map(({ address }: Record<string, string>) => address),
      ["boss@contact.example"],
    );
  }
  assert.equal(messages[0].mail.messageId, messages[1].mail.messageId);
  const { body: after } = await ask("GET", `/v1/masked/aliases/${a.id}/activity?type=reply`);
  assert.equal(after.total, 2);
});

test("an invitation whose organizer did not write the mail is answered through the alias all the same", async () => {
  const a = await alias();
  const people =
    "ORGANIZER;CN=Boss:mailto:boss@group.example\r\nATTENDEE;EMAIL=guest@contact.example:mailto:guest@contact.example";
  const calendar = (lines: string) => `BEGIN:VCALENDAR\r\nPRODID:-//Secret Client//EN\r\n${lines}\r\nEND:VCALENDAR`;
  const request = `${people}\r\nATTENDEE;RSVP=TRUE:mailto:${a.full}`;
  const head = "Content-Type: text/calendar; method=REQUEST; charset=utf-8\r\n";
  const { messages } = await simulate({ from: C, to: a.full, head, text: calendar(request) });
  const unfolded = messages[0].raw.replace(/\r\n[ \t]/g, "");
  assert.doesNotMatch(unfolded, /mailto:(?:boss|guest)@/);
  assert.match(unfolded, /^ATTENDEE;RSVP=TRUE:mailto:anna@home\.example\r$/m);
  const [, r = ""] = /^ORGANIZER;CN=Boss:mailto:(r\.[a-z2-7]{26}@\S+)\r$/m.exec(unfolded) ?? [];
  const answer = `ORGANIZER;CN=Boss:mailto:${r}\r\nATTENDEE;PARTSTAT=ACCEPTED;CN=${D}:mailto:${D}\r\nX-WR-TIMEZONE:Asia/Kolkata\r\nX-MS-OLK-SENDER:mailto:${D}`;
  // As calendar services send it (RFC 3834 §5): it is its owner's answer all the same.
  const sent = `${head.replace("REQUEST", "REPLY")}Auto-Submitted: auto-generated\r\n`;
  const back = await simulate({ from: D, to: r, head: sent, text: calendar(`METHOD:REPLY\r\n${answer}`) });
  assert.deepEqual(
    back.messages.map(({ recipient }) => recipient),
    ["boss@group.example"],
  );
  const reported = back.messages[0].raw.replace(/\r\n[ \t]/g, "");
  assert.match(reported, /^ORGANIZER;CN=Boss:mailto:boss@group\.example\r$/m);
  assert.match(reported, new RegExp(`^ATTENDEE;PARTSTAT=ACCEPTED;CN=${a.full}:mailto:${a.full}\r$`, "m"));
  assert.doesNotMatch(reported, /Secret Client|Kolkata|X-MS-OLK|home\.example/);
});

test("one message to several recipients has one answer; what one of them must not get is kept from it", async () => {
  const domain = await addVerifiedDomain(api, dns, "desk.example", { type: "both" });
  await ask("POST", "/v1/aliases", { domain_id: domain.id, local_part: "desk", action: "store" });
  const a = await alias();
  dns.set("_dmarc.strict.example", "TXT", ["v=DMARC1; p=reject"]);
  const mail = { from: "eve@strict.example", head: `To: ${a.full}\r\n` };
  assert.equal((await simulate({ ...mail, to: a.full })).said, "550 5.7.1");
  assert.equal((await activity(a.id))[0], "block failed dmarc", "a refusal in session is reported");
  const { body, messages } = await simulate({ ...mail, to: [a.full, "desk@desk.example"] });
  assert.equal(body.accepted, true, "the other domain marks such mail and takes it");
  assert.deepEqual(messages, [], "the alias's mailbox gets nothing");
  assert.equal((await activity(a.id))[0], "block dropped dmarc");
});

test("aliases of a domain that was removed wait for it, and are where they were when it comes back", async () => {
  const domain = await addVerifiedDomain(api, dns, "gone.example", { type: "both", key: api.test_key });
  const a = await alias({ domain_id: domain.id });
  assert.equal((await ask("DELETE", `/v1/domains/${domain.id}`)).status, 409, "it has a masked alias");
  await ask("DELETE", `/v1/masked/aliases/${a.id}`);
  assert.equal((await ask("DELETE", `/v1/domains/${domain.id}`)).status, 200);
  const { status, body } = await ask("POST", `/v1/masked/aliases/${a.id}/restore`);
  assert.deepEqual([status, body.code], [409, "invalid_state"]);

  await addVerifiedDomain(api, dns, "gone.example", { type: "both", key: api.test_key });
  assert.equal((await ask("POST", `/v1/masked/aliases/${a.id}/restore`)).status, 200);
  const b = await alias({ domain_id: "gone.example" });
  const said = async ({ full }: { full: string }) => {
    const { said: answer, messages } = await simulate({ from: C, to: full });
    return [answer, messages.length];
  };
  assert.deepEqual(await said(b), ["250 2.0.0", 1]);
  assert.equal((await ask("DELETE", "/v1/domains/gone.example?force=true")).status, 200);
  assert.notDeepEqual(await said(b), ["250 2.0.0", 1]);
  const again = await addVerifiedDomain(api, dns, "gone.example", { type: "both", key: api.test_key });
  for (const one of [a, b]) {
    assert.deepEqual(
      await said(one),
      ["250 2.0.0", 1],
      "their addresses are never given out again: they must not be dead",
    );
    assert.equal((await ask("GET", `/v1/masked/aliases/${one.id}`)).body.alias.domain_id, again.id);
  }
  await ask("DELETE", "/v1/domains/gone.example?force=true");
  const { live_key } = await api.organization();
  await addVerifiedDomain(api, dns, "gone.example", { type: "both", key: live_key });
  assert.notDeepEqual(await said(b), ["250 2.0.0", 1], "whose domain it is by now gets its mail");
  assert.equal((await ask("GET", `/v1/masked/aliases/${b.id}`)).body.alias.domain_id, again.id);
});

test("what the owner calls a contact is never shown to it", async () => {
  const a = await alias();
  const { body } = await ask("POST", `/v1/masked/aliases/${a.id}/contacts`, { email: C, name: "The Crooks" });
  const { messages } = await simulate({ from: D, to: body.contact.reply_address });
  assert.ok(!messages[0].raw.includes("Crooks"));
});

test("names of the author's servers and addresses of their network hold a reply; the provider's names do not", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  const head =
    "Received: from pc.annas-house.example (dsl.isp.example [203.0.113.9]) by mail.home.example; Fri, 20 Nov 2026 10:00:00 +0100\r\nReceived: from x by smtp.gmail.com with ESMTPS; Fri, 20 Nov 2026 09:00:00 +0000\r\n";
  for (const text of ["sent via pc.annas-house.example", "I am 203.0.113.9", "ask mail.home.example"]) {
    const { messages } = await simulate({ from: D, to: r, head, text });
    assert.deepEqual(
      messages.map(({ recipient }) => recipient),
      [D],
      text,
    );
  }
  const { messages } = await simulate({ from: D, to: r, head, text: "use smtp.gmail.com" });
  assert.deepEqual(
    messages.map(({ recipient }) => recipient),
    [C],
  );
});

test("a signature of another domain, or of a neighbour, proves nothing; the mailbox's own does", async () => {
  const { private_key_pem, public_key } = await generateDkimKey("rsa");
  for (const domain of ["evil.example", "home.example"]) {
    dns.set(`k._domainkey.${domain}`, "TXT", [dkimRecord(public_key, "rsa")]);
  }
  const a = await alias();
  const r = await reverse(a.id);
  const signedBy = async (domain: string, from = `From: ${D}`) => {
    const message = Buffer.from(
      `${from}\r\nTo: ${r}\r\nSubject: x\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\n\r\nyes\r\n`,
    );
    const key = loadSigningKey(private_key_pem, { domain, selector: "k" });
    const raw = Buffer.concat([await signMessage(message, [key], { now_s: Date.now() / 1000 }), message]);
    return simulate({ from: D, to: r, raw, ip: IP_C, envelope: "bounce@evil.example" });
  };
  const forged = await signedBy("evil.example");
  assert.equal(forged.said, "550 5.7.1");
  assert.match(forged.message, /neither an aligned DKIM signature nor SPF/);
  const two = await signedBy("home.example", `From: ${D}, eve@evil.example`);
  assert.equal(two.said, "550 5.7.1");
  assert.match(two.message, /exactly one From address/);
  const twice = await signedBy("home.example", `From: ${D}\r\nFrom: eve@evil.example`);
  assert.equal(twice.said, "550 5.7.1", "two From fields are no one author");
  const own = await signedBy("home.example");
  assert.equal(own.said, "250 2.0.0");
  assert.deepEqual(
    own.messages.map(({ recipient }) => recipient),
    [C],
  );
  const entries = await activity(a.id);
  assert.equal(entries.filter((entry) => entry === "reply failed unauthorised_sender").length, 3);
});

test("refusals are noted in bounds", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  for (let n = 0; n < 70; n += 1) await simulate({ from: "eve@evil.example", to: r });
  const { body } = await ask("GET", `/v1/masked/aliases/${a.id}/activity?type=reply`);
  assert.equal(body.total, 60);
});

test("20 replies an hour, 100 a day, 200 new contacts a day: more is deferred with 450; over 10 recipients is refused", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  const said = async () => (await simulate({ from: D, to: r })).said;
  for (let n = 0; n < 20; n += 1) assert.equal(await said(), "250 2.0.0", `reply ${n + 1}`);
  assert.equal(await said(), "450 4.7.1");
  const set = (kind: string, used: number) =>
    api.world.db.execute("update masked_window set used = $3 where alias_id = $1 and kind = $2", [a.id, kind, used]);
  await set("reply_hour", 0);
  assert.equal(await said(), "250 2.0.0");
  await set("reply_hour", 0);
  await set("reply_day", 100);
  assert.equal(await said(), "450 4.7.1");

  const b = await alias();
  const many = await Promise.all(Array.from({ length: 11 }, (_, n) => reverse(b.id, `p${n}@contact.example`)));
  assert.equal((await simulate({ from: D, to: many.slice(0, 10) })).said, "250 2.0.0");
  assert.equal((await simulate({ from: D, to: many })).said, "550 5.5.3");

  const c = await alias();
  const crowd = (from: number) => Array.from({ length: 30 }, (_, n) => `c${from + n}@contact.example`).join(", ");
  for (let n = 0; n < 6; n += 1) {
    assert.equal((await simulate({ from: C, to: c.full, head: `Cc: ${crowd(n * 30)}\r\n` })).said, "250 2.0.0");
  }
  assert.equal((await simulate({ from: C, to: c.full, head: `Cc: ${crowd(180)}\r\n` })).said, "450 4.7.1");
  assert.equal((await simulate({ from: C, to: c.full })).said, "250 2.0.0", "whom it knows may go on writing");
});

test("an alias never forwards to an alias: refused when it is made, and again when mail comes", async () => {
  const a = await alias();
  const refused = await ask("POST", "/v1/masked/aliases", { forward_to: [a.full] });
  assert.deepEqual([refused.status, refused.body.field], [400, "forward_to[0]"]);
  assert.equal((await ask("POST", "/v1/masked/destinations", { email: a.full })).status, 400);
  const domain = await addVerifiedDomain(api, dns, "late.example", { type: "both" });
  const early = [await alias({ forward_to: ["x@late.example"] }), await alias({ forward_to: ["x+tag@late.example"] })];
  const late = await alias({ domain_id: domain.id, local_part: "x", forward_to: [D] });
  assert.equal(late.full, "x@late.example");
  for (const { id, full } of early) {
    const { messages } = await simulate({ from: C, to: full });
    assert.deepEqual(messages, []);
    assert.equal((await activity(id))[0], "forward dropped loop");
  }
  const tagged = await ask("POST", "/v1/masked/aliases", { forward_to: ["X+shop@late.example"] });
  assert.deepEqual([tagged.status, tagged.body.field], [400, "forward_to[0]"], "a tag makes no other mailbox");
  assert.equal((await ask("POST", "/v1/masked/destinations", { email: "x+shop@late.example" })).status, 400);
});

test("every forward has one Message-ID, and threads hold for a mail that came with none or a broken one", async () => {
  const a = await alias({ forward_to: [D, "anna@second.example"] });
  const r = await reverse(a.id);
  const ours = new RegExp(`^<[0-9a-f]{32}@${DOMAIN}>$`);
  const cases: [field: string, shown: RegExp][] = [
    ["Message-ID: abc@contact.example", /^<abc@contact\.example>$/],
    ["Message-ID: < ab cd@contact.example >", /^<abcd@contact\.example>$/],
    ["Message-ID: <\u00fc1@contact.example>", ours],
    ["Subject: none", ours],
  ];
  const seen = new Set<string>();
  for (const [field, shown] of cases) {
    const { messages } = await simulate({ from: C, to: a.full, head: `${field}\r\n` });
    const ids: string[] = messages.map(({ raw }) => /^Message-ID: (.*)\r$/m.exec(raw)?.[1] ?? "");
    assert.deepEqual([ids.length, new Set(ids).size], [2, 1], `${field}: the same for every mailbox`);
    const [id = ""] = ids;
    assert.match(id, shown);
    seen.add(id);
    assert.match(messages[0].raw, /^Date: .* \+0000\r$/m);
    const answer = await simulate({ from: D, to: r, head: `In-Reply-To: ${id}\r\nReferences: ${id}\r\n` });
    assert.deepEqual([answer.messages[0].mail.inReplyTo, answer.messages[0].mail.references], [id, id], field);
  }
  assert.equal(seen.size, cases.length);
  const head = "References: <\u00fc1@contact.example>\r\nIn-Reply-To: <\u00fc1@contact.example>\r\n";
  const { mail } = (await simulate({ from: C, to: a.full, head })).messages[0];
  assert.ok(seen.has(mail.inReplyTo) && mail.references === mail.inReplyTo, "the next mail of that thread, too");
});

test("an author is whom From names, never the envelope, also where the address needs quotes or leads nowhere", async () => {
  const a = await alias();
  const envelope = "bounces@bulk.contact.example";
  const from = async (author: string) => {
    const { messages } = await simulate({ from: author, to: a.full, envelope });
    return messages[0]?.mail.from as { name: string; address: string } | undefined;
  };
  const dots = await from("Taro <a..b.@docomo.example>");
  assert.equal(dots?.name, 'Taro ("a..b." at docomo.example)');
  const answer = await simulate({ from: D, to: dots?.address ?? "" });
  assert.deepEqual(
    answer.messages.map(({ recipient }) => recipient),
    ['"a..b."@docomo.example'],
  );
  const [one, two] = [await from("One <x@foo_bar.example>"), await from("y@foo_bar.example")];
  assert.match(one?.name ?? "", /^One, x at foo_bar\.example \(unknown\.[0-9a-f]{20} at unknown\.invalid\)$/);
  assert.notEqual(one?.address, two?.address);
  assert.equal((await from("X@foo_bar.example"))?.address, one?.address);
  const path = `/v1/masked/aliases/${a.id}/contacts`;
  const contacts: { id: string; email: string; reply_address: string }[] = (await ask("GET", path)).body.contacts;
  assert.deepEqual(contacts.map(({ email }) => email.replace(/[0-9a-f]{20}/, "?")).sort(), [
    '"a..b."@docomo.example',
    "unknown.?@unknown.invalid",
    "unknown.?@unknown.invalid",
  ]);
  const blocked = contacts.find(({ reply_address }) => reply_address === one?.address);
  await ask("PATCH", `${path}/${blocked?.id}`, { blocked: true });
  assert.equal(await from("x@foo_bar.example"), undefined);
  assert.equal((await from("y@foo_bar.example"))?.address, two?.address, "blocking one blocks no other");
});

test("a domain alias and a masked alias cannot have the same address, whichever comes first", async () => {
  const domain = await addVerifiedDomain(api, dns, "both.example", { type: "both" });
  await alias({ domain_id: domain.id, local_part: "mine" });
  const first = await ask("POST", "/v1/aliases", { domain_id: domain.id, local_part: "Mine" });
  assert.deepEqual([first.status, first.body.code, first.body.field], [409, "already_exists", "local_part"]);
  const other = await ask("POST", "/v1/aliases", { domain_id: domain.id, local_part: "desk" });
  assert.equal(other.status, 201, JSON.stringify(other.body));
  const renamed = await ask("PATCH", `/v1/aliases/${other.body.alias.id}`, { local_part: "mine" });
  assert.equal(renamed.status, 409);
  const second = await ask("POST", "/v1/masked/aliases", { forward_to: [D], domain_id: domain.id, local_part: "desk" });
  assert.deepEqual([second.status, second.body.field], [409, "local_part"]);
});

test("a list that takes unsubscribe requests by mail is left from the alias, by the button and not by the link", async () => {
  const a = await alias();
  const head = "List-Unsubscribe: <mailto:leave@lists.contact.example?subject=bye%20bye&body=call%20me>\r\n";
  const { messages } = await simulate({ from: C, to: a.full, head });
  const field = messages[0].raw.replace(/\r\n /g, " ");
  assert.match(field, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m);
  const path =
    /^List-Unsubscribe: <https:\/\/api\.postern\.test(\/masked\/unsubscribe\/[\w-]+)>\r$/m.exec(field)?.[1] ?? "";
  assert.ok(!field.includes("mailto:"));
  const open = { key: null };
  const seen = await api.ask("GET", path, undefined, open);
  assert.equal(seen.status, 200);
  assert.doesNotMatch(seen.body, /contact\.example|home\.example/);
  assert.deepEqual(await activity(a.id), ["forward sent -", "config sent created"]);
  const form = { ...open, headers: { "content-type": "application/x-www-form-urlencoded" } };
  for (const off of [{ reply_enabled: false }, { active: false }]) {
    const on = Object.fromEntries(Object.keys(off).map((name) => [name, true]));
    await ask("PUT", `/v1/masked/aliases/${a.id}`, off);
    assert.equal((await api.ask("POST", path, "List-Unsubscribe=One-Click", form)).status, 403, JSON.stringify(off));
    await ask("PUT", `/v1/masked/aliases/${a.id}`, on);
  }
  assert.equal((await ask("GET", `/v1/masked/aliases/${a.id}`)).body.alias.emails_replied, 0);
  assert.equal((await api.ask("POST", path, "List-Unsubscribe=One-Click", form)).status, 200);
  assert.deepEqual((await activity(a.id))[0], "reply sent unsubscribe");
  assert.equal((await ask("GET", `/v1/masked/aliases/${a.id}`)).body.alias.emails_replied, 1);
  const sentToList = () =>
    api.world.db.query<{ mime: Buffer }>(
      `select b.mime from recipient r join message_body b on b.id = r.message_id where r.email = 'leave@lists.contact.example'`,
    );
  // A mail program that tries again, and an impatient finger: the list gets one mail.
  const again = await Promise.all([1, 2, 3].map(() => api.ask("POST", path, "List-Unsubscribe=One-Click", form)));
  assert.deepEqual(
    again.map(({ status }) => status),
    [200, 200, 200],
  );
  const [left, ...more] = await sentToList();
  assert.deepEqual(more, []);
  assert.equal((await ask("GET", `/v1/masked/aliases/${a.id}`)).body.alias.emails_replied, 1);
  await api.world.db.query("update masked_window set starts_at = starts_at - interval '25 hours'");
  assert.equal((await api.ask("POST", path, "List-Unsubscribe=One-Click", form)).status, 200);
  assert.equal((await sentToList()).length, 2, "a day later it may be that the list did not hear");
  const mail = await PostalMime.parse(left?.mime ?? "");
  assert.deepEqual([mail.from?.address, mail.subject, mail.text?.trim() ?? ""], [a.full, "bye bye", ""]);
  assert.doesNotMatch(left?.mime.toString() ?? "", /home\.example/);
  const foreign = "List-Unsubscribe: <mailto:victim@elsewhere.example?subject=x>\r\n";
  const sent = await simulate({ from: C, to: a.full, head: foreign });
  assert.doesNotMatch(sent.messages[0].raw, /^List-Unsubscribe/m, "nobody chooses to whom the alias writes");
  const flipped = path.slice(0, 60) + (path[60] === "A" ? "B" : "A") + path.slice(61);
  for (const bad of [path.slice(0, -8), flipped, "/masked/unsubscribe/x"]) {
    assert.equal((await api.ask("POST", bad, undefined, open)).status, 404);
  }
});

test("one person's data can be seen whole and forgotten, in the own world only", async () => {
  const person = "someone@contact.example";
  const [a, b] = [await alias(), await alias({ forward_to: [person] })];
  const r = await reverse(a.id, person);
  await simulate({ from: person, to: a.full, ip: IP_C });
  const path = `/v1/masked/people?email=${person}`;
  const seen = await ask("GET", path);
  assert.equal(seen.status, 200, JSON.stringify(seen.body));
  assert.deepEqual(Object.keys(seen.body).sort(), [
    "activity",
    "alias_ids",
    "contacts",
    "destination",
    "email",
    "patterns",
    "truncated",
  ]);
  assert.equal(seen.body.destination.email, person);
  assert.deepEqual(seen.body.alias_ids, [b.id]);
  assert.deepEqual(
    seen.body.contacts.map(({ alias_id, reply_address, received }: Record<string, unknown>) => [
      alias_id,
      reply_address,
      received,
    ]),
    [[a.id, r, 1]],
  );
  assert.deepEqual(
    seen.body.activity.map(({ type }: { type: string }) => type),
    ["forward"],
  );
  const other = await api.organization();
  const theirs = await api.ask("GET", path, undefined, { key: other.test_key });
  assert.deepEqual([theirs.body.destination, theirs.body.contacts], [null, []]);
  assert.deepEqual(
    (await api.ask("DELETE", path)).body,
    { contacts: 0, destinations: 0, aliases: 0 },
    "live keys: nothing",
  );
  assert.equal((await ask("GET", "/v1/masked/people?email=nobody")).status, 400);
  assert.equal((await ask("GET", "/v1/masked/people")).status, 400);

  const erased = await ask("DELETE", path);
  assert.deepEqual([erased.status, erased.body], [200, { contacts: 1, destinations: 1, aliases: 1 }]);
  const empty = {
    email: person,
    destination: null,
    alias_ids: [],
    patterns: [],
    contacts: [],
    activity: [],
    truncated: false,
  };
  assert.deepEqual((await ask("GET", path)).body, empty);
  assert.equal((await simulate({ from: D, to: r })).said, "550 5.1.1", "the reply address leads nowhere");
  assert.equal((await ask("GET", `/v1/masked/aliases/${b.id}`)).status, 404);
  assert.equal((await ask("POST", `/v1/masked/aliases/${b.id}/restore`)).status, 409);
  assert.equal((await ask("GET", `/v1/masked/aliases/${a.id}/activity`)).body.activity[0].contact, null);
  assert.equal(a.domain, DOMAIN);
});
