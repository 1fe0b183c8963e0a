// MTA-STS for the service's own receiving domains (RFC 8461): the policy, the names that it is asked for at, and the records
// that announce it, with the one that asks for TLS reports (RFC 8460 §3). Not here: policies of others (outbound/route/sts.ts).
import { createHash } from "node:crypto";
import type { Config } from "../config.ts";

export type PolicyConfig = Pick<
  Config,
  "https" | "mx_host" | "bounce_host" | "report_domain" | "masked_domain" | "hostname" | "tls_cert_file"
> & { acme: object | null };

/** A week: as long as senders go on demanding TLS when they cannot ask any more. */
const MAX_AGE_S = 604_800;

/** The domains whose MX is ours. */
function receivingDomains(config: PolicyConfig): string[] {
  return [...new Set([config.bounce_host, config.report_domain, config.masked_domain])];
}

/** It demands a certificate that senders believe, of the MX and of where they ask. */
function hasPolicy({ https, acme, tls_cert_file }: PolicyConfig): boolean {
  return https !== null && (acme !== null || tls_cert_file !== null);
}

/** Where senders ask; none where no policy is served. */
export function policyHosts(config: PolicyConfig): string[] {
  return !hasPolicy(config) ? [] : receivingDomains(config).map((domain) => `mta-sts.${domain}`);
}

/** RFC 8461 §3.2. */
export function policyText({ mx_host }: PolicyConfig): string {
  return ["version: STSv1", "mode: enforce", `mx: ${mx_host}`, `max_age: ${MAX_AGE_S}`, ""].join("\r\n");
}

/** The TXT records, by name; the id changes with the policy. */
export function policyRecords(config: PolicyConfig): { name: string; value: string }[] {
  if (!hasPolicy(config)) return [];
  const id = createHash("sha256").update(policyText(config)).digest("hex").slice(0, 20);
  return receivingDomains(config).flatMap((domain) => [
    { name: `_mta-sts.${domain}`, value: `v=STSv1; id=${id};` },
    { name: `_smtp._tls.${domain}`, value: `v=TLSRPTv1; rua=mailto:postmaster@${config.hostname}` },
  ]);
}
