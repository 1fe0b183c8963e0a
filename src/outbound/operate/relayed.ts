// The relays of all organizations as operators see them: where their mail goes, what waits, and what the relay said last. Customers
// set relays (route/relays.ts); operators only look.
import { organizationNames } from "../../accounts/accounts.ts";
import { domainNames, domainsLike } from "../../domains/domains.ts";
import { isUuid } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import { isClosedEverywhere } from "../route/relay-queries.ts";
import { readReplies } from "./operate-queries.ts";
import * as queries from "./relayed-queries.ts";
import { joinWholeTables } from "./source-queries.ts";
import { readQuery } from "./sources.ts";

export type AskedRelays = { query?: string; state?: string; after?: string; limit: number };

/** One page, those with the most mail first, and where the next one begins. */
export async function listRelays(world: Pick<World, "db" | "clock">, { query, state, after, limit }: AskedRelays) {
  const now = new Date(world.clock.now());
  const [sought, [reach]] = await Promise.all([readQuery(world, query), isClosedEverywhere(world.db)]);
  const domain_ids = sought.pattern === null ? [] : await domainsLike(world, sought.pattern);
  const is_closed = reach?.closed ?? false;
  const asked = { now, is_closed, limit: limit + 1, behind: readAfter(after) };
  const found = await world.db.transaction(async (tx) => {
    await joinWholeTables(tx);
    return queries.listRelays(tx, { ...sought, domain_ids, state: state ?? null }, asked);
  });
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return {
    relays: await toViews(world, rows),
    total: found[0]?.total ?? 0,
    next: found.length > limit && last ? `${last.waiting} ${last.domain_id}` : null,
    port_25_is_closed: is_closed,
    read_at: now,
  };
}

function readAfter(after: string | undefined): queries.BehindRelay {
  const [, waiting, domain_id = ""] = /^(\d{1,15}) (\S{36})$/.exec(after ?? "") ?? [];
  return waiting === undefined || !isUuid(domain_id) ? null : { waiting: Number(waiting), domain_id };
}

async function toViews(world: Pick<World, "db">, rows: queries.OperatedRelay[]) {
  if (rows.length === 0) return [];
  const tried = await queries.findTried(
    world.db,
    rows.flatMap(({ lanes }) => lanes ?? []),
  );
  const [names, organizations, replies] = await Promise.all([
    domainNames(world, rows),
    organizationNames(
      world,
      rows.map(({ org_id }) => org_id),
    ),
    readReplies(world.db, tried),
  ]);
  const texts = new Map(replies.map((one) => [`${one.message_id}/${one.position}`, one.diag_message]));
  const said = new Map(tried.map((one) => [one.domain_id, texts.get(`${one.message_id}/${one.position}`) ?? null]));
  return rows.map(({ org_id, lanes: _, reason, ...row }) => ({
    ...row,
    domain: names.get(row.domain_id) ?? "",
    organization_id: org_id,
    organization: organizations.get(org_id)?.name ?? "",
    last_error: reason ?? said.get(row.domain_id) ?? null,
  }));
}
