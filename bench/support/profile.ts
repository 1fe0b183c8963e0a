// Where the time of a bench went: what V8 sampled in Postern's processes (`--profile`), summed up by part of the program
// and by function. The files themselves are flame graphs for Chromium's developer tools and other viewers of `.cpuprofile`.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

type Frame = { functionName: string; url: string };
type Profile = {
  nodes: { id: number; callFrame: Frame; children?: number[] }[];
  samples: number[];
  timeDeltas: number[];
};

export type Share = { name: string; percent: number };

/** In percent of all time in which a thread was not idle. V8 samples by the clock, and no thread pool. */
export type Shares = { busy_s: number; parts: Share[]; functions: Share[] };

const IDLE = new Set(["(idle)", "(program)", "(root)"]);
const PARTS_SHOWN = 24;
const FUNCTIONS_SHOWN = 24;

/** The shares of processor time over all profiles in the folder. */
export function sharesOf(dir: string): Shares {
  const parts = new Map<string, number>();
  const functions = new Map<string, number>();
  for (const file of readdirSync(dir).filter((name) => name.endsWith(".cpuprofile"))) {
    addProfile(JSON.parse(readFileSync(join(dir, file), "utf8")) as Profile, parts, functions);
  }
  const busy = [...parts.values()].reduce((sum, us) => sum + us, 0);
  const shares = (of: Map<string, number>, shown: number): Share[] =>
    [...of]
      .sort(([, a], [, b]) => b - a)
      .slice(0, shown)
      .map(([name, us]) => ({ name, percent: Math.round((us / busy) * 1_000) / 10 }));
  return {
    busy_s: Math.round(busy / 1e5) / 10,
    parts: shares(parts, PARTS_SHOWN),
    functions: shares(functions, FUNCTIONS_SHOWN),
  };
}

/** What has no file of its own, as native code, counts for its caller. */
function addProfile(profile: Profile, parts: Map<string, number>, functions: Map<string, number>): void {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const parents = new Map(profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const partOf = (id: number): string => {
    const frame = nodes.get(id) as Frame;
    const caller = parents.get(id);
    const isNative = frame.url === "" && !frame.functionName.startsWith("(garbage");
    return isNative && caller !== undefined ? partOf(caller) : partName(frame);
  };
  for (const [index, id] of profile.samples.entries()) {
    const frame = nodes.get(id) as Frame;
    if (IDLE.has(frame.functionName)) continue;
    const us = profile.timeDeltas[index] ?? 0;
    const part = partOf(id);
    parts.set(part, (parts.get(part) ?? 0) + us);
    const name = `${frame.functionName || "(anonymous)"}, ${part}`;
    functions.set(name, (functions.get(name) ?? 0) + us);
  }
}

/** `outbound/path`, `pg`, `node:net`. */
function partName({ url, functionName }: Frame): string {
  const own = /\/src\/(.+)\/[^/]+$/.exec(url)?.[1];
  const module = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1];
  if (module !== undefined) return module;
  if (own !== undefined) return own;
  if (url.startsWith("node:")) return url.replace(/^node:(?:internal\/)?/, "node:").replace(/(node:[^/]+)\/.*/, "$1");
  return functionName === "(root)" ? "native code" : functionName;
}

/** As lines for people. */
export function linesOf({ busy_s, parts, functions }: Shares): string[] {
  const rows = (shares: Share[]) => shares.map(({ name, percent }) => `${percent.toFixed(1).padStart(6)} %  ${name}`);
  return [`${busy_s} s of all threads, by part:`, ...rows(parts), "by function:", ...rows(functions)];
}
