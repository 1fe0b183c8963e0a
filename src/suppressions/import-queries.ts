// All SQL on suppression_import and its blocks. Leases are the database's clock, everything else the World's.
import type { Query, Tx } from "../platform/database/db.ts";
import { COUNT_WRITTEN, INSERT_COLUMNS, MERGE, WRITTEN } from "./queries.ts";
import type { Job, JobError, JobQuestion, JobSample, Provider, Reason } from "./types.ts";

// Who reads a list renews its lease; where that has stopped, nobody reads it any more.
const EXPIRED = "when status = 'previewed' and expires_at <= $2 then 'expired'";
const FAILED = "when status = 'reading' and lease_until <= now() then 'failed'";
const columns = (
  status: string,
) => `id, ${status} as status, provider, total_rows, valid_rows, invalid_rows, duplicate_rows, already_suppressed_rows,
  '{"hard_bounce": 0, "complaint": 0, "manual": 0, "unsubscribe": 0}'::jsonb || by_reason as by_reason, sample, errors,
  questions, committed_rows, created_at, expires_at`;
const JOB_COLUMNS = columns(`case ${EXPIRED} ${FAILED} else status end`);
/** The same of a job whose list is read already. Citus takes no clock in what a change returns. */
const READ_JOB_COLUMNS = columns(`case ${EXPIRED} else status end`);

/** Invisible to the API until `finishReading`, or `showReading` where the list is large. */
export function insertJob(tx: Tx, orgId: string, job: { id: string; created_at: Date; expires_at: Date }) {
  return tx.execute(
    `insert into suppression_import (org_id, id, status, provider, created_at, expires_at)
     values ($1, $2, 'reading', 'custom', $3, $4)`,
    [orgId, job.id, job.created_at, job.expires_at],
  );
}

/** `entries`: a JSON array of objects with what an entry has (scope_type is absent for org) as UTF-8. */
export type Block = { job_id: string; position: number; row_count: number; entry_count: number; entries: Buffer };

const ENTRY_FIELDS = `email text, reason text, scope_type text, scope_id text, bounce_code text, diag_code text, note text,
  expires_at timestamptz, source_message_id uuid, feedback_type text, created_at timestamptz`;

export function insertBlock(tx: Tx, orgId: string, block: Block) {
  return tx.execute(
    `insert into suppression_import_block (org_id, job_id, position, row_count, entry_count, entries)
     values ($1, $2, $3, $4, $5, $6)`,
    [orgId, block.job_id, block.position, block.row_count, block.entry_count, block.entries],
  );
}

/** The indexes of a stored block's entries whose address is suppressed in that very scope. Index: suppression_address. */
export async function findSuppressedIn(tx: Tx, orgId: string, now: Date, block: Block): Promise<number[]> {
  const rows = await tx.query<{ position: number }>(
    `select e.position::int - 1 as position
       from suppression_import_block b,
            rows from (json_to_recordset(b.entries) as (email text, scope_type text, scope_id text))
              with ordinality as e (email, scope_type, scope_id, position)
       join suppression s on s.org_id = $1 and s.email = e.email and s.scope_type = coalesce(e.scope_type, 'org')
        and s.scope_id = coalesce(e.scope_id, '')
      where b.org_id = $1 and b.job_id = $3 and b.position = $4 and (s.expires_at is null or s.expires_at > $2)`,
    [orgId, now, block.job_id, block.position],
  );
  return rows.map(({ position }) => position);
}

export type Findings = Pick<
  Job,
  "provider" | "total_rows" | "valid_rows" | "invalid_rows" | "duplicate_rows" | "already_suppressed_rows"
> & {
  by_reason: Record<Reason, number>;
  sample: JobSample[];
  errors: JobError[];
  questions: JobQuestion[];
  block_count: number;
};

export function finishReading(tx: Tx, orgId: string, { now, id, found }: { now: Date; id: string; found: Findings }) {
  return tx.query<Job>(
    `update suppression_import
        set status = 'previewed', provider = $4, total_rows = $5, valid_rows = $6, invalid_rows = $7,
            duplicate_rows = $8, already_suppressed_rows = $9, by_reason = $10, sample = $11, errors = $12,
            block_count = $13, questions = $14, lease_until = null
      where org_id = $1 and id = $3 and status = 'reading' returning ${READ_JOB_COLUMNS}`,
    [
      orgId,
      now,
      id,
      found.provider,
      found.total_rows,
      found.valid_rows,
      found.invalid_rows,
      found.duplicate_rows,
      found.already_suppressed_rows,
      JSON.stringify(found.by_reason),
      JSON.stringify(found.sample),
      JSON.stringify(found.errors),
      found.block_count,
      JSON.stringify(found.questions),
    ],
  );
}

