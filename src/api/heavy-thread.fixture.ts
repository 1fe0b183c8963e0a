// A thread that does what its requests say: answers, ends, stands still, or takes all the memory there is.
import { parentPort, workerData } from "node:worker_threads";
import type { FromHeavy, HeavyStart, ToHeavy } from "./heavy-thread.ts";

const { beats } = workerData as HeavyStart;
Atomics.add(beats, 0, 1);
setInterval(() => Atomics.add(beats, 0, 1), 5);

parentPort!.on("message", (message: ToHeavy) => {
  if (message.kind === "stop") process.exit(0);
  const { id, url } = message.request;
  if (url === "/end") process.exit(1);
  if (url === "/throw") throw new Error("a bug");
  while (url === "/stand-still");
  const kept: unknown[] = [];
  while (url === "/take-all") kept.push(new Array(100_000).fill(kept.length));
  const answer = { status: 200, headers: {}, body: new Uint8Array(), processor_ms: 1 };
  parentPort!.postMessage({ kind: "answer", id, answer } satisfies FromHeavy);
});
