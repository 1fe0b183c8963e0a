// The seeds of a target: our own corpus, what was found before, and third-party cases when they are there. At most a few
// hundred, evenly over the names, so that one large folder does not take all the time.
import { existsSync, globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { BYTES_MAX_DEFAULT, type Target } from "./target.ts";

const CORPUS = fileURLToPath(new URL("./corpus/", import.meta.url));
const SHARED = resolve(fileURLToPath(new URL("../../../shared/data/", import.meta.url)));
const SHARED_SEEDS_MAX = 300;

/** Every seed of a target, its own first, in an order that does not change. */
export function readSeeds(target: Target): Buffer[] {
  const { lines, files = [], shared = [] } = target.seeds;
  const max = target.bytes_max ?? BYTES_MAX_DEFAULT;
  const own = [...(lines ? readLines(lines) : []), ...files.flatMap((folder) => readFolder(join(CORPUS, folder)))];
  return [...own, ...readShared(shared)].filter((seed) => seed.length <= max);
}

/** Each line is a JSON string; bytes beyond UTF-8 are written as `\u0080` to `\u00ff` behind a leading `latin1:`. */
function readLines(name: string): Buffer[] {
  return readFileSync(join(CORPUS, name), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const text = JSON.parse(line) as string;
      return text.startsWith("latin1:") ? Buffer.from(text.slice(7), "latin1") : Buffer.from(text);
    });
}

function readFolder(folder: string): Buffer[] {
  return readdirSync(folder)
    .sort()
    .map((name) => readFileSync(join(folder, name)));
}

function readShared(patterns: readonly string[]): Buffer[] {
  if (!existsSync(SHARED)) return [];
  const paths = patterns
    .flatMap((pattern) => globSync(pattern, { cwd: SHARED }))
    .sort()
    .map((path) => join(SHARED, path))
    .filter((path) => statSync(path).isFile());
  const step = Math.max(1, Math.ceil(paths.length / SHARED_SEEDS_MAX));
  return paths.filter((_, index) => index % step === 0).map((path) => readFileSync(path));
}
