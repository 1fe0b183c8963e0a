// A real rspamd judges what comes over SMTP: its symbols and score stand in the record and the event, the domain's
// thresholds decide, its GTUBE is refused, and when it is gone mail is deferred or judged without it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rawSmtp } from "../support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../support/receiving.ts";
import { hasRspamd, type Rspamd, startRspamd } from "../support/rspamd.ts";
import { GTUBE } from "../support/spam-texts.ts";

const skip = hasRspamd() ? false : "rspamd is not installed";
let rspamd: Rspamd;
let r: Receiving;

before(async () => {
  if (skip) return;
  rspamd = await startRspamd();
  r = await startTestReceiving({ POSTERN_RSPAMD_URL: rspamd.url });
  await addAlias(r, "desk");
  await settings({ engine: "rspamd" });
});
after(async () => {
  if (skip) return;
  await r.close();
  await rspamd.stop();
});

async function settings(body: object): Promise<void> {
  const { status } = await r.api.ask("PUT", "/v1/domains/in.example/spam", body);
  assert.equal(status, 200);
}

async function send(subject: string, { from = "anna@sender.example", text = "Hello" } = {}): Promise<string> {
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  const content = `From: ${from}\r\nTo: desk@in.example\r\nSubject: ${subject}\r\n\r\n${text}\r\n`;
  const { text: reply } = await smtp.deliver({ from, to: ["desk@in.example"], content });
  smtp.destroy();
  return reply;
}

async function received(subject: string) {
  const [row] = await r.processed(`subject=${encodeURIComponent(subject)}`);
  return (await r.api.ask("GET", `/v1/inbound-emails/${row.id}`)).body.email;
}

test("its symbols and score are the mail's, and the domain's thresholds decide", { skip }, async () => {
  assert.match(await send("cheap watches"), /^250 /);
  const tagged = await received("cheap watches");
  assert.deepEqual(
    [tagged.status, tagged.spam],
    [
      "delivered",
      { score: 6.5, verdict: "tag", symbols: [{ name: "WATCHES", score: 6.5, description: "Sells watches" }] },
    ],
  );
  assert.deepEqual((await r.events(tagged.id))[0]?.body.spam, tagged.spam);
  assert.match(await send("watches of a friend", { from: "friend@sender.example" }), /^250 /);
  const friendly = await received("watches of a friend");
  assert.deepEqual([friendly.spam.score, friendly.spam.verdict], [5, "tag"]);
  assert.match(await send("loans"), /^250 /);
  assert.equal((await received("loans")).status, "quarantined");
  assert.match(await send("watches on loans"), /^550 5\.7\.1 .*its spam score is 20/);
  assert.match(await send("plain"), /^250 /);
  assert.deepEqual((await received("plain")).spam, { score: 0, verdict: "ham", symbols: [] });
});

test("what it forces is done however high the thresholds, but for one that is off", { skip }, async () => {
  await settings({ thresholds: { tag: null, quarantine: 900, reject: 1_000 } });
  assert.match(await send("test text", { text: GTUBE }), /^550 5\.7\.1 /);
  await settings({ thresholds: { reject: null } });
  assert.match(await send("test text again", { text: GTUBE }), /^250 /);
  assert.equal((await received("test text again")).spam.verdict, "quarantine");
  await settings({ thresholds: { tag: 5, quarantine: 8, reject: 15 } });
});

test("when it is gone mail is deferred, or judged without it", { skip }, async () => {
  await rspamd.stop();
  await settings({ on_error: "defer" });
  assert.match(await send("while it is gone"), /^451 4\.7\.1 /);
  await settings({ on_error: "accept" });
  assert.match(await send("all the same"), /^250 /);
  const { spam } = await received("all the same");
  assert.deepEqual([spam.verdict, spam.symbols.at(-1).name], ["ham", "RSPAMD_UNAVAILABLE"]);
});
