// How third-party cases are counted: passed, explained (with the reason and its source) or failed (expected and got).
// Whatever goes wrong is one failed case or one failed check: it never takes the other cases' results with it, and a
// corpus without a case has failed.

export type Explained = { case: string; reason: string; expected: unknown; got: unknown };
export type Failed = { case: string; expected: unknown; got: unknown };

export type Tally = {
  cases: number;
  passed: number;
  explained: Explained[];
  failed: Failed[];
  /** What else is to be said: by which way the cases came in, figures, what was not played. */
  notes: string[];
  /** Counts one case; a difference with a reason is explained, one without has failed. */
  judge(name: string, expected: unknown, got: unknown, reason?: string | null): void;
  /** What must hold beside the cases: it is none itself, and counts only when it fails. */
  check(name: string, expected: unknown, got: unknown): void;
  /** Plays one case; what it throws is what came of it. */
  attempt(name: string, play: () => Promise<void> | void): Promise<void>;
};

/**
 * A corpus: the folder's name and how its cases are run. `dir` is the folder itself. `slow`: it takes two seconds of
 * processor time or more, and is left to `npm run corpora`.
 */
export type Corpus = { name: string; slow?: boolean; run(dir: string, tally: Tally): Promise<void> | void };

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
      if (isSame(expected, got)) tally.passed += 1;
      else if (reason) tally.explained.push({ case: name, reason, expected, got });
      else tally.failed.push({ case: name, expected, got });
    },
    check(name, expected, got) {
      if (!isSame(expected, got)) tally.failed.push({ case: name, expected, got });
    },
    async attempt(name, play) {
      try {
        await play();
      } catch (error) {
        tally.judge(name, "no error", reported(error));
      }
    },
  };
  return tally;
}

/** Plays a folder. A runner that breaks off (its stage cannot be set) has failed, with what it had counted until then. */
export async function playCorpus({ run }: Corpus, dir: string): Promise<Tally> {
  const tally = createTally();
  try {
    await run(dir, tally);
  } catch (error) {
    tally.check("the whole folder", "a run to its end", reported(error));
  }
  if (tally.cases === 0) tally.check("the whole folder", "one case at least", "none");
  return tally;
}

function isSame(expected: unknown, got: unknown): boolean {
  return JSON.stringify(expected) === JSON.stringify(got);
}

function reported(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
