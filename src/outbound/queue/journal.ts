// Which messages were about to be ended by their final dot, and what the server then said: a file that outlives a killed
// process, so that the process that takes its node over knows what may have arrived, and what has, without anybody having recorded it. One
// slot a message, used again once its outcome is committed. Written without fsync: it has to survive kill -9, not a power cut
// (another boot reads no journal and takes everything the node held as in doubt). So it lies in shared memory where there is
// any: a data volume that fails and is mounted again in one boot would bring back what was on disk long before. It is trusted
// only if it is whole. 2 µs a message.
import { createHash } from "node:crypto";
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { uuidText } from "../../mail/token-bytes.ts";
import type { World } from "../../platform/world.ts";
import type { Outcome } from "../types.ts";

/** One attempt of one delivery. */
export type InFlight = { message_id: string; position: number; attempts: number };

/** `outcome`: what became of it, where that was known before the process ended. */
export type Noted = InFlight & { outcome: Outcome | null };

export type Journal = {
  /** Before the dot leaves. Throws when the file cannot be written; then the message must not be ended. */
  note(one: InFlight): void;
  /** What became of one that was noted; of others nothing is kept. Without it the message stays in doubt. */
  conclude(one: InFlight, outcome: Outcome): void;
  /** Their outcomes are committed: their slots may be used again. What was not noted is passed over. */
  settle(ended: readonly Pick<InFlight, "message_id" | "position">[]): void;
  /** Closes the journal when nothing is in flight, and deletes its file. */
  close(): void;
};

/** The journals of this machine's nodes. */
export type Journals = {
  open(node: number): Journal;
  /** What a node of this machine noted; null when it left no journal, or one that is not whole. */
  read(node: number): Noted[] | null;
  /** What a dead node noted was read and recorded for good. */
  remove(node: number): void;
};

/** None lies across two pages: a kill leaves each whole or as it was. */
const SLOT_BYTES = 1_024;
/** Where the parts of a slot begin: message, position, attempts, length of the outcome, checksum; then the outcome. */
const [LENGTH_AT, SUM_AT, OUTCOME_AT] = [20, 24, 28];
/** Made at once, so that a full disk does not stop mail; more are added when more are in flight. */
const SLOTS_AT_FIRST = 1_024;
/** The first slot. */
const HEADER = Buffer.from("Postern's journal of what is in flight, 2\n");
const UNUSED = "00000000-0000-0000-0000-000000000000";
const MESSAGE_MAX = 300;
const SHARED_MEMORY = "/dev/shm";

/** Where the journals of this machine's nodes may lie, the best place first. */
export function journalFolders({ config }: { config: Pick<World["config"], "data_dir"> }): string[] {
  const beside = join(config.data_dir, "outbound");
  const shared = sharedFolder(config.data_dir);
  return shared === null ? [beside] : [shared, beside];
}

/** A folder of this user's own for this data folder; null where there is no shared memory, or somebody else took the name. */
function sharedFolder(dataDir: string): string | null {
  const uid = process.getuid?.();
  if (process.platform !== "linux" || uid === undefined) return null;
  try {
    const name = createHash("sha256").update(realpathSync(dataDir)).digest("hex").slice(0, 16);
    const folder = join(SHARED_MEMORY, `postern-${uid}-${name}`);
    lstatSync(SHARED_MEMORY);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found = lstatSync(folder);
    return found.isDirectory() && found.uid === uid && (found.mode & 0o077) === 0 ? folder : null;
  } catch {
    return null;
  }
}

/** Journals as files of the first of these folders that takes them. */
export function folderJournals(folders: readonly string[]): Journals {
  return {
    open(node) {
      removeFrom(folders, node);
      for (const folder of folders.slice(0, -1)) {
        try {
          return openJournal(folder, node);
        } catch {
          removeFrom([folder], node); // no room there
        }
      }
      return openJournal(folders.at(-1) as string, node);
    },
    read(node) {
      for (const folder of folders) {
        const found = readJournal(folder, node);
        if (found !== undefined) return found;
      }
      return null;
    },
    remove: (node) => removeFrom(folders, node),
  };
}

