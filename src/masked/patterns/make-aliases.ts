// Mail that nothing speaks against makes the aliases that patterns stand for, within limits: of the sending network, the pattern,
// the mailbox, the organization. A network that met a limit is deferred for the rest of the hour at every address of the pattern,
// made or not, so that the answers do not tell which are there; known correspondents still pass.

import { clientNetwork } from "../../mail/smtp-server/client-limits.ts";
import { uuidText } from "../../mail/token-bytes.ts";
import type { Tx } from "../../platform/database/db.ts";
import { withPartitions } from "../../platform/database/partitions.ts";
import type { World } from "../../platform/world.ts";
import { recordConfig } from "../activity.ts";
import { addressDigest, contactDigest, destinationDigest, untagged } from "../addresses/addresses.ts";
import { ALIAS_DEFAULTS, ALIASES_MAX } from "../addresses/aliases.ts";
import { LATER, type Refused, UNKNOWN } from "../arrive/answers-of-smtp.ts";
import { type Arriving, isUnmade, routeTo } from "../arrive/arrival.ts";
import { type Examined, readParts } from "../arrive/parts.ts";
import { canonicalAddress } from "../arrive/sender-proof.ts";
import { type IsWithin, isBegun, takeAlias, windowCounter } from "../arrive/windows.ts";
import type { CarryWorld } from "../carry/carry.ts";
import { addressFinder, contactFinder, contextFinder, type FindContact, type FindContext } from "../lookups.ts";
import { findDestinationsByDigest } from "../people-queries.ts";
import * as queries from "../queries.ts";
import { maskedSettings } from "../settings.ts";
import type { Environment, MaskedRoute, PatternRoute } from "../types.ts";
import { type FindPattern, type FoundPattern, patternFinder, textOf } from "./find-patterns.ts";
import { type NoticePorts, tellLimit } from "./limit-notice.ts";
import * as patterns from "./pattern-queries.ts";

/** The shape of receiving's Incoming; `route` is settled here. */
type Coming = Omit<Arriving, "recipients"> & {
  origin: { remote_ip: string | null };
  recipients: { recipient: string; route: Arriving["recipients"][number]["route"] }[];
};

type Making = {
  world: CarryWorld;
  ports: NoticePorts;
  find: FindContext;
  findAddress: ReturnType<typeof addressFinder>;
  findContact: FindContact;
  findPattern: FindPattern;
  isWithin: IsWithin;
};

/** The check that makes them, the last of all. What it defers or refuses made nothing. */
export function aliasMaker(world: CarryWorld, ports: NoticePorts) {
  const making: Making = {
    world,
    ports,
    find: contextFinder(world),
    findAddress: addressFinder(world),
    findContact: contactFinder(world),
    findPattern: patternFinder(world),
    isWithin: windowCounter(world),
  };
  return async (incoming: Coming, examination: Examined): Promise<Refused | null> => {
    const waiting: Waiting = new Map();
    for (const { recipient, route } of incoming.recipients) {
      const answer = isUnmade(route)
        ? await checkUnmade(making, { incoming, waiting }, route)
        : isMade(route)
          ? await checkMade(making, { incoming, examination }, { recipient, route })
          : null;
      if (answer) return answer;
    }
    return makeAll(making, incoming);
  };
}

/** Aliases of the service's own domain belong to no pattern. */
function isMade(route: { kind: string }): route is MaskedRoute {
  return route.kind === "masked" && (route as MaskedRoute).domain_id !== null;
}

/** How many aliases of each mailbox this message is to make. */
type Waiting = Map<string, number>;

