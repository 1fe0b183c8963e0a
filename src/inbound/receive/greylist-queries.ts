// All SQL on greylist.
import type { Query } from "../../platform/database/db.ts";

export type Touch = { digest: Buffer; now: Date; passes_before: Date; fresh_after: Date; known_after: Date };

/**
 * Notes an attempt; `passed` tells whether it may go through: the triple passed before and is remembered, or its first
 * attempt is old enough and not too old.
 */
export function touch(db: Query, { digest, now, passes_before, fresh_after, known_after }: Touch) {
  return db.query<{ passed: boolean }>(
    `insert into greylist as g (digest, first_at, last_at) values ($1, $2, $2)
     on conflict (digest) do update set
       first_at = case when g.passed_at is null and g.first_at < $4 then $2
                       when g.passed_at is not null and g.last_at < $5 then $2 else g.first_at end,
       passed_at = case when g.passed_at is not null and g.last_at >= $5 then g.passed_at
                        when g.passed_at is null and g.first_at <= $3 and g.first_at >= $4 then $2 end,
       last_at = $2
     returning g.passed_at is not null as passed`,
    [digest, now, passes_before, fresh_after, known_after],
  );
}

/** Index: greylist_age. */
export function forget(db: Query, before: Date, limit: number) {
  return db.execute("delete from greylist where digest in (select digest from greylist where last_at < $1 limit $2)", [
    before,
    limit,
  ]);
}
