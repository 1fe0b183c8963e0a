// POST /v1/masked/aliases/{id}/check says what really happens: what it shows is compared with what the same mail brings when it
// is received (POST /v1/inbound-emails/simulate).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { SHAPES } from "../../src/masked/rewrite/client-shapes.fixture.ts";
import { C, D, startMaskedSimulation } from "../support/masked-simulation.ts";

const { api, ask, alias, reverse, simulate, activity, close } = await startMaskedSimulation();
after(close);

/** Without what is random or of the moment: boundaries, Content-IDs, the time. */
const settled = (raw: string) =>
  raw
    .replace(/^Date: .*$/m, "Date:")
    .replace(/^DTSTAMP:.*$/gm, "DTSTAMP:")
    .replace(/=_[0-9A-Za-z]{20}(\d+)/g, "=_$1")
    .replace(/[0-9A-Za-z]{20}(\d+)@masked/g, "$1@masked");

const check = async (id: string, raw: string) => {
  const raw_base64 = Buffer.from(raw).toString("base64");
  const { status, body } = await ask("POST", `/v1/masked/aliases/${id}/check`, { raw_base64 });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};

test("what it shows is what leaves, for the answers of all mail programs", async () => {
  const a = await alias({ display_name: "K" });
  const r = await reverse(a.id);
  const tally = { sent: 0, held: 0, refused: 0 };
  for (const [at, shape] of SHAPES.entries()) {
    const raw = shape
      .message({ d: D, r, a: a.full })
      .replace(/\r?\n/g, "\r\n")
      .replace(/^Message-ID:.*\r\n/im, "")
      .replace(/^/, `Message-ID: <${at}@home.example>\r\n`);
    const said = await check(a.id, raw);
    const { messages } = await simulate({ to: r, raw: Buffer.from(raw) });
    const left = messages.find(({ recipient }) => recipient === C);
    const [last] = await activity(a.id);
    const { outcome, reason } = said;
    tally[outcome as keyof typeof tally] += 1;
    const entry = outcome === "refused" ? `reply failed ${reason}` : `reply ${outcome} ${reason ?? "-"}`;
    // An answer of a machine is dropped without a word.
    assert.equal(reason === "auto_reply" ? "auto_reply dropped auto_reply" : entry, last, `${at}`);
    assert.equal(left === undefined, outcome !== "sent", `${at}: ${last}`);
    if (left) assert.equal(settled(Buffer.from(said.raw_base64, "base64").toString()), settled(left.raw), `${at}`);
  }
  assert.ok(tally.sent >= 10, JSON.stringify(tally));
});

test("it says what changes, what nobody looks into, and why a reply would be held or refused", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  const head = `From: Anna <${D}>\r\nTo: ${r}\r\n`;
  const changed = await check(a.id, `${head}X-Mailer: Pear\r\nSubject: hi\r\n\r\nI am ${D}.\r\n`);
  assert.deepEqual([changed.outcome, changed.reason], ["sent", null]);
  assert.deepEqual(changed.changes, [
    { where: "the message", place: "header", kind: "left_out", detail: "X-Mailer", count: 1 },
    { where: "the message", place: "text", kind: "address", detail: null, count: 1 },
  ]);
  const file = (content: string) =>
    `${head}Content-Type: application/octet-stream; name="my notes.bin"\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(content, "latin1").toString("base64")}\r\n`;
  const held = await check(a.id, file(`\0${D}`));
  assert.deepEqual([held.outcome, held.reason, held.words], ["held", "leak", ["a…@h….example"]]);
  assert.equal(held.leaks[0].file, "my notes.bin");
  const locked = file("7z\xbc\xaf\x27\x1c\0\x04 locked");
  assert.equal((await check(a.id, locked)).outcome, "held");
  await ask("PUT", `/v1/masked/aliases/${a.id}`, { unopened_files: "send" });
  const unopened = await check(a.id, locked);
  assert.deepEqual([unopened.outcome, unopened.unopened.length], ["sent", 1]);
  for (const [raw, reason] of [
    [`From: eve@home.example\r\nTo: ${r}\r\n\r\nx`, "unauthorised_sender"],
    [`From: ${D}\r\nTo: ${C}\r\n\r\nx`, "no_reply_address"],
    [`${head}Cc: ${C}\r\n\r\nx`, "foreign_recipient"],
    [`${head}Auto-Submitted: auto-replied\r\n\r\nx`, "auto_reply"],
    [`${head}Precedence: bulk\r\n\r\nx`, "bulk"],
    [`${head}Content-Type: application/pkcs7-mime\r\n\r\nx`, "encrypted"],
  ] as const) {
    const { outcome, reason: why, raw_base64 } = await check(a.id, raw);
    assert.deepEqual([outcome, why, raw_base64], ["refused", reason, null]);
  }
  await ask("PUT", `/v1/masked/aliases/${a.id}`, { reply_enabled: false });
  assert.equal((await check(a.id, `${head}\r\nx`)).reason, "reply_disabled");
});

test("it sends, counts and keeps nothing, and is for the alias's own keys", async () => {
  const a = await alias();
  const r = await reverse(a.id);
  const rows = async () =>
    (
      await api.world.db.query(
        `select (select count(*) from message) as m, (select count(*) from masked_activity) as a,
                (select count(*) from masked_window) as w, (select count(*) from masked_contact) as c`,
      )
    )[0];
  const before = await rows();
  const raw = `From: ${D}\r\nTo: ${r}\r\n\r\nx`;
  assert.equal((await check(a.id, raw)).outcome, "sent");
  assert.deepEqual(await rows(), before);
  const path = `/v1/masked/aliases/${a.id}/check`;
  const body = { raw_base64: Buffer.from(raw).toString("base64") };
  assert.equal((await api.ask("POST", path, body, { key: api.live_key })).status, 404, "of another environment");
  const broken = await ask("POST", path, { raw_base64: "%%%" });
  assert.deepEqual([broken.status, broken.body.field], [400, "raw_base64"]);
  const other = await alias();
  assert.equal((await check(other.id, raw)).reason, "no_reply_address", "a contact of another alias");
});
