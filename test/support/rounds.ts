// How many rounds random tests play: few in `npm test`, all of them in `npm run proof`, which plays every file that uses this
// again (`npm test -- --long`).

/** Set by `npm test -- --long`. */
export const ALL_ROUNDS = "POSTERN_TEST_ROUNDS";

export function rounds(few: number, all: number): number {
  return process.env[ALL_ROUNDS] === "all" ? all : few;
}
