// `backup`: a backup is made while mail is sent and received; then the machine is lost, in the middle of its mail. The backup is
// restored into another cluster and another data folder. Every row is compared with those of the moment of the backup, every
// large body with its name; nothing that was acknowledged before is missing. The original was never paused, the restored one
// is until the operator says `resume`, and not again after a restart.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type pg from "pg";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/platform/postgres/embedded-postgres.ts";
import { freePort } from "../support/free-port.ts";
import { inheritedEnv } from "../support/inherited-env.ts";
import { ask, type Posterns, startPostern } from "../support/postern-process.ts";
import { connectToRows, digestTables } from "../support/table-digests.ts";
import { until } from "../support/until.ts";
import type { Figures } from "./line.ts";
import { sendAll, sleep } from "./load.ts";
import { mailIn, sendMailIn, startReceiving } from "./mail-in.ts";
import type { Acknowledged } from "./recorder.ts";
import type { ScenarioOptions } from "./round.ts";
import { chanceOf } from "./seeded.ts";
import { type Role, type Stage, setStage } from "./stage.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const SENDS = 3_000;
/** Accepted before the backup, and due when the original is no more. */
const LATER = 100;
const LATER_S = 7_200;
const PASSPHRASE = "words for a backup";
const ROLES: Role[] = ["api", "mta", "hooks", "clock"];
/** More than a look of the guard and a claim. */
const STILL_MS = 4_000;
const ARRIVES_WITHIN_MS = 180_000;

type Made = {
  rows: number;
  tables: number;
  bodies: number;
  bodies_missing: number;
  stored_bytes: number;
  seconds: number;
};

export type BackupVerdict = Figures & {
  /** Acknowledged by 202 or 250 before the backup began, and not in what was restored. */
  missing: number;
  /** Tables whose rows are not those of the moment of the backup. */
  different: string[];
  bodies_different: number;
  /** One mail that was taken away on purpose was noticed. */
  control_found: boolean;
  received: number;
  /** What `/readyz` of each said of sending. */
  pauses: { original: boolean; restored: boolean; after_resume: boolean };
  /** Mail that left the restored database while it should not. */
  left_while_paused: number;
  backup: Made;
  restore_seconds: number;
};

/** Plays it once a round; the figures are sums, the details those of the last. */
export async function runBackup({ rounds, seed, sends = SENDS, say }: ScenarioOptions): Promise<BackupVerdict> {
  const verdicts: BackupVerdict[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const verdict = await playOnce(sends, seed + round);
    say?.(JSON.stringify(verdict));
    verdicts.push(verdict);
  }
  const sum = (name: "acknowledged" | "lost" | "duplicates" | "flagged" | "missing" | "received"): number =>
    verdicts.reduce((total, verdict) => total + verdict[name], 0);
  const last = verdicts.at(-1) as BackupVerdict;
  return {
    ...last,
    ...{ acknowledged: sum("acknowledged"), lost: sum("lost"), duplicates: sum("duplicates") },
    ...{ flagged: sum("flagged"), missing: sum("missing"), received: sum("received") },
    ok: verdicts.every(({ ok }) => ok),
  };
}

async function playOnce(sends: number, seed: number): Promise<BackupVerdict> {
  const stage = await setStage({ roles: ROLES, env: { POSTERN_BACKUP_PASSPHRASE: PASSPHRASE } });
  try {
    await startReceiving(stage);
    const chance = chanceOf(seed);
    stage.sink.think(() => chance.between(0, 200));
    const taken = await loadAndBackUp(stage, sends);
    const pausedOriginal = await isPaused(String(stage.settings.env.POSTERN_INTERNAL));
    for (const name of stage.processes.keys()) await stage.kill(name);
    const cluster = await startEmbeddedPostgres({ data_dir: folder(stage, "another-cluster") });
    try {
      return await restoreAndGoOn(stage, cluster, taken, pausedOriginal);
    } finally {
      await cluster.stop();
    }
  } finally {
    await stage.close();
  }
}

