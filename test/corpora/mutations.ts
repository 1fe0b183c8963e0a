// npm run corpora -- --mutations [--json]: do the corpora notice faults? Each fault of faults.ts is planted in a copy of the
// tree, where nothing else is touched, and the corpora that can notice it are played there until one fails. Before that
// the same corpora must pass in the copy as it is. The working tree is only read. All runs share one database server with a
// migrated template; each has a process of its own, as the product's code is loaded again.
import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeRunFolder, startTestServer } from "../support/test-server.ts";
import { FAULTS, type Fault } from "./faults.ts";

const FOLDERS = ["src", "test", "migrations", "docs", "bin", "package.json", "tsconfig.json"];
const RUN_MS_MAX = 900_000;

export type Caught = { what: string; file: string; caught_by: string | null; problem: string | null; seconds: number };
export type MutationsResult = { faults: Caught[]; caught: number; of: number; unsound: string[]; ok: boolean };

/** Plays these corpora in the copy, in their order, until one fails: the names of those that failed. */
type Play = (corpora: readonly string[], untilFailed: boolean) => Promise<string[]>;

/** Plants all faults, one after the other. `unsound` are corpora that fail without any: what they notice proves nothing. */
export async function playMutations(root: string, data: string, say: (line: string) => void): Promise<MutationsResult> {
  const undo = new AsyncDisposableStack();
  try {
    const copy = undo.adopt(await mkdtemp(join(tmpdir(), "postern-mutations-")), remove);
    for (const name of FOLDERS) await cp(join(root, name), join(copy, name), { recursive: true });
    await symlink(join(root, "node_modules"), join(copy, "node_modules"));
    const folder = undo.adopt(await makeRunFolder(), remove);
    const server = undo.adopt(await startTestServer(process.env.DATABASE_URL, folder), (running) => running.stop());
    const { admin_url, template_url } = server;
    const env = { ...process.env, POSTERN_TEST_DATABASE_URL: admin_url, POSTERN_TEST_TEMPLATE_URL: template_url };
    return await plantAll(copy, (corpora, untilFailed) => playIn({ copy, data, env }, corpora, untilFailed), say);
  } finally {
    await undo.disposeAsync();
  }
}

function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}

async function plantAll(copy: string, play: Play, say: (line: string) => void): Promise<MutationsResult> {
  // A busy machine makes a mail slow once: what fails is played once more.
  const unsound = await play(await play([...new Set(FAULTS.flatMap(({ corpora }) => corpora))], false), false);
  for (const name of unsound) say(`UNSOUND ${name}: it fails without any fault`);
  const faults: Caught[] = [];
  for (const fault of FAULTS) {
    const caught = await plant(copy, fault, (corpora, untilFailed) =>
      play(
        corpora.filter((name) => !unsound.includes(name)),
        untilFailed,
      ),
    );
    const { what, caught_by, problem, seconds } = caught;
    say(`${caught_by === null ? "MISSED" : "caught"} ${what}: ${caught_by ?? problem}, ${seconds} s`);
    faults.push(caught);
  }
  const caught = faults.filter(({ caught_by }) => caught_by !== null).length;
  return { faults, caught, of: faults.length, unsound, ok: caught === faults.length && unsound.length === 0 };
}

async function plant(copy: string, { what, file, from, to, corpora }: Fault, play: Play): Promise<Caught> {
  const path = join(copy, file);
  const source = await readFile(path, "utf8");
  if (source.split(from).length !== 2) {
    const problem = "the line that it changes is not there, or stands there twice";
    return { what, file, caught_by: null, problem, seconds: 0 };
  }
  const planted = source.replace(from, () => to);
  await writeFile(path, planted);
  const began = performance.now();
  try {
    const [caught_by = null] = await play(corpora, true);
    const seconds = Math.round((performance.now() - began) / 1000);
    return { what, file, caught_by, problem: caught_by ? null : `not noticed by ${corpora.join(", ")}`, seconds };
  } finally {
    await writeFile(path, source);
  }
}

type Place = { copy: string; data: string; env: NodeJS.ProcessEnv };

/** In a process of its own. Failed are corpora of which a case failed: a tree that does not start has not noticed. */
function playIn({ copy, data, env }: Place, corpora: readonly string[], untilFailed: boolean): Promise<string[]> {
  if (corpora.length === 0) return Promise.resolve([]);
  const options = ["--data", data, ...(untilFailed ? ["--until-failed"] : [])];
  return new Promise((done, broken) => {
    const child = spawn(process.execPath, ["test/corpora/run.ts", ...corpora, ...options], {
      ...{ cwd: copy, env, timeout: RUN_MS_MAX },
      stdio: ["ignore", "pipe", "ignore"],
    });
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += chunk;
    });
    child.on("error", broken);
    child.on("close", () => {
      const counts = said.matchAll(/^([\w-]+): (\d+) cases, \d+ passed, \d+ explained, [1-9]\d* failed$/gm);
      done([...counts].filter(([, , cases]) => cases !== "0").flatMap(([, name]) => name ?? []));
    });
  });
}
