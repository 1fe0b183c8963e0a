// `postern backup verify`: restores the backup into a scratch database, reads every row back, and compares counts and checksums
// with those that were taken when the backup was made. Bodies are compared with their keys.
import { to as copyTo } from "pg-copy-streams";
import type { Clock } from "../platform/clock.ts";
import type { ScratchDatabase } from "../platform/postgres/scratch-database.ts";
import type { Progress } from "./backup.ts";
import type { Keys } from "./envelope.ts";
import { fillDatabase, NO_STORE } from "./restore.ts";
import { createRowChecksum } from "./row-checksum.ts";
import type { Target } from "./store.ts";
import { connect, copyOut } from "./tables.ts";

export type VerifyOptions = { target: Target; keys: Keys; progress: Progress; clock: Clock; scratch: ScratchDatabase };
export type VerifyResult = {
  ok: boolean;
  created_at: string;
  postern: string;
  tables: number;
  rows: number;
  bodies: number;
  bodies_missing: number;
  bodies_referenced: number;
  /** Tables whose rows are not those of the backup after it was restored. */
  different: string[];
  seconds: number;
};

/** Restores it into `scratch`, which is removed again. */
export async function verifyBackup({ target, keys, progress, clock, scratch }: VerifyOptions): Promise<VerifyResult> {
  const startedAtMs = clock.monotonic();
  return scratch.use(async (database_url) => {
    const world = { database_url, blobs: NO_STORE, clock };
    const { head, end, tables, bodies } = await fillDatabase(world, {
      ...{ target, keys, progress, master_key: null, replace: false },
    });
    const client = await connect(database_url);
    const different: string[] = [];
    for (const { table, columns, checksum } of tables) {
      const found = createRowChecksum();
      const rows = client.query(copyTo(copyOut({ name: table, columns })));
      for await (const chunk of rows as AsyncIterable<Buffer>) found.add(chunk);
      if (found.end().checksum !== checksum) different.push(table);
    }
    await client.end();
    const isWhole = tables.length === end.tables && bodies === end.bodies;
    return {
      ok: different.length === 0 && isWhole,
      created_at: head.created_at,
      postern: head.postern,
      tables: tables.length,
      rows: tables.reduce((sum, { rows }) => sum + rows, 0),
      bodies,
      bodies_missing: end.bodies_missing.length,
      bodies_referenced: end.bodies_referenced,
      different,
      seconds: Math.round((clock.monotonic() - startedAtMs) / 100) / 10,
    };
  });
}
