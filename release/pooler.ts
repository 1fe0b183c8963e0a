// The pooler of compose.scale.yaml: its image is built from the files that are handed out, run with the settings that Compose gives
// it, and a Postern sends a mail through it. Not here: those files as such (deploy-files.ts).
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startEmbeddedPostgres } from "../src/platform/postgres/embedded-postgres.ts";
import { freePort } from "../test/support/free-port.ts";
import { inheritedEnv } from "../test/support/inherited-env.ts";
import { BUILD, buildah, checkHealth, createContainer, makeDebian, processOne, runContainer } from "./containers.ts";
import { ROOT } from "./package.ts";
import { scratchFolder, tryOut } from "./try.ts";

const IMAGE = "localhost/postern-pooler:tried";
const UP_WITHIN_MS = 10_000;
const LOOK_EVERY_MS = 50;

/** `folder` has what the archive of the compose files has, `settings` is the pooler's environment there. Throws at what does not work. */
export async function tryPooler(folder: string, settings: Record<string, string>): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const scratch = undo.use(new DisposableStack());
  const work = scratchFolder(scratch);
  makeDebian(work);
  buildah("bud", ...BUILD, "-t", IMAGE, "-f", join(folder, "pooler.Dockerfile"), folder);
  const database = undo.adopt(await startEmbeddedPostgres({ data_dir: join(work, "pg"), tcp: true }), (own) =>
    own.stop(),
  );
  const [direct, through] = [new URL(database.url), new URL(database.url)];
  through.port = String(await freePort());
  const place = { DATABASE_HOST: direct.hostname, DATABASE_PORT: direct.port, POOLER_PORT: through.port };
  const env = { ...settings, ...place, DATABASE_PASSWORD: decodeURIComponent(direct.password) };
  const tmp = join(work, "tmp");
  mkdirSync(tmp);
  chmodSync(tmp, 0o1777);
  const container = createContainer(IMAGE, { folder: tmp, place: "/tmp" }, scratch);
  const pooler = runContainer(container, [], env);
  undo.defer(() => void pooler.kill("SIGKILL"));
  const output = outputOf(pooler);
  await output.says(/process up/);
  checkHealth(container, pooler, env);
  const data = join(work, "data");
  const own = { DATABASE_URL: database.url, POSTERN_DATABASE_POOLER: through.href };
  await tryOut(
    (of) =>
      spawn(process.execPath, [join(ROOT, "src/main.ts"), "start"], {
        env: { ...inheritedEnv(), ...of, ...own },
        stdio: ["ignore", "pipe", "pipe"],
      }),
    data,
  );
  if (!/login attempt: db=postern user=postern/.test(output.text())) throw new Error("nobody used the pooler");
  process.kill(processOne(pooler), "SIGINT");
  const [code] = await once(pooler, "exit", { signal: AbortSignal.timeout(UP_WITHIN_MS) });
  if (code !== 0) throw new Error(`the pooler ended with ${code}`);
}

type Output = { text(): string; says(wanted: RegExp): Promise<void> };

/** What it prints from now on. `says` rejects when it ends before, or does not say so in time. */
function outputOf(child: ChildProcess): Output {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (piece: Buffer) => (text += piece));
  return {
    text: () => text,
    async says(wanted) {
      const late = AbortSignal.timeout(UP_WITHIN_MS);
      while (!wanted.test(text)) {
        if (late.aborted || child.exitCode !== null) throw new Error(`the pooler does not say ${wanted}: ${text}`);
        await sleep(LOOK_EVERY_MS);
      }
    },
  };
}
