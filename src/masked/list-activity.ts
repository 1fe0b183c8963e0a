// What happened on one alias, as the API lists it. Entries are written elsewhere (activity.ts).

import type { Page } from "../platform/database/page.ts";
import { totalOf } from "../platform/database/totals.ts";
import type { World } from "../platform/world.ts";
import { showActivity } from "./activity.ts";
import { requireAlias } from "./addresses/aliases.ts";
import * as queries from "./people-queries.ts";
import type { Who } from "./types.ts";

/** One page of an alias's activity, newest first, or 404. */
export async function listActivity(
  world: Pick<World, "db" | "seal">,
  who: Who,
  filter: queries.ActivityFilter,
  page: Page,
) {
  return world.db.asOrg(who.org_id, async (tx) => {
    await requireAlias(tx, who, filter.alias_id);
    const rows = await queries.listActivity(tx, who.org_id, filter, page);
    const total = await totalOf(rows.length, page, () => queries.countActivity(tx, who.org_id, filter));
    return { activity: rows.map((row) => showActivity(world, who.org_id, row)), ...total, ...page };
  });
}
