// The thread of guardEventLoop: when the count of the main thread's turns has not moved for so many of this thread's own
// seconds, it says so and kills the process. Its seconds stand still with the machine, so a pause is no standstill.
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";

const { beats, stuck_s } = workerData as { beats: Int32Array; stuck_s: number };
let last = -1;
let silent_s = 0;

setInterval(() => {
  const now = Atomics.load(beats, 0);
  silent_s = now === last ? silent_s + 1 : 0;
  last = now;
  if (silent_s < stuck_s) return;
  const msg = `the event loop has stood still for ${stuck_s} s; the process ends, to be started again`;
  writeSync(2, `${JSON.stringify({ level: "fatal", msg })}\n`);
  process.kill(process.pid, "SIGKILL");
}, 1_000);
