// A stranger's upload that memory should not hold: a file that has no name any more once it is open, so that no crash
// leaves one behind. Written once, then read in pieces.
import { mkdir, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { World } from "../world.ts";

export type TempFile = {
  write(bytes: Buffer): Promise<void>;
  size(): number;
  /**
   * All that was written, at most `pieceBytes` at a time. A piece is overwritten when the next is asked for: a Buffer each
   * let the heap of an import of a million rows grow by 100 MB.
   */
  read(pieceBytes: number): AsyncGenerator<Buffer>;
  /** Gives the room back. Calling it twice is fine. */
  discard(): Promise<void>;
};

/** A new, empty one in the data folder. A full disk surfaces as ENOSPC at a write. */
export async function openTempFile(world: Pick<World, "config" | "random">): Promise<TempFile> {
  const folder = join(world.config.data_dir, "uploads");
  await mkdir(folder, { recursive: true });
  const path = join(folder, world.random.uuid());
  const file = await open(path, "wx+", 0o600);
  let size = 0;
  let isOpen = true;
  await unlink(path);
  return {
    size: () => size,
    async write(bytes) {
      for (let at = 0; at < bytes.length; ) {
        const { bytesWritten } = await file.write(bytes, at, bytes.length - at, size);
        at += bytesWritten;
        size += bytesWritten;
      }
    },
    async *read(pieceBytes) {
      const piece = Buffer.allocUnsafe(pieceBytes);
      for (let at = 0; at < size; ) {
        const { bytesRead } = await file.read(piece, 0, Math.min(pieceBytes, size - at), at);
        if (bytesRead === 0) throw new Error("a temporary file is shorter than what was written to it");
        at += bytesRead;
        yield piece.subarray(0, bytesRead);
      }
    },
    async discard() {
      if (!isOpen) return;
      isOpen = false;
      await file.close();
    },
  };
}
