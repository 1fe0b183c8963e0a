// What became of the mail of each dedicated address, by day: gathered in memory, added every few seconds. Statistics: a
// crash costs seconds of them.
import type { World } from "../../platform/world.ts";
import type { Source } from "../path/links.ts";
import type { Outcome } from "../types.ts";
import * as queries from "./pool-queries.ts";
import { dayOf } from "./warmup.ts";

export type Usage = {
  count(source: Pick<Source, "id" | "ip">, outcome: Pick<Outcome, "kind" | "class">): void;
  stop(): Promise<void>;
};

const FLUSH_EVERY_MS = 2_000;
const COUNTS_MAX = 10_000;

/** An empty gatherer with its timer. */
export function gatherUsage(world: Pick<World, "db" | "clock" | "log">): Usage {
  let counts = new Map<string, queries.UsageCount>();

  async function flush(): Promise<void> {
    const gathered = [...counts.values()];
    counts = new Map();
    if (gathered.length === 0) return;
    await queries
      .addUsage(world.db, gathered)
      .catch((err) => world.log.warn({ err }, "the usage of addresses could not be recorded"));
  }

  const timer = setInterval(flush, FLUSH_EVERY_MS);
  timer.unref();
  return {
    count(source, outcome) {
      if (source.ip === null) return;
      const day = dayOf(world.clock.now());
      const key = `${source.id} ${day}`;
      const known = counts.get(key) ?? { source_id: source.id, day, delivered: 0, deferred: 0, bounced: 0, blocked: 0 };
      if (!counts.has(key) && counts.size >= COUNTS_MAX) return;
      counts.set(key, known);
      if (outcome.kind === "delivered") known.delivered += 1;
      else if (outcome.kind === "deferred") known.deferred += 1;
      else known.bounced += 1;
      if (outcome.class === "blocked") known.blocked += 1;
    },
    async stop() {
      clearInterval(timer);
      await flush();
    },
  };
}
