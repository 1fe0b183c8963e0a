// The Node library as it is published, compiled for tests that play it. Several test files may ask at a time: it is compiled
// only where it is older than its source, so that nobody reads what another is writing.
import { spawnSync } from "node:child_process";
import { existsSync, globSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
const LIBRARY = join(ROOT, "clients/node");

/** Null once it is there, else why it is not. */
export function compileNodeLibrary(): string | null {
  const built = join(LIBRARY, "dist/nodemailer.js");
  const writtenMs = globSync("src/**/*.ts", { cwd: LIBRARY }).map((file) => statSync(join(LIBRARY, file)).mtimeMs);
  if (existsSync(built) && statSync(built).mtimeMs > Math.max(...writtenMs)) return null;
  const tsc = [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", join(LIBRARY, "tsconfig.json")];
  return spawnSync(process.execPath, tsc).status === 0 ? null : "it does not compile: node clients/run.ts node";
}
