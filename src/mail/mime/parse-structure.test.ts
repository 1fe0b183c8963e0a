// Where a message begins: what stands before the first field in files, and what only looks like it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { processorMs } from "../../../test/support/processor-time.ts";
import { splitMessage } from "./parse-head.ts";
import { parseMessage } from "./parse-message.ts";
import { parseStructure } from "./parse-structure.ts";

const names = (text: string) =>
  parseStructure(Buffer.from(text), { parts_max: 10, depth_max: 10 }).root.headers.map(({ name }) => name);

test("an mbox line before the head is passed over", () => {
  assert.deepEqual(names("From a@b.example Fri Nov 20 10:00:00 2026\r\nTo: c@d.example\r\n\r\n"), ["To"]);
});

test("a From field with spaces before its colon is no mbox line: the author that DMARC judges is shown", () => {
  for (const spaces of ["", " ", "  ", "\t", " \t "]) {
    const head = `From${spaces}: a@b.example\r\nTo: c@d.example\r\n\r\n`;
    assert.deepEqual(names(head), ["From", "To"]);
    assert.deepEqual(parseMessage(Buffer.from(head)).from, [{ name: null, email: "a@b.example" }]);
  }
});

test("a byte order mark alone in its line does not end the head", () => {
  assert.deepEqual(names("\ufeffFrom: a@b.example\r\n\r\n"), ["From"]);
  for (const end of ["\r\n", "\n"])
    assert.deepEqual(names(`\ufeff${end}From: a@b.example${end}${end}To: c@d.example`), ["From"]);
});

test("a name with a space that is no blank behind it is no From, for none of our readers", () => {
  const head = Buffer.from("From\xa0: a@b.example\r\nFrom\x0b: a@b.example\r\n\r\n", "latin1");
  assert.deepEqual(parseMessage(head).from, []);
  assert.deepEqual(splitMessage(head).headers, []);
});

test("a mailbox that names nobody is left out of a mail's lists", () => {
  const { to } = parseMessage(Buffer.from('To: <>, "" , a@b.example\r\n\r\n'));
  assert.deepEqual(to, [{ name: null, email: "a@b.example" }]);
});

test("U+FFFD in UTF-8 is that character, and no sign of another charset", () => {
  const { subject, from } = parseMessage(
    Buffer.from("From: \ufffd <\ufffda@b.example>\r\nSubject: \u00e9\ufffd\r\n\r\n"),
  );
  assert.equal(subject, "\u00e9\ufffd");
  assert.deepEqual(from, [{ name: "\ufffd", email: "\ufffda@b.example" }]);
});

test("a multipart whose boundary is nowhere is read by the one that is there", () => {
  const message = (named: string, used: string) =>
    Buffer.from(
      `Content-Type: multipart/mixed; boundary=${named}\r\n\r\n--${used}\r\nContent-Type: text/html\r\n\r\n<p>a\r\n` +
        `--${used}\r\nContent-Type: text/csv; name=b.csv\r\n\r\n1,2\r\n--${used}--\r\n`,
    );
  for (const [named, used] of [
    ["'abc'", "abc"],
    ["AbC", "abc"],
    ["----=_Part_1", "----=_Part_2"],
  ] as const) {
    const { html, attachments, defects } = parseMessage(message(named, used));
    assert.deepEqual([html, attachments.map(({ filename }) => filename)], ["<p>a", ["b.csv"]], named);
    assert.deepEqual(defects, ["boundary_not_found"]);
  }
});

test("lines of hyphens in such a multipart are no boundary: its text is whole", () => {
  for (const text of [
    "a\r\n----------\r\n\r\nb\r\n----------\r\n\r\nc",
    "a\r\n--ignored\r\nb\r\n--ignored\r\nc",
    "--once-only\r\n\r\na",
    "--two words\r\n\r\na\r\n--two words\r\n\r\nb",
  ]) {
    const mail = parseMessage(Buffer.from(`Content-Type: multipart/mixed; boundary=nowhere\r\n\r\n${text}`));
    assert.equal(mail.text, text.replaceAll("\r\n", "\n"));
  }
});

