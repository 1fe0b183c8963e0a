// `copies`: the truth table of docs/decisions/0017-restored-backups.md, row by row, with real PostgreSQL and real files: what
// a restored or copied database does beside or after its original, and what a failover, a moved folder or a chown does not
// set off. In every row mail was sent, mail waits in the queue when the copy is made, and the original sends that mail.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { inheritedEnv } from "../support/inherited-env.ts";
import { apiOf, ask } from "../support/postern-process.ts";
import { emailWithStatus } from "../support/stories.ts";
import { until } from "../support/until.ts";
import { COPY_ROWS, type CopyRow } from "./copies-rows.ts";
import { copiesOf, type Site, setTheatre, type Theatre } from "./copies-stage.ts";
import { Lacking } from "./lacking.ts";
import type { Figures } from "./line.ts";
import { sleep } from "./load.ts";
import type { ScenarioOptions } from "./round.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
/** More than a look of the guard and a claim. */
const STILL_MS = 4_000;

type Played = {
  row: string;
  expected: CopyRow["expected"];
  seen: string;
  reason: string | null;
  accepted: number;
  doubled: number;
  stuck: number;
  ok: boolean;
};

export type CopiesVerdict = Figures & { doubled: number; stuck: number; rows: Played[] };

/** Plays every row once a round. */
export async function runCopies({ rounds, say }: ScenarioOptions): Promise<CopiesVerdict> {
  const rows: Played[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    for (const row of COPY_ROWS) {
      const played = await playRow(row);
      rows.push(played);
      say?.(
        `${played.ok ? "as written" : "NOT AS WRITTEN"}: ${row.name}: ${played.seen}${played.reason ? ` (${played.reason})` : ""}`,
      );
    }
  }
  const sum = (name: "accepted" | "doubled" | "stuck"): number => rows.reduce((total, row) => total + row[name], 0);
  const [doubled, stuck] = [sum("doubled"), sum("stuck")];
  const ok = rows.length > 0 && rows.every((row) => row.ok);
  return { acknowledged: sum("accepted"), lost: stuck, duplicates: doubled, flagged: 0, doubled, stuck, rows, ok };
}

async function playRow(row: CopyRow): Promise<Played> {
  const t = await setTheatre();
  const reported = { row: row.name, expected: row.expected };
  try {
    const { copy, end } = await row.play(t);
    try {
      const { seen, reason } = await judge(t, copy);
      const doubled = t.accepted.reduce((sum, mail) => sum + Math.max(0, copiesOf(t.sink, mail) - 1), 0);
      const stuck = t.accepted.filter((mail) => copiesOf(t.sink, mail) === 0).length;
      const ok = seen === row.expected && doubled + stuck === 0;
      return { ...reported, seen, reason, accepted: t.accepted.length, doubled, stuck, ok };
    } finally {
      await end?.();
    }
  } catch (error) {
    if (error instanceof Lacking) throw error;
    const reason = (error as Error).message;
    return { ...reported, seen: "error", reason, accepted: t.accepted.length, doubled: 0, stuck: 0, ok: false };
  } finally {
    await t.close();
  }
}

/**
 * Finds whether a copy sends. Where it is paused it must say so, take mail and keep it; the operator then does what the runbook
 * says: what has left from the original is cancelled, the rest goes on.
 */
async function judge(t: Theatre, copy: Site): Promise<{ seen: string; reason: string | null }> {
  const waiting = t.accepted.filter((mail) => copiesOf(t.sink, mail) === 0);
  const before = t.sink.received();
  const mail = await t.send(copy);
  const ready = await readiness(copy);
  if (ready.status === 200) {
    await t.arrived([...waiting, mail]);
    await sleep(STILL_MS); // what would be sent twice
    return { seen: "goes on", reason: null };
  }
  if (ready.reported.sending !== "paused") throw new Error(`not ready, and not paused: ${JSON.stringify(ready)}`);
  await sleep(STILL_MS);
  if (t.sink.received() !== before) return { seen: "pauses and sends", reason: ready.reported.reason };
  for (const { id } of t.accepted.slice(0, -1)) {
    const { body } = await ask(copy.settings, "GET", `/v1/emails/${id}`);
    if ((body.email as unknown as { status?: string })?.status === "queued")
      await ask(copy.settings, "POST", `/v1/emails/${id}/cancel`);
  }
  await promisify(execFile)(process.execPath, [MAIN, "resume"], {
    env: { ...inheritedEnv(), ...copy.settings.env },
  });
  await emailWithStatus(apiOf(copy.settings), mail.id, ["delivered"]);
  await until("it is ready again", async () => (await readiness(copy)).status === 200);
  return { seen: "pauses", reason: ready.reported.reason };
}

type Reported = { status: string; sending?: string; reason: string };

async function readiness({ settings }: Site): Promise<{ status: number; reported: Reported }> {
  const response = await fetch(`http://${settings.env.POSTERN_INTERNAL}/readyz`);
  return { status: response.status, reported: (await response.json()) as Reported };
}
