// The OpenPGP keys of mailboxes, as they are kept and shown: what is forwarded to a mailbox with a key is encrypted for it. Key and
// fingerprint are sealed, because both lead to a person on key servers.
import type { Encrypting } from "../../mail/pgp/encrypt-mail.ts";
import type { World } from "../../platform/world.ts";
import type { DestinationRow, PgpKeyRecord, PgpOfMailbox } from "../types.ts";
import { sealText, tryOpenText } from "./addresses.ts";

type Kept = { armored: string; fingerprint: string; expires_at: string | null };

/** Seals what is kept of a key. */
export function sealPgpKey(
  world: Pick<World, "seal">,
  orgId: string,
  { expires_at, ...key }: { armored: string; fingerprint: string; expires_at: Date | null },
): Buffer {
  const kept: Kept = { ...key, expires_at: expires_at?.toISOString() ?? null };
  return sealText(world, orgId, JSON.stringify(kept));
}

function open(world: Pick<World, "seal">, orgId: string, sealed: Buffer): Kept | null {
  const text = tryOpenText(world, orgId, sealed);
  return text === null ? null : (JSON.parse(text) as Kept);
}

/** The key of a mailbox as the API shows it; null: it has none. */
export function showPgpKey(
  world: Pick<World, "seal">,
  { org_id, pgp_sealed, pgp_hide_subject: hide_subject }: DestinationRow,
): PgpKeyRecord | null {
  if (pgp_sealed === null) return null;
  const kept = open(world, org_id, pgp_sealed);
  if (kept === null) return { fingerprint: "", expires_at: null, hide_subject };
  return {
    fingerprint: kept.fingerprint,
    expires_at: kept.expires_at === null ? null : new Date(kept.expires_at),
    hide_subject,
  };
}

/** How a forward to the mailbox is encrypted; null: it has no key. One that cannot be read is no key that works. */
export function encryptingFor(
  world: Pick<World, "seal" | "clock">,
  orgId: string,
  pgp: PgpOfMailbox | null | undefined,
): Encrypting | null {
  if (!pgp) return null;
  const { hide_subject } = pgp;
  return { key: open(world, orgId, pgp.sealed)?.armored ?? "", hide_subject, now_ms: world.clock.now() };
}
