// `lost-commit`: a proxy between Postern and PostgreSQL cuts connections at their commits: before it, right behind it, and
// when it is done and nobody got the answer. Clients repeat with the same Idempotency-Key; every fact is there exactly once. In the
// end a fact is taken away and one is counted twice, which the comparison must find: else it would prove nothing.
import { type CommitProxy, type Cut, startCommitProxy } from "./commit-proxy.ts";
import { sumUp, type Verdict } from "./drain.ts";
import { sleep } from "./load.ts";
import { type ReceiveVerdict, startReceiving, sumUpMailIn } from "./mail-in.ts";
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
  /** Whether the comparison finds what is wrong on purpose. */
  control_found: boolean;
};

/** Runs it; `ok` also asks that commits of every kind were cut. */
export async function runLostCommit(
  options: ScenarioOptions,
): Promise<LostCommitVerdict & { received: ReceiveVerdict }> {
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
    await startReceiving(stage);
    const verdicts: Verdict[] = [];
    const mail: ReceiveVerdict[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const { verdict, received } = await playRound(stage, {
        name: `round-${round}`,
        sends,
        pause_ms: 5,
        receives: true,
        during: (isLoading) => cutWhile(proxy, chance, isLoading),
        ...(say ? { say } : {}),
      });
      verdicts.push(verdict);
      if (received) mail.push(received);
    }
    say?.(`cut: ${JSON.stringify(Object.fromEntries(proxy.statements))}`);
    return { ...(await judgeAll(stage, sumUp(verdicts), proxy)), received: sumUpMailIn(mail) };
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

type Off = { rows_off: number; counted_off: number };

async function compare(stage: Stage, acknowledged: number): Promise<Off> {
  const [rows] = await stage.rows<{ off: number }>(EXACTLY_ONCE);
  const [counted] = await stage.rows<{ quota: number; delivered: number }>(COUNTED);
  const off = (count = Number.NaN) => Math.abs(count - acknowledged);
  return { rows_off: rows?.off ?? Number.NaN, counted_off: off(counted?.quota) + off(counted?.delivered) };
}

/** One outcome is missing from the timeline, one recipient counts twice. */
async function spoil(stage: Stage): Promise<void> {
  await stage.rows(
    "delete from event where id = (select min(id::text)::uuid from event where event_type = 'delivered')",
  );
  await stage.rows(
    "update allowance set used = used + 1 where (scope_id, starts_at) = (select scope_id, starts_at from allowance where kind = 'monthly_quota' limit 1) and kind = 'monthly_quota'",
  );
}

async function judgeAll(stage: Stage, summed: Verdict, proxy: CommitProxy): Promise<LostCommitVerdict> {
  const found = await compare(stage, summed.acknowledged);
  await spoil(stage);
  const spoilt = await compare(stage, summed.acknowledged);
  const control_found = spoilt.rows_off === found.rows_off + 1 && spoilt.counted_off === found.counted_off + 1;
  const accepts_cut = [...proxy.statements].reduce((all, [name, n]) => all + (name.startsWith("with m") ? n : 0), 0);
  const wasTried = Object.values(proxy.cuts).every((count) => count > 0) && accepts_cut > 0;
  const isExact = found.rows_off === 0 && found.counted_off === 0;
  return {
    ...summed,
    cuts: proxy.cuts,
    accepts_cut,
    ...found,
    control_found,
    ok: summed.ok && wasTried && isExact && control_found,
  };
}
