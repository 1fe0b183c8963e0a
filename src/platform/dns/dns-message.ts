// The wire form of DNS (RFC 1035 §4, EDNS0 RFC 6891): makes queries with dns-packet, reads answers strictly. Deliberate:
// dns-packet's decoder does not hold records to their stated length (a short TLSA shifts all that follow), and answers
// come from strangers; the tests use it as the oracle. Not here: sockets (dns-exchange.ts), meaning (resolver.ts).
import { AUTHENTIC_DATA, DNSSEC_OK, encode, type Packet, RECURSION_DESIRED } from "dns-packet";
import ipaddr from "ipaddr.js";

export const TYPES = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, TLSA: 52 } as const;
export type DnsType = keyof typeof TYPES;
export type Question = { name: string; type: DnsType };

export type Mx = { exchange: string; preference: number };
export type Tlsa = { usage: number; selector: number; matching_type: number; data: Buffer };

/** One record: its owner in lower case, its type's number, and its value (a name, an address, a text, Mx, Tlsa, a SOA's minimum). */
export type DnsRecord = { name: string; type: number; ttl_s: number; value: string | number | Mx | Tlsa | null };

export type Message = {
  id: number;
  rcode: number;
  truncated: boolean;
  authoritative: boolean;
  authenticated: boolean;
  question: { name: string; type: number } | null;
  answers: DnsRecord[];
  authorities: DnsRecord[];
};

/** Fits an IPv6 minimum-MTU packet, so that answers are not fragmented (DNS flag day 2020). */
const UDP_PAYLOAD_BYTES = 1_232;
const OPT = 41;
const CLASS_IN = 1;
/** A message of 64 KiB cannot hold more useful records; a header may claim 65,535 in each section. */
const RECORDS_MAX = 4_096;
const NAME_LENGTH_MAX = 254;
/** RFC 2181 §8: a TTL with its top bit set counts as 0. */
const TTL_MAX = 0x7fffffff;

/** The bytes of a recursive query. `edns` false is for servers that answer FORMERR to EDNS; `dnssec` asks for AD and sets DO. */
export function encodeQuery(
  id: number,
  question: Question,
  options: { edns: boolean; ad: boolean; dnssec: boolean },
): Buffer {
  const packet: Packet = {
    id,
    type: "query",
    flags: RECURSION_DESIRED | (options.ad ? AUTHENTIC_DATA : 0),
    questions: [question],
  };
  if (options.edns) {
    const flags = options.dnssec ? DNSSEC_OK : 0;
    packet.additionals = [{ name: ".", type: "OPT", udpPayloadSize: UDP_PAYLOAD_BYTES, flags }];
  }
  return encode(packet);
}

/** Reads an answer; null when the bytes are not one well-formed DNS response. Records of other classes and types are dropped. */
export function decodeMessage(bytes: Buffer): Message | null {
  try {
    return readMessage(bytes);
  } catch (error) {
    if (error instanceof Malformed || error instanceof RangeError) return null;
    throw error;
  }
}

class Malformed extends Error {}

type Cursor = { bytes: Buffer; at: number };
type Opened = DnsRecord & { class: number; raw_ttl: number };

function readMessage(bytes: Buffer): Message {
  const flags = bytes.readUInt16BE(2);
  if ((flags & 0x8000) === 0 || (flags & 0x7800) !== 0) throw new Malformed("not a response to a query");
  const cursor = { bytes, at: 12 };
  const questions = bytes.readUInt16BE(4);
  if (questions > 1) throw new Malformed("more than one question");
  const question = questions === 1 ? readQuestion(cursor) : null;
  const truncated = (flags & 0x0200) !== 0;
  // A truncated message may end anywhere, and nothing in it is used: the question is asked again over TCP.
  const sections = truncated ? [[], [], []] : [6, 8, 10].map((at) => readRecords(cursor, bytes.readUInt16BE(at)));
  const opt = sections[2]!.find((record) => record.type === OPT);
  return {
    id: bytes.readUInt16BE(0),
    rcode: (flags & 0x000f) | (opt ? (opt.raw_ttl >>> 24) << 4 : 0),
    truncated,
    authoritative: (flags & 0x0400) !== 0,
    authenticated: (flags & 0x0020) !== 0,
    question,
    answers: sections[0]!.filter(isKept).map(published),
    authorities: sections[1]!.filter(isKept).map(published),
  };
}

function isKept(record: Opened): boolean {
  return record.class === CLASS_IN && record.value !== null;
}

function published(record: Opened): DnsRecord {
  return { name: record.name, type: record.type, ttl_s: record.ttl_s, value: record.value };
}

function readQuestion(cursor: Cursor): { name: string; type: number } {
  const name = readName(cursor);
  const type = cursor.bytes.readUInt16BE(cursor.at);
  if (cursor.bytes.readUInt16BE(cursor.at + 2) !== CLASS_IN) throw new Malformed("a question of another class");
  cursor.at += 4;
  return { name, type };
}

