// Randomness and ids. UUIDv7 (RFC 9562 §5.7) orders by time, so primary keys stay clustered and partitions can be bounded
// by id. Not here: keyed digests and encryption, which are in seal.ts.
import { createHash, randomFillSync } from "node:crypto";
import type { Clock } from "./clock.ts";

export type Random = {
  /** A UUIDv7 of the clock's time, greater than every earlier one of this process. */
  uuid(): string;
  /** `n` random bytes, n ≤ 65,536. */
  bytes(n: number): Buffer;
  /** `n` characters of 0-9A-Za-z, 5.95 bits each, n ≤ 4,096. */
  token(n: number): string;
  /** Uniform in [0, 1), 53 bits. */
  float(): number;
};

const BYTES_MAX = 65_536;
const TOKEN_LENGTH_MAX = 4_096;
/** At a time; more would not come from the pool. */
const TOKEN_BYTES_MAX = 64;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** A clock that steps back by less than this is waited out (RFC 9562 §6.2); a larger step is someone setting the clock. */
const STEP_BACK_MS_MAX = 10_000;
/** The system's generator is asked for this much at a time: ids and tokens take 8 bytes each. */
const POOL_BYTES = 8_192;
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** Randomness of the operating system. */
export function createRandom(clock: Pick<Clock, "now">): Random {
  return randomFrom(pooled(randomFillSync), clock);
}

/** The same sequence for the same seed, for simulations and tests only: nothing secret may come from it. */
export function seededRandom(seed: number | string, clock: Pick<Clock, "now">): Random {
  return randomFrom(pooled(chain(seed)), clock);
}

/** The time inside a UUIDv7 in milliseconds, NaN for any other text. */
export function uuidTime(uuid: string): number {
  return UUID_V7.test(uuid) ? Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16) : Number.NaN;
}

/** The lowest UUIDv7 of that millisecond: the bound of a partition, or "everything since". */
export function uuidFloor(ms: number): string {
  return format(ms, 0, Buffer.from("8000000000000000", "hex"));
}

/** A UUIDv7 of `origin`'s time that is always the same for the same origin (itself a UUIDv7) and names. */
export function derivedUuid(origin: string, ...names: (string | number)[]): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([origin, ...names]))
    .digest();
  const tail = digest.subarray(0, 8);
  tail[0] = (tail[0]! & 0x3f) | 0x80;
  return format(uuidTime(origin), digest.readUInt16BE(8) & 0xfff, tail);
}

function randomFrom(take: (n: number) => Buffer, clock: Pick<Clock, "now">): Random {
  return {
    uuid: uuidMaker(take, clock),
    bytes: (n) => Buffer.from(take(limited(n, BYTES_MAX))),
    token: (n) => token(take, limited(n, TOKEN_LENGTH_MAX)),
    float: () => Number(take(8).readBigUInt64BE() >> 11n) / 2 ** 53,
  };
}

function limited(n: number, max: number): number {
  if (!Number.isInteger(n) || n < 0 || n > max) throw new RangeError(`a length of ${n} is not within 0…${max}`);
  return n;
}

// RFC 9562 §6.2 method 1: rand_a is a counter that starts at random in the lower half of its 12 bits each millisecond;
// when it runs over, the time is borrowed from the next millisecond. rand_b is fresh for each id.
function uuidMaker(take: (n: number) => Buffer, clock: Pick<Clock, "now">): () => string {
  let lastMs = 0;
  let counter = 0;
  return () => {
    const nowMs = Math.floor(clock.now());
    if (nowMs > lastMs || nowMs < lastMs - STEP_BACK_MS_MAX) {
      lastMs = nowMs;
      counter = take(2).readUInt16BE() & 0x7ff;
    } else if (counter < 0xfff) {
      counter += 1;
    } else {
      lastMs += 1;
      counter = take(2).readUInt16BE() & 0x7ff;
    }
    const tail = take(8);
    tail[0] = (tail[0]! & 0x3f) | 0x80;
    return format(lastMs, counter, tail);
  };
}

function format(ms: number, counter: number, tail: Buffer): string {
  const time = Math.max(0, Math.floor(ms)).toString(16).padStart(12, "0");
  const rest = tail.toString("hex");
  const third = (0x7000 | counter).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-${third}-${rest.slice(0, 4)}-${rest.slice(4)}`;
}

function token(take: (n: number) => Buffer, length: number): string {
  let text = "";
  while (text.length < length) {
    // Some more than are missing: one byte in 32 is thrown away.
    const bytes = take(Math.min(TOKEN_BYTES_MAX, length - text.length + 2));
    for (let at = 0; at < bytes.length && text.length < length; at += 1) {
      const byte = bytes[at]!;
      // 248 = 4 × 62: a byte above it would make some characters likelier.
      if (byte < 248) text += BASE62[byte % 62];
    }
  }
  return text;
}

function pooled(fill: (buffer: Buffer) => Buffer): (n: number) => Buffer {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;
  return (n) => {
    if (n > 64) return fill(Buffer.alloc(n));
    if (used + n > POOL_BYTES) {
      fill(pool);
      used = 0;
    }
    used += n;
    return pool.subarray(used - n, used);
  };
}

function chain(seed: number | string): (buffer: Buffer) => Buffer {
  let block = 0n;
  return (buffer) => {
    for (let at = 0; at < buffer.length; at += 32) {
      createHash("sha256").update(`${seed}:${block}`).digest().copy(buffer, at);
      block += 1n;
    }
    return buffer;
  };
}
