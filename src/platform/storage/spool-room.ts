// How many bytes of mail may still come in before the disk is short: what was promised to clients counts from the promise
// on, and what was written until a look at the disk has seen it, so that many who begin at the same moment do not all get
// the same room. Of this process; others are seen by what they have written. Not here: the looks (pressure.ts).
import type { Room } from "../process/pressure.ts";

export type SpoolRoom = {
  /** Promises so many more bytes; false when there is no room for them. */
  take(bytes: number): boolean;
  /** Promises them although nobody asked whether there is room: they were taken before. */
  keep(bytes: number): void;
  /** So many of those promised are on the disk. */
  wrote(bytes: number): void;
  /** So many of those promised will not come. */
  free(bytes: number): void;
};

/** `look` tells what the last look at the disk found. */
export function createSpoolRoom(look: () => Room): SpoolRoom {
  let promised = 0;
  /** Written since the last look, and between the last two: a look that was under way may have missed them. */
  let landing = 0;
  let landed = 0;
  let seen = 0;

  function left(): number {
    const { bytes, looks } = look();
    if (looks !== seen) {
      landed = looks === seen + 1 ? landing : 0;
      landing = 0;
      seen = looks;
    }
    return bytes - promised - landing - landed;
  }
  return {
    take(bytes) {
      if (left() < bytes) return false;
      promised += bytes;
      return true;
    },
    keep(bytes) {
      promised += bytes;
    },
    wrote(bytes) {
      left();
      promised -= bytes;
      landing += bytes;
    },
    free(bytes) {
      promised -= bytes;
    },
  };
}