/** Why this mail may bring no new address; null if it may, and then it is counted. */
async function checkUnmade(
  making: Making,
  { incoming, waiting }: { incoming: Coming; waiting: Waiting },
  route: PatternRoute,
): Promise<Refused | null> {
  const { world, isWithin } = making;
  const { org_id, detail } = route;
  const pattern = await making.findPattern({ org_id, ...detail });
  if (pattern === null) return UNKNOWN;
  if (await isMailbox(world, pattern, route)) return UNKNOWN;
  if (await making.findAddress(addressOfRoute(world, route))) return null;
  const client = clientOf(world, pattern, incoming);
  const before = waiting.get(pattern.destination_id) ?? 0;
  waiting.set(pattern.destination_id, before + 1);
  const isOver =
    (await isBegun(world, client, "pattern_refused_hour")) ||
    !(await isWithin(client, "pattern_client_hour")) ||
    !(await isWithin(pattern, "pattern_alias_hour", pattern.aliases_hour)) ||
    !(await isWithin(pattern, "pattern_alias_day", pattern.aliases_day)) ||
    (await isFull(making, pattern, before)) ||
    (await isOverOfOrganization(making, pattern));
  if (!isOver) return null;
  await isWithin(client, "pattern_refused_hour");
  await tellLimit(world, making.ports, pattern, incoming.environment);
  return LATER;
}

function addressOfRoute(world: Pick<World, "seal">, { detail: { local, domain } }: PatternRoute): Buffer {
  return addressDigest(world, `${local}@${domain}`);
}

/** A mailbox that aliases forward to, by itself or with this tag: its mail would go in circles. */
async function isMailbox(world: CarryWorld, { org_id, environment }: FoundPattern, { detail, tag }: PatternRoute) {
  const names = tag === null ? [detail.local] : [detail.local, `${detail.local}+${tag}`];
  const digests = names.map((name) => destinationDigest(world, org_id, `${name}@${detail.domain}`));
  return (await findDestinationsByDigest(world.db, org_id, environment, digests)).length > 0;
}

function isFull({ world: { db } }: Making, { org_id, destination_id }: FoundPattern, before: number): Promise<boolean> {
  return db.asOrg(org_id, (tx) => isFullIn(tx, { org_id, destination_id }, before));
}

async function isFullIn(
  tx: Tx,
  { org_id, destination_id }: { org_id: string; destination_id: string },
  before: number,
): Promise<boolean> {
  const { pattern_aliases } = await maskedSettings(tx, org_id);
  if ((await patterns.countMade(tx, org_id, destination_id)) + before >= pattern_aliases) return true;
  return (await queries.countOfOrg(tx, org_id)) >= ALIASES_MAX;
}

async function isOverOfOrganization({ world, isWithin }: Making, { org_id, environment }: FoundPattern) {
  if (environment === "test") return false;
  return (await takeAlias(isWithin, await maskedSettings(world.db, org_id), org_id)) !== null;
}

/** What a network's mail to a pattern is counted by: an id like those of aliases, which says nothing of the network. */
function clientOf({ seal }: Pick<World, "seal">, { org_id, id }: FoundPattern, { origin }: Coming) {
  const digest = seal.hash(`${id} ${clientNetwork(origin.remote_ip ?? "")}`, "masked-pattern-client");
  return { org_id, id: uuidText(digest.toString("hex").slice(0, 32)) };
}

type Seen = { incoming: Coming; examination: Examined };

/** An alias that is there answers a network that met the limits as one that is not, except to whom it knows. */
async function checkMade(
  making: Making,
  { incoming, examination }: Seen,
  { recipient, route }: { recipient: string; route: MaskedRoute },
): Promise<Refused | null> {
  const [local = "", domain = ""] = untagged(recipient.toLowerCase()).split("@");
  const { org_id, detail } = route;
  const { environment } = incoming;
  const pattern = await making.findPattern({ org_id, environment, domain, local });
  if (pattern === null) return null;
  const client = clientOf(making.world, pattern, incoming);
  if (!(await isBegun(making.world, client, "pattern_refused_hour"))) return null;
  const parsed = await readParts(examination);
  const author = canonicalAddress(parsed.from[0]?.email ?? incoming.envelope.from).toLowerCase();
  const alias = { org_id, id: detail.alias_id };
  const known = await making.findContact(alias, contactDigest(making.world, alias.id, author));
  return known && !known.is_token ? null : LATER;
}

