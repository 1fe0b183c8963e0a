// Seals every sealed value of the database again with one data key, a few rows at a time and with pauses, while the service
// works on the same rows. What is sealed with that key already is passed over, so it may be ended and begun again at any moment.
import { sleep } from "../clock.ts";
import type { Tx } from "../database/db.ts";
import type { World } from "../world.ts";
import { SealBroken, sealedHead } from "./seal.ts";
import type { SealedColumn } from "./sealed-columns.ts";

/** `unreadable`: what no key of the ring opens; it stays as it is. */
export type Resealed = { sealed_again: number; left: number; unreadable: number };
export type ResealOptions = {
  columns: readonly SealedColumn[];
  number: number;
  progress?: (done: Resealed) => void;
};
type ResealWorld = Pick<World, "db" | "seal">;

const ROWS = 50;
/** A pause as long as the work, so that a database of one core has the other half for mail. */
const PAUSE_MS_MIN = 5;
/** Rows that others held are met in the next pass. */
const PASSES_MAX = 20;
const PASS_PAUSE_MS = 500;

/** Resolves when nothing but what is unreadable is sealed with another key. */
export async function resealAll(world: ResealWorld, { columns, number, progress }: ResealOptions): Promise<Resealed> {
  const done: Resealed = { sealed_again: 0, left: await countLeft(world.db, columns, number), unreadable: 0 };
  for (let pass = 1; done.left > done.unreadable || pass === 1; pass += 1) {
    if (pass > PASSES_MAX) throw new Error(`${done.left - done.unreadable} rows were held by others; run it again`);
    if (pass > 1) await sleep(PASS_PAUSE_MS);
    done.unreadable = 0;
    for (const column of columns) await resealColumn(world, column, { number, done, progress });
    done.left = await countLeft(world.db, columns, number);
  }
  progress?.(done);
  return done;
}

/** How many values are sealed with another key than this. */
export async function countLeft(
  db: Pick<World["db"], "query">,
  columns: readonly SealedColumn[],
  number: number,
): Promise<number> {
  let left = 0;
  for (const column of columns) {
    const [row] = await db.query<{ n: number }>(
      `select count(*)::int as n from ${column.table} where ${isOther(column, 1)}`,
      [sealedHead(number)],
    );
    left += row?.n ?? 0;
  }
  return left;
}

function isOther({ column }: SealedColumn, parameter: number): string {
  return `${column} is not null and substring(${column} from 1 for 2) <> $${parameter}::bytea`;
}

type Row = Record<string, string> & { sealed: Buffer };

type Work = { number: number; done: Resealed; progress: ResealOptions["progress"] };

async function resealColumn({ db, seal }: ResealWorld, column: SealedColumn, work: Work): Promise<void> {
  const { number, done, progress } = work;
  let behind: string[] | null = null;
  for (;;) {
    const startedAt = performance.now();
    const batch: { rows: Row[]; changed: number } = await db.transaction(async (tx) => {
      const rows = await takeRows(tx, column, number, behind);
      let changed = 0;
      for (const row of rows) if (await resealRow(tx, seal, column, row)) changed += 1;
      return { rows, changed };
    });
    const last = batch.rows.at(-1);
    if (!last) return;
    behind = column.key.map((name) => last[name] as string);
    done.sealed_again += batch.changed;
    done.unreadable += batch.rows.length - batch.changed;
    done.left = Math.max(0, done.left - batch.changed);
    progress?.(done);
    await sleep(Math.max(PAUSE_MS_MIN, performance.now() - startedAt));
  }
}

/** Locks the rows, and never waits for one: another that works on it is not held up, and cannot be in a deadlock with this. */
function takeRows(tx: Tx, column: SealedColumn, number: number, behind: string[] | null): Promise<Row[]> {
  const key = column.key.join(", ");
  const after = behind === null ? "" : `and (${key}) > (${behind.map((_value, at) => `$${at + 3}`).join(", ")})`;
  return tx.query<Row>(
    `select ${key}, ${column.column} as sealed from ${column.table}
      where ${isOther(column, 1)} ${after}
      order by ${key} limit $2 for update skip locked`,
    [sealedHead(number), ROWS, ...(behind ?? [])],
  );
}

/** False: no key opens it. */
async function resealRow(tx: Tx, seal: World["seal"], column: SealedColumn, row: Row): Promise<boolean> {
  const context = column.context(row);
  let plain: Buffer;
  try {
    plain = seal.open(row.sealed, context);
  } catch (error) {
    if (error instanceof SealBroken) return false;
    throw error;
  }
  const which = column.key.map((name, at) => `${name} = $${at + 2}`).join(" and ");
  await tx.execute(`update ${column.table} set ${column.column} = $1 where ${which}`, [
    seal.seal(plain, context),
    ...column.key.map((name) => row[name]),
  ]);
  return true;
}
