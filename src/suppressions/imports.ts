// A list from another provider becomes a job: preview reads and stages the whole file and answers what it would do; commit
// lets the clock role add the valid rows in the background. Reading costs memory by the piece, not by the file: rows go
// to the database in blocks, and what must be remembered of a row is 24 bytes.
import { setImmediate as nextTurn } from "node:timers/promises";
import { isUuid } from "../platform/database/db.ts";
import { invalid, notFound, Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";
import { addRow, type BlockWriter, clear, contents, createBlock, isFull } from "./block.ts";
import { createImportReader, type ImportEntry, type ImportError, type ImportReader } from "./import/import-reader.ts";
import type { Scope } from "./import/scope.ts";
import * as queries from "./import-queries.ts";
import { createKeySet, type KeySet } from "./key-set.ts";
import { isKnownScope } from "./suppressions.ts";
import { type Job, type JobError, type JobSample, type Provider, STRENGTH } from "./types.ts";

export type Upload = {
  /** The field of the request that the content came in, for errors. */
  field: "file" | "csv";
  filename: string;
  provider: Provider | null;
  /** Can be read more than once, from its beginning. */
  content: AsyncIterable<Buffer> | Iterable<Buffer>;
};

const ROWS_MAX = 2_000_000;
/** A list of more is read after its answer. */
export const LARGE_ROWS = 100_000;
/** How long a job counts as being read after its progress was noted last. */
const READING_LEASE_S = 60;
const READING_NOTED_MS = 500;
const ERRORS_MAX = 100;
const SAMPLE_MAX = 20;
const QUESTIONS_MAX = 20;
const JOB_LIFE_MS = 24 * 3_600_000;
/** Domains and templates of a file that are looked up; an organization has fewer. */
const SCOPES_ASKED_MAX = 2_000;

type Staging = {
  world: Pick<World, "db" | "clock" | "random" | "log">;
  org_id: string;
  job_id: string;
  preview: Preview;
  /** Set once the job is shown: what notes its progress. */
  shown: NodeJS.Timeout | null;
  seen: KeySet;
  /** Which of the domains and templates that rows name exist. */
  scopes: Map<string, boolean>;
  block: BlockWriter;
  found: queries.Findings;
};

export type Preview = {
  /** Its job is shown from the beginning. */
  is_large: boolean;
  /** Waits for its turn to read. */
  turn<T>(work: () => Promise<T>): Promise<T>;
  /** The job is shown from now on, whatever becomes of it. */
  onShown(job: Job): void;
  /** Ends the reading. */
  signal: AbortSignal;
};

/**
 * Reads the whole list and stages its valid rows. 400 when it is empty or no column holds addresses; where the job was shown
 * already, that is in the job, which has failed.
 */
export async function previewImport(
  world: Pick<World, "db" | "clock" | "random" | "log">,
  orgId: string,
  upload: Upload,
  preview: Preview,
): Promise<Job> {
  const staging = openStaging(world, orgId, preview);
  const now = new Date(world.clock.now());
  const job = { id: staging.job_id, created_at: now, expires_at: new Date(now.getTime() + JOB_LIFE_MS) };
  await world.db.asOrg(orgId, (tx) => queries.insertJob(tx, orgId, job));
  try {
    if (preview.is_large) await show(staging);
    await preview.turn(() => readAll(staging, upload));
    const rows = await world.db.asOrg(orgId, (tx) =>
      queries.finishReading(tx, orgId, { now, id: job.id, found: staging.found }),
    );
    return rows[0] as Job;
  } catch (error) {
    if (staging.shown !== null) return fail(world, staging, error);
    await world.db.asOrg(orgId, (tx) => queries.deleteReading(tx, orgId, job.id));
    throw error;
  } finally {
    clearInterval(staging.shown ?? undefined);
  }
}

/** From now on the job answers how far its reading is; it does not wait for its own progress. */
async function show(staging: Staging): Promise<void> {
  const { world, org_id, job_id, found, preview } = staging;
  const at = { found, leaseSeconds: READING_LEASE_S };
  const note = () => world.db.asOrg(org_id, (tx) => queries.showReading(tx, org_id, job_id, at));
  await note();
  preview.onShown(await getImport(world, org_id, job_id));
  const noteLater = () => note().catch((err) => world.log.warn({ err }, "an import's progress could not be noted"));
  staging.shown = setInterval(noteLater, READING_NOTED_MS);
}

async function fail(world: Pick<World, "db" | "clock" | "log">, staging: Staging, error: unknown): Promise<Job> {
  const { org_id, job_id } = staging;
  if (!(error instanceof Refusal)) world.log.error({ err: error, job_id }, "a list could not be read");
  const message = error instanceof Refusal ? error.message : "reading the list broke off; preview it again";
  await world.db.asOrg(org_id, (tx) => queries.failReading(tx, org_id, job_id, message));
  return getImport(world, org_id, job_id);
}

function openStaging(world: Staging["world"], orgId: string, preview: Preview): Staging {
  const job_id = world.random.uuid();
  return {
    world,
    org_id: orgId,
    job_id,
    preview,
    shown: null,
    seen: createKeySet(world.random.bytes(4).readUInt32BE()),
    scopes: new Map(),
    block: createBlock(),
    found: {
      provider: "custom",
      total_rows: 0,
      valid_rows: 0,
      invalid_rows: 0,
      duplicate_rows: 0,
      already_suppressed_rows: 0,
      by_reason: { hard_bounce: 0, complaint: 0, manual: 0, unsubscribe: 0 },
      sample: [],
      errors: [],
      questions: [],
      block_count: 0,
    },
  };
}

async function readAll(staging: Staging, { content, provider, filename, field }: Upload): Promise<void> {
  const reader = createImportReader({ provider, filename, now_ms: staging.world.clock.now() });
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    await takeRows(staging, reader.push(piece), field);
  }
  await takeRows(staging, reader.end(), field);
  if (bytes === 0) throw invalid(field, `the '${field}' field is empty`);
  checkFormat(staging, reader, field);
  await storeBlock(staging);
  staging.found.questions = reader.asks().slice(0, QUESTIONS_MAX).map(questionOn);
  staging.found.provider = reader.format()?.provider ?? provider ?? "custom";
}