/** Shows a job while its list is read, with how far that is, for as long as somebody reads it. */
export function showReading(tx: Tx, orgId: string, id: string, at: { found: Findings; leaseSeconds: number }) {
  const { total_rows, valid_rows, invalid_rows, duplicate_rows } = at.found;
  return tx.execute(
    `update suppression_import
        set lease_until = now() + make_interval(secs => $3), total_rows = $4, valid_rows = $5, invalid_rows = $6,
            duplicate_rows = $7
      where org_id = $1 and id = $2 and status = 'reading'`,
    [orgId, id, at.leaseSeconds, total_rows, valid_rows, invalid_rows, duplicate_rows],
  );
}

/** Ends a job that was shown and cannot be read; its blocks go. */
export async function failReading(tx: Tx, orgId: string, id: string, message: string): Promise<void> {
  await tx.execute(
    `update suppression_import
        set status = 'failed', lease_until = null, errors = $3, valid_rows = 0, by_reason = default
      where org_id = $1 and id = $2 and status = 'reading'`,
    [orgId, id, JSON.stringify([{ row: null, column: null, value: null, message }])],
  );
  await deleteBlocks(tx, orgId, id);
}

/** Drops a job that was never finished reading, with its blocks. */
export function deleteReading(tx: Tx, orgId: string, id: string) {
  return tx.execute("delete from suppression_import where org_id = $1 and id = $2 and status = 'reading'", [orgId, id]);
}

export function findJob(tx: Tx, orgId: string, now: Date, id: string) {
  return tx.query<Job>(
    `select ${JOB_COLUMNS} from suppression_import where org_id = $1 and id = $3
        and (status <> 'reading' or lease_until is not null)`,
    [orgId, now, id],
  );
}

/** previewed → committing; no row when it is in another state or its time is over. One of many callers wins. */
export function startCommit(tx: Tx, orgId: string, now: Date, id: string) {
  return tx.query<Job>(
    `update suppression_import set status = 'committing', lease_until = now()
      where org_id = $1 and id = $3 and status = 'previewed' and expires_at > $2 returning ${READ_JOB_COLUMNS}`,
    [orgId, now, id],
  );
}

export type Claim = {
  org_id: string;
  id: string;
  provider: Provider;
  epoch: number;
  next_block: number;
  block_count: number;
};

/** Takes a committing job that nobody holds, for `leaseSeconds`; the epoch fences off whoever held it before. */
export async function claimJob(db: Query, leaseSeconds: number): Promise<Claim | null> {
  const rows = await db.query<Claim>(
    `update suppression_import
        set epoch = epoch + 1, lease_until = now() + make_interval(secs => $1), failed_claims = failed_claims + 1
      where (org_id, id) in (select org_id, id from suppression_import
                              where status = 'committing' and lease_until <= now()
                              order by lease_until limit 1 for update skip locked)
      returning org_id, id, provider, epoch, next_block, block_count`,
    [leaseSeconds],
  );
  return rows[0] ?? null;
}

/** Moves the cursor over one block and renews the lease; false when the claim is no longer ours: then write nothing. */
export async function advance(tx: Tx, claim: Claim, position: number, leaseSeconds: number): Promise<boolean> {
  const touched = await tx.execute(
    `update suppression_import j
        set next_block = j.next_block + 1, lease_until = now() + make_interval(secs => $5), failed_claims = 0,
            committed_rows = j.committed_rows + b.row_count
       from suppression_import_block b
      where j.org_id = $1 and j.id = $2 and j.epoch = $3 and j.status = 'committing' and j.next_block = $4
        and b.org_id = $1 and b.job_id = $2 and b.position = $4`,
    [claim.org_id, claim.id, claim.epoch, position, leaseSeconds],
  );
  return touched === 1;
}

// When an entry was made: as our own export says, unless that is still to come; else now. Lists are in the order of ids.
const CREATED_AT = "least(e.created_at, $1::timestamptz)";

// A UUIDv7 (RFC 9562 §5.7) of that time, made where the rows are: as text from the program, ids were half of what an import cost
// it. rand_a is the place in the block, so that an import's rows keep their order; a block has at most 2,019 entries.
const ENTRY_ID = `(lpad(to_hex(floor(extract(epoch from ${CREATED_AT}) * 1000)::bigint), 12, '0') || '7'
  || lpad(to_hex(e.place), 3, '0') || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid`;

// A block may hold an address twice, the later one stronger; one statement cannot write a row twice. The strongest reason
// stays and the longest time, as MERGE has it for what is there already.
const KEY = `e.email collate "C", coalesce(e.scope_type, 'org'), coalesce(e.scope_id, '') collate "C"`;
const LONGEST = `case when bool_or(e.expires_at is null) over same then null else max(e.expires_at) over same end`;

