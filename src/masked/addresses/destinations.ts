// The mailboxes behind masked aliases. Nothing is forwarded to an address before its owner has agreed through the signed
// link that we mail to it. Test destinations get no mail and count as confirmed: nothing is ever sent to them.

import { consentMailsPerDay, requireLiveSending } from "../../accounts/accounts.ts";
import { domainOf, parseAddress } from "../../mail/address.ts";
import { isUuid, type Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { totalOf } from "../../platform/database/totals.ts";
import { invalid, notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { canonicalAddress } from "../arrive/sender-proof.ts";
import * as queries from "../people-queries.ts";
import { findAddresses } from "../queries.ts";
import { enableAliases } from "../settle/trace-queries.ts";
import type { ConfirmationWorld, MaskedPorts, Who } from "../types.ts";
import { DESTINATION_BOUNCING, type DestinationRecord, type DestinationRow, type DestinationStatus } from "../types.ts";
import { addressDigest, destinationDigest, sealText, tryOpenText, untagged } from "./addresses.ts";
import { CONFIRMATIONS_DAY_MAX, consentMailsLeft, queueConfirmations } from "./confirmation.ts";
import { showPgpKey } from "./pgp-keys.ts";

/** A destination is asked at most this often; whoever removes and adds it again meets the limit of its day. */
const CONFIRMATIONS_MAX = 10;
const DAY_MS = 86_400_000;
const RESEND_AFTER_MS = 60_000;
const DESTINATIONS_MAX = 10_000;

/** The destinations of these addresses, made where they are new and held: whoever changes them later sees what we wrote. */
export async function ensureDestinations(
  world: ConfirmationWorld,
  tx: Tx,
  who: Who,
  emails: readonly string[],
): Promise<DestinationRow[]> {
  const { org_id, environment } = who;
  const digests = emails.map((email) => destinationDigest(world, org_id, email));
  const known = new Set(
    (await queries.findDestinationsByDigest(tx, org_id, environment, digests)).map((row) => row.digest.toString("hex")),
  );
  const missing = emails.filter((_, at) => !known.has((digests[at] as Buffer).toString("hex")));
  if (missing.length > 0) await refuseNew(world, tx, who, missing.length);
  const now = new Date(world.clock.now());
  const isTest = environment === "test";
  for (const email of missing) {
    await queries.insertDestination(tx, org_id, {
      id: world.random.uuid(),
      environment,
      digest: destinationDigest(world, org_id, email),
      sealed: sealText(world, org_id, email),
      status: isTest ? "verified" : "pending",
      confirmed_at: isTest ? now : null,
      created_at: now,
    });
  }
  const rows = await queries.holdDestinationsByDigest(tx, org_id, environment, digests);
  const byDigest = new Map(rows.map((row) => [row.digest.toString("hex"), row]));
  return digests.map((digest) => byDigest.get(digest.toString("hex")) as DestinationRow);
}

/** A new live one gets a mail that asks it: 403 where the organization may send none, 429 when it had those of the day. */
async function refuseNew(world: ConfirmationWorld, tx: Tx, who: Who, more: number): Promise<void> {
  const { org_id, environment } = who;
  if ((await queries.countDestinations(tx, org_id, { environment })).total + more > DESTINATIONS_MAX) {
    throw new Refusal("plan_limit_reached", `an organization has at most ${DESTINATIONS_MAX} destinations`);
  }
  if (environment === "test") return;
  requireLiveSending(who);
  if ((await consentMailsLeft(world, tx, who)) < more) throw organizationHadItsDay(world, who);
}

function organizationHadItsDay(world: Pick<World, "clock">, who: Who): Refusal {
  const limit = consentMailsPerDay(who);
  return tooMany(world, `more than ${limit} mailboxes were asked for their consent today`, limit);
}

function tooMany({ clock }: Pick<World, "clock">, message: string, limit: number): Refusal {
  return tooSoon(message, "daily", limit, DAY_MS - (clock.now() % DAY_MS));
}

/** Sends the first confirmation mail to those that never got one, unless the organization may send nothing. */
export async function sendConfirmations(
  world: ConfirmationWorld,
  ports: MaskedPorts,
  who: Who,
  destinations: readonly DestinationRow[],
): Promise<void> {
  const fresh = destinations.filter((row) => row.status === "pending" && row.confirmation_sent_at === null);
  if (fresh.length > 0 && who.state === "active") await queueConfirmations(world, ports, who, fresh);
}

/** Adds a destination (`created`), or shows the one that is there. `field`: where the request has the address. */
export async function addDestination(
  world: ConfirmationWorld,
  ports: MaskedPorts,
  who: Who,
  { email, field = "email" }: { email: string; field?: string },
): Promise<{ created: boolean; destination: DestinationRecord }> {
  const parsed = parseAddress(email);
  if (!parsed.ok) throw invalid(field, `the '${field}' field is not an e-mail address: ${parsed.reason}`);
  const address = parsed.address;
  await refuseOwnAddress(world, address.email, field);
  const digest = destinationDigest(world, who.org_id, address.email);
  const made = await world.db.asOrg(who.org_id, async (tx) => {
    const before = await queries.findDestinationsByDigest(tx, who.org_id, who.environment, [digest]);
    const [row] = await ensureDestinations(world, tx, who, [address.email]);
    return { created: before.length === 0, row: row as DestinationRow };
  });
  await sendConfirmations(world, ports, who, [made.row]);
  return { created: made.created, destination: await getDestination(world, who, made.row.id) };
}

/**
 * 400 for an address of this service: an alias that forwards to an alias is a loop, or soon will be. `also`: a domain that
 * is the service's here.
 */
export async function refuseOwnAddress(
  world: Pick<World, "db" | "seal" | "config">,
  email: string,
  field: string,
  also?: string,
): Promise<void> {
  const domain = domainOf(email).toLowerCase();
  const { masked_domain, bounce_host, report_domain } = world.config;
  const isOurs = [masked_domain, bounce_host, report_domain, also].includes(domain);
  if (isOurs || (await findAddresses(world.db, [addressDigest(world, untagged(email))])).length > 0) {
    throw invalid(field, `the '${field}' field is an address of this service: an alias cannot forward to an alias`);
  }
}

/** One destination, or 404. */
export async function getDestination(
  world: Pick<World, "db" | "seal">,
  who: Who,
  id: string,
): Promise<DestinationRecord> {
  if (!isUuid(id)) throw notFound("destination");
  return world.db.asOrg(who.org_id, async (tx) => show(world, await mustFind(tx, who, id)));
}

async function mustFind(tx: Tx, who: Who, id: string): Promise<queries.CountedDestination> {
  const [row] = await queries.findDestination(tx, who.org_id, id);
  if (!row || row.environment !== who.environment) throw notFound("destination");
  return row;
}

function show(world: Pick<World, "seal">, row: queries.CountedDestination): DestinationRecord {
  return { ...row, email: tryOpenText(world, row.org_id, row.sealed) ?? "", pgp_key: showPgpKey(world, row) };
}

/** One page of the destinations, newest first, with the total. */
export async function listDestinations(
  world: Pick<World, "db" | "seal">,
  who: Who,
  { status, email }: { status?: DestinationStatus | undefined; email?: string | undefined },
  page: Page,
) {
  const digest = email === undefined ? undefined : destinationDigest(world, who.org_id, canonicalAddress(email));
  return world.db.asOrg(who.org_id, async (tx) => {
    const filter = { environment: who.environment, status, digest };
    const rows = await queries.listDestinations(tx, who.org_id, filter, page);
    const total = await totalOf(rows.length, page, () => queries.countDestinations(tx, who.org_id, filter));
    return { destinations: rows.map((row) => show(world, row)), ...total, ...page };
  });
}

/** Sends the confirmation mail again. 409 for a confirmed one, 429 within a minute of the last. */
export async function resendConfirmation(
  world: ConfirmationWorld,
  ports: MaskedPorts,
  who: Who,
  id: string,
): Promise<DestinationRecord> {
  if (!isUuid(id)) throw notFound("destination");
  const row = await world.db.asOrg(who.org_id, (tx) => mustFind(tx, who, id));
  if (row.status === "verified") throw new Refusal("invalid_state", "the destination is confirmed already");
  if (tryOpenText(world, who.org_id, row.sealed) === null) {
    throw new Refusal("invalid_state", "the destination's address was sealed with a lost master key; add it again");
  }
  if (row.confirmations_sent >= CONFIRMATIONS_MAX) {
    throw new Refusal("invalid_state", `the destination was asked ${CONFIRMATIONS_MAX} times; it is not asked again`);
  }
  const waitMs = (row.confirmation_sent_at?.getTime() ?? 0) + RESEND_AFTER_MS - world.clock.now();
  if (waitMs > 0) throw tooSoon("the last confirmation mail was sent less than a minute ago", "per_minute", 1, waitMs);
  requireLiveSending(who);
  if ((await queueConfirmations(world, ports, who, [row])) === 0) {
    const left = await world.db.asOrg(who.org_id, (tx) => consentMailsLeft(world, tx, who));
    throw left === 0
      ? organizationHadItsDay(world, who)
      : tooMany(world, "the address had all the confirmation mails of a day", CONFIRMATIONS_DAY_MAX);
  }
  return getDestination(world, who, id);
}

/** 429 with when to try again. */
export function tooSoon(message: string, limit_type: string, limit: number, waitMs: number): Refusal {
  const retry_after_seconds = Math.ceil(waitMs / 1000);
  const body = { limit_type, limit, used: limit, retry_after_seconds, warming_phase: "" };
  return new Refusal("rate_limit_exceeded", message, { retry_after_seconds, body });
}

/** Removes a destination, or 404; 409 while it is the only one of an alias. */
export async function deleteDestination(world: Pick<World, "db">, who: Who, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound("destination");
  await world.db.asOrg(who.org_id, async (tx) => {
    await queries.lockDestination(tx, who.org_id, id);
    await mustFind(tx, who, id);
    if (!(await queries.releaseDestination(tx, who.org_id, id))) {
      throw new Refusal("invalid_state", "the destination is the only one of an alias; change or delete that first");
    }
    await queries.deleteDestination(tx, who.org_id, id);
  });
}

/** Takes the owner's consent, and takes up again what bounces had switched off. False when the destination is gone. */
export async function confirmDestination(
  world: Pick<World, "db" | "clock">,
  { org_id, id }: { org_id: string; id: string },
): Promise<boolean> {
  return withPartitions(world, () =>
    world.db.asOrg(org_id, async (tx) => {
      const at = new Date(world.clock.now());
      // First: who changes an alias to it meanwhile has done so then, or sees it confirmed.
      const isThere = (await queries.confirmDestination(tx, org_id, id, at)) === 1;
      await enableAliases(tx, org_id, id, { reason: DESTINATION_BOUNCING, at });
      return isThere;
    }),
  );
}