function folder(stage: Stage, name: string): string {
  const path = join(stage.dir, name);
  mkdirSync(path, { mode: 0o711 });
  return path;
}

// The original ---------------------------------------------------------------------------------------------------------

type Taken = {
  file: string;
  made: Made;
  /** The rows as the backup saw them. */
  tables: Record<string, string>;
  sent: Acknowledged[];
  received: Acknowledged[];
};

async function loadAndBackUp(stage: Stage, sends: number): Promise<Taken> {
  // One process whose health is asked: where it says that it is paused, they all are.
  await stage.stop("mta");
  await stage.start("mta", "mta", { POSTERN_INTERNAL: String(stage.settings.env.POSTERN_INTERNAL) });
  await acceptForLater(stage);
  const mail = mailIn(stage, { name: "in", count: 200, connections: 4, pause_ms: 30 });
  let isLoading = true;
  const load = sendAll({
    live_key: stage.settings.live_key,
    base_urls: [stage.settings.base_url],
    recorder: stage.recorder,
    name: "out",
    count: sends,
    from: `Shop <orders@${stage.domain}>`,
    recipient: (n) => `r${n}@d${n % 40}.recipients.example`,
    pause_ms: 80, // 200 a second
  }).finally(() => {
    isLoading = false;
  });
  const receiving = sendMailIn(mail, () => isLoading);
  await until("a third was sent", () => stage.recorder.total() > LATER + sends / 3 && mail.recorder.total() > 20);
  const backedUp = backUpAtOneMoment(stage, () => ({
    sent: [...stage.recorder.all()],
    received: [...mail.recorder.all()],
  }));
  const [taken] = await Promise.all([backedUp, load, receiving]);
  return taken;
}

async function acceptForLater(stage: Stage): Promise<void> {
  for (let n = 0; n < LATER; n += 1) {
    const { status, body } = await ask(stage.settings, "POST", "/v1/send", {
      from: `Shop <orders@${stage.domain}>`,
      to: [`later${n}@recipient.example`],
      subject: `Later ${n}`,
      text_body: n % 20 === 0 ? "A large one. ".repeat(30_000) : "It waits.",
      scheduled_at: new Date(Date.now() + LATER_S * 1000).toISOString(),
    });
    if (status !== 202) throw new Error(`later ${n}: ${status} ${JSON.stringify(body)}`);
    await stage.recorder.keep({ key: `later-${n}`, id: String(body.id), message_id: String(body.message_id) });
  }
}

/**
 * All processes stand still until the backup has its snapshot and our own connection has another: both see the same rows.
 * Then everything goes on, while the backup is written.
 */
async function backUpAtOneMoment(stage: Stage, acknowledged: () => Pick<Taken, "sent" | "received">): Promise<Taken> {
  const file = join(stage.dir, "taken.postern");
  const moment = await connectToRows(stage.postgres.url);
  const signal = (name: NodeJS.Signals) => {
    for (const { child } of stage.processes.values()) child.kill(name);
  };
  const before = acknowledged();
  signal("SIGSTOP");
  try {
    await until("no statement runs", async () => (await statements(stage, "%")).length === 0);
    let isMade = false;
    const making = command(["backup", file, "--json"], stage.settings.env).finally(() => {
      isMade = true;
    });
    try {
      await until("it copies rows", async () => isMade || (await statements(stage, "copy %")).length > 0);
      await moment.query("begin isolation level repeatable read, read only");
      await moment.query("select 1 from organization");
    } finally {
      signal("SIGCONT");
    }
    const tables = await digestTables(moment);
    return { file, made: JSON.parse(await making) as Made, tables, ...before };
  } finally {
    signal("SIGCONT");
    await moment.end();
  }
}

