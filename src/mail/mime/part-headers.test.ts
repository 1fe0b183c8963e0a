import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileHeader, normalizeContentId, normalizeContentType, typeFromFilename } from "./part-headers.ts";

describe("normalizeContentType", () => {
  const accepted: [string, string][] = [
    ["Application/PDF", "application/pdf"],
    [' text/calendar; METHOD=Request ;charset="utf-8"', 'text/calendar; method=Request; charset="utf-8"'],
    ["application/vnd.ms-excel.sheet.macroEnabled.12", "application/vnd.ms-excel.sheet.macroenabled.12"],
    ["image/svg+xml;", "image/svg+xml"],
    ["text/plain; name=\"x.txt\"; filename*=utf-8''x", "text/plain"],
    ['text/plain; boundary="a"', "text/plain"],
    ['text/plain; a="x; b=\\"y\\""', 'text/plain; a="x; b=\\"y\\""'],
  ];
  for (const [given, want] of accepted) it(`reads ${given}`, () => assert.equal(normalizeContentType(given), want));

  const refused = [
    "",
    "text",
    "text/",
    "/plain",
    "text/plain charset=utf-8",
    "text/plain; charset",
    "te xt/plain",
    "text/plain; a=b c",
  ];
  refused.push(
    "text/plain\r\nBcc: x",
    'text/plain; a="b\r\nc"',
    'text/plain; a="b',
    "text/plän",
    "text/plain; a=ü",
    "text/plain\0",
  );
  refused.push(`text/plain${"; a=b".repeat(11)}`, `text/${"x".repeat(600)}`);
  for (const given of refused)
    it(`refuses ${JSON.stringify(given.slice(0, 40))}`, () => assert.equal(normalizeContentType(given), null));

  it("takes linear time on hostile parameters", () => {
    assert.equal(normalizeContentType(`text/plain; a="${'\\"'.repeat(230)}`), null);
  });
});

describe("normalizeContentId", () => {
  it("takes one printable word, with or without angle brackets", () => {
    assert.equal(normalizeContentId("logo"), "logo");
    assert.equal(normalizeContentId("<logo@acme.example>"), "logo@acme.example");
    for (const bad of ["", "<>", "a b", "a>b", "a\r\nb", "ü", 'a"b', "x".repeat(201)])
      assert.equal(normalizeContentId(bad), null);
  });
});

describe("typeFromFilename", () => {
  it("knows common extensions in any case and falls back to octets", () => {
    assert.equal(typeFromFilename("a.PDF"), "application/pdf");
    assert.equal(typeFromFilename("a.tar.gz"), "application/gzip");
    for (const name of ["a", "", "a.", "constructor", "a.__proto__", "a.exe"])
      assert.equal(typeFromFilename(name), "application/octet-stream");
  });
});

describe("fileHeader", () => {
  const start = "Content-Disposition: attachment";

  it("writes a token bare and other ASCII in quotes", () => {
    assert.equal(fileHeader(start, "filename", "a.pdf"), `${start};\r\n filename=a.pdf\r\n`);
    assert.equal(fileHeader(start, "filename", 'a "b" \\c.pdf'), `${start};\r\n filename="a \\"b\\" \\\\c.pdf"\r\n`);
  });

  it("writes other names by RFC 2231 with an ASCII fallback behind", () => {
    assert.equal(
      fileHeader(start, "filename", "Übersicht (1).pdf"),
      `${start};\r\n filename*=UTF-8''%C3%9Cbersicht%20%281%29.pdf;\r\n filename="Ubersicht (1).pdf"\r\n`,
    );
    assert.match(fileHeader(start, "filename", "請求書.pdf"), /\r\n filename=attachment\.pdf\r\n$/);
    assert.match(fileHeader(start, "filename", "請求書"), /\r\n filename=attachment\r\n$/);
  });

  it("splits long names over sections, each of whole characters and within a line", () => {
    const header = fileHeader(start, "filename", `${"日".repeat(60)}.png`);
    const sections = [...header.matchAll(/ filename\*(\d+)\*=(?:UTF-8'')?([^;\r]*)/g)];
    assert.ok(sections.length > 5);
    assert.deepEqual(
      sections.map((match) => Number(match[1])),
      sections.map((_, i) => i),
    );
    assert.equal(sections.map((match) => decodeURIComponent(match[2]!)).join(""), `${"日".repeat(60)}.png`);
    for (const line of header.split("\r\n")) assert.ok(line.length <= 76);
  });

  it("gives a long ASCII name in both forms, in full", () => {
    const name = `${"x".repeat(196)}.pdf`;
    const header = fileHeader(start, "filename", name);
    assert.ok(header.endsWith(`\r\n filename=${name}\r\n`) && header.includes("filename*0*=UTF-8''xxx"));
  });
});
