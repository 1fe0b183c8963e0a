// Days and moments as requests write them (RFC 3339 §5.6): one reading for the fields of bodies and the ends of a range in
// a query. Stricter than Date.parse, which takes February 30th for March 2nd and much that is no date at all.
import { invalid } from "../platform/refusal.ts";

const DAY_MS = 86_400_000;
const DAY = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;
const TIME =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)$/;

/** True for a day that exists, as YYYY-MM-DD. */
export function isDay(text: string): boolean {
  return DAY.test(text) && exists(text);
}

/**
 * True for a moment (RFC 3339) of a day that exists, whose year in UTC has four digits too, so that it can be shown
 * again.
 */
export function isTime(text: string): boolean {
  if (!TIME.test(text) || !exists(text)) return false;
  const year = new Date(text).getUTCFullYear();
  return year >= 0 && year <= 9_999;
}

function exists(text: string): boolean {
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  return day.getUTCDate() === Number(text.slice(8, 10));
}

export type DayOrTime = { ms: number; is_day: boolean };

/** A zone whose `+` was not percent-encoded: forms read that as a blank. */
const BLANK_FOR_PLUS = / (?=\d\d:?\d\d$)/;

/** A day or a moment, or 400 naming the query parameter. Postern had no mail before 1970. */
export function readDayOrTime(field: string, given: string): DayOrTime {
  const text = given.replace(BLANK_FOR_PLUS, "+");
  const is_day = isDay(text);
  if (is_day || isTime(text)) return { ms: Math.max(0, Date.parse(text)), is_day };
  throw invalid(field, `the '${field}' query parameter is not a date (2026-11-20) or a time (RFC 3339)`);
}

/** The first millisecond behind it: the whole of a day belongs to a range, and the moment itself. */
export function endOf({ ms, is_day }: DayOrTime): number {
  return is_day ? ms + DAY_MS : ms + 1;
}
