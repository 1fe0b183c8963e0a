// `npm run check`: lint and format, types, and the rules of the house (test/tidy.test.ts), at the same time. It changes
// nothing; `npx biome check --write` repairs what can be repaired.
import { CHECKS, runChecks, TIDY } from "./runner/checks.ts";
import { readOptions } from "./support/options.ts";

readOptions({}, "npm run check");
const checks = [...CHECKS, TIDY];
process.exitCode = (await runChecks(checks)) === checks.length ? 0 : 1;
