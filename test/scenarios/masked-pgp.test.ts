// A mailbox with an OpenPGP key, over SMTP: what is forwarded to it only its key opens, a reply to the decrypted mail arrives
// masked, and what cannot be encrypted is kept.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { decrypt, generateKey, readMessage, readPrivateKey } from "openpgp";
import PostalMime from "postal-mime";
import { IP_C, startMaskedStage } from "../support/masked-stage.ts";
import type { Received } from "../support/smtp-sink.ts";
import { until } from "../support/until.ts";

const stage = await startMaskedStage();
const { api, send, arrived, alias, activity } = stage;
after(() => stage.close());

const C = "shop.keeper@contact.example";
const LENA = "lena.real@home.example";
const BEN = "ben.real@home.example";
const person = { userIDs: [{ name: "Lena", email: LENA }] };
const lena = await generateKey({ type: "curve25519", ...person });
const ending = await generateKey({
  ...{ type: "curve25519", ...person, keyExpirationTime: 7_200 },
  date: new Date(Date.now() - 3_600_000),
});

const destinationOf = async (email: string) =>
  (await api.ask("GET", `/v1/masked/destinations?email=${email}`)).body.destinations[0];
const setKey = async (email: string, public_key: string, more: object = {}) => {
  const { id } = await destinationOf(email);
  return api.ask("PUT", `/v1/masked/destinations/${id}/pgp-key`, { public_key, ...more });
};
const mail = (to: string, content: string) =>
  send({ from: C, to, content: `From: The Shop <${C}>\r\nTo: ${to}\r\n${content}`, ip: IP_C });
const open = async ({ bytes }: Received) => {
  const outer = await PostalMime.parse(bytes);
  const file = outer.attachments.find(({ mimeType }) => mimeType === "application/octet-stream");
  const armoredMessage = Buffer.from(file?.content as ArrayBuffer).toString();
  const { data } = await decrypt({
    message: await readMessage({ armoredMessage }),
    decryptionKeys: await readPrivateKey({ armoredKey: lena.privateKey }),
    format: "binary",
  });
  return { outer, inner: await PostalMime.parse(Buffer.from(data as Uint8Array)) };
};
/** Of what reached a mailbox: forwards, by a word that stands outside what is encrypted. */
const forwardsTo = (email: string, word: string) =>
  until(`${word} for ${email}`, () => {
    const about = word.endsWith("@contact.example") ? `Message-ID: <${word}>` : word;
    const found = stage.sink.messages.filter(({ to, bytes }) => to[0] === email && bytes.includes(about));
    return found.length > 0 ? found : null;
  });

test("a key is set, shown by its fingerprint, refused by the field, and removed", async () => {
  await alias({ forward_to: [LENA, BEN] });
  const bad = await setKey(LENA, "hello");
  assert.deepEqual([bad.status, bad.body.field], [400, "public_key"]);
  const secret = await setKey(LENA, lena.privateKey);
  assert.match(secret.body.error, /private key/);
  const { status, body } = await setKey(LENA, lena.publicKey, { hide_subject: false });
  assert.equal(status, 200, JSON.stringify(body));
  assert.match(body.destination.pgp_key.fingerprint, /^[0-9A-F]{40}$/);
  assert.deepEqual([body.destination.pgp_key.expires_at, body.destination.pgp_key.hide_subject], [null, false]);
  const path = `/v1/masked/destinations/${body.destination.id}/pgp-key`;
  const stranger = { key: (await api.organization()).live_key };
  assert.equal((await api.ask("PUT", path, { public_key: lena.publicKey }, stranger)).status, 404);
  assert.equal((await api.ask("DELETE", path, undefined, stranger)).status, 404);
  const [row] = await api.world.db.query<{ text: string }>(
    "select masked_destination::text as text from masked_destination",
  );
  assert.ok(!row?.text.includes(body.destination.pgp_key.fingerprint), "nothing in the database names a person");
  assert.equal((await api.ask("DELETE", path)).body.destination.pgp_key, null);
  assert.equal((await api.ask("DELETE", path)).status, 404);
});

