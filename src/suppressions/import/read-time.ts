// A time as lists have it: ISO 8601 with a date alone, a space for the T, slashes for the hyphens, or without a zone (then
// UTC), and Unix time in seconds or milliseconds. Everything that two readers could read differently is no time: days and
// months in either order, numbers of a spreadsheet, whatever else Date.parse makes of a text (`0`, `46023`, `may 1`).

const YEAR_FIRST =
  /^(\d{4})([-/])(\d{2})\2(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?: ?(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?)?$/i;
/** 2001 to 2286, so that no other number is taken for a time. */
const UNIX = /^[1-9]\d{9}(\d{3})?$/;

/** The time in ISO 8601 with Z, of the years 1 to 9999; null when it is none. */
export function readTime(text: string): string | null {
  const unix = UNIX.exec(text);
  const at = unix ? Number(text) * (unix[1] === undefined ? 1_000 : 1) : fromYearFirst(text);
  return at !== null && isStorable(at) ? new Date(at).toISOString() : null;
}

function fromYearFirst(text: string): number | null {
  const match = YEAR_FIRST.exec(text);
  if (match === null) return null;
  const [year, month, day, hour, minute, second] = [1, 3, 4, 5, 6, 7].map((at) => Number(match[at] ?? 0));
  if (hour! > 23 || minute! > 59 || second! > 59) return null;
  const date = new Date(0);
  date.setUTCFullYear(year!, month! - 1, day);
  // 31 February would be in March.
  if (date.getUTCMonth() !== month! - 1 || date.getUTCDate() !== day) return null;
  const offset = offsetMinutes(match[9] ?? "Z");
  if (offset === null) return null;
  const ms = Math.floor(Number(`0.${match[8] ?? 0}`) * 1_000);
  return date.setUTCHours(hour!, minute! - offset, second, ms);
}

function offsetMinutes(zone: string): number | null {
  const [, sign, hours, minutes = "0"] = /^([+-])(\d{2}):?(\d{2})?$/.exec(zone) ?? [];
  if (sign === undefined) return 0;
  if (Number(hours) > 23 || Number(minutes) > 59) return null;
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}

// PostgreSQL reads neither a year of six digits with its sign nor the year 0.
function isStorable(at: number): boolean {
  const year = new Date(at).getUTCFullYear();
  return year >= 1 && year <= 9_999;
}
