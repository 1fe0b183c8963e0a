// SQL that searches rows by their texts: days that are packed in their packed texts, the others in the rows themselves. Row-level
// security lets no index serve such a search, which passes over as few bytes as it can instead.
import type { Query, Tx } from "../database/db.ts";
import { LAST_ID } from "../database/page.ts";
import { countUpToMax, type Total } from "../database/totals.ts";
import { LINE_END, type Text } from "./packed-lines.ts";

/** Where rows are, and their packed texts; `columns` are what a page reads of `as`. */
export type Source = { table: string; as: string; packed: string; columns: string };

/** Ids from one to below another. */
export type Range = { from_id: string; to_id: string };

/** Adds its values to those of the statement, whose first is the organization. */
export type Condition = (values: unknown[]) => string;

/** `all`: every condition of a row; `others`: those beside texts and ids, null for none. `unpacked`: what must be read from rows. */
export type Search = {
  source: Source;
  all: Condition;
  texts: Text[];
  others: Condition | null;
  range: Range;
  unpacked: Range[];
};

export type PagePlace = { limit: number; offset: number; below: string; direction: "asc" | "desc" };
export type PackedDay = { day: string; rows: number; is_whole: boolean };

/** Days of which a part or all is within the range, newest first, and how many rows their packed texts hold that are whole within it. */
export function findPackedDays(tx: Query, orgId: string, { packed }: Source, { from_id, to_id }: Range) {
  return tx.query<PackedDay>(
    `select day, sum(case when oldest_id >= $2 and id < $3 then rows_in_it else 0 end) as rows,
            bool_and(oldest_id >= $2 and id < $3) as is_whole
       from ${packed} where org_id = $1 and id >= $2 and oldest_id < $3 group by day order by day desc`,
    [orgId, from_id, to_id],
  );
}

type Values = { all: unknown[]; add(value: unknown): string };

function valuesFrom(...all: unknown[]): Values {
  return { all, add: (value) => `$${all.push(value)}` };
}

/** What lies behind a row in the order of the page, of ids and of packed rows. */
type Behind = { id(id: string): string; packed: string };
const EVERYTHING: Behind = { id: () => "true", packed: "true" };

function behind({ below, direction }: PagePlace, values: Values): Behind {
  if (below === LAST_ID) return EVERYTHING;
  const last = `${values.add(below)}::uuid`;
  if (direction === "asc") return { id: (id) => `${id} > ${last}`, packed: `b.id > ${last}` };
  return { id: (id) => `${id} < ${last}`, packed: `b.oldest_id < ${last}` };
}

type Part = { limit: string; direction: string; place: Behind };

/** Up to `limit` ids from each range that is not packed. */
function fromRows({ source, all, unpacked }: Search, values: Values, { limit, direction, place }: Part): string {
  const from = values.add(unpacked.map(({ from_id }) => from_id));
  const to = values.add(unpacked.map(({ to_id }) => to_id));
  const { table, as } = source;
  return `select l.id from unnest(${from}::uuid[], ${to}::uuid[]) as r (from_id, to_id)
     cross join lateral (
       select ${as}.id from ${table} ${as}
        where ${all(values.all)} and ${as}.id >= r.from_id and ${as}.id < r.to_id and ${place.id(`${as}.id`)}
        order by ${as}.id ${direction} limit ${limit}) as l`;
}

function needlesOf({ needles, as_is }: Text, values: Values): string[] {
  return needles.map((needle) => (as_is ? `${values.add(needle)}::text` : `lower(${values.add(needle)})`));
}

const holds = (text: string, needles: string[]) =>
  `(${needles.map((needle) => `strpos(${text}, ${needle}) > 0`).join(" or ")})`;

