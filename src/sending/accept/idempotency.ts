// Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): the answer is committed with the message, so a repeated
// request gets it again and nothing is sent twice. Per organization and environment, kept 72 h.

import type { Account } from "../../http/http.ts";
import { coalesceByOrg } from "../../platform/fair/coalesce.ts";
import { Refusal } from "../../platform/refusal.ts";
import type { World } from "../../platform/world.ts";
import * as queries from "../queries.ts";
import type { IdempotencyRow } from "./accept.ts";

export const KEEP_MS = 72 * 3_600_000;

export type Replay = { status: number; answer: string };

export type Idempotency = {
  /**
   * Runs `work` unless the key was used before: then the stored answer. `work` gets the row to commit with the message, and
   * begins while the key is still looked up: what it writes or computes has to wait for `isNew`, which fails otherwise.
   */
  once(
    account: Account,
    request: { key: string; hash: Buffer },
    work: (row: (status: number, answer: string) => IdempotencyRow, isNew: Promise<void>) => Promise<Done>,
  ): Promise<{ replayed: boolean; answer: Replay }>;
};

type Done = Replay | "duplicate_key";
type Asked = { name: queries.IdempotencyName; hash: Buffer };
type Find = (orgId: string, key: string) => Promise<queries.StoredAnswer | undefined>;

const KEYS_MAX = 500;
const LANES = 2;

/** Requests of the same key in this process wait for one another; across processes the primary key decides. */
export function createIdempotency(world: Pick<World, "db" | "clock">): Idempotency {
  const underWay = new Map<string, Promise<unknown>>();
  const find = answerFinder(world);
  return {
    async once({ org_id, environment }, { key, hash }, work) {
      const name = `${org_id}/${environment}/${key}`;
      while (underWay.has(name)) await underWay.get(name)?.catch(() => undefined);
      const run = attempt(world, find, { name: { org_id, environment, key }, hash }, work);
      underWay.set(name, run);
      try {
        return await run;
      } finally {
        underWay.delete(name);
      }
    },
  };
}

/** A look-up for the hot path: many keys a round trip, nothing cached. By organization, and environment and key. */
function answerFinder({ db }: Pick<World, "db">): Find {
  return coalesceByOrg<queries.StoredAnswer>({
    keys_max: KEYS_MAX,
    lanes: LANES,
    load: async (asked) => {
      const rows = await queries.findIdempotent(db, asked.map(toName));
      return rows.map((row) => [row.org_id, `${row.environment}/${row.key}`, row]);
    },
  });
}

/** An environment has no slash, so the first one ends it. */
function toName({ org_id, key }: { org_id: string; key: string }): queries.IdempotencyName {
  const at = key.indexOf("/");
  return { org_id, environment: key.slice(0, at), key: key.slice(at + 1) };
}

/** Thrown, and caught here, where the answer exists already. */
class Answered extends Error {}

async function attempt(
  world: Pick<World, "db" | "clock">,
  find: Find,
  asked: Asked,
  work: Parameters<Idempotency["once"]>[2],
): Promise<{ replayed: boolean; answer: Replay }> {
  const looked = stored(world, find, asked);
  const isNew = looked.then((before) => {
    if (before) throw new Answered();
  });
  const row = (status: number, answer: string): IdempotencyRow => ({
    ...asked.name,
    request_hash: asked.hash,
    status,
    answer,
    created_at: new Date(world.clock.now()),
  });
  const working = work(row, isNew);
  // What the look-up says comes first, whatever became of the work meanwhile.
  for (const promise of [isNew, working]) promise.catch(() => undefined);
  const before = await looked;
  if (before) return { replayed: true, answer: before };
  const done = await working;
  if (done !== "duplicate_key") return { replayed: false, answer: done };
  const other = await stored(world, find, asked);
  // Something else had the key, was refused, and gave it back meanwhile.
  if (!other) throw conflict("another request had this Idempotency-Key at the same time; try again");
  return { replayed: true, answer: other };
}

async function stored(
  { db, clock }: Pick<World, "db" | "clock">,
  find: Find,
  { name, hash }: Asked,
): Promise<Replay | null> {
  const row = await find(name.org_id, `${name.environment}/${name.key}`);
  if (!row) return null;
  if (clock.now() - row.created_at.getTime() >= KEEP_MS) {
    await db.asOrg(name.org_id, (tx) => queries.forgetIdempotent(tx, name, row.created_at));
    return null;
  }
  if (!row.request_hash.equals(hash)) throw conflict("this Idempotency-Key was used with another request");
  return { status: row.status, answer: row.answer };
}

function conflict(sentence: string): Refusal {
  return new Refusal("idempotency_conflict", sentence, { field: "Idempotency-Key" });
}
