// What is this Postern's own, for who stands before several of them (door.ts): asked at the internal listener as
// `/owns?key_digest=`, `?domain=`, `?host=`, `?address=` or `?link=`. Not here: whether a key is still good, or an address takes mail; the
// Postern itself says.
import { organizationNames, organizationOfKey } from "../accounts/accounts.ts";
import { policyHosts } from "../certificates/policy.ts";
import { findReportAddress } from "../dmarc/dmarc.ts";
import { domainOfReturnPath, findHolder } from "../domains/domains.ts";
import { readToken } from "../mail/bounce-token.ts";
import { readUnsubscribeToken, UNSUBSCRIBE_CONTEXT, UNSUBSCRIBE_PATH } from "../mail/unsubscribe-token.ts";
import { organizationOfLink, organizationOfMasked } from "../masked/masked.ts";
import { TOKEN_CONTEXT } from "../outbound/outbound.ts";
import type { World } from "../platform/world.ts";
import { findMessageOwner } from "../sending/sending.ts";

type OwnWorld = Pick<World, "db" | "config" | "seal" | "clock" | "moves">;

const KINDS = ["key_digest", "domain", "host", "address", "link"] as const;

/**
 * `key_digest`: SHA-256 of the whole key, 64 hex digits. `domain`: of an address that mail comes to. `host`: of a URL. `address`: at
 * one of the service's own host names, which cells may share. `link`: the path of a page without a key, from a mail.
 */
export type Question = { kind: (typeof KINDS)[number]; value: string };

/** `moving`: it is on its way to another cell, and is answered that it must be asked again. */
export type Ownership = "yes" | "no" | "moving";

/** What the internal listener answers. Null for any other question than these. */
export function ownsNamed(world: OwnWorld) {
  return async (search: URLSearchParams): Promise<Ownership | null> => {
    const question = readQuestion(search);
    return question && owns(world, question);
  };
}

function readQuestion(search: URLSearchParams): Question | null {
  for (const kind of KINDS) {
    const given = search.get(kind);
    if (!given) continue;
    // Capitals count in the tokens of links.
    const value = kind === "link" ? given : given.toLowerCase();
    return kind === "key_digest" && !/^[0-9a-f]{64}$/.test(value) ? null : { kind, value };
  }
  return null;
}

/** Rejects where the database does not answer. */
export async function owns(world: OwnWorld, { kind, value }: Question): Promise<Ownership> {
  if ((kind === "domain" || kind === "host") && ownHosts(world).includes(value)) return "yes";
  const orgId = await organizationOf(world, { kind, value });
  if (orgId === null) return "no";
  return world.moves.moving.has(orgId) ? "moving" : "yes";
}

async function organizationOf(world: OwnWorld, { kind, value }: Question): Promise<string | null> {
  switch (kind) {
    case "key_digest":
      return organizationOfKey(world.db, Buffer.from(value, "hex"));
    case "domain":
      return (await findHolder(world, domainOfReturnPath(value) ?? value))?.org_id ?? null;
    case "address":
      return organizationOfOwnAddress(world, value);
    case "link":
      return organizationOfPage(world, value);
    case "host":
      return null;
  }
}

/** The organization of a return path, a feedback address, a masked or reverse address, or an address for reports. */
async function organizationOfOwnAddress(world: OwnWorld, address: string): Promise<string | null> {
  const at = address.lastIndexOf("@");
  const [local, domain] = [address.slice(0, at), address.slice(at + 1)];
  const token = /^[bf]\+([a-z2-7]+)$/.exec(local)?.[1] ?? "";
  const named = readToken(token, (text) => world.seal.hash(text, TOKEN_CONTEXT));
  if (named) return (await findMessageOwner(world.db, named.message_id, named.position))[0]?.org_id ?? null;
  const masked = await organizationOfMasked(world, address);
  return masked ?? (await findReportAddress(world, { local, domain }))?.org_id ?? null;
}

/** Its token says whose it is, which another cell with the same keys can read as well. */
async function organizationOfPage(world: OwnWorld, path: string): Promise<string | null> {
  const mac = (text: string) => world.seal.hash(text, UNSUBSCRIBE_CONTEXT);
  const named = path.startsWith(UNSUBSCRIBE_PATH)
    ? readUnsubscribeToken(path.slice(UNSUBSCRIBE_PATH.length), mac)?.org_id
    : organizationOfLink(world, path);
  if (!named) return null;
  return (await organizationNames(world, [named])).has(named) ? named : null;
}

function ownHosts({ config }: OwnWorld): string[] {
  const { base_url, hostname, mx_host, bounce_host, report_domain, masked_domain } = config;
  return [
    new URL(base_url).hostname,
    ...[hostname, mx_host, bounce_host, report_domain, masked_domain],
    ...policyHosts(config),
  ];
}
