// Leaving a mailing list that takes only mail (RFC 2369): a mail program would send it from the real mailbox, so the link in
// a forward leads to a page of ours, and its button sends the mail from the alias. The link is sealed: it shows and holds
// nothing for others. Opening it does nothing, because mail scanners open links.

import { parseAddress } from "../mail/address.ts";
import { buildMessage } from "../mail/mime/build-message.ts";
import { withPartitions } from "../platform/partitions.ts";
import { SealBroken } from "../platform/seal.ts";
import type { World } from "../platform/world.ts";
import { enqueueRaw, withLane } from "../sending/sending.ts";
import type { RawMessage } from "../sending/types.ts";
import { toActivityRow } from "./activity.ts";
import type { BouncePorts } from "./bounces.ts";
import * as carry from "./carry.ts";
import { type ConcludedMail, concludeMails } from "./conclude-queries.ts";
import { addressOf } from "./correspondents.ts";
import { findAlias } from "./queries.ts";
import { toRows } from "./traces.ts";
import type { AliasRow } from "./types.ts";
import { takeReply, windowCounter } from "./windows.ts";

const PATH = "/masked/unsubscribe/";
const CONTEXT = "masked-unsubscribe";
const LINK_MS = 180 * 86_400_000;
const MAILTO_MAX = 600;
const SUBJECT_MAX = 200;
const BODY_MAX = 500;

type Leave = { org_id: string; alias_id: string; contact_id: string; mailto: string; until: number };

/** The page for a `mailto:` link; null for one that names no single address. */
export function unsubscribePage(
  { seal, clock, config }: Pick<World, "seal" | "clock" | "config">,
  alias: Pick<AliasRow, "org_id" | "id">,
  contactId: string,
  mailto: string,
): string | null {
  if (mailto.length > MAILTO_MAX || readMailto(mailto) === null) return null;
  const until = clock.now() + LINK_MS;
  const leave: Leave = { org_id: alias.org_id, alias_id: alias.id, contact_id: contactId, mailto, until };
  return `${config.base_url}${PATH}${seal.seal(Buffer.from(JSON.stringify(leave)), CONTEXT).toString("base64url")}`;
}

/** What a link's token holds; null when it is none of ours or its time is over. */
export function readLeave({ seal, clock }: Pick<World, "seal" | "clock">, token: string): Leave | null {
  if (!/^[A-Za-z0-9_-]{40,2000}$/.test(token)) return null;
  try {
    const leave = JSON.parse(seal.open(Buffer.from(token, "base64url"), CONTEXT).toString()) as Leave;
    return leave.until > clock.now() ? leave : null;
  } catch (error) {
    if (error instanceof SealBroken) return null;
    throw error;
  }
}

type Target = { email: string; subject: string; body: string };

/** RFC 6068: one address, and of the fields subject and body only. */
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
    body: (fields.get("body") || "unsubscribe").slice(0, BODY_MAX),
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
 * Sends the mail from the alias. `gone`: there is no such alias any more; `off`: its owner lets nothing leave from it;
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
  if (!(await takeReply(windowCounter(world), alias))) return "later";
  const raw = await compose(world, ports, alias, target);
  const mail = await withLane(ports.findLane, raw);
  const fact = factOf(world, leave, { ...raw, alias_id: alias.id });
  await withPartitions(world, () =>
    world.db.asOrg(leave.org_id, async (tx) => {
      await enqueueRaw(tx, [mail]);
      await concludeMails(tx, [fact]);
    }),
  );
  ports.notify();
  return "sent";
}

/** It is a reply like those that people write. */
function factOf(world: carry.CarryWorld, { contact_id }: Leave, raw: RawMessage & { alias_id: string }): ConcludedMail {
  const { org_id, alias_id, id, message_id, mime } = raw;
  const entry = { org_id, alias_id, id, contact_id, message_id: `<${message_id}>`, reason: "unsubscribe" };
  return {
    org_id,
    alias_id,
    at: raw.created_at,
    traces: toRows(world, [{ org_id, id, kind: "reply", alias_id, contact_id }], raw.environment),
    ids: [],
    sent: [],
    contact: { id: contact_id, received: 0, sent: 1 },
    entries: [toActivityRow(world, { ...entry, type: "reply", outcome: "sent", size: mime.length })],
    counts: { received: 0, forwarded: 0, replied: 1, blocked: 0 },
  };
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
    text: `${target.body}\n`,
    attachments: [],
    boundary_seed: world.random.token(24),
  });
  const outgoing = { id, message_id, from: own, recipient: target.email, mime: bytes };
  return carry.toRaw(world, ports, { alias, environment: alias.environment }, outgoing);
}
