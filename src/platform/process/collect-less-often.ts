// V8 collects all of its heap again when that has grown by a little, or when 64 MB of buffers outside of it were made since: under
// load three times a second, on threads of its own beside the one that works. What lives in this process is some 50 MB, so
// that there is room for more garbage. Measured: docs/performance.md.
import { setFlagsFromString } from "node:v8";

/**
 * How far memory grows before the next collection, by what was alive after the last one, buffers included. V8 chooses
 * less where much is made at once.
 */
const GROWS_BY_PERCENT = 200;

/** From now on, in all threads of this process. What a start leaves behind is given back all the same (trim-memory.ts). */
export function collectLessOften(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWS_BY_PERCENT}`);
  setFlagsFromString("--external-memory-accounted-in-global-limit");
}