/** Makes what is not there and settles the routes: of all addresses, or of none. */
async function makeAll(making: Making, incoming: Coming): Promise<Refused | null> {
  const unmade = incoming.recipients.flatMap((place) => (isUnmade(place.route) ? { place, route: place.route } : []));
  if (unmade.length === 0) return null;
  const { world, find, findAddress } = making;
  const refused = await insertAll(
    world,
    incoming.environment,
    unmade.map(({ route }) => route),
  );
  if (refused) return refused;
  for (const { place, route } of unmade) {
    const found = await findAddress(addressOfRoute(world, route));
    const context = found?.kind === "alias" ? await find(found.org_id, found.alias_id) : undefined;
    if (!context) return UNKNOWN;
    place.route = routeTo(context.alias, null, route.tag);
  }
  return null;
}

/** In one transaction, also where they are of several organizations, which are taken in one order by all who do so. */
async function insertAll(
  world: CarryWorld,
  environment: Environment,
  routes: readonly PatternRoute[],
): Promise<Refused | null> {
  if (routes.some(({ detail }) => detail.environment !== environment)) return UNKNOWN;
  const orgIds = [...new Set(routes.map(({ org_id }) => org_id))].sort();
  const insert = async (tx: Tx): Promise<null> => {
    for (const orgId of orgIds) await queries.lockAliasesOf(tx, orgId);
    for (const route of routes) {
      const refused = await insertMade(world, tx, route);
      if (refused) throw new NotMade(refused);
    }
    return null;
  };
  const [first = ""] = orgIds;
  const run = () => (orgIds.length === 1 ? world.db.asOrg(first, insert) : world.db.transaction(insert));
  return withPartitions(world, run).catch((error: unknown) => {
    if (error instanceof NotMade) return error.refused;
    throw error;
  });
}

/** Takes back what the message made already. */
class NotMade extends Error {
  readonly refused: Refused;

  constructor(refused: Refused) {
    super("an alias cannot be made");
    this.refused = refused;
  }
}

/** Makes one, unless somebody was faster; the answer, where the pattern or the alias is gone, or there are too many by now. */
async function insertMade(world: CarryWorld, tx: Tx, route: PatternRoute): Promise<Refused | null> {
  const { org_id, domain_id, detail } = route;
  const digest = addressOfRoute(world, route);
  const [known] = await queries.findAddresses(tx, [digest]);
  if (known) return isThere(tx, known);
  const [pattern] = await patterns.holdPattern(tx, org_id, detail.pattern_id);
  if (!pattern) return UNKNOWN;
  if (await isFullIn(tx, pattern, 0)) return LATER;
  const id = world.random.uuid();
  // Anybody else may have taken it since, also as a reply address of another organization.
  const taken = { digest, kind: "alias" as const, alias_id: id, contact_id: null };
  if (!(await queries.takeAddress(tx, org_id, taken))) return LATER;
  const { description: masked_description, ...settings } = ALIAS_DEFAULTS;
  await queries.insertAlias(tx, org_id, {
    ...settings,
    masked_description,
    id,
    environment: pattern.environment,
    domain_id,
    domain: pattern.domain,
    local_part: detail.local,
    pattern: textOf(pattern),
    created_at: new Date(world.clock.now()),
  });
  await queries.setAliasDestinations(tx, org_id, id, [pattern.destination_id]);
  await recordConfig(world, tx, { org_id, alias_id: id, reason: "created by a pattern" });
  return null;
}

async function isThere(tx: Tx, { kind, org_id, alias_id }: queries.FoundAddress): Promise<Refused | null> {
  const [alias] = kind === "alias" ? await queries.findAlias(tx, org_id, alias_id) : [];
  return alias && alias.deleted_at === null ? null : UNKNOWN;
}
