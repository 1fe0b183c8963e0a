// Times and sizes as people read them: exact with the zone, and relative beside it. Pure: the caller says what time it is.

const DAY_MS = 86_400_000;
const STEPS: [unit: Intl.RelativeTimeFormatUnit, ms: number][] = [
  ["day", DAY_MS],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const count = new Intl.NumberFormat("en");

/** `24 Nov 2026, 14:02:09 GMT+1`. */
export function sayExactly(at: string): string {
  return new Date(at).toLocaleString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
  });
}

/** For a table: the time alone today, the day with it otherwise. */
export function sayShortly(at: string, nowMs: number): string {
  const time = new Date(at);
  const clock = time.toLocaleTimeString("en-GB");
  if (time.toDateString() === new Date(nowMs).toDateString()) return clock;
  const year = time.getFullYear() === new Date(nowMs).getFullYear() ? undefined : "numeric";
  return `${time.toLocaleDateString("en-GB", { day: "numeric", month: "short", year })}, ${clock.slice(0, 5)}`;
}

/** `3 minutes ago`, `in 2 hours`. */
export function sayRelative(at: string, nowMs: number): string {
  const differenceMs = Date.parse(at) - nowMs;
  const [unit, ms] = STEPS.find(([, step]) => Math.abs(differenceMs) >= step) ?? (["second", 1_000] as const);
  return relative.format(Math.trunc(differenceMs / ms), unit);
}

/** `0.8 s`, `12 s`, `3 min`, `2 h`, `4 d`. */
export function sayDuration(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 120_000) return `${Math.round(ms / 1000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  if (ms < 2 * DAY_MS) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / DAY_MS)} d`;
}

/** `84 KB`; 1 KB is 1,000 bytes. */
export function saySize(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  if (bytes < 999_500) return `${Math.round(bytes / 1_000)} KB`;
  if (bytes < 999_950_000) return `${(bytes / 1_000_000).toFixed(1)} MB`;
  return `${(bytes / 1_000_000_000).toFixed(1)} GB`;
}

type Named = { one: string; many?: string; isAtLeast?: boolean };

/** `18,204 e-mails`, `1 e-mail`, `at least 100,000 e-mails`. */
export function sayCount(total: number, { one, many = `${one}s`, isAtLeast = false }: Named): string {
  const words = `${count.format(total)} ${total === 1 ? one : many}`;
  return isAtLeast ? `at least ${words}` : words;
}

/** `18,204`; `1,000+` where there is more. */
export function sayFigure(total: number, isAtLeast = false): string {
  return `${count.format(total)}${isAtLeast && total > 0 ? "+" : ""}`;
}

/** `0.4 %`, of a whole; `–` of nothing. */
export function sayPercent(part: number, whole: number): string {
  if (whole === 0) return "–";
  const percent = (part / whole) * 100;
  return `${percent > 0 && percent < 0.1 ? "under 0.1" : percent.toFixed(percent >= 10 ? 0 : 1)} %`;
}
