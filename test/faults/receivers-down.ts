// `receivers-down`: the receiver of the webhooks answers 500 for 36 hours (on a moved clock). Attempts come at 0, 1 min,
// 6 min, 36 min, 2 h 36, 10 h 36 and 34 h 36 (contract: retry policy); events of the first 84 minutes end as `failed` and
// can be replayed, all later ones arrive by themselves.
import { ask } from "../support/postern-process.ts";
import { judge } from "./drain.ts";
import { sendAll, sleep } from "./load.ts";
import type { ScenarioOptions } from "./round.ts";
import { type Stage, setStage } from "./stage.ts";

const EVENTS = 40;
const MINUTE_S = 60;
const HOUR_S = 3_600;
const DOWN_S = 36 * HOUR_S;
const OFFSETS_S = [0, 60, 6 * MINUTE_S, 36 * MINUTE_S, 2.6 * HOUR_S, 10.6 * HOUR_S, 34.6 * HOUR_S];
/** When each batch of events happens; 36 h − 34 h 36 = 84 min is where their fates part. */
const BATCHES_S = [0, 20 * MINUTE_S, 80 * MINUTE_S, 90 * MINUTE_S, 6 * HOUR_S, 30 * HOUR_S, 35.9 * HOUR_S];
/** Never early; late by the product's jitter (1 s an attempt), real time that passes, and this harness's own steps. */
const LATE_S_MAX = 45;
/** Attempts of the same batch differ by their jitter: one step finds them all. */
const STEP_S = 1;

export type ReceiversVerdict = {
  acknowledged: number;
  /** The e-mails that the events are about: those that did not arrive, and copies as everywhere. */
  lost: number;
  duplicates: number;
  flagged: number;
  events: number;
  failed_replayed: number;
  delivered_late: number;
  attempts_off_schedule: number;
  missing: number;
  ok: boolean;
};

/** Runs it; each round is a whole outage. */
export async function runReceiversDown({ rounds, sends = EVENTS, say }: ScenarioOptions): Promise<ReceiversVerdict> {
  const total: ReceiversVerdict = {
    acknowledged: 0,
    lost: 0,
    duplicates: 0,
    flagged: 0,
    events: 0,
    failed_replayed: 0,
    delivered_late: 0,
    attempts_off_schedule: 0,
    missing: 0,
    ok: true,
  };
  for (let round = 1; round <= rounds; round += 1) {
    const stage = await setStage();
    try {
      const one = await playOutage(stage, Math.max(1, Math.ceil(sends / BATCHES_S.length)));
      say?.(`round-${round}: ${JSON.stringify(one)}`);
      for (const name of Object.keys(one) as (keyof ReceiversVerdict)[]) {
        if (name === "ok") total.ok &&= one.ok;
        else total[name] += one[name];
      }
    } finally {
      await stage.close();
    }
  }
  return total;
}

/** When an event happened, and its attempts, in seconds since the outage began. */
type Story = { at_s: number; attempts_s: number[]; delivered: boolean };

async function playOutage(stage: Stage, perBatch: number): Promise<ReceiversVerdict> {
  const began = stage.now();
  const clock = (): number => (stage.now() - began) / 1000;
  const stories = new Map<string, Story>();
  stage.receiver.respond((request) => {
    const { event_id, timestamp } = JSON.parse(request.body.toString()) as { event_id: string; timestamp: string };
    const story = stories.get(event_id) ?? {
      at_s: (Date.parse(timestamp) - began) / 1000,
      attempts_s: [],
      delivered: false,
    };
    story.attempts_s.push(clock());
    story.delivered ||= clock() >= DOWN_S;
    stories.set(event_id, story);
    return { status: clock() < DOWN_S ? 500 : 200 };
  });
  const batches = [...BATCHES_S];
  for (let time = await nextTime(stage, began, batches); time !== null; time = await nextTime(stage, began, batches)) {
    if (time > clock()) stage.advance(Math.ceil(time - clock()));
    while (batches[0] !== undefined && batches[0] <= clock())
      await sendBatch(stage, batches.shift() as number, perBatch);
    await settle(stage);
  }
  const replayed = await replayFailed(stage, began);
  return judgeStories(stage, stories, replayed);
}

