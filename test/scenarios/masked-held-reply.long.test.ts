// A reply that the leak gate held, over real SMTP: its author learns which file and which word, has this one sent as it is
// or changes what replies may show, by links that act on POST only, once, and for a day.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import PostalMime from "postal-mime";
import { forgetHeld } from "../../src/masked/held/held.ts";
import { C, D, type MaskedStage, startMaskedStage } from "../support/masked-stage.ts";

let s: MaskedStage;
before(async () => {
  s = await startMaskedStage();
  await s.alias();
});
after(() => s.close());
beforeEach(async () => {
  await s.settle();
  s.sink.messages.length = 0;
});

const FORM = { key: null, headers: { "content-type": "application/x-www-form-urlencoded" } };
const noPorts = { forgetBlobs: async () => {} };

async function contactOf(aliasId: string): Promise<string> {
  const { body } = await s.api.ask("POST", `/v1/masked/aliases/${aliasId}/contacts`, { email: C });
  return body.contact.reply_address;
}

/** A reply with a file that shows `shown`; its notice, once it is there. */
async function heldReply(r: string, shown: string, filler = "") {
  const head = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n";
  const file = Buffer.from(`%PDF-1.4 \x00 ${shown} ${filler}`).toString("base64").replace(/.{76}/g, "$&\r\n");
  const content = `From: ${D}\r\nTo: ${r}\r\nSubject: offer\r\nMessage-ID: <h${Date.now()}@home.example>\r\n${head}\r\n--b\r\nContent-Type: text/plain\r\n\r\nSee the file.\r\n--b\r\nContent-Type: application/pdf; name="offer 7.pdf"\r\nContent-Transfer-Encoding: base64\r\n\r\n${file}\r\n--b--\r\n`;
  assert.equal((await s.send({ from: D, to: r, content })).code, 250);
  const [notice] = await s.arrived(D);
  await s.settle();
  const mail = await PostalMime.parse(notice?.bytes ?? "");
  s.sink.messages.length = 0;
  return { text: mail.text ?? "", raw: notice?.bytes.toString("latin1") ?? "" };
}

const pathIn = (text: string, page: string) =>
  new RegExp(`https://api\\.postern\\.test(/masked/${page}/[\\w-]+)`).exec(text)?.[1] ?? "";

test("the author reads which file and which word, and the one link sends this reply as it is, once", async () => {
  const a = await s.alias();
  const { text } = await heldReply(await contactOf(a.id), D);
  assert.match(text, /the file "offer 7\.pdf" \(part 2 of the message \(application\/pdf\)[;)]/);
  assert.match(text, /this would have been shown: a…@h…\.example/);
  assert.ok(!text.includes(D), "what is hidden is not written out, also not to its owner: the notice may be passed on");
  const [entry] = (await s.api.ask("GET", `/v1/masked/aliases/${a.id}/activity`)).body.activity;
  assert.deepEqual(
    [entry.outcome, entry.reason, entry.detail],
    ["held", "leak", "part 2 of the message (application/pdf): a…@h….example"],
  );
  const path = pathIn(text, "held");
  const kept = await s.api.world.db.query<{ sealed: Buffer }>("select sealed from masked_held");
  assert.ok(kept.length === 1 && !kept[0]?.sealed.includes("See the file"), "kept sealed");

  const seen = await s.api.ask("GET", path, undefined, { key: null });
  assert.equal(seen.status, 200);
  assert.doesNotMatch(String(seen.body), /contact\.example|home\.example/);
  await s.settle();
  assert.deepEqual(s.sink.messages, [], "opening the page sends nothing");

  const both = await Promise.all([s.api.ask("POST", path, "", FORM), s.api.ask("POST", path, "", FORM)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 404], "once, also for two clicks at a time");
  const [sent] = await s.arrived(C);
  const mail = await PostalMime.parse(sent?.bytes ?? "");
  assert.equal(mail.from?.address, a.full);
  assert.equal(mail.attachments[0]?.filename, "offer 7.pdf");
  assert.ok(Buffer.from(mail.attachments[0]?.content as ArrayBuffer).includes(D), "as it is");
  await s.settle();
  assert.equal((await s.activity(a.id))[0], "reply sent sent_as_is");
  assert.equal((await s.api.ask("GET", `/v1/masked/aliases/${a.id}`)).body.alias.emails_replied, 1);
  assert.equal((await s.api.ask("GET", path, undefined, { key: null })).status, 404);
  assert.equal((await s.api.world.db.query("select 1 from masked_held")).length, 0, "nothing is kept of it");
});

test("a large reply is kept sealed as well, and after a day the link is dead and nothing is left", async () => {
  const a = await s.alias();
  const { text } = await heldReply(await contactOf(a.id), D, "x".repeat(400_000));
  const path = pathIn(text, "held");
  const [row] = await s.api.world.db.query<{ blob_key: string | null }>("select blob_key from masked_held");
  assert.ok(row?.blob_key);
  const late = { ...s.api.world, clock: { ...s.api.world.clock, now: () => s.api.world.clock.now() + 86_400_001 } };
  const released: string[] = [];
  const count = await forgetHeld(late, { forgetBlobs: async (_org, id) => void released.push(id) }, 10);
  assert.deepEqual([count, released.length], [1, 1]);
  assert.equal((await s.api.ask("POST", path, "", FORM)).status, 404);
  assert.deepEqual(s.sink.messages, []);
});

