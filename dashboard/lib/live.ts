// Following what happens while somebody looks: one request waits for events, and is sent again once it is answered. A hidden page asks
// for nothing. After a cut, and once it is shown again, a page reads all it shows before it goes on.
import { useEffect, useRef, useState } from "react";
import { Declined, type Schemas, take, v1 } from "../api/client.ts";

/** `polled`: the person's role reads no events, so the page reads again now and then. */
export type LiveState = "off" | "starting" | "live" | "paused" | "cut" | "polled";
export type ReadEvent = Schemas["ReadEvent"];
/** `null`: something may have been missed. */
export type OnEvents = (events: readonly ReadEvent[] | null) => void;
type Following = { types: string; onEvents: OnEvents };

export const SENT_EVENTS = "email.delivered,email.bounced,email.deferred,email.complained";
export const RECEIVED_EVENTS = "email.received";

const WAIT_S = 25;
/** More at once: the page goes on with what is newest. */
const EVENTS_MAX = 100;
/** Between two answers with events, so that a busy hour does not make a page read without end. */
const REST_MS = 800;
/** A later answer counts as no answer. */
const SLOW_MS = 15_000;
const AGAIN_MS = [1_000, 2_000, 4_000, 8_000];
/** What is no event, such as a mail that was just accepted, is seen after this long. */
const BESIDES_MS = 10_000;
const POLLED_MS = 4_000;

/** How often a page that is in this state reads besides. */
export function readsEvery(state: LiveState): number | false {
  if (state === "live") return BESIDES_MS;
  return state === "polled" || state === "starting" ? POLLED_MS : false;
}

/** Follows while `on`; `onEvents` is called with what happened. */
export function useLive({ on, types, onEvents }: Following & { on: boolean }): LiveState {
  const [state, say] = useState<LiveState>("starting");
  const latest = useRef(onEvents);
  useEffect(() => {
    latest.current = onEvents;
  });
  useEffect(() => {
    if (!on) return;
    const left = new AbortController();
    say("starting");
    void follow({ types, onEvents: (events) => latest.current(events) }, left.signal, say);
    return () => left.abort();
  }, [on, types]);
  return on ? state : "off";
}

async function follow(following: Following, left: AbortSignal, say: (state: LiveState) => void): Promise<void> {
  let failures = 0;
  while (!left.aborted) {
    if (document.hidden) {
      say("paused");
      await happens(document, "visibilitychange", left);
      continue;
    }
    const away = awayOr(left);
    try {
      await followOnce(following, away, () => {
        failures = 0;
        say("live");
      });
    } catch (error) {
      if (away.aborted) continue;
      if (error instanceof Declined && error.status === 403) return say("polled");
      say("cut");
      const waitMs = AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)] ?? 0;
      failures += 1;
      await Promise.race([rest(waitMs, left), happens(window, "online", left)]);
    }
  }
}

/** Until something is in the way, which it throws. */
async function followOnce({ types, onEvents }: Following, away: AbortSignal, begun: () => void): Promise<void> {
  let after = (await readEvents({ types, wait: 0, limit: 1 }, away)).next;
  begun();
  onEvents(null);
  while (!away.aborted) {
    const { events, next } = await readEvents({ types, after, wait: WAIT_S, limit: EVENTS_MAX }, away);
    begun();
    after = next;
    if (events.length === 0) continue;
    onEvents(events);
    await rest(REST_MS, away);
    if (events.length === EVENTS_MAX) return;
  }
}

function readEvents(query: { types: string; after?: string; wait: number; limit: number }, signal: AbortSignal) {
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(query.wait * 1_000 + SLOW_MS)]);
  return take(v1.GET("/v1/events", { params: { query }, signal: inTime }));
}

/** Aborts when nobody looks any more, the network goes, or the page is left. */
function awayOr(left: AbortSignal): AbortSignal {
  const away = new AbortController();
  const signal = AbortSignal.any([left, away.signal]);
  document.addEventListener("visibilitychange", () => document.hidden && away.abort(), { signal });
  // A request under way would wait for an answer that does not come.
  addEventListener("offline", () => away.abort(), { signal });
  return signal;
}

function happens(target: EventTarget, name: string, left: AbortSignal): Promise<void> {
  return new Promise((done) => {
    left.addEventListener("abort", () => done(), { once: true });
    target.addEventListener(name, () => done(), { once: true, signal: left });
  });
}

function rest(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    setTimeout(done, ms);
    signal.addEventListener("abort", () => done(), { once: true });
  });
}
