// Looking up the TLSA records of a mail server (RFC 7672 §2.2). Called only for names whose address was found securely,
// through a resolver that validates; what the records mean is in mail/dane.ts.
import { readTlsaSet, type TlsaRecord } from "../../mail/dane.ts";
import type { Resolver } from "../../platform/dns/resolver.ts";

export type TlsaAnswer =
  /** No secure records: DANE says nothing about this server. */
  | { kind: "none" }
  /** `base`: the name the records stand under, which is also the name to ask the server for. */
  | { kind: "records"; base: string; usable: TlsaRecord[]; all: TlsaRecord[] }
  /** The records are there but malformed, or could not be asked for: the server must not be used (§2.1.1, §2.2). */
  | { kind: "unknown"; base: string; result: "tlsa-invalid" | "dnssec-invalid"; detail: string };

const SMTP_PORT = 25;
const ALIASES_MAX = 8;

/** The TLSA records of `host`: under the name it is an alias of, if that has any, else under its own (RFC 7672 §2.2.2). */
export async function findTlsa(resolver: Pick<Resolver, "tlsa" | "cname">, host: string): Promise<TlsaAnswer> {
  const target = await followAliases(resolver, host);
  if (target === null) return unknown(host, "dnssec-invalid", `the aliases of ${host} could not be looked up`);
  for (const base of new Set([target, host])) {
    const answer = await ask(resolver, base);
    if (answer.kind !== "none") return answer;
  }
  return { kind: "none" };
}

function unknown(base: string, result: "tlsa-invalid" | "dnssec-invalid", detail: string): TlsaAnswer {
  return { kind: "unknown", base, result, detail };
}

/** Null: could not be asked. An alias that is not secure is not followed: what it leads to is no base for us. */
async function followAliases(resolver: Pick<Resolver, "cname">, host: string): Promise<string | null> {
  let name = host;
  for (let steps = 0; steps < ALIASES_MAX; steps += 1) {
    const answer = await resolver.cname(name);
    if (answer.kind === "failed") return null;
    const [next] = answer.kind === "found" && answer.authenticated ? answer.records : [];
    if (next === undefined) return name;
    name = next;
  }
  return null;
}

async function ask(resolver: Pick<Resolver, "tlsa">, base: string): Promise<TlsaAnswer> {
  const name = `_${SMTP_PORT}._tcp.${base}`;
  const answer = await resolver.tlsa(name);
  if (answer.kind === "absent") return { kind: "none" };
  if (answer.kind === "failed") {
    return unknown(base, "dnssec-invalid", `the TLSA records of ${name} could not be looked up: ${answer.reason}`);
  }
  if (!answer.authenticated) return { kind: "none" };
  const { usable, defects } = readTlsaSet(answer.records);
  // Deliberate: RFC 7672 §2.2 would let a set of which nothing is usable pass unauthenticated. A malformed record is a
  // mistake of somebody who asked to be authenticated, so mail waits for its mending.
  if (usable.length === 0 && defects.length > 0) {
    return unknown(base, "tlsa-invalid", `the TLSA records of ${name} are malformed: ${defects[0]}`);
  }
  return { kind: "records", base, usable, all: answer.records };
}
