// The harness finds what is planted, and every target holds for some hundredths of a second: its own seeds first, the same inputs
// each time. `npm run fuzz -- all` looks for longer.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { chanceOf } from "../faults/seeded.ts";
import { rounds } from "../support/rounds.ts";
import { type Finding, type HuntOptions, hunt, untried } from "./hunt.ts";
import { mutate } from "./mutate.ts";
import { readSeeds } from "./seeds.ts";
import { shrink } from "./shrink.ts";
import { TARGETS } from "./targets.ts";

const found_dir = mkdtempSync(join(tmpdir(), "postern-fuzz-"));
after(() => rmSync(found_dir, { recursive: true, force: true }));

const PLANTED = new URL("./planted.fixture.ts", import.meta.url);
const SHORT_MS = rounds(20, 100);

async function plantedHunt(target: string, more: Partial<HuntOptions> = {}) {
  const findings: Finding[] = [];
  const [result] = await hunt({
    ...{ targets: [target], targets_from: PLANTED, seed: 1, ms: 3_000, inputs_max: 300, workers: 1, found_dir },
    ...{ hang_ms: 200, give_up_ms: 10_000, onFound: (finding: Finding) => findings.push(finding), ...more },
  });
  assert.ok(result);
  return { result, findings };
}

describe("the harness", () => {
  it("counts what a sound target was given, and gives the same inputs for the same seed", async () => {
    const [one, other] = [await plantedHunt("sound"), await plantedHunt("sound")];
    assert.deepEqual([one.result.inputs, one.result.crashes, one.result.hangs], [300, 0, 0]);
    assert.equal(other.result.outcomes, one.result.outcomes);
    const stock = { seeds: [Buffer.from("a b c\r\n")], words: ["w"], bytes_max: 1_000 };
    const inputs = (seed: number) => {
      const chance = chanceOf(seed);
      return Array.from({ length: 200 }, () => mutate(chance, stock).toString("hex"));
    };
    assert.deepEqual(inputs(7), inputs(7));
    assert.notDeepEqual(inputs(7), inputs(8));
    assert.ok(inputs(7).every((input) => input.length <= 2_000));
  });

  for (const target of ["throws", "rejects"]) {
    it(`finds a check that ${target}, makes the input small and keeps it`, async () => {
      const { result, findings } = await plantedHunt(target);
      assert.ok(result.crashes > 0 && result.hangs === 0);
      assert.equal(findings[0]?.input.toString(), "x");
      assert.equal(readFileSync(findings[0]!.path!, "utf8"), "x");
      const again = await plantedHunt(target, { inputs: [findings[0]!.input], found_dir: null });
      assert.deepEqual([again.result.inputs, again.result.crashes], [1, 1]);
    });
  }

  it("says which targets got no input in their time", async () => {
    const [{ result: idle }, { result: busy }] = [await plantedHunt("sound", { ms: 0 }), await plantedHunt("sound")];
    assert.deepEqual([untried([idle]), untried([busy])], [["sound"], []]);
  });

  it("counts an input that takes too long, and goes on", async () => {
    const inputs = ["y", "x", "y"].map((text) => Buffer.from(text));
    const { result } = await plantedHunt("slow", { inputs, ms: 20_000 });
    assert.deepEqual([result.hangs, result.crashes, result.inputs], [1, 0, 3]);
  });

  it("ends a thread that does not come back, keeps its input, and starts another", async () => {
    const { result, findings } = await plantedHunt("endless", { ms: 1_500, give_up_ms: 500 });
    assert.ok(result.hangs > 0 && result.crashes === 0);
    assert.ok(findings[0]?.input.includes("x"));
    assert.ok(readdirSync(found_dir).some((name) => name.startsWith("endless-hang-")));
  });

  it("counts what nobody waited for as a crash", async () => {
    const { result } = await plantedHunt("unhandled");
    assert.ok(result.crashes > 0);
  });

  it("makes inputs small by leaving pieces out", async () => {
    const small = await shrink(
      Buffer.from(`${"a".repeat(500)}<${"b".repeat(300)}>${"c".repeat(50)}`),
      5_000,
      async (input) => /<.*>/.test(input.toString()),
    );
    assert.equal(small.toString(), "<>");
  });
});

describe("every target", () => {
  it("has a name of its own, and seeds or a way to make inputs", () => {
    assert.ok(TARGETS.length >= 25, `${TARGETS.length} targets`);
    assert.equal(new Set(TARGETS.map(({ name }) => name)).size, TARGETS.length);
    for (const target of TARGETS) assert.ok(readSeeds(target).length > 0 || target.generate, target.name);
  });

  it("holds over what a short hunt makes of its seeds", async (test) => {
    const findings: Finding[] = [];
    const results = await hunt({
      ...{ targets: TARGETS.map(({ name }) => name), seed: 20_261_120, ms: SHORT_MS, workers: 1, found_dir: null },
      onFound: (finding) => findings.push(finding),
    });
    const inputs = results.reduce((sum, result) => sum + result.inputs, 0);
    test.diagnostic(`${results.length} targets, ${inputs} inputs`);
    const reported = findings
      .slice(0, 5)
      .map(({ target, what, input }) => `${target}: ${what.slice(0, 300)}\n${input.toString("base64").slice(0, 500)}`);
    assert.deepEqual(reported, []);
    assert.equal(results.length, TARGETS.length);
    assert.ok(results.every((result) => result.inputs > 0));
  });
});
