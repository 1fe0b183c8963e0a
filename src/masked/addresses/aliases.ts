// /v1/masked/aliases: creating, changing, deleting and restoring masked aliases. An address that was given out once is
// taken for ever. Live and test keys each see their own aliases. Mail itself is not here.

import type { AliasMatch } from "../../aliases/types.ts";
import { findDomain } from "../../domains/domains.ts";
import { parseAddress, withAsciiDomain } from "../../mail/address.ts";
import { isUuid, type Tx } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import { totalOf } from "../../platform/database/totals.ts";
import { invalid, notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { recordConfig } from "../activity.ts";
import { canonicalAddress } from "../arrive/sender-proof.ts";
import { takeAlias, windowCounter } from "../arrive/windows.ts";
import { findDestinationsByDigest } from "../people-queries.ts";
import * as queries from "../queries.ts";
import { maskedSettings } from "../settings.ts";
import type { ConfirmationWorld, MaskedPorts, Who } from "../types.ts";
import {
  type AliasRecord,
  type AliasRow,
  DESTINATION_BOUNCING,
  type DestinationRow,
  type Format,
  type ListUnsubscribe,
  type OnDisabled,
  type OwnName,
  type Redact,
  type ReplyReport,
  type TrackingPixels,
  type UnopenedFiles,
} from "../types.ts";
import { addressDigest, destinationDigest, newLocalPart, REPLY_LOCAL, tryOpenText } from "./addresses.ts";
import { ensureDestinations, refuseOwnAddress, sendConfirmations, tooSoon } from "./destinations.ts";
import { isReservedLocal } from "./reserved.ts";

export const FORWARD_TO_MAX = 10;
export const RESTORE_WITHIN_MS = 30 * 86_400_000;
export const ALIASES_MAX = 100_000;
const METADATA_BYTES_MAX = 2_048;
const TRIES_MAX = 5;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
type AliasWorld = ConfirmationWorld;

export type AliasPorts = MaskedPorts & {
  findAlias(domain: { org_id: string; id: string }, local: string): Promise<AliasMatch | null>;
};

export type AliasSettings = {
  forward_to: string[];
  description: string | null;
  display_name: string | null;
  metadata: Record<string, unknown>;
  active: boolean;
  on_disabled: OnDisabled;
  reply_enabled: boolean;
  redact: Redact;
  unopened_files: UnopenedFiles;
  own_name: OwnName;
  reply_report: ReplyReport;
  tracking_pixels: TrackingPixels;
  list_unsubscribe: ListUnsubscribe;
};

export type CreateAlias = Partial<AliasSettings> & {
  forward_to: string[];
  domain_id?: string;
  local_part?: string;
  format?: Format;
};

export type Home = { id: string | null; domain: string };

/**
 * Creates an alias and asks new destinations for their consent. 409 for an address that is or was somebody's; 403 for a
 * domain that cannot carry masked mail.
 */
export async function createAlias(
  world: AliasWorld,
  ports: AliasPorts,
  who: Who,
  request: CreateAlias,
): Promise<AliasRecord> {
  if (request.local_part !== undefined && request.format !== undefined) {
    throw invalid("format", "give either 'local_part' or 'format', not both");
  }
  const home = await findHome(world, who, request.domain_id);
  const given = request.local_part === undefined ? null : readLocalPart(request.local_part, home);
  if (given !== null) await refuseDomainAlias(ports, who, home, given);
  const settings = await readSettings(world, home, { ...ALIAS_DEFAULTS, ...request });
  await refuseTooMany(world, who);
  const id = world.random.uuid();
  const created_at = new Date(world.clock.now());
  const made = await withPartitions(world, () =>
    world.db.asOrg(who.org_id, async (tx) => {
      await queries.lockAliasesOf(tx, who.org_id);
      if ((await queries.countOfOrg(tx, who.org_id)) >= ALIASES_MAX) {
        throw new Refusal("plan_limit_reached", `an organization has at most ${ALIASES_MAX} masked aliases`);
      }
      const local_part = await takeLocalPart(world, tx, { who, home, id, given, format: request.format ?? "random" });
      const { forward_to, description, ...rest } = settings;
      const row = {
        ...rest,
        id,
        ...who,
        pattern: null,
        domain_id: home.id,
        domain: home.domain,
        local_part,
        created_at,
      };
      await queries.insertAlias(tx, who.org_id, { ...row, masked_description: description });
      const asked = await ensureDestinations(world, tx, who, forward_to);
      await queries.setAliasDestinations(
        tx,
        who.org_id,
        id,
        asked.map((destination) => destination.id),
      );
      await recordConfig(world, tx, { org_id: who.org_id, alias_id: id, reason: "created" });
      return { record: await mustShow(world, tx, who, id), asked };
    }),
  );
  await sendConfirmations(world, ports, who, made.asked);
  return made.record;
}

/** 429 when the organization made those of the hour or the day. What is asked for counts, also what is refused afterwards. */
async function refuseTooMany(world: AliasWorld, { org_id, environment }: Who): Promise<void> {
  if (environment === "test") return;
  const limits = await world.db.asOrg(org_id, (tx) => maskedSettings(tx, org_id));
  const over = await takeAlias(windowCounter(world), limits, org_id);
  if (over === null) return;
  const [limit, spanMs] = over === "hourly" ? [limits.aliases_hour, HOUR_MS] : [limits.aliases_day, DAY_MS];
  const message = `more than ${limit} masked aliases were created within ${over === "hourly" ? "an hour" : "a day"}`;
  throw tooSoon(message, over, limit, spanMs - (world.clock.now() % spanMs));
}

export const ALIAS_DEFAULTS: Omit<AliasSettings, "forward_to"> = {
  description: null,
  display_name: null,
  metadata: {},
  active: true,
  on_disabled: "drop",
  reply_enabled: true,
  redact: "all",
  unopened_files: "hold",
  own_name: "leave",
  reply_report: "hidden",
  tracking_pixels: "leave",
  list_unsubscribe: "original",
};

/** The service's masked domain, or a verified domain of the organization that receives and signs. */
async function findHome(world: AliasWorld, who: Who, idOrName: string | undefined): Promise<Home> {
  if (idOrName === undefined || idOrName === world.config.masked_domain) {
    return { id: null, domain: world.config.masked_domain };
  }
  return findOwnHome(world, who, idOrName, "domain_id");
}

/** A verified domain of the organization that receives and signs; errors name `field`. */
export async function findOwnHome(
  world: Pick<World, "db">,
  { org_id }: Pick<Who, "org_id">,
  idOrName: string,
  field: string,
): Promise<{ id: string; domain: string }> {
  const row = await world.db.asOrg(org_id, (tx) => findDomain(tx, org_id, idOrName));
  if (!row) throw new Refusal("not_found", `the '${field}' field names no domain of this organization`, { field });
  const refuse = (why: string) =>
    new Refusal("domain_not_ready", `the domain ${row.domain} cannot carry masked addresses: ${why}`, { field });
  if (row.type === "outbound") throw refuse("set its type to both, so that it receives mail");
  if (!row.active) throw refuse("it is switched off (active is false)");
  if (row.status !== "verified" && row.status !== "degraded") throw refuse("it is not verified");
  if (!row.has_active_key) throw refuse("it has no active DKIM key to sign with");
  return { id: row.id, domain: row.domain };
}

function readLocalPart(given: string, home: Home): string {
  const local = given.normalize("NFC").toLowerCase();
  const parsed = parseAddress(`${local}@${home.domain}`);
  const refuse = (why: string) => invalid("local_part", `the 'local_part' field ${why}`);
  if (local.includes("@")) throw refuse("is the part before @ alone, without the domain");
  if (!parsed.ok) throw refuse(`cannot stand before the @ of an address (${parsed.reason})`);
  if (!/^[a-z0-9][a-z0-9._-]*$/.test(local)) throw refuse("may hold letters, digits, dots, hyphens and underscores");
  if (REPLY_LOCAL.test(local) || local.startsWith("r.")) throw refuse("may not begin with 'r.', as reply addresses do");
  if (home.id === null && isReservedLocal(local)) throw refuse("is a name that the service keeps for itself");
  return local;
}

async function refuseDomainAlias(ports: AliasPorts, { org_id }: Who, home: Home, local: string): Promise<void> {
  if (home.id === null) return;
  const match = await ports.findAlias({ org_id, id: home.id }, local);
  if (match && !match.alias.is_glob) throw taken(local, home);
}

function taken(local: string, home: Home): Refusal {
  return new Refusal("already_exists", `${local}@${home.domain} is taken, or was once and is never given out again`, {
    field: "local_part",
  });
}

/** True if an address is a masked one, or was. */
export function maskedAddresses(world: Pick<World, "seal">) {
  return async (tx: Tx, address: string): Promise<boolean> =>
    (await queries.findAddresses(tx, [addressDigest(world, address)])).length > 0;
}

type Taking = { who: Who; home: Home; id: string; given: string | null; format: Format };

async function takeLocalPart(world: AliasWorld, tx: Tx, taking: Taking): Promise<string> {
  const { who, home, id, given, format } = taking;
  for (let time = 0; time < TRIES_MAX; time += 1) {
    const local = given ?? newLocalPart(world.random, format);
    const digest = addressDigest(world, `${local}@${home.domain}`);
    const row = { digest, kind: "alias" as const, alias_id: id, contact_id: null };
    if (await queries.takeAddress(tx, who.org_id, row)) return local;
    if (given !== null) break;
  }
  throw taken(given ?? "the address", home);
}

/** The settings in their stored form; 400 naming the field at fault. */
async function readSettings(world: AliasWorld, home: Home, given: AliasSettings): Promise<AliasSettings> {
  const forward_to: string[] = [];
  for (const [index, text] of given.forward_to.entries()) {
    const email = readDestination(text, `forward_to[${index}]`);
    await refuseOwnAddress(world, email, `forward_to[${index}]`, home.domain);
    if (!forward_to.some((one) => one.toLowerCase() === email.toLowerCase())) forward_to.push(email);
  }
  const metadata = JSON.stringify(given.metadata);
  if (Buffer.byteLength(metadata) > METADATA_BYTES_MAX) {
    throw invalid("metadata", `the 'metadata' field has more than ${METADATA_BYTES_MAX} bytes`);
  }
  if (metadata.includes("\\u0000")) throw invalid("metadata", "the 'metadata' field holds a NUL character");
  return { ...given, forward_to, ...readTexts(given, forward_to) };
}

function readTexts(given: AliasSettings, forwardTo: readonly string[]) {
  const { display_name, description } = given;
  if (display_name !== null && /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(display_name)) {
    throw invalid("display_name", "the 'display_name' field holds a control character");
  }
  const shown = display_name?.toLowerCase() ?? "";
  if (forwardTo.some((email) => shown.includes(email.toLowerCase()))) {
    throw invalid("display_name", "the 'display_name' field holds a destination, which replies would then show");
  }
  if (description?.includes("\0")) throw invalid("description", "the 'description' field holds a NUL character");
  return { display_name: display_name?.trim() || null, description };
}

function readDestination(text: string, field: string): string {
  const parsed = parseAddress(text);
  if (parsed.ok) return parsed.address.email;
  throw invalid(field, `the '${field}' field is not an e-mail address: ${parsed.reason}`);
}

// --- reading --------------------------------------------------------------------------------------------------------------

async function mustFind(tx: Tx, { org_id, environment }: Who, id: string): Promise<AliasRow> {
  const [row] = await queries.findAlias(tx, org_id, id);
  if (!row || row.deleted_at !== null || row.environment !== environment) throw notFound("masked alias");
  return row;
}

/** The alias if the key may see it, or 404. */
export async function requireAlias(tx: Tx, who: Who, id: string): Promise<AliasRow> {
  if (!isUuid(id)) throw notFound("masked alias");
  return mustFind(tx, who, id);
}

async function mustShow(world: Pick<World, "seal">, tx: Tx, who: Who, id: string): Promise<AliasRecord> {
  const [record] = await show(world, tx, who.org_id, [await mustFind(tx, who, id)]);
  return record as AliasRecord;
}

async function show(world: Pick<World, "seal">, tx: Tx, orgId: string, rows: AliasRow[]): Promise<AliasRecord[]> {
  const found = await queries.findAliasDestinations(
    tx,
    orgId,
    rows.map(({ id }) => id),
  );
  const byAlias = Map.groupBy(found, ({ alias_id }) => alias_id);
  return rows.map(({ local_part, deleted_at: _deleted, ...row }) => ({
    ...row,
    email: `${local_part}@${row.domain}`,
    address: local_part,
    forward_to: (byAlias.get(row.id) ?? []).flatMap(({ sealed }) => tryOpenText(world, orgId, sealed) ?? []),
    action: "forward" as const,
    is_masked: true as const,
  }));
}

export type AliasQuery = Pick<queries.AliasFilter, "domain_id" | "active" | "q" | "deleted" | "pattern"> & {
  forward_to?: string | undefined;
};

/** One page of the aliases, newest first, with the total. */
export async function listAliases(
  world: Pick<World, "db" | "seal">,
  who: Who,
  { forward_to, pattern, ...query }: AliasQuery,
  page: Page,
) {
  return world.db.asOrg(who.org_id, async (tx) => {
    const filter: queries.AliasFilter = { ...query, environment: who.environment };
    // As patterns are kept, however it was written.
    if (pattern !== undefined) filter.pattern = withAsciiDomain(pattern.trim().toLowerCase());
    if (forward_to !== undefined) {
      const digest = destinationDigest(world, who.org_id, canonicalAddress(forward_to));
      const [destination] = await findDestinationsByDigest(tx, who.org_id, who.environment, [digest]);
      if (!destination) return { aliases: [], total: 0, ...page };
      filter.destination_id = destination.id;
    }
    const rows = await queries.listAliases(tx, who.org_id, filter, page);
    const total = await totalOf(rows.length, page, () => queries.countAliases(tx, who.org_id, filter));
    return { aliases: await show(world, tx, who.org_id, rows), ...total, ...page };
  });
}

/** One alias, or 404. */
export async function getAlias(world: Pick<World, "db" | "seal">, who: Who, id: string): Promise<AliasRecord> {
  if (!isUuid(id)) throw notFound("masked alias");
  return world.db.asOrg(who.org_id, (tx) => mustShow(world, tx, who, id));
}

// --- changing -------------------------------------------------------------------------------------------------------------

/** Changes what is given, or 404. New destinations are asked for their consent. */
export async function changeAlias(
  world: AliasWorld,
  ports: AliasPorts,
  who: Who,
  { id, changes }: { id: string; changes: Partial<AliasSettings> },
): Promise<AliasRecord> {
  const before = await getAlias(world, who, id);
  const home = { id: before.domain_id, domain: before.domain };
  const settings = await readSettings(world, home, {
    ...before,
    description: before.masked_description,
    ...changes,
  });
  const made = await withPartitions(world, () =>
    world.db.asOrg(who.org_id, (tx) => writeChange(world, tx, who, { id, changes, settings })),
  );
  await sendConfirmations(world, ports, who, made.asked);
  return made.record;
}

type Change = { id: string; changes: Partial<AliasSettings>; settings: AliasSettings };

async function writeChange(world: AliasWorld, tx: Tx, who: Who, { id, changes, settings }: Change) {
  // Before the alias, as bounces and confirmations take them: in another order two would wait for each other.
  const asked = changes.forward_to === undefined ? [] : await ensureDestinations(world, tx, who, settings.forward_to);
  const [locked] = await queries.lockAlias(tx, who.org_id, id);
  if (!locked || locked.deleted_at !== null) throw notFound("masked alias");
  const current: AliasSettings = { ...locked, description: locked.masked_description, forward_to: [] };
  const { forward_to: _given, description, ...rest } = { ...current, ...pick(settings, changes) };
  const active = rest.active || (changes.active === undefined && isTakenUpAgain(locked, asked));
  await queries.updateAlias(tx, who.org_id, id, {
    ...rest,
    active,
    masked_description: description,
    disabled_reason: disabledReason(active, changes, locked),
    at: new Date(world.clock.now()),
  });
  if (changes.forward_to !== undefined) {
    const ids = asked.map((destination) => destination.id);
    await queries.setAliasDestinations(tx, who.org_id, id, ids);
  }
  const reason = `changed: ${Object.keys(changes).sort().join(", ") || "nothing"}`;
  await recordConfig(world, tx, { org_id: who.org_id, alias_id: id, reason });
  return { record: await mustShow(world, tx, who, id), asked };
}

/** Off because of bounces only, and now with a mailbox that is confirmed already: no confirmation will come for it. */
function isTakenUpAgain({ disabled_reason }: AliasRow, destinations: readonly DestinationRow[]): boolean {
  return disabled_reason === DESTINATION_BOUNCING && destinations.some(({ status }) => status === "verified");
}

/** Who switches an alias off that bounces had switched off means it: no confirmation switches it on again. */
function disabledReason(isActive: boolean, changes: Partial<AliasSettings>, locked: AliasRow): string | null {
  if (isActive) return null;
  return changes.active === false ? "owner" : (locked.disabled_reason ?? "owner");
}

/** The checked settings, of those fields that were given. */
function pick(settings: AliasSettings, changes: Partial<AliasSettings>): Partial<AliasSettings> {
  const names = Object.keys(changes) as (keyof AliasSettings)[];
  return Object.fromEntries(names.map((name) => [name, settings[name]])) as Partial<AliasSettings>;
}

/** Deletes an alias, or 404. Its address is never given out again. */
export async function deleteAlias(world: Pick<World, "db" | "clock" | "random">, who: Who, id: string): Promise<void> {
  await withPartitions(world, () =>
    world.db.asOrg(who.org_id, async (tx) => {
      const { id: found } = await requireAlias(tx, who, id);
      const at = new Date(world.clock.now());
      await queries.setDeleted(tx, who.org_id, found, { deleted_at: at, at });
      await recordConfig(world, tx, { org_id: who.org_id, alias_id: found, reason: "deleted" });
    }),
  );
}

/** 409 without its domain; one that was removed and came back has another id. */
async function takeHome(tx: Tx, { org_id, domain_id, domain }: AliasRow): Promise<void> {
  if (domain_id === null) return;
  const found = await findDomain(tx, org_id, domain);
  if (!found) throw new Refusal("invalid_state", "the domain of the alias was removed since; add it again first");
  if (found.id !== domain_id) await queries.moveToDomain(tx, org_id, { from: domain_id, to: found.id });
}

/** Brings a deleted alias back within 30 days; 409 for one that is not deleted, or too long ago. */
export async function restoreAlias(
  world: Pick<World, "db" | "clock" | "random" | "seal">,
  who: Who,
  id: string,
): Promise<AliasRecord> {
  if (!isUuid(id)) throw notFound("masked alias");
  return withPartitions(world, () =>
    world.db.asOrg(who.org_id, async (tx) => {
      const [row] = await queries.lockAlias(tx, who.org_id, id);
      if (!row || row.environment !== who.environment) throw notFound("masked alias");
      if (row.deleted_at === null) throw new Refusal("invalid_state", "the alias is not deleted");
      if (world.clock.now() - row.deleted_at.getTime() > RESTORE_WITHIN_MS) {
        throw new Refusal("invalid_state", "the alias was deleted more than 30 days ago and cannot be restored");
      }
      await takeHome(tx, row);
      if ((await queries.findAliasDestinations(tx, who.org_id, [id])).length === 0) {
        throw new Refusal("invalid_state", "every destination of the alias was removed since; create a new alias");
      }
      await queries.setDeleted(tx, who.org_id, id, { deleted_at: null, at: new Date(world.clock.now()) });
      await recordConfig(world, tx, { org_id: who.org_id, alias_id: id, reason: "restored" });
      return mustShow(world, tx, who, id);
    }),
  );
}
