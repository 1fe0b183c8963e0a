// Message-IDs on the two sides of an alias: what one side knows is shown to it, what it does not know is left out.
import type { Query } from "../platform/db.ts";
import type { World } from "../platform/world.ts";
import { messageIdDigest, openText, sealText } from "./addresses.ts";
import { findMessageIds, type KnownId } from "./queries.ts";

type Side = { org_id: string; alias_id: string };
type SealWorld = Pick<World, "seal">;

const IDS_MAX = 50;

/** What a reply is called outside: the same for every copy of it that its author's server delivers. */
export function outerId({ seal }: SealWorld, { id, domain }: { id: string; domain: string }, innerId: string): string {
  return `${seal.hash(`${id} ${innerId}`, "masked-outer-id").toString("hex").slice(0, 32)}@${domain}`;
}

/** The counterparts of ids, in order; those nobody knows as `unknown` says. */
export async function mapIds(
  world: SealWorld,
  tx: Query,
  { org_id, alias_id }: Side,
  { ids, unknown }: { ids: readonly string[]; unknown: "keep" | "drop" },
): Promise<string[]> {
  if (ids.length === 0) return [];
  const last = ids.slice(-IDS_MAX);
  const digests = last.map((id) => messageIdDigest(world, alias_id, id));
  const rows = await findMessageIds(tx, org_id, alias_id, digests);
  const known = new Map(rows.map((row) => [row.digest.toString("hex"), row]));
  return last.flatMap((id, at) => {
    const row = known.get((digests[at] as Buffer).toString("hex"));
    if (!row) return unknown === "keep" ? [id] : [];
    return [row.counterpart ? openText(world, org_id, row.counterpart) : id];
  });
}

/** Ids that both sides know as they are. */
export function sameIds(world: SealWorld, aliasId: string, ids: readonly string[]): KnownId[] {
  const digests = [...new Set(ids)].slice(-IDS_MAX).map((id) => messageIdDigest(world, aliasId, id));
  return digests.map((digest) => ({ digest, counterpart: null }));
}

/** `inner` (the mailbox's id) is `outer` to the contact, and the other way round. */
export function pairOfIds(
  world: SealWorld,
  { org_id, alias_id }: Side,
  { inner, outer }: { inner: string; outer: string },
): KnownId[] {
  const entry = (id: string, other: string): KnownId => ({
    digest: messageIdDigest(world, alias_id, id),
    counterpart: sealText(world, org_id, other),
  });
  return [entry(inner, outer), entry(outer, inner)];
}
