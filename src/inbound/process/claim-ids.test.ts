import assert from "node:assert/strict";
import { test } from "node:test";
import { createClock } from "../../platform/clock.ts";
import { thisHost } from "../../platform/process/this-host.ts";
import { createRandom } from "../../platform/random.ts";
import { claimsOfThisPlace, isOfDeadProcess, newClaimId } from "./claim-ids.ts";

/** Above any process id that Linux gives (2^22), so that nobody lives under it. */
const DEAD_PID = 5_000_000;
const here = thisHost();

const random = createRandom(createClock({}));
const idOf = (holder: Partial<typeof here>) => newClaimId({ random }, { ...here, ...holder });

test("a claim's id is a UUID, is unlike any other, and says of its place who holds it", () => {
  const ids = Array.from({ length: 1_000 }, () => idOf({}));
  assert.equal(new Set(ids).size, 1_000);
  const [from = "", to = ""] = claimsOfThisPlace(here) ?? [];
  for (const id of [...ids, idOf({ pid: 1 }), idOf({ pid: 2 ** 24 - 1 }), idOf({ pid: 2 ** 31 })]) {
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.ok(from <= id && id <= to, id);
  }
  const other = idOf({ machine: "another machine" });
  assert.ok(other < from || other > to, other);
  const dead = [DEAD_PID, here.pid, process.ppid, 2 ** 31].map((pid) => isOfDeadProcess(idOf({ pid }), here));
  assert.deepEqual(dead, [true, false, false, false]);
});

test("claims of a place that may be another machine's are nobody's to judge", () => {
  assert.equal(claimsOfThisPlace({ ...here, machine: "mail/unknown/unknown" }), null);
});
