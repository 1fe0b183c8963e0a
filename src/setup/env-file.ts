// The file of settings that `postern setup` writes: what is there stays as it is, line by line; only settings that are new or
// were given otherwise are changed. For its owner alone.
import { chmodSync, chownSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { fileWords } from "../platform/process/file-words.ts";

export type Settings = Record<string, string>;

const HEAD = [
  "# Settings of Postern, NAME=value one a line; docs/settings.md has all of them.",
  "# `postern setup` keeps what stands here. It may hold secrets: for its owner alone.",
];
const SETTING = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=/;
/** Quotes would have to be escaped in all else. */
const PLAIN = /^[A-Za-z0-9_./:@,+%?=&*[\]~-]*$/;

/** True when the file was changed. */
export function mergeEnvFile(path: string, settings: Settings): boolean {
  const before = existsSync(path) ? readFileSync(path, "utf8") : null;
  const lines = before === null ? [...HEAD, ""] : before.replace(/\n$/, "").split("\n");
  for (const [name, value] of Object.entries(settings)) {
    const line = `${name}=${quoted(value)}`;
    const at = lines.findIndex((one) => SETTING.exec(one)?.[1] === name);
    if (at >= 0) lines[at] = line;
    else lines.push(line);
  }
  const text = `${lines.join("\n")}\n`;
  if (text === before) return false;
  replaceFile(path, text);
  return true;
}

function quoted(value: string): string {
  if (PLAIN.test(value)) return value;
  if (!value.includes("'") && !value.includes("\n")) return `'${value}'`;
  throw new Error(
    "a value with a quote or a line break cannot stand in a file of settings; give it as a file of its own",
  );
}

/** At once, and with the owner and mode that the file had; a new one is for its owner alone. */
function replaceFile(path: string, text: string): void {
  const had = existsSync(path) ? statSync(path) : null;
  const draft = `${path}.new`;
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: "w", flush: true });
    if (had) {
      chmodSync(draft, had.mode & 0o7777);
      if (process.getuid?.() === 0) chownSync(draft, had.uid, had.gid);
    }
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new Error(`${fileWords(error, path) ?? (error as Error).message}.`, { cause: error });
  }
}
