// Containers without a daemon: images made by buildah, and run with the kernel's namespaces and what their Dockerfile asks for: its
// user, its entry point, a read-only root and one volume. Where no registry answers, the Debian that our Dockerfiles begin with is made here.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { inheritedEnv } from "../test/support/inherited-env.ts";
import { bareDebian } from "./debian.ts";

/** What our Dockerfiles begin with. */
export const DEBIAN = "docker.io/library/debian:bookworm-slim";
/** From images that are here, by Docker's rules. */
export const BUILD = ["--pull-never", "--isolation", "chroot", "--format", "docker"];

/** What a container has: processes, mounts and shared memory of its own; here with the network of the machine. */
const APART = ["--mount", "--pid", "--ipc", "--fork", "--kill-child"];
const UNPRIVILEGED = ["--clear-groups", "--no-new-privs", "--bounding-set=-all"];
/** Given the root, the folder of the volume, its place and the command: all is read-only but the volume and shared memory. */
const INTO_CONTAINER = `
  root=$1 volume=$2 place=$3; shift 3
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
  mount --bind "$volume" "$root$place"
  exec chroot "$root" "$@"
`;

type Config = { User: string; Entrypoint: string[]; Cmd?: string[]; Env: string[]; Healthcheck: { Test: string[] } };

/** What may be written: this folder of the machine, at this place of the container. */
type Volume = { folder: string; place: string };

export type Container = { root: string; config: Config; volume: Volume };

/** Throws with what it printed when it failed. */
export function buildah(...args: string[]): string {
  const env = { ...inheritedEnv(), STORAGE_DRIVER: "vfs" };
  return execFileSync("buildah", args, {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 64 * 1024 * 1024,
  }).toString();
}

export function isHere(name: string): boolean {
  const env = { ...inheritedEnv(), STORAGE_DRIVER: "vfs" };
  return spawnSync("buildah", ["inspect", "--type", "image", name], { env, stdio: "ignore" }).status === 0;
}

/** Runs `work` with the root file system of a container of this image. */
export function inContainer<T>(image: string, work: (root: string) => T): T {
  const container = buildah("from", "--pull-never", image).trim();
  try {
    return work(buildah("mount", container).trim());
  } finally {
    buildah("rm", container);
  }
}

/** Makes `DEBIAN` unless it is here: without documents, translations and lists of packages, as Debian's slim image. */
export function makeDebian(work: string): void {
  if (isHere(DEBIAN)) return;
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
  buildah("commit", "--rm", container, DEBIAN);
}

/** A new container of `image`, gone again with `undo`. */
export function createContainer(image: string, volume: Volume, undo: DisposableStack): Container {
  const container = buildah("from", "--pull-never", image).trim();
  undo.defer(() => void buildah("rm", container));
  const root = buildah("mount", container).trim();
  const { Docker } = JSON.parse(buildah("inspect", "--type", "image", image)) as { Docker: { config: Config } };
  return { root, config: Docker.config, volume };
}

/** Runs the entry point in namespaces of its own but for the network, as the image's user. */
export function runContainer(
  container: Container,
  given: readonly string[],
  env: Record<string, string>,
): ChildProcess {
  const { root, config, volume } = container;
  const command = [...asUser(config), ...config.Entrypoint, ...given];
  const into = ["sh", "-euc", INTO_CONTAINER, "sh", root, volume.folder, volume.place];
  return spawn("unshare", [...APART, ...into, ...command], {
    env: environment(config, env),
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** Runs the image's health check in the container that `child` is; throws when it is not well. */
export function checkHealth({ config }: Container, child: ChildProcess, env: Record<string, string>): void {
  const inside = ["--target", `${processOne(child)}`, "--mount", "--pid", "--root", "--wd=/"];
  execFileSync("nsenter", [...inside, ...asUser(config), ...config.Healthcheck.Test.slice(1)], {
    env: environment(config, env),
    stdio: "pipe",
  });
}

/** The one child of `unshare`: process 1 of the container. */
export function processOne({ pid }: ChildProcess): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim());
}

function asUser({ User }: Config): string[] {
  const [user, group] = User.split(":");
  return ["setpriv", `--reuid=${user}`, `--regid=${group}`, ...UNPRIVILEGED];
}

/** The image's own, what is given, and where this machine has `chroot` and `setpriv`. */
function environment(config: Config, given: Record<string, string>): Record<string, string> {
  const env = Object.fromEntries(config.Env.map((each) => each.split(/=(.*)/s, 2)));
  return { ...env, ...given, PATH: `${env.PATH}:/usr/sbin:/sbin` };
}
