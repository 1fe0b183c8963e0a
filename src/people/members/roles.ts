// What each role may do with the operations of /v1. Deliberately a rule, not a list: a new operation that reads is for everybody, one
// that changes is for developers, admins and owners. The exceptions are named.
import { Refusal } from "../../platform/refusal.ts";
import type { PersonRole } from "../types.ts";

/** Bodies and files of messages, and all that is kept of one person. */
const BODIES = new Set([
  ...["getEmailContent", "getInboundEmail", "getInboundEmailRaw", "downloadInboundAttachment"],
  ...["exportMaskedPerson", "exportAddressData", "getMaskedFailedRaw"],
  // What webhooks post of received mail holds its text.
  ...["listEvents", "listWebhookDeliveries", "listDeliveriesOfWebhook"],
]);
/** Asked by POST, and change nothing. */
const READS = new Set(["previewTemplate"]);
/** For admins and owners where the key is a live one. */
const KEY_ACTS = new Set(["createApiKey", "renameApiKey", "revokeApiKey"]);

/** For admins and owners alone: nobody gets it back. */
const ERASES = new Set(["eraseAddressData"]);
/** These ask for the password again, as making a live key does. */
const DANGEROUS = new Set(["deleteDomain", "eraseMaskedPerson", "eraseAddressData"]);

export type Act = { operation: string; method: string };
export type Actor = { role: PersonRole; sees_bodies: boolean };

/** 403 unless somebody with this role may do it. `isLiveKey` is asked where it is about an API key. */
export async function requireRole(actor: Actor, act: Act, isLiveKey: () => Promise<boolean>): Promise<void> {
  if (actor.role === "owner" || actor.role === "admin") return;
  if (actor.role === "developer") {
    if (KEY_ACTS.has(act.operation) && (await isLiveKey())) throw refused("developer", "make or change live keys");
    if (ERASES.has(act.operation)) throw refused("developer", "erase what is stored of an address");
    return;
  }
  const reads = act.method === "GET" || act.method === "HEAD" || READS.has(act.operation);
  if (!reads) throw refused("viewer", "change anything");
  if (BODIES.has(act.operation) && !actor.sees_bodies) throw refused("viewer", "read the bodies of messages here");
}

/** True if this act needs a fresh proof of who somebody is. */
export async function isDangerous({ operation }: Act, isLiveKey: () => Promise<boolean>): Promise<boolean> {
  if (DANGEROUS.has(operation)) return true;
  return operation === "createApiKey" && (await isLiveKey());
}

function refused(role: string, what: string): Refusal {
  return new Refusal("role_not_allowed", `with the role '${role}' one cannot ${what}; ask an owner`);
}
