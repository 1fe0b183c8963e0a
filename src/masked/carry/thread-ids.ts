// Message-IDs on the two sides of an alias: the mailbox's own (inner) are shown to it alone, what they are called outside
// (outer) to everybody. What no contact knows is left out of replies.

import type { Query } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import { messageIdDigest, openText, sealText } from "../addresses/addresses.ts";
import { findMessageIds, type KnownId } from "../queries.ts";
import { isMessageId } from "../rewrite/header-fields.ts";
import type { AliasRow } from "../types.ts";

type Alias = Pick<AliasRow, "org_id" | "id" | "domain">;
type SealWorld = Pick<World, "seal">;

const IDS_MAX = 50;

/** What a reply is called outside: the same for every copy of it that its author's server delivers. */
export function outerId({ seal }: SealWorld, { id, domain }: Omit<Alias, "org_id">, innerId: string): string {
  return `${seal.hash(`${id} ${innerId}`, "masked-outer-id").toString("hex").slice(0, 32)}@${domain}`;
}

/** A contact's id as it can be written; in place of what no header field may hold one of our own, for all copies the same. */
export function writableId({ seal }: SealWorld, { id, domain }: Omit<Alias, "org_id">, given: string): string {
  if (isMessageId(given)) return given;
  return `<${seal.hash(`${id} ${given}`, "masked-given-id").toString("hex").slice(0, 32)}@${domain}>`;
}

/** Ids in a contact's mail as the mailbox knows them: its own for those of its replies, the rest as they are. */
export async function idsForMailbox(world: SealWorld, tx: Query, alias: Alias, ids: readonly string[]) {
  return (await lookUp(world, tx, alias, ids.slice(-IDS_MAX))).map(({ id, sides }) => sides?.inner ?? id);
}

/**
 * What a reply answers as its reader knows it: a contact, or (`isWithin`) another mailbox of the alias. What only the author's
 * mailbox knows is left out. `own`: the mailbox's ids among them, and what they are called outside.
 */
export async function idsForReply(
  world: SealWorld,
  tx: Query,
  alias: Alias,
  { answered, references, isWithin }: { answered: readonly string[]; references: readonly string[]; isWithin: boolean },
) {
  const lists = [answered.slice(-IDS_MAX), references.slice(-IDS_MAX)] as const;
  const found = await lookUp(world, tx, alias, [...new Set(lists.flat())]);
  const known = new Map(found.map(({ id, sides }) => [id, sides]));
  const side = isWithin ? "inner" : "outer";
  const shown = (ids: readonly string[]) => [...new Set(ids.flatMap((id) => known.get(id)?.[side] ?? []))];
  const own = found.map(({ id, sides }) => sides ?? { inner: id, outer: `<${outerId(world, alias, id)}>` });
  return {
    in_reply_to: shown(lists[0]),
    references: shown(lists[1]),
    own: own.filter(({ inner, outer }) => inner !== outer),
  };
}

type Sides = { inner: string; outer: string };

/** The last of the ids, in order; `sides` is null for one that nobody knows. */
async function lookUp(world: SealWorld, tx: Query, alias: Alias, ids: readonly string[]) {
  if (ids.length === 0) return [];
  const last = ids.slice(-2 * IDS_MAX);
  const digests = last.map((id) => messageIdDigest(world, alias.id, id));
  const rows = await findMessageIds(tx, alias.org_id, alias.id, digests);
  const known = new Map(rows.map((row) => [row.digest.toString("hex"), row]));
  return last.map((id, at) => {
    const row = known.get((digests[at] as Buffer).toString("hex"));
    return { id, sides: row ? sidesOf(world, alias, id, row) : null };
  });
}

/**
 * Which of the two ids is the mailbox's. Outer ids are seen in contacts' mail, and can come back as what a reply answers:
 * taken for the mailbox's, they would be answered with its own. They can be recognized, because they are made from those.
 */
function sidesOf(world: SealWorld, alias: Alias, id: string, { counterpart }: KnownId): Sides {
  if (counterpart === null) return { inner: id, outer: id };
  const other = openText(world, alias.org_id, counterpart);
  return id === `<${outerId(world, alias, other)}>` ? { inner: other, outer: id } : { inner: id, outer: other };
}

/** Ids that both sides know as they are. */
export function sameIds(world: SealWorld, aliasId: string, ids: readonly string[]): KnownId[] {
  const digests = [...new Set(ids)].slice(-IDS_MAX).map((id) => messageIdDigest(world, aliasId, id));
  return digests.map((digest) => ({ digest, counterpart: null }));
}

/** What is kept of the id of a mailbox's mail, so that it is found by what either side calls it. */
export function pairOfIds(world: SealWorld, alias: Alias, inner: string): KnownId[] {
  const outer = `<${outerId(world, alias, inner)}>`;
  const entry = (id: string, other: string): KnownId => ({
    digest: messageIdDigest(world, alias.id, id),
    counterpart: sealText(world, alias.org_id, other),
  });
  return [entry(inner, outer), entry(outer, inner)];
}
