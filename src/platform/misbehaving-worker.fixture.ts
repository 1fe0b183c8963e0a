// A worker for the tests of parse-pool.ts that does what the message tells it: hangs, fails, ends, eats memory, or
// answers with the message as text.
import { parentPort } from "node:worker_threads";

parentPort!.on("message", ({ bytes }: { bytes: Uint8Array }) => {
  const order = Buffer.from(bytes).toString();
  if (order === "hang") for (;;);
  if (order === "throw") throw new TypeError("as told");
  if (order === "exit") process.exit(3);
  if (order === "eat") for (const eaten: string[] = []; ; ) eaten.push(Math.PI.toString().repeat(1_000) + eaten.length);
  parentPort!.postMessage({ mail: { text: order, attachments: [] } });
});
