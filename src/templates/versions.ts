// Parsed versions, kept in memory. A version is never changed, so what was parsed once stays right; the least recently
// used ones go when there are too many.
import { coalesce } from "../platform/fair/coalesce.ts";
import { spentHere } from "../platform/fair/processor-shares.ts";
import { createTurns } from "../platform/fair/turns.ts";
import type { World } from "../platform/world.ts";
import * as queries from "./queries.ts";
import { parseSources } from "./sources.ts";
import type { ParsedSources } from "./types.ts";
import { type CheckedVariable, checkedVariables } from "./variables.ts";

export type ParsedVersion = { sources: ParsedSources; variables: CheckedVariable[] };

/** Roughly 64 MiB of sources and nodes. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024;
/** Measured: a tag takes 300 to 500 bytes once parsed. */
const BYTES_PER_TAG = 500;

type Kept = { parsed: ParsedVersion; bytes: number };

/** Finds parsed versions, many look-ups in one query; undefined when there is no such version. */
export function parsedVersions(
  world: Pick<World, "db" | "clock" | "metrics">,
  bytesMax: number = KEPT_BYTES_MAX,
): (key: queries.VersionKey) => Promise<ParsedVersion | undefined> {
  const kept = new Map<string, Kept>();
  let keptBytes = 0;
  const inTurn = createTurns(world.clock, spentHere(world));
  const load = coalesce<string, queries.VersionRow>({
    keys_max: 50,
    lanes: 2,
    load: async (names) => {
      const rows = await queries.findVersions(world.db, names.map(readName));
      return new Map(rows.map((row) => [nameOf(row), row]));
    },
  });

  function keep(name: string, entry: Kept): void {
    kept.set(name, entry);
    keptBytes += entry.bytes;
    for (const [oldest, { bytes }] of kept) {
      if (keptBytes <= bytesMax || oldest === name) return;
      kept.delete(oldest);
      keptBytes -= bytes;
    }
  }

  return async (key) => {
    const name = nameOf(key);
    const known = kept.get(name);
    if (known) {
      // Last in a Map is the most recently used.
      kept.delete(name);
      kept.set(name, known);
      return known.parsed;
    }
    const row = await load(name);
    if (!row) return undefined;
    return inTurn(key.org_id, () => {
      // Another caller of the same look-up may have parsed it meanwhile.
      const meanwhile = kept.get(name);
      if (meanwhile) return meanwhile.parsed;
      const parsed = { sources: parseSources(row), variables: checkedVariables(row.variables) };
      keep(name, { parsed, bytes: weigh(parsed.sources) });
      return parsed;
    });
  };
}

function nameOf({ org_id, id, version }: queries.VersionKey): string {
  return `${org_id}/${id}/${version}`;
}

function readName(name: string): queries.VersionKey {
  const [org_id, id, version] = name.split("/") as [string, string, string];
  return { org_id, id, version: Number(version) };
}

function weigh(sources: ParsedSources): number {
  const parts = [sources.subject, sources.html_body, sources.text_body].filter((part) => part !== null);
  return parts.reduce((bytes, part) => bytes + 2 * part.bytes + part.tags * BYTES_PER_TAG, 1_000);
}
