// Greylisting: who is asked to come again, who may pass, and for how long it is remembered.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rawSmtp } from "../../../test/support/raw-smtp.ts";
import { addAlias, type Receiving, startTestReceiving } from "../../../test/support/receiving.ts";
import { fixedClock } from "../../platform/clock.ts";
import { mayPass } from "./greylist.ts";

let r: Receiving;
const clock = fixedClock(Date.UTC(2026, 10, 20));
const MINUTE = 60_000;
const DAY = 86_400_000;

before(async () => {
  r = await startTestReceiving({ POSTERN_GREYLISTING: "1" });
});
after(() => r.close());

const ask = (ip: string, sender = "a@b.example", recipient = "x@in.example") =>
  mayPass({ db: r.api.world.db, clock }, { ip, sender, recipient });

test("a stranger passes at the next try after a minute, and is known from then on", async () => {
  assert.equal(await ask("192.0.2.1"), false);
  clock.advance(30_000);
  assert.equal(await ask("192.0.2.1"), false, "the same volley");
  clock.advance(MINUTE);
  assert.equal(await ask("192.0.2.99"), true, "a neighbour of the same network");
  assert.equal(await ask("192.0.2.1", "A@B.example", "X@IN.example"), true, "case does not matter");
  assert.equal(await ask("192.0.3.1"), false, "another network");
  assert.equal(await ask("192.0.2.1", "other@b.example"), false, "another sender");
  assert.equal(await ask("192.0.2.1", "a@b.example", "y@in.example"), false, "another recipient");
  clock.advance(35 * DAY);
  assert.equal(await ask("192.0.2.1"), true, "used within 36 days");
  clock.advance(37 * DAY);
  assert.equal(await ask("192.0.2.1"), false, "forgotten");
});

test("an attempt that nobody followed up in two days starts over", async () => {
  assert.equal(await ask("198.51.100.1"), false);
  clock.advance(2 * DAY + 1);
  assert.equal(await ask("198.51.100.1"), false);
  clock.advance(2 * MINUTE);
  assert.equal(await ask("198.51.100.1"), true);
});

test("IPv6 clients count by /64", async () => {
  assert.equal(await ask("2001:db8:1:2::1"), false);
  clock.advance(2 * MINUTE);
  assert.equal(await ask("2001:db8:1:2:ffff::9"), true);
  assert.equal(await ask("2001:db8:1:3::1"), false);
});

test("over SMTP the answer is 451 4.7.1, and unknown addresses stay 550", async () => {
  await addAlias(r, "grey");
  const smtp = await rawSmtp(r.port);
  await smtp.reply();
  await smtp.ask("EHLO x");
  await smtp.ask("MAIL FROM:<a@b.example>");
  assert.match((await smtp.ask("RCPT TO:<grey@in.example>")).text, /^451 4\.7\.1 /);
  assert.match((await smtp.ask("RCPT TO:<nobody@in.example>")).text, /^550 5\.1\.1 /);
  await r.api.world.db.query("update greylist set first_at = first_at - interval '2 minutes'");
  assert.equal((await smtp.ask("RCPT TO:<grey@in.example>")).code, 250);
  smtp.destroy();
});
