// Which keys were seen, for millions of them in 16 bytes each: a hash table of 64-bit fingerprints. Two different keys
// are taken for one with a chance of 1 in 10 million at 2 million keys (n²/2⁶⁵); the seed keeps it from being forced.

export type KeySet = {
  /** Notes the key; true when it is new. */
  add(key: string): boolean;
  size(): number;
};

const SLOTS_FIRST = 1 << 12;

type Table = { slots: Uint32Array; mask: number; size: number };

/** An empty set; `seed` is any 32-bit number. */
export function createKeySet(seed: number): KeySet {
  let table = newTable(SLOTS_FIRST);
  return {
    add(key) {
      const [high, low] = fingerprint(key, seed);
      if (!insert(table, high, low)) return false;
      if (table.size * 2 > table.mask) table = grown(table);
      return true;
    },
    size: () => table.size,
  };
}

function newTable(slotCount: number): Table {
  return { slots: new Uint32Array(slotCount * 2), mask: slotCount - 1, size: 0 };
}

function grown(table: Table): Table {
  const larger = newTable((table.mask + 1) * 2);
  for (let at = 0; at < table.slots.length; at += 2) {
    const low = table.slots[at + 1] as number;
    if (low !== 0) insert(larger, table.slots[at] as number, low);
  }
  return larger;
}

// Linear probing; a low half of 0 marks an empty slot, and no fingerprint has it.
function insert(table: Table, high: number, low: number): boolean {
  let slot = (high ^ low) & table.mask;
  for (;;) {
    const there = table.slots[slot * 2 + 1] as number;
    if (there === 0) break;
    if (there === low && table.slots[slot * 2] === high) return false;
    slot = (slot + 1) & table.mask;
  }
  table.slots[slot * 2] = high;
  table.slots[slot * 2 + 1] = low;
  table.size += 1;
  return true;
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
