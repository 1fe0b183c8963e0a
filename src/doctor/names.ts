// The names of the service as other mail servers see them: addresses and back, where mail for each goes, SPF as receivers
// evaluate it, and the records of the masked domain. Not here: which records these are, as a zone file (zone.ts).
import type { FoundConfig } from "../config.ts";
import { compareDkimRecord } from "../mail/dkim/key.ts";
import { maskedRecords } from "../masked/addresses/service-domain.ts";
import type { Answer, Resolver } from "../platform/dns/resolver.ts";
import { addressOf } from "../platform/net/places.ts";
import { type Check, ok, problem, skipped, warning } from "./check.ts";
import { isLocal } from "./local.ts";
import { type KnownToDatabase, machineAddresses, type PoolAddress } from "./sending-addresses.ts";
import { checkSpfOfNames } from "./spf.ts";

/** `addresses`: where mail leaves from, each with its name in EHLO. */
export type KnownOfNames = KnownToDatabase & { addresses: readonly PoolAddress[] };

/** That DNS answers at all, and that all names of the service lead here and back (RFC 5321 §2.3.5, RFC 1912 §2.1). */
export async function checkNames(config: FoundConfig, resolver: Resolver, known: KnownOfNames): Promise<Check[]> {
  const { hostname, mx_host } = config;
  if (isLocal(hostname)) {
    return [
      warning(
        "hostname",
        `The host name is ${hostname}, which no mail server believes.`,
        "Set POSTERN_HOSTNAME to the name that this machine's address resolves to.",
      ),
    ];
  }
  const own = await addressesAt(hostname, resolver);
  if (own.kind === "failed") {
    return [
      problem(
        "DNS",
        `The name servers do not answer (${own.reason}).`,
        "Set POSTERN_DNS to a resolver that this machine may use, such as 127.0.0.1:53 with unbound.",
      ),
      checkReceiving(config, own),
    ];
  }
  const mx = mx_host === hostname ? own : await addressesAt(mx_host, resolver);
  const found = await Promise.all([
    own.kind === "found" ? checkOwn(config, known, { name: hostname, found: own.records }) : [absent(hostname)],
    checkReceiving(config, mx),
    mx.kind === "found" && mx_host !== hostname ? checkOwn(config, known, { name: mx_host, found: mx.records }) : [],
    ...MAIL_NAMES.map((what) => checkMailName(config, what, resolver)),
    checkSpfOfNames(config, resolver, known.addresses),
    checkAuthorization(config, resolver),
    checkMasked(config, resolver, known.masked_key),
    ...known.addresses.map((address) => checkReverse(address, resolver)),
  ]);
  return [ok("DNS", "The name servers answer."), ...found.flat()];
}

function absent(hostname: string): Check {
  return problem(
    "hostname",
    `${hostname} has no address in DNS.`,
    `Publish an A record for ${hostname} with this machine's public address.`,
  );
}

type Addresses = { kind: "found"; records: string[] } | { kind: "absent" } | { kind: "failed"; reason: string };

/** Both kinds together. Failed is only what nothing was found of. */
async function addressesAt(name: string, resolver: Pick<Resolver, "a" | "aaaa">): Promise<Addresses> {
  const answers: Answer<string>[] = await Promise.all([resolver.a(name), resolver.aaaa(name)]);
  const records = answers.flatMap((answer) => (answer.kind === "found" ? answer.records : []));
  if (records.length > 0) return { kind: "found", records };
  const failed = answers.find((answer) => answer.kind === "failed");
  return failed?.kind === "failed" ? { kind: "failed", reason: failed.reason } : { kind: "absent" };
}

/** Checks that the name leads to this machine, and to each address that mail may leave from. */
function checkOwn(
  { public_addresses }: FoundConfig,
  { pools }: KnownToDatabase,
  { name, found }: { name: string; found: readonly string[] },
): Check {
  const own = public_addresses.length > 0 ? public_addresses : machineAddresses();
  if (own.length === 0) {
    const says = `This machine has private addresses only: whether ${name} (${found.join(", ")}) leads here is not known.`;
    return skipped("address", says, "Set POSTERN_PUBLIC_ADDRESSES to the addresses that others see.");
  }
  const strange = found.filter((ip) => !own.includes(ip));
  if (strange.length > 0) {
    const says = `${name} leads to ${strange.join(", ")}, which this machine does not have (${own.join(", ")}).`;
    const remedy = "Correct its A and AAAA records, or name the addresses that others see in POSTERN_PUBLIC_ADDRESSES.";
    return warning("address", says, remedy);
  }
  const missing = own.filter((ip) => !found.includes(ip) && !pools.some((one) => one.ip === ip));
  if (missing.length === 0) return ok("address", `${name} leads to this machine (${found.join(", ")}).`);
  const says = `Mail may leave from ${missing.join(", ")}, and ${name} does not lead there.`;
  const remedy = `Publish A and AAAA records for it, or name what mail leaves from in POSTERN_PUBLIC_ADDRESSES.`;
  return warning("address", says, remedy);
}

// Mail that comes in -------------------------------------------------------------------------------------------------

function checkReceiving({ mx, mx_host, proxy_protocol_from }: FoundConfig, found: Addresses): Check {
  const name = "MX";
  const where = addressOf(mx);
  if (isLocal(mx.host) && proxy_protocol_from.length === 0) {
    const says = `The MX listens on ${where}, which other machines do not reach: no mail and no bounce arrives.`;
    return problem(name, says, "Set POSTERN_MX=0.0.0.0:25 (docs/operations.md says how without root).");
  }
  if (found.kind === "failed") return skipped(name, `Where ${mx_host} leads could not be asked (${found.reason}).`);
  if (found.kind === "absent") {
    const says = `${mx_host} has no address in DNS, so no inbound mail arrives.`;
    return warning(name, says, `Publish an A record for ${mx_host}.`);
  }
  if (mx.port === 25 || isLocal(mx.host)) return ok(name, `${mx_host} receives mail on ${where}.`);
  const says = `The MX listens on ${where}; other servers call port 25 of ${mx_host}.`;
  return warning(name, says, `Set POSTERN_MX=${mx.host}:25, or forward port 25 to port ${mx.port}.`);
}

