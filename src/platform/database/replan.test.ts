// When a connection's plans are made again.
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import type { PoolClient } from "pg";
import { replanAsTablesGrow } from "./replan.ts";

test("a connection forgets its plans as it ages: at first often, then once a minute, and each for itself", () => {
  let nowMs = 0;
  const pool = new EventEmitter();
  replanAsTablesGrow(pool as never, () => nowMs);
  const connection = () => {
    const atMs: number[] = [];
    const query = async (text: string) => void (text === "discard plans" && atMs.push(nowMs));
    return { client: { query } as unknown as PoolClient, atMs };
  };
  const [first, second] = [connection(), connection()];
  for (; nowMs <= 240_000; nowMs += 100) {
    pool.emit("acquire", first.client);
    if (nowMs >= 1_000) pool.emit("acquire", second.client);
  }
  assert.deepEqual(first.atMs.slice(0, 4), [500, 1_500, 3_500, 7_500]);
  assert.deepEqual(second.atMs.slice(0, 3), [1_500, 2_500, 4_500]);
  const gaps = first.atMs.slice(1).map((at, n) => at - (first.atMs[n] as number));
  assert.deepEqual([...new Set(gaps.slice(-2))], [60_000]);
});
