// A certificate authority for tests, the demo and the bench: writes X.509 v3 certificates (RFC 5280) with Node alone, so
// that no openssl is needed. ECDSA P-256 with SHA-256. Not here: anything a real authority needs, such as revocation.
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import ipaddr from "ipaddr.js";

/** PEM texts: the private key, the certificate, and the authority's certificate. */
export type IssuedCertificate = { key: string; cert: string; ca: string };
export type IssueOptions = {
  /** Validity in days from now; the default is -1 to 365. Both negative: an expired certificate. */
  from_days?: number;
  until_days?: number;
};
export type CertificateAuthority = {
  /** PEM. */
  ca: string;
  /** The file for NODE_EXTRA_CA_CERTS. */
  ca_file: string;
  /** A certificate of a server, or of a client, for these names and addresses; the first is its common name. */
  issue(hosts: string[], options?: IssueOptions): IssuedCertificate;
};

const DAY_MS = 86_400_000;

/** Makes a new authority and writes its certificate to `<dir>/ca.pem`; the folder must exist. */
export function makeCertificateAuthority(dir: string): CertificateAuthority {
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuer = { name: "Postern test authority", key: keys.privateKey, public_key: keys.publicKey };
  const extensions = [
    extension("2.5.29.19", sequence(boolean(true)), true),
    extension("2.5.29.15", tagged(0x03, Buffer.from([1, 0x06])), true),
  ];
  const ca = certificate({ issuer, subject: issuer.name, public_key: keys.publicKey, extensions });
  const caFile = join(dir, "ca.pem");
  writeFileSync(caFile, ca);
  return { ca, ca_file: caFile, issue: (hosts, options) => issue(issuer, ca, hosts, options) };
}

type Issuer = { name: string; key: KeyObject; public_key: KeyObject };
type Content = { issuer: Issuer; subject: string; public_key: KeyObject; extensions: Buffer[] } & IssueOptions;

function issue(issuer: Issuer, ca: string, hosts: string[], options: IssueOptions = {}): IssuedCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const extensions = [
    extension("2.5.29.19", sequence(), true),
    extension("2.5.29.15", tagged(0x03, Buffer.from([7, 0x80])), true),
    extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.1"), oid("1.3.6.1.5.5.7.3.2"))),
    extension("2.5.29.17", sequence(...hosts.map(alternativeName))),
  ];
  const cert = certificate({ issuer, subject: hosts[0] ?? "", public_key: publicKey, extensions, ...options });
  return { key: privateKey.export({ type: "pkcs8", format: "pem" }) as string, cert, ca };
}

// RFC 5280 §4.2.1.6: dNSName is [2], iPAddress is [7].
function alternativeName(host: string): Buffer {
  if (isIP(host)) return tagged(0x87, Buffer.from(ipaddr.parse(host).toByteArray()));
  return tagged(0x82, Buffer.from(host, "ascii"));
}

function certificate(content: Content): string {
  const algorithm = sequence(oid("1.2.840.10045.4.3.2"));
  const spki = content.public_key.export({ type: "spki", format: "der" });
  const extensions = [
    ...content.extensions,
    extension("2.5.29.14", tagged(0x04, keyId(spki))),
    extension(
      "2.5.29.35",
      sequence(tagged(0x80, keyId(content.issuer.public_key.export({ type: "spki", format: "der" })))),
    ),
  ];
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([0x01]), randomBytes(15)])),
    algorithm,
    commonName(content.issuer.name),
    sequence(time(content.from_days ?? -1), time(content.until_days ?? 365)),
    commonName(content.subject),
    spki,
    tagged(0xa3, sequence(...extensions)),
  );
  return pem(sequence(body, algorithm, bitString(sign("sha256", body, content.issuer.key))));
}

function keyId(spki: Buffer): Buffer {
  return createHash("sha1").update(spki).digest();
}

function commonName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(oid("2.5.4.3"), tagged(0x0c, Buffer.from(name)))));
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), tagged(0x04, value));
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

function boolean(value: boolean): Buffer {
  return tagged(0x01, Buffer.from([value ? 0xff : 0]));
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

function time(days: number): Buffer {
  const text = new Date(Date.now() + days * DAY_MS).toISOString().replace(/[-:T]|\.\d+/g, "");
  return tagged(0x18, Buffer.from(text));
}

function pem(der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}
