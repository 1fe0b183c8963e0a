// npm run corpora -- --mutations [--json]: do the corpora notice faults? Each fault of faults.ts is planted in a copy of the
// tree, where nothing else is touched, and the corpora that can notice it are played there until one fails. Before that
// the same corpora must pass in the copy as it is. The working tree is only read.
import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FAULTS, type Fault } from "./faults.ts";

const FOLDERS = ["src", "test", "migrations", "docs", "bin", "package.json", "tsconfig.json"];
const RUN_MS_MAX = 900_000;

export type Caught = { what: string; file: string; caught_by: string | null; problem: string | null };
export type MutationsResult = { faults: Caught[]; caught: number; of: number; unsound: string[]; ok: boolean };

/** Plants all faults, one after the other. `unsound` are corpora that fail without any: what they notice proves nothing. */
export async function playMutations(root: string, data: string, say: (line: string) => void): Promise<MutationsResult> {
  const copy = await mkdtemp(join(tmpdir(), "postern-mutations-"));
  try {
    for (const name of FOLDERS) await cp(join(root, name), join(copy, name), { recursive: true });
    await symlink(join(root, "node_modules"), join(copy, "node_modules"));
    const used = [...new Set(FAULTS.flatMap(({ corpora }) => corpora))];
    const unsound: string[] = [];
    for (const name of used) if (await fails(copy, data, name)) unsound.push(name);
    for (const name of unsound) say(`UNSOUND ${name}: it fails without any fault`);
    const faults: Caught[] = [];
    for (const fault of FAULTS) {
      const caught = await play(copy, data, fault, unsound);
      say(`${caught.caught_by === null ? "MISSED" : "caught"} ${fault.what}: ${caught.caught_by ?? caught.problem}`);
      faults.push(caught);
    }
    const caught = faults.filter(({ caught_by }) => caught_by !== null).length;
    return { faults, caught, of: faults.length, unsound, ok: caught === faults.length && unsound.length === 0 };
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

async function play(copy: string, data: string, fault: Fault, unsound: readonly string[]): Promise<Caught> {
  const { what, file, from, to, corpora } = fault;
  const path = join(copy, file);
  const source = await readFile(path, "utf8");
  if (source.split(from).length !== 2) {
    return { what, file, caught_by: null, problem: "the line that it changes is not there, or stands there twice" };
  }
  await writeFile(
    path,
    source.replace(from, () => to),
  );
  try {
    for (const name of corpora.filter((one) => !unsound.includes(one))) {
      if (await fails(copy, data, name)) return { what, file, caught_by: name, problem: null };
    }
    return { what, file, caught_by: null, problem: `not noticed by ${corpora.join(", ")}` };
  } finally {
    await writeFile(path, source);
  }
}

/** In a process of its own. A failure is exit code 1 with a case that failed: a tree that does not start has not noticed. */
function fails(copy: string, data: string, name: string): Promise<boolean> {
  return new Promise((done, broken) => {
    const child = spawn(process.execPath, ["test/corpora/run.ts", name, "--data", data], {
      cwd: copy,
      stdio: ["ignore", "pipe", "ignore"],
      timeout: RUN_MS_MAX,
    });
    let said = "";
    child.stdout.on("data", (chunk) => {
      said = `${said}${chunk}`.slice(-1_000_000);
    });
    child.on("error", broken);
    child.on("close", (code) => done(code === 1 && /^ {2}FAILED |\d+ explained, [1-9]\d* failed/m.test(said)));
  });
}
