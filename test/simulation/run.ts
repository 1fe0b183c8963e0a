// npm run simulation -- [--seeds n] [--first n] [--json], or --seed n to see one: what happened in it, line by line.
import { readOptions, wholeNumber } from "../support/options.ts";
import { runCampaign } from "./campaign.ts";
import { playSeed } from "./play.ts";

const USE = "npm run simulation -- [--seeds n] [--first n] [--seed n] [--json]";
const { values } = readOptions(
  {
    options: {
      seeds: { type: "string", default: "10000" },
      first: { type: "string", default: "1" },
      seed: { type: "string" },
      json: { type: "boolean", default: false },
    },
  },
  USE,
);

function number(option: "seeds" | "first" | "seed", text: string): number {
  return wholeNumber(option, text, { least: option === "seeds" ? 1 : 0 }, USE);
}

async function showOne(seed: number): Promise<boolean> {
  const { kind, problems, figures, lines } = await playSeed(seed);
  if (values.json) console.log(JSON.stringify({ seed, kind, figures, problems, ok: problems.length === 0 }));
  else {
    console.log(`seed ${seed}: ${kind}`);
    for (const { at_s, process: name, level, text } of lines) console.log(`${at_s} s  ${name} ${level}  ${text}`);
    console.log(JSON.stringify(figures));
    console.log(problems.length === 0 ? "nothing is wrong" : problems.join("\n"));
  }
  return problems.length === 0;
}

async function showMany(first: number, seeds: number): Promise<boolean> {
  const campaign = await runCampaign({ first, seeds });
  const ok = campaign.failed.length === 0;
  if (values.json) console.log(JSON.stringify({ ...campaign, ok }));
  else {
    console.log(`${campaign.seeds} seeds in ${campaign.seconds} s: ${JSON.stringify(campaign.figures)}`);
    for (const { seed, problems } of campaign.failed) console.log(`seed ${seed}: ${problems.join("; ")}`);
    console.log(ok ? "passed" : "FAILED: npm run simulation -- --seed n shows one");
  }
  return ok;
}

const ok =
  values.seed === undefined
    ? showMany(number("first", values.first), number("seeds", values.seeds))
    : showOne(number("seed", values.seed));
process.exitCode = (await ok) ? 0 : 1;
