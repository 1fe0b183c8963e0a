import assert from "node:assert/strict";
import { test } from "node:test";
import { startProcessorTime } from "../../../test/support/processor-time.ts";
import { cleanText, createLog, type Log } from "./log.ts";

/** Runs `write` with a log and gives back the lines it wrote. */
function logged(write: (log: Log) => void, level = "info"): { lines: Record<string, unknown>[]; text: string } {
  let text = "";
  const keep = (line: string) => {
    text += line;
  };
  write(createLog({ level, role: "api", destination: { write: keep } }));
  const lines = text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { lines, text };
}

test("a line is JSON with time, level, role, fields and message", () => {
  const { lines } = logged((log) => log.info({ email_id: "0195", size: 12 }, "accepted"));
  const { time, pid, ...rest } = lines[0]!;
  assert.deepEqual(rest, { level: "info", role: "api", email_id: "0195", size: 12, msg: "accepted" });
  assert.match(String(time), /^\d{4}-\d\d-\d\dT/);
  assert.equal(pid, process.pid);
});

test("fields named like secrets or mail content are not written, at any depth and in any spelling", () => {
  const names = [
    "authorization",
    "Secret",
    "password",
    "body",
    "subject",
    "to",
    "from",
    "email",
    "reply_to",
    "htmlBody",
  ];
  for (const name of names) {
    const { text } = logged((log) => {
      log.info({ [name]: "sesame" });
      log.info({ a: { b: { [name]: { deep: "sesame" } } } });
      log.info({ list: [{ [name]: ["sesame"] }] });
      log.child({ [name]: "sesame" }).info("x");
    });
    assert.ok(!text.includes("sesame"), `${name} got through: ${text}`);
    assert.ok(text.includes("[redacted]"));
  }
});

test("numbers and flags under such names stay: they are sizes and counts", () => {
  const { lines } = logged((log) => log.info({ to: 3, body: 2048, subject: null, secret: false }));
  assert.deepEqual([lines[0]!.to, lines[0]!.body, lines[0]!.subject, lines[0]!.secret], [3, 2048, null, false]);
});

test("local parts of addresses do not reach the log, whatever the field, message or error", () => {
  const { text } = logged((log) => {
    log.info({ note: "sent to anna.smith+x@example.com and <o'neil@example.org>" }, "bounce of bob@example.net");
    log.info("value %s", "carol@example.net");
    log.error(new Error("no such user dave@example.net"));
    log.error({ err: new Error("x", { cause: new Error("erin@example.net") }) }, "failed");
    log.info({ diag: '550 "mary ann"@example.com unknown' });
  });
  for (const local of ["anna", "smith", "neil", "bob", "carol", "dave", "erin", "mary"]) {
    assert.ok(!text.includes(local), `${local} got through: ${text}`);
  }
  for (const domain of ["example.com", "example.org", "example.net"]) assert.ok(text.includes(`…@${domain}`));
});

test("our keys, bearer tokens and passwords in URLs do not reach the log", () => {
  const { text } = logged((log) => {
    log.info({ note: "key svc_live_abcdef123456 and svc_test_prod_2026-secret and whsec_Zm9vYmFy" });
    log.info("got Authorization: Bearer abc.def-123");
    log.info({ note: "connecting to postgres://postern:hunter2@db.internal/postern" });
  });
  for (const secret of ["abcdef123456", "prod_", "-secret", "Zm9vYmFy", "abc.def", "hunter2"])
    assert.ok(!text.includes(secret), text);
  assert.ok(text.includes("db.internal"));
});

test("an error keeps type, code, message and stack, and loses the row values of the database driver", () => {
  const error = Object.assign(new TypeError("broken"), {
    code: "23505",
    detail: "Key (email)=(x) exists",
    parameters: ["x1"],
  });
  const { lines } = logged((log) => log.error({ err: error }, "failed"));
  const err = lines[0]!.err as Record<string, unknown>;
  assert.equal(err.type, "TypeError");
  assert.equal(err.code, "23505");
  assert.match(String(err.stack), /log\.test\.ts/);
  assert.equal("detail" in err || "parameters" in err, false);
});

test("bytes, depth, long texts and many entries are cut", () => {
  const loop: Record<string, unknown> = {};
  loop.loop = loop;
  const { lines, text } = logged((log) => {
    log.info({ bytes: Buffer.from("geheim"), long: "x".repeat(100_000), list: new Array(1_000).fill(1), loop });
  });
  assert.equal(lines[0]!.bytes, "(6 bytes)");
  assert.equal((lines[0]!.list as unknown[]).length, 50);
  assert.ok(text.length < 10_000);
});

test("a hostile text is cleaned in linear time", () => {
  const used = startProcessorTime();
  for (const text of [
    "@".repeat(2_000_000),
    `${"a".repeat(2_000_000)}@`,
    '"'.repeat(2_000_000),
    "a://".repeat(500_000),
  ]) {
    cleanText(text, 2_000_000);
  }
  assert.ok(used() < 3_000, `${used()} ms`);
});

test("nothing below the level is written", () => {
  assert.equal(logged((log) => log.info("x"), "silent").text, "");
});
