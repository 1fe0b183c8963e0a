// npm run corpora -- [name] [--data DIR] [--json]: third-party cases through the product itself. DIR has the layout of
// ../shared/data and may hold other cases. Exit code 1 when a difference has no explanation,
// a folder no runner, a named corpus is not there, or there is none at all.
import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { CORPORA } from "./all.ts";
import { closeMxStage } from "./mx-stage.ts";
import { closeReturnedStage } from "./returned-stage.ts";
import { createTally, type Tally } from "./tally.ts";

const FAILURES_SHOWN = 20;
/** Of each reason. */
const EXPLAINED_SHOWN = 10;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { data: { type: "string", default: "../shared/data" }, json: { type: "boolean", default: false } },
});
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
const chosen = CORPORA.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const results: ReturnType<typeof toResult>[] = [];
const missing: string[] = [];
for (const corpus of chosen) {
  const dir = join(data, corpus.name);
  if (!existsSync(dir)) {
    const isAskedFor = positionals.includes(corpus.name);
    console.log(`${isAskedFor ? "FAILED " : ""}${corpus.name}: not in ${data}${isAskedFor ? "" : ", skipped"}`);
    if (isAskedFor) missing.push(corpus.name);
    continue;
  }
  process.stdout.write(`${corpus.name}: `);
  const tally = await Promise.try(() => corpus.run(dir)).catch(brokenOff);
  show(tally);
  results.push(toResult(corpus.name, tally));
}
await closeMxStage();
await closeReturnedStage();
const lacking = positionals.length === 0 ? withoutRunner() : [];
for (const folder of lacking) console.log(`FAILED ${folder}: no runner`);
if (results.length === 0) console.log(`FAILED: ${data} holds no corpus, nothing was run`);
if (values.json) console.log(JSON.stringify({ corpora: results, without_runner: lacking, missing }));
const isWrong = results.length === 0 || missing.length > 0 || lacking.length > 0;
process.exit(isWrong || results.some(({ failed }) => failed > 0) ? 1 : 0);

/** Counts, and every difference in full: what was expected, what came, and why it may differ. */
function toResult(name: string, { cases, passed, explained, failed, notes }: Tally) {
  const counts = { cases, passed, explained: explained.length, failed: failed.length };
  return { name, ...counts, explanations: explained, failures: failed, notes };
}

/** A runner that cannot go on (a file that it needs is missing, a process died) has failed, and the next one begins. */
function brokenOff(error: unknown): Tally {
  const tally = createTally();
  tally.judge("the whole folder", "a run to its end", error instanceof Error ? (error.stack ?? error.message) : error);
  return tally;
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

function withoutRunner(): string[] {
  const names = new Set(CORPORA.map(({ name }) => name));
  return readdirSync(data, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "LICENSES" && !names.has(entry.name))
    .map(({ name }) => name);
}
