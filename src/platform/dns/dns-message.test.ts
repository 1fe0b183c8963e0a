import assert from "node:assert/strict";
import { test } from "node:test";
import { encode, type Packet, RECURSION_DESIRED } from "dns-packet";
import fc from "fast-check";
import { rounds } from "../../../test/support/rounds.ts";
import { decodeMessage, encodeQuery, TYPES } from "./dns-message.ts";

const label = fc.stringMatching(/^[a-z0-9_-]{1,20}$/);
const name = fc.array(label, { minLength: 1, maxLength: 6 }).map((labels) => labels.join("."));
const byte = fc.integer({ min: 0, max: 255 });
const ttl = fc.integer({ min: 0, max: 0x7fffffff });
const bytes = (minLength: number, maxLength: number) =>
  fc.uint8Array({ minLength, maxLength }).map((value) => Buffer.from(value));
const uint16 = fc.integer({ min: 0, max: 65_535 });

/** A record as dns-packet takes it, and the value we must read from it. */
const record = fc.oneof(
  fc.tuple(byte, byte, byte, byte).map((parts) => ({ type: "A", data: parts.join("."), value: parts.join(".") })),
  name.map((data) => ({ type: "CNAME", data, value: data })),
  name.map((data) => ({ type: "PTR", data, value: data })),
  fc
    .tuple(name, uint16)
    .map(([exchange, preference]) => ({ type: "MX", data: { exchange, preference }, value: { preference, exchange } })),
  fc
    .array(fc.stringMatching(/^[ -~]{0,100}$/), { minLength: 1, maxLength: 5 })
    .map((parts) => ({ type: "TXT", data: parts.map((part) => Buffer.from(part)), value: parts.join("") })),
  fc.tuple(byte, byte, byte, bytes(1, 64)).map(([usage, selector, matching_type, data]) => ({
    type: "TLSA",
    data: { usage, selector, matchingType: matching_type, certificate: data },
    value: { usage, selector, matching_type, data },
  })),
);

function response(packet: Packet): Buffer {
  return encode({ id: 1, type: "response", questions: [{ name: "a.example", type: "A" }], ...packet });
}

test("what dns-packet writes is read back: names, values and TTLs of every type", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, ttl, record), { maxLength: 20 }), (records) => {
      const answers = records.map(([owner, seconds, { type, data }]) => ({ name: owner, type, ttl: seconds, data }));
      const message = decodeMessage(response({ answers }));
      assert.deepEqual(
        message?.answers,
        records.map(([owner, seconds, { type, value }]) => ({
          name: owner,
          type: TYPES[type as "A"],
          ttl_s: seconds,
          value,
        })),
      );
    }),
    { numRuns: 300 },
  );
});

test("no bytes and no damage to a message make the reader throw or hang", () => {
  const whole = response({
    answers: [{ name: "a.example", type: "MX", ttl: 5, data: { exchange: "mx.a.example", preference: 1 } }],
  });
  fc.assert(
    fc.property(bytes(0, 600), (random) => void decodeMessage(random)),
    { numRuns: rounds(500, 5_000) },
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(whole.length - 1), byte), { minLength: 1, maxLength: 6 }), (changes) => {
      const damaged = Buffer.from(whole);
      for (const [at, value] of changes) damaged[at] = value;
      decodeMessage(damaged);
    }),
    { numRuns: rounds(500, 5_000) },
  );
  for (let length = 0; length < whole.length; length += 1) assert.equal(decodeMessage(whole.subarray(0, length)), null);
});

