// A reply that the leak gate held, and what its author may do about it from the notice: have this one sent as it is, once and
// within a day, or change what replies from the alias may show. The reply is kept sealed. Only the author's own secrets are
// theirs to show: where another mailbox of the alias would be shown, there are no such links.

import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { NotNow } from "../../platform/not-now.ts";
import { readHeld } from "../../platform/storage/blobs.ts";
import type { SealedColumn } from "../../platform/storage/sealed-columns.ts";
import { recordConfig } from "../activity.ts";
import { openContact } from "../addresses/addresses.ts";
import { addressOf } from "../arrive/correspondents.ts";
import * as carry from "../carry/carry.ts";
import { leaveAlias } from "../carry/leave-alias.ts";
import { type LinkKind, readSealed, sealedLink } from "../carry/sealed-links.ts";
import { contextFinder } from "../lookups.ts";
import { findContacts } from "../people-queries.ts";
import { findAlias } from "../queries.ts";
import type { TracePorts } from "../settle/ports.ts";
import type { AliasRow, Redact } from "../types.ts";
import { clearedNow, showsNewMailbox } from "./cleared.ts";
import * as queries from "./held-queries.ts";

const DAY_MS = 86_400_000;
export const SEND: LinkKind = { path: "/masked/held/", context: "masked-held", lasts_ms: DAY_MS };
export const SETTING: LinkKind = { path: "/masked/setting/", context: "masked-setting", lasts_ms: DAY_MS };
/** How many replies of one alias are held at a time, so that nobody fills the disk with them. */
const HELD_MAX = 10;

export type HeldReply = {
  alias: AliasRow;
  environment: "live" | "test";
  contact_id: string;
  owner_id: string;
  message_id: string;
  /** The mailboxes that it was searched for. */
  cleared: string[];
  bytes: Buffer;
};

/** `also` keeps the reply, in the transaction that says that it was held. */
export type HeldLinks = { send: string | null; setting: string; also?: (tx: Tx) => Promise<unknown> };

/** The links for the notice; without the one that sends, when too many replies of the alias are held already. */
export async function keepHeld(
  world: carry.CarryWorld,
  ports: Pick<carry.CarryPorts, "keepIfLarge">,
  held: HeldReply,
): Promise<HeldLinks> {
  const { alias, environment, contact_id, owner_id, message_id, cleared, bytes } = held;
  const { org_id, id: alias_id } = alias;
  const setting = sealedLink(world, SETTING, { org_id, alias_id });
  if ((await queries.countHeld(world.db, org_id, alias_id)) >= HELD_MAX) return { send: null, setting };
  const id = world.random.uuid();
  const sealed = world.seal.seal(bytes, contextOf(id));
  const blob_key = await ports.keepIfLarge({ org_id, owner_id: id }, sealed);
  const row: queries.HeldRow = {
    ...{ org_id, id, alias_id, contact_id, owner_id, environment, message_id, blob_key, cleared },
    sealed: blob_key === null ? sealed : null,
    created_at: new Date(world.clock.now()),
  };
  const send = sealedLink(world, SEND, { org_id, id });
  return { send, setting, also: (tx) => keep(tx, row) };
}

/** The link is in the notice already: where another reply took the last place meanwhile, all of it is made once more. */
async function keep(tx: Tx, row: queries.HeldRow): Promise<void> {
  await queries.lockKept(tx, row.alias_id);
  if ((await queries.countHeld(tx, row.org_id, row.alias_id)) >= HELD_MAX)
    throw new NotNow("another reply of the alias was kept meanwhile");
  await queries.insertHeld(tx, row.org_id, row);
}

/** Those that are small, mail that failed too; a large one lies in a blob, and opens with the data key it was sealed with. */
export const SEALED_REPLIES: SealedColumn = {
  ...{ table: "masked_held", column: "sealed", key: ["org_id", "id"] },
  context: ({ id }) => contextOf(id!),
};

/** What a mail of this id is sealed for. */
export function contextOf(id: string): string {
  return `masked-held:${id}`;
}

