// Rows that organizations share. Somebody who is known in the other cell by the same address stays the person that is known there, with that
// password; nobody becomes an operator by it. The key of the masked domain is one for all cells that serve it, as its DNS record is.
import { findMaskedKey } from "../masked/masked.ts";
import { findKnown, type KnownPerson } from "../people/people.ts";
import type { Query } from "../platform/database/db.ts";
import { UsageError } from "../platform/process/usage-error.ts";
import type { JsonRow } from "./sealed-rows.ts";

export type SharedRows = {
  /** True if this table has rows that must be looked at one by one. */
  changes(table: string): boolean;
  /** What is to be put in for these rows. */
  change(table: string, rows: JsonRow[]): Promise<JsonRow[]>;
};

const SHARED = ["masked_key", "person", "passkey", "recovery_code", "membership"];

/**
 * Changes the shared rows of one import: `person` comes before what refers to it. `masked`: the masked domain of this
 * cell, and whether what comes has addresses at it.
 */
export function sharedRows(db: Query, masked: { domain: string; is_used: boolean }): SharedRows {
  /** The id here of each person who was here before, by the id there. */
  const known = new Map<string, string>();

  async function noteKnown(rows: JsonRow[]): Promise<void> {
    for (const { id, here } of await findKnown(db, rows as KnownPerson[])) known.set(id, here);
  }

  async function newKeys(rows: JsonRow[]): Promise<JsonRow[]> {
    const row = rows.find(({ domain }) => domain === masked.domain);
    const [here] = await findMaskedKey(db, masked.domain);
    if (row && here && here.public_key !== row.public_key && masked.is_used)
      throw new UsageError(
        `this cell signs for ${masked.domain} with a key of its own, and DNS has one record for both: import before the first start of a cell.`,
      );
    return row && !here ? [row] : [];
  }

  return {
    changes: (table) => SHARED.includes(table),
    async change(table, rows) {
      if (table === "masked_key") return newKeys(rows);
      if (table === "person") {
        await noteKnown(rows);
        return rows.filter(({ id }) => !known.has(id as string)).map((row) => ({ ...row, is_operator: false }));
      }
      if (table === "membership")
        return rows.map((row) => ({ ...row, person_id: known.get(row.person_id as string) ?? row.person_id }));
      return SHARED.includes(table) ? rows.filter(({ person_id }) => !known.has(person_id as string)) : rows;
    },
  };
}
