// The subject of a mail from a mailbox to its alias that asks for what List-Unsubscribe of a forward promised. Only we can
// have written it: nobody's link makes an owner send one unknowingly.
import type { World } from "../../platform/world.ts";
import type { AliasRow, ListUnsubscribe } from "../types.ts";

export type StopAct = Exclude<ListUnsubscribe, "original">;
export type Stop = { org_id: string; alias_id: string; contact_id: string; act: StopAct };

const MAC_CHARS = 32;

/** The subject that asks for it. */
export function stopSubject(world: Pick<World, "seal">, wanted: Omit<Stop, "org_id">): string {
  return `${wanted.act} ${wanted.contact_id} ${macOf(world, wanted)}`;
}

/** What the subject of a mail from a mailbox of the alias asks for; null where it is any other subject. */
export function stopOfSubject(
  world: Pick<World, "seal">,
  { org_id, id: alias_id }: Pick<AliasRow, "org_id" | "id">,
  subject: string | null,
): Stop | null {
  const found = /^\s*(disable_alias|block_sender)\s+([0-9a-f-]{36})\s+([0-9a-f]{32})\s*$/.exec(subject ?? "");
  if (!found) return null;
  const [, act, contact_id, mac] = found as unknown as [string, StopAct, string, string];
  return mac === macOf(world, { alias_id, contact_id, act }) ? { org_id, alias_id, contact_id, act } : null;
}

function macOf({ seal }: Pick<World, "seal">, { alias_id, contact_id, act }: Omit<Stop, "org_id">): string {
  return seal.hash(`${alias_id} ${contact_id} ${act}`, "masked-stop").toString("hex").slice(0, MAC_CHARS);
}
