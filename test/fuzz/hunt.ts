// Keeps the worker threads that hunt: hands each one target after another, kills a thread that does not come back, and
// counts what was found. A finding is an input whose check threw, ended the thread, or took more than a second.
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Found, HunterSetup, Order, Reported, Shared } from "./hunter.ts";

export type HuntOptions = {
  targets: readonly string[];
  seed: number;
  /** For each target. */
  ms: number;
  inputs_max?: number;
  /** Only these, once each. */
  inputs?: Uint8Array[];
  workers: number;
  /** Processor time that counts as a hang. */
  hang_ms?: number;
  /** Processor time in one input after which a thread is given up, or a sixth of the time it may wait. */
  give_up_ms?: number;
  /** Where the targets are listed; another file in the tests of this one. */
  targets_from?: URL;
  /** Null: findings are not written to files. */
  found_dir: string | null;
  onProgress?(progress: { target: string; inputs: number; seconds_left: number }): void;
  onFound?(finding: Finding): void;
  onDone?(result: TargetResult): void;
};

/** `path`: the file that holds the input; null when it was not kept. */
export type Finding = { target: string; kind: "crash" | "hang"; what: string; input: Buffer; path: string | null };

export type TargetResult = {
  name: string;
  inputs: number;
  crashes: number;
  hangs: number;
  /** Different outcomes that the checks named. */
  outcomes: number;
  /** Processor time of the slowest input. */
  slowest_ms: number;
  seconds: number;
};

const HANG_MS = 1_000;
const GIVE_UP_MS = 10_000;
const LOOK_EVERY_MS = 100;
const INPUT_BYTES_MAX = 1024 * 1024;
const HEAP_MIB_MAX = 512;
const SAVED_MAX = 20;

/** Runs every target for its time, `workers` of them side by side. Results come in the order of the targets. */
export async function hunt(options: HuntOptions): Promise<TargetResult[]> {
  const waiting = [...options.targets];
  const results = new Map<string, TargetResult>();
  const work = async (): Promise<void> => {
    let keeper: Keeper | null = null;
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      keeper ??= await startKeeper(options);
      const { result, alive } = await huntTarget(name, keeper, options);
      keeper = alive;
      results.set(name, result);
      options.onDone?.(result);
    }
    await keeper?.worker.terminate();
  };
  await Promise.all(Array.from({ length: Math.min(options.workers, waiting.length) }, work));
  return options.targets.flatMap((name) => results.get(name) ?? []);
}

/** The targets that were given nothing, as their time was over before: nothing is shown of them. */
export function untried(results: readonly TargetResult[]): string[] {
  return results.filter(({ inputs }) => inputs === 0).map(({ name }) => name);
}

type Keeper = { worker: Worker; shared: Shared };

async function startKeeper(options: HuntOptions): Promise<Keeper> {
  const shared: Shared = {
    control: new Int32Array(new SharedArrayBuffer(16)),
    input: new Uint8Array(new SharedArrayBuffer(INPUT_BYTES_MAX)),
  };
  const from = options.targets_from ?? new URL("./targets.ts", import.meta.url);
  const setup: HunterSetup = { targets_from: from.href, shared, hang_ms: options.hang_ms ?? HANG_MS };
  const worker = new Worker(new URL("./hunter.ts", import.meta.url), {
    workerData: setup,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
  });
  await new Promise<void>((resolve, reject) => {
    worker.once("message", () => resolve()).once("error", reject);
  });
  worker.removeAllListeners("error");
  return { worker, shared };
}

/** One target to the end of its time; a thread that was lost is followed by a new one with another seed. */
async function huntTarget(
  name: string,
  keeper: Keeper,
  options: HuntOptions,
): Promise<{ result: TargetResult; alive: Keeper | null }> {
  const startedAt = performance.now();
  const result = { name, inputs: 0, crashes: 0, hangs: 0, outcomes: 0, slowest_ms: 0, seconds: 0 };
  let alive: Keeper | null = keeper;
  for (let round = 0; ; round += 1) {
    const leftMs = options.ms - (performance.now() - startedAt);
    const { inputs_max = Number.POSITIVE_INFINITY, inputs } = options;
    if (leftMs <= 0 || result.inputs >= inputs_max) break;
    alive ??= await startKeeper(options);
    const order: Order = {
      ...{ target: name, seed: seedOf(options.seed, name, round), ms: leftMs, inputs_max: inputs_max - result.inputs },
      ...(inputs ? { inputs } : {}),
    };
    const ended = await watch(alive, order, options, result);
    if (ended === "done") break;
    await alive.worker.terminate();
    alive = null;
    if (inputs) break;
  }
  result.seconds = Math.round((performance.now() - startedAt) / 100) / 10;
  result.slowest_ms = Math.round(result.slowest_ms);
  return { result, alive };
}

