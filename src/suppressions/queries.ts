// All SQL on suppression and suppression_count. An entry whose time is over counts as absent everywhere; the clock role
// deletes it later. `now` is always a parameter: the World's clock, not the statement's.

import { contains, literally } from "../http/like.ts";
import type { Query, Tx } from "../platform/database/db.ts";
import type { Page } from "../platform/database/page.ts";
import { countUpToMax, type Total } from "../platform/database/totals.ts";
import type { Blocking, Entry, Filter, NewEntry } from "./types.ts";

const COLUMNS = `s.id, s.email, s.reason, s.scope_type, nullif(s.scope_id, '') as scope_id, s.source, s.source_message_id,
  s.bounce_code, s.diag_code, s.feedback_type, s.note, s.expires_at, s.created_at`;
const LIVE = "(s.expires_at is null or s.expires_at > $2)";

/** One address and the mail it is about; `streams` is a JSON array of strings. */
export type Wanted = {
  org_id: string;
  email: string;
  domain_id: string | null;
  template_id: string | null;
  list: string | null;
  streams: string;
  unsubscribable: boolean;
};

/**
 * The entries that block these mails; `position` is the index in `wanted`. The one place that says what a scope covers.
 * Index: suppression_address, one descent an address. Measured: see bench/suppressions.ts.
 */
export function findBlocking(db: Query, wanted: readonly Wanted[], now: Date) {
  return db.query<Blocking & { position: number }>(
    `select w.position::int - 1 as position, s.id, s.email, s.reason, s.scope_type, nullif(s.scope_id, '') as scope_id
       from unnest($1::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::jsonb[], $8::bool[])
              with ordinality as w (org_id, email, domain_id, template_id, list, streams, unsubscribable, position)
       join suppression s on s.org_id = w.org_id and s.email = w.email
      where ${LIVE}
        and case s.scope_type
              when 'org' then true
              when 'domain' then s.scope_id = w.domain_id and (w.unsubscribable or s.source <> 'unsubscribe')
              when 'template' then s.scope_id = w.template_id
              when 'list' then s.scope_id = w.list
              else w.streams ? s.scope_id
            end`,
    [
      wanted.map(({ org_id }) => org_id),
      now,
      wanted.map(({ email }) => email),
      wanted.map(({ domain_id }) => domain_id),
      wanted.map(({ template_id }) => template_id),
      wanted.map(({ list }) => list),
      wanted.map(({ streams }) => streams),
      wanted.map(({ unsubscribable }) => unsubscribable),
    ],
  );
}

/** All entries of one address, the newest first. Index: suppression_address. */
export function listOfAddress(tx: Tx, orgId: string, now: Date, { email, limit }: { email: string; limit: number }) {
  return tx.query<Entry>(
    `select ${COLUMNS} from suppression s where s.org_id = $1 and s.email = $3 and ${LIVE} order by s.id desc limit $4`,
    [orgId, now, email, limit],
  );
}

export function findEntry(tx: Tx, orgId: string, now: Date, id: string) {
  return tx.query<Entry>(`select ${COLUMNS} from suppression s where s.org_id = $1 and s.id = $3 and ${LIVE}`, [
    orgId,
    now,
    id,
  ]);
}

/** Which entries are listed, as of which moment, and which part of them. */
export type Listing = { now: Date; filter: Filter; page: Page };

const KIND_FILTER = `($3::text is null or reason = $3) and ($4::text is null or scope_type = $4)
  and ($5::text is null or source = $5)`;

function kindValues(filter: Filter): (string | null)[] {
  return [filter.reason, filter.scope_type, filter.source];
}

/** How many entries there are of some kind, without counting them: the sum of what each statement noted. */
export async function countByKind(tx: Tx, orgId: string, { now, filter }: Listing): Promise<number> {
  const rows = await tx.query<{ total: number }>(
    `select (select coalesce(sum(entries), 0) from suppression_count where org_id = $1 and ${KIND_FILTER})
          - (select count(*) from suppression where org_id = $1 and expires_at <= $2 and ${KIND_FILTER}) as total`,
    [orgId, now, ...kindValues(filter)],
  );
  return rows[0]?.total ?? 0;
}

/** Index: the primary key, backwards. */
export function listNewest(tx: Tx, orgId: string, { now, page }: Listing) {
  return tx.query<Entry>(
    `select ${COLUMNS} from suppression s where s.org_id = $1 and s.id < $5 and ${LIVE} order by s.id desc limit $3 offset $4`,
    [orgId, now, page.limit, page.offset, page.below],
  );
}

