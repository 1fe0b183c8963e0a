// Times of a calendar in UTC. A zone is known by its name, by what the calendar itself says of it (VTIMEZONE, RFC 5545
// §3.6.5), or by a name at the end of its own. Outlook and Notes have names that nobody else knows, and always say more.
// Yearly rules by month, weekday and day of the month, as such programs write them; of other rules the first day counts.

/** A change of the clock: the wall times at which it came, and the offsets before and after, in ms. */
type Change = { start: number; dates: number[]; rule: Map<string, string> | null; from: number; to: number };
/** The changes of each zone, by the name that the calendar gives it. */
export type Zones = ReadonlyMap<string, readonly Change[]>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const LAST_MS = Date.UTC(9999, 11, 31);
const ZONES_MAX = 50;
const CHANGES_MAX = 100;
const RULES_MAX = 30;
const MONTHS_MAX = 2;
const DATES_MAX = 200;
const PROPERTIES = new Set(["DTSTART", "RDATE", "RRULE", "TZOFFSETFROM", "TZOFFSETTO"]);
const TIME = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)Z?)?$/;
const WEEKDAYS = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];

/** The zones that a calendar describes, from its unfolded lines; in bounds. */
export function zonesOf(lines: readonly string[]): Zones {
  const zones = new Map<string, Change[]>();
  let name = "";
  let changes: Change[] = [];
  let open: Map<string, string[]> | null = null;
  for (const line of lines) {
    const [, key = "", value = ""] = /^([A-Za-z-]{1,40})(?:;[^:]{0,200})?:(.{0,4000})$/.exec(line.trim()) ?? [];
    const edge = `${key.toUpperCase()}:${key.length > 5 ? "" : value.trim().toUpperCase()}`;
    if (edge === "BEGIN:VTIMEZONE") [name, changes] = ["", []];
    else if (edge === "END:VTIMEZONE" && zones.size < ZONES_MAX) zones.set(name, changes);
    else if (edge === "BEGIN:STANDARD" || edge === "BEGIN:DAYLIGHT") open = new Map();
    else if (open !== null && (edge === "END:STANDARD" || edge === "END:DAYLIGHT")) {
      const change = readChange(open);
      if (change !== null && changes.length < (change.rule === null ? CHANGES_MAX : RULES_MAX)) changes.push(change);
      open = null;
    } else if (open !== null) keep(open, key.toUpperCase(), value);
    else if (key.toUpperCase() === "TZID") name = plainName(value);
  }
  return zones;
}

function keep(open: Map<string, string[]>, key: string, value: string): void {
  const before = open.get(key) ?? [];
  if (PROPERTIES.has(key) && before.length < DATES_MAX) open.set(key, [...before, value]);
}

/** A local time of a zone in UTC, as calendars write it; null when nobody knows the zone. */
export function utcTime(value: string, zone: string, zones: Zones): string | null {
  const wall = wallTime(value);
  if (wall === null) return null;
  const known = byClock(wall, zone) ?? byChanges(wall, zones.get(plainName(zone)) ?? []) ?? byEnd(wall, zone);
  if (known === null || !(known < LAST_MS)) return null;
  return new Date(known).toISOString().replace(/[-:]|\.\d+/g, "");
}

