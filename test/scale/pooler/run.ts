// npm run scale -- pooler [--nodes n --connections n --seconds n --json]: many nodes on few connections through PgBouncer. Exit code
// 0: passed; 1: failed; 2: wrong arguments; 3: there is no PgBouncer here. What is counted: ../README.md.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readOptions, wholeNumber } from "../../support/options.ts";
import { hasPgBouncer } from "../../support/pgbouncer.ts";
import { playPooler } from "./play.ts";
import { verdictOf } from "./verdict.ts";

const USE = "npm run scale -- pooler [--nodes n --connections n --seconds n --json]";
const SIZES = ["nodes", "connections", "seconds"] as const;

function readArguments() {
  const options = {
    nodes: { type: "string", default: "50" },
    connections: { type: "string", default: "100" },
    seconds: { type: "string", default: "20" },
    json: { type: "boolean", default: false },
  } as const;
  const { values } = readOptions({ allowPositionals: true, options }, USE);
  const sizes = SIZES.map((name) => wholeNumber(name, values[name], { least: 1, most: 999 }, USE));
  const [nodes, connections, seconds] = sizes as [number, number, number];
  return { nodes, connections, seconds, json: values.json };
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(130));

const { json, ...sizes } = readArguments();
const print = (line: { ok: boolean }, text: string): void => {
  console.log(text);
  if (json) console.log(JSON.stringify(line));
};
if (!hasPgBouncer()) {
  const skipped = "PgBouncer is not installed";
  print({ ...{ nodes: 0, connections: 0, skipped }, ok: false }, `not played: ${skipped}`);
  process.exit(3);
}
const startedAt = performance.now();
const dir = mkdtempSync(join(tmpdir(), "postern-pooler-"));
chmodSync(dir, 0o711); // run by root, PostgreSQL runs as an ordinary user
process.once("exit", () => rmSync(dir, { recursive: true, force: true, maxRetries: 10 }));
console.log(`${sizes.nodes} nodes on ${sizes.connections} connections`);
try {
  const played = await playPooler({ ...sizes, dir, say: (text) => console.log(`  ${text}`) });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const line = verdictOf({ ...sizes, held_s: sizes.seconds, seconds }, played);
  if (!json) console.log(JSON.stringify(line, null, 2));
  print(line, line.ok ? "passed" : `FAILED: ${line.faults.join(", ")}`);
  process.exit(line.ok ? 0 : 1);
} catch (error) {
  console.error(error);
  print({ ...sizes, error: (error as Error).message, ok: false } as { ok: boolean }, "FAILED");
  process.exit(1);
}
