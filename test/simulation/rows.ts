// The model's tables: plain records in maps. Every write goes through here, so that a transaction can be undone.
import type { Rows } from "./database.ts";

export type Writer = Rows & {
  change<T extends object>(row: T, fields: Partial<T>): void;
  put<K, V>(table: Map<K, V>, key: K, row: V): void;
  drop<K, V>(table: Map<K, V>, key: K): void;
  append<V>(log: V[], row: V): void;
};

/** A writer; outside a transaction nothing can be undone. */
export function createWriter(): Writer {
  let undoings: (() => void)[] | null = null;
  return {
    begin() {
      undoings = [];
    },
    commit() {
      undoings = null;
    },
    rollback() {
      for (const undo of (undoings ?? []).reverse()) undo();
      undoings = null;
    },
    change(row, fields) {
      if (undoings) {
        const before = { ...row };
        undoings.push(() => Object.assign(row, before));
      }
      Object.assign(row, fields);
    },
    put(table, key, row) {
      undoings?.push(() => table.delete(key));
      table.set(key, row);
    },
    drop(table, key) {
      const before = table.get(key);
      if (before === undefined) return;
      undoings?.push(() => table.set(key, before));
      table.delete(key);
    },
    append(log, row) {
      undoings?.push(() => void log.splice(log.indexOf(row), 1));
      log.push(row);
    },
  };
}
