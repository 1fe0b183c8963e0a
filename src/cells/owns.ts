// What is this Postern's own, for who stands before several of them (door.ts): asked at the internal listener as
// `/owns?key_digest=`, `?domain=` or `?host=`. Not here: whether a key is still good, or an address takes mail; the Postern itself says.
import { isKnownKey } from "../accounts/accounts.ts";
import { policyHosts } from "../certificates/policy.ts";
import { domainOfReturnPath, findHolder } from "../domains/domains.ts";
import type { World } from "../platform/world.ts";

type OwnWorld = Pick<World, "db" | "config">;

/** `key_digest`: SHA-256 of the whole key, 64 hex digits. `domain`: of an address that mail comes to. `host`: of a URL. */
export type Question = { kind: "key_digest" | "domain" | "host"; value: string };

/** What the internal listener answers. Null for any other question than these three. */
export function ownsNamed(world: OwnWorld) {
  return async (search: URLSearchParams): Promise<boolean | null> => {
    const question = readQuestion(search);
    return question && owns(world, question);
  };
}

function readQuestion(search: URLSearchParams): Question | null {
  for (const kind of ["key_digest", "domain", "host"] as const) {
    const value = search.get(kind)?.toLowerCase();
    if (value) return kind === "key_digest" && !/^[0-9a-f]{64}$/.test(value) ? null : { kind, value };
  }
  return null;
}

/** Rejects where the database does not answer. */
export async function owns(world: OwnWorld, { kind, value }: Question): Promise<boolean> {
  if (kind === "key_digest") return isKnownKey(world.db, Buffer.from(value, "hex"));
  if (ownHosts(world).includes(value)) return true;
  if (kind === "host") return false;
  const name = domainOfReturnPath(value) ?? value;
  return (await findHolder(world, name)) !== undefined;
}

function ownHosts({ config }: OwnWorld): string[] {
  const { base_url, hostname, mx_host, bounce_host, report_domain, masked_domain } = config;
  return [
    new URL(base_url).hostname,
    ...[hostname, mx_host, bounce_host, report_domain, masked_domain],
    ...policyHosts(config),
  ];
}
