// Leaving a mailing list that takes only mail (RFC 2369): a mail program would send it from the real mailbox, so the link in
// a forward leads to one of our pages, and its button sends the mail from the alias. The link is sealed: it shows and holds
// nothing for others. Opening it does nothing, because mail scanners open links.

import { getDomain } from "tldts";
import { domainOf, parseAddress } from "../../mail/address.ts";
import { buildMessage } from "../../mail/mime/write/build-message.ts";
import type { Tx } from "../../platform/database/db.ts";
import { derivedUuid } from "../../platform/random.ts";
import type { World } from "../../platform/world.ts";
import { addressOf } from "../arrive/correspondents.ts";
import { takeReply } from "../arrive/windows.ts";
import { findAlias, lockAlias, noteOnce } from "../queries.ts";
import { maskedSettings } from "../settings.ts";
import type { BouncePorts } from "../settle/ports.ts";
import type { AliasRow } from "../types.ts";
import * as carry from "./carry.ts";
import { leaveAlias } from "./leave-alias.ts";
import { type LinkKind, readSealed, sealedLink } from "./sealed-links.ts";

export const LINK: LinkKind = {
  path: "/masked/unsubscribe/",
  context: "masked-unsubscribe",
  lasts_ms: 180 * 86_400_000,
};
const MAILTO_MAX = 600;
const SUBJECT_MAX = 200;
const ONCE_MS = 86_400_000;

type Leave = { org_id: string; alias_id: string; contact_id: string; mailto: string };

/**
 * The page for a `mailto:` link; null for one that names no single address, or an address that is not at the author's own
 * domain: otherwise whoever writes to the alias chooses whom it writes to.
 */
export function unsubscribePage(
  world: Pick<World, "seal" | "clock" | "config">,
  alias: Pick<AliasRow, "org_id" | "id">,
  author: { id: string; email: string },
  mailto: string,
): string | null {
  if (mailto.length > MAILTO_MAX) return null;
  const target = readMailto(mailto);
  if (target === null || ownDomain(target.email) !== ownDomain(author.email)) return null;
  return sealedLink(world, LINK, { org_id: alias.org_id, alias_id: alias.id, contact_id: author.id, mailto });
}

/** The domain that somebody registered. */
function ownDomain(email: string): string {
  const domain = domainOf(email).toLowerCase();
  return getDomain(domain, { allowPrivateDomains: true }) ?? domain;
}

/** What a link's token holds; null when this service did not make it, or its time is over. */
export function readLeave(world: Pick<World, "seal" | "clock">, token: string): Leave | null {
  return readSealed<Leave>(world, LINK, token);
}

type Target = { email: string; subject: string };

/** RFC 6068: one address, and of the fields the subject only: nobody writes a text that leaves as the owner's. */
function readMailto(mailto: string): Target | null {
  const match = /^mailto:([^?]+)(?:\?(.*))?$/is.exec(mailto);
  const email = parseAddress(decode(match?.[1] ?? ""));
  if (!match || !email.ok) return null;
  const fields = new Map<string, string>();
  for (const pair of (match[2] ?? "").split("&")) {
    const at = pair.indexOf("=");
    if (at > 0) fields.set(pair.slice(0, at).toLowerCase(), oneLine(decode(pair.slice(at + 1))));
  }
  return {
    email: email.address.email,
    subject: (fields.get("subject") || "unsubscribe").slice(0, SUBJECT_MAX),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]+/gu, " ").trim();
}

/**
 * Sends the mail from the alias, once a day: a mail program posts again when it got no answer, and people press twice. `gone`: there is no such alias any more; `off`: its owner lets nothing leave from it;
 * `later`: it sends too much already.
 */
export async function leaveList(
  world: carry.CarryWorld,
  ports: BouncePorts,
  leave: Leave,
): Promise<"sent" | "gone" | "off" | "later"> {
  const target = readMailto(leave.mailto);
  const [alias] = await findAlias(world.db, leave.org_id, leave.alias_id);
  if (!target || !alias || alias.deleted_at !== null) return "gone";
  if (!alias.active || !alias.reply_enabled) return "off";
  const limits = await maskedSettings(world.db, alias.org_id);
  const leaving = { org_id: alias.org_id, alias, destination_id: null, isLive: alias.environment === "live" };
  const raw = await compose(world, ports, alias, target);
  const about = { alias_id: alias.id, contact_id: leave.contact_id, owner_id: null, reason: "unsubscribe" };
  const ended = await leaveAlias(world, ports, {
    ...{ raw, pressed: { ...about, kind: "reply" } },
    also: (tx) => isFirstToday(world, tx, leave),
    limits: (isWithin) => takeReply(isWithin, limits, leaving),
  });
  // Gone already today: what the page says of it is still right.
  return ended === "sent" || ended === "gone" ? "sent" : "later";
}

/** Notes it with the mail: what a limit keeps back is not noted. */
async function isFirstToday({ clock }: carry.CarryWorld, tx: Tx, leave: Leave): Promise<boolean> {
  const { org_id, alias_id, contact_id, mailto } = leave;
  await lockAlias(tx, org_id, alias_id);
  const now = clock.now();
  const id = derivedUuid(alias_id, contact_id, mailto);
  const noted = { org_id, alias_id: id, kind: "list_left", starts_at: new Date(now) };
  return await noteOnce(tx, noted, new Date(now - ONCE_MS));
}

async function compose(world: carry.CarryWorld, ports: BouncePorts, alias: AliasRow, target: Target) {
  const id = world.random.uuid();
  const message_id = `${id}@${alias.domain}`;
  const own = addressOf(alias);
  const { bytes } = buildMessage({
    from: { name: alias.display_name, email: own },
    to: [{ name: null, email: target.email }],
    cc: [],
    reply_to: [],
    subject: target.subject,
    date: world.clock.now(),
    message_id,
    headers: [],
    html: null,
    text: "",
    attachments: [],
    boundary_seed: world.random.token(24),
  });
  const outgoing = { id, message_id, from: own, recipient: target.email, mime: bytes };
  return carry.toRaw(world, ports, { alias, environment: alias.environment }, outgoing);
}
