// Seeds of sending and webhooks under a virtual clock (10,000 of them: npm run proof); and that the simulation would notice, by breaking what it
// is to protect.
import assert from "node:assert/strict";
import { test } from "node:test";
import { runCampaign } from "./campaign.ts";
import { playSeed, type Sabotage } from "./play.ts";
import { playWebhooks } from "./webhook-play.ts";

const SEEDS = 100;
/** So many tests share them, each well within the runner's limit for one. */
const PARTS = 2;
/** Breaking one thing shows within so many seeds, from the one on where it showed last. */
const SEEDS_TO_NOTICE = 3_000;

for (let part = 0; part < PARTS; part += 1) {
  const seeds = SEEDS / PARTS;
  const first = 1 + part * seeds;
  const which = `in the seeds from ${first} to ${first + seeds - 1}`;
  test(`${which} nothing is lost or doubled unflagged, and everything is tried at its time`, async (t) => {
    const { failed, figures, seconds } = await runCampaign({ first, seeds });
    t.diagnostic(`${seconds} s: ${JSON.stringify(figures)}`);
    assert.deepEqual(failed, [], "npm run simulation -- --seed n shows one");
    assert.ok((figures.arrivals ?? 0) > seeds && (figures.attempts ?? 0) > seeds, "something was sent at all");
  });
}

test("a seed does the same each time", async () => {
  const [first, second] = [await playSeed(5), await playSeed(5)];
  assert.deepEqual(first, second);
});

const SABOTAGES: [what: string, Sabotage, complaint: RegExp, first: number][] = [
  ["writes without a fence", { fence: "off" }, /wrote about|copies arrived|is of attempt|without its claim/, 92],
  ["a journal that forgets what was about to be ended", { journal: "forgets" }, /copies arrived/, 1_622],
  ["mail that is put into lanes that were dropped", { lanes: "unchecked" }, /nobody looks at it|does not end/, 898],
  ["clocks that are set back and nobody sees it", { steps: "overlooked" }, /nobody looks at it|does not end/, 4],
  ["lost answers that are taken for refusals", { ambiguous: "dropped" }, /copies arrived/, 146],
];
for (const [what, sabotage, complaint, first] of SABOTAGES) {
  test(`it notices ${what}`, async () => {
    const { failed } = await runCampaign({ first, seeds: SEEDS_TO_NOTICE, sabotage, enough: 1 });
    assert.equal(failed.length, 1, "no seed noticed");
    assert.match(failed[0]!.problems.join("\n"), complaint);
    const { problems } = await playSeed(failed[0]!.seed);
    assert.deepEqual(problems, [], "the same seed is fine when nothing is broken");
  });
}

test("it notices webhook outcomes that are written without their claim", async () => {
  const first = 260;
  for (let seed = first; seed < first + SEEDS_TO_NOTICE; seed += 1) {
    const { problems } = await playWebhooks(seed, { fence: "off" });
    if (problems.length === 0) continue;
    assert.match(problems.join("\n"), /without its claim|twice in the log|attempt/);
    return;
  }
  assert.fail("no seed noticed");
});
