// The block of entries that a preview is gathering: JSON text in a Buffer, outside the JavaScript heap. As arrays of
// strings the blocks outlived the young generation, and the process grew by their garbage.
import type { ImportEntry } from "./import/import-reader.ts";
import type { Scope } from "./import/scope.ts";

const ENTRIES_MAX = 2_000;
const BYTES_FIRST = 256 * 1024;
const BYTES_MAX = 1024 * 1024;

export type BlockWriter = {
  bytes: Buffer;
  length: number;
  /** For each row, how many entries it has; a row that was counted as a duplicate is not in the job's figures. */
  rows: { entry_count: number; is_duplicate: boolean }[];
  entry_count: number;
};

/** An empty block; its Buffer is used again by `clear`. */
export function createBlock(): BlockWriter {
  return { bytes: Buffer.allocUnsafe(BYTES_FIRST), length: 0, rows: [], entry_count: 0 };
}

/** Adds one row, an entry for each scope. */
export function addRow(
  block: BlockWriter,
  row: ImportEntry & { is_duplicate: boolean },
  scopes: readonly Scope[],
): void {
  for (const scope of scopes) {
    put(block, block.entry_count === 0 ? "[" : ",");
    put(block, JSON.stringify(record(row, scope)));
    block.entry_count += 1;
  }
  block.rows.push({ entry_count: scopes.length, is_duplicate: row.is_duplicate });
}

// Fields without a value are left out: JSON.stringify skips undefined.
function record(row: ImportEntry, { scope_type, scope_id }: Scope) {
  return {
    email: row.email,
    reason: row.reason,
    scope_type: scope_type === "org" ? undefined : scope_type,
    scope_id: scope_type === "org" ? undefined : scope_id,
    bounce_code: row.bounce_code ?? undefined,
    diag_code: row.diag_code ?? undefined,
    note: row.note?.toWellFormed(),
    expires_at: row.expires_at ?? undefined,
    source_message_id: row.own?.source_message_id ?? undefined,
    feedback_type: row.own?.feedback_type ?? undefined,
    created_at: row.own?.created_at ?? undefined,
  };
}

function put(block: BlockWriter, text: string): void {
  const room = text.length * 3; // UTF-8 of a UTF-16 unit
  if (block.length + room > block.bytes.length) {
    const larger = Buffer.allocUnsafe((block.length + room) * 2);
    block.bytes.copy(larger, 0, 0, block.length);
    block.bytes = larger;
  }
  block.length += block.bytes.write(text, block.length);
}

/** True if it is time to store the block. */
export function isFull(block: BlockWriter): boolean {
  return block.entry_count >= ENTRIES_MAX || block.length >= BYTES_MAX;
}

/** The block's JSON text; valid until the next `addRow` or `clear`. */
export function contents(block: BlockWriter): Buffer {
  put(block, block.entry_count === 0 ? "[]" : "]");
  return block.bytes.subarray(0, block.length);
}

/** Empties the block for the next rows. */
export function clear(block: BlockWriter): void {
  block.length = 0;
  block.rows = [];
  block.entry_count = 0;
}
