// `dns-failures`: the name servers of the recipients' domains answer SERVFAIL, REFUSED, nothing, or "no such domain" now
// and then, for the domain, its mail server or its TLS policy, over hours (moved clock). None of that is the recipients'
// fault: nothing bounces, and with the names healed everything arrives. A control, domains that are truly gone, bounces.
import type { DnsFault } from "../support/dns-server.ts";
import { describeStandstill, drain, judge, type Verdict } from "./drain.ts";
import { sendAll, sleep } from "./load.ts";
import { startRecorder } from "./recorder.ts";
import type { ScenarioOptions } from "./round.ts";
import { type Chance, chanceOf } from "./seeded.ts";
import { type Stage, setStage } from "./stage.ts";

const SENDS = 240;
const CONTROL_SENDS = 10;
const DOMAINS = 4;
const STEPS = 5;
const SETTLE_MS_MAX = 120_000;
const ABSENT: DnsFault = { rcode: 3 };
/** "No such domain" twice in a row, an hour apart, is believed: so it alternates here. */
const TEMPORARY: DnsFault[] = ["servfail", "timeout", "refused"];

type Kind = {
  /** The name whose servers fail. */
  failing(domain: string): string;
  weather(step: number, chance: Chance): DnsFault;
};

const KINDS: Record<string, Kind> = {
  servfail: { failing: (domain) => domain, weather: () => "servfail" },
  silent: { failing: (domain) => domain, weather: () => "timeout" },
  refused: { failing: (domain) => domain, weather: () => "refused" },
  host: { failing: (domain) => `mx.${domain}`, weather: (_step, chance) => chance.pick(TEMPORARY) },
  policy: { failing: (domain) => `_mta-sts.${domain}`, weather: (_step, chance) => chance.pick(TEMPORARY) },
  flapping: {
    failing: (domain) => domain,
    weather: (step, chance) => (step % 2 === 0 ? ABSENT : chance.pick(TEMPORARY)),
  },
};
const NAMES = Object.keys(KINDS);

export type DnsVerdict = Verdict & {
  false_bounces: number;
  suppressed: number;
  /** Attempts that ended with a deferral because of DNS. */
  deferrals: number;
  /** Mail for domains that do not exist, and how much of it bounced. */
  control: number;
  control_bounced: number;
};

/** Runs it; each round is some hours of bad weather. */
export async function runDnsFailures({ rounds, seed, sends = SENDS, say }: ScenarioOptions): Promise<DnsVerdict> {
  const chance = chanceOf(seed);
  const total: DnsVerdict[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const stage = await setStage();
    try {
      total.push(await playWeather(stage, chance, sends));
      say?.(`round-${round}: ${JSON.stringify(total.at(-1))}`);
    } finally {
      await stage.close();
    }
  }
  return sum(total);
}

function sum(rounds: DnsVerdict[]): DnsVerdict {
  const all = { ...(rounds[0] as DnsVerdict) };
  for (const round of rounds.slice(1)) {
    for (const name of Object.keys(all) as (keyof DnsVerdict)[]) {
      if (name === "ok") all.ok &&= round.ok;
      else if (name === "failures") all.failures = [...all.failures, ...round.failures];
      else all[name] += round[name];
    }
  }
  return all;
}

async function playWeather(stage: Stage, chance: Chance, sends: number): Promise<DnsVerdict> {
  for (const domain of NAMES.flatMap(domainsOf)) {
    stage.dns.set(domain, "MX", [{ exchange: `mx.${domain}`, preference: 10 }]);
    stage.dns.set(`mx.${domain}`, "A", ["127.0.0.1"]);
  }
  setWeather(stage, chance, 0);
  const load = { name: "storm", count: sends, recorder: stage.recorder };
  await send(stage, load, (n) => `r${n}@${domainsOf(NAMES[n % NAMES.length] as string)[n % DOMAINS]}`);
  await settle(stage);
  for (let step = 1; step < STEPS; step += 1) {
    await turn(stage, () => setWeather(stage, chance, step));
  }
  await turn(stage, () => heal(stage));
  await drain(stage);
  const found = await countOutcomes(stage);
  const verdict = await judge(stage);
  const control_bounced = await playControl(stage);
  const isRight = found.false_bounces === 0 && found.suppressed === 0 && found.deferrals >= sends;
  return {
    ...verdict,
    ...found,
    control: CONTROL_SENDS,
    control_bounced,
    ok: verdict.ok && isRight && control_bounced === CONTROL_SENDS,
  };
}

function domainsOf(kind: string): string[] {
  return Array.from({ length: DOMAINS }, (_none, n) => `${kind}${n}.example`);
}

function setWeather(stage: Stage, chance: Chance, step: number): void {
  for (const [name, { failing, weather }] of Object.entries(KINDS)) {
    for (const domain of domainsOf(name)) stage.dns.fail(failing(domain), weather(step, chance));
  }
}

function heal(stage: Stage): void {
  for (const [name, { failing }] of Object.entries(KINDS)) {
    for (const domain of domainsOf(name)) stage.dns.heal(failing(domain));
  }
}

/** The next attempts of all that waits, in another weather; a new process has no answers of the last one in its memory. */
async function turn(stage: Stage, change: () => void): Promise<void> {
  await stage.stop("mta");
  change();
  const [row] = await stage.rows<{ last_ms: number | null }>(
    "select extract(epoch from max(due_at))::float8 * 1000 as last_ms from delivery",
  );
  if (row?.last_ms) stage.advance(Math.max(0, Math.ceil((row.last_ms - stage.now()) / 1000)) + 1);
  await stage.start("mta");
  await settle(stage);
}

/** Until nothing is due or under way. */
async function settle(stage: Stage): Promise<void> {
  const deadline = performance.now() + SETTLE_MS_MAX;
  for (;;) {
    const [row] = await stage.rows<{ busy: number }>(
      "select count(*)::int as busy from delivery where due_at <= to_timestamp($1) or owner is not null",
      [stage.now() / 1000],
    );
    if (row?.busy === 0) return;
    if (performance.now() > deadline) {
      throw new Error(`${row?.busy} deliveries are due and not attempted\n${await describeStandstill(stage)}`);
    }
    await sleep(100);
  }
}

async function countOutcomes(stage: Stage) {
  const [row] = await stage.rows<{ false_bounces: number; deferrals: number; suppressed: number }>(
    `select (count(*) filter (where event_type = 'bounced'))::int as false_bounces,
            (count(*) filter (where event_type = 'deferred'))::int as deferrals,
            (select count(*) from suppression)::int as suppressed from event`,
  );
  if (!row) throw new Error("no figures");
  return row;
}

/** Absent at both looks, more than an hour apart. */
async function playControl(stage: Stage): Promise<number> {
  const recorder = startRecorder(`${stage.dir}/control.jsonl`);
  await send(stage, { name: "control", count: CONTROL_SENDS, recorder }, (n) => `r${n}@gone${n % 2}.absent.example`);
  await settle(stage);
  await turn(stage, () => undefined);
  recorder.close();
  const [row] = await stage.rows<{ bounced: number }>(
    "select count(*)::int as bounced from recipient where status = 'bounced' and email like '%.absent.example'",
  );
  return row?.bounced ?? 0;
}

type Load = Pick<Parameters<typeof sendAll>[0], "name" | "count" | "recorder">;

async function send(stage: Stage, load: Load, recipient: (n: number) => string): Promise<void> {
  const { live_key, base_url } = stage.settings;
  await sendAll({ ...load, live_key, base_urls: [base_url], from: `Shop <orders@${stage.domain}>`, recipient });
}
