// Finds the cell that a key, a domain or a host belongs to, by asking each of them (owns.ts). What was found is kept for a while, as
// what moves from one cell to another is held still for longer; that nobody has it is kept of hosts alone, which are settings, so a new key works at once.
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
/** A cell that is slower is asked again with the next question. */
const ANSWER_MS = 3_000;

/** `cells` in the order in which they are believed: a domain that two of them hold is the first one's. */
export function cellFinder(cells: readonly DoorCell[], { kept_ms = KEPT_MS }: { kept_ms?: number } = {}): FindCell {
  const kept = new LRUCache<string, Found>({ max: KEPT_MAX, ttl: kept_ms });
  const under_way = new Map<string, Promise<Found>>();
  return async (question, { fresh = false } = {}) => {
    const key = `${question.kind}=${question.value}`;
    const known = fresh ? undefined : kept.get(key);
    if (known) return known;
    const asking = under_way.get(key) ?? askAll(cells, question).finally(() => under_way.delete(key));
    under_way.set(key, asking);
    const found = await asking;
    if ((found.kind === "cell" && !found.moving) || (found.kind === "none" && question.kind === "host"))
      kept.set(key, found);
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
