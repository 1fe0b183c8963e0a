// Lists: one page, and all items over all pages. Pages are asked for by cursor (`after`), which does not move when rows
// are added meanwhile; the caller's own `offset` is kept for the first page only.

import { ConnectionError } from "./errors.ts";

/** One page. Iterating it gives its items and then those of the pages behind it, each asked for when it is needed. */
export type Page<T> = AsyncIterable<T> & {
  items: T[];
  /** How many rows there are in all; at least so many where `total_is_at_least` is true. */
  total: number;
  total_is_at_least: boolean;
  has_more: boolean;
  /** The page behind it; null on the last. */
  next(): Promise<Page<T> | null>;
};

/** A call that gives a page: it may be awaited, or iterated as it is. */
export type PagePromise<T> = Promise<Page<T>> & AsyncIterable<T>;

type ListAnswer = {
  total?: number;
  limit?: number;
  offset?: number;
  total_is_at_least?: boolean;
  [name: string]: unknown;
};
type Ask = (query: object) => Promise<object>;

const LIMIT = 50;

/** `items` is the name of the list in the answer; `cursor`: it takes `after`. */
export type List = { items: string; cursor: boolean };

/** `query` is what the caller asked for. */
export function listPages<T>(ask: Ask, list: List, query: object = {}): PagePromise<T> {
  const first = pageOf<T>(ask, list, query);
  return Object.assign(first, {
    async *[Symbol.asyncIterator]() {
      yield* await first;
    },
  });
}

async function pageOf<T>(ask: Ask, list: List, query: object): Promise<Page<T>> {
  const answer = (await ask(query)) as ListAnswer;
  const items = itemsIn<T>(answer, list);
  const total = answer.total ?? items.length;
  const behind = nextQuery(answer, items, { query, isCursor: list.cursor });
  const next = async (): Promise<Page<T> | null> => (behind === null ? null : pageOf<T>(ask, list, behind));
  return {
    items,
    total,
    total_is_at_least: answer.total_is_at_least === true,
    has_more: behind !== null,
    next,
    async *[Symbol.asyncIterator]() {
      for (let page: Page<T> | null = { items, next } as Page<T>; page; page = await page.next()) yield* page.items;
    },
  };
}

/** An answer without its rows did not come from Postern: it says nothing of how many there are. */
function itemsIn<T>(answer: ListAnswer, list: List): T[] {
  const items = answer[list.items];
  if (!Array.isArray(items)) throw new ConnectionError(`the answer has no '${list.items}'`);
  return items as T[];
}

/** Null where this was the last page: it is shorter than its limit, or ends at the total. */
function nextQuery(answer: ListAnswer, items: unknown[], asked: { query: object; isCursor: boolean }): object | null {
  const { query, isCursor } = asked;
  const { offset: _offset, after: _after, ...kept } = query as { offset?: number; after?: string };
  const limit = answer.limit ?? LIMIT;
  const last = items.at(-1) as { id?: unknown } | undefined;
  if (!last || items.length < limit) return null;
  const end = (answer.offset ?? 0) + items.length;
  // With a cursor the answer's total counts rows before it, too.
  if (!("after" in query) && !answer.total_is_at_least && end >= (answer.total ?? 0)) return null;
  return isCursor && typeof last.id === "string" ? { ...kept, after: last.id } : { ...kept, offset: end };
}
