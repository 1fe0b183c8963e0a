// Array parameters in PostgreSQL's binary form, read back (src/platform/database/binary-arrays.ts writes them), so that the model's
// statements get arrays whichever form a query function chose.

const HEADER_BYTES = 20;
const EMPTY_BYTES = 12;
const EPOCH_2000_MS = 946_684_800_000;

const READERS = new Map<number, (bytes: Buffer) => unknown>([
  [16, (bytes) => bytes[0] === 1],
  [17, (bytes) => bytes],
  [20, (bytes) => Number(bytes.readBigInt64BE())],
  [21, (bytes) => bytes.readInt16BE()],
  [23, (bytes) => bytes.readInt32BE()],
  [25, (bytes) => bytes.toString()],
  [700, (bytes) => bytes.readFloatBE()],
  [1184, (bytes) => new Date(Number(bytes.readBigInt64BE()) / 1000 + EPOCH_2000_MS)],
  [2950, (bytes) => bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")],
]);

/** The array that the bytes hold; anything else as it is. A parameter that is a single bytea never looks like one. */
export function readArray(value: unknown): unknown {
  if (!Buffer.isBuffer(value) || value.length < EMPTY_BYTES) return value;
  const [dimensions, flags, type] = [value.readInt32BE(0), value.readInt32BE(4), value.readInt32BE(8)];
  const read = READERS.get(type);
  if (!read || dimensions < 0 || dimensions > 1 || flags < 0 || flags > 1) return value;
  const found: unknown[] = [];
  const count = dimensions === 0 ? 0 : value.readInt32BE(12);
  for (let at = HEADER_BYTES; found.length < count; ) {
    const length = value.readInt32BE(at);
    at += 4;
    found.push(length === -1 ? null : read(value.subarray(at, at + Math.max(0, length))));
    at += Math.max(0, length);
  }
  return found;
}
