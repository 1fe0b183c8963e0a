// What a finished reply differs in from what its author wrote: where, of what kind, how often. Never what stood there.
import type { Replaced } from "./scrub/replace-addresses.ts";

const PLACES = ["header", "text", "file", "file_name", "part"] as const;
/**
 * `address` and `name` are the owner's. `reply_address`: a correspondent's own address stands for it. `link`: one that the
 * server of the mailbox rewrote is as it was. `left_out`: `detail` is the field or the type of the part.
 */
const KINDS = ["address", "name", "reply_address", "link", "left_out", "written_anew"] as const;

export type Change = {
  /** As the leak gate says it: `part 2 of the message`. */
  where: string;
  place: (typeof PLACES)[number];
  kind: (typeof KINDS)[number];
  detail: string | null;
  count: number;
};

/** The type under which keys and signatures of OpenPGP in a text are reported. */
export const ARMOR = "application/pgp";

/** Changes as they are made, those of one place and kind together. */
export type Ledger = {
  note(change: Change): void;
  /** What a replacer wrote, before `mark` is taken out: that stands before each address that was hidden. */
  replaced(at: Pick<Change, "where" | "place">, replaced: Replaced, mark: string): void;
  all(): Change[];
};

/** A ledger without an entry. */
export function createLedger(): Ledger {
  const found = new Map<string, Change>();
  const note = (change: Change) => {
    if (change.count <= 0) return;
    const { where, place, kind, detail, count } = change;
    const key = JSON.stringify([where, place, kind, detail]);
    found.set(key, { ...change, count: (found.get(key)?.count ?? 0) + count });
  };
  return {
    note,
    replaced({ where, place }, { text, count, runs = 0, cut = 0 }, mark) {
      const hidden = text.split(mark).length - 1 + runs;
      note({ where, place, kind: "address", detail: null, count: hidden });
      note({ where, place, kind: "left_out", detail: ARMOR, count: cut });
      note({ where, place, kind: "reply_address", detail: null, count: count - hidden - cut });
    },
    all: () => [...found.values()],
  };
}

/**
 * True if something of the owner was hidden, or left out that they attached. Fields of the head do not count: they go
 * in every reply.
 */
export function isHiding({ kind, place }: Change): boolean {
  return kind === "address" || kind === "name" || (kind === "left_out" && place !== "header");
}
