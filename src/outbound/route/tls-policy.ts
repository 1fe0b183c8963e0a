// Under which terms a mail server may be used for a recipient domain: DANE (RFC 7672) before MTA-STS (RFC 8461) before
// opportunistic TLS (RFC 7435). DANE is a property of the server, MTA-STS one of the recipient domain, so terms belong to
// a domain's hop, never to a path. Not here: looking policies up (tlsa.ts, sts.ts), connecting (links.ts).
import { type DaneVerdict, matchTlsa, type TlsaRecord } from "../../mail/dane.ts";
import { stsNamesMx } from "../../mail/mta-sts.ts";
import type { PeerTls } from "../../mail/smtp/session.ts";
import type { World } from "../../platform/world.ts";
import { certificateWords } from "../../text/tls-words.ts";
import type { Hop, Route } from "./route.ts";
import type { KnownSts, StsAnswer, StsTrouble } from "./sts.ts";
import type { PolicySeen, TlsResult } from "./tls-results.ts";
import { findTlsa, type TlsaAnswer } from "./tlsa.ts";

export type Terms =
  /**
   * TLS if offered, any certificate; `testing`: judged by MTA-STS as well, but only for the report. `unnamed`: what its policy
   * would say against this server, whatever its certificate.
   */
  | { kind: "opportunistic"; testing: boolean; unnamed?: Verdict }
  /** TLS, and the usual check of chain and name. */
  | { kind: "pkix" }
  /** TLS, and the certificate must be one that the records speak of. `key` names this set of records. */
  | { kind: "dane"; base: string; names: string[]; records: TlsaRecord[]; key: string }
  /** TLS with any certificate: there are TLSA records, none of a kind we can use (RFC 7672 §2.2). */
  | { kind: "encrypted" }
  /** A relay of the customer's own choice: its certificate must be valid, or there is no TLS at all (tests). */
  | { kind: "relay"; tls: "starttls" | "implicit" | "none" }
  /** Must not be used now. */
  | { kind: "closed"; result: TlsResult; detail: string };

export type PlannedHop = Hop & { terms: Terms; policy: PolicySeen };

export type Site = {
  name: string;
  isp: string;
  connections_max: number;
  messages_per_connection: number;
};

/** How to reach a domain, or a relay, now. `fresh_until_ms` (wall clock): when a policy in it expires. */
export type Plan = {
  domain: string;
  site: Site;
  hops: PlannedHop[];
  fresh_until_ms: number;
  /** Why an announced MTA-STS policy could not be had; null once that is counted. */
  sts_trouble?: StsTrouble | null;
  /** A relay's port and login. */
  via?: { port: number; credentials: { user: string; pass: string } | null };
};

type FoundRoute = Extract<Route, { kind: "route" }>;

/** Joins the route of `domain` with the policies that hold for it. */
export async function planRoute(
  world: Pick<World, "resolver" | "config">,
  domain: string,
  route: FoundRoute,
  sts: StsAnswer,
): Promise<Plan> {
  const secure = world.config.dns_validating ? route.secure_hosts : [];
  const found = await Promise.all(secure.map(async (host) => [host, await findTlsa(world.resolver, host)] as const));
  const tlsa = new Map(found);
  const byHost = new Map<string, Pick<PlannedHop, "terms" | "policy">>();
  for (const { host } of route.hops) {
    const records = tlsa.get(host) ?? { kind: "none" };
    if (!byHost.has(host)) byHost.set(host, termsOf(domain, host, records, sts.policy));
  }
  const { site, isp, connections_max, messages_per_connection } = route;
  return {
    domain,
    site: { name: site, isp, connections_max, messages_per_connection },
    hops: route.hops.map((hop) => ({ ...hop, ...(byHost.get(hop.host) as Pick<PlannedHop, "terms" | "policy">) })),
    fresh_until_ms: sts.policy?.expires_at.getTime() ?? Number.POSITIVE_INFINITY,
    sts_trouble: sts.trouble,
  };
}

