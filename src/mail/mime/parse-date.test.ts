// Dates as people's programs wrote them, in a message: what stands for nothing is null and named.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMessage } from "./parse-message.ts";

const dates: [value: string, date: string | null][] = [
  ["Fri, 20 Nov 2026 11:00:00 +0100 (CET)", "2026-11-20T10:00:00.000Z"],
  ["20 Nov 2026 11:00 GMT", "2026-11-20T11:00:00.000Z"],
  ["Thu, 1 Jan 70 00:00:00 EST", "1970-01-01T05:00:00.000Z"],
  ["1 Jan 26 0:0:0 -0000", "2026-01-01T00:00:00.000Z"],
  ["Fri Nov 20 11:00:00 2026", "2026-11-20T11:00:00.000Z"],
  ["Fri Nov 20 11:00:00 +0100 2026", "2026-11-20T10:00:00.000Z"],
  ["2026-11-20T11:00:00+01:00", "2026-11-20T10:00:00.000Z"],
  ["Friday, 20-November-2026 11.00.00 +0530", "2026-11-20T05:30:00.000Z"],
  ["Fri, 20 Nov 2026 11:00:00 (of (the) day) +0100 (CET)", "2026-11-20T10:00:00.000Z"],
  ["Fri, 20 Nov 2026 1:10:05 PM +0100", "2026-11-20T12:10:05.000Z"],
  ["Fri, 20 Nov 2026 12:10 a.m. GMT", "2026-11-20T00:10:00.000Z"],
  ["Friday, November 20, 2026 at 12:10 PM", "2026-11-20T12:10:00.000Z"],
  ["Nov 20th, 2026, 13:10:00 -0500", "2026-11-20T18:10:00.000Z"],
  ["20 Nov 2026 11:00:00 A", "2026-11-20T11:00:00.000Z"],
  ["20 Nov 2026 11:00:00 M", "2026-11-20T11:00:00.000Z"],
  ["20 Xyz 2026 11:00:00 +0000", null],
  ["yesterday", null],
  ["32 Nov 2026 11:00:00 +0000", null],
  ["Sun, 29 Feb 2026 11:00:00 +0000", null],
  ["Tue, 29 Feb 2028 23:59:60 -0500", "2028-03-01T05:00:00.000Z"],
  ["31 Apr 2026 11:00:00 +0000", null],
  ["2026-02-30T11:00:00Z", null],
  ["20 Nov 2026 24:30:00 +0000", null],
  ["20 Nov 99999 11:00:00 +0000", null],
];
for (const [value, date] of dates) {
  test(`reads the date ${value} as ${date}`, () => {
    const mail = parseMessage(Buffer.from(`Date: ${value}\r\n\r\n`));
    assert.deepEqual([mail.date, mail.defects], [date, date === null ? ["bad_date"] : []]);
  });
}
