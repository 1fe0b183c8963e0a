// Some of the nodes, in a process of their own that play.ts has made: each with what `postern start` starts for its roles, its own
// pools included. What they have in common is this process's thread. Orders come as messages, one at a time.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRoles } from "../../../src/app.ts";
import { readConfig } from "../../../src/config.ts";
import { sleep } from "../../../src/platform/clock.ts";
import { type Db, isUnavailable } from "../../../src/platform/database/db.ts";
import { openWorld } from "../../../src/world.ts";
import { noTimes, type TimesByKind, timedDb } from "./timed-db.ts";

export type Order =
  | { order: "start"; first: number; nodes: number; env: Record<string, string> }
  | { order: "hold"; seconds: number; clients: number; hold_ms: number }
  | { order: "stop" };

export type Started = { addresses: string[] };
export type Held = {
  /** Transactions of organizations that were answered, and those that were not (a request would be answered 503). */
  answered: number;
  unanswered: number;
};
export type Stopped = { times: TimesByKind[] };

type Node = { address: string | null; db: Db; times: TimesByKind; stop(): Promise<void> };

/** Of all but the first node, at which mail is taken in. */
const ROLES = ["mta"] as const;
const ALL = ["api", "mta", "hooks", "clock"] as const;
const AGAIN_MS = 200;
const nodes: Node[] = [];

async function startNode(number: number, env: Record<string, string>): Promise<Node> {
  const dir = mkdtempSync(join(tmpdir(), "postern-node-"));
  const own = { POSTERN_DATA: dir, POSTERN_HTTP: "127.0.0.1:0", POSTERN_INTERNAL: "127.0.0.1:0" };
  const opened = await openWorld(readConfig({ ...env, ...own }));
  const times = noTimes();
  const db = timedDb(opened.world.db, times);
  const running = await startRoles({ ...opened.world, db }, number === 0 ? ALL : ROLES);
  return {
    ...{ db, times, address: running.address },
    async stop() {
      await running.stop();
      await opened.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Organizations at every node have something that takes its time: all connections that they may have are asked for all the while. */
async function hold({ seconds, clients, hold_ms }: Order & { order: "hold" }): Promise<Held> {
  const held: Held = { answered: 0, unanswered: 0 };
  const until = performance.now() + seconds * 1000;

  async function client({ db }: Node, org: string): Promise<void> {
    while (performance.now() < until) {
      try {
        await db.asOrg(org, (tx) => tx.query("select pg_sleep($1::float8 / 1000)", [hold_ms]));
        held.answered += 1;
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        held.unanswered += 1;
        await sleep(AGAIN_MS);
      }
    }
  }

  await Promise.all(
    nodes.flatMap((node) => Array.from({ length: clients }, (_none, n) => client(node, organizationOf(n)))),
  );
  return held;
}

/** One has at most half of its node's connections for organizations. */
function organizationOf(n: number): string {
  return `01900000-0000-7000-8000-0000000000${n % 2}0`;
}

async function carryOut(message: Order): Promise<Started | Held | Stopped> {
  if (message.order === "start") {
    for (let n = 0; n < message.nodes; n += 1) nodes.push(await startNode(message.first + n, message.env));
    return { addresses: nodes.flatMap(({ address }) => address ?? []) };
  }
  if (message.order === "hold") return hold(message);
  await Promise.all(nodes.map((node) => node.stop()));
  return { times: nodes.map(({ times }) => times) };
}

process.on("message", (message: Order) => {
  carryOut(message).then(
    (answer) => process.send?.(answer),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
});
process.once("disconnect", () => process.exit(1));
