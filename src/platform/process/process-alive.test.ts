import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { until } from "../../../test/support/until.ts";
import { isAlive } from "./process-alive.ts";

test("a process is alive until it has ended", async () => {
  assert.ok(isAlive(process.pid));
  assert.ok(isAlive(1), "also one of another user");
  const child = spawn("sleep", ["60"]);
  assert.ok(isAlive(child.pid!));
  child.kill();
  await once(child, "exit");
  assert.ok(!isAlive(child.pid!));
});

const noProc = process.platform === "linux" ? false : "only Linux tells the state of a process in /proc";

test("a process that ended and that nobody has waited for is not alive", { skip: noProc }, async () => {
  // The shell's child ends with its input; what the shell has become by then waits for nobody.
  const parent = spawn("sh", ["-c", "exec 3<&0; cat <&3 >/dev/null & echo $!; exec 3<&- sleep 60 </dev/null"]);
  try {
    const [line] = await once(parent.stdout, "data");
    const pid = Number(String(line));
    assert.ok(isAlive(pid));
    parent.stdin.end();
    await until("the child has ended", () => / Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1")));
    process.kill(pid, 0);
    assert.ok(!isAlive(pid));
  } finally {
    parent.kill();
  }
});
