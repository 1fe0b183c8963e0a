import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createClock } from "../platform/clock.ts";
import { createLog } from "../platform/process/log.ts";
import { Refusal } from "../platform/refusal.ts";
import { createHeavyThread } from "./heavy-thread.ts";

const log = createLog({ level: "silent", role: "test" });
const clock = createClock({});
const thread = createHeavyThread(
  { config: {} as never, database_url: "", log, clock },
  new URL("./heavy-thread.fixture.ts", import.meta.url),
  20,
);
after(() => thread.stop());

let requests = 0;

function ask(url: string) {
  requests += 1;
  const headers = {};
  return thread.ask({ id: `r${requests}`, method: "POST", url, headers, ip: "", account: {} as never, pieces: [] });
}

const isPutOff = (error: unknown): boolean => error instanceof Refusal && error.kind === "unavailable";

for (const [url, how] of [
  ["/end", "ends"],
  ["/throw", "throws"],
  ["/stand-still", "stands still"],
  ["/take-all", "takes all the memory"],
] as const) {
  test(`a thread that ${how} is replaced: what it had is refused for now, what comes next is answered`, async () => {
    await assert.rejects(ask(url), isPutOff);
    assert.equal((await ask("/")).status, 200);
  });
}

test("a thread that has stopped takes nothing", async () => {
  const other = createHeavyThread(
    { config: {} as never, database_url: "", log, clock },
    new URL("./heavy-thread.fixture.ts", import.meta.url),
  );
  await other.stop();
  const request = { id: "x", method: "GET", url: "/", headers: {}, ip: "", account: {} as never, pieces: [] };
  await assert.rejects(other.ask(request), isPutOff);
});
