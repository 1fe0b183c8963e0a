// Counts the rows of a table as COPY writes them, and sums up a digest of each, so that two tables with the same rows in
// another order have the same checksum. It tells of damage and of lost or changed rows; against forgery a backup is encrypted.
import { hash } from "node:crypto";

const LINE_FEED = 0x0a;
const LANES = 4;

export type RowChecksum = { add(chunk: Buffer): void; end(): { rows: number; bytes: number; checksum: string } };

/** Takes the text that `copy … to stdout` writes, cut anywhere. A line feed ends a row, and nothing else holds one. */
export function createRowChecksum(): RowChecksum {
  const sums = new Uint32Array(LANES);
  let rows = 0;
  let bytes = 0;
  let begun: Buffer[] = [];

  function addRow(row: Buffer): void {
    const digest = hash("sha256", row, "buffer");
    for (let lane = 0; lane < LANES; lane += 1) sums[lane] = (sums[lane] as number) + digest.readUInt32LE(lane * 4);
    rows += 1;
  }

  return {
    add(chunk) {
      bytes += chunk.length;
      let from = 0;
      for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
        const piece = chunk.subarray(from, at);
        addRow(begun.length === 0 ? piece : Buffer.concat([...begun, piece]));
        begun = [];
        from = at + 1;
      }
      if (from < chunk.length) begun.push(chunk.subarray(from));
    },
    end() {
      if (begun.length > 0) addRow(Buffer.concat(begun));
      return { rows, bytes, checksum: [...sums].map((sum) => sum.toString(16).padStart(8, "0")).join("") };
    },
  };
}
