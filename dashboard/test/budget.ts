// npm run dashboard -- budget [--json]: what a browser loads, compressed, as the build's files say it. First load: the entry
// with all that it imports. A page: what comes on top of that when it is opened.
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const DIST = resolve(import.meta.dirname, "../dist");
const FIRST_BYTES_MAX = 200_000;
const PAGE_BYTES_MAX = 60_000;
/** Comes after its page, which works without it until then (docs/decisions/0040-code-editor.md). */
const LARGER: Record<string, number> = { "editor/code-mirror.ts": 95_000 };

type Chunk = { file: string; isEntry?: boolean; isDynamicEntry?: boolean; imports?: string[] };
type Page = { page: string; bytes: number; bytes_max: number };

export function checkBudget({ json }: { json: boolean }): number {
  const path = join(DIST, ".vite/manifest.json");
  if (!existsSync(path)) {
    console.error("The dashboard is not built: npm run dashboard -- build");
    return 1;
  }
  const chunks: Record<string, Chunk> = JSON.parse(readFileSync(path, "utf8"));
  const entry = Object.keys(chunks).filter((name) => chunks[name]?.isEntry);
  const first = reach(chunks, entry);
  const pages: Page[] = Object.entries(chunks)
    .filter(([, { isDynamicEntry }]) => isDynamicEntry)
    .map(([name]) => ({
      page: name,
      bytes: sum(chunks, reach(chunks, [name]).difference(first)),
      bytes_max: LARGER[name] ?? PAGE_BYTES_MAX,
    }));
  const result = {
    first_bytes: sum(chunks, first),
    first_bytes_max: FIRST_BYTES_MAX,
    page_bytes_max: PAGE_BYTES_MAX,
    pages,
  };
  const isKept = result.first_bytes <= FIRST_BYTES_MAX && pages.every(({ bytes, bytes_max }) => bytes <= bytes_max);
  if (json) console.log(JSON.stringify({ ...result, kept: isKept }));
  else print(result, isKept);
  return isKept ? 0 : 1;
}

/** A chunk and all that it imports at once. */
function reach(chunks: Record<string, Chunk>, from: readonly string[], seen = new Set<string>()): Set<string> {
  for (const name of from) {
    if (seen.has(name)) continue;
    seen.add(name);
    reach(chunks, chunks[name]?.imports ?? [], seen);
  }
  return seen;
}

function sum(chunks: Record<string, Chunk>, names: Iterable<string>): number {
  const files = [...names].map((name) => chunks[name]?.file ?? "").filter((file) => file.endsWith(".js"));
  return files.reduce((bytes, file) => bytes + gzipSync(readFileSync(join(DIST, file))).length, 0);
}

function print({ first_bytes, pages }: { first_bytes: number; pages: Page[] }, isKept: boolean): void {
  const kilobytes = (bytes: number) => `${(bytes / 1_000).toFixed(1)} KB`.padStart(9);
  console.log(`${kilobytes(first_bytes)}  first load (at most ${kilobytes(FIRST_BYTES_MAX).trim()})`);
  for (const { page, bytes, bytes_max } of pages)
    console.log(`${kilobytes(bytes)}  ${page} (at most ${kilobytes(bytes_max).trim()})`);
  console.log(isKept ? "Within the budget." : "Over the budget.");
}
