// Values of fields as they may be stored, whatever a part in base64 or in another charset holds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startProcessorTime } from "../../../test/support/processor-time.ts";
import { parseComplaint } from "../arf/arf.ts";
import { parseBounce } from "./dsn.ts";
import { fieldValue, readFieldGroups } from "./status-fields.ts";

test("values hold no controls, and no half of a character that was cut", () => {
  const [group] = readFieldGroups(`Reporting-MTA: dns; a\0b\x1b[31m\nDiagnostic-Code: ${"x".repeat(1_982)}😀\n\ty\0`);
  assert.equal(fieldValue(group!, "reporting-mta"), "dns; a b [31m");
  const cut = fieldValue(group!, "diagnostic-code");
  assert.ok(cut.isWellFormed() && !cut.includes("\0"), JSON.stringify(cut.slice(-10)));
});

test("a part of nothing but continuations costs no more than its length", () => {
  const used = startProcessorTime();
  const [group] = readFieldGroups(`User-Agent: x\n${"R\n".repeat(2_000_000)}`);
  assert.equal(fieldValue(group!, "user-agent").length, 4_000);
  assert.ok(used() < 1_500, `${used()} ms`);
});

test("NUL in the encoded parts of a complaint does not reach what is stored of it", () => {
  const encoded = (text: string) => Buffer.from(text).toString("base64");
  const mail = [
    "Content-Type: multipart/report; report-type=feedback-report; boundary=b",
    "",
    "--b",
    "Content-Type: message/feedback-report",
    "Content-Transfer-Encoding: base64",
    "",
    encoded("Feedback-Type: abuse\nUser-Agent: a\0b\nVersion: 1\n"),
    "--b",
    "Content-Type: message/rfc822",
    "Content-Transfer-Encoding: base64",
    "",
    encoded("From: a@b.example\nSubject: x\0y\nMessage-ID: <\0@b.example>\n\nhi\n"),
    "--b--",
  ].join("\r\n");
  const report = parseComplaint(Buffer.from(mail));
  assert.equal(report?.user_agent, "a b");
  assert.deepEqual(report?.original.headers[1], { name: "Subject", value: "x y" });
  assert.equal(report?.original.message_id, null);
});

test("NUL in the text of a bounce does not reach its diagnostic", () => {
  const result = parseBounce(Buffer.from("\no@User unknown\0"));
  assert.equal(result.kind === "bounce" && result.recipients[0]?.diagnostic, "unknown");
});
