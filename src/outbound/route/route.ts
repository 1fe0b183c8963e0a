// Where a domain's mail goes: MX, null MX, address fallback (RFC 5321 §5.1, RFC 7505), at most five addresses of each
// family. "There is none" and "could not ask" are different answers: only the first may ever bounce a message. Not here:
// how many of them an attempt tries (path.ts), TLS policy (tls-policy.ts), relays (relays.ts).
import { isIPv6 } from "node:net";
import type { Resolver } from "../../platform/dns/resolver.ts";
import { mayConnect } from "../../platform/net/addresses.ts";
import type { World } from "../../platform/world.ts";
import providers from "./providers.json" with { type: "json" };

export type Hop = { host: string; address: string };

export type Route =
  | {
      kind: "route";
      hops: Hop[];
      site: string;
      isp: string;
      connections_max: number;
      messages_per_connection: number;
      /** Hosts of `hops` whose name and address DNSSEC vouches for (RFC 7672 §2.2): only those may be held to DANE. */
      secure_hosts: string[];
    }
  /**
   * Permanent: a null MX, or no server on the public internet. Whether a name is not there or leads inside is nobody's to
   * learn: an MX record may name any of our hosts.
   */
  | { kind: "none"; reason: "null_mx" | "absent"; detail: string }
  /** Temporary: DNS did not answer. */
  | { kind: "unknown"; detail: string };

/**
 * How many addresses are kept of each family, since a source with an address of its own reaches one family only: as many of one
 * host as an attempt tries, and another host's behind them.
 */
const HOPS_MAX = 5;
const HOPS_OF_HOST_MAX = 4;
const HOSTS_MAX = 10;
const CONNECTIONS_MAX = 20;
const MESSAGES_PER_CONNECTION = 100;

type RouteWorld = Pick<World, "resolver" | "random" | "config">;

/** Resolves the route of `domain` (ASCII, lower case) again; caching is the caller's. */
export async function findRoute(world: RouteWorld, domain: string): Promise<Route> {
  const mx = await world.resolver.mx(domain);
  if (mx.kind === "failed") return { kind: "unknown", detail: `MX of ${domain}: ${mx.reason}` };
  if (mx.kind === "absent" && mx.reason === "nxdomain") return absent(domain);
  const records = mx.kind === "found" ? mx.records : [{ exchange: domain, preference: 0 }];
  if (records.length === 1 && isRoot(records[0]?.exchange)) {
    return { kind: "none", reason: "null_mx", detail: `${domain} accepts no mail (null MX, RFC 7505)` };
  }
  const hosts = orderHosts(beforeUs(world, records), world.random.float).slice(0, HOSTS_MAX);
  // Without MX records the domain is its own host, and its address alone says whether the zone is signed.
  const isSecure = mx.kind === "absent" || mx.authenticated;
  const resolved = await resolveHosts(world, hosts, isSecure && world.config.dns_validating);
  return toRoute(domain, hosts, resolved);
}

function absent(domain: string): Route {
  const detail = `the domain ${domain} does not exist, or has no mail server on the public internet`;
  return { kind: "none", reason: "absent", detail };
}

function isRoot(exchange: string | undefined): boolean {
  return exchange === "" || exchange === ".";
}

type Mx = { exchange: string; preference: number };

/**
 * Where this installation is one of a domain's later mail servers, it and what comes behind it are no way to the first ones
 * (RFC 5321 §5.1): it would refuse the recipients it does not know. Where it is among the first it is where the mail goes.
 */
function beforeUs({ config }: Pick<World, "config">, records: Mx[]): Mx[] {
  const own = records.filter(({ exchange }) => [config.mx_host, config.hostname].includes(nameOf(exchange)));
  const ours = Math.min(...own.map(({ preference }) => preference));
  const before = records.filter(({ exchange, preference }) => preference < ours && !isRoot(exchange));
  return before.length > 0 ? before : records;
}

/** By preference, at random within one (RFC 5321 §5.1), each once. */
function orderHosts(records: Mx[], random: () => number): string[] {
  const ordered = records
    .filter((record) => !isRoot(record.exchange))
    .map((record) => ({ ...record, place: random() }))
    .sort((a, b) => a.preference - b.preference || a.place - b.place);
  return [...new Set(ordered.map(({ exchange }) => nameOf(exchange)))];
}

function nameOf(exchange: string): string {
  return exchange.toLowerCase().replace(/\.$/, "");
}

