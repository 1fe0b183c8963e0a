// npm run corpora -- [name] [--data DIR] [--json] [--until-failed] [--mutations]: third-party cases through the product itself. DIR has the layout of
// ../shared/data and may hold other cases, fewer, more, or without what is expected of them. Exit code 1 when a difference
// has no explanation, a folder has no case, a named corpus is not there, or there is none at all. A folder that no runner
// knows, and a corpus that is not there, are said, and are neither passed nor failed. --until-failed plays no corpus after
// one that failed. --mutations: mutations.ts.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { readOptions } from "../support/options.ts";
import { CORPORA } from "./all.ts";
import { playMutations } from "./mutations.ts";
import { closeMxStage } from "./mx-stage.ts";
import { playData } from "./play-data.ts";
import { closeReturnedStage } from "./returned-stage.ts";
import type { Tally } from "./tally.ts";

const FAILURES_SHOWN = 20;
/** Of each reason. */
const EXPLAINED_SHOWN = 10;

const USE = "npm run corpora -- [name …] [--data folder] [--until-failed] [--mutations] [--json]";
const { values, positionals } = readOptions(
  {
    allowPositionals: true,
    options: {
      data: { type: "string", default: "../shared/data" },
      json: { type: "boolean", default: false },
      "until-failed": { type: "boolean", default: false },
      mutations: { type: "boolean", default: false },
    },
  },
  USE,
);
const data = resolve(values.data);
if (!existsSync(data)) {
  console.error(`There are no third-party cases at ${data}; name their folder with --data.`);
  process.exit(2);
}
const unknown = positionals.filter((name) => !CORPORA.some((corpus) => corpus.name === name));
if (unknown.length > 0) {
  console.error(`No corpus is called ${unknown.join(", ")}; there are ${CORPORA.map(({ name }) => name).join(", ")}.`);
  process.exit(2);
}
if (values.mutations) {
  const result = await playMutations(process.cwd(), data, (line) => console.log(line));
  console.log(values.json ? JSON.stringify(result) : `${result.caught} of ${result.of} faults caught`);
  process.exit(result.ok ? 0 : 1);
}
const played = await playData(data, CORPORA, positionals, {
  begins: (name) => process.stdout.write(`${name}: `),
  ended: (_name, tally) => show(tally),
  until_failed: values["until-failed"],
});
for (const close of [closeMxStage, closeReturnedStage]) {
  await close().catch((error: unknown) => console.log(`a stage could not be cleared away: ${error}`));
}
const { results, missing, without_runner } = played;
for (const name of missing)
  console.log(`${positionals.includes(name) ? "FAILED " : ""}${name}: not in ${data}, not played`);
for (const folder of without_runner) console.log(`${folder}: no runner, not played`);
if (results.length === 0) console.log(`FAILED: ${data} holds no corpus, nothing was run`);
if (values.json) {
  const corpora = results.map(({ name, tally }) => toResult(name, tally));
  console.log(JSON.stringify({ corpora, without_runner, missing }));
}
process.exit(played.is_wrong ? 1 : 0);

/**
 * Counts, and every difference in full: what was expected, what came, and why it may differ. `cases` are those that were
 * played; `failed` counts what else must hold as well (nobody else is suppressed, the folder holds a case).
 */
function toResult(name: string, { cases, passed, explained, failed, notes }: Tally) {
  const counts = { cases, passed, explained: explained.length, failed: failed.length };
  return { name, ...counts, explanations: explained, failures: failed, notes };
}

function show({ cases, passed, explained, failed, notes }: Tally): void {
  console.log(`${cases} cases, ${passed} passed, ${explained.length} explained, ${failed.length} failed`);
  const reasons = Map.groupBy(explained, ({ reason }) => reason);
  for (const [reason, group] of reasons) {
    console.log(`  ${group.length} explained: ${reason}`);
    for (const one of group.slice(0, EXPLAINED_SHOWN)) {
      console.log(`    ${one.case}: ${shorten(one.expected)} expected, ${shorten(one.got)} here`);
    }
  }
  for (const note of notes) console.log(`  ${note}`);
  for (const { case: name, expected, got } of failed.slice(0, FAILURES_SHOWN)) {
    console.log(`  FAILED ${name}\n    expected ${shorten(expected)}\n    got      ${shorten(got)}`);
  }
}

function shorten(value: unknown): string {
  return (JSON.stringify(value) ?? "undefined").slice(0, 500);
}
