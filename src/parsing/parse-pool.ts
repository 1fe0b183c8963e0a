// Parses received messages in worker threads with a limit on time and memory: whatever a message does to the parser, it
// does it to a thread that can be ended, and the next message gets another (reliability rule 8). A failure is a value.
// Why no library: docs/decisions/0041-own-parts.md.
// Not here: parsing (mail/mime/parse-message.ts, mail/returned-mail.ts, masked/rewrite/reply.ts), writing (mail/mime/write/to-seven-bit.ts), and what is done with a message that cannot be
// parsed.
import { Worker } from "node:worker_threads";
import type { ParsedMail } from "../mail/mime/parsed-mail.ts";
import type { Encrypting } from "../mail/pgp/encrypt-mail.ts";
import type { ReturnedMail } from "../mail/returned-mail.ts";
import type { BuiltReply, ReplyOrder } from "../masked/rewrite/reply.ts";
import type { BuiltForwards, ForwardsOrder } from "../masked/rewrite/write-forwards.ts";
import type { ParseAnswer, ParseJob, ParseTask } from "./parse-worker.ts";
import { watchWorkerTime } from "./worker-time.ts";

type Failed = { kind: "failed"; reason: string };
export type ParseOutcome = { kind: "parsed"; mail: ParsedMail } | Failed;
export type ReturnedOutcome = { kind: "parsed"; returned: ReturnedMail } | Failed;
export type ReplyOutcome = BuiltReply | Failed;
export type ForwardsOutcome = BuiltForwards | Failed;
export type SevenBitOutcome = { kind: "written"; bytes: Buffer } | Failed;

export type ParsePool = {
  /** Never throws. The bytes are copied, so they may be used or changed afterwards. */
  parse(bytes: Buffer): Promise<ParseOutcome>;
  /** The same for a bounce or a complaint. */
  readReturned(bytes: Buffer): Promise<ReturnedOutcome>;
  /** The same for a reply through a masked address, built again. */
  buildReply(bytes: Buffer, order: ReplyOrder): Promise<ReplyOutcome>;
  /** The same for the forwards of a mail to a masked address. */
  writeForwards(bytes: Buffer, order: ForwardsOrder): Promise<ForwardsOutcome>;
  /** A finished message encrypted for a key, as encryptMail does it; null where it cannot be. */
  encrypt(bytes: Buffer, pgp: Encrypting): Promise<Buffer | null>;
  /** The same message in 7 bits, as toSevenBit writes it. */
  toSevenBit(bytes: Buffer): Promise<SevenBitOutcome>;
  /** What is under way or waits has failed, and its workers end; idle ones stay for the other pools of the process. */
  stop(): Promise<void>;
};

export type ParsePoolOptions = {
  size: number;
  /**
   * The processor time that reading may take, from the moment a worker has a message (and small ones with it, which are tried
   * singly when it was not enough); by the clock six times as long (worker-time.ts).
   */
  processor_ms: number;
  memory_mib: number;
  /** Tests give workers that misbehave. */
  worker?: URL;
};

/** Why a message failed that needs more than a worker may have; alone, for those that were with others are tried again. */
export const OUT_OF_MEMORY = "the parser ran out of memory";

/** Waiting messages hold their bytes; whoever takes mail must stop long before this. */
const WAITING_MAX = 10_000;
const YOUNG_MIB = 32;
/** Small messages that wait share a trip to a worker: the trip cost 13 % of a busy receiver, more than their parsing. */
const TOGETHER_MAX = 8;
const TOGETHER_BYTES_MAX = 128 * 1024;

/** `alone`: it was in a worker with others when that failed. */
type Job = { task: ParseTask; bytes: Buffer; done: (answer: ParseAnswer | Failed) => void; alone: boolean };
type Thread = { worker: Worker; jobs: Job[]; endWatch: () => void };
type State = { options: ParsePoolOptions; waiting: Job[]; idle: Worker[]; busy: Set<Thread>; stopped: boolean };

/** Workers with nothing to do, by what they are: a worker knows nothing of its pool, so each pool of a process takes any. */
const idleWorkers = new Map<string, Worker[]>();

/** Makes the pool; workers start when they are first needed, at most `size` of them, and do not keep the process alive. */
export function createParsePool(options: ParsePoolOptions): ParsePool {
  const state: State = { options, waiting: [], idle: idleOf(options), busy: new Set(), stopped: false };
  return {
    async parse(bytes) {
      const answer = await enqueue(state, { as: "mail" }, bytes);
      return "mail" in answer ? { kind: "parsed", mail: withBuffers(answer.mail) } : unexpected(answer);
    },
    async readReturned(bytes) {
      const answer = await enqueue(state, { as: "returned" }, bytes);
      return "returned" in answer ? { kind: "parsed", returned: answer.returned } : unexpected(answer);
    },
    async buildReply(bytes, order) {
      const answer = await enqueue(state, { as: "reply", order }, bytes);
      return "reply" in answer ? withBuffer(answer.reply) : unexpected(answer);
    },
    async writeForwards(bytes, order) {
      const answer = await enqueue(state, { as: "forwards", order }, bytes);
      if (!("forwards" in answer)) return unexpected(answer);
      const forwards = answer.forwards.forwards.map((one) => ({ ...one, mime: one.mime && asBuffer(one.mime) }));
      return { ...answer.forwards, forwards };
    },
    async encrypt(bytes, pgp) {
      const answer = await enqueue(state, { as: "encrypted", pgp }, bytes);
      return "encrypted" in answer && answer.encrypted !== null ? asBuffer(answer.encrypted) : null;
    },
    async toSevenBit(bytes) {
      const answer = await enqueue(state, { as: "seven_bit" }, bytes);
      return "seven_bit" in answer ? { kind: "written", bytes: asBuffer(answer.seven_bit) } : unexpected(answer);
    },
    stop: () => stop(state),
  };
}

