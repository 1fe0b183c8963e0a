// `stalled-node`: a sending process is stopped (SIGSTOP) for longer than its lease, with mail on the wire, while another one
// takes over; woken again, what it still writes touches no row, and what it had sent is shown in the timeline. The database
// itself tells which process touched which delivery (a trigger, and application_name); the process's log, what it tried.
import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { type ReceiveVerdict, startReceiving, sumUpMailIn } from "./mail-in.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 1_500;
/** A lease is over after 30 s. */
const STALL_MS = 38_000;
/** So many messages wait for their last answer when the process is stopped; both processes send. */
const WAITING = 12;
const ANSWER_MS = 1_500;
/** Until the other process has finished some of what the stopped one held. */
const TAKE_OVER_MS_MAX = 60_000;
/** Until a woken process has tried to write what it held. */
const LATE_MS_MAX = 15_000;
const NODES = ["mta", "second"] as const;

export type StalledVerdict = Verdict & {
  taken_over: number;
  in_doubt: number;
  /** Outcomes that a woken process wrote too late, as it says itself, and the rows that they changed. */
  late_results: number;
  late_rows: number;
  /** Of the mail that came in meanwhile. */
  received: ReceiveVerdict;
};

/** Runs it; `ok` also asks that the other node really took over while the first was stopped, and that it wrote late. */
export async function runStalledNode({ rounds, seed, sends = SENDS, say }: ScenarioOptions): Promise<StalledVerdict> {
  const chance = chanceOf(seed);
  const stage = await setStage({ roles: ["api", "hooks"] });
  try {
    await startReceiving(stage);
    await watchRows(stage);
    for (const name of NODES) await stage.start("mta", name, { DATABASE_URL: under(name, stage.postgres.url) });
    stage.sink.think(() => chance.between(5, 40));
    const verdicts: Verdict[] = [];
    const mail: ReceiveVerdict[] = [];
    const stalls: Stall[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const name = NODES[(round + 1) % 2] as string;
      const during = async (isLoading: () => boolean) =>
        void stalls.push(await stallOne(stage, { chance, name, isLoading }));
      const { verdict, received } = await playRound(stage, {
        name: `round-${round}`,
        sends,
        pause_ms: 20,
        receives: true,
        during,
        ...(say ? { say } : {}),
      });
      verdicts.push(verdict);
      if (received) mail.push(received);
    }
    const [doubts] = await stage.rows<{ total: number }>(
      "select count(*)::int as total from event where event_type = 'ambiguous'",
    );
    const summed = sumUp(verdicts);
    const received = sumUpMailIn(mail);
    const taken_over = stalls.filter(({ isTakenOver }) => isTakenOver).length;
    const late_results = NODES.reduce((sum, name) => sum + droppedBy(stage, name), 0);
    const late_rows = await countLate(stage, stalls);
    const wasMet = taken_over === rounds && late_results > 0;
    return {
      ...summed,
      ok: summed.ok && received.ok && wasMet && late_rows === 0,
      taken_over,
      in_doubt: doubts?.total ?? 0,
      late_results,
      late_rows,
      received,
    };
  } finally {
    await stage.close();
  }
}

/** The address of the database for a process that goes by a name of its own there. */
function under(name: string, databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.searchParams.set("application_name", name);
  return url.href;
}

/** Who changed a row of the queue or of its recipients, and when. */
async function watchRows(stage: Stage): Promise<void> {
  await stage.rows("create table touched (by_name text, message_id uuid, at timestamptz)");
  await stage.rows(`create function note_touched() returns trigger language plpgsql security definer as $$
    begin
      insert into touched values
        (current_setting('application_name'), case tg_op when 'DELETE' then old.message_id else new.message_id end,
         clock_timestamp());
      return null;
    end $$`);
  for (const table of ["delivery", "recipient"]) {
    await stage.rows(`create trigger watched after insert or update or delete on ${table}
      for each row execute function note_touched()`);
  }
}

/** What a process held when it was stopped and others had finished when it was woken, at the database's time. */
type Stall = { name: string; isTakenOver: boolean; message_ids: string[]; woken_at: Date };

type Plan = { chance: Chance; name: string; isLoading(): boolean };

async function stallOne(stage: Stage, { chance, name, isLoading }: Plan): Promise<Stall> {
  await sleep(chance.between(200, 1_000));
  const stalled = stage.processes.get(name);
  if (!stalled) throw new Error(`${name} does not run`);
  stage.sink.think(() => ANSWER_MS);
  const before = stage.sink.received();
  while (isLoading() && stage.sink.received() < before + WAITING) await sleep(2);
  stalled.child.kill("SIGSTOP");
  stage.sink.think(() => chance.between(5, 40));
  const held = await stage.rows<{ message_id: string }>(
    "select message_id from delivery where owner = (select id from node where pid = $1)",
    [stalled.pid],
  );
  await sleep(STALL_MS);
  const ids = held.map(({ message_id }) => message_id);
  let seen = await seenOf(stage, stalled.pid, ids);
  // On a slow machine the other has taken over and not finished any of it yet: then a late write could not be seen.
  const takenOverBy = performance.now() + TAKE_OVER_MS_MAX;
  while (seen.done.length === 0 && performance.now() < takenOverBy) {
    await sleep(500);
    seen = await seenOf(stage, stalled.pid, ids);
  }
  const reported = droppedBy(stage, name);
  stalled.child.kill("SIGCONT");
  const until = performance.now() + LATE_MS_MAX;
  while (droppedBy(stage, name) === reported && performance.now() < until) await sleep(100);
  return { name, isTakenOver: seen.nodes === 0, message_ids: seen.done, woken_at: seen.now };
}

/** Whether the stopped process still counts as a node, what of its messages is finished, and the database's time. */
async function seenOf(stage: Stage, pid: number | undefined, ids: string[]) {
  const [row] = await stage.rows<{ nodes: number; done: string[]; now: Date }>(
    `select (select count(*) from node where pid = $1)::int as nodes, clock_timestamp() as now,
            array(select id::text from unnest($2::uuid[]) as id
                   where not exists (select 1 from delivery d where d.message_id = id)) as done`,
    [pid, ids],
  );
  if (!row) throw new Error("no row");
  return row;
}

/** Outcomes that found no row of theirs any more, as the process tells (src/outbound/path/finish.ts). */
function droppedBy(stage: Stage, name: string): number {
  const reported =
    stage.processes
      .get(name)
      ?.output()
      .matchAll(/"dropped":(\d+)/g) ?? [];
  return [...reported].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Rows that the woken changed of what others had finished. NaN when the database did not see it write at all. */
async function countLate(stage: Stage, stalls: Stall[]): Promise<number> {
  let late = 0;
  for (const { name, message_ids, woken_at } of stalls) {
    const [row] = await stage.rows<{ late: number; seen: number }>(
      `select count(*)::int as seen, (count(*) filter (where at > $2 and message_id = any($3::uuid[])))::int as late
         from touched where by_name = $1`,
      [name, woken_at, message_ids],
    );
    late += row && row.seen > 0 && message_ids.length > 0 ? row.late : Number.NaN;
  }
  return late;
}
