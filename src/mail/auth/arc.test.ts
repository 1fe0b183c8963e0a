import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { dataFolder, fixedResolver, type NodeResolver, readJson, withCrlf } from "./look-ups.fixture.ts";
import { judge } from "./signed-mail.fixture.ts";
import { dnsError } from "./spf-suite.fixture.ts";

const file = `${dataFolder}arc-valimail/validation.json`;
const missing = existsSync(file) ? false : "third-party cases are not here (../shared/data/arc-valimail)";

type Scenario = {
  description: string;
  "txt-records": Record<string, string>;
  tests: Record<string, { message: string; cv: string }>;
};
type Difference = { case: string; want: string; got: string; reason: string };

const scenarios = missing ? [] : (readJson(file) as Scenario[]);
const differences = readJson(fileURLToPath(new URL("./arc.differences.json", import.meta.url))) as Difference[];

function resolverOf({ "txt-records": records }: Scenario): NodeResolver {
  const answers = Object.entries(records).map(([name, text]) => [`TXT ${name.toLowerCase()}`, [text]]);
  return fixedResolver(Object.fromEntries(answers));
}

async function resultOf(scenario: Scenario, message: string): Promise<string> {
  const { arc } = await judge(withCrlf(message), {}, { resolver: resolverOf(scenario) });
  return arc.result;
}

describe("the published ARC suite", { skip: missing }, () => {
  for (const scenario of scenarios) {
    for (const [name, { message, cv }] of Object.entries(scenario.tests)) {
      const difference = differences.find((one) => one.case === name);
      it(`${scenario.description}: ${name} is ${difference?.got ?? (cv.toLowerCase() || "anything")}`, async () => {
        const result = await resultOf(scenario, message);
        if (difference)
          assert.deepEqual([cv.toLowerCase(), result], [difference.want, difference.got], "the difference is stale");
        else if (cv !== "") assert.equal(result, cv.toLowerCase());
      });
    }
  }
});

describe("ARC chains", { skip: missing }, () => {
  const scenario = scenarios.find(({ tests }) => "cv_pass_i3_1" in tests)!;
  const passing = scenario?.tests.cv_pass_i3_1?.message ?? "";

  it("tell their sealers, the oldest first", async () => {
    const { arc } = await judge(withCrlf(passing), {}, { resolver: resolverOf(scenario) });
    assert.deepEqual([arc.result, arc.instances, arc.sealers.length], ["pass", 3, 3]);
  });

  it("change nothing about DMARC", async () => {
    const { arc, dmarc } = await judge(withCrlf(passing), {}, { resolver: resolverOf(scenario) });
    assert.deepEqual([arc.result, dmarc.dkim_aligned, dmarc.spf_aligned], ["pass", false, false]);
  });

  it("are a temporary error when a key cannot be asked for", async () => {
    const resolver: NodeResolver = async () => {
      throw dnsError("ETIMEOUT");
    };
    assert.equal((await judge(withCrlf(passing), {}, { resolver })).arc.result, "temperror");
  });

  it("fail with more than fifty instances, at once", async () => {
    const sets = Array.from(
      { length: 51 },
      (_, index) => `ARC-Seal: i=${index + 1}; cv=pass; a=rsa-sha256; d=a.example; s=s; b=YQ==`,
    );
    const { arc } = await judge(Buffer.from(`${sets.join("\r\n")}\r\nFrom: a@example.com\r\n\r\n`));
    assert.equal(arc.result, "fail");
  });
});
