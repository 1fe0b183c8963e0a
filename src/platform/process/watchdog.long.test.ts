import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mock, test } from "node:test";
import { createLog } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { beatOf, watchRoles } from "./watchdog.ts";

const log = createLog({ level: "silent", role: "test" });

/** A process that guards itself for two seconds and then does `work`. */
async function guarded(work: string): Promise<{ signal: string | null; code: number | null; said: string }> {
  const folder = mkdtempSync(join(tmpdir(), "postern-watchdog-"));
  const script = join(folder, "guarded.mjs");
  const module = JSON.stringify(new URL("./watchdog.ts", import.meta.url).href);
  const log = "{ error: console.error }";
  const lines = [
    `import { guardEventLoop } from ${module};`,
    "const awake = setTimeout(() => {}, 60_000);",
    `await guardEventLoop({ log: ${log} }, 2).started;`,
    "clearTimeout(awake);",
  ];
  writeFileSync(script, [...lines, work].join("\n"));
  const env = { PATH: process.env.PATH ?? "" };
  const child = spawn(process.execPath, [script], { stdio: ["ignore", "ignore", "pipe"], env });
  let said = "";
  child.stderr.on("data", (piece) => {
    said += piece;
  });
  const [code, signal] = await once(child, "exit");
  rmSync(folder, { recursive: true });
  return { code, signal, said };
}

test("a process whose event loop does not turn is ended, and says why", async () => {
  const { signal, said } = await guarded("for (;;);");
  assert.equal(signal, "SIGKILL");
  assert.match(said, /the event loop has stood still for 2 s/);
});

const IN_PIECES = `
const until = Date.now() + 3500;
function step() {
  const end = Date.now() + 300;
  while (Date.now() < end);
  if (Date.now() < until) setTimeout(step, 1);
}
setTimeout(step, 600);`;

test("a process that works in pieces is left alone, and the guard does not keep it alive", async () => {
  assert.deepEqual(await guarded(IN_PIECES), { signal: null, code: 0, said: "" });
});

test("a role that goes round is left alone, one that stands still is reported once, one that has ended never", async (t) => {
  mock.timers.enable({ apis: ["setInterval"] });
  t.after(() => mock.timers.reset());
  const metrics = createMetrics();
  const stuck: string[] = [];
  const [going, standing, ended] = ["going", "standing", "ended"].map((role) => beatOf({ metrics }, role));
  const watch = watchRoles({ metrics, log }, (role) => stuck.push(role));
  standing!.beat();
  ended!.end();
  for (let look = 1; look <= 30; look += 1) {
    going!.beat();
    mock.timers.tick(10_000);
  }
  assert.deepEqual(stuck, [], "not before five minutes");
  for (let look = 1; look <= 30; look += 1) {
    going!.beat();
    mock.timers.tick(10_000);
  }
  assert.deepEqual(stuck, ["standing"]);
  assert.match(await metrics.text(), /postern_role_silent_seconds\{role="going"\} 0/);
  watch.stop();
});
