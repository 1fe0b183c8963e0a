// The thread for heavy requests: a second API of this process (src/heavy-worker.ts), with a world of its own over the same
// database, so that whatever a request holds there, it holds nobody's mail, health or SMTP here. It starts when it is first
// needed. One that runs out of memory or stands still is ended and replaced: its requests are answered 503, as if the
// process had ended. Not here: which requests are heavy (heavy.ts), and whose turn it is.
import { Worker } from "node:worker_threads";
import type { Config } from "../config.ts";
import type { Account } from "../http/http.ts";
import { type ClockReading, readClock } from "../platform/clock.ts";
import { processEnder } from "../platform/process/end-process.ts";
import { Refusal } from "../platform/refusal.ts";
import type { World } from "../platform/world.ts";

/** A request as it came, with who asks. `pieces` of the body have memory of their own, which is handed over. */
export type HeavyRequest = {
  id: string;
  method: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  ip: string;
  account: Account;
  pieces: Uint8Array<ArrayBuffer>[];
};

export type HeavyAnswer = {
  status: number;
  headers: Record<string, string | string[] | number | undefined>;
  body: Uint8Array<ArrayBuffer>;
  /** Of the processor, by the thread's own count. */
  processor_ms: number;
};

export type HeavyThread = {
  /** Resolves to the answer; 503 when the thread ended before there was one. */
  ask(request: HeavyRequest): Promise<HeavyAnswer>;
  /** Ends the thread when its requests are answered. */
  stop(): Promise<void>;
};

/** What the thread is started with. */
export type HeavyStart = { config: Config; database_url: string; beats: Int32Array };
export type ToHeavy = { kind: "request"; request: HeavyRequest; clock: ClockReading } | { kind: "stop" };
export type FromHeavy =
  | { kind: "answer"; id: string; answer: HeavyAnswer }
  /** `code` says whether it may be tried again, as it does of an error of this thread (api/errors.ts). */
  | { kind: "failed"; id: string; message: string; code?: string }
  | { kind: "fatal"; reason: string };

const MEMORY_MIB = 768;
const YOUNG_MIB = 64;
const LOOK_MS = 5_000;
/** Looks without a beat while something is asked: the longest request takes seconds. */
const STUCK_LOOKS = 12;
const STOP_MS = 10_000;
const ENDED = "the work on this request was lost; try again shortly";

type Waiting = Map<string, PromiseWithResolvers<HeavyAnswer>>;
type Running = { worker: Worker; waiting: Waiting; isOver(): boolean; ended: Promise<void> };

type ThreadWorld = Pick<World, "config" | "log" | "database_url" | "clock">;

/** Prepares the thread; `worker` is the file that runs in it. `lookMs` is for tests. */
export function createHeavyThread(world: ThreadWorld, worker: URL, lookMs: number = LOOK_MS): HeavyThread {
  let running: Running | null = null;
  let isStopped = false;

  return {
    ask(request) {
      if (isStopped) return Promise.reject(new Refusal("unavailable", ENDED));
      if (running === null || running.isOver()) running = startThread(world, worker, lookMs);
      const asked = Promise.withResolvers<HeavyAnswer>();
      running.waiting.set(request.id, asked);
      const message: ToHeavy = { kind: "request", request, clock: readClock(world.clock) };
      running.worker.postMessage(
        message,
        request.pieces.map(({ buffer }) => buffer),
      );
      return asked.promise;
    },
    async stop() {
      isStopped = true;
      if (running === null || running.isOver()) return;
      const { worker: thread, ended } = running;
      const timer = setTimeout(() => thread.terminate(), STOP_MS);
      thread.postMessage({ kind: "stop" } satisfies ToHeavy);
      await ended;
      clearTimeout(timer);
    },
  };
}

function startThread({ config, log, database_url }: ThreadWorld, file: URL, lookMs: number): Running {
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const worker = new Worker(file, {
    workerData: { config, database_url, beats } satisfies HeavyStart,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB, maxYoungGenerationSizeMb: YOUNG_MIB },
  });
  const waiting: Waiting = new Map();
  const ended = Promise.withResolvers<void>();
  let isOver = false;
  const end = (): void => {
    isOver = true;
    void worker.terminate();
  };
  const watch = watchBeats({ beats, waiting, look_ms: lookMs }, () => {
    log.error("the thread for heavy requests stood still and is replaced");
    end();
  });
  worker.on("message", (message: FromHeavy) => {
    if (message.kind === "fatal") return processEnder(log)(new Error(message.reason));
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.kind === "answer") asked?.resolve(message.answer);
    else asked?.reject(Object.assign(new Error(message.message), { code: message.code }));
  });
  worker.on("error", (err) => {
    isOver = true;
    log.error({ err }, "the thread for heavy requests failed and is replaced");
  });
  worker.once("exit", () => {
    isOver = true;
    clearInterval(watch);
    for (const asked of waiting.values()) asked.reject(new Refusal("unavailable", ENDED));
    waiting.clear();
    ended.resolve();
  });
  worker.unref();
  return { worker, waiting, isOver: () => isOver, ended: ended.promise };
}

type Beating = { beats: Int32Array; waiting: Waiting; look_ms: number };

function watchBeats({ beats, waiting, look_ms }: Beating, onStuck: () => void): NodeJS.Timeout {
  let seen = 0;
  let silent = 0;
  const timer = setInterval(() => {
    const beat = Atomics.load(beats, 0);
    // Before the first it is being started, which a busy machine makes long.
    silent = beat === seen && beat > 0 && waiting.size > 0 ? silent + 1 : 0;
    seen = beat;
    if (silent === STUCK_LOOKS) onStuck();
  }, look_ms);
  timer.unref();
  return timer;
}
