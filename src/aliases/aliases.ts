// Domain aliases: which local parts of a domain take mail, and what is done with it. Face of the feature. Incoming mail
// asks `aliasFinder`; the order is exact alias → longest glob, then the domain's catch-all; for live mail, live ones first.

import { findDomain } from "../domains/domains.ts";
import type { Account } from "../http/http.ts";
import { parseAddress } from "../mail/address.ts";
import { isDuplicate, isUuid, type Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { coalesce } from "../platform/fair/coalesce.ts";
import { invalid, notFound, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { findWebhooks } from "../webhooks/webhooks.ts";
import { chooseAlias, chooseForLive, namesOf, readLocalPart } from "./local-part.ts";
import * as queries from "./queries.ts";
import type { AliasAction, AliasChoice, AliasMatch, AliasRecord, ForwardMode } from "./types.ts";

export { countForwardingTo, hasAliases } from "./queries.ts";
export type { AliasAction, AliasMatch, ForwardMode } from "./types.ts";

const PER_DOMAIN_MAX = 50_000;
/** Every one of them is tried on each mail that no exact alias takes. */
const GLOBS_PER_DOMAIN_MAX = 200;
export const FORWARD_TO_MAX = 10;
export const WEBHOOK_IDS_MAX = 20;
/** Deliberate: a deleted endpoint is not taken out, because without any, mail would go to all those of the domain. */
export const WEBHOOK_IDS =
  "One that was deleted stays and gets nothing; where no other is named, mail is kept without an event";

type AliasWorld = Pick<World, "db" | "clock" | "random">;

export type AliasRequest = {
  domain_id: string;
  local_part: string;
  action?: AliasAction;
  forward_to?: string[];
  forward_mode?: ForwardMode;
  webhook_ids?: string[];
  description?: string | null;
  active?: boolean;
};

export type AliasPorts = {
  /** True if this is a masked address, or was one: an address never gets a second meaning. */
  isMasked(tx: Tx, address: string): Promise<boolean>;
};

/** Creates an alias. 404 for a domain that is not the organization's, 409 when the local part is taken. */
export async function createAlias(
  world: AliasWorld,
  ports: AliasPorts,
  { org_id: orgId, acts_on_live }: Pick<Account, "org_id" | "acts_on_live">,
  request: AliasRequest,
): Promise<AliasRecord> {
  const settings = readSettings({
    local_part: request.local_part,
    action: request.action ?? "webhook",
    forward_to: request.forward_to ?? [],
    forward_mode: request.forward_mode ?? "preserve_from",
    webhook_ids: request.webhook_ids ?? [],
    description: request.description ?? null,
    active: request.active ?? true,
  });
  const id = world.random.uuid();
  const created_at = new Date(world.clock.now());
  return refuseDuplicate(settings.local_part, () =>
    world.db.asOrg(orgId, async (tx) => {
      const domain = await findDomain(tx, orgId, request.domain_id);
      if (!domain) {
        throw new Refusal("not_found", "the 'domain_id' field names no domain of this organization", {
          field: "domain_id",
        });
      }
      await refuseUnknownWebhooks(tx, orgId, settings.webhook_ids);
      await refuseMasked(ports, tx, { ...settings, domain: domain.domain });
      await refuseTooMany(tx, orgId, { domain_id: domain.id, is_glob: settings.is_glob });
      await queries.insertAlias(tx, orgId, {
        ...settings,
        id,
        domain_id: domain.id,
        domain: domain.domain,
        environment: acts_on_live ? "live" : "test",
        created_at,
      });
      return mustFind(tx, orgId, id);
    }),
  );
}

/** The environment of the key that made the alias; null when there is no such alias. */
export async function environmentOf(world: Pick<World, "db">, orgId: string, id: string) {
  const rows = isUuid(id) ? await world.db.asOrg(orgId, (tx) => queries.findEnvironment(tx, orgId, id)) : [];
  return rows[0]?.environment ?? null;
}

type Settings = Omit<queries.AliasChange, "at" | "is_glob">;

/** The settings in their stored form; 400 naming the field at fault. */
function readSettings(given: Settings): Omit<queries.AliasChange, "at"> {
  const { action, forward_mode, webhook_ids, description, active } = given;
  const local = readLocalPart(given.local_part);
  if (!local.ok) throw invalid("local_part", `the 'local_part' field ${local.problem}`);
  const forward_to = given.forward_to.map(readDestination);
  if (given.action === "forward" && forward_to.length === 0) {
    throw invalid("forward_to", "the 'forward_to' field is required when the action is forward");
  }
  const { local_part, is_glob } = local;
  const destinations = [...new Set(forward_to)];
  return { local_part, is_glob, action, forward_to: destinations, forward_mode, webhook_ids, description, active };
}

/** An address to forward to, normalized; 400 names its place in `forward_to`. Rules of received mail have such a list, too. */
export function readDestination(text: string, index: number): string {
  const parsed = parseAddress(text);
  if (parsed.ok) return parsed.address.email;
  const field = `forward_to[${index}]`;
  throw invalid(field, `the '${field}' field is not an e-mail address: ${parsed.reason}`);
}

/**
 * 400 unless all ids are of webhooks of the organization, or among those that the alias or rule has already (`before`): one that
 * was deleted since may stay, so that what was read can be written back.
 */
export async function refuseUnknownWebhooks(
  tx: Tx,
  orgId: string,
  ids: readonly string[],
  before: readonly string[] = [],
): Promise<void> {
  const known = new Set([...before, ...(await findWebhooks(tx, orgId, ids)).map(({ id }) => id)]);
  const index = ids.findIndex((id) => !known.has(id));
  if (index < 0) return;
  const field = `webhook_ids[${index}]`;
  throw invalid(field, `the '${field}' field is not the id of a webhook of this organization`);
}

async function refuseTooMany(tx: Tx, orgId: string, to: { domain_id: string; is_glob: boolean }): Promise<void> {
  await queries.lockDomainAliases(tx, to.domain_id);
  const { total, globs } = await queries.countOfDomain(tx, orgId, to.domain_id);
  if (total >= PER_DOMAIN_MAX) {
    throw new Refusal("plan_limit_reached", `a domain has at most ${PER_DOMAIN_MAX} aliases`);
  }
  if (to.is_glob && globs >= GLOBS_PER_DOMAIN_MAX) {
    throw new Refusal("plan_limit_reached", `a domain has at most ${GLOBS_PER_DOMAIN_MAX} aliases with * or ?`);
  }
}

async function refuseMasked(
  ports: AliasPorts,
  tx: Tx,
  { local_part, is_glob, domain }: { local_part: string; is_glob: boolean; domain: string },
): Promise<void> {
  if (is_glob || !(await ports.isMasked(tx, `${local_part}@${domain}`))) return;
  throw new Refusal("already_exists", `${local_part}@${domain} is a masked address`, { field: "local_part" });
}

async function refuseDuplicate<T>(localPart: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isDuplicate(error, "alias_local_part")) throw error;
    throw new Refusal("already_exists", `the domain has an alias for ${localPart} already`, { field: "local_part" });
  }
}

