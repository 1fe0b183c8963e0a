// `bad-mx`: part of the mail goes to a dead, a silent, a slow, a lying and a forgetful mail server (which takes the message
// and hangs up before its 250), the rest to a good one, in turns with windows in which the same part goes to a second good
// server. The rest keeps its rate; the dead server is not crowded; what may have arrived twice is reported. Then all of them
// heal, and everything arrives.
import { type BadServer, needSocketTable, type Place, startDead, startLiar, startSilent } from "./bad-servers.ts";
import { drain, judge, type Verdict } from "./drain.ts";
import { sendAll, sleep } from "./load.ts";
import type { ScenarioOptions } from "./round.ts";
import { type CountingSink, startCountingSink } from "./sink.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 500;
/** With bad servers or as a control: many short windows in both orders, since machines are not even. */
const WINDOWS = [false, true, true, false, false, true, true, false];
/** One in so many messages is for the bad ones. */
const BAD_ONE_IN = 10;
/** Milliseconds between two sends of one of the 16 connections: some 100 a second, which a busy machine does as well. */
const PAUSE_MS = 150;
const SLOW_REPLY_MS = 2_000;
const SHARE_MIN = 0.95;
const SOCKETS_MAX = 2;
const LOOK_MS = 25;
const KINDS = ["dead", "silent", "slow", "liar", "forgetful"] as const;
type Kind = (typeof KINDS)[number];

export type BadMxVerdict = Verdict & {
  /** Messages a second that arrived at the good server while the load went on. */
  control_per_s: number;
  beside_bad_per_s: number;
  /** Of neighbouring windows, the median. */
  share: number;
  /** The most sockets there were towards each at a time. */
  sockets_max: Record<Kind, number>;
};

type Cast = { servers: Map<Kind, { sockets(): number; stop(): Promise<unknown> }>; places: Map<Kind, Place> };
type Window = { name: string; isBad: boolean; sends: number };

/** Runs it. */
export async function runBadMx({ rounds, sends = SENDS, say }: ScenarioOptions): Promise<BadMxVerdict> {
  needSocketTable();
  const stage = await setStage();
  const cast = await setCast(stage);
  const most: Record<Kind, number> = { dead: 0, silent: 0, slow: 0, liar: 0, forgetful: 0 };
  const timer = setInterval(() => {
    for (const [kind, server] of cast.servers) most[kind] = Math.max(most[kind], server.sockets());
  }, LOOK_MS);
  try {
    await playWindow(stage, { name: "warm-up", isBad: false, sends: sends / 2 });
    const rates = await playWindows(stage, { turns: rounds, sends, say: say ?? (() => undefined) });
    clearInterval(timer);
    await heal(stage, cast);
    await drain(stage);
    const verdict = await judge(stage);
    const wasMet = KINDS.every((kind) => most[kind] > 0) && verdict.flagged > 0;
    const share = shareOf(rates);
    const isFair = share >= SHARE_MIN && most.dead <= SOCKETS_MAX;
    return {
      ...verdict,
      control_per_s: Math.round(mean(rates.control)),
      beside_bad_per_s: Math.round(mean(rates.bad)),
      share: Math.round(share * 1000) / 1000,
      sockets_max: most,
      ok: verdict.ok && isFair && wasMet,
    };
  } finally {
    clearInterval(timer);
    for (const server of cast.servers.values()) await server.stop();
    await stage.close();
  }
}

type Plan = { turns: number; sends: number; say(text: string): void };
type Rates = { control: number[]; bad: number[] };

/** Rates of all windows; as many turns as were asked for, whatever they show: more until it suits would prove nothing. */
async function playWindows(stage: Stage, { turns, sends, say }: Plan): Promise<Rates> {
  const rates: Rates = { control: [], bad: [] };
  for (let turn = 1; turn <= turns; turn += 1) {
    for (const [window, isBad] of WINDOWS.entries()) {
      const name = `window-${turn}.${window + 1}`;
      const rate = await playWindow(stage, { name, isBad, sends });
      (isBad ? rates.bad : rates.control).push(rate);
      say(`${name}: ${rate.toFixed(0)} a second ${isBad ? "beside bad servers" : "(control)"}`);
    }
  }
  return rates;
}

