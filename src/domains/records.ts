// The DNS records a domain is to publish, and how they are shown beside what the last check saw.
import { getDomain } from "tldts";
import type { Config } from "../config.ts";
import { receives, sends } from "./state.ts";
import type { DkimRecord, DnsRecord, DomainRow, ExpectedRecord } from "./types.ts";

const TTL_S = 3_600;
const MX_PRIORITY = 10;
const RETURN_PATH_PREFIX = "pt-bounces.";

export type Hosts = Pick<Config, "spf_host" | "bounce_host" | "mx_host" | "report_domain">;

/** The host in the envelope of a domain that has its return path in place. */
export function returnPathName(domain: string): string {
  return RETURN_PATH_PREFIX + domain;
}

/** The domain whose return path the host is, by its name alone; null for any other host. */
export function domainOfReturnPath(host: string): string | null {
  return host.startsWith(RETURN_PATH_PREFIX) ? host.slice(RETURN_PATH_PREFIX.length) : null;
}

/** What the ownership record says. */
function ownershipValue(row: Pick<DomainRow, "ownership_token">): string {
  return `postern-verify=${row.ownership_token}`;
}

/** Where receivers are to send DMARC aggregate reports on the domain (a `rua` entry, RFC 7489 §6.2). */
export function reportUri(hosts: Pick<Config, "report_domain">, row: Pick<DomainRow, "dmarc_token">): string {
  return `mailto:${row.dmarc_token}@${hosts.report_domain}`;
}

/**
 * The record of our own zone that lets reports on the domain come to us (RFC 7489 §7.1, RFC 9990 §4): without it most
 * reporters send none. Not `required` when the domain and the address are of one organizational domain.
 */
export function reportAuthorization(hosts: Pick<Config, "report_domain">, domain: string) {
  const organization = (name: string) => getDomain(name, { allowPrivateDomains: true }) ?? name;
  return {
    required: organization(domain) !== organization(hosts.report_domain),
    name: `${domain}._report._dmarc.${hosts.report_domain}`,
    value: "v=DMARC1",
  };
}

/** All records of the domain, required ones first in the order in which people publish them. */
export function expectedRecords(hosts: Hosts, row: DomainRow, dkim: DkimRecord[]): ExpectedRecord[] {
  const { domain, type } = row;
  const txt = (purpose: ExpectedRecord["purpose"], name: string, value: string, required: boolean): ExpectedRecord => ({
    ...{ purpose, type: "TXT", name, value, priority: null, ttl: TTL_S, required, note: null },
  });
  const records = [txt("ownership", `_postern.${domain}`, ownershipValue(row), true)];
  if (sends(type)) records.push(txt("spf", domain, `v=spf1 include:${hosts.spf_host} ~all`, true));
  for (const key of dkim) {
    records.push({ ...txt("dkim", key.name, key.value, key.required && sends(type)), note: key.note });
  }
  if (receives(type)) {
    const mx = txt("mx", domain, hosts.mx_host, true);
    records.push({ ...mx, type: "MX", priority: MX_PRIORITY });
  }
  if (sends(type)) {
    const cname = txt("return_path", returnPathName(domain), hosts.bounce_host, false);
    records.push({ ...cname, type: "CNAME" });
  }
  records.push(txt("dmarc", `_dmarc.${domain}`, `v=DMARC1; p=none; rua=${reportUri(hosts, row)}`, false));
  const authorization = reportAuthorization(hosts, domain);
  if (authorization.required) {
    records.push(txt("dmarc_authorization", authorization.name, authorization.value, false));
  }
  return records;
}

/** The records with what the last check saw of each; `unchecked` where it saw none yet. */
export function withChecks(expected: ExpectedRecord[], row: Pick<DomainRow, "checks">): DnsRecord[] {
  const seen = new Map(row.checks.map((check) => [`${check.purpose} ${check.name}`, check]));
  return expected.map(({ note, ...record }) => {
    const check = seen.get(`${record.purpose} ${record.name}`);
    return {
      ...record,
      status: check?.status ?? "unchecked",
      found: check?.found ?? [],
      hint: check?.hint ?? note,
      checked_at: check?.checked_at ?? null,
    };
  });
}

/** One sentence for people: where the domain stands and what is to do. */
export function summarize(row: Pick<DomainRow, "domain" | "status">, records: DnsRecord[]): string {
  const open = records.filter((record) => record.status !== "ok");
  const required = records.filter((record) => record.required);
  const done = required.filter((record) => record.status === "ok").length;
  const parts = [`${row.domain} is ${row.status}: ${done} of ${required.length} required records are in place.`];
  const say = (lead: string, some: DnsRecord[]) => {
    if (some.length > 0) parts.push(`${lead}: ${some.map(named).join(", ")}.`);
  };
  const isUnasked = (record: DnsRecord) => record.status === "error";
  say(
    "To publish or correct",
    open.filter((record) => record.required && !isUnasked(record)),
  );
  say("Could not be asked for, and will be again", open.filter(isUnasked));
  // What the operator is to publish has its place in the list, with a hint, not in what the customer has to do.
  say(
    "Recommended besides",
    open.filter((record) => !record.required && !isUnasked(record) && record.purpose !== "dmarc_authorization"),
  );
  for (const record of records.filter(isHeldUp)) parts.push(`${named(record)} is in place, but: ${record.hint}`);
  return parts.join(" ");
}

/** In place, and receivers do not let the mail pass all the same. */
function isHeldUp({ purpose, status, hint }: DnsRecord): boolean {
  return (purpose === "spf" || purpose === "return_path") && status === "ok" && hint !== null;
}

function named(record: DnsRecord): string {
  return `${record.type} ${record.name}`;
}
