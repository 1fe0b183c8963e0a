// Whose a claim on received mail is, in the claim's own id: machine, boot and process-id space (this-host.ts), process, and what makes
// it unlike any other. So the claims of a process of this machine that was killed are known without a lease running out. Not here: what
// a claim protects (processor.ts).
import { createHash } from "node:crypto";
import { type ThisHost, thisHost } from "../../platform/process/this-host.ts";
import type { World } from "../../platform/world.ts";

/** Process ids of Linux end at 2^22. A greater one is written as 0, whose claims nobody judges. */
const PIDS = 2 ** 24;

let own: ThisHost | null = null;

/** A UUID of version 8 (RFC 9562 §5.8): 48 bits for the place, 24 for the process, 48 of chance. */
export function newClaimId({ random }: Pick<World, "random">, host: ThisHost = ownHost()): string {
  const pid = host.pid < PIDS ? host.pid : 0;
  return claimId(placeOf(host), pid, random.uuid().slice(-12));
}

/** The least and the greatest id of a claim of this place; null where the place is not known well enough to be distinguished from others. */
export function claimsOfThisPlace(host: ThisHost = ownHost()): [from: string, to: string] | null {
  if (host.machine.split("/").includes("unknown")) return null;
  const place = placeOf(host);
  return [claimId(place, 0, "0".repeat(12)), claimId(place, PIDS - 1, "f".repeat(12))];
}

/**
 * True if the process that made this claim of this machine no longer lives. If another process has its number by now,
 * it counts as alive.
 */
export function isOfDeadProcess(id: string, host: ThisHost = ownHost()): boolean {
  const pid = Number.parseInt(id.slice(15, 18) + id.slice(20, 23), 16);
  return pid !== 0 && pid !== host.pid && !host.isAlive(pid);
}

function ownHost(): ThisHost {
  own ??= thisHost();
  return own;
}

function placeOf({ machine }: ThisHost): string {
  return createHash("sha256").update(machine).digest("hex").slice(0, 12);
}

function claimId(place: string, pid: number, rest: string): string {
  const digits = pid.toString(16).padStart(6, "0");
  return `${place.slice(0, 8)}-${place.slice(8)}-8${digits.slice(0, 3)}-8${digits.slice(3)}-${rest}`;
}
