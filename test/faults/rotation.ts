// `rotation`: signing secrets of a webhook are rotated while events go out: with a grace, over its edge (moved clock), with
// none, and twice within one grace. Every request is checked by the time in its own signature: two `v1` while the grace
// lasts, one before and after, by the right secrets, never none.
import { createHmac } from "node:crypto";
import { ask } from "../support/postern-process.ts";
import type { SinkRequest } from "../support/webhook-sink.ts";
import { drain, judge, sumUp, type Verdict } from "./drain.ts";
import { sendAll } from "./load.ts";
import type { ScenarioOptions } from "./round.ts";
import { type Stage, setStage } from "./stage.ts";

/** Of each of the stories; at some 25 a second they take longer than the 4 s around an edge. */
const SENDS = 150;
const PAUSE_MS = 600;
const EDGE_S = 2;
const DAY_S = 86_400;
const HOUR_S = 3_600;

/** A secret, when the answer with it was asked for and came, and how long the one before signs beside it. */
export type Epoch = { secret: string; asked_ms: number; answered_ms: number; previous_until_ms: number };

export type RotationVerdict = Verdict & {
  rotations: number;
  requests: number;
  /** Within two seconds before, and behind, the end of a grace. */
  before_edge: number;
  behind_edge: number;
  with_two: number;
  with_one: number;
  with_none: number;
  wrong: number;
};

/** Runs it; `ok` also asks that requests were signed on both sides of each edge. */
export async function runRotation({ rounds, sends = SENDS, say }: ScenarioOptions): Promise<RotationVerdict> {
  const stage = await setStage();
  try {
    const verdicts: Verdict[] = [];
    const checked: Checked = {
      requests: 0,
      before_edge: 0,
      behind_edge: 0,
      with_two: 0,
      with_one: 0,
      with_none: 0,
      wrong: 0,
    };
    const history: Epoch[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      await playStories(stage, history, (name) => stream(stage, `round-${round} ${name}`, sends));
      await drain(stage);
      checkAll(stage.receiver.requests, history, checked);
      verdicts.push(await judge(stage));
      say?.(`round-${round}: ${JSON.stringify(checked)}`);
    }
    const summed = sumUp(verdicts);
    const isRight = checked.with_none + checked.wrong === 0;
    const wasMet = checked.before_edge > 0 && checked.behind_edge > 0 && checked.with_two > 0 && checked.with_one > 0;
    return { ...summed, rotations: history.length, ...checked, ok: summed.ok && isRight && wasMet };
  } finally {
    await stage.close();
  }
}

async function playStories(stage: Stage, history: Epoch[], send: (name: string) => Promise<void>): Promise<void> {
  const id = await onlyWebhook(stage);
  const rotate = async (grace: number) => void history.push(await rotateOnce(stage, id, grace));
  // With no grace; from here on the secret is known.
  await rotate(0);
  await send("no grace");
  // In the middle of the events, and then over the edge.
  await Promise.all([send("the usual grace"), rotate(DAY_S)]);
  await crossEdge(stage, history, send);
  // Twice within one grace: the two newest sign, for as long as the second grace lasts.
  await rotate(DAY_S);
  await send("first of two");
  await rotate(HOUR_S);
  await send("second of two");
  await crossEdge(stage, history, send);
  // A grace that is cut short.
  await rotate(DAY_S);
  await Promise.all([send("cut short"), rotate(0)]);
}

/** From two seconds before the end of the newest grace until two seconds behind it. */
async function crossEdge(stage: Stage, history: Epoch[], send: (name: string) => Promise<void>): Promise<void> {
  const edge = history.at(-1)?.previous_until_ms ?? 0;
  stage.advance(Math.max(0, Math.floor((edge - stage.now()) / 1000) - EDGE_S));
  for (let part = 1; stage.now() < edge + EDGE_S * 1000; part += 1) await send(`edge of ${history.length}, ${part}`);
}

