// Keyed hashes that strangers hand back are compared to the end, wherever they differ: how long it takes tells nothing of
// how much of a guess was right. Shown by what the runtime's own comparison is given, since times on a busy machine prove
// nothing. API keys are not compared at all: they are found by their SHA-256, which is tested here by what is stored.
import assert from "node:assert/strict";
import crypto, { createHmac } from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { test } from "node:test";
import { makeToken, readToken } from "../../src/mail/bounce-token.ts";
import { readSrs, writeSrs } from "../../src/mail/srs.ts";
import { makeUnsubscribeToken, readUnsubscribeToken } from "../../src/mail/unsubscribe-token.ts";
import { confirmationToken, readConfirmationToken } from "../../src/masked/addresses/confirmation.ts";
import { testApi } from "../support/api.ts";

const ID = "0190a000-0000-7000-8000-000000000001";

/** The sizes of what the runtime compares in constant time while `work` is done; the first is what was expected. */
function comparedBy(work: () => unknown): { answer: unknown; compared: [number, number][] } {
  const compared: [number, number][] = [];
  const real = crypto.timingSafeEqual;
  crypto.timingSafeEqual = (expected, given) => {
    compared.push([expected.byteLength, given.byteLength]);
    return real(expected, given);
  };
  syncBuiltinESMExports();
  try {
    return { answer: work(), compared };
  } finally {
    crypto.timingSafeEqual = real;
    syncBuiltinESMExports();
  }
}

type Reader = {
  bytes: number;
  made(mac: (text: string) => Buffer): Buffer;
  read(bytes: Buffer, mac: (text: string) => Buffer): unknown;
};

const plain = (text: string) => createHmac("sha256", "a key").update(text).digest();
const world = (mac: (text: string) => Buffer) => ({ seal: { hash: mac }, clock: { now: () => 0 } }) as never;
const leave = { org_id: ID, message_id: ID, domain_id: ID, email: "a@b.example", list: null };

/** Each with its token as bytes, the hash at their end. */
const READERS: Record<string, Reader> = {
  "a token of a return path": {
    bytes: 10,
    made: (mac) => fromBase32(makeToken(ID, 3, mac)),
    read: (bytes, mac) => readToken(toBase32(bytes), mac),
  },
  "a token of an unsubscribe link": {
    bytes: 16,
    made: (mac) => Buffer.from(makeUnsubscribeToken(leave, mac), "base64url"),
    read: (bytes, mac) => readUnsubscribeToken(bytes.toString("base64url"), mac),
  },
  "a token of a consent link": {
    bytes: 16,
    made: (mac) => Buffer.from(confirmationToken(world(mac), { org_id: ID, id: ID }), "base64url"),
    read: (bytes, mac) => readConfirmationToken(world(mac), bytes.toString("base64url")),
  },
};

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

function fromBase32(text: string): Buffer {
  const bits = [...text].map((char) => ALPHABET.indexOf(char).toString(2).padStart(5, "0")).join("");
  return Buffer.from(
    Array.from({ length: bits.length >> 3 }, (_, at) => Number.parseInt(bits.slice(at * 8, at * 8 + 8), 2)),
  );
}

function toBase32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return (bits.match(/.{1,5}/g) ?? []).map((five) => ALPHABET[Number.parseInt(five.padEnd(5, "0"), 2)]).join("");
}

for (const [what, { bytes, made, read }] of Object.entries(READERS)) {
  test(`${what} is compared whole and in constant time, right or wrong anywhere`, () => {
    const right = comparedBy(() => read(made(plain), plain));
    assert.notEqual(right.answer, null);
    assert.deepEqual(right.compared, [[bytes, bytes]]);
    for (let at = 1; at <= bytes; at += 1) {
      const wrong = Buffer.from(made(plain));
      wrong[wrong.length - at] = wrong[wrong.length - at]! ^ 0x80;
      const refused = comparedBy(() => read(wrong, plain));
      assert.deepEqual(refused, { answer: null, compared: [[bytes, bytes]] }, `wrong at ${at} from the end`);
    }
  });
}

test("the hash of a rewritten sender is compared whole and in constant time", () => {
  const key = { mac: plain, now_ms: 0 };
  const written = writeSrs("anna@there.example", key) as string;
  const right = comparedBy(() => readSrs(written, key));
  assert.deepEqual(right, { answer: { kind: "sender", sender: "anna@there.example" }, compared: [[9, 9]] });
  for (let at = 5; at < 14; at += 1) {
    const wrong = written.slice(0, at) + (written[at] === "a" ? "b" : "a") + written.slice(at + 1);
    const refused = comparedBy(() => readSrs(wrong, key));
    assert.deepEqual(refused, { answer: { kind: "forged" }, compared: [[9, 9]] }, `wrong at ${at}`);
  }
});

test("of an API key the database has a digest, its first characters and its last four", async () => {
  const api = await testApi();
  try {
    const rows = await api.world.db.query<Record<string, unknown>>("select * from api_key");
    assert.ok(rows.length >= 2);
    for (const key of [api.live_key, api.test_key]) {
      const text = JSON.stringify(rows, (_name, value) =>
        value?.type === "Buffer" ? Buffer.from(value.data).toString("latin1") : value,
      );
      for (let at = 0; at + 13 <= key.length; at += 1) assert.ok(!text.includes(key.slice(at, at + 13)));
    }
  } finally {
    await api.close();
  }
});