/** What is under way; of a transaction that waits for a process that stands still nobody sees anything. */
async function statements(stage: Stage, like: string): Promise<unknown[]> {
  return await stage.rows(
    `select pid from pg_stat_activity where datname = 'postern' and pid <> pg_backend_pid() and state = 'active'
        and backend_type = 'client backend' and query ilike $1`,
    [like],
  );
}

// The restored one -----------------------------------------------------------------------------------------------------

async function restoreAndGoOn(
  stage: Stage,
  cluster: EmbeddedPostgres,
  taken: Taken,
  pausedOriginal: boolean,
): Promise<BackupVerdict> {
  const settings = await elsewhere(stage, cluster);
  const restored = JSON.parse(await command(["restore", taken.file, "--json"], settings.env)) as { seconds: number };
  const rows = await connectToRows(cluster.url);
  try {
    const different = await differences(rows, taken);
    const missing = await countMissing(rows, taken);
    const control_found = await isOneMissingFound(rows, taken);
    const bodies_different = await countOtherBodies(rows, String(settings.env.POSTERN_DATA));
    const gone = await goOn(stage, settings, rows, taken);
    const { lost, duplicates, flagged } = await judgeCopies(stage, rows, taken);
    const pauses = { original: pausedOriginal, restored: gone.wasPaused, after_resume: gone.pausesAgain };
    const isRight = !pauses.original && pauses.restored && !pauses.after_resume && gone.left_while_paused === 0;
    const isWhole = missing + different.length + bodies_different + lost + taken.made.bodies_missing === 0;
    return {
      acknowledged: taken.sent.length,
      ...{ lost, duplicates, flagged, missing, different, bodies_different, control_found },
      ...{ received: taken.received.length },
      ...{ pauses, left_while_paused: gone.left_while_paused, backup: taken.made, restore_seconds: restored.seconds },
      ok:
        isWhole &&
        isRight &&
        control_found &&
        duplicates === flagged &&
        taken.made.bodies > 0 &&
        taken.received.length > 0,
    };
  } finally {
    await rows.end();
  }
}

/** Another machine: a data folder that holds the operator's copy of the master key alone. */
async function elsewhere(stage: Stage, cluster: EmbeddedPostgres): Promise<Posterns> {
  const data = folder(stage, "another-data");
  copyFileSync(join(String(stage.settings.env.POSTERN_DATA), "master.key"), join(data, "master.key"));
  const http = `127.0.0.1:${await freePort()}`;
  const env = {
    ...stage.settings.env,
    ...{ POSTERN_DATA: data, DATABASE_URL: cluster.url, POSTERN_HTTP: http },
    POSTERN_INTERNAL: `127.0.0.1:${await freePort()}`,
    POSTERN_MX: `127.0.0.1:${await freePort()}`,
    POSTERN_SUBMISSION: `127.0.0.1:${await freePort()}`,
  };
  return { ...stage.settings, base_url: `http://${http}`, env };
}

async function differences(rows: pg.Client, { tables }: Taken): Promise<string[]> {
  const is = await digestTables(rows);
  const names = new Set([...Object.keys(tables), ...Object.keys(is)]);
  return [...names].filter((name) => tables[name] !== is[name]);
}

/** The control: shows that one mail that is missing would be noticed. */
async function isOneMissingFound(rows: pg.Client, taken: Taken): Promise<boolean> {
  await rows.query("begin");
  await rows.query("delete from message where id = $1", [taken.sent[0]?.id]);
  const found = (await differences(rows, taken)).includes("message") && (await countMissing(rows, taken)) === 1;
  await rows.query("rollback");
  return found;
}

async function countMissing(rows: pg.Client, { sent, received }: Taken): Promise<number> {
  let missing = 0;
  for (const [table, acknowledged] of [
    ["message", sent],
    ["inbound_email", received],
  ] as const) {
    const ids = acknowledged.map(({ id }) => id);
    const found = await rows.query(`select distinct id from ${table} where id = any($1::uuid[])`, [ids]);
    missing += ids.length - found.rows.length;
  }
  return missing;
}

