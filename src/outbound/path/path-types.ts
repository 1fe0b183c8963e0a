// A path as its engine sees it, and what the engine lends it. Types alone: worker.ts does the work.
import type { World } from "../../platform/world.ts";
import type { OpenSession } from "../outside.ts";
import type { Usage } from "../pools/usage.ts";
import type { Reach } from "../route/reach.ts";
import type { Site } from "../route/tls-policy.ts";
import type { TlsResults } from "../route/tls-results.ts";
import type { Job, Outcome } from "../types.ts";
import type { Attempt } from "./attempt.ts";
import type { Fairness } from "./fairness.ts";
import type { Finisher } from "./finish.ts";
import type { Idle } from "./idle.ts";
import type { Delivery, Source } from "./links.ts";
import type { Refusals } from "./refusals.ts";
import type { Shares } from "./shares.ts";

export type PathWorld = Pick<World, "clock" | "seal" | "config" | "log" | "random">;

export type PathParts = Attempt & {
  open: OpenSession;
  finisher: Finisher;
  results: TlsResults;
  usage: Pick<Usage, "count">;
  /** The address was refused for itself: is the message to be tried once more, from another of its pool? */
  isForOther(job: Job, source: Source): boolean;
  reach: Pick<Reach, "connected" | "unreachable">;
  /** Whether mail that could not be sent directly has gone to its relay instead. */
  divert(delivery: Delivery): boolean;
  /** Parks the lanes of a path that was just suspended; their jobs in memory go back to the queue. */
  suspend(path: Path): void;
  /** Jobs came to a path after it was suspended: they follow the others. */
  park(path: Path): void;
  /** The site answers again after a suspension. */
  resume(path: Path): void;
  /** What goes on at once over all paths. */
  shares: Shares<Path>;
  stopping(): boolean;
  /** Whether the mail of this organization is to wait in the queue. */
  isSuspended(orgId: string): boolean;
  /** Whether the mail to this destination is to wait in the queue. */
  isHeld(domain: string): boolean;
  /** Takes a job of such an organization, or to such a destination, back. */
  putBack(job: Job): void;
  /** Its end if it waited here for long and may not leave any more; null at once when that need not be looked up. */
  lookAgain(delivery: Delivery): Promise<Outcome | null> | null;
};

export type Path = {
  key: string;
  source: Source;
  site: Site;
  isRelay: boolean;
  fairness: Fairness<Delivery>;
  /** Connections that may be open now; grows by success, shrinks by failure. */
  limit: number;
  workers: number;
  /** Connections being made now. */
  dialling: number;
  /** A connection was made, and none failed or was lost since: more may be made beside each other. */
  proven: boolean;
  idle: Idle[];
  failures: number;
  /** Replies in a row that call our address blocked. */
  blocks: number;
  firstFailureAtMs: number;
  notBeforeMs: number;
  /** Until then no other server is asked for one that cannot take a message: none of them could either. */
  aloneUntilMs: number;
  /** Sender domains that were asked to slow down, and until when nothing of theirs is begun. */
  slowed: Map<string, number>;
  /** Nothing is begun until then (by the wall clock, as lanes are due), and why. */
  suspended: { untilMs: number; reason: string };
  /** How often in a row it was suspended because the site is not there. */
  suspensions: number;
  timer: NodeJS.Timeout | null;
  usedAtMs: number;
  /** Domains whose policy no server of theirs met, by name and demand: their next messages need not try for a while. */
  refusals: Refusals;
};
