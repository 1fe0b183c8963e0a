// What a start leaves behind (modules as text, compiled schemas, a large young generation) stays with V8 until it is short of memory,
// which a quiet service never is: some 40 MiB of its 220.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

/** Gives it back to the system. Holds the thread for some 100 ms: for the end of a start, before anybody is answered. */
export function trimMemory(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as Collect;
  setFlagsFromString("--no-expose-gc");
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}