/** Each row of which the lines hold all texts: its packed row as `b`, its id as `l.id`, `l.place` counts in the order of ids. */
function fromLines({ source, texts, others, range }: Search, values: Values, place: Behind): string {
  const [from, to] = [values.add(range.from_id), values.add(range.to_id)];
  const sought = texts.map((text) => ({ column: text.column, needles: needlesOf(text, values) }));
  const names = sought.map((_, at) => `line_${at}`);
  const lines = sought.map(({ column }) => `string_to_array(b.${column}, '${LINE_END}')`);
  const conditions = [
    `b.org_id = $1 and b.id >= ${from} and b.oldest_id < ${to} and l.id >= ${from} and l.id < ${to}`,
    ...[place.packed, place.id("l.id")],
    ...sought.map(({ column, needles }) => holds(`b.${column}`, needles)),
    ...sought.map(({ needles }, at) => holds(`l.${names[at]}`, needles)),
  ];
  const { table, as, packed } = source;
  const rest = others
    ? `cross join lateral (select 1 from ${table} ${as} where ${others(values.all)} and ${as}.id = l.id offset 0) as o`
    : "";
  return `${packed} b
     cross join lateral unnest(${["b.ids", ...lines].join(", ")}) with ordinality as l (id, ${[...names, "place"].join(", ")})
     ${rest} where ${conditions.join(" and ")}`;
}

/** One page: both halves are read only as far as it reaches. */
export function searchPage<Row>(tx: Tx, orgId: string, search: Search, page: PagePlace) {
  const values = valuesFrom(orgId);
  const place = behind(page, values);
  const { direction } = page;
  const { table, as, columns } = search.source;
  const [limit, offset, reach] = [page.limit, page.offset, page.limit + page.offset].map(
    (number) => `${values.add(number)}::bigint`,
  ) as [string, string, string];
  return tx.query<Row>(
    `with found as (
       (${fromRows(search, values, { limit: reach, direction, place })} order by l.id ${direction} limit ${reach})
       union all
       (select l.id from ${fromLines(search, values, place)}
         order by b.id ${direction}, l.place ${direction === "asc" ? "desc" : "asc"} limit ${reach}))
     select r.* from (select id from found order by id ${direction} limit ${limit} offset ${offset}) as f
      cross join lateral (select ${columns} from ${table} ${as} where ${as}.org_id = $1 and ${as}.id = f.id offset 0) as r
      order by r.id ${direction}`,
    values.all,
  );
}

const ALL: Part = { limit: "all", direction: "desc", place: EVERYTHING };

/**
 * How many there are. Of one text alone lines are not looked at one by one: a packed text is cut where the needle stands, and of
 * these places those are counted behind which a line ends before the next.
 */
export function countSearch(tx: Tx, orgId: string, search: Search): Promise<Total> {
  const values = valuesFrom(orgId);
  const rows = `select 1 from (${fromRows(search, values, ALL)}) as l`;
  const [only, ...more] = search.texts;
  if (only?.needles.length !== 1 || more.length > 0 || search.others !== null) {
    const lines = fromLines(search, values, EVERYTHING);
    return countUpToMax(tx, `(${rows} union all select 1 from ${lines}) as found`, values.all);
  }
  const { column } = only;
  const [from, to] = [values.add(search.range.from_id), values.add(search.range.to_id)];
  const isWhole = `b.oldest_id >= ${from} and b.id < ${to}`;
  const [needle] = needlesOf(only, values);
  const cuts = `select 1 from ${search.source.packed} b
      cross join lateral unnest(string_to_array(b.${column}, ${needle})) with ordinality as p (piece, place)
     where b.org_id = $1 and ${isWhole} and strpos(b.${column}, ${needle}) > 0 and p.place > 1 and strpos(p.piece, '${LINE_END}') > 0`;
  const edges = `select 1 from ${fromLines(search, values, EVERYTHING)} and not (${isWhole})`;
  return countUpToMax(tx, `(${rows} union all ${cuts} union all ${edges}) as found`, values.all);
}

/** How many rows there are in what is not packed. */
export function countUnpacked(tx: Tx, orgId: string, search: Search): Promise<Total> {
  const values = valuesFrom(orgId);
  return countUpToMax(tx, `(${fromRows(search, values, ALL)}) as l`, values.all);
}
