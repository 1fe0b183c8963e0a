// A short pass of `npm run faults -- kill` in the proof run, so that a change that loses mail is seen at once; fifty
// rounds of 5,000 sends are for the command.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runKill } from "./kill.ts";

const name =
  "kill -9 of every process and of PostgreSQL in the middle of 500 sends and of mail coming in loses nothing and flags every copy";

// Twelve restarts take as long as the machine's other work makes them.
test(name, { timeout: 300_000 }, async () => {
  const said: string[] = [];
  const verdict = await runKill({ rounds: 1, seed: 20_261_120, sends: 500, say: (text) => said.push(text) });
  assert.equal(verdict.ok, true, `${JSON.stringify(verdict)}\n${said.join("\n")}`);
  assert.equal(verdict.acknowledged, 500);
  assert.ok(verdict.received.acknowledged >= 200, JSON.stringify(verdict.received));
  assert.ok(
    Object.values(verdict.kills).every((count) => count >= 1),
    JSON.stringify(verdict.kills),
  );
});
