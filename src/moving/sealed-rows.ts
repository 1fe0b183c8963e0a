// Sealed values of a row that moves: opened where it comes from, and sealed with the keys of where it goes. In between they lie in the
// encrypted file alone. Columns that hold such values are known by setup/sealed-columns.ts.

import type { Blobs } from "../platform/storage/blobs.ts";
import { type Seal, SealBroken } from "../platform/storage/seal.ts";
import { SEALED_COLUMNS } from "../setup/sealed-columns.ts";

export type JsonRow = Record<string, unknown>;

/** Before a value that was sealed under a master key which is lost. */
const UNREADABLE = "unreadable:";

/** True if this table has sealed columns. The lines of other tables need not be parsed. */
export function hasSealed(table: string): boolean {
  return SEALED_COLUMNS.some((column) => column.table === table);
}

/** The row with what it seals in the clear, a large held reply that lies in the store included. What no key opens here stays as it is. */
export async function openRow(
  world: { seal: Seal; blobs: Pick<Blobs, "get"> },
  table: string,
  row: JsonRow,
): Promise<JsonRow> {
  const whole = table === "masked_held" ? await fromStore(world.blobs, row) : row;
  return changed(table, whole, (value, context) => {
    try {
      return world.seal.open(bytesOf(value), context);
    } catch (error) {
      if (error instanceof SealBroken) return null;
      throw error;
    }
  });
}

export function sealRow(seal: Seal, table: string, row: JsonRow): JsonRow {
  return changed(table, row, (value, context) =>
    value.startsWith(UNREADABLE) ? bytesOf(value.slice(UNREADABLE.length)) : seal.seal(bytesOf(value), context),
  );
}

async function fromStore(blobs: Pick<Blobs, "get">, row: JsonRow): Promise<JsonRow> {
  if (typeof row.blob_key !== "string") return row;
  const bytes = await blobs.get(row.blob_key);
  return { ...row, blob_key: null, sealed: bytes === null ? null : asText(bytes) };
}

/** Null: it goes on as it is, marked. */
function changed(table: string, row: JsonRow, change: (value: string, context: string) => Buffer | null): JsonRow {
  const result = { ...row };
  for (const { column, context } of SEALED_COLUMNS.filter((one) => one.table === table)) {
    const value = row[column];
    if (typeof value !== "string") continue;
    const bytes = change(value, context(row as Record<string, string>));
    result[column] = bytes === null ? `${UNREADABLE}${value}` : asText(bytes);
  }
  return result;
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text.slice(2), "hex");
}

/** As PostgreSQL writes bytes. */
function asText(bytes: Buffer): string {
  return `\\x${bytes.toString("hex")}`;
}
