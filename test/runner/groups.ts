// Which test files share a process. Each start of one costs half a second of processor time (Node, and the program that
// a test imports), more than most files take for their tests; so those whose tests leave nothing behind are played one
// after the other in one process. A file that changes its process, or that starts Postern as its users do, has its own.
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const ROOT = join(import.meta.dirname, "../..");
const SHARING_MAX = 40;
/** Stories wait more than they work: a group of many would end last. */
const STORIES_SHARING_MAX = 5;
const STORIES = "test/scenarios";

/** What a process has once: settings, signals, streams, memory, mocks of modules, threads. */
const OF_THE_PROCESS =
  /\bprocess\.(?!execPath|versions|platform|pid|getuid|hrtime|uptime)[a-z]|\bmock\b|\bglobalThis\b|\bgc\(|node:(?:v8|vm|worker_threads)|dns\.setServers/;
const APART =
  /^test\/(?:simulation\/simulation|fuzz\/fuzz|corpora\/corpora)\b|support\/(?:scene|postern-process|resident)\.ts/m;
const LONG_AS_A_RULE = /^test\/(?:faults|scenarios|simulation|corpora)\//;

/** Groups of files, in the order in which they should begin: what takes long first, so that nothing long ends alone. */
export function groupFiles(files: readonly string[]): string[][] {
  const alone: string[][] = [];
  const shared = new Map<string, string[]>();
  for (const file of files) {
    if (needsOwnProcess(file)) alone.push([file]);
    else shared.set(roomOf(file), [...(shared.get(roomOf(file)) ?? []), file]);
  }
  return [...alone, ...merge([...shared.values()])].sort((a, b) => weight(b) - weight(a));
}

function needsOwnProcess(file: string): boolean {
  return APART.test(file) || [OF_THE_PROCESS, APART].some((sign) => sign.test(readFileSync(join(ROOT, file), "utf8")));
}

/** Neighbours share what they import. */
function roomOf(file: string): string {
  return dirname(file);
}

function merge(rooms: string[][]): string[][] {
  const groups: string[][] = [];
  for (const room of rooms) {
    const most = dirname(room[0] ?? "") === STORIES ? STORIES_SHARING_MAX : SHARING_MAX;
    for (let from = 0; from < room.length; from += most) {
      const part = room.slice(from, from + most);
      const last = groups.at(-1);
      if (last && last.length + part.length <= most) last.push(...part);
      else groups.push(part);
    }
  }
  return groups;
}

/** What takes long as a rule: faults and stories, then the rest, each by its number of lines. */
function weight(group: string[]): number {
  const lines = group.map((file) => readFileSync(join(ROOT, file), "utf8").split("\n").length);
  const sum = lines.reduce((total, count) => total + count, 0);
  return sum + (LONG_AS_A_RULE.test(group[0] ?? "") ? 10_000 : 0);
}

/** Writes the file that plays a group, in `folder`; answers its path, which says what is in it. */
export function writeGroup(group: string[], folder: string, notes: string): string {
  const more = group.length > 1 ? `-and-${group.length - 1}-more` : "";
  const path = join(folder, `${(group[0] ?? "").replaceAll("/", "-").replace(".test.ts", "")}${more}.test.ts`);
  const play = pathToFileURL(join(import.meta.dirname, "play.ts")).href;
  const given = [group, notes].map((value) => JSON.stringify(value)).join(", ");
  writeFileSync(path, `import { playFiles } from ${JSON.stringify(play)};\nplayFiles(${given});\n`);
  return path;
}
