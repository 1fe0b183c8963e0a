// The Date field of other people's mail (RFC 5322 §3.3, §4.3, and what is found besides) as an instant. No clock: a date
// that is not there or makes no sense is null.

import { withoutComments } from "./comments.ts";

const months = new Map(
  ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"].map((name, index) => [
    name,
    index,
  ]),
);
// RFC 5322 §4.3; military letters say nothing reliable and count as UTC, like names we do not know.
const zoneMinutes = new Map([
  ["edt", -240],
  ["est", -300],
  ["cdt", -300],
  ["cst", -360],
  ["mdt", -360],
  ["mst", -420],
  ["pdt", -420],
  ["pst", -480],
  ["cet", 60],
  ["cest", 120],
  ["bst", 60],
  ["jst", 540],
]);
const textCharsMax = 200;

/** RFC 3339 in UTC with milliseconds, or null. */
export function parseMailDate(value: string): string | null {
  const text = withoutComments(value.slice(0, textCharsMax)).replace(/\s+/g, " ").trim();
  const parts = readMailForm(text) ?? readIsoForm(text);
  if (parts === null) return null;
  const { year, month, day, hour, minute, second, offset } = parts;
  if (month < 0 || month > 11 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) return null;
  // Not Date.UTC of the year: it takes 0 to 99 for 1900 to 1999.
  const instant = new Date(0);
  instant.setUTCFullYear(year, month, day);
  // The 31st of April is no day, and not the first of May.
  if (instant.getUTCDate() !== day) return null;
  instant.setUTCHours(hour, minute - offset, second);
  const ms = instant.getTime();
  return Number.isNaN(ms) || year < 1 || year > 9999 || instant.getUTCFullYear() < 1 || instant.getUTCFullYear() > 9999
    ? null
    : instant.toISOString();
}

type DateParts = {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  offset: number;
};

const TIME = "(\\d{1,2}) ?[:.] ?(\\d{1,2})(?: ?[:.] ?(\\d{1,2})(?:\\.\\d+)?)?(?: ?([ap])\\.?m\\b\\.?)?";
const DAY = "(\\d{1,2})(?:st|nd|rd|th)?";
const DAY_FIRST = new RegExp(
  `(?:^|[ ,])${DAY}[ -]{1,3}([a-z]{3})[a-z]*\\.?[ ,-]{1,3}(\\d{2,5})[, ]+${TIME} ?(.*)$`,
  "i",
);
// asctime: `Thu Jan  4 12:00:00 2001`, with a zone before or behind the year.
const ASCTIME = new RegExp(
  `(?:^|[ ,])([a-z]{3})[a-z]*\\.? ${DAY},? ${TIME} ?([+-]\\d{4}|[^\\d ]*) ?(\\d{4}) ?(.*)$`,
  "i",
);
// As people write it: `January 4, 2001 12:00 PM`.
const MONTH_FIRST = new RegExp(`(?:^|[ ,])([a-z]{3})[a-z]*\\.? ${DAY},? (\\d{4}),?(?: at)? ${TIME} ?(.*)$`, "i");

function readMailForm(text: string): DateParts | null {
  const dayFirst = DAY_FIRST.exec(text);
  if (dayFirst) {
    const [, day, month, year, hour, minute, second, half, zone] = dayFirst;
    return toParts({ day, month, year, hour, minute, second, half, zone });
  }
  const asctime = ASCTIME.exec(text);
  if (asctime) {
    const [, month, day, hour, minute, second, half, before, year, behind] = asctime;
    return toParts({ day, month, year, hour, minute, second, half, zone: behind || before });
  }
  const monthFirst = MONTH_FIRST.exec(text);
  if (monthFirst === null) return null;
  const [, month, day, year, hour, minute, second, half, zone] = monthFirst;
  return toParts({ day, month, year, hour, minute, second, half, zone });
}

function readIsoForm(text: string): DateParts | null {
  const match = /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)? ?(.*)$/i.exec(text);
  if (match === null) return null;
  const [, year, month, day, hour, minute, second, zone] = match;
  const numbers = {
    year: Number(year),
    month: Number(month) - 1,
    day: Number(day),
    hour: Number(hour),
    minute: Number(minute),
    second: Number(second ?? 0),
  };
  return { ...numbers, offset: readZone(zone ?? "") };
}

function toParts(
  given: Record<"day" | "month" | "year" | "hour" | "minute" | "second" | "half" | "zone", string | undefined>,
): DateParts {
  return {
    year: fullYear(given.year!),
    month: months.get(given.month!.toLowerCase()) ?? -1,
    day: Number(given.day),
    hour: hourOfDay(Number(given.hour), given.half),
    minute: Number(given.minute),
    second: Number(given.second ?? 0),
    offset: readZone(given.zone ?? ""),
  };
}

// Some write `1:10 PM`, and `13:10 PM` too.
function hourOfDay(hour: number, half: string | undefined): number {
  return half === undefined || hour > 12 ? hour : (hour % 12) + (half.toLowerCase() === "p" ? 12 : 0);
}

// RFC 5322 §4.3
function fullYear(text: string): number {
  const year = Number(text);
  if (text.length === 2) return year < 50 ? 2000 + year : 1900 + year;
  return text.length === 3 ? 1900 + year : year;
}

function readZone(text: string): number {
  const numeric = /^(?:utc|gmt)? ?([+-])(\d{1,2}):?(\d{2})?/i.exec(text);
  if (numeric) {
    const minutes = Number(numeric[2]) * 60 + Number(numeric[3] ?? 0);
    return numeric[1] === "-" ? -minutes : minutes;
  }
  return zoneMinutes.get(/^[a-z]*/i.exec(text)![0].toLowerCase()) ?? 0;
}