test("a forward is encrypted with its subject within, for the mailbox that has a key, and a reply to it arrives masked", async () => {
  const a = await alias({ forward_to: [LENA, BEN] });
  assert.equal((await setKey(LENA, lena.publicKey)).status, 200);
  const text = `Message-ID: <p1@contact.example>\r\nSubject: Your order for ${LENA}\r\n\r\nDear ${LENA}, thank you.\r\n`;
  assert.equal((await mail(a.full, text)).code, 250);
  const [forward] = await forwardsTo(LENA, "p1@contact.example");
  const [clear] = await forwardsTo(BEN, "p1@contact.example");
  assert.match((await PostalMime.parse((clear as Received).bytes)).text ?? "", /thank you/);
  const { outer, inner } = await open(forward as Received);
  const r = outer.from?.address ?? "";
  assert.match(r, /^r\.[a-z2-7]{26}@/);
  assert.deepEqual([outer.subject, outer.to?.[0]?.address, inner.from?.address], ["...", a.full, r]);
  assert.match(String(forward?.bytes), /^DKIM-Signature: /m);
  assert.doesNotMatch(String(forward?.bytes), /order|thank you/);
  assert.match(inner.text ?? "", /^Dear .*thank you\./);
  const quoted = (inner.text ?? "").trim();
  assert.doesNotMatch(quoted, /lena\.real/, "the mailbox is a token within, too");
  const reply = `From: ${LENA}\r\nTo: ${r}\r\nSubject: Re: ${inner.subject}\r\nIn-Reply-To: <p1@contact.example>\r\n\r\nI am ${LENA}.\r\n> ${quoted}\r\n`;
  assert.equal((await send({ from: LENA, to: r, content: reply, ip: "127.0.0.3" })).code, 250);
  const [answer] = await arrived(C);
  const read = await PostalMime.parse((answer as Received).bytes);
  assert.deepEqual([read.from?.address, read.inReplyTo], [a.full, "<p1@contact.example>"]);
  assert.equal(read.subject, `Re: Your order for ${LENA}`, "the contact reads its own words as it wrote them");
  assert.match(read.text ?? "", new RegExp(`^I am ${a.full}\\.\\n> Dear ${LENA}, thank you\\.`));
  const shown = (await activity(a.id)).filter((entry) => entry.startsWith("forward"));
  assert.deepEqual(shown, ["forward sent -", "forward sent -"]);
});

test("what is encrypted already goes on as it is", async () => {
  const a = await alias({ forward_to: [LENA] });
  const [sealed] = await forwardsTo(LENA, "p1@contact.example");
  const bytes = String(sealed?.bytes);
  const type = bytes.slice(bytes.indexOf("Content-Type: multipart/encrypted"));
  assert.equal((await mail(a.full, `Message-ID: <p2@contact.example>\r\nSubject: mine\r\n${type}`)).code, 250);
  const [forward] = await forwardsTo(LENA, "p2@contact.example");
  const { outer, inner } = await open(forward as Received);
  assert.equal(outer.subject, "mine");
  assert.match(inner.text ?? "", /thank you/);
});

