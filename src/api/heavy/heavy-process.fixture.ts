// A process that does what its requests say: answers, ends, stands still, or takes all the memory there is.
import { createBodyReader } from "./heavy-bodies.ts";
import type { FromHeavy, HeavyRequest, ToHeavy } from "./heavy-process.ts";

const tell = (message: FromHeavy): void => void process.send!(message);
const bodies = createBodyReader<HeavyRequest>(work);
setInterval(() => tell({ kind: "beat" }), 5);

process.on("disconnect", () => process.exit());
process.on("message", (message: ToHeavy) => {
  if (message.kind === "stop") process.exit(0);
  if (message.kind === "request") bodies.expect(message.request, message.bytes);
});

function work({ id, url }: HeavyRequest, given: Buffer): void {
  if (url === "/end") process.exit(1);
  if (url === "/throw") throw new Error("a bug");
  while (url === "/stand-still");
  const kept: unknown[] = [];
  while (url === "/take-all") kept.push(new Array(100_000).fill(kept.length));
  const body = Buffer.from(String(url === "/pid" ? process.pid : given.length));
  const answer = { status: 200, headers: {}, body, processor_ms: 1 };
  tell({ kind: "answer", id, answer });
}
