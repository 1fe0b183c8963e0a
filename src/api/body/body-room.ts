// Room for the bodies of requests under way: what has arrived of each is counted, in all and for each of those who send
// them, so that nobody takes the room of all others. Pure bookkeeping. Not here: how bodies are read (load.ts).

/** Somebody, and how many bytes they may have here at once. */
export type Share = { name: string; bytes_max: number };

export type BodyRoom = {
  /**
   * Counts bytes of `request` that arrived, as those of its shares; answers what they are too many for. They count in any
   * case, until `release`: they are here.
   */
  hold(request: object, bytes: number, shares: readonly Share[]): "room" | "share" | null;
  release(request: object): void;
  /** False if so many bytes more would be too many for one of the shares. */
  hasRoomFor(bytes: number, shares: readonly Share[]): boolean;
  /** The bytes that all requests hold. */
  total(): number;
};

type Held = { bytes: number; shares: readonly Share[] };

/** A room of `bytesMax`; `onChange` hears of each new total. */
export function createBodyRoom(bytesMax: number, onChange: (bytes: number) => void): BodyRoom {
  const held = new WeakMap<object, Held>();
  const byName = new Map<string, number>();
  let total = 0;

  function add(bytes: number, shares: readonly Share[]): void {
    total += bytes;
    for (const { name } of shares) {
      const left = (byName.get(name) ?? 0) + bytes;
      if (left > 0) byName.set(name, left);
      else byName.delete(name);
    }
    onChange(total);
  }

  return {
    total: () => total,
    hasRoomFor: (bytes, shares) => shares.every(({ name, bytes_max }) => (byName.get(name) ?? 0) + bytes <= bytes_max),
    hold(request, bytes, shares) {
      const known = held.get(request) ?? { bytes: 0, shares };
      held.set(request, known);
      known.bytes += bytes;
      add(bytes, known.shares);
      if (total > bytesMax) return "room";
      return known.shares.some(({ name, bytes_max }) => (byName.get(name) ?? 0) > bytes_max) ? "share" : null;
    },
    release(request) {
      const known = held.get(request);
      if (!known) return;
      held.delete(request);
      add(-known.bytes, known.shares);
    },
  };
}
