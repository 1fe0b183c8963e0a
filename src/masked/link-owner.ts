// Whose is a link in mail that leads to one of our pages? Each says so by itself, sealed or signed. Opening it (open-routes.ts) does more.
import type { World } from "../platform/world.ts";
import { readConfirmationToken } from "./addresses/confirmation.ts";
import { readSealed } from "./carry/sealed-links.ts";
import { LINK as STOP } from "./carry/stopping.ts";
import { LINK as LEAVE } from "./carry/unsubscribing.ts";
import { LINK as FAILED } from "./held/failed.ts";
import { SEND, SETTING } from "./held/held.ts";
import { RELEASE } from "./held/release.ts";

const CONFIRM = "/masked/confirm/";
const SEALED = [STOP, LEAVE, FAILED, SEND, SETTING, RELEASE];

/** The organization that the link of this path is for; null when Postern did not write it, or its time is over. */
export function organizationOfLink(world: Pick<World, "seal" | "clock">, path: string): string | null {
  if (path.startsWith(CONFIRM)) return readConfirmationToken(world, path.slice(CONFIRM.length))?.org_id ?? null;
  const kind = SEALED.find((one) => path.startsWith(one.path));
  return kind ? (readSealed<{ org_id: string }>(world, kind, path.slice(kind.path.length))?.org_id ?? null) : null;
}
