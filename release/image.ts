// The container image, built from deploy/Dockerfile, and tried as a container is: its health check too. Not here: how containers are
// run (containers.ts), and pushing to a registry.
import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../src/platform/postgres/embedded-postgres.ts";
import {
  BUILD,
  buildah,
  type Container,
  checkHealth,
  createContainer,
  DEBIAN,
  inContainer,
  isHere,
  makeDebian,
  processOne,
  runContainer,
} from "./containers.ts";
import { ownVersion, ROOT, refuseOtherVersion } from "./package.ts";
import { scratchFolder, type Tried, tryOut } from "./try.ts";

const NAME = "localhost/postern";
const NODE_BASE = "docker.io/library/node:24-bookworm-slim";
const USER = 10_001;
/** Without the embedded database, unpacked. */
const BYTES_MAX = 250e6;

/** Makes `postern-<version>-image.tar` in `out`, as `docker load` takes it. */
export function buildImage(out: string, work: string): string {
  makeDebian(work);
  if (!isHere(NODE_BASE)) makeNodeBase(work);
  const revision = execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT }).toString().trim();
  const tag = `${NAME}:${ownVersion()}`;
  const given = ["--build-arg", `VERSION=${ownVersion()}`, "--build-arg", `REVISION=${revision}`];
  const options = [...BUILD, "--timestamp", "0", ...given];
  buildah("bud", ...options, "-t", tag, "-f", join(ROOT, "deploy/Dockerfile"), ROOT);
  const bytes = unpackedBytes(tag);
  if (bytes > BYTES_MAX) throw new Error(`the image has ${Math.round(bytes / 1e6)} MB, more than ${BYTES_MAX / 1e6}`);
  const file = join(out, `postern-${ownVersion()}-image.tar`);
  rmSync(file, { force: true });
  buildah("push", tag, `docker-archive:${file}:${tag}`);
  return file;
}

function unpackedBytes(image: string): number {
  return inContainer(image, (root) =>
    Number(execFileSync("du", ["--summarize", "--block-size=1", "--apparent-size", root]).toString().split("\t")[0]),
  );
}

/** With the Node of this process, the npm of the machine and the authorities that it trusts. */
function makeNodeBase(work: string): void {
  const root = join(work, "node");
  const npm = join(execFileSync("npm", ["root", "--global"]).toString().trim(), "npm");
  for (const folder of ["bin", "lib/node_modules"]) mkdirSync(join(root, folder), { recursive: true });
  cpSync(process.execPath, join(root, "bin/node"));
  cpSync(npm, join(root, "lib/node_modules/npm"), { recursive: true });
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(root, "bin/npm"));
  const authorities = process.env.NODE_EXTRA_CA_CERTS;
  if (authorities) cpSync(authorities, join(root, "authorities.pem"));
  const container = buildah("from", "--pull-never", DEBIAN).trim();
  buildah("add", container, root, "/usr/local");
  buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container);
  if (authorities) buildah("config", "--env", "NODE_EXTRA_CA_CERTS=/usr/local/authorities.pem", container);
  buildah("commit", "--rm", container, NODE_BASE);
}

// Trying it out ---------------------------------------------------------------------------------------------------------

/** In namespaces of its own but for the network, with a PostgreSQL beside it. */
export async function tryImage(): Promise<Tried> {
  using undo = new DisposableStack();
  const folder = scratchFolder(undo);
  const database = await startEmbeddedPostgres({ data_dir: join(folder, "pg"), tcp: true });
  try {
    const data = join(folder, "data");
    mkdirSync(data);
    chownSync(data, USER, USER);
    const volume = { folder: data, place: "/var/lib/postern" };
    return await tryContainer(createContainer(`${NAME}:${ownVersion()}`, volume, undo), database.url);
  } finally {
    await database.stop();
  }
}

async function tryContainer(container: Container, databaseUrl: string): Promise<Tried> {
  const { config, volume } = container;
  if (config.User !== `${USER}:${USER}`) throw new Error(`the image runs as ${config.User}`);
  refuseOtherVersion(await printed(runContainer(container, ["--version"], {})));
  let child: ChildProcess;
  return await tryOut(
    (env) => {
      child = runContainer(container, config.Cmd ?? [], { ...env, DATABASE_URL: databaseUrl });
      return child;
    },
    volume.place,
    { look: (env) => checkHealth(container, child, env), terminate: () => process.kill(processOne(child), "SIGTERM") },
  );
}

async function printed(child: ChildProcess): Promise<string> {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => (text += chunk));
  await once(child, "close");
  return text;
}
