// A path as its engine sees it, and what the engine lends to those who work on it. Types alone: path.ts and worker.ts do the work.
import type { World } from "../../platform/world.ts";
import type { OpenSession } from "../outside.ts";
import type { Site } from "../route/tls-policy.ts";
import type { TlsResults } from "../route/tls-results.ts";
import type { Attempt } from "./attempt.ts";
import type { Effect } from "./effects.ts";
import type { Fairness } from "./fairness.ts";
import type { Idle } from "./idle.ts";
import type { Delivery, Source } from "./links.ts";
import type { Recheck } from "./recheck.ts";
import type { Refusals } from "./refusals.ts";
import type { Pace, Shares } from "./shares.ts";

export type PathWorld = Pick<World, "clock" | "seal" | "config" | "log" | "random">;

/** What keeps mail from being begun that no path knows of by itself. It is asked, nothing changes by it. */
export type Gate = {
  /** The process ends. */
  isStopping(): boolean;
  /** Outcomes that wait for the database. */
  unrecorded(): number;
  /** Whether the mail of this organization is to wait in the queue. */
  isSuspended(orgId: string): boolean;
  /** Whether the mail to this destination is to wait in the queue. */
  isHeld(domain: string): boolean;
};

export type PathParts = Attempt & {
  open: OpenSession;
  results: TlsResults;
  /** What goes on at once over all paths. */
  shares: Shares<Path>;
  gate: Gate;
  recheck: Pick<Recheck, "findAgain">;
  /** Carries out what a path answered. */
  carryOut(path: Path, effect: Effect): void;
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
  /** Since when each of them is at its message, by the monotonic clock. */
  atWork: Set<{ sinceMs: number }>;
  /** Connections being made now. */
  dialling: number;
  /** A connection was made, and none failed or was lost since: more may be made beside each other. */
  proven: boolean;
  /** By the last message that came to its end here. */
  pace: Pace;
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