/** A response with one answer record whose type, class, TTL and data are given byte for byte. */
function crafted(
  type: number,
  data: number[],
  options: { ttl?: number; rclass?: number; length?: number } = {},
): Buffer {
  const head = [0, 1, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
  const question = [1, 0x61, 0, 0, type, 0, 1];
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(options.rclass ?? 1, 2);
  fixed.writeUInt32BE(options.ttl ?? 60, 4);
  fixed.writeUInt16BE(options.length ?? data.length, 8);
  return Buffer.concat([Buffer.from([...head, ...question, 0xc0, 12]), fixed, Buffer.from(data)]);
}

test("a record that does not keep to its length spoils the answer instead of shifting what follows", () => {
  const bad: [string, Buffer][] = [
    ["A of 3 bytes", crafted(TYPES.A, [1, 2, 3])],
    ["A of 16 bytes", crafted(TYPES.A, new Array(16).fill(1))],
    ["AAAA of 4 bytes", crafted(TYPES.AAAA, [1, 2, 3, 4])],
    ["TLSA of 0 bytes", crafted(TYPES.TLSA, [])],
    ["TLSA of 2 bytes", crafted(TYPES.TLSA, [3, 1])],
    ["TLSA of 3 bytes", crafted(TYPES.TLSA, [3, 1, 1])],
    ["MX without a name", crafted(TYPES.MX, [0, 1])],
    ["MX with bytes behind its name", crafted(TYPES.MX, [0, 1, 0, 9])],
    ["TXT whose string is longer than the record", crafted(TYPES.TXT, [9, 65])],
    ["a length behind the end", crafted(TYPES.A, [1, 2, 3, 4], { length: 500 })],
    ["SOA too short", crafted(TYPES.SOA, [0, 0, 1, 2, 3])],
    ["a name that points to itself", crafted(TYPES.CNAME, [0xc0, 31])],
    ["a name that points ahead", crafted(TYPES.CNAME, [0xc0, 40])],
    ["a label of a reserved kind", crafted(TYPES.CNAME, [0x80, 0])],
    ["a name without end", crafted(TYPES.CNAME, [3, 97, 98])],
  ];
  for (const [what, message] of bad) assert.equal(decodeMessage(message), null, what);
  assert.deepEqual(decodeMessage(crafted(TYPES.A, [1, 2, 3, 4]))?.answers[0]?.value, "1.2.3.4");
});

test("a chain of pointers that doubles a name past 255 bytes is refused", () => {
  const long = new Array(5).fill([60, ...new Array(60).fill(97)]).flat();
  assert.equal(decodeMessage(crafted(TYPES.CNAME, [...long, 0])), null);
});

test("records of other classes and of unknown types are left out", () => {
  assert.deepEqual(decodeMessage(crafted(TYPES.A, [1, 2, 3, 4], { rclass: 3 }))?.answers, []);
  assert.deepEqual(decodeMessage(crafted(99, [1, 2, 3]))?.answers, []);
});

test("a TTL with its top bit set is 0", () => {
  assert.equal(decodeMessage(crafted(TYPES.A, [1, 2, 3, 4], { ttl: 0x80000000 }))?.answers[0]?.ttl_s, 0);
});

test("names are lower case; dots and control bytes in labels are escaped and cannot pose as another name", () => {
  const message = decodeMessage(crafted(TYPES.CNAME, [5, 0x41, 0x2e, 0x62, 0x0d, 0xff, 2, 0x43, 0x4f, 0]));
  assert.equal(message?.answers[0]?.value, "a\\046b\\013\\255.co");
});

test("a space in a label stays a space (RFC 2181 §11)", () => {
  const message = decodeMessage(crafted(TYPES.CNAME, [3, 0x61, 0x20, 0x62, 2, 0x63, 0x6f, 0]));
  assert.equal(message?.answers[0]?.value, "a b.co");
});

test("a query is recursive, asks for 1,232 bytes, and for DNSSEC only when asked", () => {
  const plain = encodeQuery(7, { name: "a.example", type: "TLSA" }, { edns: false, ad: false, dnssec: false });
  assert.equal(plain.readUInt16BE(0), 7);
  assert.equal(plain.readUInt16BE(2), RECURSION_DESIRED);
  assert.equal(plain.readUInt16BE(10), 0);
  const full = encodeQuery(7, { name: "a.example", type: "TLSA" }, { edns: true, ad: true, dnssec: true });
  assert.equal(full.readUInt16BE(2), RECURSION_DESIRED | 0x20);
  assert.equal(full.readUInt16BE(full.length - 8), 1_232);
  assert.equal(full.readUInt16BE(full.length - 4), 0x8000);
});

test("queries and messages with two questions are not responses", () => {
  assert.equal(decodeMessage(encode({ type: "query", questions: [{ name: "a", type: "A" }] })), null);
  const two = [
    { name: "a", type: "A" },
    { name: "b", type: "A" },
  ];
  assert.equal(decodeMessage(response({ questions: two })), null);
});
