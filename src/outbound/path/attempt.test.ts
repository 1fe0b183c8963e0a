// What an attempt asks of a session.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, describe, it } from "node:test";
import type { SigningKey } from "../../mail/dkim/sign.ts";
import type { Envelope, SendOutcome } from "../../mail/smtp/transaction.ts";
import type { Job } from "../types.ts";
import { type Attempt, type AttemptWorld, attempt } from "./attempt.ts";
import type { Link } from "./link.ts";
import { createSevenBitWriter } from "./seven-bit.ts";

const KEY: SigningKey = {
  domain: "sender.example",
  selector: "s",
  algorithm: "ed25519",
  key: generateKeyPairSync("ed25519").privateKey,
};
const world = {
  clock: { now: () => 0, monotonic: () => 0 },
  seal: { hash: () => Buffer.alloc(32) },
  config: { base_url: "https://postern.example" },
} as unknown as AttemptWorld;
const sevenBit = createSevenBitWriter();
const parts: Attempt = {
  loadBody: async () => null,
  toSevenBit: sevenBit.write,
  signingKeys: async () => [KEY],
  mayStart: () => true,
  mayEnd: () => true,
};

/** The envelope that a message goes out with. */
async function envelopeOf(mime: Buffer, about: Partial<typeof USUAL> = {}) {
  return (await sent(mime, about)).envelope;
}

const USUAL = { origin: "forward", email: "anna@recipient.example", eightbitmime: true };

/** The envelope and the message. */
async function sent(mime: Buffer, given: Partial<typeof USUAL> = {}) {
  const { asked } = await tried(mime, given);
  return asked[0] as (typeof asked)[number];
}

/** The same, with what came of it. */
async function tried(mime: Buffer, given: Partial<typeof USUAL> = {}, lent: Partial<Attempt> = {}) {
  const { origin, email, eightbitmime } = { ...USUAL, ...given };
  const asked: { envelope: Envelope; message: string }[] = [];
  const session = {
    tls: null,
    capabilities: { eightbitmime },
    async send(envelope: Envelope, bytes: Buffer[]): Promise<SendOutcome> {
      asked.push({ envelope, message: Buffer.concat(bytes).toString() });
      return { kind: "delivered", reply: { code: 250, enhanced: null, text: "ok" } };
    },
  };
  const link = { hop: { host: "mx.example", address: "192.0.9.1" }, session, isp: "other" } as unknown as Link;
  const about = { origin, require_tls: false, domain_id: "d", envelope_from: "b@sender.example" };
  const job = { message_id: "m", position: 0, email, mime, about, return_path_host: "b.example" } as unknown as Job;
  return { asked, ...(await attempt(world, { ...parts, ...lent }, link, { job })) };
}

const mail = (head: string, encoding: BufferEncoding = "utf8") =>
  Buffer.from(`From: a@sender.example\r\nSubject: ${head}\r\n\r\nGr\u00fc\u00dfe\r\n`, encoding);

describe("SMTPUTF8", () => {
  it("is not asked for mail whose header is ASCII, whatever its body holds", async () => {
    const { smtputf8, require8bit } = await envelopeOf(mail("hello"));
    assert.deepEqual([smtputf8, require8bit], [false, true]);
  });

  it("is asked for where a forwarded header is in UTF-8, if the server has it (RFC 6531 \u00a73.4)", async () => {
    assert.equal((await envelopeOf(mail("Gr\u00fc\u00dfe"))).smtputf8, "offered");
  });

  it("is demanded for a customer's header in UTF-8: its author can be asked", async () => {
    for (const origin of ["submission", "api"]) {
      assert.equal((await envelopeOf(mail("Gr\u00fc\u00dfe"), { origin })).smtputf8, true, origin);
    }
  });

  it("is no word for a header in another charset, which is no internationalized one", async () => {
    assert.equal((await envelopeOf(mail("Gr\u00fc\u00dfe", "latin1"))).smtputf8, false);
  });

  it("is demanded for an address beyond ASCII", async () => {
    assert.equal((await envelopeOf(mail("hello"), { email: "b\u00fcro@recipient.example" })).smtputf8, true);
  });
});

describe("8-bit mail", () => {
  after(() => sevenBit.stop());

  it("goes as it is where the server takes it, and in 7 bits where it does not (RFC 6152 \u00a73)", async () => {
    const text = mail("hello").toString();
    const as_it_is = await sent(mail("hello"));
    assert.equal(as_it_is.envelope.require8bit, true);
    assert.ok(as_it_is.message.endsWith(text));
    for (const origin of ["forward", "masked", "submission"]) {
      const { envelope, message } = await sent(mail("hello"), { origin, eightbitmime: false });
      assert.deepEqual([envelope.require8bit, envelope.size], [false, message.length], origin);
      assert.match(message, /^Content-Transfer-Encoding: quoted-printable\r\n\r\nGr=C3=BC=C3=9Fe\r\n$/m);
    }
  });

  it("waits where it cannot be written in 7 bits now, and says why", async () => {
    const { asked, outcome } = await tried(
      mail("hello"),
      { eightbitmime: false },
      { toSevenBit: async () => ({ kind: "failed", reason: "too many messages wait for the parser" }) },
    );
    assert.deepEqual(asked, []);
    assert.deepEqual([outcome?.kind, outcome?.enhanced_code], ["deferred", "4.6.5"]);
    assert.match(outcome?.message ?? "", /no 8-bit mail.*: too many messages wait for the parser$/);
  });
});

describe("a refusal that asks something of the session", () => {
  /** What becomes of a message that is refused so. */
  async function refused(text: string, { tls = false, is_relay = false, code = 530 } = {}) {
    const session = {
      capabilities: { eightbitmime: true },
      tls: tls ? { protocol: "TLSv1.3", cipher: "x", authorized: true } : null,
      async send(): Promise<SendOutcome> {
        return { kind: "refused", stage: "mail", reply: { code, enhanced: "5.7.0", text } };
      },
    };
    const hop = { host: "mx.example", address: "192.0.9.1" };
    const link = { hop, session, isp: "other", is_relay } as unknown as Link;
    const about = { origin: "forward", require_tls: false, domain_id: "d", envelope_from: "b@sender.example" };
    const email = "anna@recipient.example";
    const job = { message_id: "m", position: 0, email, mime: mail("x"), about } as unknown as Job;
    const { outcome, path_action } = await attempt(world, parts, link, { job });
    return [outcome?.kind, outcome?.bounce_type, path_action];
  }

  it("makes mail wait for TLS that had failed, and bounces it where there was TLS", async () => {
    assert.deepEqual(await refused("Must issue a STARTTLS command first"), ["deferred", "soft", null]);
    assert.deepEqual(await refused("Must issue a STARTTLS command first", { tls: true }), ["bounced", "soft", null]);
  });

  it("makes mail wait for the login that a relay wants, and leaves the relay alone meanwhile", async () => {
    for (const code of [530, 535]) {
      const wanted = { tls: true, is_relay: true, code };
      assert.deepEqual(await refused("Authentication required", wanted), ["deferred", "soft", "suspend"]);
    }
    assert.deepEqual(await refused("Authentication required", { tls: true }), ["bounced", "soft", null]);
    assert.deepEqual(await refused("spam", { tls: true, is_relay: true, code: 550 }), ["bounced", "soft", null]);
  });
});
