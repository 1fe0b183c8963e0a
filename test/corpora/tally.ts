// How third-party cases are counted: passed, explained (with the reason and its source) or failed (expected and got).

export type Explained = { case: string; reason: string; expected: unknown; got: unknown };
export type Failed = { case: string; expected: unknown; got: unknown };

export type Tally = {
  cases: number;
  passed: number;
  explained: Explained[];
  failed: Failed[];
  /** What else is to be told: by which way the cases came in, figures. */
  notes: string[];
  /** Counts one case; a difference with a reason is explained, one without has failed. */
  judge(name: string, expected: unknown, got: unknown, reason?: string | null): void;
};

/** A corpus: the folder's name and how its cases are run. `dir` is the folder itself. `slow`: not for every `npm test`. */
export type Corpus = { name: string; slow?: boolean; run(dir: string): Promise<Tally> };

/** An empty count. */
export function createTally(): Tally {
  const tally: Tally = {
    cases: 0,
    passed: 0,
    explained: [],
    failed: [],
    notes: [],
    judge(name, expected, got, reason = null) {
      tally.cases += 1;
      if (JSON.stringify(expected) === JSON.stringify(got)) tally.passed += 1;
      else if (reason) tally.explained.push({ case: name, reason, expected, got });
      else tally.failed.push({ case: name, expected, got });
    },
  };
  return tally;
}
