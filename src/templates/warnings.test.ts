import assert from "node:assert/strict";
import { test } from "node:test";
import { startProcessorTime } from "../../test/support/processor-time.ts";
import { parseSources } from "./sources.ts";
import type { Sources } from "./types.ts";
import { warningsFor } from "./warnings.ts";

function warn(html: string, rendered: Partial<Sources> = {}) {
  const parsed = parseSources({ subject: "S", html_body: html, text_body: "T" });
  return warningsFor(parsed, { subject: "S", html_body: html, text_body: "T", ...rendered });
}

const codes = (html: string, rendered: Partial<Sources> = {}) => warn(html, rendered).map(({ code }) => code);

test("a good template gives none", () => {
  assert.deepEqual(warn('<p>{{a}}</p><A class="b" HREF="https://example.com/?a&#x3D;1">x</A>'), []);
});

test("Gmail's clip counts bytes and begins above 102 KB", () => {
  assert.deepEqual(codes("x", { html_body: "é".repeat(51 * 1024) }), []);
  assert.deepEqual(codes("x", { html_body: "é".repeat(51 * 1024) + "x" }), ["gmail_clipping"]);
});

test("unescaped variables are named with their place, in blocks too", () => {
  const warnings = warn("{{a}}\n{{#if b}}{{{c.d}}}{{else}}{{&e}}{{/if}}{{#each l}}{{{this.x}}}{{{this}}}{{/each}}");
  assert.deepEqual(
    warnings.map(({ message }) => message.slice(0, 30)),
    [
      "{{{c.d}}} (line 2, column 10) ",
      "{{{e}}} (line 2, column 27) is",
      "{{{x}}} (line 2, column 51) is",
      "{{{this}}} (line 2, column 63)",
    ],
  );
});

test("links that lead nowhere in a mail are named once each", () => {
  const links = (...hrefs: string[]) => hrefs.map((href) => `<a class=x href="${href}">x</a>`).join(" ");
  const good = links(
    "https://a.example",
    "http://a.example/b",
    "HTTPS://A.example",
    "mailto:a@b.example",
    "tel:+49",
    "sms:1",
    "#top",
  );
  assert.deepEqual(codes(good), []);
  const bad = [
    "",
    "#",
    "www.example.com",
    "/path",
    "javascript:alert(1)",
    "https://",
    "https:///x",
    "ftp://x.example",
    "http:// x",
  ];
  const warnings = warn(links(...bad, ...bad));
  assert.deepEqual(
    warnings.map(({ code, message }) => [code, /'([^']*)'/.exec(message)?.[1]]),
    bad.map((href) => ["broken_link", href]),
  );
  assert.deepEqual(
    codes("<a href=www.example.com>x</a><a href='x'>y</a><a\nhref = \"z\">"),
    Array(3).fill("broken_link"),
  );
});

test("other tags, other attributes and text are no links", () => {
  assert.deepEqual(codes('<abbr href="x"><link href="x"><a data-href="x" name="y"><a>href="x"</a> <a'), []);
});

test("2 MiB of openings are read in less than a second of CPU, and there are at most 50 warnings", () => {
  for (const unit of ["<a ", "<a href=", "<a href='x' ", "<a >", '<a href="', `<a${" ".repeat(5_000)}>`]) {
    const used = startProcessorTime();
    assert.ok(warn("x", { html_body: unit.repeat(2 ** 21 / unit.length) }).length <= 50);
    assert.ok(used() < 1_000, unit.slice(0, 20));
  }
  const many = Array.from({ length: 2_000 }, (_, index) => `<a href="x${index}">`).join("");
  assert.equal(warn("x", { html_body: many }).filter(({ code }) => code === "broken_link").length, 50);
});