function plainName(text: string): string {
  return text.replace(/[\\"]/g, "").trim().slice(0, 200);
}

/** What a clock on the wall shows, as if it were UTC. */
function wallTime(value: string): number | null {
  const parts = TIME.exec(value.trim())
    ?.slice(1)
    .map((part) => Number(part ?? 0));
  if (!parts) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

// RFC 5545 §3.3.5: of an hour that is there twice it is the first, of one that is skipped the offset before.
function byClock(wall: number, zone: string): number | null {
  try {
    const clock = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" });
    const seen = (ms: number) => Date.parse(`${clock.format(ms).replace(" ", "T")}Z`);
    const [before, behind] = [-DAY_MS, DAY_MS].map((apart) => seen(wall + apart) - wall - apart) as [number, number];
    const isShown = seen(wall - before) === wall || seen(wall - behind) !== wall;
    const utc = wall - (isShown ? before : behind);
    return Math.abs(utc - wall) > 15 * HOUR_MS ? null : utc;
  } catch {
    return null;
  }
}

/** `/mozilla.org/20070129_1/America/New_York` */
function byEnd(wall: number, zone: string): number | null {
  const parts = zone.split("/").filter(Boolean);
  return (
    (parts.length > 2 ? byClock(wall, parts.slice(-3).join("/")) : null) ?? byClock(wall, parts.slice(-2).join("/"))
  );
}

// --- what a calendar says of a zone ---------------------------------------------------------------------------------------

function readChange(lines: ReadonlyMap<string, string[]>): Change | null {
  const one = (name: string) => lines.get(name)?.[0] ?? "";
  const start = wallTime(one("DTSTART"));
  const [from, to] = [offsetOf(one("TZOFFSETFROM")), offsetOf(one("TZOFFSETTO"))];
  if (start === null || from === null || to === null) return null;
  const dates = (lines.get("RDATE") ?? []).flatMap((line) => line.split(",")).slice(0, DATES_MAX);
  const rule = new Map(
    one("RRULE")
      .toUpperCase()
      .split(";")
      .map((part) => part.trim().split("=", 2) as [string, string]),
  );
  const isYearly = rule.get("FREQ") === "YEARLY";
  return { start, from, to, dates: dates.flatMap((date) => wallTime(date) ?? []), rule: isYearly ? rule : null };
}

function offsetOf(text: string): number | null {
  const [, sign, hours = 0, minutes = 0] = /^\s*([+-])(\d\d)(\d\d)/.exec(text) ?? [];
  const ms = Number(hours) * HOUR_MS + Number(minutes) * 60_000;
  return sign === undefined || ms > 15 * HOUR_MS ? null : sign === "-" ? -ms : ms;
}

/** The last change before it tells; hours that are twice there or skipped as above. */
function byChanges(wall: number, changes: readonly Change[]): number | null {
  let last = Number.NEGATIVE_INFINITY;
  let offset: number | null = null;
  for (const change of changes) {
    const came = lastOnset(change, wall - Math.max(0, change.to - change.from));
    if (came > last) [last, offset] = [came, change.to];
  }
  const first = changes.reduce<Change | null>((one, other) => (one && one.start <= other.start ? one : other), null);
  return first === null ? null : wall - (offset ?? first.from);
}

function lastOnset({ start, dates, rule, from }: Change, until: number): number {
  // In UTC (RFC 5545 §3.3.10).
  const ended = wallTime(rule?.get("UNTIL") ?? "");
  const ruled = rule === null ? [] : onsets(rule, start, ended === null ? until : Math.min(until, ended + from));
  const all = [start, ...dates, ...ruled].filter((onset) => onset >= start && onset <= until);
  return all.reduce((one, other) => Math.max(one, other), Number.NEGATIVE_INFINITY);
}

/** The moments at which a yearly rule begins, in the year of `until` and the one before. */
function onsets(rule: ReadonlyMap<string, string>, start: number, until: number): number[] {
  const first = new Date(start);
  const list = (name: string) => rule.get(name)?.split(",").slice(0, 31);
  const months = list("BYMONTH")?.slice(0, MONTHS_MAX).map(Number) ?? [first.getUTCMonth() + 1];
  const weekdays = list("BYDAY")?.slice(0, WEEKDAYS.length).map(readWeekday) ?? null;
  const days = list("BYMONTHDAY")?.map(Number) ?? (weekdays ? null : [first.getUTCDate()]);
  const timeOfDay = ((start % DAY_MS) + DAY_MS) % DAY_MS;
  const year = new Date(until).getUTCFullYear();
  const found: number[] = [];
  for (const begin of [year - 1, year].flatMap((one) => months.map((month) => Date.UTC(one, month - 1, 1)))) {
    const length = 32 - new Date(begin + 31 * DAY_MS).getUTCDate();
    const weekday = new Date(begin).getUTCDay();
    for (let day = 1; day <= length; day += 1) {
      const at = { day, length, weekday: (weekday + day - 1) % 7 };
      const isMeant = (days?.includes(day) ?? true) && (weekdays?.some((one) => isWeekday(at, one)) ?? true);
      if (isMeant) found.push(begin + (day - 1) * DAY_MS + timeOfDay);
    }
  }
  return found;
}

type Weekday = { weekday: number; count: number };

/** `-1SU` is the last Sunday of the month, `2SU` the second, `SU` each. */
function readWeekday(given: string): Weekday {
  const [, count = "", name = ""] = /^\s*([+-]?\d?)([A-Z]{2})\s*$/.exec(given) ?? [];
  return { weekday: WEEKDAYS.indexOf(name), count: Number(count) || 0 };
}

function isWeekday({ day, length, weekday }: { day: number; length: number; weekday: number }, one: Weekday): boolean {
  if (weekday !== one.weekday) return false;
  return one.count === 0 || one.count === Math.ceil(day / 7) || -one.count === Math.ceil((length - day + 1) / 7);
}