function idleOf({ memory_mib, worker }: ParsePoolOptions): Worker[] {
  const kind = `${memory_mib} ${worker ?? ""}`;
  const idle = idleWorkers.get(kind) ?? [];
  idleWorkers.set(kind, idle);
  return idle;
}

function enqueue(state: State, task: ParseTask, bytes: Buffer): Promise<ParseAnswer | Failed> {
  return new Promise((done) => {
    if (state.stopped) return done(failed("the parser has stopped"));
    if (state.waiting.length >= WAITING_MAX) return done(failed("too many messages wait for the parser"));
    state.waiting.push({ task, bytes, done, alone: false });
    startWaiting(state);
  });
}

function failed(reason: string): Failed {
  return { kind: "failed", reason };
}

function unexpected(answer: ParseAnswer | Failed): Failed {
  return "kind" in answer ? answer : failed("the parser answered something else");
}

function startWaiting(state: State): void {
  while (!state.stopped && state.waiting.length > 0 && state.busy.size < state.options.size) startNext(state);
}

function startNext(state: State): void {
  const jobs = takeTogether(state);
  const worker = state.idle.pop() ?? startWorker(state.options);
  const thread: Thread = {
    worker,
    jobs,
    endWatch: watchWorkerTime(worker, state.options.processor_ms, () => give("the parser took too long")),
  };
  let isOver = false;
  const give = (outcome: string | ParseAnswer[]) => {
    if (isOver) return;
    isOver = true;
    thread.endWatch();
    worker.removeAllListeners();
    state.busy.delete(thread);
    if (typeof outcome === "string" || state.stopped) endWorker(worker);
    else {
      worker.unref();
      // An idle worker has nothing to report; if it ends all the same, the next job starts another.
      worker.once("exit", () => state.idle.splice(state.idle.indexOf(worker), 1)).on("error", () => {});
      state.idle.push(worker);
    }
    settle(state, jobs, outcome);
    startWaiting(state);
  };
  state.busy.add(thread);
  worker.removeAllListeners();
  worker.ref();
  worker.once("message", (answers: ParseAnswer[]) => give(answers));
  worker.once("error", (error: NodeJS.ErrnoException) => give(reasonOf(error)));
  worker.once("exit", () => give("the parser ended"));
  hand(worker, jobs);
}

/** The first that waits and, when it is small, small ones behind it: no more than leave something for every free worker. */
function takeTogether({ waiting, options, busy }: State): Job[] {
  const share = Math.ceil(waiting.length / (options.size - busy.size));
  const jobs = [waiting.shift()!];
  let bytes = jobs[0]!.bytes.length;
  while (jobs.length < Math.min(share, TOGETHER_MAX) && !jobs[0]!.alone) {
    const next = waiting[0];
    if (!next || next.alone || bytes + next.bytes.length > TOGETHER_BYTES_MAX) break;
    bytes += next.bytes.length;
    jobs.push(waiting.shift()!);
  }
  return jobs;
}

function hand(worker: Worker, jobs: readonly Job[]): void {
  const given = jobs.map(({ task, bytes }): ParseJob => ({ task, bytes: new Uint8Array(bytes) }));
  worker.postMessage(
    given,
    given.map(({ bytes }) => bytes.buffer),
  );
}

/** A failure is its own message's alone: of several it is not known whose it is, so each is tried by itself. */
function settle(state: State, jobs: readonly Job[], outcome: string | ParseAnswer[]): void {
  if (typeof outcome !== "string") {
    for (const [at, { done }] of jobs.entries()) done(outcome[at] ?? failed("the parser answered something else"));
  } else if (jobs.length === 1 || state.stopped) {
    for (const { done } of jobs) done(failed(outcome));
  } else {
    state.waiting.unshift(...jobs.map((job) => ({ ...job, alone: true })));
  }
}

function startWorker({ memory_mib, worker }: ParsePoolOptions): Worker {
  const limits = { maxOldGenerationSizeMb: memory_mib, maxYoungGenerationSizeMb: Math.min(YOUNG_MIB, memory_mib) };
  return new Worker(worker ?? new URL("./parse-worker.ts", import.meta.url), { resourceLimits: limits });
}

function endWorker(worker: Worker): Promise<unknown> {
  worker.on("error", () => {});
  return worker.terminate();
}

function reasonOf(error: NodeJS.ErrnoException): string {
  return error.code === "ERR_WORKER_OUT_OF_MEMORY" ? OUT_OF_MEMORY : `the parser failed: ${error.name}`;
}

function withBuffer(reply: BuiltReply): BuiltReply {
  if (reply.kind === "refused") return reply;
  return { ...reply, bytes: asBuffer(reply.bytes) };
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length);
}

// Buffers arrive as plain Uint8Arrays.
function withBuffers(mail: ParsedMail): ParsedMail {
  const attachments = mail.attachments.map((attachment) => ({ ...attachment, content: asBuffer(attachment.content) }));
  return { ...mail, attachments };
}

async function stop(state: State): Promise<void> {
  state.stopped = true;
  const threads = [...state.busy];
  for (const job of state.waiting.splice(0)) job.done(failed("the parser has stopped"));
  for (const { worker, jobs, endWatch } of threads) {
    endWatch();
    worker.removeAllListeners();
    for (const job of jobs) job.done(failed("the parser has stopped"));
  }
  state.busy.clear();
  await Promise.all(threads.map(({ worker }) => endWorker(worker)));
}
