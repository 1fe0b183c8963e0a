// Signed messages with their keys in a resolver, for tests.
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { signMessage } from "../dkim/sign.ts";
import { type Authentication, authenticate } from "./authenticate.ts";
import { largeKey } from "./large-key.fixture.ts";
import { asAnswers, fixedResolver, type NodeResolver } from "./look-ups.fixture.ts";
import type { Verdicts } from "./verdicts.ts";

export type TestKey = { key: KeyObject; record: string };

/** What `largeKey` has. */
const LARGE = 4_608;
const bits = new Map<number, TestKey>();

/** An RSA key pair of a size, made once for each size, with its DNS record. */
export function rsaKey(size = 2_048): TestKey {
  const known = bits.get(size);
  if (known) return known;
  const privateKey = size === LARGE ? largeKey : generateKeyPairSync("rsa", { modulusLength: size }).privateKey;
  const der = createPublicKey(privateKey).export({ type: "spki", format: "der" });
  const record = `v=DKIM1; k=rsa; p=${der.toString("base64")}`;
  bits.set(size, { key: privateKey, record });
  return { key: privateKey, record };
}

export const plainMail = Buffer.from(
  "From: Alice <alice@example.com>\r\nTo: bob@example.net\r\nSubject: Hi\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\n" +
    "Message-ID: <1@example.com>\r\n\r\nHello,\r\n  world \r\n\r\n\r\n",
);

/** Signs with our own signer, as `selector` s1 of a domain. */
export async function signed(mail: Buffer = plainMail, domain = "example.com", key = rsaKey()): Promise<Buffer> {
  const signer = { domain, selector: "s1", algorithm: "rsa" as const, key: key.key };
  return Buffer.concat([await signMessage(mail, [signer], { now_s: 1_790_000_000 }), mail]);
}

/** The DNS of a domain whose mail comes from 192.0.2.1, signed with s1. */
export const dnsOfExample: Record<string, unknown[] | string> = {
  "TXT example.com": ["v=spf1 ip4:192.0.2.1 -all"],
  "TXT s1._domainkey.example.com": [rsaKey().record],
  "TXT _dmarc.example.com": ["v=DMARC1; p=reject"],
};

/** Authenticates with defaults: alice@example.com from the wrong client, so that SPF fails. */
export function judge(
  bytes: Buffer,
  dns: Record<string, unknown[] | string> = dnsOfExample,
  more: Partial<Omit<Authentication, "resolver">> & { resolver?: NodeResolver } = {},
): Promise<Verdicts> {
  return authenticate({
    ...{
      bytes,
      remote_ip: "198.51.100.1",
      helo: "mx.example.com",
      mail_from: "alice@example.com",
      host: "mx.postern.test",
    },
    now_ms: 1_790_000_100_000,
    ...more,
    resolver: asAnswers(more.resolver ?? fixedResolver(dns)),
  });
}
