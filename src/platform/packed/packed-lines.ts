// How the texts of many rows stand in one: what ends a line, and a part of one. No searched text holds these characters.

/** What the line of a column must hold, one of several; in any case of its letters, unless `as_is`. */
export type Text = { column: string; needles: string[]; as_is?: true };

/** Ends the line of a row. */
export const LINE_END = "\u001e";
/** Stands between two texts of one row (recipients), and on both sides of a word that is compared whole (a tag). */
export const PART_END = "\u001f";
/** Stands for either separator in a text of the row itself. */
const STAND_IN = "\u001d";
const SEPARATORS = LINE_END + PART_END;

/** So many rows are packed in one: the newest page is found in one, and texts of one kind compress well together. */
export const ROWS_IN_ONE = 500;

/** The SQL of a text without the characters that separate texts. */
export function plain(sql: string): string {
  return `translate(${sql}, '${SEPARATORS}', '${STAND_IN.repeat(SEPARATORS.length)}')`;
}

/** In SQL: the lines of a group of rows that have an `id`, the newest first. */
export function lines(column: string): string {
  return `string_agg(${column} || '${LINE_END}', '' order by id desc)`;
}

/** A value that is compared whole: where it is, and what tells it from others. Ids are written short, as a line has several. */
export type Facet = { sql: string; sign: string; is_id?: true };

/** The SQL of a line of values that are compared whole. */
export function facets(all: Record<string, Facet>): string {
  const value = ({ sql, is_id }: Facet) => (is_id ? `encode(uuid_send(${sql}), 'base64')` : `${sql}::text`);
  const each = Object.values(all).map((facet) => `coalesce('${PART_END}${facet.sign}' || ${value(facet)}, '')`);
  return `${each.join(" || ")} || '${PART_END}'`;
}

/** What lines hold of rows with these values. */
export function facetTexts(all: Record<string, Facet>, values: Record<string, string | boolean | undefined>): Text[] {
  return Object.entries(all).flatMap(([name, { sign, is_id }]): Text[] => {
    const value = values[name];
    if (value === undefined) return [];
    const text = is_id ? Buffer.from(String(value).replaceAll("-", ""), "hex").toString("base64") : value;
    return [{ column: "facets", needles: [PART_END + sign + text + PART_END], as_is: true }];
  });
}

/**
 * True if these texts can be searched for in packed ones. A text that holds a separator itself would be found
 * elsewhere, or not at all.
 */
export function isPackable(texts: readonly (string | undefined)[]): boolean {
  return texts.every((text) => !/[\u001d-\u001f]/.test(text ?? ""));
}