function termsOf(
  domain: string,
  host: string,
  tlsa: TlsaAnswer,
  sts: KnownSts | null,
): Pick<PlannedHop, "terms" | "policy"> {
  // Records that authenticate nobody leave that to a policy that does: only a DANE that fails is not overridden (RFC 8461 §2).
  const authenticates = tlsa.kind !== "records" || tlsa.usable.length > 0 || sts?.mode !== "enforce";
  if (tlsa.kind !== "none" && authenticates) return daneTerms(domain, host, tlsa);
  if (!sts || sts.mode === "none")
    return { terms: { kind: "opportunistic", testing: false }, policy: noPolicy(domain) };
  const policy = stsPolicy(domain, sts);
  const detail = `the MTA-STS policy of ${domain} does not name this server`;
  const unnamed = stsNamesMx(sts, host) ? null : { result: "validation-failure" as const, detail };
  if (sts.mode === "testing") return { terms: { kind: "opportunistic", testing: true, unnamed }, policy };
  return { terms: unnamed === null ? { kind: "pkix" } : { kind: "closed", ...unnamed }, policy };
}

function daneTerms(domain: string, host: string, tlsa: Exclude<TlsaAnswer, { kind: "none" }>) {
  if (tlsa.kind === "unknown") {
    const policy: PolicySeen = { type: "tlsa", domain: tlsa.base, strings: [] };
    return { terms: { kind: "closed" as const, result: tlsa.result, detail: `DANE: ${tlsa.detail}` }, policy };
  }
  const strings = tlsa.all.map(recordText).sort();
  const policy: PolicySeen = { type: "tlsa", domain: tlsa.base, strings };
  if (tlsa.usable.length === 0) return { terms: { kind: "encrypted" as const }, policy };
  const names = [...new Set([tlsa.base, host, domain])];
  const terms = { kind: "dane" as const, base: tlsa.base, names, records: tlsa.usable, key: strings.join("|") };
  return { terms, policy };
}

function recordText({ usage, selector, matching_type, data }: TlsaRecord): string {
  return `${usage} ${selector} ${matching_type} ${data.toString("hex")}`;
}

/** The lines of the policy, as a report repeats them (RFC 8460 §4.4). */
function stsPolicy(domain: string, { mode, mx, max_age_s }: KnownSts): PolicySeen {
  const lines = ["version: STSv1", `mode: ${mode}`, ...mx.map((name) => `mx: ${name}`), `max_age: ${max_age_s}`];
  return { type: "sts", domain, strings: lines };
}

function noPolicy(domain: string): PolicySeen {
  return { type: "no-policy-found", domain, strings: [] };
}

// --- judging a server's certificate -----------------------------------------------------------------------------------

export type Verdict = { result: TlsResult; detail: string } | null;

const EXPIRED = /^(CERT_HAS_EXPIRED|CERT_NOT_YET_VALID)$/;

/** Chain and name as every client checks them. Null: it is the right server. */
export function judgeChain(peer: PeerTls): Verdict {
  if (peer.authorized) return null;
  const why = peer.authorization_error ?? "unknown";
  const isOther = why.includes("ALTNAME");
  const result = isOther
    ? "certificate-host-mismatch"
    : EXPIRED.test(why)
      ? "certificate-expired"
      : "certificate-not-trusted";
  const words = certificateWords(why, peer.certificate.subjectaltname);
  return { result, detail: `the certificate is not valid for ${peer.host}: ${words}` };
}

/** Chain and name as RFC 8461 §4.2 has it: the name must stand in the subjectAltName. */
export function judgePkix(peer: PeerTls): Verdict {
  const verdict = judgeChain(peer);
  if (verdict || /(^|, )DNS:/.test(peer.certificate.subjectaltname ?? "")) return verdict;
  return { result: "certificate-host-mismatch", detail: "the certificate names no host in its subjectAltName" };
}

/** By the TLSA records alone; which authorities we trust otherwise does not matter. */
export function judgeDane(terms: Extract<Terms, { kind: "dane" }>, peer: PeerTls, nowMs: number): Verdict {
  const reference = { names: terms.names, now_ms: nowMs };
  const verdict: DaneVerdict = matchTlsa(terms.records, chainOf(peer), reference);
  if (verdict.matched) return null;
  return { result: verdict.fault, detail: `DANE (_25._tcp.${terms.base}): ${verdict.detail}` };
}

const CHAIN_MAX = 10;

function chainOf({ certificate }: PeerTls): Buffer[] {
  const chain: Buffer[] = [];
  for (let one = certificate; one?.raw && chain.length < CHAIN_MAX; one = one.issuerCertificate) {
    chain.push(one.raw);
    if (one.issuerCertificate === one) break;
  }
  return chain;
}
