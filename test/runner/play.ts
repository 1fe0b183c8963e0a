// What runs in a process of the test runner: some test files one after the other, each as a suite named by its path, so
// that its hooks are its own and what it took can be said. A file group (groups.ts) calls `playFiles` and nothing else.
import { appendFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, suite } from "node:test";
import { pathToFileURL } from "node:url";
import { processorMs } from "./processor.ts";
import { handOutRsaKeys } from "./rsa-keys.ts";
import type { Note } from "./times.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** Counted from the first of the hooks that run after the last test: they take their time to close what they opened. */
const GRACE_MS = 30_000;

/** Registers these files (paths from the root of the repository), and notes in `notes` when each begins and ends. */
export function playFiles(files: readonly string[], notes: string): void {
  endInTime(files);
  handOutRsaKeys();
  process.once("exit", () => note(notes, { kind: "process", file: files[0] ?? "", ...processorMs() }));
  for (const file of files) void suite(file, () => playFile(file, notes));
}

async function playFile(file: string, notes: string): Promise<void> {
  let began = { at_ms: 0, own_ms: 0, children_ms: 0 };
  before(() => {
    began = { at_ms: performance.now(), ...processorMs() };
    note(notes, { kind: "begin", file });
  });
  await import(pathToFileURL(join(ROOT, file)).href);
  // Registered behind the file's own hooks: what closes its servers is counted too.
  after(() => {
    const { own_ms, children_ms } = processorMs();
    note(notes, {
      kind: "end",
      file,
      wall_ms: performance.now() - began.at_ms,
      own_ms: own_ms - began.own_ms,
      children_ms: children_ms - began.children_ms,
    });
  });
}

function note(notes: string, what: Note): void {
  appendFileSync(notes, `${JSON.stringify(what)}\n`);
}

/**
 * A file that leaves a socket, a timer or a child open would keep its process, and so the run, alive for ever; the process
 * fails instead, and says what is open. (`--test-force-exit` would do, but drops results not yet written: 50 of 3,000
 * when tried.)
 */
function endInTime(files: readonly string[]): void {
  after(() => {
    const late = setTimeout(() => {
      const open = process
        .getActiveResourcesInfo()
        .filter((name) => !name.endsWith("Wrap") || name === "TCPSocketWrap");
      const names = files.length === 1 ? files[0] : `one of ${files.join(", ")}`;
      process.stderr.write(`${names} leaves open after its last test: ${open.join(", ") || "a handle"}\n`);
      process.exit(1);
    }, GRACE_MS);
    late.unref();
  });
}
