import assert from "node:assert/strict";
import { test } from "node:test";
import { endOf, readDayOrTime } from "./date-range.ts";

test("a day is taken as a whole, a moment to its millisecond, in any zone", () => {
  const day = readDayOrTime("from_date", "2026-11-20");
  assert.deepEqual([day.ms, endOf(day) - day.ms], [Date.UTC(2026, 10, 20), 86_400_000]);
  const moment = readDayOrTime("to_date", "2026-11-20T10:00:00.5+02:00");
  assert.deepEqual([moment.ms, endOf(moment) - moment.ms], [Date.UTC(2026, 10, 20, 8, 0, 0, 500), 1]);
  const unencoded = new URLSearchParams("from_date=2026-11-20T10:00:00.5+02:00").get("from_date") ?? "";
  assert.equal(readDayOrTime("from_date", unencoded).ms, moment.ms);
  assert.equal(readDayOrTime("from_date", "2028-02-29").is_day, true);
  assert.equal(readDayOrTime("from_date", "1900-01-01").ms, 0);
});

test("what is no day of the calendar, or no date in the form of RFC 3339, is refused by name", () => {
  for (const text of [
    "2026-02-30",
    "2026-02-29",
    "2026-13-01",
    "2026-00-10",
    "2026-04-31T00:00:00Z",
    "2026-11-20T24:00:00Z",
    "2026-11-20T10:00:00",
    "2026-11-20 10:00",
    "2026-11-20 (Friday)",
    "2026-11-2",
    "20 Nov 2026",
    "9999-12-31T23:59:59-12:00",
    "",
  ]) {
    assert.throws(() => readDayOrTime("from_date", text), { kind: "validation_error", detail: { field: "from_date" } });
  }
});
