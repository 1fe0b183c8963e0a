// npm run scale -- stories [--cells n --json] [file …]: the scenarios on one Citus, a coordinator and two workers, each file with a
// Postern in a cell of its own, as many at a time as there are cells. Exit code 0: passed; 1: failed; 2: wrong arguments; 3: Citus is not
// here. What is counted: ../README.md.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lacksCitus } from "../../support/citus.ts";
import { readOptions, refuse, wholeNumber } from "../../support/options.ts";
import { playStories, storiesOf } from "./play.ts";

const CELLS_MAX = 16;

const USE = `npm run scale -- stories [--cells 1..${CELLS_MAX} --json] [word of a file's name …]`;

function readArguments() {
  const options = { cells: { type: "string", default: "4" }, json: { type: "boolean", default: false } } as const;
  const { values, positionals } = readOptions({ allowPositionals: true, options }, USE);
  const cells = wholeNumber("cells", values.cells, { least: 1, most: CELLS_MAX }, USE);
  const files = storiesOf(positionals.slice(1));
  if (files.length === 0) return refuse("no scenario has such a name", USE);
  return { cells, files, json: values.json };
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

const { json, cells, files } = readArguments();
const print = (line: { ok: boolean }, text: string): void => {
  console.log(text);
  if (json) console.log(JSON.stringify(line));
};
const none = { cells, files: 0, tests: 0, failed: [], elsewhere: [], seconds: 0, ok: false };
if (lacksCitus) {
  print({ ...none, skipped: lacksCitus } as { ok: boolean }, `not played: ${lacksCitus}`);
  process.exit(3);
}
const startedAt = performance.now();
const dir = mkdtempSync(join(tmpdir(), "postern-stories-"));
chmodSync(dir, 0o711); // run by root, PostgreSQL runs as an ordinary user
process.once("exit", () => rmSync(dir, { recursive: true, force: true, maxRetries: 10 }));
console.log(`${files.length} scenarios, ${cells} cells at a time, on a coordinator and two workers`);
try {
  const played = await playStories({ dir, cells, files, say: (text) => console.log(`  ${text}`) });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const ok = played.files > 0 && played.failed.length === 0;
  print({ cells, ...played, seconds, ok } as { ok: boolean }, ok ? "passed" : `FAILED: ${played.failed.join(", ")}`);
  process.exit(ok ? 0 : 1);
} catch (error) {
  console.error(error);
  print({ ...none, error: (error as Error).message } as { ok: boolean }, "FAILED");
  process.exit(1);
}
