// What a fuzzing target is: where its inputs come from, and a check that holds for every input there is.
import type { Chance } from "../faults/seeded.ts";

export type Target = {
  name: string;
  /** What holds for every input, as a sentence for people. */
  holds: string;
  seeds: SeedSource;
  /** Makes an input with structure that mutation would hardly find; a third of the inputs when there is one. */
  generate?(chance: Chance): Buffer;
  /** Words of the format, put in here and there. */
  words?: readonly string[];
  /** The largest input made; one this large must not take a second either. */
  bytes_max?: number;
  /** Throws when something does not hold. A text it gives names what the input led to: a new one makes the input a seed. */
  check(input: Buffer): Outcome | Promise<Outcome>;
};

// biome-ignore lint/suspicious/noConfusingVoidType: a check that has nothing to say simply ends
export type Outcome = string | void;

export type SeedSource = {
  /** File of test/fuzz/corpus/ with a seed on each line (JSON strings, so that control characters can be seen). */
  lines?: string;
  /** Folders of test/fuzz/corpus/ with a seed in each file. */
  files?: readonly string[];
  /** Patterns below ../shared/data, taken when it is there. */
  shared?: readonly string[];
};

export const BYTES_MAX_DEFAULT: number = 64 * 1024;
