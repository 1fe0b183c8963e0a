// A self-signed certificate for a server that nobody gave one: opportunistic TLS of SMTP protects against listeners with
// any certificate at all (RFC 7435). X.509 v3 (RFC 5280) written by hand, as Node has no writer. ECDSA P-256, SHA-256.
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";

const DAY_MS = 86_400_000;
const VALID_DAYS = 3_650;
const ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2";

/** A new key and a certificate for `hosts` (DNS names), valid for ten years from a day ago. PEM. */
export function makeSelfSigned(hosts: readonly string[], nowMs: number): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = sequence(oid(ECDSA_WITH_SHA256));
  const name = sequence(tagged(0x31, sequence(oid("2.5.4.3"), tagged(0x0c, Buffer.from(hosts[0] ?? "localhost")))));
  const spki = publicKey.export({ type: "spki", format: "der" });
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([0x01]), randomBytes(15)])),
    algorithm,
    name,
    sequence(time(nowMs - DAY_MS), time(nowMs + VALID_DAYS * DAY_MS)),
    name,
    spki,
    tagged(0xa3, sequence(...extensions(hosts, spki))),
  );
  const cert = sequence(body, algorithm, bitString(sign("sha256", body, privateKey)));
  return { key: privateKey.export({ type: "pkcs8", format: "pem" }) as string, cert: pem(cert) };
}

function extensions(hosts: readonly string[], spki: Buffer): Buffer[] {
  return [
    // No authority; for signatures; for servers; for these names; with this key.
    extension("2.5.29.19", sequence()),
    extension("2.5.29.15", tagged(0x03, Buffer.from([7, 0x80]))),
    extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.1"))),
    extension("2.5.29.17", sequence(...hosts.map((host) => tagged(0x82, Buffer.from(host, "ascii"))))),
    extension("2.5.29.14", tagged(0x04, createHash("sha1").update(spki).digest())),
  ];
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), tagged(0x04, value));
}

// --- DER (X.690) -----------------------------------------------------------------------------------------------------

function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthBytes(value.length)]), value]);
}

function lengthBytes(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes);
}

function bitString(bytes: Buffer): Buffer {
  return tagged(0x03, Buffer.from([0]), bytes);
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}

/** GeneralizedTime, to the second. */
function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
  return tagged(0x18, Buffer.from(text));
}

function pem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
