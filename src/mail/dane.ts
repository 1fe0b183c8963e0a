// DANE for SMTP (RFC 7672 on RFC 6698 and 7671): which TLSA records can be used, and whether a server's certificates are
// the ones they speak of. Not here: looking records up, and whether the look-up was secure (outbound/route/tlsa.ts).
import { createHash, createPublicKey, type KeyObject, X509Certificate } from "node:crypto";

export type TlsaRecord = { usage: number; selector: number; matching_type: number; data: Buffer };

/** `defects` are records that say something no server can meet; records of kinds we need not know are in neither list. */
export type TlsaSet = { usable: TlsaRecord[]; defects: string[] };

/** What the certificate is held against: names of the server, lower case, and the time. */
export type DaneReference = { names: string[]; now_ms: number };

export type DaneFault = "certificate-host-mismatch" | "certificate-expired" | "validation-failure";
export type DaneVerdict = { matched: true; record: TlsaRecord } | { matched: false; fault: DaneFault; detail: string };

const DANE_TA = 2;
const DANE_EE = 3;
const WHOLE = 0;
const DIGESTS = new Map([
  [1, { name: "sha256", bytes: 32 }],
  [2, { name: "sha512", bytes: 64 }],
]);
const CHAIN_MAX = 10;
const RECORDS_MAX = 100;

/**
 * Sorts records by what we can do with them. Usable are DANE-TA(2) and DANE-EE(3): PKIX-TA(0) and PKIX-EE(1) name no
 * authority that both sides know (RFC 7672 §3.1.3). Of several digests of one kind only the strongest counts (RFC 7671 §9).
 */
export function readTlsaSet(records: TlsaRecord[]): TlsaSet {
  const known = records.slice(0, RECORDS_MAX).filter(isKnown);
  const judged = known.map((record) => ({ record, defect: defectOf(record) }));
  const sound = judged.filter(({ defect }) => defect === null).map(({ record }) => record);
  const usable = sound.filter((record) => !sound.some((other) => isStronger(other, record)));
  return { usable, defects: judged.flatMap(({ defect }) => (defect === null ? [] : [defect])) };
}

function isKnown({ usage, selector, matching_type }: TlsaRecord): boolean {
  const matches = matching_type === WHOLE || DIGESTS.has(matching_type);
  return (usage === DANE_TA || usage === DANE_EE) && (selector === 0 || selector === 1) && matches;
}

function isStronger(other: TlsaRecord, record: TlsaRecord): boolean {
  const isSameKind = other.usage === record.usage && other.selector === record.selector;
  return isSameKind && record.matching_type !== WHOLE && other.matching_type > record.matching_type;
}

function defectOf(record: TlsaRecord): string | null {
  const digest = DIGESTS.get(record.matching_type);
  const name = `TLSA ${record.usage} ${record.selector} ${record.matching_type}`;
  if (digest) {
    const { length } = record.data;
    return length === digest.bytes ? null : `${name} has ${length} bytes instead of ${digest.bytes}`;
  }
  const isSound = record.selector === 0 ? readCertificate(record.data) !== null : readKey(record.data) !== null;
  return isSound ? null : `${name} holds no ${record.selector === 0 ? "certificate" : "public key"}`;
}

function readCertificate(der: Buffer): X509Certificate | null {
  try {
    return new X509Certificate(der);
  } catch {
    return null;
  }
}

function readKey(der: Buffer): KeyObject | null {
  try {
    return createPublicKey({ key: der, format: "der", type: "spki" });
  } catch {
    return null;
  }
}

/**
 * Judges the server's chain (DER, its own certificate first) by the usable records. DANE-EE: the certificate or its key,
 * whatever its name and dates (RFC 7672 §3.1.1). DANE-TA: an authority of the chain, and then the signatures up to it, the
 * dates and the name count (§3.1.2).
 */
export function matchTlsa(records: TlsaRecord[], chain: Buffer[], reference: DaneReference): DaneVerdict {
  const [leaf] = chain;
  if (!leaf) return fault("validation-failure", "the server showed no certificate");
  const own = records.find((record) => record.usage === DANE_EE && speaksOf(record, leaf));
  if (own) return { matched: true, record: own };
  const anchors = records.filter(({ usage }) => usage === DANE_TA);
  if (anchors.length > 0) return matchAnchor(anchors, chain, reference);
  return fault("validation-failure", "the certificate is not one of those in the TLSA records");
}

