import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type TestApi, testApi } from "../../test/support/api.ts";
import { until } from "../../test/support/until.ts";
import { findSeen } from "../accounts/move-queries.ts";
import { followMoves } from "./follow-moves.ts";
import { hold, keep } from "./hold.ts";

let api: TestApi;
before(async () => {
  api = await testApi();
});
after(() => api.close());

const PROCESS = "01a00000-0000-7000-8000-000000000009";

test("a process says that it does nothing more only when what it had begun is over, and of each move by itself", async () => {
  const { world, org_id } = api;
  const seen = async () => (await findSeen(world.db, org_id)).some(({ process }) => process === PROCESS);
  const following = await followMoves(world, PROCESS);
  const end = world.moves.begin();
  await hold(world.db, org_id, new Date(world.clock.now()));
  await until("it is known", () => world.moves.moving.has(org_id));
  assert.equal((await api.ask("GET", "/v1/domains")).status, 503);
  assert.equal(await seen(), false);

  // Kept and held again while it waits: what began in between counts for the second move.
  await keep(world, org_id);
  await until("it is known to stay", () => !world.moves.moving.has(org_id));
  assert.equal((await api.ask("GET", "/v1/domains")).status, 200);
  const endLater = world.moves.begin();
  await hold(world.db, org_id, new Date(world.clock.now()));
  await until("it is known again", () => world.moves.moving.has(org_id));
  end();
  assert.equal(await seen(), false);
  endLater();
  await until("it is said", seen);
  await keep(world, org_id);
  await following.stop();
});