async function mustFind(tx: Tx, orgId: string, id: string): Promise<AliasRecord> {
  const [row] = await queries.findAlias(tx, orgId, id);
  if (!row) throw notFound("alias");
  return row;
}

/** One page of the aliases, newest first, with the total. */
export async function listAliases(world: Pick<World, "db">, orgId: string, filter: queries.AliasFilter, page: Page) {
  return world.db.asOrg(orgId, async (tx) => {
    const aliases = await queries.listAliases(tx, orgId, filter, page);
    return { aliases, ...(await queries.countAliases(tx, orgId, filter)), ...page };
  });
}

/** One alias, or 404. */
export async function getAlias(world: Pick<World, "db">, orgId: string, id: string): Promise<AliasRecord> {
  if (!isUuid(id)) throw notFound("alias");
  return world.db.asOrg(orgId, (tx) => mustFind(tx, orgId, id));
}

export type AliasChanges = Partial<Omit<AliasRequest, "domain_id">>;

/** What an alias is set to now, for mail that it took before; null when it is gone. */
export async function currentAlias(tx: Tx, orgId: string, id: string): Promise<AliasRecord | null> {
  return (await queries.findAlias(tx, orgId, id))[0] ?? null;
}

/** Changes what is given, or 404; 409 when the new local part is taken. */
export async function changeAlias(
  world: AliasWorld,
  ports: AliasPorts,
  orgId: string,
  { id, changes }: { id: string; changes: AliasChanges },
): Promise<AliasRecord> {
  if (!isUuid(id)) throw notFound("alias");
  const at = new Date(world.clock.now());
  return refuseDuplicate(changes.local_part ?? "", () =>
    world.db.asOrg(orgId, async (tx) => {
      if ((await queries.lockAlias(tx, orgId, id)).length === 0) throw notFound("alias");
      const before = await mustFind(tx, orgId, id);
      const settings = readSettings({ ...before, local_part: before.address, ...changes });
      await refuseUnknownWebhooks(tx, orgId, changes.webhook_ids ?? [], before.webhook_ids);
      const becomesGlob = settings.is_glob && settings.local_part !== before.address;
      if (becomesGlob) await refuseTooMany(tx, orgId, { domain_id: before.domain_id, is_glob: true });
      if (settings.local_part !== before.address) await refuseMasked(ports, tx, { ...settings, domain: before.domain });
      await queries.updateAlias(tx, orgId, id, { ...settings, at });
      return mustFind(tx, orgId, id);
    }),
  );
}

