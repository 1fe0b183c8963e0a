// Mail that failed for good: a forward that its mailbox's server did not take, a reply that its contact's did not. It is kept
// sealed for a week, so that its owner can download it and send it again, by the API or by the link in the notice. It is sent
// again to whom it was for, under the rules and limits that hold then. The contact learns nothing of it.

import type { ParsePool } from "../../parsing/parse-pool.ts";
import type { Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { totalOf } from "../../platform/database/totals.ts";
import { readHeld } from "../../platform/storage/blobs.ts";
import { SealBroken } from "../../platform/storage/seal.ts";
import { findBody } from "../../sending/sending.ts";
import { addressDigest, tryOpenContact, tryOpenText, untagged } from "../addresses/addresses.ts";
import { encryptingFor } from "../addresses/pgp-keys.ts";
import { addressOf } from "../arrive/correspondents.ts";
import { type IsWithin, type Over, takeForward, takeReply, windowCounterIn } from "../arrive/windows.ts";
import * as carry from "../carry/carry.ts";
import { leaveAlias } from "../carry/leave-alias.ts";
import { type LinkKind, readSealed, sealedLink } from "../carry/sealed-links.ts";
import { type AliasContext, contextFinder } from "../lookups.ts";
import { findContacts } from "../people-queries.ts";
import { findAddresses } from "../queries.ts";
import { fieldReader } from "../rewrite/header-fields.ts";
import { maskedSettings } from "../settings.ts";
import type { BouncePorts } from "../settle/ports.ts";
import type { TraceRow } from "../settle/trace-queries.ts";
import type { ContactSecrets, Who } from "../types.ts";
import { clearedNow, showsNewMailbox } from "./cleared.ts";
import * as queries from "./failed-queries.ts";
import { contextOf } from "./held.ts";
import { lockKept, takeHeld } from "./held-queries.ts";

const KEPT_MS = 7 * 86_400_000;
export const LINK: LinkKind = { path: "/masked/failed/", context: "masked-failed", lasts_ms: KEPT_MS };
/** How many mails of one alias are kept at a time. */
const KEPT_MAX = 10;
const OCTETS_MAX = 26_214_400;

/** What is kept of a mail that failed: its row, for the transaction that notes the failure, and the link for the notice. */
export type Kept = { row: queries.FailedRow; link: string };

/** Seals it; null where it is forgotten already, too large, or too much of the alias's mail is kept. */
export async function keepFailed(
  world: carry.CarryWorld,
  ports: BouncePorts,
  trace: TraceRow,
  reason: string,
): Promise<Kept | null> {
  const { org_id, alias_id, contact_id, kind } = trace;
  const owner_id = kind === "reply" ? trace.owner_id : trace.destination_id;
  if ((kind !== "reply" && kind !== "forward") || !alias_id || !contact_id || !owner_id) return null;
  const [body] = await findBody(world.db, org_id, trace.id);
  const context = await contextFinder(world)(org_id, alias_id);
  if (!body || !context || (await queries.countFailedOfAlias(world.db, org_id, alias_id)) >= KEPT_MAX) return null;
  const bytes = await readHeld(world.blobs, { bytes: body.mime, blob_key: body.blob_key });
  if (bytes === null || bytes.length > OCTETS_MAX) return null;
  const id = world.random.uuid();
  const sealed = world.seal.seal(bytes, contextOf(id));
  const blob_key = await ports.keepIfLarge({ org_id, owner_id: id }, sealed);
  const row: queries.FailedRow = {
    ...{ org_id, id, alias_id, contact_id, owner_id, kind, reason, blob_key },
    environment: context.alias.environment,
    // A contact's own names its server.
    message_id: kind === "reply" ? messageIdOf(bytes) : trace.id,
    sealed: blob_key === null ? sealed : null,
    size: bytes.length,
    cleared: trace.cleared ?? [],
    created_at: new Date(world.clock.now()),
  };
  return { row, link: sealedLink(world, LINK, { org_id, id }) };
}

/** Keeps it, in the transaction that notes the failure; false where others took the last place, or the last of the day. */
export async function insertKept(
  world: Pick<carry.CarryWorld, "clock">,
  tx: Tx,
  { org_id, alias_id, ...row }: queries.FailedRow,
): Promise<boolean> {
  await lockKept(tx, alias_id);
  if ((await queries.countFailedOfAlias(tx, org_id, alias_id)) >= KEPT_MAX) return false;
  if (!(await windowCounterIn(tx, world)({ org_id, id: alias_id }, "failed_kept_day"))) return false;
  await queries.insertFailed(tx, org_id, { org_id, alias_id, ...row });
  return true;
}

/** Without angle brackets. */
function messageIdOf(bytes: Buffer): string {
  return /^<([^<>]*)>/.exec(fieldReader(bytes)("message-id").trim())?.[1] ?? "";
}

type Named = { org_id: string; id: string };

/** The mail that a link is for; null when its time is over. */
export function readFailed(world: Pick<carry.CarryWorld, "seal" | "clock">, token: string): Named | null {
  return readSealed<Named>(world, LINK, token);
}

/** Finds a failed mail while it is kept and its contact exists. */
export function findKept({ db, clock }: Pick<carry.CarryWorld, "db" | "clock">, { org_id, id }: Named) {
  return db.asOrg(org_id, async (tx) => {
    const row = await queries.findFailed(tx, org_id, id, new Date(clock.now() - KEPT_MS));
    const [contact] = row ? await findContacts(tx, org_id, [row.contact_id]) : [];
    return row && contact ? { row, contact } : null;
  });
}

/** Its bytes as they would have left; null when it is gone, or was sealed with a master key that is lost. */
export async function openFailed(world: carry.CarryWorld, row: queries.FailedRow): Promise<Buffer | null> {
  const sealed = await readHeld(world.blobs, { bytes: row.sealed, blob_key: row.blob_key });
  try {
    return sealed && world.seal.open(sealed, contextOf(row.id));
  } catch (error) {
    if (error instanceof SealBroken) return null;
    throw error;
  }
}

/**
 * `gone`: it was sent, or what it was for is removed; `off`: nothing may leave from the alias, or its mailbox is not confirmed;
 * `later`: too much leaves already; `held`: it shows a mailbox that the alias has since; `unsealed`: its mailbox has a key, and it
 * could not be encrypted for that.
 */
export type SentAgain = { done: "sent" | "gone" | "off" | "held" | "unsealed" } | { done: "later"; over: Over };

/** `encrypt`: in a worker. */
export type AgainPorts = BouncePorts & Pick<ParsePool, "encrypt">;

/** Sends it to whom it was for; once. */
export async function sendAgain(world: carry.CarryWorld, ports: AgainPorts, named: Named): Promise<SentAgain> {
  const kept = await findKept(world, named);
  const context = kept && (await contextFinder(world)(named.org_id, kept.row.alias_id));
  if (!kept || !context || context.alias.deleted_at !== null) return { done: "gone" };
  const { row, contact } = kept;
  const secrets = tryOpenContact(world, row.org_id, contact.sealed);
  const bytes = await openFailed(world, row);
  if (secrets === null || bytes === null) return { done: "gone" };
  const ends = await endsOf(world, context, { row, secrets, blocked: contact.blocked });
  if (ends === "off") return { done: "off" };
  if (row.kind === "reply" && showsNewMailbox(context, row.cleared, bytes)) return { done: "held" };
  const { alias } = context;
  const mime = await sealedFor(world, ports, { context, row, bytes });
  if (mime === null) return { done: "unsealed" };
  const outgoing = { id: world.random.uuid(), message_id: messageIdOf(mime), ...ends, mime };
  const raw = await carry.toRaw(world, ports, { alias, environment: row.environment }, outgoing);
  const pressed = { ...row, reason: "sent_again", cleared: clearedNow(context, row.cleared) };
  const also = (tx: Tx) => takeHeld(tx, row.org_id, row.id);
  const limits = await limitsOf(world, context, row);
  const ended = await leaveAlias(world, ports, { raw, pressed, also, limits });
  if (typeof ended !== "string") return { done: "later", over: ended };
  if (ended === "sent") await ports.forgetBlobs(row.org_id, row.id);
  return { done: ended };
}

type Ending = { row: queries.FailedRow; secrets: ContactSecrets; blocked: boolean };

/** From whom it leaves and for whom; why not, where what it was allowed by holds no more. */
async function endsOf(
  world: carry.CarryWorld,
  { alias, destinations }: AliasContext,
  { row, secrets, blocked }: Ending,
): Promise<{ from: string; recipient: string } | "off"> {
  const mailbox = destinations.find(({ id }) => id === row.owner_id);
  if (!alias.active || mailbox?.status !== "verified") return "off";
  if (row.kind === "reply") {
    return alias.reply_enabled ? { from: addressOf(alias), recipient: secrets.email } : "off";
  }
  // A mailbox that became an address of this service would send it in circles.
  const [ours] = await findAddresses(world.db, [addressDigest(world, untagged(mailbox.email.toLowerCase()))]);
  if (blocked || ours) return "off";
  return { from: `${secrets.reply_local}@${alias.domain}`, recipient: mailbox.email };
}

type Sealing = { context: AliasContext; row: queries.FailedRow; bytes: Buffer };

/** A forward may have been written before its mailbox had a key; null where it cannot be encrypted for it. */
async function sealedFor(
  world: carry.CarryWorld,
  { encrypt }: Pick<AgainPorts, "encrypt">,
  { context: { destinations }, row, bytes }: Sealing,
): Promise<Buffer | null> {
  const pgp = row.kind === "forward" ? destinations.find(({ id }) => id === row.owner_id)?.pgp : null;
  const encrypting = encryptingFor(world, row.org_id, pgp);
  return encrypting === null ? bytes : encrypt(bytes, encrypting);
}

/** What is counted with it. */
async function limitsOf({ db }: Pick<carry.CarryWorld, "db">, { alias }: AliasContext, row: queries.FailedRow) {
  if (row.kind === "forward") return (isWithin: IsWithin) => takeForward(isWithin, alias);
  const limits = await maskedSettings(db, alias.org_id);
  const isLive = alias.environment === "live";
  const leaving = { org_id: alias.org_id, alias, destination_id: row.owner_id, isLive };
  return (isWithin: IsWithin) => takeReply(isWithin, limits, leaving);
}

/** One page of the failed mails that are kept, the newest first, without their content. */
export async function listFailed(
  world: Pick<carry.CarryWorld, "db" | "clock" | "seal">,
  { org_id, environment }: Who,
  { alias_id, kind }: Pick<queries.FailedFilter, "alias_id" | "kind">,
  page: Page,
) {
  const filter = { environment, since: new Date(world.clock.now() - KEPT_MS), alias_id, kind };
  return world.db.asOrg(org_id, async (tx) => {
    const rows = await queries.listFailed(tx, org_id, filter, page);
    const total = await totalOf(rows.length, page, () => queries.countFailed(tx, org_id, filter));
    return { failed: rows.map((row) => shown(world, row)), ...total, ...page };
  });
}

function shown(world: Pick<carry.CarryWorld, "seal">, row: queries.ListedFailed) {
  const { org_id, id, alias_id, alias, kind, reason, size, created_at } = row;
  return {
    ...{ id, alias_id, alias, kind, reason, size, created_at },
    contact: row.contact_sealed && (tryOpenContact(world, org_id, row.contact_sealed)?.email ?? null),
    destination: row.destination_sealed && tryOpenText(world, org_id, row.destination_sealed),
    expires_at: new Date(created_at.getTime() + KEPT_MS),
  };
}

/** Deletes one. */
export async function deleteFailed(
  { db }: Pick<carry.CarryWorld, "db">,
  ports: Pick<BouncePorts, "forgetBlobs">,
  { org_id, id }: Named,
): Promise<void> {
  await db.asOrg(org_id, (tx) => takeHeld(tx, org_id, id));
  await ports.forgetBlobs(org_id, id);
}

/** Forgets those whose time is over, of all organizations; how many. */
export async function forgetFailed(
  { db, clock }: Pick<carry.CarryWorld, "db" | "clock">,
  ports: Pick<BouncePorts, "forgetBlobs">,
  limit: number,
): Promise<number> {
  const over = await queries.purgeFailed(db, new Date(clock.now() - KEPT_MS), limit);
  for (const { org_id, id, blob_key } of over) if (blob_key !== null) await ports.forgetBlobs(org_id, id);
  return over.length;
}
