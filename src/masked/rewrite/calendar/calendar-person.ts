// The people in the lines of a calendar: organizers and attendees (RFC 5545 §3.8.4.1, §3.8.4.3, RFC 9073 §8.1), and what
// programs add of that kind. A mail program answers whom such a line names, past every header field of the mail, so a line
// is rewritten from what is understood of it: whoever is not known becomes somebody who is. Values of other lines stay.
import { parseAddress } from "../../../mail/address.ts";
import type { Replaced, Replacement } from "../scrub/replace-addresses.ts";
import { contentLines } from "./calendar.ts";

/** `known`: addresses, and what stands for each; `author` stands for everybody else. `text` is for names. */
export type CalendarPeople = {
  known: ReadonlyMap<string, string>;
  author: string;
  text(text: string): Replaced;
};

/** `raw` values of parameters have their quotes. */
type Line = { name: string; parameters: { name: string; raw: string }[]; value: string };

const PERSON = /^(?:ORGANIZER|ATTENDEE|CALENDAR-ADDRESS|VOTER|X-MS-OLK-.*)$/;
/** What a line may say of a person besides; what is not here may hold another address (SENT-BY, DIR, EMAIL, X-…). */
const KEPT =
  /^(?:CN|CUTYPE|ROLE|PARTSTAT|RSVP|LANGUAGE|STATUS|EXPECT|VALUE|SCHEDULE-AGENT|SCHEDULE-FORCE-SEND|X-NUM-GUESTS)$/;