/** Starts an empty journal of a node. */
export function openJournal(folder: string, node: number): Journal {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = pathOf(folder, node);
  const fd = openSync(path, "w", 0o600);
  const empty = Buffer.alloc((1 + SLOTS_AT_FIRST) * SLOT_BYTES);
  HEADER.copy(empty);
  writeWhole(fd, empty, 0);
  const slots = new Map<string, number>();
  const free: number[] = [];
  const bytes = Buffer.alloc(SLOT_BYTES);
  let slotsUsed = 0;
  return {
    note(one) {
      const key = keyOf(one);
      const slot = slots.get(key) ?? free.pop() ?? slotsUsed++;
      slots.set(key, slot);
      writeWhole(fd, slotOf(bytes, one, Buffer.alloc(0)), (1 + slot) * SLOT_BYTES);
    },
    conclude(one, outcome) {
      const slot = slots.get(keyOf(one));
      const reported = Buffer.from(JSON.stringify({ ...outcome, message: outcome.message.slice(0, MESSAGE_MAX) }));
      if (slot === undefined || reported.length > SLOT_BYTES - OUTCOME_AT) return;
      writeWhole(fd, slotOf(bytes, one, reported), (1 + slot) * SLOT_BYTES);
    },
    settle(ended) {
      for (const one of ended) {
        const key = keyOf(one);
        const slot = slots.get(key);
        if (slot === undefined) continue;
        slots.delete(key);
        // The bytes stay: a committed attempt is no longer in the queue under its number, so they match nothing.
        free.push(slot);
      }
    },
    close() {
      closeSync(fd);
      removeJournal(folder, node);
    },
  };
}

/** Laid out in `bytes`, of which the part that is to be written is answered. */
function slotOf(bytes: Buffer, one: InFlight, outcome: Buffer): Buffer {
  bytes.write(one.message_id.replaceAll("-", ""), 0, "hex");
  bytes.writeUInt16BE(one.position, 16);
  bytes.writeUInt16BE(one.attempts, 18);
  bytes.writeUInt32BE(outcome.length, LENGTH_AT);
  outcome.copy(bytes, OUTCOME_AT);
  bytes.writeUInt32BE(sumOf(bytes, outcome.length), SUM_AT);
  return bytes.subarray(0, OUTCOME_AT + outcome.length);
}

function sumOf(slot: Buffer, length: number): number {
  return crc32(slot.subarray(OUTCOME_AT, OUTCOME_AT + length), crc32(slot.subarray(0, SUM_AT)));
}

/** A full disk may take a part. */
function writeWhole(fd: number, bytes: Buffer, at: number): void {
  const written = writeSync(fd, bytes, 0, bytes.length, at);
  if (written < bytes.length) throw new Error("the journal was written in part only: no room is left");
}

/**
 * What a dead node's journal holds, committed attempts among it; undefined when there is none, null when it is not whole: what
 * it says of some is no proof that there were no others.
 */
export function readJournal(folder: string, node: number): Noted[] | null | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(pathOf(folder, node));
  } catch (error) {
    if (/^(ENOENT|ENOTDIR)$/.test((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
  if (bytes.length < (1 + SLOTS_AT_FIRST) * SLOT_BYTES || !bytes.subarray(0, HEADER.length).equals(HEADER)) return null;
  const found: Noted[] = [];
  for (let at = SLOT_BYTES; at < bytes.length; at += SLOT_BYTES) {
    const noted = readSlot(bytes.subarray(at, at + SLOT_BYTES));
    if (noted === null) return null;
    if (noted.message_id !== UNUSED) found.push(noted);
  }
  return found;
}

/** Null where it is damaged. The last one may be cut behind what was written of it. */
function readSlot(slot: Buffer): Noted | null {
  if (slot.length < OUTCOME_AT) return null;
  const length = slot.readUInt32BE(LENGTH_AT);
  const message_id = uuidText(slot.toString("hex", 0, 16));
  const isUsed = message_id !== UNUSED;
  if (OUTCOME_AT + length > slot.length || (isUsed && slot.readUInt32BE(SUM_AT) !== sumOf(slot, length))) return null;
  const outcome = length === 0 ? null : JSON.parse(slot.toString("utf8", OUTCOME_AT, OUTCOME_AT + length));
  return { message_id, position: slot.readUInt16BE(16), attempts: slot.readUInt16BE(18), outcome };
}

function removeFrom(folders: readonly string[], node: number): void {
  for (const folder of folders) removeJournal(folder, node);
}

/** Forgets a journal that has been read. One that a process still has open (it stood still) is left to it, on Windows. */
function removeJournal(folder: string, node: number): void {
  try {
    rmSync(pathOf(folder, node), { force: true });
    rmdirSync(folder);
  } catch (error) {
    if (!/^(EBUSY|EPERM|ENOENT|ENOTDIR|ENOTEMPTY|EEXIST)$/.test((error as NodeJS.ErrnoException).code ?? ""))
      throw error;
  }
}

function pathOf(folder: string, node: number): string {
  return join(folder, `node-${node}.journal`);
}

function keyOf({ message_id, position }: Pick<InFlight, "message_id" | "position">): string {
  return `${message_id}/${position}`;
}
