// What test files took: the notes that their processes write while they run, what is still running, and the table of
// the slowest.
import { existsSync, readFileSync } from "node:fs";
import type { ProcessorMs } from "./processor.ts";

export type Note =
  | { kind: "begin"; file: string }
  | ({ kind: "end"; file: string; wall_ms: number } & ProcessorMs)
  | ({ kind: "process"; file: string } & ProcessorMs);

const PROGRESS_EVERY_MS = 20_000;
const NAMED_MAX = 4;

/** The notes so far; the last line may be half written. */
export function readNotes(path: string): Note[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Note);
}

/** Says now and then how many files have ended and which have been running for longest; ends with the answered function. */
export function startProgress(notes: string, total: number, say: (line: string) => void): () => void {
  const began = performance.now();
  const seen = new Map<string, number>();
  const look = (): void => {
    const now = performance.now();
    const all = readNotes(notes);
    const ended = new Set(all.filter(({ kind }) => kind === "end").map(({ file }) => file));
    for (const { file } of all) if (!seen.has(file)) seen.set(file, now);
    const running = [...seen]
      .filter(([file]) => !ended.has(file))
      .map(([file, at]) => `${file} (${seconds(now - at)})`);
    const more = running.length > NAMED_MAX ? `, and ${running.length - NAMED_MAX} more` : "";
    const names = running.slice(0, NAMED_MAX).join(", ") + more;
    say(`… ${seconds(now - began)}: ${ended.size} of ${total} files have ended; running: ${names || "none"}`);
  };
  const timer = setInterval(look, PROGRESS_EVERY_MS);
  return () => clearInterval(timer);
}

export type Totals = { wall_ms: number; database: ProcessorMs | null };

/** The slowest files by processor time, and where all of it went. */
export function tableOf(notes: readonly Note[], rows: number, { wall_ms, database }: Totals): string[] {
  const files = notes.filter((note) => note.kind === "end");
  const slowest = files.toSorted((a, b) => processor(b) - processor(a)).slice(0, rows);
  const lines = slowest.map(
    (note) => `${cell(note.own_ms)} ${cell(note.children_ms)} ${cell(note.wall_ms)}  ${note.file}`,
  );
  const processes = notes.filter((note) => note.kind === "process");
  const all = sum(processes);
  const tests = sum(files);
  const ofDatabase = database ? database.own_ms + database.children_ms : 0;
  return [
    `${"own".padStart(8)} ${"children".padStart(8)} ${"wall".padStart(8)}  seconds of processor time of each file, the slowest first`,
    ...lines,
    `${files.length} files in ${processes.length} processes took ${seconds(wall_ms)}; processor time: ` +
      `${seconds(tests.own_ms)} in tests, ${seconds(all.own_ms - tests.own_ms)} in starting processes, ` +
      `${seconds(all.children_ms)} in what they started, ${seconds(ofDatabase)} in the database`,
  ];
}

function processor({ own_ms, children_ms }: ProcessorMs): number {
  return own_ms + children_ms;
}

function sum(all: readonly ProcessorMs[]): ProcessorMs {
  return {
    own_ms: all.reduce((total, { own_ms }) => total + own_ms, 0),
    children_ms: all.reduce((total, { children_ms }) => total + children_ms, 0),
  };
}

function cell(ms: number): string {
  return (ms / 1000).toFixed(1).padStart(8);
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
