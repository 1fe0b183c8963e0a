// A worker for the tests of parse-pool.ts that does what the message tells it: hangs, sleeps for a second or for ever, fails, ends, eats memory, or
// answers with the message as text.
import { parentPort } from "node:worker_threads";

parentPort!.on("message", (jobs: { bytes: Uint8Array }[]) => {
  parentPort!.postMessage(jobs.map(({ bytes }) => obey(Buffer.from(bytes).toString(), jobs.length)));
});

/** `count`: how many messages came together. */
function obey(order: string, count: number) {
  if (order === "hang") for (;;);
  if (order === "sleep") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  if (order === "nap") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  if (order === "throw") throw new TypeError("as asked");
  if (order === "exit") process.exit(3);
  if (order === "eat") for (const eaten: string[] = []; ; ) eaten.push(Math.PI.toString().repeat(1_000) + eaten.length);
  return { mail: { text: order === "count" ? String(count) : order, attachments: [] } };
}
