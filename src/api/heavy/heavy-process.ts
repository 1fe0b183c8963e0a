// The process for heavy requests: a second API (src/heavy-service.ts), with a world of its own over the same database, so
// that whatever a request holds there, it holds nobody's mail, health or SMTP here. A process and not a thread: the kernel
// can then prefer this one for the processor, and collecting the garbage there stops nothing here. It starts when it is first
// needed, and is ended when it had nothing to do for a while: it takes as much memory as the service. One that runs out of memory
// or stands still is ended and replaced: its requests are answered 503. Not here: which requests are heavy (heavy.ts), and whose
// turn it is.
import { type ChildProcess, fork } from "node:child_process";
import type { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Config } from "../../config.ts";
import type { Account } from "../../http/http.ts";
import { type ClockReading, readClock } from "../../platform/clock.ts";
import { processEnder } from "../../platform/process/end-process.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import { BODIES_FD, type BodyWriter, createBodyWriter } from "./heavy-bodies.ts";

/** A request as it came, with who asks; its body goes by a way of its own (heavy-bodies.ts). */
export type HeavyRequest = {
  id: string;
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  ip: string;
  account: Account;
};

export type HeavyAnswer = {
  status: number;
  headers: Record<string, string | string[] | number | undefined>;
  body: Uint8Array;
  /** Processor time, by that process's own count. */
  processor_ms: number;
};

export type HeavyProcess = {
  /** Resolves to the answer; 503 when the process ended before there was one. The pieces are given away: they are emptied. */
  ask(request: HeavyRequest, pieces: readonly Uint8Array[]): Promise<HeavyAnswer>;
  /** Ends the process when its requests are answered. */
  stop(): Promise<void>;
};

/** What it is started with. */
export type HeavyStart = { config: Config; database_url: string; distributed: boolean };
export type ToHeavy =
  | ({ kind: "start" } & HeavyStart)
  | { kind: "request"; request: HeavyRequest; bytes: number; clock: ClockReading }
  | { kind: "stop" };
export type FromHeavy =
  | { kind: "answer"; id: string; answer: HeavyAnswer }
  /** `code` says whether it may be tried again, as it does of an error of this process (api/errors.ts). */
  | { kind: "failed"; id: string; message: string; code?: string }
  | { kind: "beat" }
  | { kind: "fatal"; reason: string };

/** One thread collects its garbage: of two processors it takes one. */
const FLAGS = ["--max-old-space-size=768", "--max-semi-space-size=32", "--single-threaded-gc", "--v8-pool-size=1"];
const LOOK_MS = 5_000;
/** A start takes a second or two of the next heavy request. */
const IDLE_MS = 5 * 60_000;
/** Looks without a beat while something is asked: the longest request takes seconds. */
const STUCK_LOOKS = 12;
const STOP_MS = 10_000;
const ENDED = "the work on this request was lost; try again shortly";

type Waiting = Map<string, PromiseWithResolvers<HeavyAnswer>>;
type Running = {
  child: ChildProcess;
  writeBody: BodyWriter;
  waiting: Waiting;
  isOver(): boolean;
  ended: Promise<void>;
};

type OuterWorld = Pick<World, "config" | "log" | "database_url" | "distributed" | "clock">;

type Times = { look_ms: number; idle_ms: number };
const TIMES: Times = { look_ms: LOOK_MS, idle_ms: IDLE_MS };