test("multiparts of such kind, one in the other, keep the limits and take linear time", () => {
  const nested = (depth: number) =>
    Buffer.from(
      Array.from(
        { length: depth },
        (_, index) =>
          `Content-Type: multipart/mixed; boundary=nowhere${index}\r\n\r\n--used-${index}-\r\n\r\n--used-${index}-\r\n`,
      ).join(""),
    );
  assert.ok(!parseMessage(nested(50)).defects.includes("too_deep"));
  assert.ok(parseMessage(nested(51)).defects.includes("too_deep"));
  assert.ok(processorMs(() => parseMessage(nested(20_000))) < 1_000);
});

test("Content-Type is read where it is quoted, has blanks or a colon, or only parameters", () => {
  const html = ['"text/html"; charset=utf-8', "text / html", "text/html: charset=utf-8", ";text/html", "text/html,"];
  for (const type of html) {
    const mail = parseMessage(Buffer.from(`Content-Type: ${type}\r\n\r\n<p>é`));
    assert.deepEqual([mail.html, mail.attachments.length], ["<p>é", 0], type);
  }
  const named = parseMessage(
    Buffer.from("Content-Type: name=x.pdf\r\nContent-Disposition: filename = y.pdf; size=1\r\n\r\na"),
  );
  assert.deepEqual(
    named.attachments.map(({ filename }) => filename),
    ["y.pdf"],
  );
});

test("parameters on lines of their own that nobody indented belong to the field before them", () => {
  const mail = parseMessage(
    Buffer.from(
      'From: a@b.example\r\nContent-Type: multipart/mixed;\r\nboundary="b"\r\nSubject: s\r\n\r\n--b\r\nContent-Type: text/plain;\r\n' +
        "charset=iso-8859-2\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=B1\r\n--b\r\nContent-Disposition: attachment; \r\n" +
        "filename=a.txt;\r\nsize=1\r\n\r\nx\r\n--b--\r\n",
    ),
  );
  assert.deepEqual(
    [mail.subject, mail.text, mail.attachments.map(({ filename }) => filename), mail.defects],
    ["s", "ą", ["a.txt"], []],
  );
  const text = (head: string) => parseMessage(Buffer.from(`${head}\r\nx=1\r\n`)).text;
  assert.equal(text("Subject: a;"), "x=1\n");
  assert.equal(text("Content-Type: text/plain"), "x=1\n");
});

test("a thousand multiparts whose boundaries are nowhere are looked for in linear time", () => {
  const rest = "--x\r\n".repeat(2_000);
  for (const parameter of ['; boundary="nowhere "', "", "; boundary=nowhere"]) {
    const part = (index: number) =>
      `--b\r\nContent-Type: multipart/mixed${parameter}\r\n\r\n--unique-${index}\r\n\r\n${rest}`;
    const parts = Array.from({ length: 990 }, (_, index) => part(index)).join("");
    const bytes = Buffer.from(`Content-Type: multipart/mixed; boundary=b\r\n\r\n${parts}--b--\r\n`);
    assert.ok(processorMs(() => parseStructure(bytes, { parts_max: 1_000, depth_max: 50 })) < 2_000, parameter);
  }
});

test("a head of lines that are nothing but line ends is read in linear time", () => {
  const bytes = Buffer.from(`Content-Type: text/plain;\r\n${"\r\r\r\n".repeat(60_000)}x`);
  assert.ok(processorMs(() => parseStructure(bytes, { parts_max: 10, depth_max: 10 })) < 1_000);
});

test("a line that begins with the boundary opens a part, whatever stands behind a space (RFC 2046 §5.1.1)", () => {
  const mail = (mark: string) =>
    `Content-Type: multipart/mixed; boundary=abc\r\n\r\n--abc${mark}\r\n\r\none\r\n--abc ${mark}\r\nContent-Type: text/html\r\n\r\n<p>two\r\n--abc--${mark}\r\nepilogue\r\n`;
  for (const mark of ["", " text", "\ttext", " -- text"]) {
    const { text, html } = parseMessage(Buffer.from(mail(mark)));
    assert.equal(text, "one", mark);
    assert.match(html ?? "", /<p>two$/, mark);
  }
  const other = "Content-Type: multipart/mixed; boundary=abc\r\n\r\n--abc\r\n\r\none\r\n--abcdef\r\ntwo\r\n--abc--\r\n";
  assert.equal(parseMessage(Buffer.from(other)).text, "one\n--abcdef\ntwo");
});
