// The thread that heavy requests are done on (api/heavy-thread.ts): the same API over the same database, which no socket
// leads to. Who asks is known already, and the request was counted against its rate; everything else happens as there.
// What it accepts it does not send: an engine finds it in the database, as it does the mail of other processes.
import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import type { FromHeavy, HeavyAnswer, HeavyRequest, HeavyStart, ToHeavy } from "./api/heavy-thread.ts";
import { createInnerServer } from "./api/server.ts";
import { createEngine, mountFeatures, mountOpenRoutes } from "./app.ts";
import type { Config } from "./config.ts";
import { followReading } from "./platform/clock.ts";
import { createLog } from "./platform/process/log.ts";
import { createFolderBlobs } from "./platform/storage/blobs.ts";
import { followKeyRing } from "./platform/storage/follow-key-ring.ts";
import type { World } from "./platform/world.ts";
import { buildWorld } from "./world.ts";

const BEAT_MS = 500;
/** Behind all that answers at once; as much as others leave it. */
const NICE = 5;

const { config: cloned, database_url, beats } = workerData as HeavyStart;
const config = withBuffers(cloned);
const port = parentPort!;
const tell = (message: FromHeavy, handed: ArrayBuffer[] = []): void => port.postMessage(message, handed);

stepBack();
Atomics.add(beats, 0, 1);
setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS).unref();
const world = openOwnWorld();

const asking = new Map<string, HeavyRequest>();
const processor = meter();
let opened: ReturnType<typeof openServer> | null = null;
let following: { stop(): Promise<void> } | null = null;

port.on("message", (message: ToHeavy) => {
  if (message.kind === "stop") void stop();
  else {
    // One process has one clock: what is made here ends by the time that is looked at there.
    followReading(world.clock, message.clock);
    void work(message.request);
  }
});

async function work(request: HeavyRequest): Promise<void> {
  const { id } = request;
  asking.set(id, request);
  const took = processor.begin();
  try {
    const answer = await answerOf(request);
    const whole = { ...answer, processor_ms: took() };
    tell({ kind: "answer", id, answer: whole }, [whole.body.buffer]);
  } catch (error) {
    took();
    const { message, code } = error as NodeJS.ErrnoException;
    tell({ kind: "failed", id, message, ...(code === undefined ? {} : { code }) });
  } finally {
    asking.delete(id);
  }
}

async function answerOf({ id, method, headers, ip, pieces }: HeavyRequest): Promise<Omit<HeavyAnswer, "processor_ms">> {
  const payload = Buffer.concat(pieces);
  const { "transfer-encoding": _coding, expect: _expect, "content-length": _length, ...kept } = headers;
  const { app, named } = await theServer();
  const response = await app.inject({
    method: method as "POST",
    url: "/",
    headers: { ...kept, ...named(id), ...(payload.length > 0 ? { "content-length": String(payload.length) } : {}) },
    remoteAddress: ip,
    ...(payload.length > 0 ? { payload } : {}),
  });
  return { status: response.statusCode, headers: response.headers, body: new Uint8Array(response.rawPayload) };
}

/** Opened with the first request, and again with the next one where the database could not be reached. */
function theServer(): ReturnType<typeof openServer> {
  opened ??= openServer().catch((error) => {
    opened = null;
    throw error;
  });
  return opened;
}

async function openServer() {
  following ??= await followKeyRing(world);
  const engine = createEngine(world);
  return createInnerServer(world, {
    mount: (api) => mountFeatures(api, world, engine),
    mountOpen: (api) => mountOpenRoutes(api, world, engine),
    find: (id) => asking.get(id),
  });
}

/** They arrive as plain Uint8Arrays. */
function withBuffers(given: Config): Config {
  const entries = Object.entries(given).map(([name, value]) => [
    name,
    value instanceof Uint8Array ? Buffer.from(value) : value,
  ]);
  return Object.fromEntries(entries) as Config;
}

/** A blob that may not be on the disk ends the whole process, not this thread alone. */
function openOwnWorld(): World {
  const built = buildWorld(config, createLog({ level: config.log_level, role: "heavy" }), database_url);
  if (config.s3) return built;
  const end = (failure: Error): void => tell({ kind: "fatal", reason: failure.message });
  return { ...built, blobs: createFolderBlobs(join(config.data_dir, "blobs"), end) };
}

async function stop(): Promise<void> {
  const server = await opened?.catch(() => null);
  await server?.app.close();
  await following?.stop();
  await world.traces?.stop();
  await world.db.close();
  process.exit(0);
}

/** This thread alone; not everywhere can that be said, and it goes without. */
function stepBack(): void {
  try {
    setPriority(Number(readlinkSync("/proc/thread-self").split("/").at(-1)), NICE);
  } catch {
    // macOS, Windows, or a sandbox that forbids it.
  }
}

/** What each of the requests took: the thread's time, in equal parts for those that were under way together. */
function meter() {
  const taken = new Map<symbol, number>();
  let last = process.threadCpuUsage();
  const divide = (): void => {
    const { user, system } = process.threadCpuUsage(last);
    last = process.threadCpuUsage();
    const part = (user + system) / 1000 / Math.max(1, taken.size);
    for (const [name, ms] of taken) taken.set(name, ms + part);
  };
  return {
    begin() {
      divide();
      const name = Symbol("request");
      taken.set(name, 0);
      return () => {
        divide();
        const ms = taken.get(name) ?? 0;
        taken.delete(name);
        return ms;
      };
    },
  };
}