/** Prepares the process; `worker` is the file that runs in it. `times` are for tests. */
export function createHeavyProcess(world: OuterWorld, worker: URL, times: Partial<Times> = {}): HeavyProcess {
  const { look_ms, idle_ms } = { ...TIMES, ...times };
  let running: Running | null = null;
  let idle: NodeJS.Timeout | undefined;
  let ending: Promise<unknown> = Promise.resolve();
  let isStopped = false;

  /** What is asked from here on starts another one. */
  function end(): void {
    clearTimeout(idle);
    if (running !== null && !running.isOver()) ending = Promise.all([ending, endProcess(running)]);
    running = null;
  }

  function endWhenIdle({ waiting }: Running): void {
    clearTimeout(idle);
    if (waiting.size === 0) idle = setTimeout(end, idle_ms).unref();
  }

  return {
    ask(request, pieces) {
      if (isStopped) return Promise.reject(new Refusal("unavailable", ENDED));
      clearTimeout(idle);
      if (running === null || running.isOver()) running = startProcess(world, worker, look_ms);
      const asked = Promise.withResolvers<HeavyAnswer>();
      const process = running;
      process.waiting.set(request.id, asked);
      const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
      const announce = () =>
        void send(process.child, { kind: "request", request, bytes, clock: readClock(world.clock) });
      void process.writeBody(announce, pieces);
      return asked.promise.finally(() => process === running && endWhenIdle(process));
    },
    async stop() {
      isStopped = true;
      end();
      await ending;
    },
  };
}

/** Once its requests are answered. */
async function endProcess({ child, ended }: Running): Promise<void> {
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
  await send(child, { kind: "stop" });
  await ended;
  clearTimeout(timer);
}

/** Resolves when the message has left. What cannot be sent any more is answered as the process ends. */
function send(child: ChildProcess, message: ToHeavy): Promise<void> {
  return new Promise((done) => child.send(message, () => done()));
}

function startProcess(world: OuterWorld, file: URL, lookMs: number): Running {
  const { config, log, database_url, distributed = false } = world;
  const stdio = ["inherit", "inherit", "inherit", "ipc", "pipe"] as const;
  const child = fork(fileURLToPath(file), [join(config.data_dir, "compiled")], {
    execArgv: FLAGS,
    serialization: "advanced",
    stdio: [...stdio],
  });
  const bodies = child.stdio[BODIES_FD] as Socket;
  const waiting: Waiting = new Map();
  const ended = Promise.withResolvers<void>();
  let isOver = false;
  let beats = 0;
  const watch = watchBeats({ beats: () => beats, waiting, look_ms: lookMs }, () => {
    log.error("the process for heavy requests stood still and is replaced");
    isOver = true;
    child.kill("SIGKILL");
  });
  child.on("message", (message: FromHeavy) => {
    if (message.kind === "fatal") return processEnder(log)(new Error(message.reason));
    beats += 1;
    if (message.kind === "beat") return;
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.kind === "answer") asked?.resolve(message.answer);
    else asked?.reject(Object.assign(new Error(message.message), { code: message.code }));
  });
  const over = (): void => {
    isOver = true;
    clearInterval(watch);
    for (const asked of waiting.values()) asked.reject(new Refusal("unavailable", ENDED));
    waiting.clear();
    ended.resolve();
  };
  child.once("error", (err) => {
    log.error({ err }, "the process for heavy requests could not be started");
    over();
  });
  child.once("exit", (code, signal) => {
    if (code !== 0 && !isOver) log.error({ code, signal }, "the process for heavy requests ended and is replaced");
    over();
  });
  void send(child, { kind: "start", config, database_url, distributed });
  child.unref();
  child.channel?.unref();
  bodies.unref();
  return { child, writeBody: createBodyWriter(bodies), waiting, isOver: () => isOver, ended: ended.promise };
}

type Beating = { beats(): number; waiting: Waiting; look_ms: number };

function watchBeats({ beats, waiting, look_ms }: Beating, onStuck: () => void): NodeJS.Timeout {
  let seen = 0;
  let silent = 0;
  const timer = setInterval(() => {
    // Before the first beat it is being started, which a busy machine makes long.
    silent = beats() === seen && seen > 0 && waiting.size > 0 ? silent + 1 : 0;
    seen = beats();
    if (silent === STUCK_LOOKS) onStuck();
  }, look_ms);
  timer.unref();
  return timer;
}
