// Where the mail of a suspended path waits: in the queue, in lanes that sleep until the path is tried again. What comes to
// such a path later (another lane's mail, a claim under way) follows the rest. What is written here is written in order, so
// that a resumption is not undone by the suspension before it. The mail of a suspended organization goes back as well; its
// lanes are passed over by the claims. Not here: when a path is suspended (path.ts), and which organizations are (suspended.ts).
import type { World } from "../../platform/world.ts";
import { tooLate } from "../path/attempt.ts";
import type { Finisher } from "../path/finish.ts";
import type { Delivery } from "../path/links.ts";
import { isSuspended } from "../path/path.ts";
import type { Path } from "../path/path-types.ts";
import * as queries from "../queries.ts";
import type { Job } from "../types.ts";
import type { Memory } from "./memory.ts";

export type ParkingParts = {
  memory: Pick<Memory, "finish" | "pause" | "resume">;
  finisher: Pick<Finisher, "push">;
  /** The lanes whose mail goes by this path. */
  lanesOf(path: Path): number[];
  /** The path is suspended no longer and holds mail. */
  drive(path: Path): void;
  /** Deliveries are in the queue again and were not attempted. */
  returned(jobs: Job[]): Promise<void>;
  /** Lanes have due mail again. */
  woken(): void;
};

export type Parking = {
  /** Puts the path's lanes to sleep and its mail back into the queue. */
  suspend(path: Path): void;
  /** Puts mail that came to the path since it was suspended back into the queue soon, many at a time. */
  park(path: Path): void;
  resume(path: Path): void;
  /** Puts one job back into the queue as it was, many at a time. */
  putBack(job: Job): void;
  /** Resolves once all of it is written. */
  drain(): Promise<void>;
};

const GATHER_MS = 20;
const REASON_MAX = 300;

/** Nothing parked yet. */
export function createParking(world: Pick<World, "db" | "clock" | "log">, parts: ParkingParts): Parking {
  const gathering = new Set<Path>();
  let written: Promise<unknown> = Promise.resolve();

  function write(what: string, statements: () => Promise<unknown>): void {
    written = written.then(statements).catch((err) => world.log.error({ err }, `a ${what} could not be recorded`));
  }

  function pause(path: Path, lanes: number[], jobs: Job[]): void {
    parts.memory.pause(lanes, path.suspended.untilMs);
    write("suspension", () => putToSleep(world, parts, path, { lanes, jobs }));
  }

  /** What is past its time ends now; it would be claimed for that again and again. */
  function takeOut(path: Path): Job[] {
    const jobs = path.fairness.drain().map(({ job }: Delivery) => job);
    const [over, waiting] = [jobs.filter(isOver), jobs.filter((job) => !isOver(job))];
    for (const job of over) parts.finisher.push(job, tooLate(job));
    for (const job of waiting) parts.memory.finish(job);
    return waiting;
  }

  function isOver({ expires_at }: Job): boolean {
    return expires_at.getTime() <= world.clock.now();
  }

  function parkNow(path: Path): void {
    gathering.delete(path);
    if (!isSuspended(world, path)) {
      parts.drive(path);
      return;
    }
    const jobs = takeOut(path);
    const lanes = [...new Set(jobs.map(({ lane_id }) => lane_id))];
    if (lanes.length > 0) pause(path, lanes, jobs);
  }

  const leaving = gatherJobs(GATHER_MS, (jobs) => {
    write("return to the queue", async () => {
      await queries.returnDeliveries(world.db, jobs, new Date(0));
      await parts.returned(jobs);
    });
  });

  return {
    suspend: (path) => pause(path, parts.lanesOf(path), takeOut(path)),
    putBack(job) {
      parts.memory.finish(job);
      leaving.push(job);
    },
    park(path) {
      if (gathering.has(path)) return;
      gathering.add(path);
      setTimeout(() => parkNow(path), GATHER_MS);
    },
    resume(path) {
      const lanes = parts.lanesOf(path);
      parts.memory.resume(lanes);
      write("resumption", async () => {
        await queries.resumeLanes(world.db, lanes, new Date(world.clock.now()));
        parts.woken();
      });
    },
    async drain() {
      leaving.flush();
      await written;
    },
  };
}

/** `take` gets the jobs of some milliseconds at once. */
function gatherJobs(forMs: number, take: (jobs: Job[]) => void): { push(job: Job): void; flush(): void } {
  let gathered: Job[] = [];
  function flush(): void {
    const jobs = gathered;
    gathered = [];
    if (jobs.length > 0) take(jobs);
  }
  return {
    push(job) {
      if (gathered.push(job) === 1) setTimeout(flush, forMs);
    },
    flush,
  };
}

async function putToSleep(
  { db }: Pick<World, "db">,
  { returned }: Pick<ParkingParts, "returned">,
  { suspended }: Path,
  { lanes, jobs }: { lanes: number[]; jobs: Job[] },
): Promise<void> {
  const { untilMs, reason } = suspended;
  const pause = () => queries.pauseLanes(db, lanes, new Date(untilMs), reason.slice(0, REASON_MAX));
  await pause();
  if (jobs.length === 0) return;
  await queries.returnDeliveries(db, jobs, new Date(0));
  // Rows that come back say when their lane has work: it is to sleep on, or every poll would look at it.
  await pause();
  await returned(jobs);
}
