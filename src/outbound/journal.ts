// Which messages were about to be ended by their final dot: a file in the data folder that outlives a killed process, so
// that whoever buries its node knows what may have arrived without anybody having recorded the answer. One slot of 20
// bytes a message, used again once its outcome is committed. Written without fsync: it has to survive kill -9, not a
// power cut (another boot reads no journal and takes everything the node held as in doubt). 1.5 µs a message.
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { uuidText } from "../mail/token-bytes.ts";
import type { World } from "../platform/world.ts";

/** One attempt of one delivery. */
export type InFlight = { message_id: string; position: number; attempts: number };

export type Journal = {
  /** Before the dot leaves. Throws when the file cannot be written; then the message must not be ended. */
  note(one: InFlight): void;
  /** Their outcomes are committed: their slots may be used again. What was not noted is passed over. */
  settle(ended: readonly Pick<InFlight, "message_id" | "position">[]): void;
  /** In good order, with nothing in flight: the file goes. */
  close(): void;
};

/** The journals of this machine's nodes. */
export type Journals = {
  open(node: number): Journal;
  /** What a node of this machine noted; null when it left no journal. */
  read(node: number): InFlight[] | null;
  /** What a dead node noted was read and recorded for good. */
  remove(node: number): void;
};

const SLOT_BYTES = 20;
/** Made at once, so that a full disk does not stop mail; more are added when more are in flight. */
const SLOTS_AT_FIRST = 4_096;
const UNUSED = "00000000-0000-0000-0000-000000000000";

/** The folder of the journals of this machine's nodes. */
export function journalFolder({ config }: Pick<World, "config">): string {
  return join(config.data_dir, "outbound");
}

/** Journals as files of `folder`. */
export function folderJournals(folder: string): Journals {
  return {
    open: (node) => openJournal(folder, node),
    read: (node) => readJournal(folder, node),
    remove: (node) => removeJournal(folder, node),
  };
}

/** Starts an empty journal of a node. */
export function openJournal(folder: string, node: number): Journal {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = pathOf(folder, node);
  const fd = openSync(path, "w", 0o600);
  writeSync(fd, Buffer.alloc(SLOTS_AT_FIRST * SLOT_BYTES));
  const slots = new Map<string, number>();
  const free: number[] = [];
  const bytes = Buffer.alloc(SLOT_BYTES);
  let slotsUsed = 0;
  return {
    note(one) {
      const key = keyOf(one);
      const slot = slots.get(key) ?? free.pop() ?? slotsUsed++;
      slots.set(key, slot);
      bytes.write(one.message_id.replaceAll("-", ""), 0, "hex");
      bytes.writeUInt16BE(one.position, 16);
      bytes.writeUInt16BE(one.attempts, 18);
      writeSync(fd, bytes, 0, SLOT_BYTES, slot * SLOT_BYTES);
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
      rmSync(path, { force: true });
    },
  };
}

/** What a dead node's journal holds, committed attempts among it; null when there is no journal. */
export function readJournal(folder: string, node: number): InFlight[] | null {
  let bytes: Buffer;
  try {
    bytes = readFileSync(pathOf(folder, node));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const found: InFlight[] = [];
  for (let at = 0; at + SLOT_BYTES <= bytes.length; at += SLOT_BYTES) {
    const message_id = uuidAt(bytes, at);
    if (message_id === UNUSED) continue;
    found.push({ message_id, position: bytes.readUInt16BE(at + 16), attempts: bytes.readUInt16BE(at + 18) });
  }
  return found;
}

/** Forgets a journal that has been read. One that a process still has open (it stood still) is left to it, on Windows. */
function removeJournal(folder: string, node: number): void {
  try {
    rmSync(pathOf(folder, node), { force: true });
  } catch (error) {
    if (!/^(EBUSY|EPERM)$/.test((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

function pathOf(folder: string, node: number): string {
  return join(folder, `node-${node}.journal`);
}

function keyOf({ message_id, position }: Pick<InFlight, "message_id" | "position">): string {
  return `${message_id}/${position}`;
}

function uuidAt(bytes: Buffer, at: number): string {
  return uuidText(bytes.toString("hex", at, at + 16));
}
