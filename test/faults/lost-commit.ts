// `lost-commit`: a proxy between Postern and PostgreSQL cuts connections at their commits: before it, right behind it, and
// when it is done and nobody heard. Clients repeat with the same Idempotency-Key; every fact is there exactly once. A control
// run, whose client repeats without a key, must double mail: else the cuts would prove nothing.
import { type CommitProxy, type Cut, startCommitProxy } from "./commit-proxy.ts";
import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { playRound, type ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 2_000;
/** One in so many commits. */
const ONE_IN = 12;
const FATES: Cut[] = ["before", "sent", "answered", "answered"];
/** Outcomes and webhooks are still being committed when the last send is answered. */
const TAIL_MS = 1_000;

export type LostCommitVerdict = Verdict & {
  cuts: Record<Cut, number>;
  /** Cuts of the statement that accepts mail. */
  accepts_cut: number;
  /** E-mails with other than one row each: recipients, keys, final outcomes in the timeline, webhook deliveries. */
  rows_off: number;
  /** What quota and statistics counted beyond, or short of, what was acknowledged. */
  counted_off: number;
  /** E-mails that the careless client of the control run has twice. */
  control_doubled: number;
};

/** Runs it, the control last; `ok` also asks that commits of every kind were cut. */
export async function runLostCommit(options: ScenarioOptions): Promise<LostCommitVerdict> {
  const { rounds, seed, sends = SENDS, say } = options;
  const chance = chanceOf(seed);
  const held: { proxy?: CommitProxy } = {};
  const stage = await setStage({
    async reach(postgres) {
      held.proxy = await startCommitProxy(postgres);
      return held.proxy.url;
    },
  });
  const proxy = held.proxy as CommitProxy;
  try {
    stage.sink.think(() => chance.between(0, 20));
    const play = (name: string, careless: boolean) =>
      playRound(stage, {
        name,
        sends,
        pause_ms: 5,
        careless,
        during: (isLoading) => cutWhile(proxy, chance, isLoading),
        ...(say ? { say } : {}),
      });
    const verdicts: Verdict[] = [];
    for (let round = 1; round <= rounds; round += 1) verdicts.push((await play(`round-${round}`, false)).verdict);
    say?.(`cut: ${JSON.stringify(Object.fromEntries(proxy.statements))}`);
    const judged = await judgeRows(stage, sumUp(verdicts), proxy);
    const control = await play("control", true);
    const control_doubled = control.verdict.extra - judged.extra;
    return { ...judged, control_doubled, ok: judged.ok && control_doubled > 0 };
  } finally {
    await stage.close();
    await proxy.stop();
  }
}

async function cutWhile(proxy: CommitProxy, chance: Chance, isLoading: () => boolean): Promise<void> {
  proxy.decide(() => (chance.between(1, ONE_IN) === 1 ? chance.pick(FATES) : null));
  while (isLoading()) await sleep(50);
  await sleep(TAIL_MS);
  proxy.decide(() => null);
}

const EXACTLY_ONCE = `
  with hooks as (
    select convert_from(e.body, 'UTF8')::jsonb->>'email_id' as id, count(*) as rows
      from webhook_delivery w join webhook_event e on e.org_id = w.org_id and e.id = w.event_id
     where w.event = 'email.delivered' group by 1),
  outcomes as (select message_id, count(*) as rows from event where event_type = 'delivered' group by 1),
  recipients as (select message_id, count(*) as rows from recipient group by 1),
  keys as (select key, count(*) as rows from idempotency group by 1)
  select count(*)::int as off
    from message m
    left join hooks on hooks.id = m.id::text
    left join outcomes on outcomes.message_id = m.id
    left join recipients on recipients.message_id = m.id
    left join keys on keys.key = m.metadata->>'key'
   where (hooks.rows, outcomes.rows, recipients.rows, keys.rows) is distinct from (1::bigint, 1::bigint, 1::bigint, 1::bigint)`;

const COUNTED = `
  select (select coalesce(sum(used), 0) from allowance where kind = 'monthly_quota')::int as quota,
         (select coalesce(sum(total_delivered), 0) from stat where span = 'day')::int as delivered`;

async function judgeRows(stage: Stage, summed: Verdict, proxy: CommitProxy) {
  const [rows] = await stage.rows<{ off: number }>(EXACTLY_ONCE);
  const [counted] = await stage.rows<{ quota: number; delivered: number }>(COUNTED);
  const rows_off = rows?.off ?? Number.NaN;
  const off = (count = Number.NaN) => Math.abs(count - summed.acknowledged);
  const counted_off = off(counted?.quota) + off(counted?.delivered);
  const accepts_cut = [...proxy.statements].reduce((all, [name, n]) => all + (name.startsWith("with") ? n : 0), 0);
  const cuts = { ...proxy.cuts };
  const wasTried = Object.values(cuts).every((count) => count > 0) && accepts_cut > 0;
  return {
    ...summed,
    cuts,
    accepts_cut,
    rows_off,
    counted_off,
    ok: summed.ok && wasTried && rows_off === 0 && counted_off === 0,
  };
}