test("nothing leaves by the link once replies are off, or the contact is gone", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  const path = pathIn((await heldReply(r, D)).text, "held");
  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { reply_enabled: false });
  assert.equal((await s.api.ask("POST", path, "", FORM)).status, 403);
  await s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { reply_enabled: true });
  const { contacts } = (await s.api.ask("GET", `/v1/masked/aliases/${a.id}/contacts`)).body;
  await s.api.ask("DELETE", `/v1/masked/aliases/${a.id}/contacts/${contacts[0].id}`);
  assert.equal((await s.api.ask("POST", path, "", FORM)).status, 404);
  await s.settle();
  assert.deepEqual(s.sink.messages, []);
  await forgetHeld(
    { ...s.api.world, clock: { ...s.api.world.clock, now: () => Number.MAX_SAFE_INTEGER / 2 } },
    noPorts,
    9,
  );
});

test("a mailbox that the alias has since is not shown by the link, nor does who lost the alias send from it", async () => {
  const ben = "ben.second@home.example";
  const a = await s.alias();
  const path = pathIn((await heldReply(await contactOf(a.id), `${D} ${ben}`)).text, "held");
  const put = (forward_to: string[]) => s.api.ask("PUT", `/v1/masked/aliases/${a.id}`, { forward_to });
  const press = () => s.api.ask("POST", path, "", FORM);
  await put([D, ben]);
  const shown = await press();
  assert.deepEqual([shown.status, /only since this mail was written/.test(String(shown.body))], [403, true]);
  await put([ben]);
  assert.equal((await press()).status, 403);
  await s.settle();
  assert.equal(s.sink.messages.filter(({ to }) => to[0] === C).length, 0);
  await put([D]);
  assert.equal((await press()).status, 200);
  await s.arrived(C);
});

test("of a large reply that two clicks send once nothing is left in the store", async () => {
  const a = await s.alias();
  const owners = async () => {
    const [row] = await s.api.world.db.query<{ total: number }>(
      "select count(*)::int as total from blob_reference where owner_id <> '00000000-0000-0000-0000-000000000000'",
    );
    return row?.total;
  };
  const before = await owners();
  const path = pathIn((await heldReply(await contactOf(a.id), D, "y".repeat(400_000))).text, "held");
  const both = await Promise.all([s.api.ask("POST", path, "", FORM), s.api.ask("POST", path, "", FORM)]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 404]);
  await s.arrived(C);
  await s.settle();
  assert.equal(await owners(), before);
});

test("by the other link the owner changes what replies may show, and the next one arrives", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  const { text } = await heldReply(r, D);
  const path = pathIn(text, "setting");
  const seen = await s.api.ask("GET", path, undefined, { key: null });
  assert.match(String(seen.body), /value="all" checked/);
  assert.equal((await s.api.ask("POST", path, "redact=everything", FORM)).status, 400);
  assert.equal((await s.api.ask("POST", path, "redact=off", FORM)).status, 200);
  assert.equal((await s.api.ask("GET", `/v1/masked/aliases/${a.id}`)).body.alias.redact, "off");
  const content = `From: ${D}\r\nTo: ${r}\r\nSubject: x\r\n\r\nI am ${D}.\r\n`;
  assert.equal((await s.send({ from: D, to: r, content })).code, 250);
  assert.match((await s.arrived(C))[0]?.bytes.toString("latin1") ?? "", /I am anna\.real@home\.example\./);
  assert.match((await s.activity(a.id)).join("; "), /config sent changed: redact \(by link\)/);
});

test("where the mailbox of somebody else would be shown, its author has no link to show it", async () => {
  const other = "ben.second@home.example";
  const a = await s.alias({ forward_to: [D, other] });
  const { text } = await heldReply(await contactOf(a.id), other);
  assert.match(text, /b…@h…\.example/);
  assert.deepEqual([pathIn(text, "held"), pathIn(text, "setting")], ["", ""]);
  const own = await heldReply(await contactOf(a.id), D);
  assert.notEqual(pathIn(own.text, "held"), "", "one's own address may be shown");
  assert.equal(pathIn(own.text, "setting"), "", "but no setting that is everybody's is changed by one of them");
});

test("of one alias so many are kept at a time, and what is held beyond them is reported without a link", async () => {
  const a = await s.alias();
  const r = await contactOf(a.id);
  for (let n = 0; n < 10; n += 1) assert.notEqual(pathIn((await heldReply(r, D)).text, "held"), "", `${n}`);
  assert.equal(pathIn((await heldReply(r, D)).text, "held"), "");
});
