// What a source of mail is to the domain, pure: by what reporters saw of it and by the lists of those who may send.

import type { Classification, SourceRow } from "./types.ts";

export type Known = {
  domain: string;
  /** Key names (`selector._domainkey.domain`) of the domain's keys here, retired ones too. */
  our_keys: ReadonlySet<string>;
  /** Hosts in the envelope of mail from here: passed SPF for them is no sign of a forwarder. */
  our_hosts: ReadonlySet<string>;
  isOurs(ip: string): boolean;
  isAuthorised(ip: string): boolean;
};

/**
 * - ours: an address we send from, or mail signed with a key that only we hold and not seen to be passed on;
 * - forwarder: reporters say so for half of its mail, or our signature comes with a foreign envelope;
 * - authorised: in the domain's SPF record, or its mail passes for the domain;
 * - unknown: a sender nobody has set up, or a forger.
 */
export function classify(source: SourceRow, known: Known): Classification {
  if (known.isOurs(source.source_ip)) return "ours";
  const isSignedByUs = source.dkim_passed.some((name) => known.our_keys.has(name));
  const isPassedOn = source.pass_spf === 0 && source.spf_passed.some((host) => isForeign(host, known));
  if (source.forwarded * 2 >= source.total && source.forwarded > 0) return "forwarder";
  if (isSignedByUs) return isPassedOn ? "forwarder" : "ours";
  if (source.pass_dkim > 0 || source.pass_spf > 0 || known.isAuthorised(source.source_ip)) return "authorised";
  return "unknown";
}

function isForeign(host: string, { domain, our_hosts }: Known): boolean {
  return host !== domain && !host.endsWith(`.${domain}`) && !domain.endsWith(`.${host}`) && !our_hosts.has(host);
}
