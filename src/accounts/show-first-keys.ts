// The keys of the first start are shown once: on a terminal to the person there, else in a file of the data folder that only
// its owner can read. The log that a supervisor or a container keeps is read by many, and kept for long.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config.ts";

const FILE = "first-keys.env";

type Keys = { live_key: string; test_key: string };
type Given = Pick<Config, "base_url" | "data_dir" | "bootstrap_live_key" | "bootstrap_test_key">;

/** Writes the file where it is needed, and answers what to print. Keys that the operator gave are not repeated. */
export function showFirstKeys(config: Given, keys: Keys, isTerminal: boolean): string {
  const made = [
    { name: "live", variable: "POSTERN_LIVE_KEY", key: keys.live_key, given: config.bootstrap_live_key !== null },
    { name: "test", variable: "POSTERN_TEST_KEY", key: keys.test_key, given: config.bootstrap_test_key !== null },
  ];
  const file = isTerminal || made.every(({ given }) => given) ? null : join(config.data_dir, FILE);
  if (file !== null) {
    writeSecret(file, [
      "# Made at the first start. Move these where you keep secrets, then delete this file.",
      `POSTERN_BASE_URL=${config.base_url}`,
      ...made.filter(({ given }) => !given).map(({ variable, key }) => `${variable}=${key}`),
    ]);
  }
  const lines = made.map(({ name, key, given }) => {
    const shown = given
      ? `as given in POSTERN_BOOTSTRAP_${name.toUpperCase()}_KEY`
      : file === null
        ? key
        : `in ${file}`;
    return `  ${name} key  ${shown}`;
  });
  const once = file === null ? "These keys are shown once." : "Its keys are in a file that only its owner can read.";
  return [`First start: an organization was created. ${once}`, `  base URL  ${config.base_url}`, ...lines].join("\n");
}

/** Never through a link, nor into a file that somebody else has open. */
function writeSecret(file: string, lines: string[]): void {
  rmSync(file, { force: true });
  writeFileSync(file, `${lines.join("\n")}\n`, { mode: 0o600, flag: "wx", flush: true });
}