/** Every body that a row names is in the data folder, and is what its name says. */
async function countOtherBodies(rows: pg.Client, data: string): Promise<number> {
  const columns = await rows.query<{ name: string; column: string }>(
    `select table_name::text as name, column_name::text as column from information_schema.columns
        join pg_class on relname = table_name and relkind in ('r', 'p') and not relispartition
      where table_schema = 'public' and column_name = 'blob_key'`,
  );
  const keys = new Set<string>();
  for (const { name, column } of columns.rows) {
    const found = await rows.query<{ key: string }>(
      `select distinct ${column} as key from ${name} where ${column} is not null`,
    );
    for (const { key } of found.rows) keys.add(key);
  }
  return [...keys].filter((key) => digestOf(join(data, "blobs", key.slice(0, 2), key.slice(2, 4), key)) !== key).length;
}

function digestOf(path: string): string | null {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  } catch {
    return null;
  }
}

/** As the runbook says: it is paused; what has left from the original is cancelled; resume; what waited leaves. */
async function goOn(stage: Stage, settings: Posterns, rows: pg.Client, { sent }: Taken) {
  const internal = String(settings.env.POSTERN_INTERNAL);
  const first = await startPostern(settings);
  const before = stage.sink.received();
  const wasPaused = await isPaused(internal);
  await sleep(STILL_MS);
  const left_while_paused = stage.sink.received() - before;
  await cancelWhatLeft(stage, settings, rows, sent);
  await command(["resume"], settings.env);
  await until("it goes on", async () => !(await isPaused(internal)));
  await first.stop();
  const second = await startPostern(settings);
  try {
    stage.advance(LATER_S);
    await until("what waited arrives", () => sent.every((mail) => copiesOf(stage, mail) > 0), ARRIVES_WITHIN_MS).catch(
      () => undefined, // it is counted as lost
    );
    await sleep(STILL_MS); // what would be sent twice
    return { wasPaused, left_while_paused, pausesAgain: await isPaused(internal) };
  } finally {
    await second.stop();
  }
}

async function cancelWhatLeft(stage: Stage, settings: Posterns, rows: pg.Client, sent: Acknowledged[]): Promise<void> {
  const queued = await rows.query<{ id: string }>("select distinct message_id as id from delivery");
  const waits = new Set(queued.rows.map(({ id }) => id));
  for (const mail of sent.filter((one) => waits.has(one.id) && copiesOf(stage, one) > 0)) {
    await ask(settings, "POST", `/v1/emails/${mail.id}/cancel`);
  }
}

async function judgeCopies(stage: Stage, rows: pg.Client, { sent }: Taken) {
  const doubts = await rows.query<{ id: string; n: number }>(
    "select message_id as id, count(*)::int as n from event where event_type = 'ambiguous' group by message_id",
  );
  const doubtsOf = new Map(doubts.rows.map(({ id, n }) => [id, n]));
  const found = { lost: 0, duplicates: 0, flagged: 0 };
  for (const mail of sent) {
    const copies = copiesOf(stage, mail);
    if (copies === 0) found.lost += 1;
    found.duplicates += Math.max(0, copies - 1);
    found.flagged += Math.min(Math.max(0, copies - 1), doubtsOf.get(mail.id) ?? 0);
  }
  return found;
}

function copiesOf(stage: Stage, { message_id }: Acknowledged): number {
  return stage.sink.copies.get(message_id) ?? 0;
}

// Asking -----------------------------------------------------------------------------------------------------------------

async function isPaused(internal: string): Promise<boolean> {
  const response = await fetch(`http://${internal}/readyz`);
  const reported = (await response.json()) as { sending?: string };
  if ((response.status !== 200) !== (reported.sending === "paused"))
    throw new Error(`not ready: ${JSON.stringify(reported)}`);
  return reported.sending === "paused";
}

async function command(args: string[], env: Record<string, string>): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [MAIN, ...args], {
    env: { ...inheritedEnv(), ...env },
  });
  return stdout.trim();
}
