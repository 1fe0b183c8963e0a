// Our resolver in the manner of Node's, for what only tests ask: mailauth, the second opinion on authentication.
import type { Mx, Tlsa } from "../../src/platform/dns/dns-message.ts";
import type { Answer, Resolver } from "../../src/platform/dns/resolver.ts";

/** The look-up of node:dns/promises `resolve`: records in its shapes, failures as errors with its codes. */
export type NodeStyleResolver = (name: string, rrtype?: string) => Promise<unknown[]>;

/**
 * The resolver as mailauth wants it: `(name, type)` for A, AAAA, CNAME, MX, PTR, TLSA and TXT, in the shapes of Node's
 * `resolve`. Throws errors with the codes ENOTFOUND, ENODATA, ETIMEOUT, EREFUSED and ESERVFAIL.
 */
export function nodeStyleResolver(resolver: Resolver): NodeStyleResolver {
  return async (name, rrtype = "A") => {
    const answer = await askByType(resolver, name, rrtype.toUpperCase());
    if (answer.kind === "found") return answer.records;
    throw lookUpError(answer, name, rrtype);
  };
}

async function askByType(resolver: Resolver, name: string, rrtype: string): Promise<Answer<unknown>> {
  switch (rrtype) {
    case "A":
      return resolver.a(name);
    case "AAAA":
      return resolver.aaaa(name);
    case "CNAME":
      return resolver.cname(name);
    case "TXT":
      return reshaped(await resolver.txt(name), (text) => [text]);
    case "MX":
      return reshaped(await resolver.mx(name), nodeMx);
    case "TLSA":
      return reshaped(await resolver.tlsa(name), nodeTlsa);
    case "PTR":
      return resolver.ptr(addressOfReverseName(name) ?? "");
    default:
      throw Object.assign(new Error(`look-ups of type ${rrtype} are not supported`), { code: "EBADQUERY" });
  }
}

function reshaped<T>(answer: Answer<T>, shape: (record: T) => unknown): Answer<unknown> {
  return answer.kind === "found" ? { ...answer, records: answer.records.map(shape) } : answer;
}

// Node writes the root, which is the exchange of a null MX, as an empty name.
function nodeMx(mx: Mx): { exchange: string; priority: number } {
  return { exchange: mx.exchange === "." ? "" : mx.exchange, priority: mx.preference };
}

function nodeTlsa(tlsa: Tlsa): { certUsage: number; selector: number; match: number; data: Buffer } {
  return { certUsage: tlsa.usage, selector: tlsa.selector, match: tlsa.matching_type, data: tlsa.data };
}

function addressOfReverseName(name: string): string | null {
  const [, digits, suffix] = /^([0-9a-f.]{1,80})\.(in-addr|ip6)\.arpa\.?$/i.exec(name) ?? [];
  const parts = digits?.split(".").reverse() ?? [];
  if (suffix?.toLowerCase() === "in-addr") return parts.length === 4 ? parts.join(".") : null;
  return parts.length === 32 ? parts.join("").replace(/(.{4})(?=.)/g, "$1:") : null;
}

function lookUpError(answer: Answer<unknown> & { kind: "absent" | "failed" }, name: string, rrtype: string): Error {
  const code = errorCode(answer);
  const syscall = `query${rrtype[0]?.toUpperCase()}${rrtype.slice(1).toLowerCase()}`;
  return Object.assign(new Error(`${syscall} ${code} ${name}`), { code, errno: undefined, syscall, hostname: name });
}

function errorCode(answer: { kind: "absent" | "failed"; reason: string }): string {
  if (answer.kind === "absent") return answer.reason === "nxdomain" ? "ENOTFOUND" : "ENODATA";
  if (answer.reason === "timeout") return "ETIMEOUT";
  return answer.reason === "refused" ? "EREFUSED" : "ESERVFAIL";
}
