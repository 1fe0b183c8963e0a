// A message while it comes in: in memory up to 256 KiB (less when thousands come at once), then in a temporary file, so
// that neither many nor large messages cost memory. Whether there is room at all is pressure.ts. Nothing here is a promise to anybody; the file is gone with the process or the next start.
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createBudget } from "./budget.ts";
import type { World } from "./world.ts";

/** Large messages that are held in memory at once; others wait for their turn. */
const LARGE_BYTES_MAX = 96 * 1024 * 1024;
/** Pieces that wait for the disk before the client is held back. */
const UNWRITTEN_BYTES_MAX = 1024 * 1024;
/** Of all messages that are on their way in; above it even a small one goes over the disk. */
const MEMORY_BYTES_MAX = 64 * 1024 * 1024;

export type Incomer = {
  /** A promise when the client must wait for the disk. */
  write(piece: Buffer): void | Promise<void>;
  /** The whole message; `giveBack` its memory when it is stored. Waits while too many large ones are in memory. */
  whole(): Promise<{ bytes: Buffer; giveBack(): void }>;
  discard(): void;
};

export type Spool = { open(): Incomer };

export type SpoolWorld = Pick<World, "config" | "random">;

/** A spool below the data folder. What processes left there that are gone is removed. */
export function createSpool(world: SpoolWorld): Spool {
  const parent = join(world.config.data_dir, "spool");
  const dir = join(parent, String(process.pid));
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(parent)) {
    if (/^\d+$/.test(name) && !isAlive(Number(name))) rmSync(join(parent, name), { recursive: true, force: true });
  }
  const shared: Shared = { dir, budget: createBudget(LARGE_BYTES_MAX), held: 0 };
  return { open: () => createIncomer(world, shared) };
}

/** Signal 0 asks and does nothing. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** `held`: bytes in memory, of all messages. */
type Shared = { dir: string; budget: ReturnType<typeof createBudget>; held: number };

type State = {
  shared: Shared;
  pieces: Buffer[];
  /** Bytes in `pieces`. */
  held: number;
  size: number;
  path: string | null;
  file: Promise<FileHandle> | null;
  writing: Promise<void>;
};

function createIncomer(world: SpoolWorld, shared: Shared): Incomer {
  const state: State = {
    ...{ shared, pieces: [], held: 0, size: 0, path: null, file: null },
    writing: Promise.resolve(),
  };
  const inlineMax = world.config.body_inline_bytes_max;
  return {
    write(piece) {
      state.pieces.push(piece);
      state.size += piece.length;
      keep(state, piece.length);
      if (state.path === null && (state.size > inlineMax || shared.held > MEMORY_BYTES_MAX)) {
        openFile(state, join(shared.dir, world.random.uuid()));
      }
      if (state.path !== null && (state.held >= UNWRITTEN_BYTES_MAX || shared.held > MEMORY_BYTES_MAX)) {
        return flush(state);
      }
    },
    async whole() {
      const waits = state.path === null ? null : await shared.budget.take(state.size);
      const giveBack = () => {
        waits?.();
        keep(state, -state.held);
      };
      try {
        return {
          bytes: state.path === null ? Buffer.concat(state.pieces) : await readBack(state, state.path),
          giveBack,
        };
      } catch (error) {
        giveBack();
        discard(state);
        throw error;
      }
    },
    discard: () => discard(state),
  };
}

function keep(state: State, bytes: number): void {
  state.held += bytes;
  state.shared.held += bytes;
}

function openFile(state: State, path: string): void {
  state.path = path;
  // Whoever cleaned up may have taken the folder away.
  state.file = mkdir(dirname(path), { recursive: true, mode: 0o700 }).then(() => open(path, "wx", 0o600));
  // It is waited for by the first write; until then its failure must not end the process.
  state.file.catch(() => undefined);
}

async function readBack(state: State, path: string): Promise<Buffer> {
  await flush(state);
  await closeFile(state);
  const bytes = await readFile(path);
  await rm(path, { force: true });
  return bytes;
}

/** Appends what is held; rejects when the disk refuses it. */
function flush(state: State): Promise<void> {
  const pieces = state.pieces.splice(0);
  const bytes = state.held;
  state.held = 0;
  state.writing = state.writing.then(async () => {
    try {
      const file = await state.file;
      if (pieces.length > 0) await file?.writev(pieces);
    } finally {
      state.shared.held -= bytes;
    }
  });
  return state.writing;
}

async function closeFile(state: State): Promise<void> {
  const file = await state.file;
  state.file = null;
  await file?.close();
}

function discard(state: State): void {
  state.pieces = [];
  keep(state, -state.held);
  const { path } = state;
  if (path === null) return;
  state.writing
    .catch(() => undefined)
    .then(() => closeFile(state))
    .catch(() => undefined)
    .then(() => rm(path, { force: true }))
    .catch(() => undefined);
}
