// Types and names that strangers chose, as headers of a download.
import assert from "node:assert/strict";
import { test } from "node:test";
import { downloadHeaders } from "./download.ts";

const typeOf = (type: string) => downloadHeaders("a", type)["content-type"];
const nameOf = (name: string) => downloadHeaders(name, "text/plain")["content-disposition"] ?? "";

for (const type of [
  "text/html",
  "TEXT/HTML; charset=utf-8",
  "application/xhtml+xml",
  "image/svg+xml",
  "application/xml",
  "text/xml",
  "text/xsl",
  "application/xslt+xml",
  "application/vnd.google-earth.kml+xml",
  "text/javascript1.5",
  "text/x-javascript",
  "text/vbscript",
  "application/x-java-jnlp-file",
  "application/javascript",
  "text/ecmascript",
  "application/x-shockwave-flash",
  "application/mathml+xml",
  "message/rfc822",
  "multipart/mixed",
  "text/plain\r\nX-Evil: 1",
  "no type at all",
  "",
]) {
  test(`${JSON.stringify(type)} is octets`, () => assert.equal(typeOf(type), "application/octet-stream"));
}

test("types that nothing runs stay", () => {
  for (const type of [
    "text/plain",
    "application/pdf",
    "image/png",
    "application/vnd.ms-excel",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    "application/vnd.oasis.opendocument.text",
    "application/postscript",
    "text/calendar",
    "application/zip",
  ]) {
    assert.equal(typeOf(`${type}; name=x`), type);
  }
});

test("no name breaks out of its header", () => {
  for (const name of [
    'a"; filename="b.exe',
    "a\\",
    "a\r\nX-Evil: 1",
    "a;b",
    "a%00b",
    "ünï ☃.pdf",
    "\u202egpj.exe",
    "'()*",
    "\ud800lone",
    "a".repeat(10_000),
  ]) {
    const written = nameOf(name);
    assert.match(
      written,
      /^attachment; filename="[\x20-\x21\x23-\x24\x26-\x3a\x3c-\x5b\x5d-\x7e]*"; filename\*=UTF-8''[A-Za-z0-9%._~!-]*$/,
      name,
    );
  }
  assert.match(nameOf("ünï.pdf"), /filename\*=UTF-8''%C3%BCn%C3%AF\.pdf$/);
});