function fault(kind: DaneFault, detail: string): DaneVerdict {
  return { matched: false, fault: kind, detail };
}

function speaksOf(record: TlsaRecord, der: Buffer): boolean {
  const selected = record.selector === 0 ? der : publicKeyOf(der);
  if (selected === null) return false;
  const digest = DIGESTS.get(record.matching_type);
  const value = digest ? createHash(digest.name).update(selected).digest() : selected;
  return value.equals(record.data);
}

function matchAnchor(anchors: TlsaRecord[], chain: Buffer[], reference: DaneReference): DaneVerdict {
  const path: X509Certificate[] = [];
  for (const der of chain.slice(0, CHAIN_MAX)) {
    const certificate = readCertificate(der);
    const below = path.at(-1);
    if (!certificate || (below && !isIssuedBy(below, certificate))) break;
    path.push(certificate);
    const named = path.length > 1 ? anchors.find((record) => speaksOf(record, der)) : undefined;
    const record = named ?? anchors.find((anchor) => isSignedByRecord(certificate, anchor));
    if (record) return judgePath(path, reference, record);
  }
  return fault("validation-failure", "no authority of the certificate's chain is one of those in the TLSA records");
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && isSignedBy(certificate, () => issuer.publicKey);
}

/** The whole authority or its key may stand in the DNS and be left out of the chain (RFC 7672 §3.1.2). */
function isSignedByRecord(certificate: X509Certificate, record: TlsaRecord): boolean {
  if (record.matching_type !== WHOLE) return false;
  if (record.selector === 1) return isSignedBy(certificate, () => readKey(record.data));
  const issuer = readCertificate(record.data);
  return issuer !== null && isIssuedBy(certificate, issuer);
}

// Reading a key of an algorithm that OpenSSL does not know throws; such a chain is simply not one we can verify.
function isSignedBy(certificate: X509Certificate, readIssuerKey: () => KeyObject | null): boolean {
  try {
    const key = readIssuerKey();
    return key !== null && certificate.verify(key);
  } catch {
    return false;
  }
}

function judgePath(path: X509Certificate[], { names, now_ms }: DaneReference, record: TlsaRecord): DaneVerdict {
  const stale = path.find((one) => Date.parse(one.validFrom) > now_ms || Date.parse(one.validTo) < now_ms);
  if (stale) return fault("certificate-expired", "a certificate of the chain is not valid at this time");
  const leaf = path[0] as X509Certificate;
  if (names.some((name) => leaf.checkHost(name) !== undefined)) return { matched: true, record };
  return fault("certificate-host-mismatch", `the certificate does not name ${names.join(" or ")}`);
}

// --- the public key as it stands in the certificate -------------------------------------------------------------------

/**
 * The SubjectPublicKeyInfo's own bytes (RFC 5280 §4.1): encoding the key again may spell it differently from what was
 * signed and hashed. Null when the bytes are no certificate.
 */
export function publicKeyOf(der: Buffer): Buffer | null {
  const certificate = readElement(der, 0);
  const body = certificate && readElement(der, certificate.start);
  if (!body) return null;
  let at = body.start;
  const version = readElement(der, at);
  if (version?.tag === 0xa0) at = version.end;
  // serialNumber, signature, issuer, validity and subject stand before it.
  for (let skipped = 0; skipped < 5; skipped += 1) {
    const element = readElement(der, at);
    if (!element) return null;
    at = element.end;
  }
  const key = readElement(der, at);
  return key?.tag === 0x30 && key.end <= body.end ? der.subarray(at, key.end) : null;
}

type Element = { tag: number; start: number; end: number };

function readElement(der: Buffer, at: number): Element | null {
  const tag = der[at];
  const first = der[at + 1];
  if (tag === undefined || first === undefined) return null;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (first === 0x80 || lengthBytes > 3 || at + 2 + lengthBytes > der.length) return null;
  const start = at + 2 + lengthBytes;
  const length = lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes);
  return start + length <= der.length ? { tag, start, end: start + length } : null;
}
