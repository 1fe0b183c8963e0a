// The container image, built from deploy/Dockerfile by buildah, which needs no daemon. Tried with the kernel's namespaces and
// what the Dockerfile asks for: its user, its entry point, its health check, a read-only root and one volume. Where no registry answers, the two images that the
// Dockerfile begins with are made of a bare Debian here. Not here: pushing to a registry.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../src/platform/postgres/embedded-postgres.ts";
import { inheritedEnv } from "../test/support/inherited-env.ts";
import { bareDebian } from "./debian.ts";
import { ownVersion, ROOT, refuseOtherVersion } from "./package.ts";
import { scratchFolder, type Tried, tryOut } from "./try.ts";

const NAME = "localhost/postern";
const BASE = "docker.io/library/debian:bookworm-slim";
const NODE_BASE = "docker.io/library/node:24-bookworm-slim";
const USER = 10_001;
/** Without the embedded database, unpacked. */
const BYTES_MAX = 250e6;
/** What a container has: processes, mounts and shared memory of its own; here with the network of the machine. */
const APART = ["--mount", "--pid", "--ipc", "--fork", "--kill-child"];
const UNPRIVILEGED = [`--reuid=${USER}`, `--regid=${USER}`, "--clear-groups", "--no-new-privs", "--bounding-set=-all"];
/** Given the root, the folder of the volume and the command: all is read-only but the volume and shared memory. */
const INTO_CONTAINER = `
  root=$1 volume=$2; shift 2
  mount --bind "$root" "$root"
  mount -o remount,ro,bind "$root"
  mount -t proc proc "$root/proc"
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  for device in null zero random urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mkdir "$root/dev/shm"
  mount -t tmpfs -o mode=1777,size=64m tmpfs "$root/dev/shm"
  mount --bind "$volume" "$root/var/lib/postern"
  exec chroot "$root" "$@"
`;

type Config = { User: string; Entrypoint: string[]; Cmd: string[]; Env: string[]; Healthcheck: { Test: string[] } };

/** Makes `postern-<version>-image.tar` in `out`, as `docker load` takes it. */
export function buildImage(out: string, work: string): string {
  for (const [name, make] of [
    [BASE, makeBase],
    [NODE_BASE, makeNodeBase],
  ] as const) {
    if (!isHere(name)) make(work);
  }
  const revision = execFileSync("git", ["rev-parse", "HEAD"], { cwd: ROOT }).toString().trim();
  const tag = `${NAME}:${ownVersion()}`;
  const given = ["--build-arg", `VERSION=${ownVersion()}`, "--build-arg", `REVISION=${revision}`];
  const options = ["--pull-never", "--isolation", "chroot", "--format", "docker", "--timestamp", "0", ...given];
  buildah("bud", ...options, "-t", tag, "-f", join(ROOT, "deploy/Dockerfile"), ROOT);
  const bytes = unpackedBytes(tag);
  if (bytes > BYTES_MAX) throw new Error(`the image has ${Math.round(bytes / 1e6)} MB, more than ${BYTES_MAX / 1e6}`);
  const file = join(out, `postern-${ownVersion()}-image.tar`);
  rmSync(file, { force: true });
  buildah("push", tag, `docker-archive:${file}:${tag}`);
  return file;
}

function buildah(...args: string[]): string {
  const env = { ...inheritedEnv(), STORAGE_DRIVER: "vfs" };
  return execFileSync("buildah", args, {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 64 * 1024 * 1024,
  }).toString();
}

function isHere(name: string): boolean {
  const env = { ...inheritedEnv(), STORAGE_DRIVER: "vfs" };
  return spawnSync("buildah", ["inspect", "--type", "image", name], { env, stdio: "ignore" }).status === 0;
}

/** Runs `work` with the root file system of a container of this image. */
function inContainer<T>(image: string, work: (root: string) => T): T {
  const container = buildah("from", "--pull-never", image).trim();
  try {
    return work(buildah("mount", container).trim());
  } finally {
    buildah("rm", container);
  }
}

function unpackedBytes(image: string): number {
  return inContainer(image, (root) =>
    Number(execFileSync("du", ["--summarize", "--block-size=1", "--apparent-size", root]).toString().split("\t")[0]),
  );
}

/** Without documents, translations and lists of packages, as Debian's slim image. */
function makeBase(work: string): void {
  const root = join(work, "debian-slim");
  execFileSync("cp", ["-a", bareDebian(), root]);
  const left = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "var/cache/apt",
    "var/lib/apt/lists",
  ];
  for (const name of left) rmSync(join(root, name), { recursive: true, force: true });
  const container = buildah("from", "scratch").trim();
  buildah("add", container, root, "/");
  buildah("config", "--cmd", "bash", container);
  buildah("commit", "--rm", container, BASE);
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
  const container = buildah("from", "--pull-never", BASE).trim();
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
    const image = `${NAME}:${ownVersion()}`;
    const container = buildah("from", "--pull-never", image).trim();
    undo.defer(() => void buildah("rm", container));
    const root = buildah("mount", container).trim();
    const { Docker } = JSON.parse(buildah("inspect", "--type", "image", image)) as { Docker: { config: Config } };
    return await tryContainer({ root, config: Docker.config, folder }, database.url);
  } finally {
    await database.stop();
  }
}

type Container = { root: string; config: Config; folder: string };

async function tryContainer({ root, config, folder }: Container, databaseUrl: string): Promise<Tried> {
  if (config.User !== `${USER}:${USER}`) throw new Error(`the image runs as ${config.User}`);
  const data = join(folder, "data");
  mkdirSync(data);
  chownSync(data, USER, USER);
  const start = (command: string[], env: Record<string, string>) =>
    spawn(
      "unshare",
      [...APART, "sh", "-euc", INTO_CONTAINER, "sh", root, data, "setpriv", ...UNPRIVILEGED, ...command],
      {
        env: { ...environment(config), ...env },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
  refuseOtherVersion(await printed(start([...config.Entrypoint, "--version"], {})));
  let first = 0;
  return await tryOut(
    (env) => {
      const child = start([...config.Entrypoint, ...config.Cmd], { ...env, DATABASE_URL: databaseUrl });
      first = child.pid ?? 0;
      return child;
    },
    "/var/lib/postern",
    {
      look: (env) => {
        const inside = ["--target", `${processOne(first)}`, "--mount", "--pid", "--root", "--wd=/"];
        const command = ["setpriv", ...UNPRIVILEGED, ...config.Healthcheck.Test.slice(1)];
        execFileSync("nsenter", [...inside, ...command], { env: { ...environment(config), ...env }, stdio: "pipe" });
      },
      terminate: () => process.kill(processOne(first), "SIGTERM"),
    },
  );
}

/** The image's own, and where this machine has `chroot` and `setpriv`. */
function environment(config: Config): Record<string, string> {
  const env = Object.fromEntries(config.Env.map((each) => each.split(/=(.*)/s, 2)));
  return { ...env, PATH: `${env.PATH}:/usr/sbin:/sbin` };
}

/** The one child of `unshare`: process 1 of the container. */
function processOne(unshare: number): number {
  return Number(readFileSync(`/proc/${unshare}/task/${unshare}/children`, "utf8").trim());
}

async function printed(child: ChildProcess): Promise<string> {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => (text += chunk));
  await once(child, "close");
  return text;
}
