import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { until } from "../../../test/support/until.ts";
import { createClock } from "../../platform/clock.ts";
import { createLog } from "../../platform/process/log.ts";
import { Refusal } from "../../platform/refusal.ts";
import { createHeavyProcess } from "./heavy-process.ts";

const data_dir = mkdtempSync(join(tmpdir(), "postern-heavy-"));
const log = createLog({ level: "silent", role: "test" });
const clock = createClock({});
const heavy = createHeavyProcess(
  { config: { data_dir } as never, database_url: "", log, clock },
  new URL("./heavy-process.fixture.ts", import.meta.url),
  { look_ms: 20 },
);
after(async () => {
  await heavy.stop();
  rmSync(data_dir, { recursive: true, force: true });
});

let requests = 0;

function ask(url: string, pieces: Uint8Array[] = []) {
  requests += 1;
  const headers = {};
  return heavy.ask({ id: `r${requests}`, method: "POST", url, headers, ip: "", account: {} as never }, pieces);
}

const isPutOff = (error: unknown): boolean => error instanceof Refusal && error.kind === "unavailable";

for (const [url, how] of [
  ["/end", "ends"],
  ["/throw", "throws"],
  ["/stand-still", "stands still"],
  ["/take-all", "takes all the memory"],
] as const) {
  test(`a process that ${how} is replaced: what it had is refused for now, what comes next is answered`, async () => {
    await assert.rejects(ask(url), isPutOff);
    assert.equal((await ask("/")).status, 200);
  });
}

test("a process that has stopped takes nothing", async () => {
  const other = createHeavyProcess(
    { config: { data_dir } as never, database_url: "", log, clock },
    new URL("./heavy-process.fixture.ts", import.meta.url),
  );
  await other.stop();
  const request = { id: "x", method: "GET", url: "/", headers: {}, ip: "", account: {} as never };
  await assert.rejects(other.ask(request, []), isPutOff);
});

test("a body arrives whole, whatever its pieces", async () => {
  const { body } = await ask("/", [new Uint8Array(3_000_000), new Uint8Array(1), new Uint8Array(0)]);
  assert.equal(Buffer.from(body).toString(), "3000001");
});

test("a process with nothing to do is ended, and what comes next starts another", async () => {
  const other = createHeavyProcess(
    { config: { data_dir } as never, database_url: "", log, clock },
    new URL("./heavy-process.fixture.ts", import.meta.url),
    { idle_ms: 1 },
  );
  const pidOf = async (id: string): Promise<number> => {
    const request = { id, method: "GET", url: "/pid", headers: {}, ip: "", account: {} as never };
    return Number(Buffer.from((await other.ask(request, [])).body).toString());
  };
  const first = await pidOf("x");
  await until("the process has ended", () => !isRunning(first));
  assert.notEqual(await pidOf("y"), first);
  await other.stop();
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