/**
 * Entries of some kind, the newest first: the newest of each (source, reason, scope_type) that exists, merged. So a few
 * manual entries among millions of imported ones are found at once. Index: suppression_by_kind (see its comment).
 */
export function listByKind(tx: Tx, orgId: string, { now, filter, page }: Listing) {
  return tx.query<Entry>(
    `with kind as (
       select source, reason, scope_type from suppression_count where org_id = $1 and ${KIND_FILTER}
        group by source, reason, scope_type having sum(entries) > 0)
     select ${COLUMNS} from kind cross join lateral (
       select * from suppression s
        where s.org_id = $1 and s.source = kind.source and s.reason = kind.reason and s.scope_type = kind.scope_type
          and s.id < $8 and ${LIVE}
        order by s.id desc nulls last limit $6::bigint + $7::bigint) as s
      order by s.id desc limit $6 offset $7`,
    [orgId, now, ...kindValues(filter), page.limit, page.offset, page.below],
  );
}

/** Entries of one list, domain, template or stream. Index: suppression_by_scope. */
export function listByScope(tx: Tx, orgId: string, { now, filter, page }: Listing) {
  return tx.query<Entry>(
    `select ${COLUMNS} from suppression s
      where s.org_id = $1 and s.scope_id = $6 and s.scope_id <> '' and s.id < $9 and ${KIND_FILTER} and ${LIVE}
      order by s.id desc nulls last limit $7 offset $8`,
    [orgId, now, ...kindValues(filter), filter.scope_id, page.limit, page.offset, page.below],
  );
}

export function countByScope(tx: Tx, orgId: string, { now, filter }: Listing): Promise<Total> {
  return countUpToMax(
    tx,
    `suppression s where s.org_id = $1 and s.scope_id = $6 and s.scope_id <> '' and ${KIND_FILTER} and ${LIVE}`,
    [orgId, now, ...kindValues(filter), filter.scope_id],
  );
}

const IN_RANGE = "s.email >= $8 and s.email <= $9";
const SEARCH_FILTER = `s.org_id = $1 and s.email like $7 and ${IN_RANGE} and ${KIND_FILTER}
  and ($6::text is null or s.scope_id = $6) and ${LIVE}`;
/** Above every address in the order of bytes. */
const LAST = "\u{10ffff}";

/** True if the text stands at the beginning of an address, so that the index leads to it: it names a mailbox then. */
function isBeginning(query: string): boolean {
  return query.indexOf("@") > 0;
}

function searchValues(filter: Filter): (string | null)[] {
  const query = filter.query ?? "";
  const place = isBeginning(query) ? [`${literally(query)}%`, query, query + LAST] : [contains(query), "", LAST];
  return [...kindValues(filter), filter.scope_id, ...place];
}

/**
 * Entries whose address begins with a text, or holds it. At most `keysMax` addresses are looked at; `hits` (on a first row
 * of nulls too) tells how many there were. An index-only pass over a range of suppression_address, then one descent for
 * each hit.
 */
export async function searchFew(tx: Tx, orgId: string, { now, filter }: Listing, keysMax: number) {
  const rows = await tx.query<Entry & { hits: number }>(
    `with found as materialized (
       select s.email, s.scope_type, s.scope_id from suppression s
        where s.org_id = $1 and s.email like $7 and ${IN_RANGE} limit $10)
     select ${COLUMNS}, hits.hits
       from (select count(*) as hits from found) as hits
       left join (found join suppression s
            on s.org_id = $1 and s.email = found.email and s.scope_type = found.scope_type
           and s.scope_id = found.scope_id and ($3::text is null or s.reason = $3)
           and ($4::text is null or s.scope_type = $4) and ($5::text is null or s.source = $5)
           and ($6::text is null or s.scope_id = $6) and ${LIVE}) on true
      order by s.id desc`,
    [orgId, now, ...searchValues(filter), keysMax],
  );
  return { hits: rows[0]?.hits ?? 0, rows: rows.filter(({ id }) => id !== null) };
}

export function countSearch(tx: Tx, orgId: string, { now, filter }: Listing): Promise<Total> {
  return countUpToMax(tx, `suppression s where ${SEARCH_FILTER}`, [orgId, now, ...searchValues(filter)]);
}

/**
 * Where many addresses hold the text, the newest of them are found early on the way back through the primary key. The
 * planner cannot know how many do, and would read and sort everything.
 */
