// What V8 is given for a service that runs for days, where its own choices are for a browser's pages. Measured: docs/performance.md.
// - It collects all of its heap again when that has grown by a little, or when 64 MB of buffers outside of it were made since: under
//   load three times a second, on threads of its own beside the one that works. What lives in this process is some 50 MB, so
//   that there is room for more garbage.
// - It compiles a function as well as it can when that has run for 3,000 times its own length: one that is called once a message, and
//   waits in between, after up to 50,000 messages.
import { setFlagsFromString } from "node:v8";

/**
 * How far memory grows before the next collection, by what was alive after the last one, buffers included. V8 chooses
 * less where much is made at once.
 */
const GROWS_BY_PERCENT = 200;
/** In place of the 3,000 times. Fewer, 300 and 600, made nothing better. */
const RUNS_BEFORE_COMPILING = 1_000;

/** From now on, in all threads of this process. What a start leaves behind is given back all the same (trim-memory.ts). */
export function tuneV8(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWS_BY_PERCENT}`);
  setFlagsFromString("--external-memory-accounted-in-global-limit");
  setFlagsFromString(`--invocation-count-for-turbofan=${RUNS_BEFORE_COMPILING}`);
}
