// SPF of the service's own names as receivers evaluate it (RFC 7208), from every address that mail leaves from: what
// customers include, the host of the return path, the masked domain, and the name in EHLO.
import type { FoundConfig } from "../config.ts";
import { createLookUps, type LookUps } from "../mail/auth/look-ups.ts";
import { checkSpf } from "../mail/auth/spf.ts";
import type { Resolver } from "../platform/dns/resolver.ts";
import { type Check, ok, problem, skipped, warning } from "./check.ts";
import type { PoolAddress } from "./sending-addresses.ts";
import { envelopeSpf, spfOf } from "./zone.ts";

type Named = { host: "spf_host" | "bounce_host" | "masked_domain" | "hostname"; without: string; isGrave: boolean };

const NAMED: Named[] = [
  { host: "spf_host", without: "the SPF record of every customer's domain is invalid to receivers", isGrave: true },
  { host: "bounce_host", without: "SPF does not pass for the return path of any mail", isGrave: true },
  { host: "masked_domain", without: "SPF does not pass for masked addresses", isGrave: false },
  { host: "hostname", without: "SPF does not pass for the name that we give in EHLO", isGrave: false },
];
const NAME = "SPF";

/** One finding a name. */
export async function checkSpfOfNames(
  config: FoundConfig,
  resolver: Resolver,
  addresses: readonly PoolAddress[],
): Promise<Check[]> {
  if (addresses.length === 0) {
    const says = "The addresses that mail leaves from are not known, so SPF is not checked.";
    return [skipped(NAME, says, "Publish addresses for the host name, or set POSTERN_PUBLIC_ADDRESSES.")];
  }
  const lookUps = createLookUps(resolver);
  try {
    return await Promise.all(NAMED.map((named) => checkName(config, named, addresses, lookUps)));
  } finally {
    lookUps.end();
  }
}

async function checkName(
  config: FoundConfig,
  { host, without, isGrave }: Named,
  addresses: readonly PoolAddress[],
  lookUps: LookUps,
): Promise<Check> {
  const name = config[host];
  // The name in EHLO is each address's own.
  const asked = addresses.map(({ ip, ehlo }) => ({ ip, helo: ehlo, domain: host === "hostname" ? ehlo : name }));
  const verdicts = await Promise.all(
    asked.map(async ({ ip, helo, domain }) => ({
      ip,
      ...(await checkSpf({ remote_ip: ip, helo, mail_from: `postmaster@${domain}` }, lookUps)),
    })),
  );
  const bad = verdicts.find(({ result }) => result !== "pass");
  if (!bad)
    return ok(NAME, `SPF passes for ${name}, from ${addresses.length === 1 ? "our address" : "all addresses"}.`);
  const why = bad.reason === "" ? `${bad.domain} does not list that address` : bad.reason;
  if (bad.result === "temperror") return skipped(NAME, `SPF of ${bad.domain} could not be evaluated (${why}).`);
  const says = `Receivers find "${bad.result}" for ${bad.ip}: ${why}. So ${without}.`;
  const value =
    host === "spf_host"
      ? spfOf(
          config,
          addresses.map(({ ip }) => ip),
        )
      : envelopeSpf(config);
  const remedy = `Publish the record: ${bad.domain} TXT "${value}"`;
  return isGrave ? problem(NAME, says, remedy) : warning(NAME, says, remedy);
}
