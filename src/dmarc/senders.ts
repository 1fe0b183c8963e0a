// Who may send for a domain, asked of DNS and of this installation: our addresses, and what the SPF records of our service
// and of the domain let through. Bounded in time; what could not be asked counts as not known.
import { listKeys } from "../dkim/dkim.ts";
import { createLookUps, type LookUps } from "../mail/auth/look-ups.ts";
import { checkSpf } from "../mail/auth/spf.ts";
import { readIp } from "../mail/dmarc-report/values.ts";
import { resolverFor } from "../platform/dns/resolver.ts";
import type { World } from "../platform/world.ts";
import type { Known } from "./classify.ts";
import type { DmarcPorts } from "./types.ts";

/** For all sources of an answer together: the same questions are asked once. */
const LIMITS = { look_ups_max: 300, time_ms: 4_000 };

type SenderWorld = Pick<World, "db" | "resolver" | "config">;

/** What is known of the domain's senders, for the addresses `ips`. */
export async function findSenders(
  world: SenderWorld,
  ports: DmarcPorts,
  domain: { org_id: string; id: string; domain: string },
  ips: readonly string[],
): Promise<Known> {
  const { keys } = await listKeys(world, domain.org_id, domain.id);
  const ours = new Set((await ports.ourAddresses()).flatMap((ip) => readIp(ip) ?? []));
  const lookUps = createLookUps(resolverFor(world.resolver, domain.org_id), LIMITS);
  try {
    const [ofService, ofDomain] = await Promise.all([
      permitted(lookUps, world.config.spf_host, ips),
      permitted(lookUps, domain.domain, ips),
    ]);
    return {
      domain: domain.domain,
      our_keys: new Set(keys.map(({ selector }) => `${selector}._domainkey.${domain.domain}`)),
      our_hosts: new Set([world.config.bounce_host]),
      isOurs: (ip) => ours.has(ip) || ofService.has(ip),
      isAuthorised: (ip) => ofDomain.has(ip),
    };
  } finally {
    lookUps.end();
  }
}

async function permitted(lookUps: LookUps, domain: string, ips: readonly string[]): Promise<Set<string>> {
  const answer = await lookUps.txt(domain);
  if (answer.kind !== "found" || !answer.records.some((text) => /^v=spf1/i.test(text))) return new Set();
  const found = await Promise.all(
    ips.map(async (ip) => {
      const { result } = await checkSpf({ remote_ip: ip, helo: domain, mail_from: `postmaster@${domain}` }, lookUps);
      return result === "pass" ? [ip] : [];
    }),
  );
  return new Set(found.flat());
}
