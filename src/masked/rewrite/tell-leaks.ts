// What the author of a held reply needs to know to mend it: in which file each leak is, and which of the secrets was found.
// The gate says only where it looked, and shares nothing with this.

import { parseStructure } from "../../mail/mime/parse-structure.ts";
import type { findLeaks, Leak, Secrets } from "./gate/leak-gate.ts";
import { filenameOf } from "./scrub/part-fields.ts";
import { PART_LIMITS } from "./scrub/scrub-parts.ts";

/** `file`: the name of the file that it is in; null where that is no file. */
export type ReportedLeak = Leak & { file: string | null };

/** A secret, and the forms of it that the gate looks for. */
export type Word = { word: string; secrets: Secrets };

export type Reported = { leaks: ReportedLeak[]; words: string[] };

/** The gate searches once more for each word: in a mail that is larger, nobody is informed which it was. */
const OCTETS_MAX = 2_000_000;

/** The leaks with their files, and the words that were found; none where the gate found something else. */
export function tellLeaks(
  { bytes, leaks }: { bytes: Buffer; leaks: readonly Leak[] },
  words: readonly Word[],
  gate: typeof findLeaks,
): Reported {
  const [any] = words;
  if (!any || bytes.length > OCTETS_MAX) return { leaks: withFiles(bytes, leaks), words: [] };
  const countOf = (secrets: Secrets) => gate(bytes, secrets).length;
  // The gate holds some things that are no word: keys, somebody's reverse address, what is too complex.
  const anyway = countOf({ ...any.secrets, addresses: [], names: [] });
  const found = words.filter(({ secrets }) => countOf(secrets) > anyway);
  return { leaks: withFiles(bytes, leaks), words: found.map(({ word }) => word) };
}

/** Each with the name of the file that it is in. */
export function withFiles(bytes: Buffer, leaks: readonly Leak[]): ReportedLeak[] {
  const { root } = parseStructure(bytes, PART_LIMITS);
  return leaks.map((leak) => {
    let part = root;
    for (const number of pathOf(leak.where)) part = part?.children?.[number - 1] as typeof root;
    return { ...leak, file: (part && filenameOf(part)) || null };
  });
}

/** The leaks of each file together, in their order; a place that was searched in several ways is named once. */
export function byFile(leaks: readonly ReportedLeak[]): { file: string | null; where: string[] }[] {
  const groups = Map.groupBy(leaks, ({ file, where }) =>
    file === null ? where : `${pathOf(where).join("/")} ${file}`,
  );
  return [...groups.values()].map((group) => ({
    file: group[0]?.file ?? null,
    where: [...new Set(group.map(({ where }) => where))],
  }));
}

/** The numbers of the parts from the outermost in, of `part 1 of part 2 of the message`; of a message within one, that one's. */
function pathOf(where: string): number[] {
  const [, parts = ""] = /((?:part \d+ of )*)the message(?! in )/.exec(where) ?? [];
  return [...parts.matchAll(/\d+/g)].map(([digits]) => Number(digits)).reverse();
}

/** A word as far as its owner recognizes it: the first letter of each side, and what its domain ends with. */
export function maskedWord(word: string): string {
  const at = word.lastIndexOf("@");
  const host = word.slice(at + 1);
  const end = host.includes(".") ? host.slice(host.lastIndexOf(".")) : "";
  const shown = `${[...host][0] ?? ""}…${end}`;
  return at === -1 ? shown : `${[...word][0] ?? ""}…@${shown}`;
}
