// npm run release [-- names …] [--json] [--out folder] [--twice]: makes the artefacts of this commit in dist/release, starts
// each and sends one mail with it. --twice makes them in two clones of the last commit as well, and compares the bytes.
// Exit code 1 when one failed, 3 when one was skipped for want of a program.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, join, resolve } from "node:path";
import { readOptions } from "../test/support/options.ts";
import { ARTEFACTS, type Artefact } from "./artefacts.ts";
import { ROOT } from "./package.ts";
import { secondsSince } from "./try.ts";

/** As of `npm run faults`: the machine lacks what it takes. */
const LACKING = 3;

type Line = {
  name: string;
  /** What trying it out showed: see `Tried`. */
  [tried: string]: unknown;
  file?: string;
  bytes?: number;
  sha256?: string;
  same_sha256_twice?: boolean;
  /** For making and trying it. */
  seconds?: number;
  skipped?: string;
  failed?: string;
};

const USE = "npm run release -- [names …] [--out folder] [--twice] [--untried] [--json]";
const { values, positionals } = readOptions(
  {
    allowPositionals: true,
    options: {
      json: { type: "boolean", default: false },
      out: { type: "string", default: join(ROOT, "dist/release") },
      twice: { type: "boolean", default: false },
      untried: { type: "boolean", default: false },
    },
  },
  USE,
);
const unknown = positionals.filter((name) => !ARTEFACTS.some((artefact) => artefact.name === name));
if (unknown.length > 0) {
  console.error(
    `No artefact is called ${unknown.join(", ")}; there are ${ARTEFACTS.map(({ name }) => name).join(", ")}.`,
  );
  process.exit(2);
}

const chosen = ARTEFACTS.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const work = mkdtempSync(join(tmpdir(), "postern-build-"));
chmodSync(work, 0o755);
const lines: Line[] = [];
const began = performance.now();
try {
  for (const artefact of chosen) {
    const startedAt = performance.now();
    const line = { ...(await make(artefact)), seconds: secondsSince(startedAt) };
    lines.push(line);
    if (!values.json) console.log(printable(line));
  }
  if (values.twice) compareClones();
} finally {
  rmSync(work, { recursive: true, force: true });
}
writeFileSync(
  join(out, "SHA256SUMS"),
  lines
    .filter(({ file }) => file)
    .map(({ sha256, file }) => `${sha256}  ${file}\n`)
    .join(""),
);
const commit = execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT }).toString().trim();
const seconds = secondsSince(began);
console.log(values.json ? JSON.stringify({ commit, seconds, artefacts: lines }) : `in ${seconds} s, of ${commit}`);
process.exitCode = lines.some(({ failed }) => failed) ? 1 : lines.some(({ skipped }) => skipped) ? LACKING : 0;

async function make(artefact: Artefact): Promise<Line> {
  const { name } = artefact;
  const lacking = artefact.needs.filter((program) => !isInstalled(program));
  if (lacking.length > 0) return { name, skipped: `${lacking.join(" and ")} not installed` };
  try {
    const file = artefact.build(out, work);
    const built = { name, file: basename(file), bytes: statSync(file).size, sha256: digestOf(file) };
    if (values.untried || artefact.tryOut === null) return built;
    return { ...built, ...(await artefact.tryOut(file)) };
  } catch (error) {
    return { name, failed: (error as Error).message };
  }
}

/** Makes what is reproducible in two fresh clones, each with packages of its own, and notes whether all bytes are the same. */
function compareClones(): void {
  const made = lines.filter(({ file }) => file).map(({ name }) => name);
  const names = chosen
    .filter(({ name, is_reproducible }) => is_reproducible && made.includes(name))
    .map(({ name }) => name);
  if (names.length === 0) return;
  const seen = ["one", "another-clone"].map((folder) => digestsOfClone(join(work, folder), names));
  for (const line of lines.filter(({ name }) => names.includes(name))) {
    line.same_sha256_twice = seen.every((digests) => digests[line.name] === line.sha256);
    if (!line.same_sha256_twice)
      line.failed = "its bytes differ between clones of this commit, or from this working tree";
    if (!values.json) console.log(`${line.name}: ${line.failed ?? "the same sha256 in two clones"}`);
  }
}

function digestsOfClone(folder: string, names: string[]): Record<string, string | undefined> {
  execFileSync("git", ["clone", "-q", ROOT, folder]);
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder, stdio: "ignore" });
  const options = ["--json", "--untried", "--out", join(folder, "out")];
  const printed = execFileSync(process.execPath, [join(folder, "release/run.ts"), ...names, ...options], {
    cwd: folder,
  });
  const { artefacts } = JSON.parse(printed.toString()) as { artefacts: Line[] };
  return Object.fromEntries(artefacts.map(({ name, sha256 }) => [name, sha256]));
}

function digestOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function printable({ name, file, bytes = 0, sha256, skipped, failed, ...tried }: Line): string {
  if (skipped) return `skipped  ${name}: ${skipped}`;
  if (failed) return `failed   ${name}: ${failed}`;
  const done = Object.entries(tried).map(([what, value]) => `${what.replaceAll("_", " ")}: ${value}`);
  return `made     ${[`${file} (${(bytes / 1e6).toFixed(1)} MB)`, `sha256 ${sha256}`, ...done].join("\n           ")}`;
}
