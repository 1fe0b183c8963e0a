// A data folder, one corpus after the other: what was played, what is not there, what nobody here can play, and whether
// that is wrong. It prints nothing and knows no process.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Corpus, playCorpus, type Tally } from "./tally.ts";

export type Played = {
  results: { name: string; tally: Tally }[];
  /** Corpora that are not there. */
  missing: string[];
  /** Folders that no runner knows; of a whole data folder only. */
  without_runner: string[];
  is_wrong: boolean;
};

export type Listener = { begins(name: string): void; ended(name: string, tally: Tally): void; until_failed?: boolean };

/**
 * Plays the corpora of these names, in their order, or all; with `until_failed` no further than the first that fails. Wrong are a failure of any kind, a corpus that was asked for and is not there,
 * and no corpus at all; what else is not there, and a folder without a runner, is neither passed nor failed.
 */
export async function playData(
  data: string,
  corpora: readonly Corpus[],
  names: readonly string[],
  { begins, ended, until_failed = false }: Listener,
): Promise<Played> {
  const named = names.flatMap((wanted) => corpora.find(({ name }) => name === wanted) ?? []);
  const chosen = names.length === 0 ? corpora : named;
  const isThere = ({ name }: Corpus) => existsSync(join(data, name));
  const results: Played["results"] = [];
  for (const corpus of chosen.filter(isThere)) {
    begins(corpus.name);
    const tally = await playCorpus(corpus, join(data, corpus.name));
    ended(corpus.name, tally);
    results.push({ name: corpus.name, tally });
    if (until_failed && tally.failed.length > 0) break;
  }
  const missing = chosen.filter((corpus) => !isThere(corpus)).map(({ name }) => name);
  const hasFailed = results.length === 0 || results.some(({ tally }) => tally.failed.length > 0);
  return {
    results,
    missing,
    without_runner: names.length === 0 ? withoutRunner(data, corpora) : [],
    is_wrong: hasFailed || missing.some((name) => names.includes(name)),
  };
}

function withoutRunner(data: string, corpora: readonly Corpus[]): string[] {
  const known = new Set(["LICENSES", ...corpora.map(({ name }) => name)]);
  return readdirSync(data, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !known.has(entry.name))
    .map(({ name }) => name);
}
