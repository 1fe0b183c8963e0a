// The answer to an invitation (RFC 5546 §3.2.3, §3.2.7), rewritten from the few fields that its organizer needs: which
// meeting, who was invited, and what they say to it; times in UTC. Nothing else of it leaves: no name, no zone, no text, nothing
// of the program that wrote it or of who wrote it for somebody.
import type { HeaderMailbox } from "../../../mail/mime/write/encode-header.ts";
import { contentLines, rewriteCalendar } from "./calendar.ts";
import { utcTime, type Zones, zonesOf } from "./calendar-zone.ts";

/** `sentence` says it to who reads no calendars. */
export type CalendarAnswer = { method: string; calendar: string; sentence: string };

/** `known` gives the text of a line as the organizer may read it. */
export type AnswerOrder = { own: HeaderMailbox; date_ms: number; known(text: string): string };

const METHODS = ["REPLY", "COUNTER", "REFRESH"];
const SAID: Readonly<Record<string, string>> = {
  ACCEPTED: "The invitation was accepted.",
  DECLINED: "The invitation was declined.",
  TENTATIVE: "The invitation was accepted tentatively.",
  DELEGATED: "The invitation was passed on to somebody else.",
  "NEEDS-ACTION": "The invitation was not answered yet.",
  COMPLETED: "The task is completed.",
  "IN-PROCESS": "The task is in process.",
};
const COMPONENTS_MAX = 200;

/** Null for a calendar that is no answer, or an answer to nothing. */
export function writeAnswer(text: string, order: AnswerOrder): CalendarAnswer | null {
  const lines = contentLines(text);
  const method = lines
    .map((line) => /^METHOD\s*:\s*([A-Za-z]{1,20})\s*$/i.exec(line)?.[1]?.toUpperCase())
    .find(Boolean);
  if (method === undefined || !METHODS.includes(method)) return null;
  const zones = zonesOf(lines);
  const components = componentsOf(lines).map((one) => writeComponent(one, { ...order, method, zones }));
  if (components.length === 0) return null;
  const written = [
    ...["BEGIN:VCALENDAR", "PRODID:-//Postern//Masked addresses//EN", "VERSION:2.0", `METHOD:${method}`],
    ...components.flatMap(({ lines: own }) => own),
    "END:VCALENDAR",
    "",
  ];
  const said = components.find(({ status }) => status !== null)?.status ?? null;
  const counter = method === "COUNTER" ? "Another time was proposed for the meeting." : "The invitation was answered.";
  const sentence = method === "REPLY" && said !== null ? (SAID[said] as string) : counter;
  return { method, calendar: rewriteCalendar(written.join("\r\n"), (line) => line), sentence };
}

type Component = { kind: string; lines: string[] };

/** The meetings and tasks, each with its own lines only. */
function componentsOf(lines: readonly string[]): Component[] {
  const found: Component[] = [];
  let open: Component | null = null;
  let inner = 0;
  for (const line of lines) {
    const [, edge, kind = ""] = /^(BEGIN|END)\s*:\s*([A-Za-z-]{1,30})/i.exec(line) ?? [];
    if (open === null) {
      if (edge?.toUpperCase() === "BEGIN" && /^V(?:EVENT|TODO|JOURNAL)$/i.test(kind)) {
        open = { kind: kind.toUpperCase(), lines: [] };
      }
    } else if (edge?.toUpperCase() === "BEGIN") inner += 1;
    else if (edge !== undefined && inner > 0) inner -= 1;
    else if (edge !== undefined) {
      found.push(open);
      open = null;
    } else if (inner === 0) open.lines.push(line);
  }
  return found.slice(0, COMPONENTS_MAX);
}

type Writing = AnswerOrder & { method: string; zones: Zones };

function writeComponent({ kind, lines }: Component, { method, zones, own, date_ms, known }: Writing) {
  const given = (name: string) => propertyOf(lines, name)?.value ?? null;
  const uid = known(given("UID") ?? "").replace(/\p{Cc}/gu, "");
  const sequence = /^\s*(\d{1,9})\s*$/.exec(given("SEQUENCE") ?? "")?.[1];
  const organizer = /[^\s"<>:;]{1,64}@[^\s"<>:;?]{1,255}/.exec(known(given("ORGANIZER") ?? ""))?.[0];
  const status = statusOf(lines);
  const times = method === "COUNTER" ? ["RECURRENCE-ID", "DTSTART", "DTEND", "DUE"] : ["RECURRENCE-ID"];
  const written = [
    `BEGIN:${kind}`,
    `UID:${uid}`,
    `DTSTAMP:${new Date(date_ms).toISOString().replace(/[-:]|\.\d+/g, "")}`,
    ...times.flatMap((name) => timeLine(lines, name, zones)),
    ...(sequence === undefined ? [] : [`SEQUENCE:${sequence}`]),
    ...(organizer === undefined ? [] : [`ORGANIZER:mailto:${organizer}`]),
    `ATTENDEE${status === null ? "" : `;PARTSTAT=${status}`}:mailto:${own.email}`,
    `END:${kind}`,
  ];
  return { lines: written, status };
}

type Property = { parameters: string; value: string };

function propertyOf(lines: readonly string[], name: string): Property | null {
  for (const line of lines) {
    const match = /^([A-Za-z-]{1,40})((?:;[A-Za-z-]{1,40}=(?:"[^"]*"|[^";:]*))*):(.*)$/s.exec(line);
    if (match?.[1]?.toUpperCase() === name) return { parameters: match[2] ?? "", value: match[3] ?? "" };
  }
  return null;
}

/** What is said by who answers: an answer names nobody else (RFC 5546 §3.2.3). */
function statusOf(lines: readonly string[]): string | null {
  const said = /;PARTSTAT="?([A-Za-z-]{1,20})/i.exec(propertyOf(lines, "ATTENDEE")?.parameters ?? "")?.[1];
  const upper = said?.toUpperCase() ?? "";
  return Object.hasOwn(SAID, upper) ? upper : null;
}

const LOCAL_TIME = /^\d{8}T\d{6}Z?$/;

/** The time in UTC; as it stands where it is a day, or of a zone that nobody here knows. */
function timeLine(lines: readonly string[], name: string, zones: Zones): string[] {
  const found = propertyOf(lines, name);
  const value = found?.value.trim() ?? "";
  if (/^\d{8}$/.test(value)) return [`${name};VALUE=DATE:${value}`];
  if (!found || !LOCAL_TIME.test(value)) return [];
  const [, quoted, zone = quoted] = /;TZID=(?:"([^"]{1,200})"|([^";:]{1,200}))/i.exec(found.parameters) ?? [];
  return [`${name}:${zone === undefined ? value : (utcTime(value, zone, zones) ?? value)}`];
}