async function onlyWebhook(stage: Stage): Promise<string> {
  const { body } = await ask(stage.settings, "GET", "/v1/webhooks");
  return (body.webhooks as unknown as { id: string }[])[0]?.id ?? "";
}

async function rotateOnce(stage: Stage, id: string, grace_seconds: number): Promise<Epoch> {
  const asked_ms = stage.now();
  const { status, body } = await ask(stage.settings, "POST", `/v1/webhooks/${id}/rotate`, { grace_seconds });
  const answered_ms = stage.now();
  if (status !== 200 || body.grace_seconds !== grace_seconds) throw new Error(`no rotation: ${JSON.stringify(body)}`);
  const shown = await ask(stage.settings, "GET", `/v1/webhooks/${id}`);
  const { previous_secret_expires_at: until } = shown.body.webhook as unknown as {
    previous_secret_expires_at: string | null;
  };
  return {
    secret: String(body.secret),
    asked_ms,
    answered_ms,
    previous_until_ms: until === null ? 0 : Date.parse(until),
  };
}

async function stream(stage: Stage, name: string, count: number): Promise<void> {
  await sendAll({
    live_key: stage.settings.live_key,
    base_urls: [stage.settings.base_url],
    recorder: stage.recorder,
    name,
    count,
    from: `Shop <orders@${stage.domain}>`,
    recipient: (n) => `r${n}@recipient.example`,
    pause_ms: PAUSE_MS,
  });
}

// --- what was signed -------------------------------------------------------------------------------------------------

export type Checked = Omit<RotationVerdict, keyof Verdict | "rotations">;

/** Counts what signed each request against the history of rotations. */
export function checkAll(requests: SinkRequest[], history: Epoch[], checked: Checked): void {
  for (const request of requests) {
    const { t, secrets, unknown } = readSignature(request, history);
    // Signed with the secret that the endpoint was created with.
    if (t * 1000 < (history[0]?.answered_ms ?? 0)) continue;
    checked.requests += 1;
    if (secrets.length === 0) checked.with_none += 1;
    if (secrets.length === 1) checked.with_one += 1;
    if (secrets.length === 2) checked.with_two += 1;
    if (unknown > 0 || !allowed(history, t).includes(secrets.join())) checked.wrong += 1;
    for (const { previous_until_ms } of history) {
      const distance = t - previous_until_ms / 1000;
      if (distance < 0 && distance >= -EDGE_S - 1) checked.before_edge += 1;
      if (distance >= 0 && distance < EDGE_S + 1) checked.behind_edge += 1;
    }
  }
}

/** The places in the history of the secrets that signed, in the order of the header. */
function readSignature({ headers, body }: SinkRequest, history: Epoch[]) {
  const parts = String(headers["x-service-signature"] ?? "").split(",");
  const t = Number(/^t=(\d+)$/.exec(parts[0] ?? "")?.[1] ?? Number.NaN);
  const made = parts.slice(1).map((part) => part.replace(/^v1=/, ""));
  const sign = (secret: string): string => createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex");
  const places = made.map((v1) => history.findIndex(({ secret }) => sign(secret) === v1));
  const secrets = places.filter((place) => place >= 0);
  return { t, secrets, unknown: made.length - secrets.length };
}

/** What may sign in second `t`: around a rotation or an edge, within the second, either of two. */
function allowed(history: Epoch[], t: number): string[] {
  return history.flatMap(({ asked_ms, previous_until_ms }, at) => {
    const endsMs = history[at + 1]?.answered_ms ?? Number.POSITIVE_INFINITY;
    if (asked_ms >= (t + 1) * 1000 || endsMs < t * 1000) return [];
    const both = at > 0 && previous_until_ms > t * 1000 ? [`${at},${at - 1}`] : [];
    const alone = previous_until_ms < (t + 1) * 1000 ? [`${at}`] : [];
    return [...both, ...alone];
  });
}
