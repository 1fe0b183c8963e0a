// Where the mail of a suspended path goes.
import assert from "node:assert/strict";
import { afterEach, it } from "node:test";
import type { World } from "../../platform/world.ts";
import { closePaths, push, stageFor } from "../path/path.fixture.ts";
import type { Path } from "../path/path-types.ts";
import type { Job, Outcome } from "../types.ts";
import { createParking } from "./parking.ts";

afterEach(closePaths);

function parkingFor() {
  const stage = stageFor({ port: 0 });
  const ended: Outcome[] = [];
  const finished: string[] = [];
  const statements: string[] = [];
  const execute = async (text: string) => void statements.push(/^(update lane|with given)/.exec(text)?.[0] ?? text);
  const world = { ...stage.world, db: { execute } } as unknown as World;
  const parking = createParking(world, {
    memory: {
      finish: ({ message_id }) => void finished.push(message_id),
      pause: (lanes) => void statements.push(`pause ${lanes}`),
      resume: (lanes) => void statements.push(`resume ${lanes}`),
    },
    finisher: { push: (_job: Job, outcome: Outcome) => void ended.push(outcome) },
    lanesOf: () => [1, 2],
    returned: async (jobs) => void statements.push(`returned ${jobs.map(({ message_id }) => message_id)}`),
    drive: () => void statements.push("drive"),
    woken: () => void statements.push("woken"),
  });
  const suspend = (path: Path) => {
    path.suspended = { untilMs: stage.world.clock.now() + 60_000, reason: "gone" };
    parking.suspend(path);
  };
  return { stage, parking, suspend, ended, finished, statements };
}

it("goes back to the queue, behind lanes that sleep, and sleep on once it is there", async () => {
  const { stage, parking, suspend, finished, statements } = parkingFor();
  push(stage, 2);
  suspend(stage.path);
  assert.deepEqual(finished, ["message-0", "message-1"]);
  await parking.drain();
  assert.deepEqual(statements, [
    ...["pause 1,2", "update lane", "with given", "update lane"],
    "returned message-0,message-1",
  ]);
});

it("ends there when its time is over: it was claimed for that", async () => {
  const { stage, parking, suspend, ended, finished, statements } = parkingFor();
  push(stage, 1);
  stage.moveClock(2 * 86_400_000);
  suspend(stage.path);
  await parking.drain();
  assert.deepEqual(
    ended.map(({ class: why }) => why),
    ["expired"],
  );
  assert.deepEqual([finished, statements], [[], ["pause 1,2", "update lane"]]);
});

it("is awake again however quickly the resumption comes", async () => {
  const { stage, parking, suspend, statements } = parkingFor();
  push(stage, 1);
  suspend(stage.path);
  stage.path.suspended.untilMs = 0;
  parking.resume(stage.path);
  await parking.drain();
  assert.deepEqual(statements.slice(-2), ["update lane", "woken"], "the suspension was written before");
  assert.equal(statements.indexOf("resume 1,2"), 1);
});