export async function searchMany(tx: Tx, orgId: string, { now, filter, page }: Listing) {
  await tx.query("set local enable_sort = off");
  return tx.query<Entry>(
    `select ${COLUMNS} from suppression s where ${SEARCH_FILTER} and s.id < $12 order by s.id desc limit $10 offset $11`,
    [orgId, now, ...searchValues(filter), page.limit, page.offset, page.below],
  );
}

/** The next entries of an export, going down from the id `below` (null: from the newest). */
export async function exportPage(
  tx: Tx,
  orgId: string,
  { now, filter, below, limit }: { now: Date; filter: Filter; below: string; limit: number },
) {
  await tx.query("set local enable_sort = off");
  return tx.query<Entry>(
    `select ${COLUMNS} from suppression s where ${SEARCH_FILTER} and s.id < $10 order by s.id desc limit $11`,
    [orgId, now, ...searchValues(filter), below, limit],
  );
}

export const INSERT_COLUMNS = `org_id, id, email, reason, scope_type, scope_id, source, source_message_id, bounce_code,
  diag_code, feedback_type, note, expires_at, created_at`;

/** What a statement that wrote entries adds to the sums; of those that it changed, what they were before is taken away. */
export const COUNT_WRITTEN = `insert into suppression_count (org_id, source, reason, scope_type, entries)
  select org_id, source, reason, scope_type, sum(entries)
    from (select org_id, source, reason, scope_type, 1 as entries from written
          union all select org_id, was[1], was[2], scope_type, -1 from written where was is not null) as changed
   group by 1, 2, 3, 4 having sum(entries) <> 0 returning 1`;
export const WRITTEN = "returning s.org_id, s.source, s.reason, s.scope_type, s.was";

const COUNT_REMOVED = `insert into suppression_count (org_id, source, reason, scope_type, entries)
  select org_id, source, reason, scope_type, -count(*) from removed group by 1, 2, 3, 4 returning 1`;

// An expired entry is as good as absent: a new one takes its row, with an id of its own.
const GONE = "s.expires_at <= $1";
const STRONGER = "suppression_rank(excluded.reason) > suppression_rank(s.reason)";

/**
 * What happens where the address is suppressed in that scope already ($1 is now): the stronger reason and the longer
 * time stay, so that the order of arrival does not matter and nothing is undone by a repetition.
 */
export const MERGE = `on conflict (org_id, email, scope_type, scope_id) do update set
  was = array[s.source, s.reason],
  id = case when ${GONE} then excluded.id else s.id end,
  reason = case when ${GONE} or ${STRONGER} then excluded.reason else s.reason end,
  source = case when ${GONE} or ${STRONGER} then excluded.source else s.source end,
  source_message_id = case when ${GONE} or ${STRONGER} then excluded.source_message_id else s.source_message_id end,
  bounce_code = case when ${GONE} or ${STRONGER} then excluded.bounce_code else s.bounce_code end,
  diag_code = case when ${GONE} or ${STRONGER} then excluded.diag_code else s.diag_code end,
  feedback_type = case when ${GONE} or ${STRONGER} then excluded.feedback_type else s.feedback_type end,
  note = case when ${GONE} then excluded.note else coalesce(s.note, excluded.note) end,
  expires_at = case when ${GONE} then excluded.expires_at
                    when s.expires_at is null or excluded.expires_at is null then null
                    else greatest(s.expires_at, excluded.expires_at) end,
  created_at = case when ${GONE} then excluded.created_at else s.created_at end
  where ${GONE} or ${STRONGER} or excluded.expires_at > s.expires_at
     or (s.expires_at is not null and excluded.expires_at is null)`;

/** Adds entries or strengthens those that are there. Locks are taken in the order of the unique index: no deadlocks. */
export function mergeEntries(tx: Tx, now: Date, entries: readonly NewEntry[]) {
  const column = <K extends keyof NewEntry>(name: K) => entries.map((entry) => entry[name]);
  return tx.execute(
    `with written as (insert into suppression as s (${INSERT_COLUMNS})
     select * from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::uuid[],
                          $10::text[], $11::text[], $12::text[], $13::text[], $14::timestamptz[], $15::timestamptz[])
            as e (${INSERT_COLUMNS})
      order by e.org_id, e.email collate "C", e.scope_type, e.scope_id collate "C"
     ${MERGE} ${WRITTEN})
     ${COUNT_WRITTEN}`,
    [
      now,
      column("org_id"),
      column("id"),
      column("email"),
      column("reason"),
      column("scope_type"),
      column("scope_id"),
      column("source"),
      column("source_message_id"),
      column("bounce_code"),
      column("diag_code"),
      column("feedback_type"),
      column("note"),
      column("expires_at"),
      column("created_at"),
    ],
  );
}

