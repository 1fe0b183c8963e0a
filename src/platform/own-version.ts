// Which version this is, by the package.json that lies above the program.
import { readFileSync } from "node:fs";

export function ownVersion(): string {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;
}
