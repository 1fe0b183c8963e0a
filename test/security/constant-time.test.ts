// Keyed hashes that strangers hand back are compared to the end, wherever they differ: how long it takes tells nothing of
// how much of a guess was right. Counted as reads of the expected hash, since times on a busy machine prove nothing. API
// keys are not compared at all: they are found by their SHA-256, which is tested here by what is stored.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { makeToken, readToken } from "../../src/mail/bounce-token.ts";
import { makeUnsubscribeToken, readUnsubscribeToken } from "../../src/mail/unsubscribe-token.ts";
import { confirmationToken, readConfirmationToken } from "../../src/masked/confirmation.ts";
import { testApi } from "../support/api.ts";

const ID = "0190a000-0000-7000-8000-000000000001";

/** Bytes that note which of them are read. */
function watched(bytes: Buffer, reads: Set<number>, offset = 0): Buffer {
  return new Proxy(bytes, {
    get(target, name) {
      if (typeof name === "string" && /^\d+$/.test(name)) {
        reads.add(offset + Number(name));
        return target[Number(name)];
      }
      if (name === "subarray") {
        return (from = 0, to = target.length) => watched(target.subarray(from, to), reads, offset + from);
      }
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
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
  test(`${what} is compared to the end, right or wrong anywhere`, () => {
    const readsOf = (given: Buffer): { reads: number; answer: unknown } => {
      const reads = new Set<number>();
      const answer = read(given, (text) => watched(plain(text), reads));
      return { reads: reads.size, answer };
    };
    const right = readsOf(made(plain));
    assert.notEqual(right.answer, null);
    assert.equal(right.reads, bytes);
    for (let at = 1; at <= bytes; at += 1) {
      const wrong = Buffer.from(made(plain));
      wrong[wrong.length - at] = wrong[wrong.length - at]! ^ 0x80;
      assert.deepEqual(readsOf(wrong), { reads: bytes, answer: null }, `wrong at ${at} from the end`);
    }
  });
}

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
