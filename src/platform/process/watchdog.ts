// Two watches over a process that lives and does nothing. A thread of its own ends it when the event loop has not turned for
// a minute (a pattern or a loop that does not end: nothing else could notice). And every role's loop says that it went
// round; one that has not for five minutes (a query that is never answered) ends the process as well. Ending is safe by
// design (kill -9 loses nothing), and whatever started the process starts it again.
import { Worker } from "node:worker_threads";
import type { World } from "../world.ts";

const LOOP_STUCK_S = 60;
const ROLES_EVERY_MS = 10_000;
/** In looks, not in time: while the whole machine stood still nobody looked. */
const ROLE_STUCK_LOOKS = 30;
const BEAT_MS = 500;

export type Guard = {
  /** Resolves when the thread looks. */
  started: Promise<void>;
  stop(): Promise<void>;
};

/** Kills this process when its event loop stands still for `stuckS` seconds. */
export function guardEventLoop(world: Pick<World, "log">, stuckS: number = LOOP_STUCK_S): Guard {
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const worker = new Worker(new URL("./watchdog-worker.ts", import.meta.url), {
    workerData: { beats, stuck_s: stuckS },
    execArgv: [],
    // It has one timer and keeps nothing.
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
  });
  worker.on("error", (err) => world.log.error({ err }, "nobody watches the event loop"));
  const started = new Promise<void>((done) => worker.once("online", done));
  worker.unref();
  const timer = setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS);
  timer.unref();
  return {
    started,
    async stop() {
      clearInterval(timer);
      await worker.terminate();
    },
  };
}

type Role = { rounds: number; seen: number; silent_looks: number };

const rolesOf = new WeakMap<World["metrics"], Map<string, Role>>();

/** A function for a role's loop to call each time it has gone round; `end` when the loop ends in good order. */
export function beatOf(world: Pick<World, "metrics">, role: string): { beat(): void; end(): void } {
  const roles = rolesOf.get(world.metrics) ?? new Map<string, Role>();
  rolesOf.set(world.metrics, roles);
  const own: Role = { rounds: 0, seen: -1, silent_looks: 0 };
  roles.set(role, own);
  return {
    beat() {
      own.rounds += 1;
    },
    end: () => void roles.delete(role),
  };
}

/** Looks at the roles of this process; `onStuck` hears of one that stands still. */
export function watchRoles(
  world: Pick<World, "metrics" | "log">,
  onStuck: (role: string) => void = surface,
): { stop(): void } {
  const gauge = world.metrics.gauge("postern_role_silent_seconds", "Since a role's loop went round last", ["role"]);
  const timer = setInterval(() => {
    for (const [role, state] of rolesOf.get(world.metrics) ?? []) {
      state.silent_looks = state.rounds === state.seen ? state.silent_looks + 1 : 0;
      state.seen = state.rounds;
      gauge.set({ role }, (state.silent_looks * ROLES_EVERY_MS) / 1000);
      if (state.silent_looks !== ROLE_STUCK_LOOKS) continue;
      world.log.fatal({ role }, "a role has stood still for five minutes; the process ends, to be started again");
      onStuck(role);
    }
  }, ROLES_EVERY_MS);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

/** Nobody could answer it: it ends the process. */
function surface(role: string): void {
  setImmediate(() => {
    throw new Error(`the role ${role} stands still`);
  });
}
