// Lists of rows by what they are filtered by: texts are searched for in packed texts where days are packed, anything else is read off the
// rows and their indexes.
import type { Tx } from "../database/db.ts";
import { FIRST_ID, LAST_ID } from "../database/page.ts";
import { EXACT_TOTAL_MAX, type Total, totalOf, upToMax } from "../database/totals.ts";
import { uuidFloor } from "../random.ts";
import { firstOpenDay } from "./packed-days.ts";
import { isPackable, type Text } from "./packed-lines.ts";
import {
  type Condition,
  countSearch,
  countUnpacked,
  findPackedDays,
  type PackedDay,
  type PagePlace,
  type Range,
  type Search,
  type Source,
  searchPage,
} from "./packed-queries.ts";

const DAY_MS = 86_400_000;

/** `bounds`: the conditions on ids; `textual`: those on texts and ids; `is_selective`: an index leads to few rows anyway. */
export type Asked<Row> = {
  source: Source;
  texts: Text[];
  /** The texts as they were asked for. */
  words: (string | undefined)[];
  all: Condition;
  textual: Condition;
  others: Condition | null;
  bounds: { id_from?: string | undefined; id_to?: string | undefined };
  is_selective: boolean;
  /** Finds the page in the rows alone, which every search can do. */
  list(): Promise<Row[]>;
  count(): Promise<Total>;
};

/**
 * One page and the total. `is_by_id`: the page is in the order of ids; one in another order is always read from rows. `now_ms`: days
 * that are not over by then are read from rows, too.
 */
export async function searchRows<Row>(
  tx: Tx,
  orgId: string,
  asked: Asked<Row>,
  page: PagePlace & { is_by_id: boolean; now_ms: number },
): Promise<{ rows: Row[]; total: Total }> {
  const answer = async (list: () => Promise<Row[]>, count: () => Promise<Total>) => {
    const listed = await list();
    return { rows: listed, total: await totalOf(listed.length, page, count) };
  };
  const isOfRows = asked.texts.length === 0 && asked.others !== null;
  if (isOfRows || asked.is_selective || !isPackable(asked.words)) return answer(asked.list, asked.count);
  const range = { from_id: asked.bounds.id_from ?? FIRST_ID, to_id: asked.bounds.id_to ?? LAST_ID };
  const open = firstOpenDay(page.now_ms).from_id;
  const past = { ...range, to_id: range.to_id < open ? range.to_id : open };
  const days = await findPackedDays(tx, orgId, asked.source, past);
  if (days.length === 0) return answer(asked.list, asked.count);
  if (asked.texts.length === 0) return answer(asked.list, () => countAll(tx, orgId, asked, { range, days }));
  const search = { ...asked, range: past, unpacked: between(range, days) };
  if (asked.others !== null && (await isFrequent(tx, orgId, search))) return answer(asked.list, asked.count);
  const list = page.is_by_id ? () => searchPage<Row>(tx, orgId, search, page) : asked.list;
  return answer(list, () => countSearch(tx, orgId, search));
}

/**
 * True if very many rows hold the text. The other conditions then leave few rows, which have an index, or so many that
 * a page of them is found early.
 */
async function isFrequent(tx: Tx, orgId: string, search: Search & Pick<Asked<unknown>, "textual">): Promise<boolean> {
  const { total_is_at_least } = await countSearch(tx, orgId, { ...search, all: search.textual, others: null });
  return total_is_at_least === true;
}

type Days = { range: Range; days: PackedDay[] };

/** Packed days know how many rows they have. */
async function countAll(tx: Tx, orgId: string, asked: Asked<unknown>, { range, days }: Days): Promise<Total> {
  const whole = days.filter(({ is_whole }) => is_whole);
  const known = whole.reduce((sum, day) => sum + day.rows, 0);
  if (known > EXACT_TOTAL_MAX) return upToMax(known);
  const rest = await countUnpacked(tx, orgId, { ...asked, range, unpacked: between(range, whole) });
  return rest.total_is_at_least ? rest : upToMax(known + rest.total);
}

/** What of the range is in none of the days, newest first. */
function between({ from_id, to_id }: Range, days: readonly PackedDay[]): Range[] {
  const found: Range[] = [];
  let end = to_id;
  for (const { day } of days) {
    const startMs = Date.parse(day);
    found.push({ from_id: uuidFloor(startMs + DAY_MS), to_id: end });
    end = uuidFloor(startMs);
  }
  found.push({ from_id, to_id: end });
  return found.filter((range) => range.from_id < range.to_id);
}
