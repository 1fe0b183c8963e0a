// What List-Unsubscribe of a forward does where the alias wants that (RFC 2369, RFC 8058): the alias is switched off, or the
// author is blocked. By https with one click or the button of a page, and by mail from the mailbox to the alias, whose subject
// only we can have written: nobody's link makes an owner do it unknowingly.
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import type { World } from "../../platform/world.ts";
import { recordConfig } from "../activity.ts";
import { addressOf } from "../arrive/correspondents.ts";
import { type Stop, stopSubject } from "../arrive/stop-subject.ts";
import { findContacts, updateContact } from "../people-queries.ts";
import { findAlias, lockAlias, updateAlias } from "../queries.ts";
import type { AliasRow } from "../types.ts";
import { type LinkKind, readSealed, sealedLink } from "./sealed-links.ts";

export const LINK: LinkKind = { path: "/masked/stop/", context: "masked-stop", lasts_ms: 365 * 86_400_000 };

type Alias = Pick<AliasRow, "id" | "org_id" | "local_part" | "domain" | "list_unsubscribe">;

/** The links for a forward of this contact's mail, https first; none where the original stays. */
export function stopLinks(world: Pick<World, "seal" | "clock" | "config">, alias: Alias, contactId: string): string[] {
  if (alias.list_unsubscribe === "original") return [];
  const { org_id, id: alias_id, list_unsubscribe: act } = alias;
  const subject = stopSubject(world, { alias_id, contact_id: contactId, act });
  const page = sealedLink(world, LINK, { org_id, alias_id, contact_id: contactId, act });
  return [page, `mailto:${addressOf(alias)}?subject=${encodeURIComponent(subject)}`];
}

/** What a link's token asks for; null when this service did not make it, or its time is over. */
export function readStop(world: Pick<World, "seal" | "clock">, token: string): Stop | null {
  return readSealed<Stop>(world, LINK, token);
}

/** Carries out what the link is for, with an entry in the activity; false when the alias or the contact is gone. */
export function stop(world: Pick<World, "db" | "clock" | "random">, wanted: Stop): Promise<boolean> {
  return withPartitions(world, () => world.db.asOrg(wanted.org_id, (tx) => stopIn(world, tx, wanted)));
}

/** The same in a transaction. */
export async function stopIn(
  world: Pick<World, "clock" | "random">,
  tx: Tx,
  { org_id, alias_id, contact_id, act }: Stop,
): Promise<boolean> {
  const at = new Date(world.clock.now());
  const [alias] = await (act === "disable_alias" ? lockAlias : findAlias)(tx, org_id, alias_id);
  if (!alias || alias.deleted_at !== null) return false;
  if (act === "disable_alias") {
    await updateAlias(tx, org_id, alias_id, { ...alias, active: false, disabled_reason: "owner", at });
    await recordConfig(world, tx, { org_id, alias_id, reason: "changed: active (by unsubscribing)" });
    return true;
  }
  const [contact] = await findContacts(tx, org_id, [contact_id]);
  if (!contact || contact.alias_id !== alias_id) return false;
  await updateContact(tx, org_id, contact_id, { sealed: contact.sealed, blocked: true, at });
  await recordConfig(world, tx, { org_id, alias_id, reason: "blocked a contact (by unsubscribing)" });
  return true;
}