/** Deletes an alias, or 404. Its mail stays. */
export async function deleteAlias(world: Pick<World, "db">, orgId: string, id: string): Promise<void> {
  const touched = isUuid(id) ? await world.db.asOrg(orgId, (tx) => queries.deleteAlias(tx, orgId, id)) : 0;
  if (touched === 0) throw notFound("alias");
}

// --- for incoming mail -------------------------------------------------------------------------------------------------

/** `liveFirst`: for live mail, which an alias of a test key takes only where no live one does. */
export type FindAlias = (
  domain: { org_id: string; id: string },
  local: string,
  liveFirst?: boolean,
) => Promise<AliasMatch | null>;

/** A look-up of the alias that takes an address: many per round trip, nothing remembered, so that a change acts at once. */
export function aliasFinder(world: Pick<World, "db">): FindAlias {
  const lookUp = coalesce<string, AliasChoice[]>({
    keys_max: 500,
    lanes: 2,
    load: async (keys) => {
      const wanted = keys.map(parseKey);
      const rows = await queries.findCandidates(world.db, wanted);
      const byDomain = Map.groupBy(rows, ({ org_id, domain_id }) => `${org_id} ${domain_id}`);
      return new Map(
        keys.map((key, index) => {
          const { org_id, domain_id } = wanted[index] as queries.Wanted;
          return [key, byDomain.get(`${org_id} ${domain_id}`) ?? []];
        }),
      );
    },
  });
  return async (domain, local, liveFirst = false) => {
    const { whole, bare } = namesOf(local);
    const candidates = await lookUp(`${domain.org_id} ${domain.id} ${bare.length} ${bare}${whole}`);
    const choose = liveFirst ? chooseForLive : chooseAlias;
    return choose(candidates ?? [], local);
  };
}

// Local parts may hold spaces (quoted ones), so the first name is recognised by its length.
function parseKey(key: string): queries.Wanted {
  const [org_id = "", domain_id = "", length = "0"] = key.split(" ", 3);
  const names = key.slice(org_id.length + domain_id.length + length.length + 3);
  const bare = names.slice(0, Number(length));
  return { org_id, domain_id, names: [names.slice(bare.length), bare] };
}

/** Counts mail that aliases took, in the transaction that records what became of it. */
export async function countReceived(tx: Tx, taken: readonly { org_id: string; alias_id: string; at: Date }[]) {
  const counts = new Map<string, queries.ReceivedCount>();
  for (const { org_id, alias_id, at } of taken) {
    const key = `${org_id}/${alias_id}`;
    const known = counts.get(key);
    counts.set(key, { org_id, id: alias_id, count: (known?.count ?? 0) + 1, at: later(known?.at, at) });
  }
  if (counts.size > 0) await queries.addReceived(tx, [...counts.values()]);
}

function later(a: Date | undefined, b: Date): Date {
  return a && a > b ? a : b;
}
