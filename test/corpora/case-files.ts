// What lies in a corpus: its mails and the files beside them that say what is expected. A side file that is not there means
// no expectation, never no cases: such a mail must be taken, and harm nobody.
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import type { Tally } from "./tally.ts";

/** What a JSON file says; null when it is not there, and when it cannot be read, which fails. */
export function readSide<T>(tally: Tally, path: string): T | null {
  if (!existsSync(path)) {
    tally.notes.push(`without ${basename(path)}`);
    return null;
  }
  try {
    return JSON.parse(readFileSync(path, "utf8")) as T;
  } catch (error) {
    tally.check(basename(path), "JSON", String(error));
    return null;
  }
}

/** Texts of the collection's own. */
const PAPERS = /^(?:[\w-]*readme|licen[cs]e|copying)(?:\.(?:md|txt|rst))?$/i;

/** Every file but the collection's own papers and JSON, sorted; none when there is no such folder. */
export function caseFiles(dir: string, pattern = "**/*"): string[] {
  return globSync(pattern, { cwd: dir, withFileTypes: true })
    .filter(({ name }) => !name.startsWith(".") && !name.endsWith(".json") && !PAPERS.test(name))
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(dir, join(parentPath, name)))
    .sort();
}

/** Tells of what is expected and not there: no case, as there is nothing to play. */
export function noteAbsent(tally: Tally, there: readonly string[], named: Iterable<string>): void {
  const files = new Set(there);
  const absent = [...named].filter((file) => !files.has(file));
  if (absent.length > 0) tally.notes.push(`not there, though expected: ${absent.length}, as ${absent[0]}`);
}

/** Mail as SMTP carries it: LF and bare CR become CRLF. */
export function withCrlf(mail: Buffer): Buffer {
  return Buffer.from(mail.toString("latin1").replace(/\r\n|\r|\n/g, "\r\n"), "latin1");
}

/** What the MX must say to these bytes after DATA: CR or LF alone and NUL are refused (RFC 5321 §2.3.8, §4.1.1.4). */
export function answerTo(bytes: Buffer): "250" | "554" {
  return /\r(?!\n)|(?<!\r)\n|\0/.test(bytes.toString("latin1")) ? "554" : "250";
}
