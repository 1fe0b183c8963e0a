// Array parameters in PostgreSQL's binary form (array_recv), for statements that carry hundreds of rows: as text, the
// driver would quote and the server parse every value character by character. Not here: reading, and other types.

/** Types by the names that stand in casts, with their OIDs (pg_type.dat). */
const OIDS = {
  bool: 16,
  bytea: 17,
  bigint: 20,
  smallint: 21,
  int: 23,
  text: 25,
  real: 700,
  timestamptz: 1184,
  uuid: 2950,
} as const;
export type ElementType = keyof typeof OIDS;

/**
 * Small enough for Node's pool of small buffers: V8 collects all garbage whenever some megabytes of other buffers have
 * come together.
 */
const FIRST_BYTES = 4_000;
const HEADER_BYTES = 20;
const EPOCH_2000_MS = 946_684_800_000;
const TWO_32 = 2 ** 32;

export type ArrayWriter = {
  /** One array of `type`; null and undefined become null. The Buffer shares memory with the writer's others. */
  array(type: ElementType, values: readonly unknown[]): Buffer;
};

/** A writer for the arrays of one statement: they lie in one buffer. `bytes`: how long they will be, more or less. */
export function arrayWriter(bytes = FIRST_BYTES): ArrayWriter {
  const state: State = { bytes: Buffer.allocUnsafe(Math.max(FIRST_BYTES, bytes)), end: 0 };
  return { array: (type, values) => writeArray(state, type, values) };
}

type State = { bytes: Buffer; end: number };

function writeArray(state: State, type: ElementType, values: readonly unknown[]): Buffer {
  const write = WRITERS[type];
  reserve(state, HEADER_BYTES);
  const start = state.end;
  let hasNull = 0;
  let previous: unknown;
  let previousStart = -1;
  state.end += HEADER_BYTES;
  for (const value of values) {
    if (value === null || value === undefined) {
      hasNull = 1;
      reserve(state, 4);
      state.end = state.bytes.writeInt32BE(-1, state.end);
    } else if (previousStart !== -1 && value === previous) {
      // Rows of one call have much in common.
      previousStart = repeat(state, previousStart);
    } else {
      previous = value;
      previousStart = state.end;
      write(state, value as never);
    }
  }
  const { bytes } = state;
  bytes.writeInt32BE(values.length === 0 ? 0 : 1, start); // dimensions
  bytes.writeInt32BE(hasNull, start + 4);
  bytes.writeInt32BE(OIDS[type], start + 8);
  bytes.writeInt32BE(values.length, start + 12);
  bytes.writeInt32BE(1, start + 16); // the index of the first
  if (values.length === 0) state.end = start + 12;
  return bytes.subarray(start, state.end);
}

/** Makes room for `count` more bytes. Arrays written before keep the old buffer. */
function reserve(state: State, count: number): void {
  if (state.end + count <= state.bytes.length) return;
  const larger = Buffer.allocUnsafeSlow(Math.max(state.bytes.length * 2, state.end + count));
  state.bytes.copy(larger, 0, 0, state.end);
  state.bytes = larger;
}

function repeat(state: State, from: number): number {
  const length = 4 + state.bytes.readInt32BE(from);
  reserve(state, length);
  const at = state.end;
  state.bytes.copyWithin(at, from, from + length);
  state.end += length;
  return at;
}

const WRITERS: { [T in ElementType]: (state: State, value: never) => void } = {
  bool: (state, value: boolean) => {
    reserve(state, 5);
    state.end = state.bytes.writeInt32BE(1, state.end);
    state.bytes[state.end++] = value ? 1 : 0;
  },
  bytea: (state, value: Buffer) => {
    reserve(state, 4 + value.length);
    state.end = state.bytes.writeInt32BE(value.length, state.end);
    state.end += value.copy(state.bytes, state.end);
  },
  bigint: (state, value: number) => writeBigint(state, value),
  smallint: (state, value: number) => {
    reserve(state, 6);
    state.end = state.bytes.writeInt32BE(2, state.end);
    state.end = state.bytes.writeInt16BE(value, state.end);
  },
  int: (state, value: number) => {
    reserve(state, 8);
    state.end = state.bytes.writeInt32BE(4, state.end);
    state.end = state.bytes.writeInt32BE(value, state.end);
  },
  real: (state, value: number) => {
    reserve(state, 8);
    state.end = state.bytes.writeInt32BE(4, state.end);
    state.end = state.bytes.writeFloatBE(value, state.end);
  },
  text: (state, value: string) => {
    // A UTF-16 unit takes at most three octets.
    reserve(state, 4 + value.length * 3);
    const length = state.bytes.write(value, state.end + 4);
    state.bytes.writeInt32BE(length, state.end);
    state.end += 4 + length;
  },
  timestamptz: (state, value: Date) => writeBigint(state, (value.getTime() - EPOCH_2000_MS) * 1000),
  uuid: (state, value: string) => {
    reserve(state, 20);
    state.end = state.bytes.writeInt32BE(16, state.end);
    const hex = value.replaceAll("-", "");
    if (hex.length !== 32 || state.bytes.write(hex, state.end, 16, "hex") !== 16) throw new TypeError("not a UUID");
    state.end += 16;
  },
};

/** Whole numbers up to 2^53 either way. */
function writeBigint(state: State, value: number): void {
  if (!Number.isSafeInteger(value)) throw new RangeError("not a whole number within 2^53");
  reserve(state, 12);
  const high = Math.floor(value / TWO_32);
  state.end = state.bytes.writeInt32BE(8, state.end);
  state.end = state.bytes.writeInt32BE(high, state.end);
  state.end = state.bytes.writeUInt32BE(value - high * TWO_32, state.end);
}
