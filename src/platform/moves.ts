// What this process knows of organizations that move to another cell, and what it had begun before it knew: a request that was let in
// a moment earlier may still write. Who moves one waits until that is over (moving/follow-moves.ts).

export type Moves = {
  /** Nothing may be begun for these: mail is deferred, webhooks wait. */
  readonly moving: ReadonlySet<string>;
  /** Sets the organizations that are known to be moving: these, and no others. */
  know(orgIds: readonly string[]): void;
  /** Something that may write for an organization begins; the answer ends it. */
  begin(): () => void;
  /** Resolves when all that has begun up to now has ended, however much begins meanwhile. */
  begunEnded(): Promise<void>;
};

type Span = { open: number; ended: PromiseWithResolvers<void> };

/** Nothing is known to move, and nothing has begun. */
export function createMoves(): Moves {
  let moving: ReadonlySet<string> = new Set();
  let span: Span = { open: 0, ended: Promise.withResolvers() };
  let before: Promise<unknown> = Promise.resolve();
  return {
    get moving() {
      return moving;
    },
    know(orgIds) {
      moving = new Set(orgIds);
    },
    begin() {
      const mine = span;
      let isOver = false;
      mine.open += 1;
      return () => {
        if (isOver) return;
        isOver = true;
        mine.open -= 1;
        if (mine !== span && mine.open === 0) mine.ended.resolve();
      };
    },
    async begunEnded() {
      const closed = span;
      span = { open: 0, ended: Promise.withResolvers() };
      if (closed.open === 0) closed.ended.resolve();
      before = Promise.all([before, closed.ended.promise]);
      await before;
    },
  };
}
