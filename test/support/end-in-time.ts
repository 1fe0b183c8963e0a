// Preloaded into every test file's process by test/run.ts. A file that leaves a socket, a timer or a child open would
// keep its process, and so the run, alive for ever; it fails instead, and says what is open. (`--test-force-exit` would
// do, but drops results not yet written: 50 of 3,000 when tried.)
import { after } from "node:test";
import { isMainThread } from "node:worker_threads";

/** Counted from the first of the hooks that run after the last test: they take their time to close what they opened. */
const GRACE_MS = 30_000;

// Workers and forks of a test inherit the preloading, and are no test files.
if (isMainThread && process.argv[1]?.endsWith(".test.ts")) {
  after(() => {
    const late = setTimeout(() => {
      const open = process
        .getActiveResourcesInfo()
        .filter((name) => !name.endsWith("Wrap") || name === "TCPSocketWrap");
      process.stderr.write(`${process.argv[1]} leaves open after its last test: ${open.join(", ") || "a handle"}\n`);
      process.exit(1);
    }, GRACE_MS);
    late.unref();
  });
}
