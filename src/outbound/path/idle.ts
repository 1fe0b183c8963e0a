// Open sessions of a path that wait for its next message: which one serves it, how many are kept, and for how long.

import type { Link } from "./link.ts";
import { type Delivery, fits } from "./links.ts";
import type { Shares } from "./shares.ts";

export type Idle = { link: Link; timer: NodeJS.Timeout; forget(): void };

/** The path, as far as its idle sessions go; `limit` is how many connections it may have. */
type Keeper = { idle: Idle[]; limit: number };

const IDLE_MS = 30_000;

/** The idle session used last that will do; those that broke meanwhile are closed on the way. */
export function takeIdle(path: Keeper, delivery: Delivery): Link | null {
  for (let at = path.idle.length - 1; at >= 0; at -= 1) {
    const { link, timer, forget } = path.idle[at] as Idle;
    if (link.session.usable && !fits(link, delivery)) continue;
    path.idle.splice(at, 1);
    clearTimeout(timer);
    forget();
    if (link.session.usable) return link;
    link.session.close();
  }
  return null;
}

/** Keeps a session for the next message, if it is good for one. */
export function keepIdle(shares: Pick<Shares<never>, "keep">, path: Keeper, link: Link): void {
  const { session } = link;
  if (!session.usable) {
    session.close();
    return;
  }
  const part = (): void => {
    clearTimeout(timer);
    forget();
    path.idle = path.idle.filter((entry) => entry.link !== link);
    void session.quit();
  };
  const timer = setTimeout(part, IDLE_MS);
  timer.unref();
  const forget = shares.keep(part);
  path.idle.push({ link, timer, forget });
  // Servers of many domains may lie behind one site: idle sessions count against its connections as well.
  if (path.idle.length <= Math.max(1, Math.floor(path.limit))) return;
  const oldest = path.idle.shift();
  clearTimeout(oldest?.timer);
  oldest?.forget();
  void oldest?.link.session.quit();
}

/** Says QUIT on all of them. */
export function closeIdle(path: Keeper): void {
  for (const { link, timer, forget } of path.idle.splice(0)) {
    clearTimeout(timer);
    forget();
    void link.session.quit();
  }
}
