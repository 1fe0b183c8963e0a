// `neighbours`: one organization sends the worst requests that a search found (test/fuzz/costs.ts), and the worst that were
// known before, over eight connections and without a pause. Meanwhile another sends small e-mails, a monitor asks /healthz, and an SMTP client asks RCPT: all
// of them are answered as fast as if nothing were there. Everything runs in one process, as most installations have it.
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describeInput, KNOWN } from "../fuzz/cost-inputs.ts";
import { type Cost, processorOf, searchCosts, setCostStage } from "../fuzz/costs.ts";
import { drain, judge } from "./drain.ts";
import { sleep } from "./load.ts";
import type { Answers, Attack } from "./neighbours-attacker.ts";
import type { Measured, Turn } from "./neighbours-victim.ts";
import { standAside } from "./other-machine.ts";
import type { ScenarioOptions } from "./round.ts";
import type { Stage } from "./stage.ts";

const SENDS = 1_000;
/** Before anything is measured: of a process that just started the first requests take long. */
const WARM_UP = 200;
const PAUSE_MS = 250;
const SEARCH_S = 20;
const CONNECTIONS = 8;
const P99_MS_MAX = 100;
/** What the attacker left behind is done by then. */
const SETTLE_MS = 5_000;

/** What the others had of the service meanwhile, in milliseconds. */
type Phase = {
  send_p50_ms: number;
  send_p99_ms: number;
  healthz_p99_ms: number;
  rcpt_p99_ms: number;
  /** Of one processor: the part that the thread which everybody shares ran, and the part it waited for a processor. */
  shared_ran: number;
  shared_waited: number;
};

export type NeighboursVerdict = {
  acknowledged: number;
  lost: number;
  duplicates: number;
  flagged: number;
  answered_500: number;
  /** What was sent, as it is reported for people, and what each byte of it cost. */
  worst_inputs: { input: string; status: number; ns_per_byte: number }[];
  /** How the attacker was answered. */
  attacker: Answers;
  victim_p99_ms: number;
  /** Before the attack and after it: what this machine does without an attacker. */
  quiet: Phase;
  beside: Phase;
  quiet_after: Phase;
  ok: boolean;
};

/** Runs it; always one round. */
export async function runNeighbours({ sends = SENDS, seed, say }: ScenarioOptions): Promise<NeighboursVerdict> {
  const { stage, tenants, pid } = await setCostStage(3);
  const [attacker, ...searchers] = tenants;
  const victim = startVictim(stage);
  // From here on this process is the recipients' mail server, the webhooks' receiver and DNS: other machines, as the attacker is.
  standAside();
  try {
    const { tried, worst } = await searchCosts({ tenants: searchers, pid, seconds: SEARCH_S, seed });
    say?.(`${tried} inputs tried; the dearest: ${worst.map(describeInput).join(", ")}`);
    await victim.send("warm-up", WARM_UP);
    const half = Math.ceil(sends / 2);
    const quiet = await measure(victim, pid, "quiet", half);
    say?.(`alone: ${JSON.stringify(quiet)}`);
    const attack = startAttack({ ...attacker!, inputs: [...worst, ...KNOWN], connections: CONNECTIONS });
    await attack.begun;
    const beside = await measure(victim, pid, "beside", sends);
    const answers = await attack.stop();
    await sleep(SETTLE_MS);
    const quiet_after = await measure(victim, pid, "after", half);
    await drain(stage);
    const { lost, duplicates, flagged, acknowledged } = await judge(stage);
    const answered_500 = stage.recorder.broken();
    const slowest = Math.max(beside.send_p99_ms, beside.healthz_p99_ms, beside.rcpt_p99_ms);
    const isWhole = lost === 0 && duplicates === flagged && answered_500 === 0 && stage.died.length === 0;
    return {
      ...{ acknowledged, lost, duplicates, flagged, answered_500 },
      ...{ worst_inputs: worst.map(reported), attacker: answers },
      ...{ victim_p99_ms: beside.send_p99_ms, quiet, beside, quiet_after },
      ok: slowest < P99_MS_MAX && isWhole && !("500" in answers) && Object.keys(answers).length > 0,
    };
  } finally {
    victim.stop();
    await stage.close();
  }
}

type Victim = ReturnType<typeof startVictim>;

async function measure(victim: Victim, pid: number, name: string, sends: number): Promise<Phase> {
  const parts = sharedParts(pid);
  const { latencies_ms, healthz_ms, rcpt_ms } = await victim.send(name, sends);
  return {
    send_p50_ms: percentile(latencies_ms, 50),
    send_p99_ms: percentile(latencies_ms, 99),
    healthz_p99_ms: percentile(healthz_ms, 99),
    rcpt_p99_ms: percentile(rcpt_ms, 99),
    ...parts(),
  };
}

/** Begins to measure; the answer is what it was since then. */
function sharedParts(pid: number): () => Pick<Phase, "shared_ran" | "shared_waited"> {
  const [before, begunAt] = [processorOf(pid), performance.now()];
  return () => {
    const [now, took] = [processorOf(pid), performance.now() - begunAt];
    const part = (ms: number) => Math.round((ms / took) * 100) / 100;
    return {
      shared_ran: part(now.shared_ms - before.shared_ms),
      shared_waited: part(now.shared_waited_ms - before.shared_waited_ms),
    };
  };
}

function reported(cost: Cost): NeighboursVerdict["worst_inputs"][number] {
  return { input: describeInput(cost), status: cost.status, ns_per_byte: cost.ns_per_byte };
}

/** The process that is measured, and a turn of it after another. */
function startVictim(stage: Stage) {
  const victim = fork(join(import.meta.dirname, "neighbours-victim.ts"));
  return {
    async send(name: string, count: number): Promise<Measured> {
      const turn: Turn = {
        base_url: stage.settings.base_url,
        live_key: stage.settings.live_key,
        mx_port: Number(stage.settings.env.POSTERN_MX?.split(":").at(-1)),
        ...{ name, count, from: `Shop <orders@${stage.domain}>`, pause_ms: PAUSE_MS },
      };
      victim.send(turn);
      const ended = once(victim, "exit").then(() =>
        Promise.reject(new Error("the process that is measured ended by itself")),
      );
      const [measured] = (await Promise.race([once(victim, "message"), ended])) as [Measured];
      for (const one of measured.acknowledged) await stage.recorder.keep(one);
      for (const key of measured.broken) stage.recorder.noteBroken(key);
      return measured;
    },
    stop: () => victim.kill("SIGKILL"),
  };
}

function startAttack(attack: Attack) {
  const attacker = fork(join(import.meta.dirname, "neighbours-attacker.ts"));
  let answers: Answers = {};
  const begun = Promise.withResolvers<void>();
  attacker.on("message", (latest: Answers) => {
    answers = latest;
    begun.resolve();
  });
  attacker.once("exit", () => begun.reject(new Error("the attacker ended by itself")));
  attacker.send(attack);
  return {
    /** Resolves at its first answer: until then it makes its bodies. */
    begun: begun.promise,
    async stop(): Promise<Answers> {
      attacker.kill("SIGKILL");
      await once(attacker, "exit");
      return answers;
    },
  };
}

function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = Math.min(sorted.length - 1, Math.floor((sorted.length * share) / 100));
  return Math.round(sorted[at] ?? Number.POSITIVE_INFINITY);
}