const PEOPLE = /^(?:DELEGATED-FROM|DELEGATED-TO|MEMBER)$/;
const WHOLE_ADDRESS = /^\s*"?(?:mailto:[^\s]*|[^\s<>:;,"]+@[^\s<>:;,"]+)"?\s*$/i;
const VALUE_MAX = 1_000;
const DELEGATES_MAX = 20;

/** The table of `known` for these replacements: both whom they stand for and what stands for them. */
export function knownPeople(replacements: readonly Replacement[]): Map<string, string> {
  const both = [...replacements.map(({ to }) => ({ from: to, to })), ...replacements];
  return new Map(both.map(({ from, to }) => [from.toLowerCase(), to]));
}

/** True if the line names a person. */
export function namesPerson(line: string): boolean {
  return readPersonLine(line) !== null;
}

/** A line with its people exchanged for known ones; any other line as it is. */
export function rewritePerson(given: string, people: CalendarPeople): string {
  const line = readPersonLine(given);
  if (!line) return given;
  const parameters = line.parameters.flatMap(({ name, raw }) => {
    if (KEPT.test(name)) return [`${name}=${quoted(nameFor(unquoted(raw), people))}`];
    if (!PEOPLE.test(name)) return [];
    const all = raw.split(",", DELEGATES_MAX).map((one) => `"mailto:${knownFor(addressIn(one), people)}"`);
    return [`${name}=${all.join(",")}`];
  });
  return `${[line.name, ...parameters].join(";")}:mailto:${knownFor(personOf(line), people)}`;
}

/**
 * A line that names `own` by its address says the name of `own`, and nothing that its mail program knows of the person
 * besides. Any other line as it is.
 */
export function namedAnew(given: string, own: { name: string | null; email: string }): string {
  const line = readPersonLine(given);
  if (!line || personOf(line)?.toLowerCase() !== own.email.toLowerCase()) return given;
  const parameters = line.parameters.flatMap(({ name, raw }) => {
    if (name === "CN") {
      // The address itself is no name.
      const shown = own.name ?? (unquoted(raw).toLowerCase() === own.email.toLowerCase() ? own.email : null);
      return shown === null ? [] : [`CN=${quoted(shown)}`];
    }
    return KEPT.test(name) || PEOPLE.test(name) || /^(?:EMAIL|SENT-BY)$/.test(name) ? [`${name}=${raw}`] : [];
  });
  return `${[line.name, ...parameters].join(";")}:${line.value}`;
}

/** The addresses of the people in calendars, organizers first: the answer goes to them. */
export function calendarAddresses(texts: readonly string[]): string[] {
  const lines = texts.flatMap(contentLines).flatMap((line) => readPersonLine(line) ?? []);
  const [organizers, others] = [true, false].map((isFirst) =>
    lines.filter(({ name }) => (name !== "ATTENDEE") === isFirst),
  );
  return [...(organizers ?? []), ...(others ?? [])].flatMap((line) => personOf(line) ?? []);
}

function knownFor(email: string | null, { known, author }: CalendarPeople): string {
  if (email === null) return author;
  const lower = email.toLowerCase();
  return known.get(lower) ?? known.get(lower.replace(/\+[^@]*@/, "@")) ?? author;
}

/** A stranger's address may be read, as in the From of the mail, and not be written to. */
function nameFor(given: string, { known, text }: CalendarPeople): string {
  return text(given).text.replace(/[^\s"<>():;,]{1,100}(?:@|%40)[^\s"<>():;,]{1,255}/g, (address) =>
    known.has(address.toLowerCase()) ? address : address.replace(/@|%40/g, " at "),
  );
}

/** Null for a line that names nobody. */
function readPersonLine(given: string): Line | null {
  const [start, name = ""] = /^[\s\ufeff]*(?:[A-Za-z0-9-]{1,50}\.)?([A-Za-z0-9-]{1,100})\s*(?=[;:])/.exec(given) ?? [];
  if (start === undefined) return null;
  const property = name.toUpperCase();
  const isPerson = PERSON.test(property) || /\bVALUE\s*=\s*"?CAL-ADDRESS/i.test(given);
  if (!isPerson && !property.startsWith("X-")) return null;
  const line: Line = { name: property, parameters: [], value: "" };
  let at = start.length;
  while (given[at] === ";") {
    const end = endOfParameter(given, at + 1);
    const [, parameter, raw] = /^\s*([A-Za-z0-9-]{1,50})\s*=\s*(.*)$/s.exec(given.slice(at + 1, end)) ?? [];
    if (parameter !== undefined) line.parameters.push({ name: parameter.toUpperCase(), raw: raw ?? "" });
    at = end;
  }
  line.value = given.slice(at + 1);
  // A program's own property names a person where all of its value is an address.
  return isPerson || WHOLE_ADDRESS.test(line.value) ? line : null;
}

/** The `;` or `:` behind a parameter, those in quotes passed over; the end of the line when there is none. */
function endOfParameter(line: string, from: number): number {
  let isQuoted = false;
  for (let at = from; at < line.length; at += 1) {
    const char = line[at];
    if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (char === ";" || char === ":")) return at;
  }
  return line.length;
}

/** The address of a line's value, or else of its EMAIL (RFC 7986 §6.2: where the value is no mailbox). */
function personOf({ value, parameters }: Line): string | null {
  const email = parameters.find(({ name }) => name === "EMAIL");
  return addressIn(value) ?? (email ? addressIn(email.raw) : null);
}

/** RFC 6068: `mailto:`, percents, and header fields behind a question mark; and what else is written for it. */
function addressIn(given: string): string | null {
  const bare = withoutPercents(given.slice(0, VALUE_MAX))
    .replace(/\^\^/g, "^")
    .replace(/^["'<\s]*(?:mailto:["'<\s]*)*/i, "")
    .replace(/\?.*$/s, "")
    .replace(/["'>\s]+$/, "");
  const parsed = parseAddress(bare);
  return parsed.ok ? parsed.address.email : null;
}

function withoutPercents(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8"));
}

function unquoted(raw: string): string {
  return raw.trim().replace(/^"([^"]*)"$/, "$1");
}

/** RFC 5545 §3.1: a parameter's value holds no quotes, and stands in them where it holds what separates values. */
function quoted(text: string): string {
  const safe = text.replace(/["\p{Cc}]/gu, "");
  return /[;:,]/.test(safe) ? `"${safe}"` : safe;
}