/** When something happens next: a batch of events, or an attempt; null when all is over. */
async function nextTime(stage: Stage, began: number, batches: number[]): Promise<number | null> {
  const [row] = await stage.rows<{ next_ms: number | null }>(
    "select extract(epoch from min(next_attempt_at))::float8 * 1000 as next_ms from webhook_queue",
  );
  const times = [...batches.slice(0, 1), ...(row?.next_ms ? [(row.next_ms - began) / 1000 + STEP_S] : [])];
  return times.length > 0 ? Math.min(...times) : null;
}

async function sendBatch(stage: Stage, time: number, count: number): Promise<void> {
  await sendAll({
    live_key: stage.settings.live_key,
    base_urls: [stage.settings.base_url],
    recorder: stage.recorder,
    name: `at-${time}`,
    count,
    from: `Shop <orders@${stage.domain}>`,
    recipient: (n) => `r${n}@recipient.example`,
  });
}

/** Until nothing is queued, and no webhook is due or under way. */
async function settle(stage: Stage): Promise<void> {
  const deadline = performance.now() + 30_000;
  for (let quiet = 0; quiet < 3; ) {
    const [row] = await stage.rows<{ busy: number }>(
      `select ((select count(*) from delivery)
             + (select count(*) from webhook_queue where next_attempt_at <= to_timestamp($1) or claim_id is not null))::int as busy`,
      [stage.now() / 1000],
    );
    quiet = row?.busy === 0 ? quiet + 1 : 0;
    if (performance.now() > deadline) throw new Error(`webhooks are due and not attempted: ${row?.busy}`);
    await sleep(60);
  }
}

/** Every endpoint's failed deliveries, once more; the receiver is up again. */
async function replayFailed(stage: Stage, began: number): Promise<number> {
  const failed = await ask(stage.settings, "GET", "/v1/webhook-deliveries?status=failed&limit=1");
  const list = await ask(stage.settings, "GET", "/v1/webhooks");
  const [hook] = list.body.webhooks as unknown as { id: string }[];
  const from = new Date(began - HOUR_S * 1000).toISOString();
  const answer = await ask(stage.settings, "POST", `/v1/webhooks/${hook?.id}/replay`, { from, status: "failed" });
  if (answer.status !== 202) throw new Error(`no replay: ${JSON.stringify(answer.body)}`);
  await settle(stage);
  return Number(failed.body.total);
}

async function judgeStories(stage: Stage, stories: Map<string, Story>, replayed: number): Promise<ReceiversVerdict> {
  const lastAttempt = OFFSETS_S.at(-1) as number;
  let offSchedule = 0;
  let late = 0;
  for (const { at_s, attempts_s, delivered } of stories.values()) {
    const isDoomed = at_s + lastAttempt < DOWN_S;
    const expected = OFFSETS_S.filter((_offset, index) => index === 0 || at_s + (OFFSETS_S[index - 1] ?? 0) < DOWN_S);
    const own = isDoomed ? attempts_s.slice(0, -1) : attempts_s; // the last one is the replay
    const isOnTime = own.every((at, index) => {
      const wanted = at_s + (expected[index] ?? Number.NaN);
      return at >= wanted - 1 && at <= wanted + LATE_S_MAX;
    });
    if (own.length !== expected.length || !isOnTime) offSchedule += 1;
    if (!isDoomed && delivered) late += 1;
  }
  const events = stories.size;
  const { acknowledged, lost, duplicates, flagged, ok: isMailWell } = await judge(stage);
  const missing = acknowledged - [...stories.values()].filter(({ delivered }) => delivered).length;
  const areEventsWell =
    events === acknowledged && missing === 0 && offSchedule === 0 && replayed > 0 && late === events - replayed;
  return {
    acknowledged,
    lost,
    duplicates,
    flagged,
    events,
    failed_replayed: replayed,
    delivered_late: late,
    attempts_off_schedule: offSchedule,
    missing,
    ok: isMailWell && areEventsWell,
  };
}
