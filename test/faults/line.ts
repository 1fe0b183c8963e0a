// The last line of `npm run faults -- <scenario> --json`: whatever the scenario, and however it ended, its fixed fields are
// there. Not here: what a scenario counts besides, which stands between them.

/** What every scenario counts. */
export type Figures = {
  acknowledged: number;
  lost: number;
  duplicates: number;
  flagged: number;
  ok: boolean;
};

export type Run = { scenario: string; rounds: number; seed: number; seconds: number };

export type Line = Run & Figures & Record<string, unknown>;

/** Nothing was counted: a scenario that could not be played, or failed before its verdict. */
const NOTHING = { acknowledged: 0, lost: 0, duplicates: 0, flagged: 0 };

/** The line of a scenario that came to its end; without a round, or an acknowledged request, it showed nothing: not ok. */
export function lineOf({ scenario, rounds, seed, seconds }: Run, { ok, ...figures }: Figures): Line {
  const line = { scenario, rounds, seed, ...NOTHING, ...figures, seconds };
  return { ...line, ok: ok === true && line.rounds > 0 && line.acknowledged > 0 };
}

/** The line of one that did not: `skipped`, this machine lacks what it takes; `error`, it failed. */
export function lineWithout(run: Run, why: { skipped: string } | { error: string }): Line {
  const { scenario, seed, seconds } = run;
  return { scenario, rounds: 0, seed, ...NOTHING, ...why, seconds, ok: false };
}

/** The sums of several; `ok` when each is. */
export function sumOf(lines: readonly Figures[]): Figures {
  const sum = (name: keyof typeof NOTHING): number => lines.reduce((total, line) => total + line[name], 0);
  return {
    acknowledged: sum("acknowledged"),
    lost: sum("lost"),
    duplicates: sum("duplicates"),
    flagged: sum("flagged"),
    ok: lines.length > 0 && lines.every(({ ok }) => ok),
  };
}
