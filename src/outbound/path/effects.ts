// What a path answers when it is given mail, or when it learns what came of it. A path changes nothing but itself: what is to be
// done beyond it is an effect, which the engine carries out (carry-out.ts) before the path goes on. Types alone.
import type { Hop } from "../route/route.ts";
import type { Job, Outcome } from "../types.ts";
import type { Delivery } from "./links.ts";

/** `counts`: among the figures of the address that it left from. */
type Ended = { job: Job; outcome: Outcome; counts: boolean };

/** The attempt, or the mail, ends with this outcome. */
export type End = Ended & { kind: "end" };

/** Its address was refused: it leaves from another of the pool where there is one, else it ends so. */
export type Elsewhere = Ended & { kind: "elsewhere" };

export type Effect =
  | End
  | Elsewhere
  /** No server could be reached directly: its relay takes it where it has one and needs it; else it ends so. */
  | { kind: "divert"; delivery: Delivery; otherwise: End | Elsewhere }
  /** It has to wait in the queue, by an order of the operator. */
  | { kind: "put_back"; job: Job }
  /** The path was suspended: its lanes sleep until then, and its mail waits in the queue. */
  | { kind: "suspend"; minutes: number }
  /** Mail came to a path that is suspended: it follows the rest into the queue. */
  | { kind: "park" }
  /** The site answers again: lanes that sleep are awake. */
  | { kind: "resume" }
  /** A server was connected to directly: port 25 is open. */
  | { kind: "connected"; hop: Hop }
  /** None of the site's servers could be: this is an address of one. */
  | { kind: "unreachable"; hop: Hop };
