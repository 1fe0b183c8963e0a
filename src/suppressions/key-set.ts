// Which keys were seen and how strongly, for millions of them in 24 bytes each: a hash table of 64-bit fingerprints with a
// weight. Two different keys are taken for one with a chance of 1 in 10 million at 2 million keys (n²/2⁶⁵); the seed keeps
// it from being forced.

/** `rank` 0 to 3; `until_ms` is when it ends, null: never. */
export type Strength = { rank: number; until_ms: number | null };
export type KeySet = {
  /** Notes the key: `new`, `stronger` than all before in rank or in time, or `seen` with at least that strength. */
  add(key: string, strength: Strength): "new" | "stronger" | "seen";
  size(): number;
};

const SLOTS_FIRST = 1 << 12;
const HOUR_MS = 3_600_000;
/** Hours since 1970 in 30 bits reach the year 124,000. */
const NEVER = 2 ** 30 - 1;

/** `slots` holds three numbers for each: the fingerprint's two halves, and rank and hour. */
type Table = { slots: Uint32Array; mask: number; size: number };

/** An empty set; `seed` is any 32-bit number. */
export function createKeySet(seed: number): KeySet {
  let table = newTable(SLOTS_FIRST);
  return {
    add(key, strength) {
      const [high, low] = fingerprint(key, seed);
      const at = find(table, high, low);
      if (table.slots[at + 1] !== 0) return strengthen(table, at, strength) ? "stronger" : "seen";
      put(table, at, { high, low, weight: pack(strength.rank, hoursOf(strength)) });
      if (table.size * 2 > table.mask) table = grown(table);
      return "new";
    },
    size: () => table.size,
  };
}

function newTable(slotCount: number): Table {
  return { slots: new Uint32Array(slotCount * 3), mask: slotCount - 1, size: 0 };
}

function grown(table: Table): Table {
  const larger = newTable((table.mask + 1) * 2);
  for (let from = 0; from < table.slots.length; from += 3) {
    const [high, low, weight] = table.slots.subarray(from, from + 3) as unknown as [number, number, number];
    if (low !== 0) put(larger, find(larger, high, low), { high, low, weight });
  }
  return larger;
}

// Linear probing; a low half of 0 marks an empty slot, and no fingerprint has it.
function find(table: Table, high: number, low: number): number {
  let slot = (high ^ low) & table.mask;
  for (;;) {
    const at = slot * 3;
    const there = table.slots[at + 1] as number;
    if (there === 0 || (there === low && table.slots[at] === high)) return at;
    slot = (slot + 1) & table.mask;
  }
}

function put(table: Table, at: number, { high, low, weight }: { high: number; low: number; weight: number }): void {
  table.slots[at] = high;
  table.slots[at + 1] = low;
  table.slots[at + 2] = weight;
  table.size += 1;
}

/** True when the strength is more in either; what is kept is the most of both, the time down to the hour. */
function strengthen(table: Table, at: number, { rank, until_ms }: Strength): boolean {
  const weight = table.slots[at + 2] as number;
  const [rankBefore, hours] = [weight >>> 30, weight & NEVER];
  const isLonger = hours !== NEVER && (until_ms === null || until_ms > hours * HOUR_MS);
  if (rank <= rankBefore && !isLonger) return false;
  table.slots[at + 2] = pack(Math.max(rank, rankBefore), Math.max(hours, hoursOf({ until_ms })));
  return true;
}

function hoursOf({ until_ms }: Pick<Strength, "until_ms">): number {
  return until_ms === null ? NEVER : Math.min(Math.max(Math.floor(until_ms / HOUR_MS), 0), NEVER - 1);
}

function pack(rank: number, hours: number): number {
  return ((rank << 30) | hours) >>> 0;
}

// cyrb53 (public domain, by bryc) without its final packing: two multiply-xor lanes that mix into each other.
function fingerprint(key: string, seed: number): [number, number] {
  let first = 0xdeadbeef ^ seed;
  let second = 0x41c6ce57 ^ seed;
  for (let at = 0; at < key.length; at += 1) {
    const code = key.charCodeAt(at);
    first = Math.imul(first ^ code, 2654435761);
    second = Math.imul(second ^ code, 1597334677);
  }
  first = Math.imul(first ^ (first >>> 16), 2246822507) ^ Math.imul(second ^ (second >>> 13), 3266489909);
  second = Math.imul(second ^ (second >>> 16), 2246822507) ^ Math.imul(first ^ (first >>> 13), 3266489909);
  return [first >>> 0, second >>> 0 || 1];
}
