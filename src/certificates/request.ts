// A certificate signing request (PKCS #10, RFC 2986) for a new key: ECDSA P-256, the names as subjectAltName, no subject.
import { generateKeyPairSync, sign } from "node:crypto";
import { alternativeNames, bitString, integer, oid, sequence, tagged } from "../platform/net/der.ts";

const ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2";
const EXTENSION_REQUEST = "1.2.840.113549.1.9.14";
const SET = 0x31;

/** `csr` in DER, `key` in PEM. */
export function makeRequest(names: readonly string[]): { csr: Buffer; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const extensions = tagged(SET, sequence(alternativeNames(names)));
  const wanted = sequence(
    integer(Buffer.from([0])),
    sequence(),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa0, sequence(oid(EXTENSION_REQUEST), extensions)),
  );
  const signature = bitString(sign("sha256", wanted, privateKey));
  const csr = sequence(wanted, sequence(oid(ECDSA_WITH_SHA256)), signature);
  return { csr, key: privateKey.export({ type: "pkcs8", format: "pem" }) as string };
}
