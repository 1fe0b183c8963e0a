// SQL of mail that is counted when it leaves.
import type { Query, Tx } from "../platform/database/db.ts";

type Key = { org_id: string; message_id: string; position: number };

const UNCHARGED = "org_id = $1 and message_id = $2 and attempts = 0 and (charged_at is null or charged_at <= $3)";

/** Notes that all recipients of the message that were not attempted are counted now; how many were not, since `before`. */
export function markCharged(tx: Tx, { org_id, message_id }: Key, { now, before }: { now: Date; before: Date }) {
  return tx.execute(`update delivery set charged_at = $4 where ${UNCHARGED}`, [org_id, message_id, before, now]);
}

export async function countUncharged(db: Query, { org_id, message_id }: Key, before: Date): Promise<number> {
  const text = `select count(*)::int as count from delivery where ${UNCHARGED}`;
  const [row] = await db.query<{ count: number }>(text, [org_id, message_id, before]);
  return Math.max(1, row?.count ?? 1);
}

/** Mail that waits by our doing does not run out of time meanwhile. */
export function giveTime(db: Query, { org_id, message_id, position }: Key, until: Date) {
  return db.execute(
    `update delivery set expires_at = greatest(expires_at, $4)
      where org_id = $1 and message_id = $2 and position = $3`,
    [org_id, message_id, position, until],
  );
}
