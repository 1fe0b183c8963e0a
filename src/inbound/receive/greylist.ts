// Greylisting (RFC 6647), when the operator asks for it: a sender that is unknown is asked to come again, which
// real servers do and much of the abuse does not. Known by client network, envelope sender and recipient, as a digest.
import { createHash } from "node:crypto";
import { clientNetwork } from "../../mail/smtp-server/client-limits.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "./greylist-queries.ts";

/** Sooner than this is no retry but the same volley. */
const WAIT_MS = 60_000;
/** A first attempt that nobody followed up is forgotten. */
const RETRY_WITHIN_MS = 2 * 86_400_000;
/** A triple that passed is let through as long as it is used. */
export const REMEMBER_MS = 36 * 86_400_000;

export type GreylistWorld = Pick<World, "db" | "clock">;

/** True if this triple may pass now. */
export async function mayPass(
  world: GreylistWorld,
  triple: { ip: string; sender: string; recipient: string },
): Promise<boolean> {
  const text = `${clientNetwork(triple.ip)}\n${triple.sender.toLowerCase()}\n${triple.recipient.toLowerCase()}`;
  const digest = createHash("sha256").update(text).digest();
  const now = world.clock.now();
  const [row] = await queries.touch(world.db, {
    digest,
    now: new Date(now),
    passes_before: new Date(now - WAIT_MS),
    fresh_after: new Date(now - RETRY_WITHIN_MS),
    known_after: new Date(now - REMEMBER_MS),
  });
  return row?.passed ?? false;
}
