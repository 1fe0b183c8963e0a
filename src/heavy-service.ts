// The process that heavy requests are done in (api/heavy/heavy-process.ts): the same API over the same database, which no socket
// leads to. Who asks is known already, and the request was counted against its rate; everything else happens as there.
// What it accepts it does not send: an engine finds it in the database, as it does the mail of other processes.
import { readdirSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { getPriority, setPriority } from "node:os";
import { join } from "node:path";
import { createBodyReader } from "./api/heavy/heavy-bodies.ts";
import type { FromHeavy, HeavyAnswer, HeavyRequest, HeavyStart, ToHeavy } from "./api/heavy/heavy-process.ts";
import { createInnerServer } from "./api/server.ts";
import { createEngine, mountFeatures, mountOpenRoutes } from "./app.ts";
import { followMoves } from "./moving/follow-moves.ts";
import { followReading } from "./platform/clock.ts";
import { createLog } from "./platform/process/log.ts";
import { createFolderBlobs } from "./platform/storage/blobs.ts";
import { followKeyRing } from "./platform/storage/follow-key-ring.ts";
import type { World } from "./platform/world.ts";
import { buildWorld } from "./world.ts";

type InnerServer = Awaited<ReturnType<typeof createInnerServer>>;

const BEAT_MS = 500;
/** Behind all that answers at once; as much as others leave it. Not while it starts: a busy machine would make that long. */
const NICE = 10;
/**
 * On the kernel's scale of up to 1000: where memory is short, this process is ended before the one that it belongs to.
 */
const OOM_SCORE = "500";

const asking = new Map<string, HeavyRequest>();
const processor = meter();
const bodies = createBodyReader<HeavyRequest>((request, body) => void work(request, body));
/** Undefined until `start` came. */
let world: World;
let opened: Promise<InnerServer> | null = null;
let following: { stop(): Promise<void> } | null = null;

offerToEnd();
// Its end is the other process's affair: a signal to the group comes to both, and requests are under way.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => undefined);
process.once("disconnect", () => process.exit());
process.on("uncaughtException", (err) => {
  world?.log.error({ err }, "a bug in the process for heavy requests");
  process.exit(1);
});
process.on("message", (message: ToHeavy) => {
  if (message.kind === "start") start(message);
  else if (message.kind === "stop") void stop();
  else {
    // One service has one clock: what is made here ends by the time that is looked at there.
    followReading(world.clock, message.clock);
    bodies.expect(message.request, message.bytes);
  }
});

function start(given: HeavyStart): void {
  world = openOwnWorld(given);
  tell({ kind: "beat" });
  setInterval(() => asking.size > 0 && tell({ kind: "beat" }), BEAT_MS).unref();
}

function tell(message: FromHeavy): void {
  // Where the other process is gone, `disconnect` ends this one.
  if (process.connected) process.send!(message);
}

async function work(request: HeavyRequest, body: Buffer): Promise<void> {
  const { id } = request;
  asking.set(id, request);
  try {
    // What the start takes counts for nobody.
    const server = await theServer();
    const { answer, processor_ms } = await processor.measure(() => answerOf(server, request, body));
    tell({ kind: "answer", id, answer: { ...answer, processor_ms } });
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    tell({ kind: "failed", id, message, ...(code === undefined ? {} : { code }) });
  } finally {
    asking.delete(id);
  }
}

async function answerOf(
  { app, named }: InnerServer,
  { id, method, headers, ip }: HeavyRequest,
  payload: Buffer,
): Promise<Omit<HeavyAnswer, "processor_ms">> {
  const { "transfer-encoding": _coding, expect: _expect, "content-length": _length, ...kept } = headers;
  const response = await app.inject({
    method: method as "POST",
    url: "/",
    headers: { ...kept, ...named(id), ...(payload.length > 0 ? { "content-length": String(payload.length) } : {}) },
    remoteAddress: ip,
    ...(payload.length > 0 ? { payload } : {}),
  });
  return { status: response.statusCode, headers: response.headers, body: response.rawPayload };
}

/** Opened with the first request, and again with the next one where the database could not be reached. */
function theServer(): Promise<InnerServer> {
  opened ??= openServer().catch((error) => {
    opened = null;
    throw error;
  });
  return opened;
}

async function openServer(): Promise<InnerServer> {
  following ??= await follow();
  const engine = createEngine(world);
  const server = await createInnerServer(world, {
    mount: (api) => mountFeatures(api, world, engine),
    mountOpen: (api) => mountOpenRoutes(api, world, engine),
    find: (id) => asking.get(id),
  });
  stepBack();
  setImmediate(flushCompileCache);
  return server;
}

async function follow(): Promise<{ stop(): Promise<void> }> {
  const keyRing = await followKeyRing(world, process.ppid);
  const moves = await followMoves(world, keyRing.process_id);
  return { stop: async () => void (await Promise.all([moves.stop(), keyRing.stop()])) };
}

/** A blob that may not be on the disk ends the whole service, not this process alone. */
function openOwnWorld({ config, database_url, distributed }: HeavyStart): World {
  const log = createLog({ level: config.log_level, role: "heavy" });
  const built = buildWorld(config, log, database_url, distributed);
  if (config.s3) return built;
  const end = (failure: Error): void => tell({ kind: "fatal", reason: failure.message });
  return { ...built, blobs: createFolderBlobs(join(config.data_dir, "blobs"), end) };
}

async function stop(): Promise<void> {
  const server = await opened?.catch(() => null);
  await server?.app.close();
  await following?.stop();
  await world?.traces?.stop();
  await world?.db.close();
  process.exit(0);
}

/** On Linux each thread has a priority of its own; those to come take that of who starts them. */
function stepBack(): void {
  whereAllowed(() => {
    const nice = Math.max(NICE, getPriority());
    setPriority(nice);
    for (const thread of readdirSync("/proc/self/task")) setPriority(Number(thread), nice);
  });
}

function offerToEnd(): void {
  whereAllowed(() => writeFileSync("/proc/self/oom_score_adj", OOM_SCORE));
}

/** macOS, Windows, or a sandbox may not let that be said, and it goes without. */
function whereAllowed(say: () => void): void {
  try {
    say();
  } catch {
    // As it was.
  }
}

/** What each of the requests took: the process's time, in equal parts for those that were under way together. */
function meter() {
  const taken = new Map<symbol, number>();
  let last = process.cpuUsage();
  const divide = (): void => {
    const { user, system } = process.cpuUsage(last);
    last = process.cpuUsage();
    const part = (user + system) / 1000 / Math.max(1, taken.size);
    for (const [name, ms] of taken) taken.set(name, ms + part);
  };
  return {
    async measure<T>(task: () => Promise<T>): Promise<{ answer: T; processor_ms: number }> {
      divide();
      const name = Symbol("request");
      taken.set(name, 0);
      try {
        const answer = await task();
        divide();
        return { answer, processor_ms: taken.get(name) ?? 0 };
      } finally {
        taken.delete(name);
      }
    },
  };
}
