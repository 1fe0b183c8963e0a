// Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): the answer is committed with the message, so a repeated
// request gets it again and nothing is sent twice. Per organization and environment, kept 72 h.

import type { Account } from "../../http/http.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { IdempotencyRow } from "./accept.ts";

export const KEEP_MS = 72 * 3_600_000;

export type Replay = { status: number; answer: string };

export type Idempotency = {
  /** Runs `work` unless the key was used before: then the stored answer. `work` gets the row to commit with the message. */
  once(
    account: Account,
    request: { key: string; hash: Buffer },
    work: (row: (status: number, answer: string) => IdempotencyRow) => Promise<Replay | "duplicate_key">,
  ): Promise<{ replayed: boolean; answer: Replay }>;
};

/** Requests of the same key in this process wait for one another; across processes the primary key decides. */
export function createIdempotency(world: Pick<World, "db" | "clock">): Idempotency {
  const underWay = new Map<string, Promise<unknown>>();
  return {
    async once(account, request, work) {
      const name = `${account.org_id}/${account.environment}/${request.key}`;
      while (underWay.has(name)) await underWay.get(name)?.catch(() => undefined);
      const run = attempt(world, account, request, work);
      underWay.set(name, run);
      try {
        return await run;
      } finally {
        underWay.delete(name);
      }
    },
  };
}

async function attempt(
  world: Pick<World, "db" | "clock">,
  account: Account,
  request: { key: string; hash: Buffer },
  work: Parameters<Idempotency["once"]>[2],
): Promise<{ replayed: boolean; answer: Replay }> {
  const before = await stored(world, account, request);
  if (before) return { replayed: true, answer: before };
  const done = await work((status, answer) => ({
    org_id: account.org_id,
    environment: account.environment,
    key: request.key,
    request_hash: request.hash,
    status,
    answer,
    created_at: new Date(world.clock.now()),
  }));
  if (done !== "duplicate_key") return { replayed: false, answer: done };
  const other = await stored(world, account, request);
  if (!other) throw new Error("an idempotency key was taken, yet its answer is not there");
  return { replayed: true, answer: other };
}

async function stored(
  world: Pick<World, "db" | "clock">,
  account: Account,
  { key, hash }: { key: string; hash: Buffer },
): Promise<Replay | null> {
  return world.db.asOrg(account.org_id, async (tx) => {
    const [row] = await queries.findIdempotent(tx, account.org_id, account.environment, key);
    if (!row) return null;
    if (world.clock.now() - row.created_at.getTime() >= KEEP_MS) {
      await queries.forgetIdempotent(tx, account.org_id, account.environment, key);
      return null;
    }
    if (!row.request_hash.equals(hash)) {
      throw new Refusal("idempotency_conflict", "this Idempotency-Key was used with another request", {
        field: "Idempotency-Key",
      });
    }
    return { status: row.status, answer: row.answer };
  });
}
