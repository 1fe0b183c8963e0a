// What a reply asks of the path: only what is about our own address may hold up everybody's mail.
import assert from "node:assert/strict";
import { test } from "node:test";
import { classifyReply, type ReplyStage } from "./classify.ts";
import { parseReply } from "./reply.ts";

function classify(raw: string, stage: ReplyStage = "rcpt", site?: string) {
  const reply = parseReply(raw);
  assert.ok(reply, raw);
  return classifyReply({ stage, site, ...reply });
}

// reply | site | class | path action.
const whose = `
450 4.2.1 The user you are trying to contact is receiving mail too quickly. | google | rate_limited -
432 4.3.2 STOREDRV.Deliver; recipient thread limit exceeded | microsoft | rate_limited -
550 5.2.121 Recipient's per hour message receive limit from specific sender exceeded. | microsoft | rate_limited -
450 4.2.1 The recipient has exceeded their limit for receiving messages per hour | microsoft | rate_limited -
451 Ratelimit exceeded for mailbox user@mail.ru. Try again later | mailru | rate_limited -
451 4.7.1 Too many messages for <user@y.example>, try again later | other | rate_limited -
451 4.7.1 Too many messages for <user@y.example> from 192.0.2.1 | other | rate_limited slow
452 4.5.3 Too many recipients | other | rate_limited slow
421 4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your IP address. | google | rate_limited slow
421 4.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your DKIM domain [shop.example 36]. | google | rate_limited slow_sender
421 4.7.28 Gmail has detected an unusual rate of unsolicited mail containing one of your URL domains. | google | rate_limited slow_sender
550 5.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your IP address. | google | blocked other_source
550 5.7.28 Gmail has detected an unusual rate of unsolicited mail originating from your SPF domain [shop.example 35]. | google | content -
554 5.7.1 Service unavailable; Sender address [a@shop.example] blocked using rhsbl.sorbs.net | other | content -
554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using dnsbl.sorbs.net | other | blocked other_source
550 5.7.1 Your domain shop.example is on our blacklist | other | content -
550 Domaine expéditeur sur liste noire | other | content -
550 5.7.1 Your server is on our blacklist | other | blocked other_source
550 5.7.1 The sending domain has a poor reputation | other | content -
550 5.7.1 Poor reputation of the domain or of the IP 192.0.2.1 | other | blocked other_source
550 5.7.1 <a@shop.example>: Sender address rejected: blacklisted | other | content -
451 4.7.1 <a@shop.example>: Sender address rejected: domain is blacklisted | other | content -
550 5.7.1 Blocked, see https://domain.example/blacklist | other | blocked other_source
550 5.7.1 blacklisted, see https://lists.example/domain | other | blocked other_source
`;
test("what is one recipient's or one sender's domain's leaves the path to everybody else's mail", () => {
  for (const row of whose.trim().split("\n")) {
    const [raw = "", site = "", want = ""] = row.split(" | ");
    const { class: mailClass, path_action, rule } = classify(raw, "rcpt", site);
    assert.equal(`${mailClass} ${path_action ?? "-"}`, want, `${raw} (${rule})`);
  }
  assert.equal(
    classify("554 5.7.1 Your domain is on our blacklist", "banner").path_action,
    "other_source",
    "said at the door",
  );
});

test("what an address of a page asks for is no word about us", () => {
  const page = "http://postmaster.there.example/response_codes?ip=192.0.2.1#rcp";
  const unknown = classify(`550 5.1.1 RCP-P1 ${page} Refused due to recipient preferences`);
  assert.deepEqual([unknown.class, unknown.bounce_type, unknown.suppress], ["invalid_recipient", "hard", true]);
  const unwilling = classify(`554 5.1.1 RCP-P2 ${page} Refused due to recipient preferences`);
  assert.deepEqual([unwilling.class, unwilling.bounce_type, unwilling.suppress], ["content", "soft", false]);
  assert.equal(classify("550 Your IP 192.0.2.1 is refused, see http://there.example/?a=b").class, "blocked");
});

test("the name of a page is no word of the reply", () => {
  const { class: mailClass, bounce_type } = classify(
    "550 BAD_RECIPIENT - see http://there.example/undelivered.php?r=x",
  );
  assert.deepEqual([mailClass, bounce_type], ["invalid_recipient", "hard"]);
  assert.equal(classify("550 no, see https://there.example/help/dns/timeout#busy").class, "invalid_recipient");
  assert.equal(classify("550 Message expired, see http://there.example/undelivered.php").class, "expired");
});

test("a host that will not relay, and a size that is the organization's limit, are read as such", () => {
  const relay = "553-you are trying to use me [server-9.tower-1.filter.example] as a relay, but I have not been";
  assert.equal(classify(`${relay} configured to let 553 you [192.0.2.1] do this (#5.7.1)`).class, "routing");
  const large = "550 5.2.3 RESOLVER.RST.SendSizeLimit.Org; message too large for this organization";
  assert.equal(classify(large).class, "too_large");
});

test("a 421 with 4.7.0 that names nothing is a busy server, no verdict on us or on what we send", () => {
  for (const [raw, want] of [
    ["421 4.7.0 mx1.b.example ref 8f2c", "busy"],
    ["421 4.7.0", "busy"],
    ["421 4.7.0 Message content rejected", "content"],
    ["421 4.7.38 mx1.b.example ref 8f2c", "content"],
    ["451 4.7.0 mx1.b.example ref 8f2c", "content"],
  ] as const) {
    assert.equal(classify(raw, "final").class, want, raw);
  }
  const atTheDoor = classify("421 4.7.0 mx1.b.example ref 8f2c", "banner");
  assert.deepEqual([atTheDoor.class, atTheDoor.path_action, atTheDoor.retry], ["busy", null, true]);
});