type MailName = { name: string; host: "bounce_host" | "report_domain" | "masked_domain"; without: string };

/** Names that mail comes to besides the MX itself. */
const MAIL_NAMES: MailName[] = [
  {
    name: "bounces",
    host: "bounce_host",
    without: "no bounce comes back, and some servers refuse mail whose return path has no mail server",
  },
  { name: "reports", host: "report_domain", without: "no DMARC report arrives" },
  { name: "masked addresses", host: "masked_domain", without: "no mail for masked addresses arrives" },
];

/** RFC 5321 §5.1: an MX that is ours, or an address of its own. */
async function checkMailName(
  config: FoundConfig,
  { name, host, without }: MailName,
  resolver: Resolver,
): Promise<Check> {
  const domain = config[host];
  const mx = await resolver.mx(domain);
  const exchanges = mx.kind === "found" ? mx.records.map(({ exchange }) => exchange.toLowerCase()) : [];
  if (exchanges.includes(config.mx_host)) return ok(name, `Mail for ${domain} goes to ${config.mx_host}.`);
  if (mx.kind === "failed") return skipped(name, `Where mail for ${domain} goes could not be asked (${mx.reason}).`);
  if (exchanges.length === 0 && (await addressesAt(domain, resolver)).kind === "found")
    return ok(name, `Mail for ${domain} goes to its own address.`);
  const goes = exchanges.length === 0 ? "has no mail server" : `sends its mail to ${exchanges.join(", ")}`;
  const says = `${domain} ${goes}: ${without}.`;
  return warning(name, says, `Publish the record: ${domain} MX 10 ${config.mx_host}`);
}

/** RFC 7489 §7.1: the wildcard by which reports on every customer's domain may come to us. */
async function checkAuthorization({ report_domain }: FoundConfig, resolver: Resolver): Promise<Check> {
  const name = "DMARC reports";
  const answer = await resolver.txt(`any.example._report._dmarc.${report_domain}`);
  if (answer.kind === "failed")
    return skipped(name, `The records below ${report_domain} could not be asked (${answer.reason}).`);
  if (answer.kind === "found" && answer.records.some((text) => /^v=DMARC1\s*(;|$)/i.test(text)))
    return ok(name, `Reports on every domain may come to ${report_domain}.`);
  const says = `${report_domain} does not say that it takes reports on other domains: most reporters send none.`;
  return warning(name, says, `Publish the record: *._report._dmarc.${report_domain} TXT "v=DMARC1"`);
}

// Mail that goes out -------------------------------------------------------------------------------------------------

async function checkReverse({ ip, ehlo }: PoolAddress, resolver: Resolver): Promise<Check> {
  const [answer, back] = await Promise.all([resolver.ptr(ip), addressesAt(ehlo, resolver)]);
  const names = answer.kind === "found" ? answer.records.map((name) => name.toLowerCase().replace(/\.$/, "")) : [];
  if (answer.kind === "failed") return skipped("PTR", `The name of ${ip} could not be asked for (${answer.reason}).`);
  if (!names.includes(ehlo)) {
    const is = names.length > 0 ? `is called ${names.join(", ")} in DNS, not ${ehlo}` : "has no name in DNS";
    const remedy = `Ask the provider of the address for the PTR record ${ehlo}.`;
    return problem("PTR", `${ip} ${is}. Large providers refuse mail from it.`, remedy);
  }
  if (back.kind === "found" && back.records.includes(ip)) return ok("PTR", `${ip} and ${ehlo} lead to each other.`);
  if (back.kind === "failed") return skipped("PTR", `Where ${ehlo} leads could not be asked (${back.reason}).`);
  const says = `${ip} is called ${ehlo} in DNS, which does not lead back. Large providers refuse mail from it.`;
  return problem("PTR", says, `Publish an ${ip.includes(":") ? "AAAA" : "A"} record: ${ehlo} ${ip}`);
}

/** DKIM and DMARC of the service's masked domain; its SPF and MX are looked at with the others'. */
async function checkMasked(
  config: FoundConfig,
  resolver: Resolver,
  key: KnownToDatabase["masked_key"],
): Promise<Check[]> {
  const name = "masked domain";
  if (key === null) return [skipped(name, "Its DKIM key is not known here: the database does not answer or has none.")];
  const records = maskedRecords(config, key).filter(({ purpose }) => purpose === "dkim" || purpose === "dmarc");
  return Promise.all(
    records.map(async (record) => {
      const answer = await resolver.txt(record.name);
      if (answer.kind === "failed") return skipped(name, `${record.name} could not be asked (${answer.reason}).`);
      const texts = answer.kind === "found" ? answer.records : [];
      const isThere =
        record.purpose === "dkim"
          ? compareDkimRecord(texts, record.value).status === "match"
          : texts.some((text) => /^v=DMARC1\s*;/i.test(text));
      if (isThere) return ok(name, `${record.name} is in place.`);
      const lost =
        record.purpose === "dkim" ? "mail from masked addresses is not signed" : "anybody may forge masked addresses";
      const says = `${record.name} ${texts.length > 0 ? "has another record" : "has no record"}: to receivers ${lost}.`;
      return warning(name, says, "Publish the record that postern dns zone prints.");
    }),
  );
}
