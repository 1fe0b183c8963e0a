// Times of zones that only the calendar knows, beside the clock of the zone that is meant.
import assert from "node:assert/strict";
import { test } from "node:test";
import { processorMs } from "../../../../test/support/processor-time.ts";
import { writeAnswer } from "./calendar-answer.ts";
import { utcTime, zonesOf } from "./calendar-zone.ts";

type Half = [start: string, from: string, to: string, rule: string];
const part = (kind: string, [start, from, to, rule]: Half) =>
  `BEGIN:${kind}\nDTSTART:${start}\nTZOFFSETFROM:${from}\nTZOFFSETTO:${to}\n${rule}\nEND:${kind}\n`;
const zone = (name: string, standard: Half, daylight: Half) =>
  `BEGIN:VTIMEZONE\nTZID:${name}\n${part("STANDARD", standard)}${part("DAYLIGHT", daylight)}END:VTIMEZONE\n`;
const rule = (month: number, day: string) => `RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=${day};BYMONTH=${month}`;

// As Outlook writes them.
const ZONES = {
  "Europe/Berlin": zone(
    "W. Europe Standard Time",
    ["16010101T030000", "+0200", "+0100", rule(10, "-1SU")],
    ["16010101T020000", "+0100", "+0200", rule(3, "-1SU")],
  ),
  "America/New_York": zone(
    "Eastern Standard Time",
    ["16010101T020000", "-0400", "-0500", rule(11, "1SU")],
    ["16010101T020000", "-0500", "-0400", rule(3, "2SU")],
  ),
  "Australia/Sydney": zone(
    "AUS Eastern Standard Time",
    ["20080406T030000", "+1100", "+1000", "RRULE:FREQ=YEARLY;BYMONTH=4;BYDAY=SU;BYMONTHDAY=1,2,3,4,5,6,7"],
    ["20071007T020000", "+1000", "+1100", rule(10, "1SU")],
  ),
};

test("a zone that the calendar describes has the times of the zone that is meant, around every change", () => {
  for (const [meant, text] of Object.entries(ZONES)) {
    const zones = zonesOf(text.split("\n"));
    const [name = ""] = zones.keys();
    const months = [2, 3, 9, 10].flatMap((month) => [2024, 2027].map((year) => Date.UTC(year, month, 1, 0, 30)));
    const hours = months.flatMap((month) => Array.from({ length: 30 * 12 }, (_, at) => month + at * 2 * 3_600_000));
    for (const ms of hours) {
      const wall = new Date(ms).toISOString().replace(/[-:]|\.\d+Z/g, "");
      assert.equal(utcTime(wall, name, zones), utcTime(wall, meant, new Map()), `${wall} ${name}`);
    }
  }
});

test("an hour that is there twice is the first, one that is skipped has the offset before it (RFC 5545 §3.3.5)", () => {
  const none = zonesOf([]);
  assert.equal(utcTime("20071104T013000", "America/New_York", none), "20071104T053000Z");
  assert.equal(utcTime("20070311T023000", "America/New_York", none), "20070311T073000Z");
});

test("dates one by one, a rule that ended, and a zone that never changes", () => {
  const zones = zonesOf(
    `${zone("A", ["20200101T000000", "+0300", "+0300", ""], ["20210301T000000", "+0300", "+0400", "RDATE:20210301T000000,20220301T000000"])}${zone("B", ["20201025T030000", "+0200", "+0100", `${rule(10, "-1SU")};UNTIL=20211031T010000Z`], ["20200329T020000", "+0100", "+0200", `${rule(3, "-1SU")};UNTIL=20220327T010000Z`])}`.split(
      "\n",
    ),
  );
  assert.equal(utcTime("20201231T120000", "A", zones), "20201231T090000Z");
  assert.equal(utcTime("20220401T120000", "A", zones), "20220401T080000Z");
  assert.equal(utcTime("20191231T120000", "A", zones), "20191231T090000Z");
  assert.equal(utcTime("20211201T120000", "B", zones), "20211201T110000Z");
  assert.equal(utcTime("20250101T120000", "B", zones), "20250101T100000Z");
});

test("a zone is known by the name at its end, too, and one that nobody knows is not guessed", () => {
  const none = zonesOf([]);
  assert.equal(utcTime("20260701T120000", "/mozilla.org/20070129_1/America/New_York", none), "20260701T160000Z");
  assert.equal(utcTime("20260701T120000", "/x.org/Tzfile/America/Argentina/Buenos_Aires", none), "20260701T150000Z");
  assert.equal(utcTime("20260701T120000", "Customized Time Zone", none), null);
  assert.equal(utcTime("99999999T999999", "Europe/Berlin", none), null);
});

test("an answer to one meeting of a row, and a proposal, say when they mean, in any zone", () => {
  const name = "(UTC+01:00) Amsterdam\\, Berlin";
  const own = ZONES["Europe/Berlin"].replace("W. Europe Standard Time", name);
  const at = (property: string, time: string) => `${property};TZID="${name.replace("\\", "")}":${time}\n`;
  const event = `BEGIN:VEVENT\nUID:u\n${at("RECURRENCE-ID", "20261102T090000")}${at("DTSTART", "20260703T100000")}ATTENDEE;PARTSTAT=DECLINED:mailto:x@y.example\nEND:VEVENT\n`;
  const answer = writeAnswer(`BEGIN:VCALENDAR\nMETHOD:COUNTER\n${own}${event}END:VCALENDAR\n`, {
    own: { name: null, email: "k3x@mask.example" },
    date_ms: 0,
    known: (text) => text,
  });
  assert.match(answer?.calendar ?? "", /^RECURRENCE-ID:20261102T080000Z\r$/m);
  assert.match(answer?.calendar ?? "", /^DTSTART:20260703T080000Z\r$/m);
});

test("what an enemy says of a zone takes a moment", () => {
  const days = Array.from({ length: 31 }, (_, at) => at + 1).join();
  const months = `RRULE:FREQ=YEARLY;BYMONTH=1,2,3,4,5,6,7,8,9,10,11,12;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYMONTHDAY=${days}`;
  const half = part("STANDARD", ["16010101T020000", "-0400", "-0500", months]);
  const dates = part("DAYLIGHT", ["16010101T020000", "-0400", "-0500", "RDATE:20200101T000000\n".repeat(50_000)]);
  const lines = `BEGIN:VTIMEZONE\nTZID:Z\n${half.repeat(2_000)}${dates}END:VTIMEZONE\n`.split("\n");
  const ms = processorMs(() => {
    const zones = zonesOf(lines);
    for (let year = 1700; year < 2500; year += 1) utcTime(`${year}0701T120000`, "Z", zones);
  });
  assert.ok(ms < 2_000, `${ms} ms`);
});