type Resolved = { hops: Hop[]; failed: string | null; secure: string[] };

/** `may_be_secure`: nothing said so far speaks against it. */
async function resolveHosts(world: RouteWorld, hosts: string[], may_be_secure: boolean): Promise<Resolved> {
  const found: Resolved = { hops: [], failed: null, secure: [] };
  for (const host of hosts) {
    if (isFull(found.hops, false) && isFull(found.hops, true)) break;
    const [v4, v6] = await Promise.all([world.resolver.a(host), world.resolver.aaaa(host)]);
    for (const answer of [v4, v6]) addAddresses(world, host, answer, found);
    if (may_be_secure && (isAuthenticated([v4, v6]) || (await isSecureAlias(world, host)))) found.secure.push(host);
  }
  return found;
}

function isFull(hops: Hop[], six: boolean): boolean {
  return hops.filter(({ address }) => isIPv6(address) === six).length >= HOPS_MAX;
}

function isEnough(hops: Hop[], name: string, six: boolean): boolean {
  return hops.filter(({ host, address }) => host === name && isIPv6(address) === six).length >= HOPS_OF_HOST_MAX;
}

function isAuthenticated(answers: Awaited<ReturnType<Resolver["a"]>>[]): boolean {
  const found = answers.filter((answer) => answer.kind === "found");
  return found.length > 0 && found.every(({ authenticated }) => authenticated);
}

/**
 * A name in a signed zone that leads into one without signatures has unsigned addresses, and yet its own TLSA records count (RFC
 * 7672 §2.2.2). Deliberate: no answer is a no. A resolver that has just followed the alias has it; who fails are name servers of
 * unsigned zones that know no such question.
 */
async function isSecureAlias({ resolver }: RouteWorld, host: string): Promise<boolean> {
  const alias = await resolver.cname(host);
  return alias.kind === "found" && alias.authenticated;
}

function addAddresses(
  world: RouteWorld,
  host: string,
  answer: Awaited<ReturnType<Resolver["a"]>>,
  found: Resolved,
): void {
  if (answer.kind === "failed") found.failed ??= `address of ${host}: ${answer.reason}`;
  if (answer.kind !== "found") return;
  for (const address of answer.records) {
    // An MX record is anyone's to write.
    if (!mayConnect(address, { loopback: world.config.testing.allow_loopback })) continue;
    if (!isFull(found.hops, isIPv6(address)) && !isEnough(found.hops, host, isIPv6(address)))
      found.hops.push({ host, address });
  }
}

function toRoute(domain: string, hosts: string[], { hops, failed, secure }: Resolved): Route {
  if (hops.length === 0) return failed ? { kind: "unknown", detail: failed } : absent(domain);
  const provider = sharedProvider(hops);
  return {
    kind: "route",
    hops,
    // Domains with the same mail servers share limits and back-off (connections: those to the same server).
    site: provider?.label ?? [...hosts].sort().join(","),
    isp: provider?.label ?? "other",
    connections_max: provider?.connections_max ?? CONNECTIONS_MAX,
    messages_per_connection: provider?.messages_per_connection ?? MESSAGES_PER_CONNECTION,
    secure_hosts: secure.filter((host) => hops.some((hop) => hop.host === host)),
  };
}

/** The mailbox provider that a server belongs to, as the statistics name it; `other` for all the rest. */
export function ispOf(host: string): string {
  return providerOf(host)?.label ?? "other";
}

type Provider = (typeof providers)[number];

/**
 * The provider whose limits and troubles the route shares: each server that is used must be one of its. MX records are
 * anyone's to write, and one strange server among them could have the mail of all to that provider slowed or suspended.
 */
function sharedProvider(hops: Hop[]): Provider | undefined {
  const provider = providerOf((hops[0] as Hop).host);
  return hops.every(({ host }) => providerOf(host) === provider) ? provider : undefined;
}

const SERVERS = providers.flatMap((provider) => provider.mx.map((name) => ({ provider, pattern: toPattern(name) })));

/** `x.example` is that name and all below it; in `mx*.x.example` the star stands for the rest of one label. */
function toPattern(name: string): RegExp {
  const text = name.replaceAll(".", "\\.").replaceAll("*", "[^.]*");
  return new RegExp(name.includes("*") ? `^${text}$` : `^(?:.+\\.)?${text}$`);
}

function providerOf(host: string): Provider | undefined {
  return SERVERS.find(({ pattern }) => pattern.test(host))?.provider;
}
