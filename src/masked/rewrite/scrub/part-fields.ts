// What the fields of a part say of it: its name, and whether mail programs take it for a calendar.
import { readableValue } from "../../../mail/mime/header-text.ts";
import { parseParameters } from "../../../mail/mime/parse-parameters.ts";
import type { Part } from "../../../mail/mime/parse-structure.ts";

const CALENDAR_TYPE = /^(?:text|application)\/(?:x-)?(?:v?calendar|icalendar|ics)(?:\+(?:xml|json))?$/;
/** Windows takes dots and spaces away from the end of a name. */
const CALENDAR_NAME = /\.(?:ics|ical|icalendar|ifb|vcs)[\s.]*$/i;

const FIELD_MAX = 1_000;

/** The value of the first field of that name (in lower case); "" when there is none. */
export function fieldOf(part: Part, name: string): string {
  return part.headers.find((header) => header.name.toLowerCase() === name)?.value ?? "";
}

/** The name that a file was sent under; "" when it has none. */
export function filenameOf(part: Part): string {
  const { parameters } = parseParameters(fieldOf(part, "content-disposition"));
  return readableValue(parameters.get("filename") || part.parameters.get("name") || "");
}

/** A calendar by its type or its name. Of fields that stand twice, readers take one or the other. */
export function isCalendarPart({ headers }: Part): boolean {
  const given = headers.filter(({ name }) => /^content-(?:type|disposition)$/i.test(name));
  return given.some(({ value: text }) => {
    const { parameters } = parseParameters(text);
    // As the most tolerant of readers do: without comments, quotes and white space (RFC 2045 §5.1).
    const type = text.slice(0, FIELD_MAX).split(";", 1)[0] ?? "";
    const value = type.replace(/\([^()]*\)|["'\s]/g, "").toLowerCase();
    const names = ["name", "filename"].map((name) => readableValue(parameters.get(name) ?? ""));
    return CALENDAR_TYPE.test(value) || names.some((name) => CALENDAR_NAME.test(name));
  });
}
