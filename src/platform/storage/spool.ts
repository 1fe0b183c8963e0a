// A message while it comes in: in memory up to 256 KiB (less when thousands come at once), then in a temporary file, so
// that neither many nor large messages cost memory. Room on the disk is set aside before a message comes (spool-room.ts). Nothing
// here is a promise to anybody; the file is gone with the process or the next start.
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createBudget } from "../fair/budget.ts";
import type { Room } from "../process/pressure.ts";
import { isAlive } from "../process/process-alive.ts";
import type { World } from "../world.ts";
import { createSpoolRoom, type SpoolRoom } from "./spool-room.ts";

/** Large messages that are held in memory at once; others wait for their turn. */
const LARGE_BYTES_MAX = 96 * 1024 * 1024;
/** Pieces that wait for the disk before the client is held back. */
const UNWRITTEN_BYTES_MAX = 1024 * 1024;
/** How much memory all messages on their way in may hold; beyond it even a small one goes to disk. */
const MEMORY_BYTES_MAX = 64 * 1024 * 1024;
/**
 * A client may send byte by byte, and a Buffer costs some 300 bytes whatever it holds: so many small pieces in a row become
 * one.
 */
const SMALL_BYTES_MAX = 1_024;
const SMALL_PIECES_MAX = 64;
/** Room is set aside in steps of this where a message is larger than its client said, or nothing was said. */
const ROOM_STEP_BYTES = 256 * 1024;

export type Incomer = {
  /** A promise when the client must wait for the disk. What goes wrong is the answer of `whole`, and the rest goes nowhere. */
  write(piece: Buffer): void | Promise<void>;
  /**
   * The whole message; `giveBack` its memory when it is stored. Waits while too many large ones are in memory. Rejects
   * where the disk refused it, with ENOSPC also where there was no room left to set aside.
   */
  whole(): Promise<{ bytes: Buffer; giveBack(): void }>;
  discard(): void;
};

export type Spool = {
  /** For a message of `announced` bytes (SIZE=, null when nothing was said); null when there is no room for it. */
  open(announced: number | null): Incomer | null;
  /** From now on room is what the looks at the disk say; before, there is enough. */
  limitBy(look: () => Room): void;
};

export type SpoolWorld = Pick<World, "config" | "random">;

/** A spool below the data folder. What processes left there that are gone is removed. */
export function createSpool(world: SpoolWorld): Spool {
  const parent = join(world.config.data_dir, "spool");
  const dir = join(parent, String(process.pid));
  prepareFolder(world.config.data_dir, parent, dir);
  let look = (): Room => ({ bytes: Number.POSITIVE_INFINITY, looks: 0 });
  const room = createSpoolRoom(() => look());
  const shared: Shared = { dir, room, budget: createBudget(LARGE_BYTES_MAX), held: 0 };
  return {
    open(announced) {
      const granted = announced ?? ROOM_STEP_BYTES;
      return room.take(granted) ? createIncomer(world, shared, granted) : null;
    },
    limitBy(next) {
      look = next;
    },
  };
}

function prepareFolder(dataDir: string, parent: string, own: string): void {
  try {
    mkdirSync(own, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(parent)) {
      if (/^\d+$/.test(name) && !isAlive(Number(name))) rmSync(join(parent, name), { recursive: true, force: true });
    }
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EPERM") throw cause;
    throw new Error(
      `the data folder ${dataDir} holds files of another user (${message}): start Postern as the user whom it belongs to, or give those files to it (chown).`,
      { cause },
    );
  }
}

/** `held`: bytes in memory, of all messages. */
type Shared = { dir: string; room: SpoolRoom; budget: ReturnType<typeof createBudget>; held: number };

type State = {
  shared: Shared;
  pieces: Buffer[];
  /** How many small ones are last among them. */
  small: number;
  /** Bytes in `pieces`. */
  held: number;
  size: number;
  /** The size up to which room was set aside, and how much of that is not on the disk. */
  granted: number;
  due: number;
  path: string | null;
  file: Promise<FileHandle> | null;
  writing: Promise<void>;
  failure: unknown;
};

function createIncomer(world: SpoolWorld, shared: Shared, granted: number): Incomer {
  const state: State = {
    ...{ shared, pieces: [], small: 0, held: 0, size: 0, granted, due: granted, path: null, file: null },
    writing: Promise.resolve(),
    failure: null,
  };
  const inlineMax = world.config.body_inline_bytes_max;
  return {
    write(piece) {
      if (state.failure !== null) return;
      state.size += piece.length;
      if (!setAside(state)) return fail(state, noRoom());
      add(state, piece);
      keep(state, piece.length);
      if (state.path === null && (state.size > inlineMax || shared.held > MEMORY_BYTES_MAX)) {
        openFile(state, join(shared.dir, world.random.uuid()));
      }
      if (state.path !== null && (state.held >= UNWRITTEN_BYTES_MAX || shared.held > MEMORY_BYTES_MAX)) {
        return flush(state).catch((error) => fail(state, error));
      }
    },
    async whole() {
      if (state.failure !== null) throw state.failure;
      const waits = state.path === null ? null : await shared.budget.take(state.size);
      const giveBack = () => {
        waits?.();
        keep(state, -state.held);
        landed(state, state.due);
      };
      try {
        const bytes = state.path === null ? Buffer.concat(state.pieces) : await readBack(state, state.path);
        // It is about to be written where it stays.
        owe(state, bytes.length);
        return { bytes, giveBack };
      } catch (error) {
        giveBack();
        discard(state);
        throw error;
      }
    },
    discard: () => discard(state),
  };
}

function add(state: State, piece: Buffer): void {
  state.pieces.push(piece);
  state.small = piece.length < SMALL_BYTES_MAX ? state.small + 1 : 0;
  if (state.small < SMALL_PIECES_MAX) return;
  state.pieces.push(Buffer.concat(state.pieces.splice(-state.small)));
  state.small = 0;
}

/** Room for all that came; false when there is none. */
function setAside(state: State): boolean {
  const missing = state.size - state.granted;
  if (missing <= 0) return true;
  const bytes = Math.max(missing, ROOM_STEP_BYTES);
  if (!state.shared.room.take(bytes)) return false;
  state.granted += bytes;
  state.due += bytes;
  return true;
}

function owe(state: State, bytes: number): void {
  const { room } = state.shared;
  if (bytes > state.due) room.keep(bytes - state.due);
  else room.free(state.due - bytes);
  state.due = bytes;
}

function landed(state: State, bytes: number): void {
  state.due -= bytes;
  state.shared.room.wrote(bytes);
}

function noRoom(): Error {
  return Object.assign(new Error("there is no room for this message"), { code: "ENOSPC" });
}

function fail(state: State, error: unknown): void {
  state.failure ??= error ?? new Error("a message could not be kept");
  discard(state);
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
  state.small = 0;
  const bytes = state.held;
  state.held = 0;
  state.writing = state.writing.then(async () => {
    try {
      const file = await state.file;
      if (pieces.length > 0) await file?.writev(pieces);
      landed(state, Math.min(bytes, state.due));
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
  state.small = 0;
  keep(state, -state.held);
  owe(state, 0);
  const { path } = state;
  if (path === null) return;
  state.writing
    .catch(() => undefined)
    .then(() => closeFile(state))
    .catch(() => undefined)
    .then(() => rm(path, { force: true }))
    .catch(() => undefined);
}
