// Rules of the house that look at all files together: no imports in a circle, and no folder that nobody can take in.
import { posix } from "node:path";
import type { Violation } from "./tidy-rules.ts";
import type { Source } from "./tidy-source.ts";

const FOLDER_FILES_MAX = 20;

/** Files that import each other in a circle, types included: one violation for each circle, at its first file by name. */
export function checkCycles(sources: Source[]): Violation[] {
  const targets = new Map(product(sources).map((source) => [source.path, importsOf(source)]));
  return circlesOf(targets).map((circle) => {
    const [path = "", ...others] = [...circle].sort();
    return { rule: "cycles", path, line: 1, message: `imports in a circle with ${others.join(", ")}` };
  });
}

/** Folders with more than 20 files of the product beside each other. */
export function checkFolders(sources: Source[]): Violation[] {
  const counts = new Map<string, number>();
  for (const { path } of product(sources)) {
    const folder = posix.dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  return [...counts].flatMap(([path, files]) =>
    files > FOLDER_FILES_MAX
      ? [{ rule: "folders", path, line: 1, message: `has ${files} files side by side, more than ${FOLDER_FILES_MAX}` }]
      : [],
  );
}

function product(sources: Source[]): Source[] {
  return sources.filter(({ path }) => !/\.(test|fixture)\.ts$/.test(path));
}

function importsOf({ path, imports }: Source): string[] {
  return imports
    .filter(({ specifier }) => specifier.startsWith("."))
    .map(({ specifier }) => posix.join(posix.dirname(path), specifier));
}

/** The strongly connected components of more than one node (Tarjan 1972). */
function circlesOf(targets: Map<string, string[]>): string[][] {
  const found = new Map<string, { at: number; low: number }>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (node: string): { at: number; low: number } => {
    const mine = { at: found.size, low: found.size };
    found.set(node, mine);
    stack.push(node);
    for (const target of targets.get(node) ?? []) {
      if (!targets.has(target)) continue;
      const seen = found.get(target);
      if (!seen) mine.low = Math.min(mine.low, visit(target).low);
      else if (stack.includes(target)) mine.low = Math.min(mine.low, seen.at);
    }
    if (mine.low === mine.at) {
      const circle = stack.splice(stack.indexOf(node));
      if (circle.length > 1) circles.push(circle);
    }
    return mine;
  };
  for (const node of targets.keys()) if (!found.has(node)) visit(node);
  return circles;
}