/**
 * The median over neighbouring windows: each window beside bad servers against the control next to it. A machine that does
 * other things changes its pace from one minute to the next (controls of one run: 29 to 85 a second), which a ratio of
 * means takes for the servers' doing.
 */
export function shareOf({ control, bad }: Rates): number {
  const ratios = bad.map((rate, at) => rate / (control[at] ?? Number.NaN)).sort((a, b) => a - b);
  const middle = Math.floor(ratios.length / 2);
  const [low, high] = [ratios[ratios.length % 2 === 0 ? middle - 1 : middle], ratios[middle]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Every bad server has an address, and so a site, of its own; the second good one as well. */
async function setCast(stage: Stage): Promise<Cast> {
  const places = new Map(
    KINDS.map((kind, n): [Kind, Place] => [kind, { host: `127.0.1.${n + 1}`, port: stage.sink.port }]),
  );
  for (const [kind, { host }] of places) {
    stage.dns.set(`*.${kind}.example`, "MX", [{ exchange: `mx.${kind}.example`, preference: 10 }]);
    stage.dns.set(`mx.${kind}.example`, "A", [host]);
  }
  stage.dns.set("*.other.example", "MX", [{ exchange: "mx.other.example", preference: 10 }]);
  stage.dns.set("mx.other.example", "A", ["127.0.0.1"]);
  const at = (kind: Kind): Place => places.get(kind) as Place;
  const { copies } = stage.sink;
  const servers = new Map<Kind, BadServer | CountingSink>();
  servers.set("dead", await startDead(at("dead")));
  servers.set("silent", await startSilent(at("silent")));
  servers.set("slow", await startCountingSink({ ...at("slow"), copies, reply_ms: SLOW_REPLY_MS }));
  servers.set("liar", await startLiar(at("liar")));
  servers.set("forgetful", await startCountingSink({ ...at("forgetful"), copies, forgets: true }));
  return { servers, places };
}

/** From now on good ones stand in their places. The slow and the forgetful one stay: they do take mail in the end. */
async function heal(stage: Stage, { servers, places }: Cast): Promise<void> {
  for (const kind of ["dead", "silent", "liar"] as const) {
    await servers.get(kind)?.stop();
    servers.set(kind, await startCountingSink({ ...(places.get(kind) as Place), copies: stage.sink.copies }));
  }
}

/** Messages a second for the good server, between the first send and the last. */
async function playWindow(stage: Stage, { name, isBad, sends }: Window): Promise<number> {
  const before = stage.sink.received();
  const startedAt = performance.now();
  const others = Math.floor(sends / BAD_ONE_IN);
  await sendAll({
    live_key: stage.settings.live_key,
    base_urls: [stage.settings.base_url],
    recorder: stage.recorder,
    name,
    count: sends,
    from: `Shop <orders@${stage.domain}>`,
    recipient: (n) => `r${n}@${domainOf(n, isBad)}`,
    pause_ms: PAUSE_MS,
  });
  const seconds = (performance.now() - startedAt) / 1000;
  // The second good server is the same process: its share is not the rest's.
  const arrived = stage.sink.received() - before - (isBad ? 0 : others);
  // What is still on its way is not the next window's.
  await sleep(500);
  return arrived / seconds;
}

function domainOf(n: number, isBad: boolean): string {
  if (n % BAD_ONE_IN !== 0) return `d${n % 40}.recipients.example`;
  const turn = n / BAD_ONE_IN;
  return isBad ? `d${turn % 3}.${KINDS[turn % KINDS.length]}.example` : `d${turn % 15}.other.example`;
}