/** One number for each target and round, from the one that was given. */
function seedOf(seed: number, name: string, round: number): number {
  return createHash("sha256").update(`${seed} ${name} ${round}`).digest().readUInt32BE(0);
}

/** Follows one order until the thread says it is done, or is lost. */
function watch(keeper: Keeper, order: Order, options: HuntOptions, result: TargetResult): Promise<"done" | "lost"> {
  const { worker, shared } = keeper;
  const before = result.inputs;
  const inputsAtStart = Atomics.load(shared.control, 3);
  const giveUpMs = options.give_up_ms ?? GIVE_UP_MS;
  const endsAt = performance.now() + order.ms;
  return new Promise((resolve) => {
    let settled = false;
    const settle = (how: "done" | "lost"): void => {
      settled = true;
      clearInterval(timer);
      worker.off("message", onMessage).off("error", onLost).off("exit", onExit);
      // A thread that is being ended may still complain.
      if (how === "lost") worker.on("error", () => undefined);
      resolve(how);
    };
    const lose = (kind: Found["kind"], what: string): void => {
      if (settled) return;
      result.inputs = before + Atomics.load(shared.control, 3) - inputsAtStart;
      keep(order.target, { kind, what, input: inputOnTrial(shared), cpu_ms: 0 }, options, result);
      settle("lost");
    };
    const onLost = (error: Error): void => lose("crash", `the thread ended: ${error.stack ?? error.message}`);
    const onExit = (code: number): void => lose("crash", `the thread ended with code ${code}`);
    const onMessage = (reported: Reported): void => {
      if (reported.kind === "found") {
        keep(order.target, reported.found, options, result);
        return;
      }
      result.inputs = before + reported.inputs;
      if (reported.kind === "progress") {
        const seconds_left = Math.max(0, Math.round((endsAt - performance.now()) / 1_000));
        options.onProgress?.({ target: order.target, inputs: result.inputs, seconds_left });
        return;
      }
      result.outcomes = Math.max(result.outcomes, reported.outcomes);
      result.slowest_ms = Math.max(result.slowest_ms, reported.slowest_ms);
      settle("done");
    };
    const isStuck = watchTrials(keeper, giveUpMs);
    const timer = setInterval(async () => {
      if (await isStuck()) lose("hang", `no end after ${giveUpMs} ms`);
    }, LOOK_EVERY_MS);
    worker.on("message", onMessage).on("error", onLost).on("exit", onExit);
    worker.postMessage(order);
  });
}

/**
 * Tells when one trial has used so much processor time, or has waited six times as long without using it: a machine that
 * has much else to do makes no hang.
 */
function watchTrials({ worker, shared }: Keeper, giveUpMs: number): () => Promise<boolean> {
  let trial = { number: -1, since: 0, cpu_ms: 0 };
  return async () => {
    const number = Atomics.load(shared.control, 2);
    if (Atomics.load(shared.control, 0) !== 1) return false;
    // Only a trial that is seen twice is worth asking about. A thread that has just ended answers nothing.
    const isNew = number !== trial.number;
    if (isNew) trial = { number, since: performance.now(), cpu_ms: Number.POSITIVE_INFINITY };
    const usage = await worker.cpuUsage().catch(() => null);
    if (usage === null) return false;
    const cpuMs = (usage.user + usage.system) / 1_000;
    if (isNew && trial.number === number) trial.cpu_ms = cpuMs;
    return cpuMs - trial.cpu_ms > giveUpMs || performance.now() - trial.since > giveUpMs * 6;
  };
}

function inputOnTrial({ control, input }: Shared): Uint8Array {
  return Uint8Array.from(input.subarray(0, Atomics.load(control, 1)));
}

function keep(target: string, found: Found, options: HuntOptions, result: TargetResult): void {
  if (found.kind === "crash") result.crashes += 1;
  else result.hangs += 1;
  const input = Buffer.from(found.input);
  const isKept = options.found_dir !== null && (found.kind === "crash" ? result.crashes : result.hangs) <= SAVED_MAX;
  const path = isKept ? save(options.found_dir!, target, { ...found, input }) : null;
  options.onFound?.({ target, kind: found.kind, what: found.what, input, path });
}

function save(folder: string, target: string, { kind, what, input }: Found): string {
  mkdirSync(folder, { recursive: true });
  const digest = createHash("sha256").update(input).digest("hex").slice(0, 12);
  const path = join(folder, `${target}-${kind}-${digest}`);
  writeFileSync(path, input);
  writeFileSync(`${path}.txt`, `${what}\n\nnpm run fuzz -- ${target} --input ${path}\n`);
  return path;
}

/** Where findings go, out of the repository's history. */
export const FOUND_DIR: string = fileURLToPath(new URL("./found/", import.meta.url));