function readRecords(cursor: Cursor, count: number): Opened[] {
  if (count > RECORDS_MAX) throw new Malformed("too many records");
  const records: Opened[] = [];
  for (let index = 0; index < count; index += 1) records.push(readRecord(cursor));
  return records;
}

function readRecord(cursor: Cursor): Opened {
  const { bytes } = cursor;
  const name = readName(cursor);
  const type = bytes.readUInt16BE(cursor.at);
  const rawTtl = bytes.readUInt32BE(cursor.at + 4);
  const start = cursor.at + 10;
  const end = start + bytes.readUInt16BE(cursor.at + 8);
  if (end > bytes.length) throw new Malformed("a record ends behind the message");
  const value = readValue(type, { bytes, at: start }, end);
  const recordClass = bytes.readUInt16BE(cursor.at + 2);
  cursor.at = end;
  return { name, type, ttl_s: rawTtl > TTL_MAX ? 0 : rawTtl, value, class: recordClass, raw_ttl: rawTtl };
}

function readValue(type: number, cursor: Cursor, end: number): DnsRecord["value"] {
  const { bytes, at } = cursor;
  switch (type) {
    case TYPES.A:
      return ipaddr.fromByteArray([...exactly(bytes.subarray(at, end), 4)]).toString();
    case TYPES.AAAA:
      return ipaddr.fromByteArray([...exactly(bytes.subarray(at, end), 16)]).toString();
    case TYPES.CNAME:
    case TYPES.PTR:
    case TYPES.NS:
      return wholeName(cursor, end);
    case TYPES.MX:
      cursor.at += 2;
      return { preference: bytes.readUInt16BE(at), exchange: wholeName(cursor, end) };
    case TYPES.TXT:
      return readText(bytes.subarray(at, end));
    case TYPES.TLSA:
      return readTlsa(bytes.subarray(at, end));
    case TYPES.SOA:
      return readSoaMinimum(cursor, end);
    default:
      return null;
  }
}

function exactly(bytes: Buffer, length: number): Buffer {
  if (bytes.length !== length) throw new Malformed(`a value of ${bytes.length} bytes instead of ${length}`);
  return bytes;
}

function wholeName(cursor: Cursor, end: number): string {
  const name = readName(cursor);
  if (cursor.at !== end) throw new Malformed("a name that does not fill its record");
  return name;
}

// RFC 1035 §3.3.14: one or more character strings; their joint text is what SPF (RFC 7208 §3.3) and DKIM read.
function readText(bytes: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const next = at + 1 + bytes[at]!;
    if (next > bytes.length) throw new Malformed("a text that ends behind its record");
    parts.push(bytes.subarray(at + 1, next));
    at = next;
  }
  return Buffer.concat(parts).toString("utf8");
}

// RFC 6698 §2.1: three numbers and at least one byte of data; anything shorter makes the answer unusable, not absent.
function readTlsa(bytes: Buffer): Tlsa {
  if (bytes.length < 4) throw new Malformed("a TLSA record without data");
  return { usage: bytes[0]!, selector: bytes[1]!, matching_type: bytes[2]!, data: Buffer.from(bytes.subarray(3)) };
}

function readSoaMinimum(cursor: Cursor, end: number): number {
  readName(cursor);
  readName(cursor);
  if (cursor.at + 20 !== end) throw new Malformed("a SOA of the wrong length");
  return cursor.bytes.readUInt32BE(cursor.at + 16);
}

// RFC 1035 §4.1.4. A pointer must lead back before where its name began, so that every loop ends. Bytes that are not
// printable ASCII, and a dot inside a label, are escaped as \DDD (RFC 1035 §5.1): one spelling is one name.
function readName(cursor: Cursor): string {
  const { bytes } = cursor;
  const labels: string[] = [];
  let at = cursor.at;
  let floor = cursor.at;
  let length = 0;
  let jumped = false;
  for (;;) {
    const first = bytes.readUInt8(at);
    if (first >= 0xc0) {
      const target = bytes.readUInt16BE(at) & 0x3fff;
      if (target >= floor) throw new Malformed("a name's pointer does not lead back");
      if (!jumped) cursor.at = at + 2;
      jumped = true;
      at = target;
      floor = target;
      continue;
    }
    if (first > 63 || at + 1 + first > bytes.length) throw new Malformed("a bad label");
    at += 1 + first;
    if (first === 0) break;
    length += 1 + first;
    if (length > NAME_LENGTH_MAX) throw new Malformed("a name is too long");
    labels.push(readLabel(bytes.subarray(at - first, at)));
  }
  if (!jumped) cursor.at = at;
  return labels.length === 0 ? "." : labels.join(".");
}

function readLabel(bytes: Buffer): string {
  const text = bytes.toString("latin1").toLowerCase();
  return /^[0-9a-z_-]*$/.test(text) ? text : text.replace(/[^ -~]|[.\\]/g, escaped);
}

function escaped(character: string): string {
  return `\\${character.charCodeAt(0).toString().padStart(3, "0")}`;
}