/** Turns one block into entries, inside the database. */
export function commitBlock(tx: Tx, claim: Claim, { now, position }: { now: Date; position: number }) {
  return tx.execute(
    `with listed as (
     select distinct on (${KEY})
            $2::uuid, ${ENTRY_ID}, e.email, e.reason, coalesce(e.scope_type, 'org'), coalesce(e.scope_id, ''),
            'import:' || $5, e.source_message_id, e.bounce_code, e.diag_code, e.feedback_type, e.note, ${LONGEST},
            ${CREATED_AT}
       from suppression_import_block b,
            rows from (json_to_recordset(b.entries) as (${ENTRY_FIELDS})) with ordinality
              as e (email, reason, scope_type, scope_id, bounce_code, diag_code, note, expires_at, source_message_id,
                    feedback_type, created_at, place)
      where b.org_id = $2 and b.job_id = $3 and b.position = $4
     window same as (partition by ${KEY})
      order by ${KEY}, suppression_rank(e.reason) desc, e.place),
     written as (insert into suppression as s (${INSERT_COLUMNS}) select * from listed
     ${MERGE} ${WRITTEN})
     ${COUNT_WRITTEN}`,
    [now, claim.org_id, claim.id, position, claim.provider],
  );
}

/** Ends a job that this claim holds and drops its blocks. */
export async function endJob(tx: Tx, claim: Claim, status: "committed" | "failed", errors: JobError[]): Promise<void> {
  const ended = await tx.execute(
    `update suppression_import set status = $4, lease_until = null, errors = errors || $5::jsonb
      where org_id = $1 and id = $2 and epoch = $3 and status = 'committing'`,
    [claim.org_id, claim.id, claim.epoch, status, JSON.stringify(errors)],
  );
  if (ended === 1) await deleteBlocks(tx, claim.org_id, claim.id);
}

function deleteBlocks(tx: Tx, orgId: string, jobId: string) {
  return tx.execute("delete from suppression_import_block where org_id = $1 and job_id = $2", [orgId, jobId]);
}

/** Gives a claimed job back, to be claimed again after `delaySeconds`. */
export function releaseJob(db: Query, claim: Claim, delaySeconds: number, made: "progress" | "no progress") {
  return db.execute(
    `update suppression_import
        set lease_until = now() + make_interval(secs => $4),
            failed_claims = case when $5 then 0 else failed_claims end
      where org_id = $1 and id = $2 and epoch = $3 and status = 'committing'`,
    [claim.org_id, claim.id, claim.epoch, delaySeconds, made === "progress"],
  );
}

export async function failedClaims(db: Query, claim: Claim): Promise<number> {
  const rows = await db.query<{ failed_claims: number }>(
    "select failed_claims from suppression_import where org_id = $1 and id = $2",
    [claim.org_id, claim.id],
  );
  return rows[0]?.failed_claims ?? 0;
}

/** Takes an address out of what jobs show of their lists; `mention` finds it where a value holds more than that. */
export function eraseShown(tx: Tx, orgId: string, { email, mention }: { email: string; mention: string }) {
  const without = (column: string, says: string) =>
    `(select coalesce(jsonb_agg(one order by at), '[]') from jsonb_array_elements(${column}) with ordinality as of (one, at)
       where ${says})`;
  return tx.execute(
    `update suppression_import
        set sample = ${without("sample", "one ->> 'email' <> $2 and coalesce(one ->> 'note', '') !~* $3")},
            errors = ${without("errors", "coalesce(one ->> 'value', '') !~* $3")}
      where org_id = $1 and (sample::text ~* $3 or errors::text ~* $3)`,
    [orgId, email.toLowerCase(), mention],
  );
}

/** Marks previews whose time is over and drops their blocks, up to `max` jobs. */
export function expireJobs(tx: Tx, now: Date, max: number) {
  return tx.execute(
    `with over as (
       update suppression_import set status = 'expired'
        where (org_id, id) in (select org_id, id from suppression_import
                                where status = 'previewed' and expires_at <= $1 limit $2 for update skip locked)
        returning org_id, id)
     delete from suppression_import_block b using over where b.org_id = over.org_id and b.job_id = over.id`,
    [now, max],
  );
}

/** Deletes jobs that ended, or whose reading broke off, long ago; up to `max`. */
export function deleteOldJobs(tx: Tx, endedBefore: Date, readingBefore: Date, max: number) {
  return tx.execute(
    `delete from suppression_import where (org_id, id) in (
       select org_id, id from suppression_import
        where (status in ('committed', 'failed', 'expired') and expires_at < $1)
           or (status = 'reading' and created_at < $2)
        limit $3)`,
    [endedBefore, readingBefore, max],
  );
}
