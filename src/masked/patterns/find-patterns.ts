// The patterns of a domain, looked up on every mail that no exact address takes: many at a time, nothing remembered, so that a
// change acts at once.
import { coalesceListsByOrg } from "../../platform/fair/coalesce.ts";
import type { World } from "../../platform/world.ts";
import { openText } from "../addresses/addresses.ts";
import type { Destination, Environment } from "../types.ts";
import * as queries from "./pattern-queries.ts";
import { choosePattern } from "./pattern-text.ts";

const AT_ONCE_MAX = 200;
const LANES = 2;

export type FoundPattern = queries.PatternRow & { destination: Destination };
export type Wanted = { org_id: string; environment: Environment; domain: string; local: string };
/** The pattern that takes a local part of a domain; null: none does. */
export type FindPattern = (wanted: Wanted) => Promise<FoundPattern | null>;

/** A finder of patterns by the address that they take. */
export function patternFinder(world: Pick<World, "db" | "seal">): FindPattern {
  const find = coalesceListsByOrg<queries.PatternOfDomain>({
    keys_max: AT_ONCE_MAX,
    lanes: LANES,
    load: async (asked) => {
      const keys = asked.map(({ org_id, key }) => {
        const [environment = "live", domain = ""] = key.split(" ");
        return { org_id, environment: environment as Environment, domain };
      });
      const rows = await queries.findPatternsOfDomains(world.db, keys);
      return rows.map((row) => [row.org_id, `${row.environment} ${row.domain}`, row]);
    },
  });
  return async ({ org_id, environment, domain, local }) => {
    const chosen = choosePattern(await find(org_id, `${environment} ${domain.toLowerCase()}`), local);
    if (chosen === null) return null;
    const { sealed, status, ...pattern } = chosen;
    const destination = { id: pattern.destination_id, status, email: openText(world, org_id, sealed) };
    return { ...pattern, destination };
  };
}

/** The pattern as the API writes it. */
export function textOf({ local_pattern, domain }: Pick<queries.PatternRow, "local_pattern" | "domain">): string {
  return `${local_pattern}@${domain}`;
}
