// Finds the cell that a key, a domain or a host belongs to, by asking each of them (owns.ts). What was found is kept for a while, as
// what moves from one cell to another is held still for longer. That nobody has it is kept of hosts, which are settings, and of keys for seconds: a new
// key is random, so nobody asked about it before, and it works at once. A new domain is asked about before it is added.
import { LRUCache } from "lru-cache";
import { askOperatorUrl } from "../platform/net/operator-fetch.ts";
import type { DoorCell } from "./cell-list.ts";
import type { Ownership, Question } from "./owns.ts";

/** `none`: every cell said no. `unknown`: one that could not be asked might have it. */
export type Found = { kind: "cell"; cell: DoorCell; moving?: true } | { kind: "none" } | { kind: "unknown" };

/** `fresh`: every cell is asked, whatever was found before. */
export type FindCell = (question: Question, how?: { fresh?: boolean }) => Promise<Found>;

const KEPT_MAX = 100_000;
/** What a door found it believes for so long. */
export const KEPT_MS = 60_000;
/** Enough that a client which goes on with a wrong key does not reach every cell with each request. */
const UNKNOWN_KEY_MS = 5_000;
/** A cell that is slower is asked again with the next question. */
const ANSWER_MS = 3_000;

type Keeping = { kept_ms?: number; unknown_key_ms?: number; kept_max?: number };

/** `cells` in the order in which they are believed: a domain that two of them hold is the first one's. */
export function cellFinder(cells: readonly DoorCell[], options: Keeping = {}): FindCell {
  const { kept_ms = KEPT_MS, unknown_key_ms = UNKNOWN_KEY_MS, kept_max = KEPT_MAX } = options;
  const kept = new LRUCache<string, Found>({ max: kept_max, ttl: kept_ms });
  /** Apart, as strangers choose what is in it: they push out nothing of those that have a cell. */
  const nobodys = new LRUCache<string, Found>({ max: kept_max, ttl: kept_ms });
  const under_way = new Map<string, Promise<Found>>();
  return async (question, { fresh = false } = {}) => {
    const key = `${question.kind}=${question.value}`;
    const known = fresh ? undefined : (kept.get(key) ?? nobodys.get(key));
    if (known) return known;
    const asking = under_way.get(key) ?? askAll(cells, question).finally(() => under_way.delete(key));
    under_way.set(key, asking);
    const found = await asking;
    if (found.kind === "cell") {
      if (!found.moving) kept.set(key, found);
    } else if (found.kind === "none" && question.kind === "host") nobodys.set(key, found);
    else if (found.kind === "none" && question.kind === "key_digest") nobodys.set(key, found, { ttl: unknown_key_ms });
    return found;
  };
}

async function askAll(cells: readonly DoorCell[], question: Question): Promise<Found> {
  const answers = await Promise.all(cells.map((cell) => ask(cell, question)));
  const cellThatSays = (answer: Answer) => cells.find((_, index) => answers[index] === answer);
  // One before it that could not be asked may be the right one, but waiting for it would stop the mail of a cell that is well.
  const owner = cellThatSays("yes");
  if (owner) return { kind: "cell", cell: owner };
  // It answers for what it had until another cell has it.
  const former = cellThatSays("moving");
  if (former) return { kind: "cell", cell: former, moving: true };
  return { kind: answers.includes(null) ? "unknown" : "none" };
}

/** Null where it cannot be asked. */
type Answer = Ownership | null;

async function ask({ internal }: DoorCell, { kind, value }: Question): Promise<Answer> {
  const url = `http://${internal}/owns?${new URLSearchParams({ [kind]: value })}`;
  const answer = (await askOperatorUrl(url, ANSWER_MS)) as {
    owns?: unknown;
    moving?: unknown;
  } | null;
  if (typeof answer?.owns !== "boolean") return null;
  if (!answer.owns) return "no";
  return answer.moving === true ? "moving" : "yes";
}
