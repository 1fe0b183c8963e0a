// How far this machine has seen a database come: the guard's count of beats, in a file of the data folder, which outlives the
// database being set back. Each mark is a file of a new name, so that an older folder copied over this one leaves it there.
// It also says when the file itself was born: cp, tar, rsync and restore programs make files of their own, so that a mark
// they brought is known as a copy; chown, chmod, mv and mounting again keep the birth. Where a file system tells no births
// (NFS 3), every mark counts as written here.
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "../../platform/clock.ts";

/** `beats` is 0 where there is no mark. `isOwn`: one of them was written here, not brought by a copy. */
export type Marks = { beats: number; isOwn: boolean };

/** Longer than the clock of any file system stands still. */
const TICK_MS = 20;
const READ_TRIES = 5;
const UNKNOWN_BIRTH = "-";

/** The marks of the database with this id in `folder`. */
export async function readMarks(folder: string, id: string): Promise<Marks> {
  for (let times = 1; ; times += 1) {
    const names = (await readdir(folder).catch(absentAs([]))).filter((name) => isMark(name, id));
    const found = await Promise.all(names.map((name) => readMark(join(folder, name))));
    // One that is gone was followed by another.
    if (found.includes(null) && times < READ_TRIES) continue;
    const marks = found.filter((mark) => mark !== null);
    return { beats: Math.max(0, ...marks.map(({ beats }) => beats)), isOwn: marks.some(({ isOwn }) => isOwn) };
  }
}

/** Writes the mark and removes those before it. Durable once it is there: after a power cut a folder without is a copy. */
export async function keepMark(folder: string, { id, beats }: { id: string; beats: number }): Promise<void> {
  await mkdir(folder, { recursive: true });
  const aside = join(folder, `.sending-${id}.${process.pid}`);
  await rm(aside, { force: true });
  const file = await open(aside, "wx", 0o600);
  try {
    await file.writeFile(`${beats} ${await birthOf(file)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(aside, join(folder, `sending-${id}-${beats}.mark`));
  await syncFolder(folder);
  const before = (await readdir(folder)).filter((name) => isMark(name, id) && beatsOf(name) < beats);
  await Promise.all(before.map((name) => rm(join(folder, name), { force: true })));
}

/** The time at which a file was made, read right after that. Unknown where it moves with the file's other times. */
async function birthOf(file: Awaited<ReturnType<typeof open>>): Promise<string> {
  const before = (await file.stat({ bigint: true })).birthtimeMs;
  await sleep(TICK_MS);
  await file.chmod(0o600);
  const after = (await file.stat({ bigint: true })).birthtimeMs;
  return before === after && before > 0n ? String(before) : UNKNOWN_BIRTH;
}

async function readMark(path: string): Promise<Marks | null> {
  const text = await readFile(path, "utf8").catch(absentAs(null));
  if (text === null) return null;
  const [beats, birth] = /^(\d+)(?: (\d+|-))?\n$/.exec(text)?.slice(1) ?? [];
  if (beats === undefined) return { beats: beatsOf(path), isOwn: false };
  // A version before this one noted no birth.
  const isOwn = birth === undefined || birth === UNKNOWN_BIRTH || (await wasBorn(path, BigInt(birth)));
  return { beats: Number(beats), isOwn };
}

/** Some file systems keep whole seconds on disk, and more than that until they are mounted again. */
async function wasBorn(path: string, noted: bigint): Promise<boolean> {
  const found = await stat(path, { bigint: true }).catch(absentAs(null));
  const birth = found?.birthtimeMs ?? 0n;
  return birth === noted || (birth % 1000n === 0n && birth / 1000n === noted / 1000n);
}

function isMark(name: string, id: string): boolean {
  return name === `sending-${id}.mark` || (name.startsWith(`sending-${id}-`) && name.endsWith(".mark"));
}

/** From its name; 0 of a version before this one, which wrote one file over and over. */
function beatsOf(path: string): number {
  return Number(/-[0-9a-f]{12}-(\d+)\.mark$/.exec(path)?.[1] ?? 0);
}

async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return; // folders cannot be opened there
  const handle = await open(path, "r");
  await handle.sync().finally(() => handle.close());
}

function absentAs<T>(absent: T): (error: { code?: string }) => T {
  return (error) => {
    if (error.code === "ENOENT") return absent;
    throw error;
  };
}
