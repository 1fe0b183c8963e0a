// Who is next: round robin over groups, such as organizations, then over the items of each. Not here: how much a group may
// have at once (share.ts).

export type Rotation<T> = {
  /** At the end of its group; a new group comes last. */
  add(group: string, item: T): void;
  remove(group: string, item: T): void;
  /**
   * The first item of the first group that may have a turn; the group comes last then. Groups that may not keep their place. An
   * item that was taken is out until it is added again. Null when there is none.
   */
  next(may?: (group: string) => boolean): T | null;
  /** What `next` would give to anybody. */
  first(): T | null;
  /** Items of a group. */
  sizeOf(group: string): number;
  /** Items of all groups. */
  items(): number;
};

/** An empty rotation; every step costs the same however many items there are. */
export function createRotation<T>(): Rotation<T> {
  // Map and Set keep the order of insertion: to delete and add again is to go to the end.
  const groups = new Map<string, Set<T>>();
  let items = 0;

  function take(group: string, own: Set<T>): T {
    groups.delete(group);
    const [item] = own;
    own.delete(item as T);
    if (own.size > 0) groups.set(group, own);
    items -= 1;
    return item as T;
  }

  return {
    add(group, item) {
      const own = groups.get(group) ?? new Set();
      if (own.size === 0) groups.set(group, own);
      if (own.has(item)) return;
      own.add(item);
      items += 1;
    },
    remove(group, item) {
      const own = groups.get(group);
      if (!own?.delete(item)) return;
      items -= 1;
      if (own.size === 0) groups.delete(group);
    },
    next(may) {
      for (const [group, own] of groups) if (may === undefined || may(group)) return take(group, own);
      return null;
    },
    first() {
      for (const [item] of groups.values()) return item as T;
      return null;
    },
    sizeOf: (group) => groups.get(group)?.size ?? 0,
    items: () => items,
  };
}
