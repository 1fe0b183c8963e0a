// Patterns of a mailbox: kept, listed, removed. What they made is not theirs: it stays when they go.
import { isUuid } from "../../platform/database/db.ts";
import type { Page } from "../../platform/database/page.ts";
import { totalOf } from "../../platform/database/totals.ts";
import { invalid, notFound, Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { tryOpenText, untagged } from "../addresses/addresses.ts";
import { findOwnHome } from "../addresses/aliases.ts";
import { getDestination } from "../addresses/destinations.ts";
import { lockDestination } from "../people-queries.ts";
import type { Who } from "../types.ts";
import { textOf } from "./find-patterns.ts";
import * as queries from "./pattern-queries.ts";
import { isTakenBy, readPattern } from "./pattern-text.ts";

const PER_DESTINATION_MAX = 20;
/** Every one of them is tried on each mail that no exact address takes. */
const PER_DOMAIN_MAX = 200;
/** A person gives out a few addresses a day; a move from another service brings more, and is what the limits are raised for. */
export const ALIASES_HOUR = 20;
export const ALIASES_DAY = 60;

type PatternWorld = Pick<World, "db" | "clock" | "random" | "seal" | "config">;

export type CreatePattern = { pattern: string; aliases_hour?: number; aliases_day?: number };

export type PatternRecord = Omit<queries.CountedPattern, "org_id" | "local_pattern"> & { pattern: string };

/** Adds a pattern to a mailbox. 409 for one that the organization has; 403 for a domain that cannot carry masked mail. */
export async function createPattern(
  world: PatternWorld,
  who: Who,
  destinationId: string,
  request: CreatePattern,
): Promise<PatternRecord> {
  const { id: destination_id, email } = await getDestination(world, who, destinationId);
  const read = readPattern(request.pattern);
  if (!read.ok) throw invalid("pattern", `the 'pattern' field ${read.problem}`);
  const { local, domain } = read.pattern;
  if (domain === world.config.masked_domain) {
    throw invalid("pattern", "the 'pattern' field must stand at a domain of yours: the service's own is everybody's");
  }
  const home = await findOwnHome(world, who, domain, "pattern");
  refuseOwnMailbox(email, local, home.domain);
  const row = {
    id: world.random.uuid(),
    environment: who.environment,
    destination_id,
    domain: home.domain,
    local_pattern: local,
    aliases_hour: request.aliases_hour ?? ALIASES_HOUR,
    aliases_day: request.aliases_day ?? ALIASES_DAY,
    created_at: new Date(world.clock.now()),
  };
  await world.db.asOrg(who.org_id, async (tx) => {
    // Held, so that the limit holds, and that it is still there.
    const [held] = await lockDestination(tx, who.org_id, destination_id);
    if (!held || tryOpenText(world, who.org_id, held.sealed) === null) throw notFound("destination");
    if ((await queries.countPatterns(tx, who.org_id, destination_id)).total >= PER_DESTINATION_MAX) {
      throw new Refusal("plan_limit_reached", `a mailbox has at most ${PER_DESTINATION_MAX} patterns`);
    }
    if ((await queries.countOfDomain(tx, who.org_id, who.environment, home.domain)) >= PER_DOMAIN_MAX) {
      throw new Refusal("plan_limit_reached", `a domain has at most ${PER_DOMAIN_MAX} patterns`);
    }
    if (await queries.insertPattern(tx, who.org_id, row)) return;
    throw new Refusal("already_exists", `a mailbox has the pattern ${local}@${domain} already`, { field: "pattern" });
  });
  return show({ ...row, org_id: who.org_id, aliases: 0 });
}

/** A mailbox that its own pattern takes would get its mail in circles. */
function refuseOwnMailbox(email: string, pattern: string, domain: string): void {
  const [local = "", host = ""] = untagged(email.toLowerCase()).split("@");
  if (host !== domain || !isTakenBy(pattern, local)) return;
  throw invalid("pattern", "the 'pattern' field takes the mailbox itself: its mail would go in circles");
}

function show({ org_id: _org, local_pattern, domain, ...rest }: queries.CountedPattern): PatternRecord {
  return { ...rest, domain, pattern: textOf({ local_pattern, domain }) };
}

/** One page of the patterns of a mailbox, newest first, with the total; 404 for a mailbox that is not there. */
export async function listPatterns(world: Pick<World, "db" | "seal">, who: Who, destinationId: string, page: Page) {
  const { id } = await getDestination(world, who, destinationId);
  return world.db.asOrg(who.org_id, async (tx) => {
    const rows = await queries.listPatterns(tx, who.org_id, id, page);
    const total = await totalOf(rows.length, page, () => queries.countPatterns(tx, who.org_id, id));
    return { patterns: rows.map(show), ...total, ...page };
  });
}

/** Removes a pattern, or 404. Its aliases stay. */
export async function deletePattern(
  world: Pick<World, "db" | "seal">,
  who: Who,
  key: { destination_id: string; id: string },
): Promise<void> {
  const { id: destination_id } = await getDestination(world, who, key.destination_id);
  const { org_id } = who;
  const touched = isUuid(key.id)
    ? await world.db.asOrg(org_id, (tx) => queries.deletePattern(tx, org_id, { destination_id, id: key.id }))
    : 0;
  if (touched === 0) throw notFound("pattern");
}
