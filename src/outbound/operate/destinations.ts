// The queue as operators see it, over all organizations: for each destination domain how much waits, since when and why. Nothing is
// cached. The list counts a lane up to a thousand deliveries; the view of one destination counts all of them. Not here: what
// operators order (orders.ts).
import { organizationNames } from "../../accounts/accounts.ts";
import { literally } from "../../http/like.ts";
import type { Db } from "../../platform/database/db.ts";
import type { World } from "../../platform/world.ts";
import { CLASS_BULK } from "../types.ts";
import * as queries from "./operate-queries.ts";

const LANES_SHOWN = 100;

export type Destination = Omit<queries.DestinationRow, "later" | "waiting"> & {
  deferred: number;
  scheduled: number;
  oldest_at: Date | null;
  organizations: number;
  last_reply: string | null;
};

export type Asked = { query?: string; state?: string; after?: string; limit: number };

/** One page, those with the most mail first, and where the next one begins. */
export async function listDestinations(world: Pick<World, "db" | "clock">, { query, state, after, limit }: Asked) {
  const now = new Date(world.clock.now());
  const sought = query?.trim().toLowerCase() ?? "";
  const filter = { pattern: sought === "" ? null : `%${literally(sought)}%`, state: state ?? null };
  const asked = { now, limit: limit + 1, behind: readAfter(after) };
  const found = await queries.listDestinations(world.db, filter, asked);
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return {
    destinations: await withParticulars(world.db, rows, now),
    total: found[0]?.total ?? 0,
    next: found.length > limit && last ? `${last.waiting} ${last.domain}` : null,
    read_at: now,
  };
}

function readAfter(after: string | undefined): queries.Behind {
  const [, waiting, domain] = /^(\d{1,15}) (\S{1,253})$/.exec(after ?? "") ?? [];
  return waiting === undefined || domain === undefined ? null : { waiting: Number(waiting), domain };
}

async function withParticulars(db: Db, rows: queries.DestinationRow[], now: Date): Promise<Destination[]> {
  if (rows.length === 0) return [];
  const names = rows.map(({ domain }) => domain);
  const found = await queries.readParticulars(db, names, now);
  const byDomain = new Map(found.map((one) => [one.domain, one]));
  const tried = found.flatMap((one) => (one.tried ? [one.tried] : []));
  const replies = new Map((await queries.readReplies(db, tried)).map((one) => [nameOf(one), one]));
  return rows.map(({ later, waiting: _, ...row }) => {
    const more = byDomain.get(row.domain);
    const scheduled = Math.min(later, more?.scheduled ?? 0);
    const reply = more?.tried ? replies.get(nameOf(more.tried)) : undefined;
    return {
      ...row,
      scheduled,
      deferred: later - scheduled,
      oldest_at: more?.oldest_at ?? null,
      organizations: more?.organizations ?? 0,
      last_reply: more?.reason ?? reply?.diag_message ?? null,
    };
  });
}

function nameOf({ message_id, position }: { message_id: string; position: number }): string {
  return `${message_id}/${position}`;
}

export type LaneView = Omit<queries.LaneRow, "class" | "org_id"> & {
  organization_id: string;
  organization: string;
  class: "transactional" | "bulk";
  why: "suspended" | "organization_waits" | "resting" | "due" | "in_hand" | "deferred" | "scheduled";
};

/** One destination with its lanes and exact counts; all that is counted was accepted up to `read_at`. */
export async function readDestinationView({ db, clock }: Pick<World, "db" | "clock">, domain: string) {
  const now = new Date(clock.now());
  const [rows, [order]] = await Promise.all([
    queries.listLanes(db, domain, { now, limit: LANES_SHOWN }),
    queries.findOrder(db, domain),
  ]);
  const isSuspended = (order?.suspended_at ?? null) !== null;
  const organizations = await organizationNames(
    { db },
    rows.map(({ org_id }) => org_id),
  );
  return {
    domain,
    waiting: rows[0]?.waiting ?? 0,
    suspended_at: order?.suspended_at ?? null,
    suspended_by: order?.suspended_by ?? null,
    note: order?.note ?? null,
    is_dropping: (order?.drop_before ?? null) !== null,
    dropped: order?.dropped ?? 0,
    lanes_total: rows[0]?.lanes ?? 0,
    lanes: rows.map(({ lanes: _, waiting: __, ...row }) => toView(row, organizations.get(row.org_id), isSuspended)),
    read_at: now,
  };
}

type Owner = { name: string; state: string } | undefined;

function toView({ org_id, ...row }: queries.LaneRow, owner: Owner, isSuspended: boolean): LaneView {
  const why = isSuspended ? "suspended" : owner?.state === "active" ? whyOf(row) : "organization_waits";
  const mailClass = row.class === CLASS_BULK ? "bulk" : "transactional";
  return { ...row, organization_id: org_id, organization: owner?.name ?? "", class: mailClass, why };
}

/** What keeps the lane's mail here; of several reasons the one that an operator would settle first. */
function whyOf(row: Omit<queries.LaneRow, "org_id">): LaneView["why"] {
  if (row.paused_until) return "resting";
  if (row.in_hand > 0) return "in_hand";
  if (row.due > 0) return "due";
  return row.deferred > 0 ? "deferred" : "scheduled";
}
