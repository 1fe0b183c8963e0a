// The compiled package: what `npm install postern-<version>.tgz` installs. Node strips no types below node_modules, so the
// program is compiled by tsc, file by file, into the same tree: `src/` with `.js`, `migrations/` and `bin/` beside it. Not
// here: the Node to run it on, which is the machine's own, and the packages that it needs, which npm-shrinkwrap.json pins.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "..");
/** What is started by name: the program and its threads. All else is found through imports. */
const ENTRIES = [
  "src/main.ts",
  "src/heavy-worker.ts",
  "src/parsing/parse-worker.ts",
  "src/platform/process/watchdog-worker.ts",
];
const PAGES = ["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md"];
/** What people and their monitoring read. */
const SHOWN = ["docs/{,guides/}*.md", "deploy/monitoring/{alerts.yml,board.json}"];
/** What the program reads by path. */
const READ = ["clients/cli/operations.json"];
/** tsc rewrites imports; this is how the program names its threads and itself. */
const OWN_FILE = /(new URL\("\.{1,2}\/[^"]+)\.ts(", import\.meta\.url\))/g;
const LEFT_TYPESCRIPT = /["'`]\.{1,2}\/[^"'`]*(?<!\.d)\.ts["'`]/;

type Manifest = {
  name: string;
  version: string;
  optionalDependencies: Record<string, string>;
  [field: string]: unknown;
};
type Lock = { packages: Record<string, { dev?: boolean; [field: string]: unknown }>; [field: string]: unknown };

/** The version of package.json, which all artefacts carry. */
export function ownVersion(): string {
  return readJson<Manifest>("package.json").version;
}

/** Throws unless `postern --version` printed the version of package.json. */
export function refuseOtherVersion(printed: string): void {
  if (printed.trim() !== ownVersion()) throw new Error(`postern --version says ${printed.trim()}, not ${ownVersion()}`);
}

/** Writes the tree of the package into `folder`, which is emptied first. Throws when a name of a TypeScript file is left in it. */
export function layOutPackage(folder: string): void {
  compile(emptied(folder), ENTRIES);
  for (const file of globSync("migrations/[0-9]*.sql", { cwd: ROOT })) copy(file, folder);
  for (const file of [...PAGES, ...READ, ...globSync(SHOWN, { cwd: ROOT }), "bin/postern"]) copy(file, folder);
  chmodSync(join(folder, "bin/postern"), 0o755);
  execFileSync(process.execPath, [join(ROOT, "dashboard/run.ts"), "build"], { cwd: ROOT, stdio: "inherit" });
  cpSync(join(ROOT, "dashboard/dist"), join(folder, "dashboard/dist"), { recursive: true });
  const manifest = publishedManifest();
  writeJson(join(folder, "package.json"), manifest);
  writeJson(join(folder, "npm-shrinkwrap.json"), publishedLock(manifest));
}

/** `postern-<version>.tgz` in `out`, from a tree that layOutPackage made: npm gives every file the same time and owner. */
export function packPackage(folder: string, out: string): string {
  const printed = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", out], {
    cwd: folder,
  });
  const [{ filename }] = JSON.parse(printed.toString()) as [{ filename: string }];
  return join(out, filename);
}

/** The folder, made, with nothing in it. */
export function emptied(folder: string): string {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

/**
 * Compiles `entries` and all that they import into the same places below `folder`. `target`: the newest syntax that may be left,
 * where an older Node than Postern's runs it.
 */
export function compile(folder: string, entries: readonly string[], target?: "es2023"): void {
  const settings = join(folder, "tsconfig.json");
  writeJson(settings, {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      rewriteRelativeImportExtensions: true,
      rootDir: ROOT,
      outDir: folder,
      ...(target && { target }),
      typeRoots: [join(ROOT, "node_modules/@types")],
    },
    include: [join(ROOT, "src/**/*.d.ts")],
    files: entries.map((file) => join(ROOT, file)),
  });
  execFileSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", settings], { cwd: ROOT, stdio: "inherit" });
  rmSync(settings);
  for (const file of globSync("{src,clients}/**/*.js", { cwd: folder })) {
    const path = join(folder, file);
    const text = readFileSync(path, "utf8").replace(OWN_FILE, "$1.js$2");
    const left = LEFT_TYPESCRIPT.exec(text);
    if (left) throw new Error(`${file} still names ${left[0]}, which is not in the package: see OWN_FILE`);
    writeFileSync(path, text);
  }
}

/** Without what is for working on Postern, and without the Node that `npm ci` puts beside a clone. */
function publishedManifest(): Manifest {
  const { optionalDependencies, ...all } = readJson<Manifest>("package.json");
  const { devDependencies: _dev, scripts: _scripts, private: _private, workspaces: _workspaces, ...manifest } = all;
  const optional = Object.entries(optionalDependencies).filter(([name]) => !isNode(name));
  return { ...manifest, optionalDependencies: Object.fromEntries(optional) } as Manifest;
}

function publishedLock({ name, version, ...manifest }: Manifest): Lock {
  const lock = readJson<Lock>("package-lock.json");
  const packages = Object.entries(lock.packages).filter(
    ([path, { dev, link }]) =>
      path.startsWith("node_modules/") && !dev && !link && !isNode(path.replace("node_modules/", "")),
  );
  const { license, bin, engines, dependencies, optionalDependencies } = manifest;
  const root = { name, version, license, dependencies, bin, engines, optionalDependencies };
  return { ...lock, name, version, packages: { "": root, ...Object.fromEntries(packages) } };
}

function isNode(name: string): boolean {
  return /^node-(linux|win|darwin)-/.test(name);
}

/** Copies a file of this tree to the same path below `folder`, or to another one. */
export function copy(file: string, folder: string, as = file): void {
  mkdirSync(dirname(join(folder, as)), { recursive: true });
  cpSync(join(ROOT, file), join(folder, as));
}

export function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(join(ROOT, file), "utf8")) as T;
}

export function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}
