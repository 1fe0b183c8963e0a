// Which database this is, by what only PostgreSQL itself gives out: the cluster's system identifier, the database's oid and
// the oid of the table that the guard is kept in. A dump that was restored, in whatever place, made that table again. What
// stays the same: a restart, a promoted standby, a recovery to a point in time, a copy of the files. Those are known by
// their marks (marks.ts) and by the original that answers (witness.ts).
import type { Query } from "../../platform/database/db.ts";
import * as queries from "./guard-queries.ts";

const UNKNOWN = "-";

/**
 * `<system identifier>:<oid of the database>:<oid of the table>`. A cluster that may not be asked who it is, as some
 * providers have it, is "-" in the first place.
 */
export async function identityOf(db: Query): Promise<string> {
  const [cluster] = await queries.findCluster(db).catch(unlessRefused);
  const [own] = await queries.findOids(db);
  return `${cluster?.cluster ?? UNKNOWN}:${own?.database}:${own?.relation}`;
}

/** True if the database's identity is the noted one. A cluster that could not be read counts as the same. */
export function isSame(noted: string, actual: string): boolean {
  const [then, now] = [noted.split(":"), actual.split(":")];
  return now.every((part, at) => part === then[at] || (at === 0 && (part === UNKNOWN || then[at] === UNKNOWN)));
}

/** What a version before this one noted: `<system identifier>/<timeline>…`, or "unknown". Only the first part counts. */
export function isSameCluster(noted: string, actual: string): boolean {
  const [then, now] = [noted.split("/")[0], actual.split(":")[0]];
  return then === "unknown" || now === UNKNOWN || then === now;
}

/** A role without the right, or a server without the function. A lost connection is no answer: it must not end the check. */
function unlessRefused(error: { code?: string }): [] {
  if (error.code === "42501" || error.code === "42883") return [];
  throw error;
}