// Whose entry yields to an explicit request: one that has expired, or one of at most the same weight that the customer
// made. What a recipient asked for by one click is not shortened by a request of the sender.
const YIELDS = `(${GONE} or (s.source <> 'unsubscribe'
  and suppression_rank(s.reason) <= suppression_rank(excluded.reason)))`;

/** Adds one entry at the customer's request; its `id` tells whether it is new. The customer's own entry is rewritten. */
export function putEntry(tx: Tx, now: Date, entry: NewEntry) {
  return tx.query<Entry>(
    `with written as (insert into suppression as s (${INSERT_COLUMNS})
     values ($2, $3, $4, $5, $6, $7, $8, null, null, null, null, $9, $10, $1)
     on conflict (org_id, email, scope_type, scope_id) do update set
       was = array[s.source, s.reason],
       id = case when ${GONE} then excluded.id else s.id end,
       reason = case when ${YIELDS} then excluded.reason else s.reason end,
       source = case when ${YIELDS} then excluded.source else s.source end,
       source_message_id = case when ${GONE} then null else s.source_message_id end,
       bounce_code = case when ${GONE} then null else s.bounce_code end,
       diag_code = case when ${GONE} then null else s.diag_code end,
       feedback_type = case when ${GONE} then null else s.feedback_type end,
       note = case when ${GONE} then excluded.note else coalesce(excluded.note, s.note) end,
       expires_at = case when ${YIELDS} then excluded.expires_at else s.expires_at end,
       created_at = case when ${GONE} then excluded.created_at else s.created_at end
     returning s.*),
     counted as (${COUNT_WRITTEN})
     select ${COLUMNS} from written s`,
    [
      now,
      entry.org_id,
      entry.id,
      entry.email,
      entry.reason,
      entry.scope_type,
      entry.scope_id,
      entry.source,
      entry.note,
      entry.expires_at,
    ],
  );
}

export function deleteById(tx: Tx, orgId: string, now: Date, id: string) {
  return tx.query<{ id: string }>(
    `with removed as (delete from suppression s where s.org_id = $1 and s.id = $3 and ${LIVE} returning s.*),
     counted as (${COUNT_REMOVED})
     select id from removed`,
    [orgId, now, id],
  );
}

/** Removes an address's org-wide entry. */
export function deleteByAddress(tx: Tx, orgId: string, now: Date, email: string) {
  return tx.query<{ id: string }>(
    `with removed as (
       delete from suppression s where s.org_id = $1 and s.email = $3 and s.scope_type = 'org' and s.scope_id = '' and ${LIVE}
       returning s.*),
     counted as (${COUNT_REMOVED})
     select id from removed`,
    [orgId, now, email],
  );
}

/** Deletes up to `max` expired entries of all organizations; returns how many. Index: suppression_expiry. */
export async function deleteExpired(db: Query, now: Date, max: number): Promise<number> {
  const rows = await db.query<{ n: number }>(
    `with removed as (
       delete from suppression where (org_id, id) in (
         select org_id, id from suppression where expires_at <= $1 order by expires_at limit $2 for update skip locked)
       returning org_id, source, reason, scope_type),
     counted as (${COUNT_REMOVED})
     select count(*) as n from removed`,
    [now, max],
  );
  return rows[0]?.n ?? 0;
}

/** Organizations with more than `max` rows of differences. */
export async function orgsToFold(db: Query, max: number): Promise<string[]> {
  const rows = await db.query<{ org_id: string }>(
    "select org_id from suppression_count group by org_id having count(*) > $1 limit 1000",
    [max],
  );
  return rows.map(({ org_id }) => org_id);
}

/** Folds an organization's differences into one row a kind. In one statement: a reader sees either all or the sum. */
export function foldCounts(db: Query, orgId: string) {
  return db.execute(
    `with gone as (delete from suppression_count where org_id = $1 returning source, reason, scope_type, entries)
     insert into suppression_count (org_id, source, reason, scope_type, entries)
     select $1, source, reason, scope_type, sum(entries) from gone group by source, reason, scope_type
     having sum(entries) <> 0 returning 1`,
    [orgId],
  );
}
