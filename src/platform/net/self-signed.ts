// A self-signed certificate for a server that nobody gave one: opportunistic TLS of SMTP protects against listeners with
// any certificate at all (RFC 7435). X.509 v3 (RFC 5280) written by hand, as Node has no writer. ECDSA P-256, SHA-256.
import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { alternativeNames, bitString, extension, integer, oid, pem, sequence, tagged, time } from "./der.ts";

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
  return { key: privateKey.export({ type: "pkcs8", format: "pem" }) as string, cert: pem("CERTIFICATE", cert) };
}

function extensions(hosts: readonly string[], spki: Buffer): Buffer[] {
  return [
    // No authority; for signatures; for servers; for these names; with this key.
    extension("2.5.29.19", sequence()),
    extension("2.5.29.15", tagged(0x03, Buffer.from([7, 0x80]))),
    extension("2.5.29.37", sequence(oid("1.3.6.1.5.5.7.3.1"))),
    alternativeNames(hosts),
    extension("2.5.29.14", tagged(0x04, createHash("sha1").update(spki).digest())),
  ];
}