test("mail for an expired key is kept with a notice, not sent unencrypted; other mailboxes get theirs", async () => {
  const [alone, both] = [await alias({ forward_to: [LENA] }), await alias({ forward_to: [LENA, BEN] })];
  assert.equal((await setKey(LENA, ending.publicKey)).status, 200);
  const { pgp_key, id } = await destinationOf(LENA);
  assert.ok(Date.parse(pgp_key.expires_at) > Date.now());
  // Two hours later by the key's word: the same key, as if it had been made two hours before.
  const old = await generateKey({
    ...{ type: "curve25519", ...person, keyExpirationTime: 3_600 },
    date: new Date(Date.now() - 7_200_000),
  });
  const refused = await setKey(LENA, old.publicKey);
  assert.match(refused.body.error, /is expired/);
  const { sealPgpKey } = await import("../../src/masked/addresses/pgp-keys.ts");
  const sealed = sealPgpKey(api.world, api.org_id, {
    armored: old.publicKey,
    fingerprint: "X",
    expires_at: new Date(0),
  });
  await api.world.db.execute("update masked_destination set pgp_sealed = $1 where id = $2", [sealed, id]);

  for (const { full, n } of [
    { ...alone, n: 3 },
    { ...both, n: 4 },
  ]) {
    const content = `Message-ID: <p${n}@contact.example>\r\nSubject: secret ${n}\r\n\r\nsecret\r\n`;
    assert.equal((await mail(full, content)).code, 250);
    // The first one is the day's notice, and holds the link: without an order of the two it would be either's.
    if (n === 3) await forwardsTo(LENA, "could not be encrypted");
  }
  await forwardsTo(BEN, "p4@contact.example");
  const [notice] = await forwardsTo(LENA, "could not be encrypted");
  await until("both are settled", async () => ((await activity(alone.id)).length > 1 ? true : null));
  assert.equal((await activity(alone.id))[0], "quarantine held key_unusable");
  const shared = (await activity(both.id)).filter((entry) => entry.startsWith("forward")).sort();
  assert.deepEqual(shared, ["forward failed key_unusable", "forward sent -"]);
  const toLena = stage.sink.messages.filter(({ to }) => to[0] === LENA).map(({ bytes }) => String(bytes));
  assert.ok(toLena.every((bytes) => !/secret [34]/.test(bytes) && !/p[34]@contact/.test(bytes)));
  assert.equal(toLena.filter((bytes) => bytes.includes("could not be encrypted")).length, 1, "one notice a day");

  const link = /\/masked\/release\/[\w-]+/.exec(String(notice?.bytes).replace(/=\r\n/g, ""))?.[0] ?? "";
  const form = { key: null, headers: { "content-type": "application/x-www-form-urlencoded" } };
  // Pressed before there is another key it uses nothing up: the mail waits again, and so does the link.
  assert.equal((await api.ask("POST", link, "", form)).status, 200, link);
  const isHeldTwice = async () =>
    (await activity(alone.id)).filter((entry) => entry === "quarantine held key_unusable").length === 2;
  await until("it is kept once more", isHeldTwice);
  assert.equal((await api.ask("GET", link, undefined, { key: null })).status, 200);
  assert.equal((await setKey(LENA, lena.publicKey)).status, 200);
  assert.equal((await api.ask("POST", link, "", form)).status, 200, link);
  const [released] = await forwardsTo(LENA, "p3@contact.example");
  assert.equal((await open(released as Received)).inner.subject, "secret 3");
  await until("the link is used up", async () => (await api.ask("POST", link, "", form)).status === 404);
});

test("a large mail is encrypted in a worker, and grows by a third", async () => {
  const a = await alias({ forward_to: [LENA] });
  const size = 2 * 1024 * 1024;
  const file = Buffer.alloc(size, "0123456789abcdef").toString("base64").replace(/.{76}/g, "$&\r\n");
  const content = `Message-ID: <p9@contact.example>\r\nSubject: large\r\nMIME-Version: 1.0\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n${file}\r\n`;
  assert.equal((await mail(a.full, content)).code, 250);
  const [forward] = await forwardsTo(LENA, "p9@contact.example");
  const { inner } = await open(forward as Received);
  assert.deepEqual(
    inner.attachments.map(({ content: bytes }) => (bytes as ArrayBuffer).byteLength),
    [size],
  );
  const { length } = (forward as Received).bytes;
  assert.ok(length < content.length * 1.4, `${length} of ${content.length}`);
});
