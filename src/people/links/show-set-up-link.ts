// The set-up link of a first start: on a terminal it is printed, else it stands in a file of the data folder that only its owner can
// read, as what a supervisor keeps as log is read by many.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FILE = "set-up-link";

/** Writes the file where it is needed, and answers what to print. */
export function showSetUpLink(dataDir: string, link: string, isTerminal: boolean): string {
  if (isTerminal) return `Open this link in a browser to set Postern up. It works once, within 24 hours.\n  ${link}`;
  const file = join(dataDir, FILE);
  // Never through a link, nor into a file that somebody else has open.
  rmSync(file, { force: true });
  writeFileSync(file, `${link}\n`, { mode: 0o600, flag: "wx", flush: true });
  return `Open the link in ${file} in a browser to set Postern up. It works once, within 24 hours.`;
}
