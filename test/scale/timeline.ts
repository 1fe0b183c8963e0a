// When mail was acknowledged, and the longest time in which none was.

/** Milliseconds of `performance.now()`. */
export type Span = { from: number; to: number };

export type Timeline = {
  /** One was acknowledged just now. */
  note(): void;
  /** True if one was acknowledged after this moment. */
  isAfter(at: number): boolean;
  /** The longest time without one that reaches into the span; what is outside of the span counts as well. */
  longestPauseMs(span: Span): number;
};

/** One way that mail takes: only while it is loaded does a time without mail mean a pause. */
export function createTimeline(now: () => number = () => performance.now()): Timeline {
  const at: number[] = [];
  return {
    note: () => void at.push(now()),
    isAfter: (moment) => (at.at(-1) ?? 0) > moment,
    longestPauseMs({ from, to }) {
      const pauses = at.slice(1).map((end, index) => ({ start: at[index] as number, end }));
      const within = pauses.filter(({ start, end }) => end > from && start < to);
      return Math.round(Math.max(0, ...within.map(({ start, end }) => end - start)));
    },
  };
}