function questionOn(column: string) {
  const message =
    `what yes and no mean in '${column}' is not known: rows with a no there are not suppressed. ` +
    `If a yes means that the address must get no mail, name the column 'suppressed'; if it is about something else, ` +
    `leave it out. Then preview the list again`;
  return { column, message };
}

// Rows that could not even be split may be all there is; they are shown. Rows without an address column are the wrong file.
function checkFormat({ found }: Staging, reader: ImportReader, field: string): void {
  if (reader.format() !== null) return;
  if (found.total_rows > 0 && found.errors.every(({ value }) => value !== null)) return;
  throw invalid(
    field,
    `the '${field}' field has no column that holds e-mail addresses; name it 'email' in the first row`,
  );
}

/** One piece's rows (some hundreds); the awaits let other requests through. */
async function takeRows(staging: Staging, rows: readonly (ImportEntry | ImportError)[], field: string): Promise<void> {
  for (const row of rows) {
    staging.found.total_rows += 1;
    const error = "message" in row ? row : row.scopes.some(isOfRecord) && (await unknownScope(staging, row));
    if (error) noteError(staging.found, error);
    else noteEntry(staging, row as ImportEntry);
    if (isFull(staging.block)) await storeBlock(staging);
  }
  if (staging.preview.signal.aborted)
    throw new Refusal("unavailable", "Postern stopped while it read the list; preview it again");
  if (staging.shown === null && staging.found.total_rows > LARGE_ROWS) await show(staging);
  if (staging.found.total_rows > ROWS_MAX) {
    throw invalid(field, `the '${field}' field holds more than ${ROWS_MAX.toLocaleString("en")} rows; split the list`);
  }
  await nextTurn();
}

function isOfRecord({ scope_type }: Scope): boolean {
  return scope_type === "domain" || scope_type === "template";
}

/** As for an entry by hand: one for a domain or template that is not there would block nothing. Null when all are. */
async function unknownScope(staging: Staging, { row, scopes }: ImportEntry): Promise<ImportError | null> {
  for (const scope of scopes) {
    const { scope_type, scope_id } = scope;
    if (!isOfRecord(scope)) continue;
    const key = `${scope_type} ${scope_id}`;
    let isKnown = staging.scopes.get(key);
    if (isKnown === undefined) {
      const { world, org_id } = staging;
      const isAsked = staging.scopes.size < SCOPES_ASKED_MAX;
      isKnown = isAsked && (await world.db.asOrg(org_id, (tx) => isKnownScope(tx, org_id, scope)));
      if (isAsked) staging.scopes.set(key, isKnown);
    }
    const message = `'scope_id' is not the id of a ${scope_type} of yours`;
    if (!isKnown) return { row, column: "scope_id", value: scope_id, message };
  }
  return null;
}

