// Runs in a worker thread: makes inputs for one target after another, runs the check on each, and tells what broke. The
// input on trial lies in shared memory, so that the thread's keeper has it when the thread hangs or dies.
import { parentPort, workerData } from "node:worker_threads";
import { type Chance, chanceOf } from "../faults/seeded.ts";
import { mutate } from "./mutate.ts";
import { readSeeds } from "./seeds.ts";
import { shrink } from "./shrink.ts";
import { BYTES_MAX_DEFAULT, type Outcome, type Target } from "./target.ts";

/** `inputs`: these and no others. */
export type Order = { target: string; seed: number; ms: number; inputs_max: number; inputs?: Uint8Array[] };

export type Found = { kind: "crash" | "hang"; what: string; input: Uint8Array; cpu_ms: number };

export type Reported =
  | { kind: "progress"; inputs: number }
  | { kind: "found"; found: Found }
  | { kind: "done"; inputs: number; outcomes: number; slowest_ms: number };

/** `control`: state (0 idle, 1 on trial), length of the input, running number of trials, and of inputs. */
export type Shared = { control: Int32Array; input: Uint8Array };

export type HunterSetup = { targets_from: string; shared: Shared; hang_ms: number };

const TELL_EVERY_MS = 500;
const SHRINK_MS = 1_500;
const REPORTED_MAX = 50;
const OUTCOMES_MAX = 2_000;
const OUTCOME_BYTES_MAX = 16_384;

const { targets_from, shared, hang_ms } = workerData as HunterSetup;
const { TARGETS } = (await import(targets_from)) as { TARGETS: readonly Target[] };
const tell = (reported: Reported): void => parentPort!.postMessage(reported);

parentPort!.on("message", (order: Order) => {
  // A failure of this thread's own is no finding; it must end the run.
  hunt(order).catch((error) => setImmediate(() => Promise.reject(error)));
});
tell({ kind: "progress", inputs: 0 });

type Hunt = {
  target: Target;
  chance: Chance;
  seeds: Buffer[];
  outcomes: Set<string>;
  inputs: number;
  slowest_ms: number;
  reported: Map<string, number>;
};

async function hunt(order: Order): Promise<void> {
  const target = TARGETS.find(({ name }) => name === order.target)!;
  const run: Hunt = {
    ...{ target, chance: chanceOf(order.seed), seeds: readSeeds(target), outcomes: new Set() },
    ...{ inputs: 0, slowest_ms: 0, reported: new Map() },
  };
  const given = order.inputs?.map((bytes) => Buffer.from(bytes)) ?? [...run.seeds];
  const endsAt = performance.now() + order.ms;
  let toldAt = performance.now();
  while (run.inputs < order.inputs_max) {
    if (order.inputs && given.length === 0) break;
    const trial = tryInput(run, given.shift() ?? nextInput(run));
    if (trial) await trial;
    const now = performance.now();
    if (now >= endsAt) break;
    if (now - toldAt < TELL_EVERY_MS) continue;
    toldAt = now;
    tell({ kind: "progress", inputs: run.inputs });
    await new Promise((resolve) => setImmediate(resolve));
  }
  // What a check left behind on the event loop must break here, not in the next target's time.
  await new Promise((resolve) => setTimeout(resolve, 10));
  tell({ kind: "done", inputs: run.inputs, outcomes: run.outcomes.size, slowest_ms: run.slowest_ms });
}

function nextInput({ target, chance, seeds }: Hunt): Buffer {
  const stock = { seeds, words: target.words ?? [], bytes_max: target.bytes_max ?? BYTES_MAX_DEFAULT };
  if (!target.generate || chance.between(0, 2) > 0) return mutate(chance, stock);
  const made = target.generate(chance);
  return chance.between(0, 3) > 0 ? made : mutate(chance, { ...stock, seeds: [made] });
}

/** One input. Synchronous checks stay so: a promise for each would halve the rate. */
function tryInput(run: Hunt, input: Buffer): Promise<void> | null {
  run.inputs += 1;
  Atomics.add(shared.control, 3, 1);
  putOnTrial(input);
  const startedAt = cpuMs();
  const settle = (outcome: Outcome, error: unknown): Promise<void> | null => {
    const took = cpuMs() - startedAt;
    run.slowest_ms = Math.max(run.slowest_ms, took);
    Atomics.store(shared.control, 0, 0);
    if (error !== undefined) return report(run, input, { error, cpu_ms: took });
    if (took > hang_ms) return report(run, input, { error: null, cpu_ms: took });
    if (typeof outcome === "string") learn(run, input, outcome);
    return null;
  };
  try {
    const outcome = run.target.check(input);
    if (!(outcome instanceof Promise)) return settle(outcome, undefined);
    return outcome.then(
      async (value) => void (await settle(value, undefined)),
      async (error) => void (await settle(undefined, error ?? new Error("rejected with nothing"))),
    );
  } catch (error) {
    return settle(undefined, error ?? new Error("threw nothing"));
  }
}

function putOnTrial(input: Buffer): void {
  shared.input.set(input.subarray(0, shared.input.length));
  shared.control[1] = Math.min(input.length, shared.input.length);
  Atomics.add(shared.control, 2, 1);
  Atomics.store(shared.control, 0, 1);
}

/** Milliseconds of processor time of this thread: a machine with other work does not make a check look slow. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** An input that led to something new is worth changing further. */
function learn(run: Hunt, input: Buffer, outcome: string): void {
  if (run.outcomes.size >= OUTCOMES_MAX || run.outcomes.has(outcome)) return;
  run.outcomes.add(outcome);
  if (input.length <= OUTCOME_BYTES_MAX) run.seeds.push(Buffer.from(input));
}

async function report(run: Hunt, input: Buffer, seen: { error: unknown; cpu_ms: number }): Promise<void> {
  const { error, cpu_ms } = seen;
  const what = error === null ? `${Math.round(cpu_ms)} ms of processor time` : describe(error);
  const key = error === null ? "hang" : sameness(error);
  const times = (run.reported.get(key) ?? 0) + 1;
  run.reported.set(key, times);
  const kind = error === null ? "hang" : "crash";
  // The first of its kind is made small, so that people can read it.
  const small =
    times > 1 || error === null ? input : await shrink(input, SHRINK_MS, (smaller) => breaksAlike(run, smaller, key));
  if (run.reported.size <= REPORTED_MAX) tell({ kind: "found", found: { kind, what, input: small, cpu_ms } });
}

async function breaksAlike({ target }: Hunt, input: Buffer, key: string): Promise<boolean> {
  putOnTrial(input);
  try {
    await target.check(input);
    return false;
  } catch (error) {
    return sameness(error) === key;
  } finally {
    Atomics.store(shared.control, 0, 0);
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Two findings are one when they broke at the same place. */
function sameness(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? "") : String(error);
  const places = [...stack.matchAll(/at .*?([\w.-]+\.[jt]s:\d+):\d+/g)]
    .map((match) => match[1]!)
    .filter((place) => !/^(?:hunter|shrink)\.ts/.test(place));
  return `${error instanceof Error ? error.name : "thrown"} ${places.slice(0, 3).join(" ")}`;
}
