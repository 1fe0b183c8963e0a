// Mail with bytes above 127 for a server that takes none: written again in 7 bits. Small mail at once; a large one takes up to a
// second of processor time, which it takes from a thread of its own.
import { toSevenBit } from "../../mail/mime/write/to-seven-bit.ts";
import { createParsePool, type SevenBitOutcome } from "../../parsing/parse-pool.ts";

export type SevenBitWriter = {
  /** The same message in 7 bits, as far as it can be. */
  write(mime: Buffer): Promise<SevenBitOutcome>;
  stop(): Promise<void>;
};

/** How much is converted at once: some 3 ms, where 25 MB take a second. */
const AT_ONCE_BYTES = 64 * 1024;
const WRITER = { size: 1, processor_ms: 30_000, memory_mib: 256 };

export function createSevenBitWriter(): SevenBitWriter {
  const pool = createParsePool(WRITER);
  return {
    async write(mime) {
      if (mime.length <= AT_ONCE_BYTES) return { kind: "written", bytes: toSevenBit(mime) };
      return await pool.toSevenBit(mime);
    },
    stop: pool.stop,
  };
}