function noteError(found: queries.Findings, error: JobError): void {
  found.invalid_rows += 1;
  if (found.errors.length < ERRORS_MAX) found.errors.push(error);
}

function noteEntry(staging: Staging, entry: ImportEntry): void {
  const { block, found } = staging;
  const strength = {
    rank: STRENGTH[entry.reason],
    until_ms: entry.expires_at === null ? null : Date.parse(entry.expires_at),
  };
  let is_duplicate = true;
  const scopes = entry.scopes.filter(({ scope_type, scope_id }) => {
    const added = staging.seen.add(`${entry.email}\n${scope_type}\n${scope_id}`, strength);
    if (added === "new") is_duplicate = false;
    return added !== "seen";
  });
  if (is_duplicate) found.duplicate_rows += 1;
  else noteValid(found, entry);
  // A duplicate with a stronger reason or a longer time is written as well: the order of a file's rows decides nothing.
  if (scopes.length > 0) addRow(block, { ...entry, is_duplicate }, scopes);
}

function noteValid(found: queries.Findings, entry: ImportEntry): void {
  found.valid_rows += 1;
  found.by_reason[entry.reason] += 1;
  if (found.sample.length < SAMPLE_MAX) found.sample.push(sampleOf(entry));
}

function sampleOf({ row, email, reason, scopes, bounce_code, diag_code, note }: ImportEntry): JobSample {
  const { scope_type, scope_id } = scopes[0] ?? { scope_type: "org" as const, scope_id: "" };
  return { row, email, reason, scope_type, scope_id: scope_id || null, bounce_code, diag_code, note };
}

async function storeBlock({ world, org_id, job_id, block, found }: Staging): Promise<void> {
  const { entry_count, rows } = block;
  if (entry_count === 0) return;
  const position = found.block_count;
  const stored = {
    job_id,
    position,
    row_count: rows.filter((row) => !row.is_duplicate).length,
    entry_count,
    entries: contents(block),
  };
  const known = await world.db.asOrg(org_id, async (tx) => {
    await queries.insertBlock(tx, org_id, stored);
    return queries.findSuppressedIn(tx, org_id, new Date(world.clock.now()), stored);
  });
  found.already_suppressed_rows += countRows(rows, new Set(known));
  found.block_count += 1;
  clear(block);
}

/** How many counted rows have all of their entries in `known`. */
function countRows(rows: BlockWriter["rows"], known: ReadonlySet<number>): number {
  let counted = 0;
  let at = 0;
  for (const { entry_count, is_duplicate } of rows) {
    let all = !is_duplicate;
    for (let entry = at; entry < at + entry_count; entry += 1) all &&= known.has(entry);
    if (all) counted += 1;
    at += entry_count;
  }
  return counted;
}

/** A job as it stands, with its progress. */
export async function getImport(world: Pick<World, "db" | "clock">, orgId: string, id: string): Promise<Job> {
  if (!isUuid(id)) throw notFound("job");
  const now = new Date(world.clock.now());
  const rows = await world.db.asOrg(orgId, (tx) => queries.findJob(tx, orgId, now, id));
  if (!rows[0]) throw notFound("job");
  return rows[0];
}

/** Hands a previewed job to the clock role; 409 in every other state. Of concurrent callers one succeeds. */
export async function commitImport(world: Pick<World, "db" | "clock">, orgId: string, id: string): Promise<Job> {
  if (!isUuid(id)) throw notFound("job");
  const now = new Date(world.clock.now());
  return world.db.asOrg(orgId, async (tx) => {
    const started = (await queries.startCommit(tx, orgId, now, id))[0];
    if (started) return started;
    const job = (await queries.findJob(tx, orgId, now, id))[0];
    if (!job) throw notFound("job");
    throw new Refusal("invalid_state", STATE_SENTENCES[job.status] ?? "the job cannot be committed now");
  });
}

const STATE_SENTENCES: Record<string, string> = {
  reading: "the list is still being read; commit the job when it is previewed",
  committing: "the job is being committed already",
  committed: "the job has been committed already",
  failed: "the job has failed; preview the list again",
  expired: "the job has expired; preview the list again",
};
