// npm run scale -- pooler …: pooler/run.ts; -- stories …: stories/run.ts; -- door …: door/run.ts; -- organization …: organization/run.ts. npm run scale [-- --cells n --organizations n --json]: several cells on Citus, a coordinator
// and two workers, all on this machine; mail flows both ways while a cell is moved, a worker is killed and a machine is lost. With --json the last line is
// one JSON object. Exit code 0: passed; 1: failed; 2: wrong arguments; 3: Citus is not here. What is counted: README.md.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lacksCitus } from "../support/citus.ts";
import { readOptions, refuse, wholeNumber } from "../support/options.ts";
import { lineOf, lineWithout } from "./line.ts";
import { playScale } from "./play.ts";

const USE =
  "npm run scale [-- --cells n --organizations n --json], or -- pooler, or -- stories, or -- door, or -- organization; every cell has an organization at least";

function readArguments() {
  const options = {
    cells: { type: "string", default: "4" },
    organizations: { type: "string", default: "8" },
    json: { type: "boolean", default: false },
  } as const;
  const { values } = readOptions({ options }, USE);
  const cells = wholeNumber("cells", values.cells, { least: 1, most: 999 }, USE);
  const organizations = wholeNumber("organizations", values.organizations, { least: 1, most: 999 }, USE);
  if (organizations < cells)
    refuse(`--organizations ${organizations} is less than --cells ${cells}: no cell is without an organization.`, USE);
  return { cells, organizations, json: values.json };
}

if (process.argv[2] === "pooler") await import("./pooler/run.ts");
if (process.argv[2] === "stories") await import("./stories/run.ts");
if (process.argv[2] === "door") await import("./door/run.ts");
if (process.argv[2] === "organization") await import("./organization/run.ts");

// Where it is interrupted, `exit` listeners end the servers and processes.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

const { json, ...sizes } = readArguments();
const print = (line: { ok: boolean }, text: string): void => {
  console.log(text);
  if (json) console.log(JSON.stringify(line));
};
if (lacksCitus) {
  print(lineWithout({ skipped: lacksCitus }), `not played: ${lacksCitus}`);
  process.exit(3);
}
const startedAt = performance.now();
const dir = mkdtempSync(join(tmpdir(), "postern-scale-"));
chmodSync(dir, 0o711); // run by root, PostgreSQL runs as an ordinary user
process.once("exit", () => rmSync(dir, { recursive: true, force: true, maxRetries: 10 }));
console.log(`${sizes.cells} cells with ${sizes.organizations} organizations on a coordinator and two workers`);
try {
  const played = await playScale({ ...sizes, dir, say: (text) => console.log(`  ${text}`) });
  const line = lineOf({ ...sizes, seconds: Math.round((performance.now() - startedAt) / 1000) }, played);
  print(line, line.ok ? "passed" : `FAILED: ${JSON.stringify(played)}`);
  process.exit(line.ok ? 0 : 1);
} catch (error) {
  console.error(error);
  print(lineWithout({ error: (error as Error).message }), "FAILED");
  process.exit(1);
}