/** The reply that a link is for; null when it was sent, or its time is over. */
export async function findHeldReply(world: carry.CarryWorld, token: string): Promise<queries.HeldRow | null> {
  const named = readSealed<{ org_id: string; id: string }>(world, SEND, token);
  if (!named) return null;
  const since = new Date(world.clock.now() - DAY_MS);
  const [row] = await queries.findHeld(world.db, named.org_id, named.id, since);
  return row ?? null;
}

/**
 * Sends it as it was when it was held. `gone`: it was sent, or its alias or contact is gone; `off`: nothing may leave from
 * the alias, or its author may not write from it any more; `held`: it shows a mailbox that the alias has since. It was counted in
 * the alias's limits when it came.
 */
export async function sendHeld(
  world: carry.CarryWorld,
  ports: TracePorts,
  token: string,
): Promise<"sent" | "gone" | "off" | "held"> {
  const row = await findHeldReply(world, token);
  if (!row) return "gone";
  const { org_id, id, environment, message_id } = row;
  const context = await contextFinder(world)(org_id, row.alias_id);
  const [contact] = await findContacts(world.db, org_id, [row.contact_id]);
  if (!context || context.alias.deleted_at !== null || !contact) return "gone";
  const { alias, destinations } = context;
  const author = destinations.find((one) => one.id === row.owner_id);
  if (!alias.active || !alias.reply_enabled || !author || author.status === "pending") return "off";
  const sealed = await readHeld(world.blobs, { bytes: row.sealed, blob_key: row.blob_key });
  if (sealed === null) return "gone";
  const mime = world.seal.open(sealed, contextOf(id));
  if (showsNewMailbox(context, row.cleared, mime)) return "held";
  const recipient = openContact(world, org_id, contact.sealed).email;
  const outgoing = { id: world.random.uuid(), message_id, from: addressOf(alias), recipient, mime };
  const raw = await carry.toRaw(world, ports, { alias, environment }, outgoing);
  const cleared = clearedNow(context, row.cleared);
  const pressed = { ...row, kind: "reply" as const, reason: "sent_as_is", cleared };
  const ended = await leaveAlias(world, ports, { raw, pressed, also: (tx) => queries.takeHeld(tx, org_id, id) });
  if (ended !== "sent") return "gone";
  if (row.blob_key !== null) await ports.forgetBlobs(org_id, id);
  return "sent";
}

/** Forgets those whose day is over, of all organizations; how many. */
export async function forgetHeld(
  { db, clock }: Pick<carry.CarryWorld, "db" | "clock">,
  ports: Pick<TracePorts, "forgetBlobs">,
  limit: number,
): Promise<number> {
  const over = await queries.purgeHeld(db, new Date(clock.now() - DAY_MS), limit);
  for (const { org_id, id, blob_key } of over) if (blob_key !== null) await ports.forgetBlobs(org_id, id);
  return over.length;
}

// --- what replies of the alias may show ---------------------------------------------------------------------------------

/** The alias that a link is for, if it still is. */
export async function findSettingAlias(world: carry.CarryWorld, token: string): Promise<AliasRow | null> {
  const named = readSealed<{ org_id: string; alias_id: string }>(world, SETTING, token);
  const [alias] = named ? await findAlias(world.db, named.org_id, named.alias_id) : [];
  return alias && alias.deleted_at === null ? alias : null;
}

/** Changes it, with an entry; false when the link is over. */
export async function changeRedact(world: carry.CarryWorld, token: string, redact: Redact): Promise<boolean> {
  const alias = await findSettingAlias(world, token);
  if (!alias) return false;
  const { org_id, id } = alias;
  await withPartitions(world, () =>
    world.db.asOrg(org_id, async (tx) => {
      await queries.setRedact(tx, org_id, id, { redact, at: new Date(world.clock.now()) });
      await recordConfig(world, tx, { org_id, alias_id: id, reason: "changed: redact (by link)" });
    }),
  );
  return true;
}
