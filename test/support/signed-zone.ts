// Signs a small zone with DNSSEC (RFC 4034, ECDSA P-256 of RFC 6605) with Node alone, as text that unbound serves and
// validates: the validator is the judge of what is written here. Not here: NSEC3, delegations, key roll-over.
import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import ipaddr from "ipaddr.js";

export type ZoneRecord =
  | { name: string; type: "A"; address: string }
  | { name: string; type: "MX"; preference: number; exchange: string }
  | { name: string; type: "CNAME"; target: string }
  | { name: string; type: "TXT"; text: string }
  | { name: string; type: "TLSA"; usage: number; selector: number; matching_type: number; data: Buffer };

export type SignedZone = {
  /** A zone file. */
  text: string;
  /** For unbound's `trust-anchor`. */
  trust_anchor: string;
};

const TYPES = { A: 1, NS: 2, CNAME: 5, SOA: 6, MX: 15, TXT: 16, RRSIG: 46, NSEC: 47, DNSKEY: 48, TLSA: 52 } as const;
type TypeName = keyof typeof TYPES;
type RecordSet = { name: string; type: TypeName; values: Buffer[] };

const TTL_S = 1;
const ALGORITHM = 13;
const ZONE_KEY = 257;
const DAY_S = 86_400;

/** The signed zone of `apex`. `bogus` are sets, as `name TYPE`, whose signatures are spoilt. */
export function signZone(apex: string, records: ZoneRecord[], bogus: string[] = []): SignedZone {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const dnskey = dnskeyValue(publicKey);
  const soa = Buffer.concat([
    nameBytes(`ns.${apex}`),
    nameBytes(`hostmaster.${apex}`),
    numbers(1, 3600, 600, 86_400, 1),
  ]);
  const sets = groupSets([
    { name: apex, type: "SOA", value: soa },
    { name: apex, type: "NS", value: nameBytes(`ns.${apex}`) },
    { name: apex, type: "DNSKEY", value: dnskey },
    { name: `ns.${apex}`, type: "A", value: Buffer.from([127, 0, 0, 1]) },
    ...records.map((record) => ({ name: record.name, type: record.type, value: wireOf(record) })),
  ]);
  const all = [...sets, ...denials(sets)];
  const signer = { apex, key: privateKey, tag: keyTag(dnskey) };
  const lines = all.flatMap((set) => {
    const signature = signSet(signer, set, bogus.includes(`${set.name} ${set.type}`));
    return [...set.values.map((value) => line(set.name, set.type, value)), line(set.name, "RRSIG", signature)];
  });
  const key = dnskey.subarray(4).toString("base64");
  return { text: `${lines.join("\n")}\n`, trust_anchor: `${apex}. IN DNSKEY ${ZONE_KEY} 3 ${ALGORITHM} ${key}` };
}

function line(name: string, type: TypeName, value: Buffer): string {
  return `${name}. ${TTL_S} IN TYPE${TYPES[type]} \\# ${value.length} ${value.toString("hex")}`;
}

function groupSets(records: { name: string; type: TypeName; value: Buffer }[]): RecordSet[] {
  const sets = new Map<string, RecordSet>();
  for (const { name, type, value } of records) {
    const key = `${name} ${type}`;
    const set = sets.get(key) ?? { name, type, values: [] };
    set.values.push(value);
    sets.set(key, set);
  }
  return [...sets.values()];
}

// --- values (RFC 1035 §3.3, RFC 6698 §2.1, RFC 4034 §2.1) -----------------------------------------------------------------

function wireOf(record: ZoneRecord): Buffer {
  switch (record.type) {
    case "A":
      return Buffer.from(ipaddr.parse(record.address).toByteArray());
    case "MX":
      return Buffer.concat([uint16(record.preference), nameBytes(record.exchange)]);
    case "CNAME":
      return nameBytes(record.target);
    case "TXT":
      return Buffer.concat([Buffer.from([record.text.length]), Buffer.from(record.text)]);
    case "TLSA":
      return Buffer.concat([Buffer.from([record.usage, record.selector, record.matching_type]), record.data]);
  }
}

function dnskeyValue(key: KeyObject): Buffer {
  const { x = "", y = "" } = key.export({ format: "jwk" });
  const point = Buffer.concat([Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]);
  return Buffer.concat([uint16(ZONE_KEY), Buffer.from([3, ALGORITHM]), point]);
}

function nameBytes(name: string): Buffer {
  const labels = name.split(".").filter((label) => label !== "");
  const parts = labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label.toLowerCase())]));
  return Buffer.concat([...parts, Buffer.from([0])]);
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => {
    bytes.writeUInt32BE(value, index * 4);
  });
  return bytes;
}

// --- proofs of absence (RFC 4034 §4) ----------------------------------------------------------------------------------------

function denials(sets: RecordSet[]): RecordSet[] {
  const names = [...new Set(sets.map(({ name }) => name))].sort(compareNames);
  return names.map((name, index) => {
    const types = sets.filter((set) => set.name === name).map(({ type }) => TYPES[type]);
    const next = names[(index + 1) % names.length] as string;
    const value = Buffer.concat([nameBytes(next), typeBitmap([...types, TYPES.RRSIG, TYPES.NSEC])]);
    return { name, type: "NSEC" as const, values: [value] };
  });
}

/** RFC 4034 §6.1: by labels from the right. */
function compareNames(a: string, b: string): number {
  const [left, right] = [a.split(".").reverse(), b.split(".").reverse()];
  for (let at = 0; at < Math.max(left.length, right.length); at += 1) {
    const order = Buffer.compare(Buffer.from(left[at] ?? ""), Buffer.from(right[at] ?? ""));
    if (order !== 0) return order;
  }
  return 0;
}

function typeBitmap(types: number[]): Buffer {
  const bits = Buffer.alloc(Math.floor(Math.max(...types) / 8) + 1);
  for (const type of types) bits[type >> 3] = (bits[type >> 3] as number) | (0x80 >> (type & 7));
  return Buffer.concat([Buffer.from([0, bits.length]), bits]);
}

// --- signatures (RFC 4034 §3, §6) -------------------------------------------------------------------------------------------

type Signer = { apex: string; key: KeyObject; tag: number };

function signSet({ apex, key, tag }: Signer, set: RecordSet, isSpoilt: boolean): Buffer {
  const nowS = Math.floor(Date.now() / 1000);
  const head = Buffer.concat([
    uint16(TYPES[set.type]),
    Buffer.from([ALGORITHM, set.name.split(".").length]),
    numbers(TTL_S, nowS + 30 * DAY_S, nowS - DAY_S),
    uint16(tag),
    nameBytes(apex),
  ]);
  const owner = Buffer.concat([nameBytes(set.name), uint16(TYPES[set.type]), uint16(1), numbers(TTL_S)]);
  const records = [...set.values]
    .sort(Buffer.compare)
    .map((value) => Buffer.concat([owner, uint16(value.length), value]));
  const signature = createSign("sha256")
    .update(Buffer.concat([head, ...records]))
    .sign({ key, dsaEncoding: "ieee-p1363" });
  if (isSpoilt) signature[10] = (signature[10] as number) ^ 0xff;
  return Buffer.concat([head, signature]);
}

/** RFC 4034 appendix B. */
function keyTag(value: Buffer): number {
  let sum = 0;
  value.forEach((byte, index) => {
    sum += index % 2 === 0 ? byte << 8 : byte;
  });
  return (sum + (sum >> 16)) & 0xffff;
}
